//! Padding and cropping.

use super::call::{Call, Parameters, Table};
use super::window::Pads;
use mlc_import::Handler::One;
use mlc_import::{Fault, check_filled};
use mlc_ir::Value;
use mlc_ir::ops::PadMode;

pub(super) const OPERATORS: Table = &[
    ("_limit", One(limit)),
    ("_nhwc_center_crop2d", One(center_crop)),
    ("batch_to_space4d", One(batch_to_space)),
    ("crop_nd", One(crop)),
    ("crop_to", One(crop_to)),
    ("divided", One(divided)),
    ("pad", One(pad)),
    ("space_to_batch4d", One(space_to_batch)),
];

/// Pads, or cuts off where the numbers are negative.
fn padded(call: &mut Call<'_, '_>, x: Value, pads: &[(i64, i64)], value: f64) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let fits = |(&(before, after), &extent): (&(i64, i64), &usize)| {
        let small = [before, after].iter().all(|pad| pad.unsigned_abs() < 1 << 31);
        small && before + after + extent as i64 > 0 && before > -(extent as i64) && after > -(extent as i64)
    };
    if pads.len() != shape.len() || !pads.iter().zip(&shape).all(fits) {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("the pads {pads:?} don't fit {ty}")));
    }
    let y = call.builder.pad(x, pads, PadMode::Constant, value)?;
    check_filled(&call.shape(y))?;
    Ok(y)
}

