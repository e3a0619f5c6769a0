//! Interpolation: Resize and what came before it.

use super::call::{Call, Table};
use super::interpolation::{Axis, Interpolation, Mode, Rounding, Transform};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{Resize, ResizeCoordinates, ResizeMode};
use mlc_ir::{DType, Float, Value};

pub(super) const OPERATORS: Table = &[("Resize", 10, One(resize)), ("Upsample", 1, One(upsample))];

/// What version 11 and later say about all axes.
struct Options {
    mode: Mode,
    transform: Transform,
    exclude_outside: bool,
    antialias: bool,
    extrapolation: f64,
}

/// How long an axis becomes.
#[derive(Clone, Copy)]
struct Extent {
    axis: usize,
    size: usize,
    scale: f32,
}

fn resize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    if call.version() < 11 {
        let scales = call.constant_floats(1, "scales")?;
        return simple(call, scales);
    }
    let x = call.input(0)?;
    let options = options(call)?;
    let axes = listed_axes(call, x)?;
    let mut transforms = vec![options.transform; axes.len()];
    if matches!(options.transform, Transform::Crop(..)) {
        let region = call.constant_floats(1, "roi")?.unwrap_or_default();
        if region.len() != 2 * axes.len() {
            let message = format!("roi must be {} numbers, found {}", 2 * axes.len(), region.len());
            return Err(Fault::operands(message));
        }
        let (starts, ends) = region.split_at(axes.len());
        let crops = starts.iter().zip(ends).map(|(&start, &end)| Transform::Crop(start as f32, end as f32));
        transforms = crops.collect();
    } else {
        call.item(1);
    }
    let extents = extents(call, x, &axes)?;
    let shape = call.shape(x);
    let exact = |extent: &Extent| (shape[extent.axis] as f32 * extent.scale - extent.size as f32).abs() < 1e-3;
    if options.transform == Transform::AlignCorners && !extents.iter().all(exact) {
        call.warn(
            mlc_ir::Code::VariantUnsupported,
            "the scaled axes end between two elements, and the standard's examples align that end to the corner; \
             PyTorch and ONNX Runtime align the last element, which sizes instead of scales would say"
                .to_owned(),
        );
    }
    let axes = extents.iter().zip(transforms).map(|(&Extent { axis, size, scale }, transform)| {
        let Options { mode, exclude_outside, .. } = options;
        let antialias = options.antialias && scale < 1.0;
        (axis, Axis { extent: shape[axis], size, scale, transform, mode, exclude_outside, antialias })
    });
    interpolate(call, x, &axes.collect::<Vec<_>>(), options.extrapolation)
}

fn options(call: &mut Call<'_, '_>) -> Result<Options, Fault> {
    let unknown = |key: &str, word: &str| Fault::variant(format!("attribute `{key}` is {word}, which isn't known"));
    let rounding = call.word("nearest_mode")?.unwrap_or("round_prefer_floor");
    let rounding = Rounding::parse(rounding).ok_or_else(|| unknown("nearest_mode", rounding))?;
    let parameter = call.float_or("cubic_coeff_a", -0.75)?;
    let mode = match call.word("mode")?.unwrap_or("nearest") {
        "nearest" => Mode::Nearest(rounding),
        "linear" => Mode::Linear,
        "cubic" => Mode::Cubic(parameter),
        other => return Err(unknown("mode", other)),
    };
    let transform = call.word("coordinate_transformation_mode")?.unwrap_or("half_pixel");
    let transform = Transform::parse(transform).ok_or_else(|| unknown("coordinate_transformation_mode", transform))?;
    let exclude_outside = call.flag_or("exclude_outside", false)?;
    let antialias = call.flag_or("antialias", false)?;
    let extrapolation = call.float_or("extrapolation_value", 0.0)?;
    Ok(Options { mode, transform, exclude_outside, antialias, extrapolation })
}

/// The axes that scales, sizes and roi are about, in their order.
fn listed_axes(call: &mut Call<'_, '_>, x: Value) -> Result<Vec<usize>, Fault> {
    let Some(axes) = call.ints("axes")? else { return Ok((0..call.rank(x)).collect()) };
    call.axes(x, &axes)?;
    axes.iter().map(|&axis| call.axis(x, axis)).collect()
}

