//! Interpolation.

use super::call::{Arguments, Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{Resize, ResizeCoordinates, ResizeMode};
use mlc_ir::{Float, Value};

pub(super) const OPERATORS: Table = &[("image.resize2d", One(resize2d)), ("nn.upsampling", One(upsampling))];

/// The axes H and W of a layout.
fn spatial_axes(call: &Call<'_, '_>, x: Value, layout: &str) -> Result<[usize; 2], Fault> {
    match (layout.find('H'), layout.find('W')) {
        (Some(h), Some(w)) if h < w && layout.len() == call.builder.rank(x) => Ok([h, w]),
        _ => Err(Fault::variant(format!("the layout {layout} isn't supported for {}", call.builder.ty(x)))),
    }
}

/// How a size attribute's value and the words of the others make an interpolation.
fn resized(
    call: &mut Call<'_, '_>,
    x: Value,
    (axes, sizes): ([usize; 2], Vec<usize>),
    (method, transform): (&str, &str),
) -> Result<Value, Fault> {
    let mode = match method {
        "nearest_neighbor" => ResizeMode::Nearest,
        "linear" | "bilinear" => ResizeMode::Linear,
        "cubic" | "bicubic" => ResizeMode::Cubic,
        other => return Err(Fault::variant(format!("attribute `method` is {other:?}, which isn't known"))),
    };
    let coordinates = match transform {
        "half_pixel" => ResizeCoordinates::HalfPixel,
        "asymmetric" => ResizeCoordinates::Asymmetric,
        "align_corners" => ResizeCoordinates::AlignCorners,
        other => {
            let message = format!("attribute `coordinate_transformation_mode` is {other:?}, which isn't supported");
            return Err(Fault::variant(message));
        }
    };
    let shape = call.shape(x);
    if sizes.contains(&0) {
        return Err(Fault::parameter(format!("the new extents {sizes:?} must be positive")));
    }
    let ratio = |(&axis, &size): (&usize, &usize)| Float(f64::from(shape[axis] as f32 / size as f32));
    let ratios = axes.iter().zip(&sizes).map(ratio).collect();
    Ok(call.builder.apply(Resize { axes: axes.to_vec(), sizes, ratios, mode, coordinates }, &[x])?)
}

fn resize2d(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let layout = call.word_or("layout", "NCHW")?;
    let method = call.word_or("method", "linear")?;
    let transform = call.word_or("coordinate_transformation_mode", "half_pixel")?;
    let rounding = call.word_or("rounding_method", "round")?;
    let cubic = call.float_or("cubic_alpha", -0.5)?;
    let exclude = call.int_or("cubic_exclude", 0)?;
    call.ignore(&["roi", "extrapolation_value"]);
    let out_dtype = call.dtype("out_dtype")?;
    let nearest = method == "nearest_neighbor";
    let supported = match (transform, rounding) {
        // The nearest element rounds down after half a step, or before it.
        ("half_pixel", "round" | "") | ("asymmetric", "floor") => true,
        _ => !nearest,
    };
    if !supported {
        let message = format!("the nearest element by {transform:?} with rounding {rounding:?} isn't supported");
        return Err(Fault::variant(message));
    }
    if method == "cubic" && (cubic != -0.75 || exclude != 0) {
        return Err(Fault::variant(format!("cubic interpolation with `cubic_alpha` {cubic}; only -0.75 is supported")));
    }
    let axes = spatial_axes(call, x, layout)?;
    let sizes = call.counts("size", 2, 0)?;
    let y = resized(call, x, (axes, sizes), (method, transform))?;
    match out_dtype {
        Some(dtype) => Ok(call.builder.cast(y, dtype)?),
        None => Ok(y),
    }
}

/// By factors; linear with half pixels, unless the corners are aligned.
fn upsampling(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (height, width) = (call.float_or("scale_h", 1.0)?, call.float_or("scale_w", 1.0)?);
    let layout = call.word_or("layout", "NCHW")?;
    let method = call.word_or("method", "nearest_neighbor")?;
    let aligned = call.flag_or("align_corners", false)?;
    let axes = spatial_axes(call, x, layout)?;
    let shape = call.shape(x);
    let sizes = axes.iter().zip([height, width]).map(|(&axis, scale)| {
        let size = (shape[axis] as f64 * scale).round();
        if (1.0..1e9).contains(&size) {
            Ok(size as usize)
        } else {
            Err(Fault::parameter(format!("an axis can't be scaled by {scale}")))
        }
    });
    let sizes = sizes.collect::<Result<Vec<usize>, Fault>>()?;
    let transform = match (method, aligned) {
        (_, true) => "align_corners",
        ("nearest_neighbor", false) => "asymmetric",
        _ => "half_pixel",
    };
    resized(call, x, (axes, sizes), (method, transform))
}
