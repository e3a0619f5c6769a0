//! Depthwise convolutions of bytes, channel by channel: a channel is copied into scratch memory as numbers of 16 bits, within its
//! border, where neighbours along a row are pairs that one instruction multiplies with two taps.

use super::KernelWriter;
use super::depthwise;
use super::dots::first_terms;
use super::scales::numbers;
use super::schedule::{Preferences, Settings};
use super::tile::Span;
use super::walk::for_span;
use super::window::has_own_border;
use crate::loops::{Expr, Index, Nest, Routine, Stmt, ValueType, Var};
use mlc_ir::ops::Convolution;
use mlc_ir::{Attribute, DType, Diagnostic, Literal, TensorType};

/// Outputs of a row that are computed at once, those first that leave most registers.
const STEPS: [usize; 4] = [4, 5, 3, 2];

/// Elements that are copied without a loop.
const COPIED: usize = 8;

/// Whether a convolution of x by weights of some types can be computed so, with any border.
pub fn fits(op: &Convolution, x: &TensorType, weights: &TensorType) -> bool {
    x.rank() == 4
        && op.sums == Some(DType::I32)
        && x.dtype.is_byte()
        && weights.dtype == DType::I8
        && op.groups > 1
        && weights.shape[2] == 1
        && weights.shape[3] == op.groups
        && op.dilations == [1, 1]
}

pub(super) fn types(kernel: &KernelWriter<'_>) -> Option<[TensorType; 2]> {
    let ty = |operand: usize| {
        let argument = kernel.operands.get(operand)?;
        Some(TensorType::new(kernel.b.element_dtype(argument.pointer), argument.view.shape.clone()))
    };
    Some([ty(0)?, ty(1)?])
}

/// The one schedule of this kind, where channels aren't computed in vectors.
pub fn list(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    if is_there(op, kernel) && !is_in_quads(op, kernel) { vec![(0, Settings::default())] } else { Preferences::new() }
}

/// Whether channels are computed in vectors of bytes that are loaded as words, with no border that would have to be there.
pub fn is_in_quads(op: &Convolution, kernel: &KernelWriter<'_>) -> bool {
    !has_own_border(op) && depthwise::is_in_quads(op, kernel)
}

/// Whether the machine has routines for depthwise convolutions of bytes of the types and the layout.
pub fn is_there(op: &Convolution, kernel: &KernelWriter<'_>) -> bool {
    let is_constant = kernel.operands[1].constant.is_some() && kernel.operands[1].operand.is_some();
    let fits = types(kernel).is_some_and(|[x, weights]| fits(op, &x, &weights));
    kernel.target.dsp && is_constant && fits && kernel.results[0].view.elements() > 0
}

/// Writes the kernel.
///
/// # Errors
/// None: the types are those of [`fits()`].
pub fn write(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let (expression, bounds) = (kernel.epilogue.clone(), kernel.bounds.clone());
    Planes::new(op, kernel).write(kernel);
    (kernel.epilogue, kernel.bounds) = (expression, bounds);
    Ok(())
}

/// A convolution, and the memory of its planes.
struct Planes<'o> {
    op: &'o Convolution,
    /// Rows and columns of x.
    extents: [usize; 2],
    /// Rows and columns of the result.
    results: [usize; 2],
    taps: [usize; 2],
    channels: usize,
    /// Elements of a row of the plane, an even number.
    pitch: usize,
    rows: usize,
    plane: Var,
    weights: Var,
    first: Var,
}

