//! Reading and writing where index tensors say, and tensors that are made of their own coordinates.

use super::call::{Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{PadMode, ScatterReduction};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::types::row_major_strides;
use mlc_ir::{DType, Literal, Value};

pub(super) const OPERATORS: Table = &[
    ("CenterCropPad", 18, One(center_crop_pad)),
    ("Col2Im", 18, One(columns_to_image)),
    ("EyeLike", 9, One(eye_like)),
    ("Gather", 1, One(gather)),
    ("GatherElements", 11, One(gather_elements)),
    ("GatherND", 11, One(gather_nd)),
    ("MaxUnpool", 9, One(max_unpool)),
    ("OneHot", 9, One(one_hot)),
    ("ReverseSequence", 10, One(reverse_sequence)),
    ("Scatter", 9, One(scatter_elements)),
    ("ScatterElements", 11, One(scatter_elements)),
    ("ScatterND", 11, One(scatter_nd)),
    ("TensorScatter", 24, One(tensor_scatter)),
    ("Trilu", 14, One(triangle)),
];

pub(super) const MACHINE_LEARNING: Table = &[("ArrayFeatureExtractor", 1, One(array_features))];

fn gather(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let axis = call.axis_or(x, "axis", 0)?;
    Ok(call.builder.gather(x, indices, axis)?)
}

fn gather_elements(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let axis = call.axis_or(x, "axis", 0)?;
    Ok(call.builder.gather_elements(x, indices, axis)?)
}

pub(super) fn gather_nd(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let batch_axes = usize::try_from(call.int_or("batch_dims", 0)?)
        .map_err(|_| Fault::parameter("attribute `batch_dims` must not be negative"))?;
    Ok(call.builder.gather_nd(x, indices, batch_axes)?)
}

/// Columns of x by a list of indices; a single row stays a matrix.
fn array_features(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let rank = call.rank(x);
    let last = rank.checked_sub(1).ok_or_else(|| Fault::operands("a number has no columns"))?;
    let count = call.builder.ty(indices).elements();
    let indices = call.builder.reshape(indices, &[count])?;
    let y = call.builder.gather(x, indices, last)?;
    Ok(if rank == 1 { call.builder.insert_axis(y, 0)? } else { y })
}

fn reduction(call: &mut Call<'_, '_>) -> Result<ScatterReduction, Fault> {
    match call.word("reduction")? {
        None | Some("none") => Ok(ScatterReduction::Replace),
        Some("add") => Ok(ScatterReduction::Sum),
        Some("mul") => Ok(ScatterReduction::Product),
        Some("max") => Ok(ScatterReduction::Maximum),
        Some("min") => Ok(ScatterReduction::Minimum),
        Some(other) => Err(Fault::parameter(format!("there is no reduction `{other}`"))),
    }
}

fn scatter_elements(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let axis = call.axis_or(x, "axis", 0)?;
    let reduction = reduction(call)?;
    if call.shape(indices) != call.shape(updates) {
        let (indices, updates) = (call.builder.ty(indices), call.builder.ty(updates));
        return Err(Fault::operands(format!("indices {indices} and updates {updates} must have one shape")));
    }
    Ok(call.builder.scatter(x, indices, updates, axis, reduction)?)
}

fn scatter_nd(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices, updates) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let reduction = reduction(call)?;
    Ok(call.builder.scatter_nd(x, indices, updates, reduction)?)
}

/// Writes a sequence into a cache, from a place on that each item of the batch has for itself.
fn tensor_scatter(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (cache, update) = (call.input(0)?, call.input(1)?);
    let starts = call.optional(2)?;
    let axis = call.axis_or(cache, "axis", -2)?;
    let circular = match call.word("mode")? {
        None | Some("linear") => false,
        Some("circular") => true,
        Some(other) => return Err(Fault::parameter(format!("there is no mode `{other}`"))),
    };
    let (shape, given) = (call.shape(cache), call.shape(update));
    if axis == 0 || given.len() != shape.len() {
        let (cache, update) = (call.builder.ty(cache), call.builder.ty(update));
        return Err(Fault::operands(format!("{update} can't be written into the cache {cache} along axis {axis}")));
    }
    let mut aligned = vec![1; shape.len()];
    aligned[axis] = given[axis];
    let steps = call.builder.counting(given[axis])?;
    let mut places = call.builder.reshape(steps, &aligned)?;
    if let Some(starts) = starts {
        let mut rows = vec![1; shape.len()];
        rows[0] = call.builder.ty(starts).elements();
        let starts = call.builder.cast(starts, DType::I64)?;
        let starts = call.builder.reshape(starts, &rows)?;
        places = call.builder.binary(B::Add, places, starts)?;
    }
    if circular {
        places = call.builder.binary_number(B::Modulo, places, shape[axis] as f64)?;
    }
    Ok(call.builder.scatter(cache, places, update, axis, ScatterReduction::Replace)?)
}

