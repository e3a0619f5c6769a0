//! Convolutions: a contraction over the window's taps and a group's channels, or, when every channel is a group, a depthwise
//! kernel. Pads of the operator are left out of sums; a border that is in memory is part of the operand already.

use super::clipped::{Clipped, Columns};
use super::contraction::{Axis, Contraction};
use super::products::{weight_strides, with_views};
use super::window::window_axes;
use super::{KernelWriter, depthwise};
use crate::lower::view::View;
use mlc_ir::Diagnostic;
use mlc_ir::ops::Convolution;

/// Writes a convolution of x [N, spatial…, C] by weights [window…, C / groups, O].
///
/// # Errors
/// When there is no arithmetic for the data type.
pub fn convolution(kernel: &mut KernelWriter<'_>, op: &Convolution) -> Result<(), Diagnostic> {
    let (x, weights) = (kernel.operands[0].clone(), kernel.operands[1].clone());
    let spatial = op.strides.len();
    let channels = weights.view.shape[spatial];
    let groups = op.groups;
    if channels == 1 && groups > 1 {
        return depthwise::depthwise(kernel, op);
    }
    let outputs = weights.view.shape[spatial + 1] / groups;
    let w = weight_strides(&weights);
    let result = kernel.results[0].view.shape.clone();
    let mut outer = vec![Axis {
        extent: groups,
        x: x.view.strides[spatial + 1] * channels as i64,
        weights: w[spatial + 1] * outputs as i64,
    }];
    outer.push(Axis { extent: result[0], x: x.view.strides[0], weights: 0 });
    let mut reduction = Vec::new();
    for axis in 0..spatial {
        let stride = x.view.strides[axis + 1];
        outer.push(Axis { extent: result[axis + 1], x: stride * op.strides[axis] as i64, weights: 0 });
        let taps = weights.view.shape[axis];
        reduction.push(Axis { extent: taps, x: stride * op.dilations[axis] as i64, weights: w[axis] });
    }
    reduction.push(Axis { extent: channels, x: x.view.strides[spatial + 1], weights: w[spatial] });
    let axes = window_axes(op, &x, &weights);
    let last = (x.view.strides[spatial], op.pads[spatial - 1].0 as i64);
    let columns = Columns { stride: outer[spatial + 1].x, tap: reduction[spatial - 1].x, pad: last.0 * last.1 };
    let contraction = Contraction {
        x,
        x_offset: 0,
        weights,
        weights_offset: 0,
        outer,
        reduction,
        outputs,
        output_stride: w[spatial + 1],
    };
    let is_clipped = op.pads.iter().any(|&pads| pads != (0, 0)) && contraction.steps() > 0;
    with_views(
        kernel,
        |view| groups_first(view, groups),
        |kernel| {
            if !is_clipped {
                return contraction.write(kernel);
            }
            Clipped { contraction: &contraction, axes: &axes, columns }.write(kernel)
        },
    )
}

/// [outer…, groups * outputs] as [groups, outer…, outputs].
pub fn groups_first(view: &View, groups: usize) -> View {
    let rank = view.rank();
    let mut view = view.clone();
    let (extent, stride) = (view.shape[rank - 1] / groups, view.strides[rank - 1]);
    view.shape[rank - 1] = extent;
    view.shape.insert(0, groups);
    view.strides.insert(0, stride * extent as i64);
    view
}
