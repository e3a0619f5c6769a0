//! Pools: largest element, mean, power mean.

use super::call::{Call, Item, Table};
use super::window::{AutoPad, pads, reach, spatial_list, spatial_rank, strides_and_dilations};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::builder::{PoolWindow, ceil_mode_pads, positions};
use mlc_ir::Value;
use mlc_ir::ops::{PoolFunction, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::types::row_major_strides;

pub(super) const OPERATORS: Table = &[
    ("AveragePool", 1, One(average)),
    ("GlobalAveragePool", 1, One(|call| global(call, PoolFunction::Mean))),
    ("GlobalLpPool", 1, One(global_power_mean)),
    ("GlobalMaxPool", 1, One(|call| global(call, PoolFunction::Maximum))),
    ("LpPool", 1, One(power_mean)),
    ("MaxPool", 1, Many(maximum)),
];

/// The window that the attributes describe. In ceil mode the padding behind is such that rounding down gives as many
/// positions.
struct Geometry {
    pool: PoolWindow,
    /// The part of the pads that is there without ceil mode.
    own_pads: Vec<(usize, usize)>,
}

fn geometry(call: &mut Call<'_, '_>, x: Value) -> Result<Geometry, Fault> {
    let spatial = spatial_rank(call, x)?;
    let window = spatial_list(call, "kernel_shape", spatial, 1)?;
    let window = call.required("kernel_shape", window)?;
    let (strides, dilations) = strides_and_dilations(call, spatial)?;
    let shape = call.shape(x);
    let extents = &shape[2..];
    let own_pads = pads(call, extents, &window, &strides, &dilations)?;
    let mut pads = own_pads.clone();
    if call.flag_or("ceil_mode", false)? {
        let auto_pad = AutoPad::read(call)?;
        for (axis, pad) in pads.iter_mut().enumerate() {
            let rounded_up = ceil_mode_pads(extents[axis], window[axis], strides[axis], dilations[axis], *pad)
                .ok_or_else(|| Fault::operands(format!("the window {window:?} doesn't fit into {extents:?}")))?;
            let positions = |after: usize| {
                let room = (extents[axis] + pad.0 + after).checked_sub(span(window[axis], dilations[axis]))?;
                Some(room / strides[axis])
            };
            // The standard's text has as many positions with as without ceil mode, implementations don't agree.
            if auto_pad == AutoPad::Valid && positions(rounded_up) != positions(pad.1) {
                return Err(Fault::variant("auto_pad VALID with ceil_mode isn't well defined here")
                    .with_help("give pads instead of auto_pad"));
            }
            if auto_pad == AutoPad::NotSet {
                pad.1 = rounded_up;
            }
        }
    }
    let own_pads = own_pads.iter().zip(&pads).map(|(own, pad)| (own.0, own.1.min(pad.1))).collect();
    Ok(Geometry { pool: PoolWindow { window, strides, dilations, pads }, own_pads })
}

/// Elements that a window spans along an axis; `usize::MAX` when that isn't a number.
fn span(taps: usize, dilation: usize) -> usize {
    reach(taps, dilation).unwrap_or(usize::MAX)
}

fn average(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    average_of(call, x)
}

/// The means of a value's windows.
pub(super) fn average_of(call: &mut Call<'_, '_>, x: Value) -> Result<Value, Fault> {
    let Geometry { pool, own_pads } = geometry(call, x)?;
    let counted = if call.flag_or("count_include_pad", false)? { own_pads } else { vec![(0, 0); own_pads.len()] };
    Ok(call.builder.average_pool(x, pool, counted)?)
}

fn maximum(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let column_major = call.flag_or("storage_order", false)?;
    let Geometry { pool, .. } = geometry(call, x)?;
    let y = call.builder.max_pool(x, pool.clone())?;
    let mut results = vec![Item::Tensor(y)];
    if call.wants(1) {
        results.push(Item::Tensor(flat_positions(call, x, y, &pool, column_major)?));
    }
    Ok(results)
}

/// Places of the largest elements in the flat tensor x.
fn flat_positions(
    call: &mut Call<'_, '_>,
    x: Value,
    y: Value,
    pool: &PoolWindow,
    column_major: bool,
) -> Result<Value, Fault> {
    let (extents, counts) = (call.shape(x), call.shape(y));
    positions::check_size(&counts[2..], &pool.window)?;
    positions::check_size(&extents[2..], &[])?;
    for (axis, &count) in counts[2..].iter().enumerate() {
        let range = pool.pads[axis].0..pool.pads[axis].0 + extents[axis + 2];
        let meets = |position: usize| {
            let place = |tap: usize| position * pool.strides[axis] + tap * pool.dilations[axis];
            (0..pool.window[axis]).any(|tap| range.contains(&place(tap)))
        };
        if !(0..count).all(meets) {
            return Err(Fault::variant("a window lies in the padding, where no element has a position"));
        }
    }
    let taps = positions::pool_taps(call.builder, x, y, pool);
    let mut places = positions::of_maxima(call.builder, x, &taps)?;
    if column_major {
        let table = column_major_places(&extents[2..]);
        let table = call.builder.indices(&[table.len()], &table)?;
        places = call.builder.gather(table, places, 0)?;
    }
    let plane: usize = extents[2..].iter().product();
    let planes = extents[0] * extents[1];
    let first: Vec<i64> = (0..planes).map(|number| (number * plane) as i64).collect();
    let mut shape = vec![extents[0], extents[1]];
    shape.resize(extents.len(), 1);
    let first = call.builder.indices(&shape, &first)?;
    Ok(call.builder.binary(BinaryFunction::Add, places, first)?)
}

/// For each element of a row-major plane, its place when the first axis runs fastest.
fn column_major_places(extents: &[usize]) -> Vec<i64> {
    let strides = row_major_strides(extents);
    let place = |element: usize| -> usize {
        let mut stride = 1;
        let along = |axis: usize| {
            let index = element / strides[axis] % extents[axis];
            let place = index * stride;
            stride *= extents[axis];
            place
        };
        (0..extents.len()).map(along).sum()
    };
    (0..extents.iter().product()).map(|element| place(element) as i64).collect()
}

fn global(call: &mut Call<'_, '_>, function: PoolFunction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let spatial = spatial_rank(call, x)?;
    Ok(call.builder.adaptive_pool(x, function, &vec![1; spatial])?)
}

/// The exponent, a float in the first version.
fn exponent(call: &mut Call<'_, '_>) -> Result<f64, Fault> {
    let p = if call.version() < 2 { call.float_or("p", 2.0)? } else { call.int_or("p", 2)? as f64 };
    if p > 0.0 && p.is_finite() {
        Ok(p)
    } else {
        Err(Fault::parameter(format!("attribute `p` must be positive, found {p}")))
    }
}

/// |x|^p
fn magnitude_power(call: &mut Call<'_, '_>, x: Value, p: f64) -> Result<Value, Fault> {
    if p == 2.0 {
        return Ok(call.builder.unary(UnaryFunction::Square, x)?);
    }
    let magnitude = call.builder.unary(UnaryFunction::Absolute, x)?;
    Ok(if p == 1.0 { magnitude } else { call.builder.binary_number(BinaryFunction::Power, magnitude, p)? })
}

/// x^(1/p) of positive numbers.
fn root(call: &mut Call<'_, '_>, x: Value, p: f64) -> Result<Value, Fault> {
    Ok(match p {
        1.0 => x,
        2.0 => call.builder.unary(UnaryFunction::Sqrt, x)?,
        _ => call.builder.binary_number(BinaryFunction::Power, x, 1.0 / p)?,
    })
}

/// (sum of |x|^p over the window)^(1/p), by way of the mean with all of the padding counted.
fn power_mean(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let p = exponent(call)?;
    let Geometry { pool, .. } = geometry(call, x)?;
    let taps: f64 = pool.window.iter().map(|&taps| taps as f64).product();
    let powers = magnitude_power(call, x, p)?;
    let counted = pool.pads.clone();
    let mean = call.builder.average_pool(powers, pool, counted)?;
    let sum = call.builder.binary_number(BinaryFunction::Multiply, mean, taps)?;
    root(call, sum, p)
}

fn global_power_mean(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let p = exponent(call)?;
    spatial_rank(call, x)?;
    let axes: Vec<usize> = (2..call.rank(x)).collect();
    let powers = magnitude_power(call, x, p)?;
    let sum = call.builder.apply(Reduce { function: ReduceFunction::Sum, axes, keep_axes: true }, &[powers])?;
    root(call, sum, p)
}
