//! [`Band`]: the rows of x that a row of pixels reads, in scratch memory and within their border, so that no border is in the arena.
//!
//! Each row of x is copied once, before a pixel is computed that reads it, and none is read again. So the result may lie over x.

use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest, Relation, Routine, Stmt, ValueType, Var};
use crate::target::{Target, VectorSpelling};
use mlc_ir::ops::Convolution;
use mlc_ir::{Attribute, DType, Literal, TensorType};

/// See the module.
#[derive(Debug, Clone)]
pub struct Band {
    /// The whole operand, [N, rows, columns, C].
    x: Argument,
    dtype: DType,
    pointer: Var,
    rows: usize,
    /// Bytes of a row.
    pitch: usize,
    /// Rows of border above x.
    top: usize,
    /// Bytes of border before a row of x.
    left: usize,
    /// Rows of x between rows of pixels.
    stride: usize,
    /// Rows of pixels, and pixels of one.
    results: [usize; 2],
    border: i64,
}

/// Rows or columns that a window meets.
fn reach(op: &Convolution, weights: &[usize], axis: usize) -> usize {
    (weights[axis] - 1) * op.dilations[axis] + 1
}

/// Whether a convolution of x has a border that a band can have in its place: the machine has routines for such bytes that gather what a pixel
/// reads.
pub fn fits(op: &Convolution, x: &TensorType, weights: &Attribute, target: &Target) -> bool {
    let window = weights.ty();
    let is_dense = x.rank() == 4 && op.groups == 1 && op.sums == Some(DType::I32) && window.dtype == DType::I8;
    if !is_dense || op.pads.iter().all(|&pads| pads == (0, 0)) || x.elements() == 0 || window.elements() == 0 {
        return false;
    }
    let padded = |axis: usize| x.shape[axis + 1] + op.pads[axis].0 + op.pads[axis].1;
    let own = |axis: usize| reach(op, &window.shape, axis);
    if (0..2).any(|axis| padded(axis) < own(axis)) || op.pads[0].0 >= own(0) {
        return false;
    }
    let [rows, columns] = [0, 1].map(|axis| (padded(axis) - own(axis)) / op.strides[axis] + 1);
    // What is multiplied one after the other must be neighbours.
    let has_runs = window.shape[2] > 1 || window.shape[1] > 1 && op.dilations[1] == 1;
    // Two pixels that are gathered at once are in one row, and no weight is so small that a pair of it doesn't fit.
    let has_pairs = || target.pixel_pairs && columns.is_multiple_of(2) && !weights.bytes().contains(&0x80);
    let has_routines = match x.dtype {
        DType::I8 => target.dsp || target.vectors == VectorSpelling::Mve || has_pairs(),
        DType::U8 => target.dsp,
        _ => false,
    };
    has_routines && has_runs && x.shape[0] * rows * columns > 1
}