/// The operand of whole numbers, or of floats that stand for them.
fn whole(call: &mut Call<'_, '_>, x: Value) -> Result<Value, Fault> {
    Ok(if call.dtype_of(x).is_integer() { x } else { call.builder.cast(x, DType::I64)? })
}

fn one_hot(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (indices, values) = (call.input(0)?, call.input(2)?);
    let depth = call.constant_float(1, "the depth")?.filter(|depth| (0.0..=f64::from(1 << 26)).contains(depth));
    let depth = depth.ok_or_else(|| Fault::operands("the depth must be a number of places"))?;
    let rank = call.rank(indices) as i64;
    let axis = call.int_or("axis", -1)?;
    let place = if axis < 0 { axis + rank + 1 } else { axis };
    let place = usize::try_from(place).map_err(|_| Fault::parameter(format!("there is no place for axis {axis}")))?;
    let from_end = call.version() >= 11;
    let indices = whole(call, indices)?;
    let hot = call.builder.one_hot(indices, depth as usize, place, from_end)?;
    let (off, on) = (call.builder.pick(values, 0, 0)?, call.builder.pick(values, 0, 1)?);
    Ok(call.builder.select(hot, on, off)?)
}

fn triangle(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, diagonal) = (call.input(0)?, call.optional(1)?);
    let upper = call.flag_or("upper", true)?;
    let diagonal = match diagonal {
        Some(diagonal) => call.builder.cast(diagonal, DType::I64)?,
        None => call.builder.literal(Literal::integer(DType::I64, 0)),
    };
    Ok(call.builder.triangle(x, diagonal, !upper)?)
}

fn eye_like(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (diagonal, dtype) = (call.int_or("k", 0)?, call.dtype("dtype")?.unwrap_or(call.dtype_of(x)));
    let &[rows, columns] = &call.shape(x)[..] else {
        return Err(Fault::operands(format!("{} isn't a matrix", call.builder.ty(x))));
    };
    let mask = call.builder.diagonal_mask(rows, columns, diagonal)?;
    Ok(call.builder.cast(mask, dtype)?)
}

/// Reverses the first elements along the time axis, as many as each item of the batch says.
fn reverse_sequence(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, lengths) = (call.input(0)?, call.input(1)?);
    let (time, batch) = (call.int_or("time_axis", 0)?, call.int_or("batch_axis", 1)?);
    if !matches!((time, batch), (0, 1) | (1, 0)) {
        return Err(Fault::parameter(format!("time axis {time} and batch axis {batch} must be 0 and 1")));
    }
    Ok(call.builder.reverse_sequence(x, lengths, time as usize, batch as usize)?)
}

/// Extents of a constant operand or attribute.
fn extents(values: &[i64], what: &str) -> Result<Vec<usize>, Fault> {
    let extents: Option<Vec<usize>> = values.iter().map(|&value| usize::try_from(value).ok()).collect();
    extents.ok_or_else(|| Fault::parameter(format!("{what} must not be negative, found {values:?}")))
}

/// An attribute of one entry per spatial axis.
fn spatial(call: &mut Call<'_, '_>, key: &'static str, axes: usize, default: usize) -> Result<Vec<usize>, Fault> {
    let Some(values) = call.ints(key)? else { return Ok(vec![default; axes]) };
    if values.len() != axes {
        return Err(Fault::parameter(format!("attribute `{key}` must have {axes} numbers, found {}", values.len())));
    }
    extents(&values, key)
}

/// Pads before and after each spatial axis.
fn pads(call: &mut Call<'_, '_>, axes: usize) -> Result<Vec<(usize, usize)>, Fault> {
    let pads = spatial(call, "pads", 2 * axes, 0)?;
    Ok((0..axes).map(|axis| (pads[axis], pads[axis + axes])).collect())
}

fn max_unpool(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, places) = (call.input(0)?, call.input(1)?);
    let shape = call.shape(x);
    let axes = shape.len().checked_sub(2).filter(|&axes| axes > 0);
    let axes = axes.ok_or_else(|| Fault::operands(format!("{} has no spatial axes", call.builder.ty(x))))?;
    let given = call.constant_ints(2, "the shape of the result")?;
    let window = call.ints("kernel_shape")?;
    let window = extents(&call.required("kernel_shape", window)?, "kernel_shape")?;
    let (strides, pads) = (spatial(call, "strides", axes, 1)?, pads(call, axes)?);
    let extent = |axis: usize| {
        let steps = shape[axis + 2].checked_sub(1)?.checked_mul(strides[axis])?;
        steps.checked_add(*window.get(axis)?)?.checked_sub(pads[axis].0)?.checked_sub(pads[axis].1)
    };
    let plane: Option<Vec<usize>> = (0..axes).map(extent).collect();
    let plane = plane.ok_or_else(|| Fault::parameter("the result would have no extent"))?;
    let whole: Vec<usize> = shape[..2].iter().copied().chain(plane).collect();
    let y = call.builder.unpool(x, places, 0, &whole)?;
    let Some(given) = given else { return Ok(y) };
    if given.len() != whole.len() {
        return Err(Fault::operands(format!("the shape {given:?} of the result doesn't fit {whole:?}")));
    }
    let missing: Vec<(i64, i64)> =
        given.iter().zip(&whole).map(|(&given, &own)| (0, given.saturating_sub(own as i64))).collect();
    Ok(call.builder.pad(y, &missing, PadMode::Constant, 0.0)?)
}