/// New extents by scales or sizes, one of which must be there; an empty list counts as absent.
fn extents(call: &mut Call<'_, '_>, x: Value, axes: &[usize]) -> Result<Vec<Extent>, Fault> {
    let scales = call.constant_floats(2, "scales")?.filter(|scales| !scales.is_empty());
    let sizes = call.constant_ints(3, "sizes")?.filter(|sizes| !sizes.is_empty());
    let policy = call.word("keep_aspect_ratio_policy")?.unwrap_or("stretch");
    let shape = call.shape(x);
    match (scales, sizes) {
        (Some(scales), None) => scaled(&shape, axes, &scales),
        (None, Some(sizes)) => sized(&shape, axes, &sizes, policy),
        (Some(_), Some(_)) => Err(Fault::operands("scales and sizes are given both")),
        (None, None) if axes.is_empty() => Ok(Vec::new()),
        (None, None) => Err(Fault::operands("neither scales nor sizes are given")),
    }
}

fn scaled(shape: &[usize], axes: &[usize], scales: &[f64]) -> Result<Vec<Extent>, Fault> {
    if scales.len() != axes.len() {
        return Err(Fault::operands(format!("scales must be {} numbers, found {}", axes.len(), scales.len())));
    }
    axes.iter()
        .zip(scales)
        .map(|(&axis, &scale)| {
            let scale = scale as f32;
            let size = (shape[axis] as f32 * scale).floor();
            if !(scale > 0.0 && size < 1e12) {
                return Err(Fault::operands(format!("axis {axis} can't be scaled by {scale}")));
            }
            Ok(Extent { axis, size: size as usize, scale })
        })
        .collect()
}

fn sized(shape: &[usize], axes: &[usize], sizes: &[i64], policy: &str) -> Result<Vec<Extent>, Fault> {
    let numbers: Option<Vec<usize>> = sizes.iter().map(|&size| usize::try_from(size).ok()).collect();
    let sizes = numbers.filter(|sizes| sizes.len() == axes.len());
    let sizes = sizes.ok_or_else(|| Fault::operands(format!("sizes must be {} extents", axes.len())))?;
    let extents: Vec<usize> = axes.iter().map(|&axis| shape[axis]).collect();
    if extents.contains(&0) {
        return Err(Fault::operands(format!("a tensor of the shape {shape:?} has nothing to interpolate")));
    }
    let scales = sizes.iter().zip(&extents).map(|(&size, &extent)| size as f32 / extent as f32);
    let common = match policy {
        "stretch" => None,
        "not_larger" => scales.clone().reduce(f32::min),
        "not_smaller" => scales.clone().reduce(f32::max),
        other => {
            let message = format!("attribute `keep_aspect_ratio_policy` is {other}, which isn't known");
            return Err(Fault::variant(message));
        }
    };
    let extent = |((&axis, &extent), (&size, scale)): ((&usize, &usize), (&usize, f32))| match common {
        None => Extent { axis, size, scale },
        // Halves are rounded up.
        Some(scale) => Extent { axis, size: (scale * extent as f32 + 0.5).floor() as usize, scale },
    };
    Ok(axes.iter().zip(&extents).zip(sizes.iter().zip(scales)).map(extent).collect())
}

/// The versions before 11: coordinates are divided by the scale, nearest rounds down.
fn simple(call: &mut Call<'_, '_>, scales: Option<Vec<f64>>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let scales = scales.ok_or_else(|| Fault::operands("the scales are missing"))?;
    let mode = match call.word("mode")?.unwrap_or("nearest") {
        "nearest" => Mode::Nearest(Rounding::Floor),
        "linear" | "bilinear" => Mode::Linear,
        other => return Err(Fault::variant(format!("attribute `mode` is {other}, which isn't known"))),
    };
    let shape = call.shape(x);
    let axes: Vec<usize> = (0..shape.len()).collect();
    let axes = scaled(&shape, &axes, &scales)?.into_iter().map(|Extent { axis, size, scale }| {
        let transform = Transform::Asymmetric;
        let entry =
            Axis { extent: shape[axis], size, scale, transform, mode, exclude_outside: false, antialias: false };
        (axis, entry)
    });
    let axes: Vec<(usize, Axis)> = axes.collect();
    // When the axis shrinks, the standard doesn't say how to round, and implementations differ.
    let undefined = |axis: &Axis| {
        let fractional = |output| axis.coordinate(output).fract() != 0.0;
        mode != Mode::Linear && axis.scale < 1.0 && (0..axis.size).any(fractional)
    };
    if axes.iter().any(|(_, axis)| undefined(axis)) {
        return Err(Fault::variant(
            "which elements are the nearest isn't defined before opset 11 when an axis shrinks",
        )
        .with_help("export the model with opset 11 or later"));
    }
    interpolate(call, x, &axes, 0.0)
}

