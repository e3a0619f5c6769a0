//! Images of other sizes: every element is made of elements around a place of the image, which is known while the model is
//! imported.

use super::call::{Call, Parameters, Table};
use super::image::{Kind, as_floats, of_floats};
use super::padding::not_four_axes;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::Rows;
use mlc_ir::ops::{Resize, ResizeCoordinates, ResizeMode};
use mlc_ir::{Float, Value};

pub(super) const OPERATORS: Table = &[
    ("_nhwc_scale_resize2d", One(scale_rows_and_columns)),
    ("_resize2d", One(resize)),
    ("resize_nearest_neighbor", One(resize_nearest)),
    ("sample2d_v2", One(scale)),
];

fn resize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let kind = Kind::of(call.int_or("type", 0)?)?;
    let sizes = call.known_list(1, "the size", call.rank(x))?;
    resized(call, x, &sizes, kind)
}

/// By a factor for each axis, rounded down, as single precision has it.
fn scale(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let kind = Kind::of(call.int_or("type", 3)?)?;
    let factors = call.constant_floats(1, "the scale")?.unwrap_or_default();
    let shape = call.shape(x);
    if factors.len() != shape.len() {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("the scale {factors:?} doesn't fit {ty}")));
    }
    let size = |(&extent, &factor): (&usize, &f64)| (extent as f32 * factor as f32).floor() as i64;
    let sizes: Vec<i64> = shape.iter().zip(&factors).map(size).collect();
    resized(call, x, &sizes, kind)
}

fn resize_nearest(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let sizes = call.known_list(1, "the size", 2)?;
    let axis = call.required_plain_axis(x, "dim")?;
    call.int_or("align_corners", 0)?;
    resized_from(call, x, axis, &sizes, Kind::Nearest)
}

/// Columns and rows of an image [N, H, W, C]: both, or the shorter of them.
fn scale_rows_and_columns(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let &[_, rows, columns, _] = &call.shape(x)[..] else { return Err(not_four_axes(call, x)) };
    let size = call.required_ints("size")?;
    let kind = Kind::of(call.int_or("type", 0)?)?;
    let (rows, columns) = (rows as i64, columns as i64);
    let scaled = |longer: i64, short: i64, shorter: i64| longer.checked_mul(short)?.checked_div(shorter);
    let sizes = match size[..] {
        [width, height] => Some([height, width]),
        [short] if rows < columns => scaled(columns, short, rows).map(|width| [short, width]),
        [short] => scaled(rows, short, columns).map(|height| [height, short]),
        _ => None,
    };
    let sizes =
        sizes.ok_or_else(|| Fault::parameter(format!("parameter `size` is {size:?}, one or two numbers expected")))?;
    resized_from(call, x, 1, &sizes, kind)
}

/// Brings two axes, from one on, to sizes.
fn resized_from(call: &mut Call<'_, '_>, x: Value, axis: usize, sizes: &[i64], kind: Kind) -> Result<Value, Fault> {
    let mut all = vec![-1; call.rank(x)];
    let slots = all.get_mut(axis..axis + sizes.len());
    let slots = slots.ok_or_else(|| Fault::parameter(format!("there aren't {} axes from {axis} on", sizes.len())))?;
    slots.copy_from_slice(sizes);
    resized(call, x, &all, kind)
}

/// Brings at most two axes beside each other to other sizes.
fn resized(call: &mut Call<'_, '_>, x: Value, sizes: &[i64], kind: Kind) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let changes = |axis: &usize| sizes[*axis] != -1 && sizes[*axis] != shape[*axis] as i64;
    let axes: Vec<usize> = (0..shape.len()).filter(changes).collect();
    let is_size = |axis: &usize| (1..1 << 31).contains(&sizes[*axis]) && shape[*axis] > 0;
    let adjacent = match axes[..] {
        [] | [_] => true,
        [first, second] => second == first + 1,
        _ => false,
    };
    if !adjacent || !axes.iter().all(is_size) {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!(
            "{ty} can't be resized to {sizes:?}: two adjacent axes of positive sizes"
        )));
    }
    if axes.is_empty() {
        return Ok(x);
    }
    let wanted: Vec<usize> = axes.iter().map(|&axis| sizes[axis] as usize).collect();
    let floats = if kind.combines() { as_floats(call, x)? } else { x };
    let y = match kind {
        Kind::Cubic => {
            let mut y = floats;
            for (&axis, &size) in axes.iter().zip(&wanted) {
                let rows = cubic_rows(shape[axis], size)?;
                y = call.builder.interpolate_axis(y, axis, &rows)?;
            }
            y
        }
        Kind::Linear | Kind::Nearest | Kind::Hard => {
            let ratio = |(&axis, &size): (&usize, &usize)| Float(f64::from(shape[axis] as f32 / size as f32));
            let ratios = axes.iter().zip(&wanted).map(ratio).collect();
            let mode = if kind == Kind::Linear { ResizeMode::Linear } else { ResizeMode::Nearest };
            let coordinates =
                if kind == Kind::Hard { ResizeCoordinates::Asymmetric } else { ResizeCoordinates::HalfPixel };
            call.builder.apply(Resize { axes, sizes: wanted, ratios, mode, coordinates }, &[floats])?
        }
    };
    of_floats(call, y, x)
}

/// Most elements of an axis that is resized by a matrix.
const MOST_ROWS: usize = 1 << 20;

/// Four neighbours of each place by Keys' kernel with A = -0.75; near the rim the nearest place that has four is taken.
fn cubic_rows(extent: usize, size: usize) -> Result<Rows, Fault> {
    if extent < 4 || size > MOST_ROWS {
        return Err(Fault::operands(format!("cubic interpolation of {extent} to {size} elements isn't defined")));
    }
    let ratio = extent as f64 / size as f64;
    let row = |index: usize| {
        let place = (index as f64 + 0.5) * ratio - 0.5;
        let (first, part) = match place.floor() {
            first if first < 1.0 => (1, 0.0),
            first if first >= (extent - 3) as f64 => (extent - 3, 0.0),
            first => (first as usize, place - first),
        };
        keys(part).into_iter().enumerate().map(|(tap, weight)| (first - 1 + tap, weight)).collect()
    };
    Ok((0..size).map(row).collect())
}

/// Weights of the neighbours at -1, 0, 1 and 2 of a place behind 0.
fn keys(part: f64) -> [f64; 4] {
    const A: f64 = -0.75;
    let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    [far(part + 1.0), near(part), near(1.0 - part), far(2.0 - part)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubic_weights_sum_to_one_and_stay_inside() {
        for (extent, size) in [(4, 9), (7, 3), (12, 12)] {
            for row in cubic_rows(extent, size).unwrap() {
                assert!(row.iter().all(|&(place, _)| place < extent));
                assert!((row.iter().map(|(_, weight)| weight).sum::<f64>() - 1.0).abs() < 1e-12);
            }
        }
        assert_eq!(keys(0.0), [0.0, 1.0, 0.0, 0.0]);
        assert!(cubic_rows(3, 5).is_err());
    }
}
