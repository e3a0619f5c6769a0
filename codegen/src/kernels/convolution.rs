//! Convolutions: a contraction over the window's taps and a group's channels, or, when every channel is a group, a depthwise
//! kernel. Pads of the operator are left out of sums; a border that is in memory is part of the operand already.

use super::band::{self, Band};
use super::clipped::{Clipped, Columns};
use super::contraction::{Axis, Contraction};
use super::dots::Reach;
use super::grain::Grain;
use super::order::with_pixels_first;
use super::products::{weight_strides, with_views};
use super::schedule::{Kind, Preferences, Scheduled, Settings};
use super::window::{WindowAxis, has_own_border, window_axes};
use super::{
    KernelWriter, depthwise, depthwise_quads, depthwise_rolled, planes, row_pairs, row_windows, strips, window_sums,
    winograd,
};
use crate::lower::view::View;
use mlc_ir::Diagnostic;
use mlc_ir::ops::Convolution;

impl Scheduled for Convolution {
    const KINDS: &'static [Kind<Self>] = &[
        Kind::new("window-sums", window_sums::list, |op, _, kernel| {
            window_sums::write(op, kernel);
            Ok(())
        }),
        Kind::new("strips", strips::list, |op, _, kernel| strips::write(op, kernel)),
        Kind::new(
            "row-vectors",
            |op, kernel| vectors(op, Reach::Row, kernel),
            |op, _, kernel| write_vectors(op, kernel),
        ),
        Kind::new(
            "pixel-vectors",
            |op, kernel| vectors(op, Reach::Pixel, kernel),
            |op, _, kernel| write_vectors(op, kernel),
        )
        .in_place()
        .by_routines(),
        Kind::new(
            "window-vectors",
            |op, kernel| vectors(op, Reach::Window, kernel),
            |op, _, kernel| write_vectors(op, kernel),
        ),
        Kind::new(
            "band-vectors",
            |op, kernel| vectors(op, Reach::Band, kernel),
            |op, _, kernel| write_vectors(op, kernel),
        )
        .in_place()
        .by_routines(),
        Kind::new("row-windows", row_windows::list, |op, _, kernel| row_windows::write(op, kernel)).by_routines(),
        Kind::new("row-pairs", row_pairs::list, |op, _, kernel| row_pairs::write(op, kernel)).in_place().by_routines(),
        Kind::new("planes", planes::list, |op, _, kernel| planes::write(op, kernel)).in_place().by_routines(),
        Kind::new("row-dots", |op, kernel| dots(op, Reach::Row, kernel), |op, _, kernel| write_dots(op, kernel)),
        Kind::new("pixel-dots", |op, kernel| dots(op, Reach::Pixel, kernel), |op, _, kernel| write_dots(op, kernel))
            .in_place()
            .by_routines(),
        Kind::new("window-dots", |op, kernel| dots(op, Reach::Window, kernel), |op, _, kernel| write_dots(op, kernel)),
        Kind::new("band-dots", |op, kernel| dots(op, Reach::Band, kernel), |op, _, kernel| write_dots(op, kernel))
            .in_place()
            .by_routines(),
        Kind::new("pixel-pairs", |op, kernel| pairs(op, Reach::Pixel, kernel), |op, _, kernel| write_pairs(op, kernel))
            .in_place()
            .by_routines(),
        Kind::new(
            "window-pairs",
            |op, kernel| pairs(op, Reach::Window, kernel),
            |op, _, kernel| write_pairs(op, kernel),
        ),
        Kind::new("band-pairs", |op, kernel| pairs(op, Reach::Band, kernel), |op, _, kernel| write_pairs(op, kernel))
            .in_place()
            .by_routines(),
        Kind::new("direct-dots", direct_dots, write_direct_dots).by_routines(),
        Kind::new("winograd", winograd::list, winograd::write).saves_products(),
        Kind::new("quads", |op, kernel| words(op, Grain::Quads, kernel), write_words).in_place(),
        Kind::new("word-pairs", |op, kernel| words(op, Grain::Pairs, kernel), write_words).in_place(),
        Kind::new("channel-quads", depthwise_quads::list, |op, _, kernel| depthwise_quads::write(op, kernel)),
        Kind::new(
            "tiles",
            |op, kernel| {
                if is_depthwise(op, kernel) || has_own_border(op) { Preferences::new() } else { tiles(op, kernel) }
            },
            convolution,
        ),
        Kind::new(
            "channels-outside",
            |op, kernel| {
                if is_depthwise(op, kernel) && !has_own_border(op) {
                    depthwise::list(op, true, kernel)
                } else {
                    Preferences::new()
                }
            },
            |op, settings, kernel| depthwise::depthwise(op, true, settings, kernel),
        ),
        Kind::new(
            "pixels-outside",
            |op, kernel| {
                if is_depthwise(op, kernel) && !has_own_border(op) {
                    depthwise::list(op, false, kernel)
                } else {
                    Preferences::new()
                }
            },
            |op, settings, kernel| depthwise::depthwise(op, false, settings, kernel),
        ),
        Kind::new("rolled", rolled, write_rolled).small(),
    ];
}

