//! Pools: largest element, mean, power mean; with windows of fixed extent or adapted to the extent of the result.

use super::arithmetic::unary;
use super::call::{Call, Operands, Table};
use super::convolution::{batched, unbatched};
use super::format::Pnnx;
use super::item::Item;
use super::positional::{flag_at, int_at};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::builder::{PoolWindow, ceil_mode_pads, positions};
use mlc_import::counts;
use mlc_ir::ops::PoolFunction;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("F.adaptive_avg_pool1d", One(|call| adaptive_average(call, 1))),
    ("F.adaptive_avg_pool2d", One(|call| adaptive_average(call, 2))),
    ("F.adaptive_avg_pool3d", One(|call| adaptive_average(call, 3))),
    ("F.adaptive_max_pool1d", Many(|call| adaptive_maximum(call, 1))),
    ("F.adaptive_max_pool2d", Many(|call| adaptive_maximum(call, 2))),
    ("F.adaptive_max_pool3d", Many(|call| adaptive_maximum(call, 3))),
    ("F.avg_pool1d", One(|call| average(call, 1))),
    ("F.avg_pool2d", One(|call| average(call, 2))),
    ("F.avg_pool3d", One(|call| average(call, 3))),
    ("F.lp_pool1d", One(|call| power_mean(call, 1))),
    ("F.lp_pool2d", One(|call| power_mean(call, 2))),
    ("F.max_pool1d", Many(|call| maximum(call, 1))),
    ("F.max_pool2d", Many(|call| maximum(call, 2))),
    ("F.max_pool3d", Many(|call| maximum(call, 3))),
    ("aten::avg_pool2d", One(positional_average)),
    ("nn.AdaptiveAvgPool1d", One(|call| adaptive_average(call, 1))),
    ("nn.AdaptiveAvgPool2d", One(|call| adaptive_average(call, 2))),
    ("nn.AdaptiveAvgPool3d", One(|call| adaptive_average(call, 3))),
    ("nn.AdaptiveMaxPool1d", Many(|call| adaptive_maximum(call, 1))),
    ("nn.AdaptiveMaxPool2d", Many(|call| adaptive_maximum(call, 2))),
    ("nn.AdaptiveMaxPool3d", Many(|call| adaptive_maximum(call, 3))),
    ("nn.AvgPool1d", One(|call| average(call, 1))),
    ("nn.AvgPool2d", One(|call| average(call, 2))),
    ("nn.AvgPool3d", One(|call| average(call, 3))),
    ("nn.LPPool1d", One(|call| power_mean(call, 1))),
    ("nn.LPPool2d", One(|call| power_mean(call, 2))),
    ("nn.LPPool3d", One(|call| power_mean(call, 3))),
    ("nn.MaxPool1d", Many(|call| maximum(call, 1))),
    ("nn.MaxPool2d", Many(|call| maximum(call, 2))),
    ("nn.MaxPool3d", Many(|call| maximum(call, 3))),
];

/// The window that the parameters describe. In ceil mode the padding behind grows so that rounding down gives as many
/// positions.
struct Geometry {
    pool: PoolWindow,
    /// The pads as the parameters give them.
    own_pads: Vec<(usize, usize)>,
}

fn geometry(call: &mut Call<'_, '_>, x: Value, spatial: usize) -> Result<Geometry, Fault> {
    let window = call.ints("kernel_size")?;
    let window = counts::<Pnnx>("kernel_size", &call.required("kernel_size", window)?, spatial)?;
    let strides = match call.ints("stride")? {
        Some(strides) => counts::<Pnnx>("stride", &strides, spatial)?,
        None => window.clone(),
    };
    let pads = call.counts("padding", spatial, 0)?;
    let dilations = call.counts("dilation", spatial, 1)?;
    let ceil_mode = call.flag_or("ceil_mode", false)?;
    let extents = call.shape(x);
    window_geometry(window, strides, pads, dilations, ceil_mode, &extents[2..])
}

