//! Interpolation, and what rearranges channels into space.

use super::call::{Call, Operands, Table};
use super::format::Pnnx;
use super::item::Item;
use super::positional::flag_at;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::Rows;
use mlc_ir::ops::{PoolFunction, Resize, ResizeCoordinates, ResizeMode};
use mlc_ir::{Float, Value};

pub(super) const OPERATORS: Table = &[
    ("F.interpolate", One(|call| named_mode(call, "nearest"))),
    ("F.pixel_shuffle", One(pixel_shuffle)),
    ("F.pixel_unshuffle", One(pixel_unshuffle)),
    ("F.upsample", One(|call| named_mode(call, "nearest"))),
    ("F.upsample_bilinear", One(|call| resize(call, "bilinear", true))),
    ("F.upsample_nearest", One(|call| resize(call, "nearest", false))),
    ("aten::_upsample_bicubic2d_aa", One(|call| positional_antialiased(call, CUBIC))),
    ("aten::_upsample_bilinear2d_aa", One(|call| positional_antialiased(call, TRIANGLE))),
    ("aten::channel_shuffle", One(positional_channel_shuffle)),
    ("nn.ChannelShuffle", One(module_channel_shuffle)),
    ("nn.PixelShuffle", One(pixel_shuffle)),
    ("nn.PixelUnshuffle", One(pixel_unshuffle)),
    ("nn.Upsample", One(|call| named_mode(call, "nearest"))),
    ("nn.UpsamplingBilinear2d", One(|call| resize(call, "bilinear", true))),
    ("nn.UpsamplingNearest2d", One(|call| resize(call, "nearest", false))),
];

fn named_mode(call: &mut Call<'_, '_>, default: &str) -> Result<Value, Fault> {
    let mode = call.word("mode")?.unwrap_or_else(|| default.to_owned());
    let align_corners = call.flag_or("align_corners", false)?;
    if call.flag_or("antialias", false)? {
        let x = call.x()?;
        let shape = call.shape(x);
        let filter = match mode.as_str() {
            "bilinear" if !align_corners && shape.len() == 4 => TRIANGLE,
            "bicubic" if !align_corners && shape.len() == 4 => CUBIC,
            _ => return Err(Fault::variant(format!("antialiased {mode} interpolation isn't supported here"))),
        };
        let (sizes, ratios) = sizes(call, &shape[2..])?;
        return antialiased(call, x, &sizes, &ratios, filter);
    }
    resize(call, &mode, align_corners)
}

/// New extents, and input elements per output element.
fn sizes(call: &mut Call<'_, '_>, extents: &[usize]) -> Result<(Vec<usize>, Vec<f64>), Fault> {
    let axes = extents.len();
    let ratios_of = |sizes: &[usize]| {
        extents.iter().zip(sizes).map(|(&extent, &size)| f64::from(extent as f32 / size as f32)).collect()
    };
    let recompute = call.flag_or("recompute_scale_factor", false)?;
    if let Some(size) = call.argument("size") {
        let size = size.ints().ok_or_else(|| Fault::parameter("parameter `size` must be whole numbers"))?;
        let sizes = mlc_import::counts::<Pnnx>("size", &size, axes)?;
        let ratios = ratios_of(&sizes);
        call.ignore(&["scale_factor"]);
        return Ok((sizes, ratios));
    }
    let factors = call.floats("scale_factor")?;
    let factors = call.required("size` or `scale_factor", factors)?;
    let factors = if factors.len() == 1 { vec![factors[0]; axes] } else { factors };
    if factors.len() != axes || factors.iter().any(|&factor| !factor.is_finite() || factor <= 0.0) {
        return Err(Fault::parameter(format!("parameter `scale_factor` must have {axes} positive numbers")));
    }
    let sizes: Vec<usize> =
        extents.iter().zip(&factors).map(|(&extent, factor)| (extent as f64 * factor).floor() as usize).collect();
    let ratios = if recompute {
        ratios_of(&sizes)
    } else {
        factors.iter().map(|factor| f64::from((1.0 / factor) as f32)).collect()
    };
    Ok((sizes, ratios))
}