fn is_depthwise(op: &Convolution, kernel: &KernelWriter<'_>) -> bool {
    kernel.operands[1].view.shape[op.strides.len()] == 1 && op.groups > 1
}

/// A convolution of x [N, spatial…, C] by weights [window…, C / groups, O] as a contraction.
struct Parts {
    contraction: Contraction,
    axes: Vec<WindowAxis>,
    columns: Columns,
    /// Whether there is a border that isn't in memory.
    is_clipped: bool,
}

fn parts(op: &Convolution, kernel: &KernelWriter<'_>) -> Parts {
    let (x, weights) = (kernel.operands[0].clone(), kernel.operands[1].clone());
    let spatial = op.strides.len();
    let channels = weights.view.shape[spatial];
    let groups = op.groups;
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
        transform: None,
        outer,
        reduction,
        outputs,
        output_stride: w[spatial + 1],
        band: None,
    };
    let is_clipped = op.pads.iter().any(|&pads| pads != (0, 0)) && contraction.steps() > 0;
    Parts { contraction, axes, columns, is_clipped }
}

fn tiles(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    let Parts { contraction, axes, columns, is_clipped } = parts(op, kernel);
    let list = |kernel: &mut KernelWriter<'_>| match is_clipped {
        false => contraction.schedules(kernel),
        true => Clipped { contraction: &contraction, axes: &axes, columns }.schedules(kernel),
    };
    let list = with_views(&mut kernel.clone(), |view| groups_first(view, op.groups), list);
    with_pixels_first(list, &contraction, kernel)
}