fn window_geometry(
    window: Vec<usize>,
    strides: Vec<usize>,
    pads: Vec<usize>,
    dilations: Vec<usize>,
    ceil_mode: bool,
    extents: &[usize],
) -> Result<Geometry, Fault> {
    if strides.contains(&0) || dilations.contains(&0) || window.contains(&0) {
        return Err(Fault::parameter("kernel_size, stride and dilation must be positive"));
    }
    let own_pads: Vec<(usize, usize)> = pads.iter().map(|&pad| (pad, pad)).collect();
    let mut pads = own_pads.clone();
    if ceil_mode {
        for (axis, pad) in pads.iter_mut().enumerate() {
            pad.1 = ceil_mode_pads(extents[axis], window[axis], strides[axis], dilations[axis], *pad)
                .ok_or_else(|| Fault::operands(format!("the window {window:?} doesn't fit into {extents:?}")))?;
        }
    }
    Ok(Geometry { pool: PoolWindow { window, strides, dilations, pads }, own_pads })
}

fn maximum(call: &mut Call<'_, '_>, spatial: usize) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let (x, added) = batched(call, x, spatial)?;
    let indices_wanted = call.flag_or("return_indices", false)? && indices_used(call);
    let Geometry { pool, .. } = geometry(call, x, spatial)?;
    let y = call.builder.max_pool(x, pool.clone())?;
    let mut results = vec![Item::Tensor(unbatched(call, y, added)?)];
    if indices_wanted {
        positions::check_size(&call.shape(y)[2..], &pool.window)?;
        let taps = positions::pool_taps(call.builder, x, y, &pool);
        let positions = positions::of_maxima(call.builder, x, &taps)?;
        results.push(Item::Tensor(unbatched(call, positions, added)?));
    } else {
        results.push(Item::None);
    }
    Ok(results)
}

/// Whether something takes the second result.
fn indices_used(call: &Call<'_, '_>) -> bool {
    call.used_results().get(1) == Some(&true)
}

fn average(call: &mut Call<'_, '_>, spatial: usize) -> Result<Value, Fault> {
    let x = call.x()?;
    let (x, added) = batched(call, x, spatial)?;
    let geometry = geometry(call, x, spatial)?;
    let count_pads = call.flag_or("count_include_pad", true)?;
    let divisor = call.int("divisor_override")?;
    let y = average_of(call, x, geometry, count_pads, divisor)?;
    unbatched(call, y, added)
}

fn average_of(
    call: &mut Call<'_, '_>,
    x: Value,
    geometry: Geometry,
    count_pads: bool,
    divisor: Option<i64>,
) -> Result<Value, Fault> {
    let Geometry { mut pool, own_pads } = geometry;
    let Some(divisor) = divisor else {
        let counted = if count_pads { own_pads } else { vec![(0, 0); own_pads.len()] };
        return Ok(call.builder.average_pool(x, pool, counted)?);
    };
    if divisor == 0 {
        return Err(Fault::parameter("parameter `divisor_override` must not be 0"));
    }
    // With padding done before and all of it counted, the pool divides by the whole window.
    let taps: f64 = pool.window.iter().map(|&taps| taps as f64).product();
    let pads = std::mem::replace(&mut pool.pads, vec![(0, 0); own_pads.len()]);
    let mut all = vec![(0, 0); 2];
    all.extend(pads.iter().map(|&(before, after)| (before as i64, after as i64)));
    let padded = call.builder.pad(x, &all, mlc_ir::ops::PadMode::Constant, 0.0)?;
    let zeros = vec![(0, 0); own_pads.len()];
    let mean = call.builder.average_pool(padded, pool, zeros)?;
    Ok(call.builder.binary_number(BinaryFunction::Multiply, mean, taps / divisor as f64)?)
}

/// `aten::avg_pool2d (x, kernel, stride, padding, ceil_mode, count_include_pad, divisor_override)`
fn positional_average(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (x, added) = batched(call, x, 2)?;
    let mut list = |label: &str, position: usize| -> Result<Option<Vec<usize>>, Fault> {
        let item = call.labelled(label, position).filter(|item| *item != Item::List(Vec::new()));
        item.map(|item| {
            let values = item.ints().ok_or_else(|| Fault::parameter(format!("`{label}` must be whole numbers")))?;
            counts::<Pnnx>(label, &values, 2)
        })
        .transpose()
    };
    let (window, strides, pads) = (list("kernel_size", 1)?, list("stride", 2)?, list("padding", 3)?);
    let window = call.required("kernel_size", window)?;
    let strides = strides.unwrap_or_else(|| window.clone());
    let ceil_mode = flag_at(call, "ceil_mode", 4, false)?;
    let count_pads = flag_at(call, "count_include_pad", 5, true)?;
    let divisor = int_at(call, "divisor_override", 6)?;
    let extents = call.shape(x);
    let pads = pads.unwrap_or_else(|| vec![0; 2]);
    let geometry = window_geometry(window, strides, pads, vec![1; 2], ceil_mode, &extents[2..])?;
    let y = average_of(call, x, geometry, count_pads, divisor)?;
    unbatched(call, y, added)
}

