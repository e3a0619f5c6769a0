//! Depthwise convolutions of narrow integers whose taps all have one weight for each channel, as means have: what a window meets is
//! summed up, and the sum multiplied once. Sums are exact modulo their type, so that the result is the same in every bit.

use super::KernelWriter;
use super::depthwise::{Depthwise, with_depthwise};
use super::schedule::{Preferences, Settings};
use super::tile::Lanes;
use super::walk::for_full_vectors;
use super::{depthwise_rows::strided, products};
use crate::loops::{Expr, Index, Nest, ValueType, Var};
use mlc_ir::ops::Convolution;
use mlc_ir::{Attribute, DType, TensorType};

/// Elements of the last axis of a window that are added up without a loop, at most.
const WRITTEN_OUT: usize = 8;

/// The one schedule of this kind, where all taps of a channel have the same weight and no instructions add up products of a channel's bytes.
pub fn list(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    let weights = &kernel.operands[1];
    let spatial = op.strides.len();
    let fits = !kernel.target.byte_dots.has_own_words()
        && op.groups > 1
        && weights.view.shape[spatial] == 1
        && op.sums.is_some_and(DType::is_integer)
        && op.pads.iter().all(|&pads| pads == (0, 0))
        && kernel.b.element_dtype(kernel.operands[0].pointer).is_integer()
        && weights.operand.is_some()
        && weights.view.shape[..spatial].iter().product::<usize>() > 1
        && kernel.results[0].view.elements() > 0
        && weights.constant.as_ref().is_some_and(|constant| of_outputs(constant).is_some());
    if fits { vec![(0, Settings::default())] } else { Preferences::new() }
}

/// The weight of each output, if all of its taps have the same: weights are dense, their outputs the last axis.
fn of_outputs(weights: &Attribute) -> Option<Attribute> {
    let outputs = *weights.ty().shape.last()?;
    let bytes = weights.bytes();
    let first = bytes.get(..outputs * weights.ty().dtype.size()).filter(|first| !first.is_empty())?;
    let are_alike = bytes.chunks(first.len()).all(|taps| taps == first);
    if are_alike { Attribute::new(TensorType::new(weights.ty().dtype, [outputs]), first.to_vec()).ok() } else { None }
}

/// Writes a convolution of [`list`].
pub fn write(op: &Convolution, kernel: &mut KernelWriter<'_>) {
    let weights = kernel.operands[1].clone();
    let (Some(constant), Some(operand)) = (weights.constant, weights.operand) else { return };
    let ty = TensorType::new(constant.ty().dtype, [weights.view.shape.last().copied().unwrap_or(0)]);
    let packed = kernel.pack(operand, "packed", ty, move || of_outputs(&constant));
    with_depthwise(op, kernel, |depthwise, kernel| Windows { depthwise, weights: packed }.write(kernel));
}

struct Windows<'d> {
    depthwise: &'d Depthwise,
    weights: Var,
}

impl Windows<'_> {
    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let Depthwise { window, multiplier, channels, .. } = self.depthwise;
        let sums = window.x.view.dtype;
        let is_dense = window.channel_stride == 1 && *multiplier == 1;
        let lanes = if is_dense { self.depthwise.machine.lanes } else { 1 };
        let shape: Vec<usize> = window.pixels.iter().map(|pixel| pixel.0).collect();
        kernel.for_each("multiple", *multiplier, |kernel, multiple| {
            kernel.for_shape(&["n", "row", "column"], &shape, &mut |kernel, pixel| {
                for_full_vectors(kernel, *channels, lanes, |kernel, channel, lanes| {
                    self.sum(kernel, (&multiple, pixel, &channel), ValueType::vector(sums, lanes));
                });
            });
        });
    }

    /// The sum of a vector of channels, times their weights.
    fn sum(
        &self,
        kernel: &mut KernelWriter<'_>,
        (multiple, pixel, channel): (&Index, &[Index], &Index),
        ty: ValueType,
    ) {
        let Depthwise { window, multiplier, .. } = self.depthwise;
        let place = channel.times(window.channel_stride);
        let start = pixel.iter().zip(&window.pixels).fold(place, |start, (index, own)| start.plus(&index.times(own.1)));
        let x = kernel.b.pointer("xp", window.x.pointer, start);
        let sum = kernel.b.mutable("sum", Expr::zero(ty.dtype, ty.lanes));
        let Some((&(length, step, _), above)) = window.axes.split_last() else { return };
        let shape: Vec<usize> = above.iter().map(|axis| axis.0).collect();
        let part = (1..=WRITTEN_OUT).rev().find(|&part| length.is_multiple_of(part)).unwrap_or(1);
        kernel.for_shape(&["tap"; 6], &shape, &mut |kernel, position| {
            let row =
                position.iter().zip(above).fold(Index::default(), |row, (tap, axis)| row.plus(&tap.times(axis.1)));
            kernel.for_range("tap", Index::default(), Index::from(length), part as i64, |kernel, tap| {
                for own in 0..part {
                    let index = row.plus(&tap.offset(own as i64).times(step));
                    let value = strided(x, index, window.channel_stride, ty);
                    kernel.b.assign(sum, Expr::Var(sum).plus(value));
                }
            });
        });
        let output = channel.times(*multiplier as i64).plus(multiple);
        let weight = strided(self.weights, output, *multiplier as i64, ty);
        kernel.b.assign(sum, Expr::Var(sum).times(weight));
        let indices: Vec<Index> = std::iter::once(multiple).chain(pixel).cloned().collect();
        products::finish(kernel, sum, &indices, channel, Lanes { width: ty.lanes, valid: ty.lanes });
    }
}
