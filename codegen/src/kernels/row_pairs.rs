//! Depthwise convolutions of bytes with windows of 3 x 3, whose sums are only rescaled: a channel is copied into scratch memory within its
//! border, as words of two neighbours of a column, and a routine computes all of its results.

use super::KernelWriter;
use super::bounds;
use super::dots::first_terms;
use super::planes;
use super::scales::{Scales, Sums, numbers, scales};
use super::schedule::{Preferences, Settings};
use crate::loops::{Expr, Index, Nest, Routine, Stmt, Var};
use mlc_ir::ops::Convolution;
use mlc_ir::{Attribute, DType, Diagnostic, Literal, TensorType};

/// Rows and columns of a window.
const TAPS: usize = 3;

/// The one schedule of this kind.
pub fn list(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    let has_window = kernel.operands[1].view.shape.get(..2).is_some_and(|taps| taps == [TAPS; 2]);
    let is_there = has_window
        && matches!(op.strides[..], [1, 1] | [2, 2])
        && !planes::list(op, kernel).is_empty()
        && RowPairs::new(op, &mut kernel.clone()).is_some();
    if is_there { vec![(0, Settings::default())] } else { Preferences::new() }
}

/// Writes the kernel.
///
/// # Errors
/// None: the types are those of [`list`].
pub fn write(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let (epilogue, bounds) = (kernel.epilogue.clone(), kernel.bounds.clone());
    if let Some(pairs) = RowPairs::new(op, kernel) {
        pairs.write(kernel);
    }
    (kernel.epilogue, kernel.bounds) = (epilogue, bounds);
    Ok(())
}

/// A convolution, and the memory of its plane.
struct RowPairs<'o> {
    op: &'o Convolution,
    channels: usize,
    dtype: DType,
    /// Rows of pairs.
    rows: usize,
    /// Words of a row of pairs.
    pitch: usize,
    plane: Var,
    weights: Var,
    first: Var,
    scales: Scales,
}

impl<'o> RowPairs<'o> {
    /// `None` where sums aren't only rescaled, or not without a limit of their own.
    fn new(op: &'o Convolution, kernel: &mut KernelWriter<'_>) -> Option<RowPairs<'o>> {
        let dtype = planes::types(kernel)?[0].dtype;
        let (x, result) = (kernel.operands[0].view.shape.clone(), kernel.results[0].view.shape.clone());
        let (channels, stride) = (op.groups, op.strides[0]);
        // Sums are twice what they stand for, so that a rescaling needn't double them.
        let products = kernel.bounds.first().copied().unwrap_or(bounds::ANYTHING);
        let (first, values) = first_terms(kernel, channels, channels, 2);
        let silent = planes::silent(kernel.operands[1].constant.as_ref()?.bytes(), channels);
        let known = Sums { products, first: values, silent };
        let scales = scales(kernel, channels, &known).filter(|scales| scales.limit().is_none())?;
        let constant = kernel.operands[1].constant.clone();
        let words = move || packed(constant.as_ref()?, channels);
        let ty = TensorType::new(DType::I32, [channels * 2 * TAPS]);
        let weights = kernel.pack(kernel.operands[1].operand.unwrap_or(1), "packed", ty, words);
        let padded = |axis: usize| x[axis + 1] + op.pads[axis].0 + op.pads[axis].1;
        // The routine reads as if there were an even number of columns, and at stride 1 of rows.
        let read = match stride {
            1 => [result[1].div_ceil(2) + 1, result[2].next_multiple_of(2) + 2],
            _ => [result[1] + 1, 2 * result[2].next_multiple_of(2) + 1],
        };
        let (rows, pitch) = (padded(0).div_ceil(2).max(read[0]), padded(1).max(read[1]));
        let plane = kernel.gathered("plane", DType::I16, 2 * rows * pitch);
        Some(RowPairs { op, channels, dtype, rows, pitch, plane, weights, first, scales })
    }

    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let border = Expr::Literal(Literal::integer(DType::I16, self.op.border));
        kernel.for_each("k", 2 * self.rows * self.pitch, |kernel, k| kernel.b.store(self.plane, k, border));
        let batch = kernel.results[0].view.shape[0];
        kernel.for_each("n", batch, |kernel, item| {
            kernel.for_each("c", self.channels, |kernel, channel| self.channel(kernel, &item, &channel));
        });
    }

    /// Copies a channel, and computes that of the result.
    fn channel(&self, kernel: &mut KernelWriter<'_>, item: &Index, channel: &Index) {
        let (x, result) = (kernel.operands[0].clone(), kernel.results[0].clone());
        let pitch = self.pitch as i64;
        let origin = [item.clone(), Index::default(), Index::default(), channel.clone()];
        let extents = |shape: &[usize]| [shape[1] as i64, shape[2] as i64];
        let steps = |strides: &[i64]| [strides[1], strides[2]];
        let [top, left] = [0, 1].map(|axis| self.op.pads[axis].0 as i64);
        let plane = (self.plane, Index::from(2 * left));
        kernel.b.push(Stmt::Routine {
            routine: Routine::RowPairs { dtype: self.dtype },
            pointers: vec![(x.pointer, x.address(&origin)), plane],
            numbers: [extents(&x.view.shape), steps(&x.view.strides), [pitch, top]].concat(),
        });
        let own = |pointer: Var, numbers: i64| (pointer, channel.times(numbers));
        kernel.b.push(Stmt::Routine {
            routine: Routine::Depthwise { stride: self.op.strides[0], dtype: self.scales.dtype },
            pointers: vec![
                (self.plane, Index::default()),
                own(self.weights, 2 * TAPS as i64),
                own(self.first, 1),
                own(self.scales.table, 3),
                (result.pointer, result.address(&origin)),
            ],
            numbers: [&extents(&result.view.shape)[..], &steps(&result.view.strides), &[pitch]].concat(),
        });
    }
}

/// Twice the weights [3, 3, 1, channels] as pairs along a column: of each channel three of the first two rows, then three of the last two.
fn packed(constant: &Attribute, channels: usize) -> Option<Attribute> {
    let all = constant.to_tensor().to_integers();
    let mut words = Vec::new();
    for channel in 0..channels {
        for row in 0..TAPS - 1 {
            for column in 0..TAPS {
                let half = |row: usize| all.get((row * TAPS + column) * channels + channel).map(|weight| 2 * weight);
                words.push(planes::joined(half(row)?, half(row + 1)?));
            }
        }
    }
    Some(numbers(words))
}