/// Pairs of numbers in an operand or a parameter [n, 2].
fn pairs(what: &str, shape: &[usize], numbers: &[i64]) -> Result<Vec<(i64, i64)>, Fault> {
    if shape.len() != 2 || shape[1] != 2 {
        return Err(Fault::operands(format!("{what} has the shape {shape:?}, pairs expected")));
    }
    Ok(numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

fn pad(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (shape, numbers) = call.whole_numbers(1, "the padding")?;
    let pads = pairs("the padding (operand 1)", &shape, &numbers)?;
    let value = call.float_or("padding_value", 0.0)?;
    padded(call, x, &pads, value)
}

/// Pads that bring an axis to an extent, the odd element behind.
fn centred(extent: usize, size: i64) -> (i64, i64) {
    let missing = size - extent as i64;
    (missing / 2, missing - missing / 2)
}

/// Brings axes to sizes: around their middle, or from a place on.
fn crop(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let shape = call.shape(x);
    let sizes = call.known_list(1, "the size", shape.len())?;
    // The exporter's own spelling of the parameter is another one.
    let key = if call.has("shift") { "shift" } else { "shfit" };
    let shifts = call.ints(key)?;
    if shifts.as_ref().is_some_and(|shifts| shifts.len() != shape.len()) {
        return Err(Fault::parameter(format!("parameter `{key}` must have {} numbers", shape.len())));
    }
    let pads = |axis: usize| match (&shifts, sizes[axis], shape[axis] as i64) {
        (_, size, _) if size <= 0 => (0, 0),
        (None, size, _) => centred(shape[axis], size),
        (Some(shifts), size, extent) => (shifts[axis].saturating_neg(), shifts[axis].saturating_add(size) - extent),
    };
    let pads: Vec<(i64, i64)> = (0..shape.len()).map(pads).collect();
    padded(call, x, &pads, 0.0)
}

/// Gives the axes from one on the extents of another tensor's.
fn crop_to(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    let axis = call.axis_or(x, "axis", 2)?;
    let (shape, wanted) = (call.shape(x), call.shape(y));
    let offsets = call.ints("offset")?.unwrap_or_else(|| vec![0]);
    let count = shape.len() - axis;
    if wanted.len() != shape.len() || ![1, count].contains(&offsets.len()) {
        let (x, y) = (call.builder.ty(x), call.builder.ty(y));
        return Err(Fault::parameter(format!("{x} can't be cropped to {y} by the offsets {offsets:?}")));
    }
    let mut cropped = x;
    for place in 0..count {
        let offset = offsets[place.min(offsets.len() - 1)];
        let start =
            usize::try_from(offset).map_err(|_| Fault::parameter(format!("the offset {offset} is negative")))?;
        cropped = call.builder.slice_axis(cropped, axis + place, start, wanted[axis + place], 1)?;
    }
    Ok(cropped)
}

/// Numbers for the last axes; the axes before them get a default.
fn aligned(call: &Call<'_, '_>, x: Value, numbers: &[i64], default: i64) -> Result<Vec<i64>, Fault> {
    let rank = call.rank(x);
    let before = rank.checked_sub(numbers.len()).ok_or_else(|| {
        let ty = call.builder.ty(x);
        Fault::parameter(format!("{numbers:?} has more numbers than {ty} has axes"))
    })?;
    Ok(std::iter::repeat_n(default, before).chain(numbers.iter().copied()).collect())
}

/// Crops axes that are too large around their middle.
fn limit(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let limits = call.required_ints("shape")?;
    let limits = aligned(call, x, &limits, -1)?;
    let pads = |(&most, &extent): (&i64, &usize)| match most > 0 && (extent as i64) > most {
        true => centred(extent, most),
        false => (0, 0),
    };
    let pads: Vec<(i64, i64)> = limits.iter().zip(&call.shape(x)).map(pads).collect();
    padded(call, x, &pads, 0.0)
}

/// Pads axes at the end to multiples.
fn divided(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let sizes = call.required_ints("size")?;
    let value = call.float_or("padding_value", 0.0)?;
    if sizes.iter().any(|&size| !(1..1 << 31).contains(&size)) {
        return Err(Fault::parameter(format!("parameter `size` is {sizes:?}, positive numbers expected")));
    }
    let sizes = aligned(call, x, &sizes, 1)?;
    let pads = |(&size, &extent): (&i64, &usize)| (0, (size - extent as i64 % size) % size);
    let pads: Vec<(i64, i64)> = sizes.iter().zip(&call.shape(x)).map(pads).collect();
    padded(call, x, &pads, value)
}

/// Brings the columns and rows of an image [N, H, W, C] to sizes, around its middle.
fn center_crop(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let &[_, rows, columns, _] = &call.shape(x)[..] else { return Err(not_four_axes(call, x)) };
    let size = call.required_list("size", 2)?;
    if size.iter().any(|&size| size < 1) {
        return Err(Fault::parameter(format!("parameter `size` is {size:?}, positive numbers expected")));
    }
    let pads = [(0, 0), centred(rows, size[1]), centred(columns, size[0]), (0, 0)];
    padded(call, x, &pads, 0.0)
}

pub(super) fn not_four_axes(call: &Call<'_, '_>, x: Value) -> Fault {
    let ty = call.builder.ty(x);
    Fault::operands(format!("{ty} must have four axes"))
}

/// Rows and columns of a block, and pairs of what is added or cut off around the rows and columns.
fn block(call: &mut Call<'_, '_>, key: &str) -> Result<([usize; 2], Pads), Fault> {
    let numbers = call.required_list("block_shape", 2)?;
    let block = [numbers[0], numbers[1]].map(|number| usize::try_from(number).unwrap_or(0));
    let field = call.field(key)?;
    let field = call.required(key, field)?;
    let rim = field.ints().unwrap_or_default();
    let rim = pairs(&format!("parameter `{key}`"), &field.shape, &rim)?;
    match rim[..] {
        [rows, columns] if block.iter().all(|&extent| (1..1 << 31).contains(&extent)) => Ok((block, [rows, columns])),
        _ => Err(Fault::parameter(format!("blocks of {numbers:?} with {rim:?} aren't two positive numbers and pairs"))),
    }
}

/// Moves blocks of rows and columns of [N, C, H, W] to the batch.
fn space_to_batch(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    if call.rank(x) != 4 {
        return Err(not_four_axes(call, x));
    }
    let ([down, across], [rows, columns]) = block(call, "padding")?;
    let x = padded(call, x, &[(0, 0), (0, 0), rows, columns], 0.0)?;
    let &[batch, channels, height, width] = &call.shape(x)[..] else { return Err(not_four_axes(call, x)) };
    if height % down != 0 || width % across != 0 {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("{ty} can't be cut into blocks of {down} by {across}")));
    }
    let split = [batch, channels, height / down, down, width / across, across];
    let x = call.builder.reshape(x, &split)?;
    let x = call.builder.transpose(x, &[3, 5, 0, 1, 2, 4])?;
    Ok(call.builder.reshape(x, &[down * across * batch, channels, height / down, width / across])?)
}

/// The inverse: moves parts of the batch back between rows and columns.
fn batch_to_space(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let &[batch, channels, height, width] = &call.shape(x)[..] else { return Err(not_four_axes(call, x)) };
    let ([down, across], rim) = block(call, "crop")?;
    let block = down * across;
    if batch % block != 0 || rim.iter().any(|&(before, after)| before < 0 || after < 0) {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("the batch of {ty} doesn't make blocks of {down} by {across}")));
    }
    let x = call.builder.reshape(x, &[down, across, batch / block, channels, height, width])?;
    let x = call.builder.transpose(x, &[2, 3, 4, 0, 5, 1])?;
    let x = call.builder.reshape(x, &[batch / block, channels, height * down, width * across])?;
    let cut = rim.map(|(before, after)| (-before, -after));
    padded(call, x, &[(0, 0), (0, 0), cut[0], cut[1]], 0.0)
}