impl Band {
    /// Asks for the memory, and fills the border's columns. Precondition: [`fits()`].
    pub fn new(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Band {
        let x = kernel.operands[0].clone();
        let dtype = kernel.b.element_dtype(x.pointer);
        let result = &kernel.results[0].view.shape;
        let results = [result[1], result[2]];
        let channels = x.view.shape[3];
        let rows = reach(op, &kernel.operands[1].view.shape, 0);
        let pitch = (x.view.shape[2] + op.pads[1].0 + op.pads[1].1) * channels;
        let pointer = kernel.scratch("band", dtype, rows * pitch);
        let (top, left, stride) = (op.pads[0].0, op.pads[1].0 * channels, op.strides[0]);
        let band = Band { x, dtype, pointer, rows, pitch, top, left, stride, results, border: op.border };
        let inside = band.x.view.shape[2] * channels;
        kernel.for_each("k", rows, |kernel, row| {
            let row = row.times(pitch as i64);
            band.fill(kernel, &row, left);
            band.fill(kernel, &row.offset((left + inside) as i64), pitch - left - inside);
        });
        band
    }

    /// Where it is.
    pub fn pointer(&self) -> Var {
        self.pointer
    }

    /// Bytes between its rows.
    pub fn pitch(&self) -> usize {
        self.pitch
    }

    /// Before what a pixel reads is gathered, by the pixel's number among all: where it is the first of a row, brings the rows of x that none
    /// before it read, and moves those that stay.
    pub fn bring(&self, kernel: &mut KernelWriter<'_>, pixel: &Index) {
        let [rows, columns] = self.results;
        let is_first = (pixel.modulo(columns as i64), Relation::Equal, Index::default());
        kernel.when(vec![is_first], |kernel| {
            let all = pixel.divided_by(columns as i64);
            let (item, row) = match self.x.view.shape[0] {
                1 => (Index::default(), all),
                _ => (all.divided_by(rows as i64), all.modulo(rows as i64)),
            };
            let row = kernel.b.define_index("row", row);
            let kept = self.rows.saturating_sub(self.stride) as i64;
            let kept = kernel.b.define_index("kept", row.minimum(&Index::from(1_usize)).times(kept));
            kernel.for_range("k", Index::default(), kept.clone(), 1, |kernel, k| {
                let from = (self.pointer, k.offset(self.stride as i64).times(self.pitch as i64));
                self.copy(kernel, from, k.times(self.pitch as i64), self.pitch);
            });
            let first = row.times(self.stride as i64).offset(-(self.top as i64));
            kernel.for_range("k", kept, Index::from(self.rows), 1, |kernel, k| {
                self.load(kernel, &item, &k, &first.plus(&k));
            });
        });
    }

    /// Copies a row of x, or border in the place of one that isn't there, to a row of the band.
    fn load(&self, kernel: &mut KernelWriter<'_>, item: &Index, to: &Index, row: &Index) {
        let [height, width, channels] = [1, 2, 3].map(|axis| self.x.view.shape[axis]);
        let row = kernel.b.define_index("source", row.clone());
        let to = to.times(self.pitch as i64).offset(self.left as i64);
        let conditions = vec![
            (row.clone(), Relation::GreaterEqual, Index::default()),
            (row.clone(), Relation::Less, Index::from(height)),
        ];
        let then = kernel.block(|kernel| self.copy_row(kernel, item, &row, &to));
        let otherwise = kernel.block(|kernel| self.fill(kernel, &to, width * channels));
        kernel.b.push(Stmt::If { conditions, then, otherwise });
    }

    fn copy_row(&self, kernel: &mut KernelWriter<'_>, item: &Index, row: &Index, to: &Index) {
        let [width, channels] = [2, 3].map(|axis| self.x.view.shape[axis]);
        let steps = [2, 3].map(|axis| self.x.view.strides[axis]);
        let from = |column: &Index, channel: &Index| {
            (self.x.pointer, self.x.address(&[item.clone(), row.clone(), column.clone(), channel.clone()]))
        };
        let zero = Index::default();
        let is_whole = channels == 1 || steps[1] == 1;
        if is_whole && (width == 1 || steps[0] == channels as i64) {
            return self.copy(kernel, from(&zero, &zero), to.clone(), width * channels);
        }
        kernel.for_each("column", width, |kernel, column| {
            let to = to.plus(&column.times(channels as i64));
            if is_whole {
                return self.copy(kernel, from(&column, &zero), to, channels);
            }
            kernel.for_each("c", channels, |kernel, channel| {
                let (pointer, index) = from(&column, &channel);
                let value = Expr::Load { pointer, index, ty: ValueType::scalar(self.dtype) };
                kernel.b.store(self.pointer, to.plus(&channel), value);
            });
        });
    }

    fn copy(&self, kernel: &mut KernelWriter<'_>, from: (Var, Index), to: Index, count: usize) {
        kernel.b.push(Stmt::Routine {
            routine: Routine::CopyBytes { size: self.dtype.size() },
            pointers: vec![from, (self.pointer, to)],
            numbers: vec![count as i64],
        });
    }

    fn fill(&self, kernel: &mut KernelWriter<'_>, to: &Index, count: usize) {
        let border = Expr::Literal(Literal::integer(self.dtype, self.border));
        kernel.for_each("k", count, |kernel, k| kernel.b.store(self.pointer, to.plus(&k), border));
    }
}