/// Cuts or pads axes evenly on both sides; the odd element is that at the end.
fn center_crop_pad(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let wanted = call.constant_ints(1, "the shape of the result")?.unwrap_or_default();
    let wanted = extents(&wanted, "the shape of the result")?;
    let axes = match call.ints("axes")? {
        Some(axes) => axes.iter().map(|&axis| call.axis(x, axis)).collect::<Result<Vec<usize>, Fault>>()?,
        None => (0..call.rank(x)).collect(),
    };
    if axes.len() != wanted.len() {
        return Err(Fault::operands(format!("{} extents are given for {} axes", wanted.len(), axes.len())));
    }
    let mut pads = vec![(0i64, 0i64); call.rank(x)];
    for (&axis, &extent) in axes.iter().zip(&wanted) {
        let own = call.shape(x)[axis];
        let difference = extent.abs_diff(own) as i64;
        let (before, after) = (difference / 2, difference - difference / 2);
        pads[axis] = if extent > own { (before, after) } else { (-before, -after) };
    }
    Ok(call.builder.pad(x, &pads, PadMode::Constant, 0.0)?)
}

/// Most elements of the image that columns are added up in, and of their table of places.
const LARGEST_IMAGE: usize = 1 << 26;

/// Adds up blocks [N, C * block, L], which stand in columns, where they were taken from an image.
fn columns_to_image(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let image = call.constant_ints(1, "the image's shape")?.unwrap_or_default();
    let block = call.constant_ints(2, "the blocks' shape")?.unwrap_or_default();
    let (image, block) = (extents(&image, "the image's shape")?, extents(&block, "the blocks' shape")?);
    let axes = image.len();
    let (strides, dilations) = (spatial(call, "strides", axes, 1)?, spatial(call, "dilations", axes, 1)?);
    let pads = pads(call, axes)?;
    let shape = call.shape(x);
    let misfit = || Fault::operands(format!("columns {shape:?} don't fit the image {image:?} and blocks {block:?}"));
    let &[batch, rows, columns] = &shape[..] else { return Err(misfit()) };
    let taps = block.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent)).filter(|&taps| taps > 0);
    let taps = taps.filter(|taps| block.len() == axes && rows % taps == 0).ok_or_else(misfit)?;
    let padded: Vec<usize> = image.iter().zip(&pads).map(|(extent, pad)| extent + pad.0 + pad.1).collect();
    let volume = padded.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
    let volume = volume.filter(|&volume| volume <= LARGEST_IMAGE && taps.saturating_mul(columns) <= LARGEST_IMAGE);
    let volume = volume.ok_or_else(|| Fault::variant("the image is too large"))?;
    // How often a block fits along each axis.
    let count = |axis: usize| {
        let reach = (block[axis] - 1).checked_mul(dilations[axis])?.checked_add(1)?;
        padded[axis].checked_sub(reach)?.checked_div(strides[axis]).map(|steps| steps + 1)
    };
    let counts: Vec<usize> = (0..axes).map(count).collect::<Option<_>>().ok_or_else(misfit)?;
    if counts.iter().product::<usize>() != columns {
        return Err(misfit());
    }
    let (block_strides, count_strides) = (row_major_strides(&block), row_major_strides(&counts));
    let plane_strides = row_major_strides(&padded);
    let place = |tap: usize, column: usize| {
        let coordinate = |axis: usize| {
            let (step, tap) = (column / count_strides[axis] % counts[axis], tap / block_strides[axis] % block[axis]);
            (step * strides[axis] + tap * dilations[axis]) * plane_strides[axis]
        };
        (0..axes).map(coordinate).sum::<usize>() as i64
    };
    let place = &place;
    let places: Vec<i64> = (0..taps).flat_map(|tap| (0..columns).map(move |column| place(tap, column))).collect();
    let places = call.builder.indices(&[1, taps * columns], &places)?;
    let planes = batch * (rows / taps);
    let updates = call.builder.reshape(x, &[planes, taps * columns])?;
    let zero = call.builder.number(call.dtype_of(x), 0.0);
    let zeros = call.builder.broadcast(zero, &[planes, volume])?;
    let y = call.builder.scatter(zeros, places, updates, 1, ScatterReduction::Sum)?;
    let whole: Vec<usize> = [batch, rows / taps].into_iter().chain(padded).collect();
    let y = call.builder.reshape(y, &whole)?;
    let cut: Vec<(i64, i64)> =
        [(0, 0); 2].into_iter().chain(pads.iter().map(|pad| (-(pad.0 as i64), -(pad.1 as i64)))).collect();
    Ok(call.builder.pad(y, &cut, PadMode::Constant, 0.0)?)
}