fn resize(call: &mut Call<'_, '_>, mode: &str, align_corners: bool) -> Result<Value, Fault> {
    let x = call.x()?;
    let shape = call.shape(x);
    if shape.len() < 3 {
        return Err(Fault::operands(format!("the input {} has no spatial axes", call.builder.ty(x))));
    }
    let (sizes, mut ratios) = sizes(call, &shape[2..])?;
    if sizes.contains(&0) {
        return Err(Fault::parameter(format!("the result would have the extents {sizes:?}")));
    }
    if mode == "nearest" && sizes.len() == 2 {
        // PyTorch doesn't look at an image's scale factors where its extent stays or doubles.
        for (axis, ratio) in ratios.iter_mut().enumerate() {
            match shape[2 + axis] {
                extent if sizes[axis] == extent => *ratio = 1.0,
                extent if sizes[axis] == 2 * extent => *ratio = 0.5,
                _ => {}
            }
        }
    }
    if mode == "area" {
        return Ok(call.builder.adaptive_pool(x, PoolFunction::Mean, &sizes)?);
    }
    if sizes[..] == shape[2..] && ratios.iter().all(|&ratio| ratio == 1.0) {
        return Ok(x);
    }
    let smooth = if align_corners { ResizeCoordinates::AlignCorners } else { ResizeCoordinates::HalfPixel };
    let (mode, coordinates) = match mode {
        "nearest" => (ResizeMode::Nearest, ResizeCoordinates::Asymmetric),
        "nearest-exact" => (ResizeMode::Nearest, ResizeCoordinates::HalfPixel),
        "linear" | "bilinear" | "trilinear" => (ResizeMode::Linear, smooth),
        "bicubic" => (ResizeMode::Cubic, smooth),
        _ => return Err(Fault::variant(format!("there is no interpolation mode {mode}"))),
    };
    // Channels-last, as the IR's other spatial operators are.
    let axes = (1..shape.len() - 1).collect();
    let ratios = ratios.into_iter().map(Float).collect();
    Ok(call.builder.apply_channels_last(Resize { axes, sizes, ratios, mode, coordinates }, x)?)
}

/// What antialiased interpolation weights elements with.
#[derive(Clone, Copy)]
struct Filter {
    /// The distance from which weights are zero, in elements of the smaller side.
    reach: f64,
    /// The weight at a distance.
    weight: fn(f64) -> f64,
}

const TRIANGLE: Filter = Filter { reach: 1.0, weight: |distance| (1.0 - distance).max(0.0) };

/// Cubic convolution with a = -0.5.
const CUBIC: Filter = Filter {
    reach: 2.0,
    weight: |distance| match distance {
        near if near < 1.0 => (1.5 * near - 2.5) * near * near + 1.0,
        far if far < 2.0 => ((-0.5 * far + 2.5) * far - 4.0) * far + 2.0,
        _ => 0.0,
    },
};

/// `(x, size, align_corners, scale_h, scale_w)`, or `(x, size, align_corners, scales)`; either size or scales may be None.
fn positional_antialiased(call: &mut Call<'_, '_>, filter: Filter) -> Result<Value, Fault> {
    let x = call.x()?;
    if flag_at(call, "align_corners", 2, false)? {
        return Err(Fault::variant("antialiased interpolation with aligned corners isn't supported"));
    }
    let shape = call.shape(x);
    if shape.len() != 4 {
        return Err(Fault::operands(format!("the input {} must have four axes", call.builder.ty(x))));
    }
    let scales = match call.labelled("scale", 3) {
        Some(Item::List(items)) => [items.first().and_then(Item::float), items.get(1).and_then(Item::float)],
        first => [first.and_then(|item| item.float()), call.labelled("scale", 4).and_then(|item| item.float())],
    };
    let scales = scales.map(|scale| scale.filter(|&scale| scale > 0.0 && scale.is_finite()));
    let sizes = match (call.labelled("output_size", 1), scales) {
        (Some(size), _) => {
            let size = size.ints().ok_or_else(|| Fault::parameter("`output_size` must be whole numbers"))?;
            mlc_import::counts::<Pnnx>("output_size", &size, 2)?
        }
        (None, [Some(rows), Some(columns)]) => {
            vec![(shape[2] as f64 * rows).floor() as usize, (shape[3] as f64 * columns).floor() as usize]
        }
        _ => return Err(Fault::operands("either `output_size` or two scales must be given")),
    };
    let ratio = |axis: usize| scales[axis].map_or(shape[2 + axis] as f64 / sizes[axis] as f64, |scale| 1.0 / scale);
    antialiased(call, x, &sizes, &[ratio(0), ratio(1)], filter)
}

/// Means weighted by a filter that is as wide as the output's elements are in the input.
fn antialiased(
    call: &mut Call<'_, '_>,
    x: Value,
    sizes: &[usize],
    ratios: &[f64],
    filter: Filter,
) -> Result<Value, Fault> {
    let shape = call.shape(x);
    if sizes.contains(&0) || shape.contains(&0) {
        return Err(Fault::parameter(format!("the result would have the extents {sizes:?}")));
    }
    let dtype = call.builder.dtype(x);
    if !dtype.is_float() {
        return Err(Fault::operands(format!("antialiased interpolation isn't defined for {dtype}")));
    }
    let columns = weighted_rows(shape[3], sizes[1], ratios[1], filter)?;
    let x = call.builder.interpolate_axis(x, 3, &columns)?;
    let rows = weighted_rows(shape[2], sizes[0], ratios[0], filter)?;
    Ok(call.builder.interpolate_axis(x, 2, &rows)?)
}