/// The contraction that routines for bytes compute, over a band where there is a border; `None` where they can't.
fn gathered(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Option<Contraction> {
    let Parts { contraction, is_clipped, .. } = parts(op, kernel);
    if op.groups != 1 {
        return None;
    }
    if !is_clipped {
        return Some(contraction);
    }
    let [x, _] = planes::types(kernel)?;
    let weights = kernel.operands[1].constant.clone()?;
    band::fits(op, &x, &weights, kernel.target).then(|| over_band(op, contraction, kernel))
}

/// A contraction of outer axes for groups, items, rows and columns over a band in place of x.
fn over_band(op: &Convolution, mut contraction: Contraction, kernel: &mut KernelWriter<'_>) -> Contraction {
    let channels = contraction.x.view.shape[3] as i64;
    let band = Band::new(op, kernel);
    let steps = [0, 0, 0, op.strides[1] as i64 * channels];
    contraction.outer.iter_mut().zip(steps).for_each(|(axis, step)| axis.x = step);
    let steps = [band.pitch() as i64 * op.dilations[0] as i64, op.dilations[1] as i64 * channels, 1];
    contraction.reduction.iter_mut().zip(steps).for_each(|(axis, step)| axis.x = step);
    contraction.x.pointer = band.pointer();
    Contraction { band: Some(band), ..contraction }
}

fn dots(op: &Convolution, reach: Reach, kernel: &KernelWriter<'_>) -> Preferences {
    routines(op, kernel, |contraction, kernel| contraction.dot_schedules(reach, kernel))
}

fn write_dots(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    write_routines(op, kernel, Contraction::write_dots)
}

fn direct_dots(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    routines(op, kernel, |contraction, kernel| contraction.direct_dot_schedules(kernel))
}

fn write_direct_dots(op: &Convolution, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    write_routines(op, kernel, |contraction, kernel| contraction.write_direct_dots(settings, kernel))
}

fn vectors(op: &Convolution, reach: Reach, kernel: &KernelWriter<'_>) -> Preferences {
    routines(op, kernel, |contraction, kernel| contraction.helium_schedules(reach, kernel))
}

fn write_vectors(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    write_routines(op, kernel, Contraction::write_helium)
}

fn pairs(op: &Convolution, reach: Reach, kernel: &KernelWriter<'_>) -> Preferences {
    routines(op, kernel, |contraction, kernel| contraction.pair_schedules(reach, kernel))
}

fn write_pairs(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    write_routines(op, kernel, Contraction::write_pairs)
}

/// The schedules of routines for bytes, of which `list` says those of a kind.
fn routines(
    op: &Convolution,
    kernel: &KernelWriter<'_>,
    list: impl FnOnce(&Contraction, &KernelWriter<'_>) -> Preferences,
) -> Preferences {
    let mut kernel = kernel.clone();
    let Some(contraction) = gathered(op, &mut kernel) else { return Preferences::new() };
    with_views(&mut kernel, |view| groups_first(view, 1), |kernel| list(&contraction, kernel))
}

/// Writes one of them.
fn write_routines(
    op: &Convolution,
    kernel: &mut KernelWriter<'_>,
    write: impl FnOnce(Contraction, &mut KernelWriter<'_>) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let Some(contraction) = gathered(op, kernel) else { return Ok(()) };
    with_views(kernel, |view| groups_first(view, 1), |kernel| write(contraction, kernel))
}

fn words(op: &Convolution, grain: Grain, kernel: &KernelWriter<'_>) -> Preferences {
    let Parts { contraction, is_clipped, .. } = parts(op, kernel);
    if is_clipped || op.groups != 1 {
        return Preferences::new();
    }
    with_views(&mut kernel.clone(), |view| groups_first(view, 1), |kernel| contraction.word_schedules(grain, kernel))
}

fn write_words(op: &Convolution, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let contraction = parts(op, kernel).contraction;
    with_views(kernel, |view| groups_first(view, 1), |kernel| contraction.write_words(settings, kernel))
}

fn rolled(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    if has_own_border(op) {
        return Preferences::new();
    }
    if is_depthwise(op, kernel) {
        return depthwise_rolled::list(op, kernel);
    }
    let Parts { contraction, axes, columns, is_clipped } = parts(op, kernel);
    let list = |kernel: &mut KernelWriter<'_>| match is_clipped {
        false => contraction.rolled_schedules(kernel),
        true => Clipped { contraction: &contraction, axes: &axes, columns }.rolled_schedules(kernel),
    };
    let list = with_views(&mut kernel.clone(), |view| groups_first(view, op.groups), list);
    with_pixels_first(list, &contraction, kernel)
}

fn write_rolled(op: &Convolution, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    if is_depthwise(op, kernel) {
        return depthwise_rolled::write(op, settings, kernel);
    }
    let Parts { contraction, axes, columns, is_clipped } = parts(op, kernel);
    let write = |kernel: &mut KernelWriter<'_>| match is_clipped {
        false => contraction.clone().write(settings, kernel),
        true => Clipped { contraction: &contraction, axes: &axes, columns }.write_rolled(settings, kernel),
    };
    with_views(kernel, |view| groups_first(view, op.groups), write)
}

fn convolution(op: &Convolution, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let Parts { contraction, axes, columns, is_clipped } = parts(op, kernel);
    let write = |kernel: &mut KernelWriter<'_>| match is_clipped {
        false => contraction.clone().write(settings, kernel),
        true => Clipped { contraction: &contraction, axes: &axes, columns }.write(settings, kernel),
    };
    with_views(kernel, |view| groups_first(view, op.groups), write)
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