/// Extents of the result: 0 and None keep the input's.
fn adaptive_sizes(call: &mut Call<'_, '_>, x: Value, spatial: usize) -> Result<Vec<usize>, Fault> {
    let list = call.argument("output_size");
    let list = match call.required("output_size", list)? {
        Item::List(items) => items,
        single => vec![single; spatial],
    };
    let list: Option<Vec<i64>> =
        list.iter().map(|item| if *item == Item::None { Some(0) } else { item.int() }).collect();
    let list = list.ok_or_else(|| Fault::parameter("parameter `output_size` must be whole numbers"))?;
    let sizes = counts::<Pnnx>("output_size", &list, spatial)?;
    let shape = call.shape(x);
    Ok(sizes.iter().zip(&shape[2..]).map(|(&size, &extent)| if size == 0 { extent } else { size }).collect())
}

fn adaptive_average(call: &mut Call<'_, '_>, spatial: usize) -> Result<Value, Fault> {
    let x = call.x()?;
    let (x, added) = batched(call, x, spatial)?;
    let sizes = adaptive_sizes(call, x, spatial)?;
    let y = call.builder.adaptive_pool(x, PoolFunction::Mean, &sizes)?;
    unbatched(call, y, added)
}

fn adaptive_maximum(call: &mut Call<'_, '_>, spatial: usize) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let (x, added) = batched(call, x, spatial)?;
    let sizes = adaptive_sizes(call, x, spatial)?;
    let indices_wanted = call.flag_or("return_indices", false)? && indices_used(call);
    let y = call.builder.adaptive_pool(x, PoolFunction::Maximum, &sizes)?;
    let mut results = vec![Item::Tensor(unbatched(call, y, added)?)];
    if indices_wanted {
        positions::check_size(&sizes, &call.shape(x)[2..])?;
        let taps = positions::adaptive_taps(call.builder, x, &sizes);
        let positions = positions::of_maxima(call.builder, x, &taps)?;
        results.push(Item::Tensor(unbatched(call, positions, added)?));
    } else {
        results.push(Item::None);
    }
    Ok(results)
}

/// (sum over the window of x^p)^(1/p) by way of the mean a of x^p: (sign(a) * relu(|a|) * taps)^(1/p).
fn power_mean(call: &mut Call<'_, '_>, spatial: usize) -> Result<Value, Fault> {
    let x = call.x()?;
    let (x, added) = batched(call, x, spatial)?;
    let p = call.float("norm_type")?;
    let p = call.required("norm_type", p)?;
    if p == 0.0 || !p.is_finite() {
        return Err(Fault::parameter(format!("parameter `norm_type` must be a number other than 0, found {p}")));
    }
    let Geometry { pool, own_pads } = geometry(call, x, spatial)?;
    let taps: f64 = pool.window.iter().map(|&taps| taps as f64).product();
    let power = power(call, x, p)?;
    let mean = call.builder.average_pool(power, pool, own_pads)?;
    let sum = call.builder.binary_number(BinaryFunction::Multiply, mean, taps)?;
    // sign(a) * relu(|a|) is a itself, but for NaN and infinities, which stay what they are.
    let y = self::power(call, sum, 1.0 / p)?;
    unbatched(call, y, added)
}

fn power(call: &mut Call<'_, '_>, x: Value, p: f64) -> Result<Value, Fault> {
    if p == 1.0 {
        return Ok(x);
    }
    let dtype = call.builder.dtype(x);
    let x = Item::Tensor(call.builder.cast(x, if dtype.is_float() { dtype } else { DType::F32 })?);
    let y = match p {
        2.0 => unary(call.builder, UnaryFunction::Square, &x)?,
        0.5 => unary(call.builder, UnaryFunction::Sqrt, &x)?,
        _ => super::arithmetic::binary(call.builder, BinaryFunction::Power, &x, &Item::Float(p))?,
    };
    call.as_tensor("`result`", &y)
}