fn upsample(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let scales = match call.version() {
        ..7 => {
            let (rows, columns) = (call.float("height_scale")?, call.float("width_scale")?);
            let (rows, columns) = (call.required("height_scale", rows)?, call.required("width_scale", columns)?);
            Some(vec![1.0, 1.0, rows, columns])
        }
        7..9 => call.floats("scales")?,
        _ => call.constant_floats(1, "scales")?,
    };
    simple(call, scales)
}

fn interpolate(call: &mut Call<'_, '_>, x: Value, axes: &[(usize, Axis)], extrapolation: f64) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let result: Vec<usize> = (0..shape.len())
        .map(|axis| axes.iter().find(|(own, _)| *own == axis).map_or(shape[axis], |(_, axis)| axis.size))
        .collect();
    if result.contains(&0) || shape.contains(&0) {
        return Err(Fault::operands(format!("{shape:?} to {result:?} leaves nothing to interpolate")));
    }
    let mut parts = Vec::new();
    for &(axis, ref entry) in axes {
        let interpolation = entry.interpolation()?;
        let unchanged = interpolation.rows.len() == shape[axis]
            && interpolation.rows.iter().enumerate().all(|(place, row)| row[..] == [(place, 1.0)])
            && !interpolation.outside.contains(&true);
        if !unchanged {
            parts.push((axis, *entry, interpolation));
        }
    }
    if parts.is_empty() {
        return Ok(x);
    }
    if let Some(resize) = plain(&parts) {
        return Ok(call.builder.apply_channels_last(resize, x)?);
    }
    // Weights need more digits than half precision has.
    let dtype = call.dtype_of(x);
    let wide = if matches!(dtype, DType::F16 | DType::Bf16) { DType::F32 } else { dtype };
    let mut y = call.builder.cast(x, wide)?;
    let mut marks = vec![Vec::new(); shape.len()];
    for (axis, _, Interpolation { rows, outside }) in parts {
        y = call.builder.interpolate_axis(y, axis, &rows)?;
        marks[axis] = outside;
    }
    let y = call.builder.fill_marked(y, &marks, extrapolation)?;
    Ok(call.builder.cast(y, dtype)?)
}

/// The IR's operator that combines the same elements of spatial axes, if there is one.
fn plain(parts: &[(usize, Axis, Interpolation)]) -> Option<Resize> {
    if parts.iter().any(|&(axis, ..)| axis < 2) {
        return None;
    }
    let mut parts: Vec<_> = parts.iter().collect();
    parts.sort_unstable_by_key(|(axis, ..)| *axis);
    let mode = match parts.first()?.1.mode {
        Mode::Nearest(_) => ResizeMode::Nearest,
        Mode::Linear => ResizeMode::Linear,
        Mode::Cubic(-0.75) => ResizeMode::Cubic,
        Mode::Cubic(_) => return None,
    };
    let candidates = ResizeCoordinates::ALL.iter().map(|&coordinates| Resize {
        // Channels-last, the first spatial axis is number 1.
        axes: parts.iter().map(|(axis, ..)| axis - 1).collect(),
        sizes: parts.iter().map(|(_, axis, _)| axis.size).collect(),
        ratios: parts.iter().map(|(_, axis, _)| Float(f64::from(1.0 / axis.scale))).collect(),
        mode,
        coordinates,
    });
    let mut fitting = candidates.filter(|resize| parts.iter().all(|part| agrees(resize, part)));
    fitting.next()
}

/// Whether the IR's operator combines the same elements along an axis.
fn agrees(resize: &Resize, (number, axis, interpolation): &(usize, Axis, Interpolation)) -> bool {
    if axis.exclude_outside || axis.antialias || interpolation.outside.contains(&true) {
        return false;
    }
    if resize.mode == ResizeMode::Nearest {
        let taps = resize.taps(number - 1, axis.extent);
        return taps.iter().zip(&interpolation.rows).all(|(taps, row)| taps[0].0 == row[0].0);
    }
    let whole = axis.extent as f32 * axis.scale == axis.size as f32;
    match axis.transform {
        Transform::PytorchHalfPixel if axis.size == 1 => false,
        Transform::HalfPixelSymmetric if !whole => false,
        Transform::HalfPixel | Transform::PytorchHalfPixel | Transform::HalfPixelSymmetric => {
            resize.coordinates == ResizeCoordinates::HalfPixel
        }
        Transform::Asymmetric => resize.coordinates == ResizeCoordinates::Asymmetric,
        Transform::AlignCorners => whole && resize.coordinates == ResizeCoordinates::AlignCorners,
        Transform::Crop(..) => false,
    }
}
