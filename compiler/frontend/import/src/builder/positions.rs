//! Positions of the largest elements of pooling windows, in the flat plane of the input.
//!
//! Every window is laid out along one axis by gathering. Taps beyond the rim repeat the nearest tap inside, which changes
//! neither the maximum nor which element is the first of it.

use super::{Builder, PoolWindow};
use crate::fault::Fault;
use mlc_ir::ops::{ArgFunction, ArgReduce};
use mlc_ir::types::row_major_strides;
use mlc_ir::{OperatorError, Value};

/// For a spatial axis the coordinates that each window reads, all windows of one length.
pub type Taps = Vec<Vec<usize>>;

/// Windows whose positions take too much memory to lay out are refused before that.
pub fn check_size(windows: &[usize], taps: &[usize]) -> Result<(), Fault> {
    let total = windows.iter().chain(taps).try_fold(1usize, |product, &extent| product.checked_mul(extent));
    match total {
        Some(total) if total <= 1 << 24 => Ok(()),
        _ => Err(Fault::variant("the pool is too large for the positions of its largest elements")),
    }
}

/// What the windows of a pool read. `y` is the pool's result.
pub fn pool_taps(builder: &Builder, x: Value, y: Value, pool: &PoolWindow) -> Vec<Taps> {
    let (extents, counts) = (builder.shape(x), builder.shape(y));
    let spatial = 0..pool.window.len();
    spatial
        .map(|axis| {
            let extent = extents[axis + 2] as i64;
            let windows = (0..counts[axis + 2]).map(|window| {
                let start = (window * pool.strides[axis]) as i64 - pool.pads[axis].0 as i64;
                let taps = (0..pool.window[axis]).map(|tap| start + (tap * pool.dilations[axis]) as i64);
                let inside: Vec<i64> = taps.clone().filter(|place| (0..extent).contains(place)).collect();
                let (first, last) = (inside.first().copied().unwrap_or(0), inside.last().copied().unwrap_or(0));
                taps.map(|place| place.clamp(first, last) as usize).collect()
            });
            windows.collect()
        })
        .collect()
}

/// What the cells of an adaptive pool read; the last element of short cells occurs several times.
pub fn adaptive_taps(builder: &Builder, x: Value, sizes: &[usize]) -> Vec<Taps> {
    let extents = builder.shape(x);
    let axes = sizes.iter().zip(&extents[2..]);
    axes.map(|(&size, &extent)| {
        let cells: Vec<(usize, usize)> =
            (0..size).map(|cell| (cell * extent / size, ((cell + 1) * extent).div_ceil(size))).collect();
        let longest = cells.iter().map(|(start, end)| end - start).max().unwrap_or(0);
        cells.iter().map(|&(start, end)| (0..longest).map(|tap| (start + tap).min(end - 1)).collect()).collect()
    })
    .collect()
}

/// The positions, of the shape that the pool's result has.
pub fn of_maxima(builder: &mut Builder, x: Value, taps: &[Taps]) -> Result<Value, OperatorError> {
    let shape = builder.shape(x);
    let spatial = taps.len();
    let counts: Vec<usize> = taps.iter().map(Vec::len).collect();
    let lengths: Vec<usize> = taps.iter().map(|taps| taps.first().map_or(0, Vec::len)).collect();
    let windows: usize = counts.iter().product();
    let length: usize = lengths.iter().product();
    // [N, C, windows of axis 0, taps of axis 0, …], then all taps last.
    let mut laid_out = x;
    for (axis, taps) in taps.iter().enumerate() {
        let places: Vec<i64> = taps.iter().flatten().map(|&place| place as i64).collect();
        let places = builder.indices(&[counts[axis], lengths[axis]], &places)?;
        laid_out = builder.gather(laid_out, places, 2 + 2 * axis)?;
    }
    let order: Vec<usize> = [0, 1]
        .into_iter()
        .chain((0..spatial).map(|axis| 2 + 2 * axis))
        .chain((0..spatial).map(|axis| 3 + 2 * axis))
        .collect();
    let laid_out = builder.transpose(laid_out, &order)?;
    let laid_out = builder.reshape(laid_out, &[shape[0], shape[1], windows, length])?;
    let op = ArgReduce { function: ArgFunction::Maximum, axis: 3, keep_axis: false, last: false };
    let tap = builder.apply(op, &[laid_out])?;
    // A table of the plane's positions, by window and tap.
    let strides = row_major_strides(&shape[2..]);
    let mut table = Vec::with_capacity(windows * length);
    for window in 0..windows {
        for tap in 0..length {
            let (window, tap) = (coordinates(window, &counts), coordinates(tap, &lengths));
            let place = (0..spatial).map(|axis| taps[axis][window[axis]][tap[axis]] * strides[axis]);
            table.push(place.sum::<usize>() as i64);
        }
    }
    let table = builder.indices(&[windows * length], &table)?;
    let rows: Vec<i64> = (0..windows).map(|window| (window * length) as i64).collect();
    let rows = builder.indices(&[windows], &rows)?;
    let entry = builder.binary(mlc_ir::scalar::BinaryFunction::Add, tap, rows)?;
    let positions = builder.gather(table, entry, 0)?;
    let result: Vec<usize> = shape[..2].iter().chain(&counts).copied().collect();
    builder.reshape(positions, &result)
}

/// Coordinates of an element of a row-major tensor.
fn coordinates(mut index: usize, shape: &[usize]) -> Vec<usize> {
    let mut coordinates = vec![0; shape.len()];
    for (coordinate, &extent) in coordinates.iter_mut().zip(shape).rev() {
        (*coordinate, index) = (index % extent, index / extent);
    }
    coordinates
}