impl<'o> Planes<'o> {
    fn new(op: &'o Convolution, kernel: &mut KernelWriter<'_>) -> Planes<'o> {
        let (x, weights) = (kernel.operands[0].view.shape.clone(), kernel.operands[1].view.shape.clone());
        let result = kernel.results[0].view.shape.clone();
        let (extents, results, taps) = ([x[1], x[2]], [result[1], result[2]], [weights[0], weights[1]]);
        let channels = op.groups;
        let pairs = taps[1].div_ceil(2);
        let padded = |axis: usize| extents[axis] + op.pads[axis].0 + op.pads[axis].1;
        let read = (results[1] - 1) * op.strides[1] + 2 * pairs;
        let pitch = padded(1).max(read).next_multiple_of(2);
        let constant = kernel.operands[1].constant.clone();
        let words = move || packed(constant.as_ref()?, taps, channels);
        let ty = TensorType::new(DType::I32, [channels * taps[0] * pairs]);
        let packed = kernel.pack(kernel.operands[1].operand.unwrap_or(1), "packed", ty, words);
        let first = first_terms(kernel, channels, channels, 1).0;
        let rows = padded(0).max((results[0] - 1) * op.strides[0] + taps[0]);
        let plane = kernel.gathered("plane", DType::I16, rows * pitch);
        Planes { op, extents, results, taps, channels, pitch, rows, plane, weights: packed, first }
    }

    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let border = Expr::Literal(Literal::integer(DType::I16, self.op.border));
        kernel.for_each("k", self.rows * self.pitch, |kernel, k| kernel.b.store(self.plane, k, border));
        let batch = kernel.results[0].view.shape[0];
        kernel.for_each("n", batch, |kernel, item| {
            kernel.for_each("c", self.channels, |kernel, channel| {
                self.copy(kernel, &item, &channel);
                self.channel(kernel, &item, &channel);
            });
        });
    }

    /// Copies a channel into the plane.
    fn copy(&self, kernel: &mut KernelWriter<'_>, item: &Index, channel: &Index) {
        let x = kernel.operands[0].clone();
        let dtype = kernel.b.element_dtype(x.pointer);
        let (top, left) = (self.op.pads[0].0, self.op.pads[1].0);
        let [rows, columns] = self.extents;
        let step = (1..=COPIED.min(rows)).rev().find(|&step| rows.is_multiple_of(step)).unwrap_or(1);
        kernel.for_each("column", columns, |kernel, column| {
            for_span(kernel, "row", Span { start: 0, end: rows, step }, |kernel, row| {
                for at in 0..step {
                    let row = row.offset(at as i64);
                    let to = row.offset(top as i64).times(self.pitch as i64).plus(&column.offset(left as i64));
                    let index = x.address(&[item.clone(), row, column.clone(), channel.clone()]);
                    let (routine, pointers) = (Routine::Copy { dtype }, vec![(x.pointer, index), (self.plane, to)]);
                    kernel.b.push(Stmt::Routine { routine, pointers, numbers: Vec::new() });
                }
            });
        });
    }

    /// Computes a channel of the result.
    fn channel(&self, kernel: &mut KernelWriter<'_>, item: &Index, channel: &Index) {
        let pairs = self.taps[1].div_ceil(2);
        let count = self.taps[0] * pairs;
        let scalar = ValueType::scalar(DType::I32);
        let weights: Vec<Expr> = (0..count)
            .map(|number| {
                let index = channel.times(count as i64).offset(number as i64);
                kernel.b.define("w", Expr::Load { pointer: self.weights, index, ty: scalar })
            })
            .collect();
        let first = Expr::Load { pointer: self.first, index: channel.clone(), ty: scalar };
        let first = kernel.b.define("first_term", first);
        let [rows, columns] = self.results;
        let step = STEPS.into_iter().find(|&step| columns.is_multiple_of(step)).unwrap_or(1);
        kernel.for_each("row", rows, |kernel, row| {
            for_span(kernel, "column", Span { start: 0, end: columns, step }, |kernel, column| {
                let start = row.times((self.op.strides[0] * self.pitch) as i64);
                let start = start.plus(&column.times(self.op.strides[1] as i64));
                let xp = kernel.b.pointer("xp", self.plane, start);
                let mut sums = vec![first.clone(); step];
                for tap in 0..self.taps[0] {
                    for pair in 0..pairs {
                        for (at, sum) in sums.iter_mut().enumerate() {
                            let place = tap * self.pitch + at * self.op.strides[1] + 2 * pair;
                            let x = Expr::Pair { pointer: xp, index: Index::from(place) };
                            let weight = weights[tap * pairs + pair].clone();
                            *sum = Expr::Dot(Box::new([sum.clone(), x, weight]));
                        }
                    }
                }
                for (at, sum) in sums.into_iter().enumerate() {
                    let sum = kernel.b.define("sum", sum);
                    let indices = [item.clone(), row.clone(), column.offset(at as i64), channel.clone()];
                    kernel.finish(sum, &indices, 1);
                }
            });
        });
    }
}

/// Two numbers of 16 bits as a word, the first in its lower half.
pub(super) fn joined(low: i64, high: i64) -> i64 {
    let [low, high] = [low, high].map(|half| u32::from(half as i16 as u16));
    i64::from((low | high << 16) as i32)
}

/// For each channel whether all of its weights are zero, of bytes of which a channel's are so many apart.
pub(super) fn silent(weights: &[u8], channels: usize) -> Vec<bool> {
    (0..channels).map(|channel| weights.iter().skip(channel).step_by(channels).all(|&byte| byte == 0)).collect()
}

/// Weights [rows, columns, 1, channels] as pairs along a row: [channels][rows][pairs].
fn packed(constant: &Attribute, taps: [usize; 2], channels: usize) -> Option<Attribute> {
    let all = constant.to_tensor().to_integers();
    let mut words = Vec::new();
    for channel in 0..channels {
        for row in 0..taps[0] {
            for pair in 0..taps[1].div_ceil(2) {
                let half = |column: usize| match column < taps[1] {
                    true => all.get((row * taps[1] + column) * channels + channel).copied(),
                    false => Some(0),
                };
                words.push(joined(half(2 * pair)?, half(2 * pair + 1)?));
            }
        }
    }
    Some(numbers(words))
}
