//! Transposed convolutions by phases: the output positions with one remainder modulo the stride see a fixed part of the
//! window's taps, so that each phase is a plain convolution that writes every stride-th element. Nothing is scattered, and
//! nothing is written twice.

use super::KernelWriter;
use super::contraction::{Axis, Contraction};
use super::convolution::groups_first;
use super::products::{weight_strides, with_views};
use super::rolled::LAST;
use super::schedule::{Kind, Preferences, Scheduled, Settings};
use crate::lower::view::View;
use mlc_ir::Diagnostic;
use mlc_ir::ops::TransposedConvolution;

/// The part of one spatial axis that one phase computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Phase {
    /// First output position.
    first: usize,
    /// Number of output positions, a stride apart.
    count: usize,
    /// Taps that reach them, in the order of the input elements that they meet.
    taps: usize,
    /// The tap that meets the first of those elements.
    tap: usize,
    /// How many taps the next one is before it.
    tap_step: usize,
    /// Input element that `tap` meets at the first output position; negative in the border.
    input: i64,
    /// Elements between the inputs of neighbouring taps.
    input_step: usize,
}

/// The phases of one spatial axis with `taps` taps and `extent` output positions.
fn phases(op: &TransposedConvolution, axis: usize, taps: usize, extent: usize) -> Vec<Phase> {
    let (stride, dilation, pad) = (op.strides[axis], op.dilations[axis], op.pads[axis].0);
    let common = greatest_common_divisor(stride, dilation);
    let (tap_step, input_step) = (stride / common, dilation / common);
    let mut list = Vec::new();
    for first in 0..stride.min(extent) {
        let count = (extent - first).div_ceil(stride);
        let lowest = (0..taps.min(tap_step)).find(|tap| (tap * dilation) % stride == (first + pad) % stride);
        let phase = match lowest {
            None => Phase { first, count, taps: 0, tap: 0, tap_step, input: 0, input_step },
            Some(lowest) => {
                let number = (taps - 1 - lowest) / tap_step + 1;
                let tap = lowest + (number - 1) * tap_step;
                let input = ((first + pad) as i64 - (tap * dilation) as i64) / stride as i64;
                Phase { first, count, taps: number, tap, tap_step, input, input_step }
            }
        };
        list.push(phase);
    }
    list
}