/// Weights of one axis.
fn weighted_rows(extent: usize, size: usize, ratio: f64, filter: Filter) -> Result<Rows, Fault> {
    if extent.saturating_mul(size) > 1 << 24 {
        return Err(Fault::variant(format!("antialiased interpolation of {extent} to {size} elements is too large")));
    }
    let scale = ratio.max(1.0);
    let width = scale * filter.reach;
    let row = |output: usize| {
        let center = ratio * (output as f64 + 0.5);
        let first = (center - width + 0.5).max(0.0) as usize;
        let end = ((center + width + 0.5).max(0.0) as usize).min(extent);
        let weight = |input: usize| (filter.weight)((input as f64 - center + 0.5).abs() / scale);
        let total: f64 = (first..end).map(weight).sum();
        (first..end).filter(|_| total > 0.0).map(|input| (input, weight(input) / total)).collect()
    };
    Ok((0..size).map(row).collect())
}

fn factor(call: &mut Call<'_, '_>, key: &str) -> Result<usize, Fault> {
    let factor = call.int(key)?;
    let factor = call.required(key, factor)?;
    let factor = usize::try_from(factor).ok().filter(|&factor| factor > 0 && factor < 1 << 16);
    factor.ok_or_else(|| Fault::parameter(format!("parameter `{key}` must be positive")))
}

/// The last three axes of a shape, and what comes before.
fn image(call: &Call<'_, '_>, x: Value) -> Result<(Vec<usize>, [usize; 3]), Fault> {
    let shape = call.shape(x);
    match shape[..] {
        [ref outer @ .., channels, rows, columns] => Ok((outer.to_vec(), [channels, rows, columns])),
        _ => Err(Fault::operands(format!("the input {} must have channels, rows and columns", call.builder.ty(x)))),
    }
}

/// Splits axes, permutes the inner ones, and merges.
fn rearrange(
    call: &mut Call<'_, '_>,
    x: Value,
    outer: &[usize],
    split: &[usize],
    order: &[usize],
    merged: &[usize],
) -> Result<Value, Fault> {
    let with_outer = |inner: &[usize]| outer.iter().chain(inner).copied().collect::<Vec<usize>>();
    let x = call.builder.reshape(x, &with_outer(split))?;
    let permutation: Vec<usize> = (0..outer.len()).chain(order.iter().map(|axis| axis + outer.len())).collect();
    let x = call.builder.transpose(x, &permutation)?;
    Ok(call.builder.reshape(x, &with_outer(merged))?)
}

fn pixel_shuffle(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let r = factor(call, "upscale_factor")?;
    let (outer, [channels, rows, columns]) = image(call, x)?;
    if !channels.is_multiple_of(r * r) {
        return Err(Fault::operands(format!("{channels} channels don't split into {r} x {r} pixels")));
    }
    let c = channels / (r * r);
    rearrange(call, x, &outer, &[c, r, r, rows, columns], &[0, 3, 1, 4, 2], &[c, rows * r, columns * r])
}

fn pixel_unshuffle(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let r = factor(call, "downscale_factor")?;
    let (outer, [c, rows, columns]) = image(call, x)?;
    if !rows.is_multiple_of(r) || !columns.is_multiple_of(r) {
        return Err(Fault::operands(format!("{rows} x {columns} pixels don't split into {r} x {r} blocks")));
    }
    let (h, w) = (rows / r, columns / r);
    rearrange(call, x, &outer, &[c, h, r, w, r], &[0, 2, 4, 1, 3], &[c * r * r, h, w])
}

fn module_channel_shuffle(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let groups = factor(call, "groups")?;
    channel_shuffle(call, groups)
}

/// `aten::channel_shuffle (x, groups)`
fn positional_channel_shuffle(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let groups = call.labelled_item("groups", 1)?.int().and_then(|groups| usize::try_from(groups).ok());
    let groups = groups.filter(|&groups| groups > 0);
    let groups = groups.ok_or_else(|| Fault::operands("operand `groups` must be a positive whole number"))?;
    channel_shuffle(call, groups)
}

fn channel_shuffle(call: &mut Call<'_, '_>, groups: usize) -> Result<Value, Fault> {
    let x = call.x()?;
    let shape = call.shape(x);
    if shape.len() < 3 || !shape[1].is_multiple_of(groups) {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("the channels of the input {ty} don't split into {groups} groups")));
    }
    let inner: usize = shape[2..].iter().product();
    let split = [groups, shape[1] / groups, inner];
    let shuffled = rearrange(call, x, &shape[..1], &split, &[1, 0, 2], &[shape[1], inner])?;
    Ok(call.builder.reshape(shuffled, &shape)?)
}