fn greatest_common_divisor(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

/// Output positions of an axis of `extent` input elements.
fn output_extent(op: &TransposedConvolution, axis: usize, extent: usize, taps: usize) -> usize {
    let full = extent.saturating_sub(1) * op.strides[axis]
        + taps.saturating_sub(1) * op.dilations[axis]
        + op.output_pads[axis]
        + 1;
    full.saturating_sub(op.pads[axis].0 + op.pads[axis].1)
}

/// Has a transposed convolution of x [N, spatial…, C] by weights [window…, C, O / groups] read no element outside of x: gives the
/// zeros that x needs before and after each spatial axis, and cuts off what they add to the result.
pub fn move_border(op: &mut TransposedConvolution, x_shape: &[usize], weights_shape: &[usize]) -> Vec<(usize, usize)> {
    let along = |axis: usize| {
        let (extent, taps) = (x_shape[axis + 1], weights_shape[axis]);
        let mut pads = (0i64, 0i64);
        for phase in phases(op, axis, taps, output_extent(op, axis, extent, taps)) {
            if phase.taps > 0 {
                let last = phase.input + ((phase.taps - 1) * phase.input_step + phase.count - 1) as i64;
                pads = (pads.0.max(-phase.input), pads.1.max(last - (extent as i64 - 1)));
            }
        }
        (pads.0 as usize, pads.1 as usize)
    };
    let border: Vec<(usize, usize)> = (0..op.strides.len()).map(along).collect();
    for (axis, zeros) in border.iter().enumerate() {
        let (cut, stride) = (&mut op.pads[axis], op.strides[axis]);
        *cut = (cut.0 + zeros.0 * stride, cut.1 + zeros.1 * stride);
    }
    border
}

impl Scheduled for TransposedConvolution {
    const KINDS: &'static [Kind<Self>] =
        &[Kind::only("phases", transposed_convolution), Kind::new("rolled", rolled, transposed_convolution).small()];
}

/// Each phase in the fastest of its tiles of small code, or in the smallest of them.
fn rolled(_: &TransposedConvolution, _: &KernelWriter<'_>) -> Preferences {
    let of = |(number, tiles): (usize, &'static str)| (LAST + number, Settings::default().with("tiles", tiles));
    ["fastest", "smallest"].into_iter().enumerate().map(of).collect()
}

/// Writes a transposed convolution of x [N, spatial…, C] by weights [window…, C, O / groups], after [`move_border`].
fn transposed_convolution(
    op: &TransposedConvolution,
    settings: &Settings,
    kernel: &mut KernelWriter<'_>,
) -> Result<(), Diagnostic> {
    let (x, weights) = (kernel.operands[0].clone(), kernel.operands[1].clone());
    let spatial = op.strides.len();
    let result = kernel.results[0].view.shape.clone();
    let axes: Vec<Vec<Phase>> =
        (0..spatial).map(|axis| phases(op, axis, weights.view.shape[axis], result[axis + 1])).collect();
    let mut chosen: Vec<Vec<Phase>> = vec![Vec::new()];
    for phases in &axes {
        chosen = chosen
            .iter()
            .flat_map(|prefix| phases.iter().map(move |&phase| [prefix.as_slice(), &[phase]].concat()))
            .collect();
    }
    let w = weight_strides(&weights);
    let channels = weights.view.shape[spatial] / op.groups;
    for phase in &chosen {
        let mut outer = vec![Axis {
            extent: op.groups,
            x: x.view.strides[spatial + 1] * channels as i64,
            weights: w[spatial] * channels as i64,
        }];
        outer.push(Axis { extent: result[0], x: x.view.strides[0], weights: 0 });
        let (mut reduction, mut x_offset, mut weights_offset) = (Vec::new(), 0, 0);
        for (axis, part) in phase.iter().enumerate() {
            let stride = x.view.strides[axis + 1];
            outer.push(Axis { extent: part.count, x: stride, weights: 0 });
            let (step, tap_step) = (part.input_step as i64, part.tap_step as i64);
            reduction.push(Axis { extent: part.taps, x: stride * step, weights: -w[axis] * tap_step });
            if part.taps > 0 {
                x_offset += stride * part.input;
                weights_offset += w[axis] * part.tap as i64;
            }
        }
        reduction.push(Axis { extent: channels, x: x.view.strides[spatial + 1], weights: w[spatial] });
        let contraction = Contraction {
            x: x.clone(),
            x_offset,
            weights: weights.clone(),
            weights_offset,
            transform: None,
            outer,
            reduction,
            outputs: weights.view.shape[spatial + 1],
            output_stride: w[spatial + 1],
            band: None,
        };
        let part = |view: &View| groups_first(&phase_of(view, op, phase), op.groups);
        with_views(kernel, part, |kernel| {
            let rolled = || contraction.rolled_schedules(kernel).into_iter();
            let small = match settings {
                _ if settings.is("tiles", "fastest") => rolled().min_by_key(|(place, _)| *place),
                _ if settings.is("tiles", "smallest") => rolled().max_by_key(|(place, _)| *place),
                _ => None,
            };
            // Otherwise each phase in the tiles that are thought best for it.
            let best = || contraction.schedules(kernel).into_iter().min_by_key(|(place, _)| *place);
            let tiles = small.or_else(best).map(|(_, settings)| settings).unwrap_or_default();
            contraction.write(&tiles, kernel)
        })?;
    }
    Ok(())
}

/// The elements of the result that a phase computes.
fn phase_of(view: &View, op: &TransposedConvolution, phase: &[Phase]) -> View {
    let rank = view.rank();
    let (mut starts, mut sizes, mut steps) = (vec![0; rank], view.shape.to_vec(), vec![1; rank]);
    for (axis, part) in phase.iter().enumerate() {
        starts[axis + 1] = part.first;
        sizes[axis + 1] = part.count;
        steps[axis + 1] = op.strides[axis] as i64;
    }
    view.slice(&starts, &sizes, &steps)
}
