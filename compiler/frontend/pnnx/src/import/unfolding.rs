//! Windows laid out as axes, the way back, and products over pairs of vectors.

use super::call::{Call, Operands, Table};
use super::convolution::{batched, unbatched};
use super::format::Pnnx;
use super::positional::float_at;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{PadMode, TransposedConvolution};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("F.fold", One(fold)),
    ("F.unfold", One(unfold)),
    ("aten::cdist", One(cdist)),
    ("aten::unfold", One(sliding)),
    ("nn.Fold", One(fold)),
    ("nn.Unfold", One(unfold)),
    ("torch.cross", One(cross)),
    ("torch.diag", One(diag)),
];

/// (N, C, H, W) as (N, C * kh * kw, positions): for each tap of the window the elements that it meets.
fn unfold(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (x, added) = batched(call, x, 2)?;
    let window = call.counts("kernel_size", 2, 1)?;
    let (dilations, strides) = (call.counts("dilation", 2, 1)?, call.counts("stride", 2, 1)?);
    let pads = call.counts("padding", 2, 0)?;
    let pad = |axis: usize| (pads[axis] as i64, pads[axis] as i64);
    let x = call.builder.pad(x, &[(0, 0), (0, 0), pad(0), pad(1)], PadMode::Constant, 0.0)?;
    let shape = call.shape(x);
    let mut positions = [0; 2];
    for axis in 0..2 {
        let reach = window[axis].checked_sub(1).map(|last| last * dilations[axis] + 1);
        let room = reach.and_then(|reach| shape[axis + 2].checked_sub(reach)).filter(|_| strides[axis] > 0);
        let room = room.ok_or_else(|| Fault::operands(format!("the window {window:?} doesn't fit into {shape:?}")))?;
        positions[axis] = room / strides[axis] + 1;
    }
    if window[0].saturating_mul(window[1]) > 1 << 12 {
        return Err(Fault::variant(format!("a window of {window:?} taps is too large to be laid out")));
    }
    let mut taps = Vec::new();
    for row in 0..window[0] {
        for column in 0..window[1] {
            let rows = call.builder.slice_axis(x, 2, row * dilations[0], positions[0], strides[0] as i64)?;
            let tap = call.builder.slice_axis(rows, 3, column * dilations[1], positions[1], strides[1] as i64)?;
            taps.push(tap);
        }
    }
    let y = call.builder.stack(&taps, 2)?;
    let y = call.builder.reshape(y, &[shape[0], shape[1] * taps.len(), positions[0] * positions[1]])?;
    unbatched(call, y, added)
}

/// The way back: sums what [`unfold`] would have spread. A transposed convolution whose weights are 1 where the channel of
/// the operand is the tap of the window.
fn fold(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (x, added) = batched(call, x, 1)?;
    let window = call.counts("kernel_size", 2, 1)?;
    let size = call.ints("output_size")?;
    let size = mlc_import::counts::<Pnnx>("output_size", &call.required("output_size", size)?, 2)?;
    let (dilations, strides) = (call.counts("dilation", 2, 1)?, call.counts("stride", 2, 1)?);
    let pads = call.counts("padding", 2, 0)?;
    let shape = call.shape(x);
    let taps = window[0].saturating_mul(window[1]);
    if taps == 0 || taps > 1 << 12 || shape[1] > 1 << 14 || !shape[1].is_multiple_of(taps) {
        return Err(Fault::operands(format!("{} channels don't split into windows {window:?}", shape[1])));
    }
    let (mut positions, mut output_pads) = ([0; 2], vec![0; 2]);
    for axis in 0..2 {
        let reach = (window[axis] - 1) * dilations[axis] + 1;
        let room = (size[axis] + 2 * pads[axis]).checked_sub(reach).filter(|_| strides[axis] > 0);
        let room = room.ok_or_else(|| Fault::operands(format!("the window {window:?} doesn't fit into {size:?}")))?;
        positions[axis] = room / strides[axis] + 1;
        output_pads[axis] = room % strides[axis];
    }
    if positions[0] * positions[1] != shape[2] {
        let message = format!("{} positions were expected, found {}", positions[0] * positions[1], shape[2]);
        return Err(Fault::operands(message));
    }
    let channels = shape[1] / taps;
    let x = call.builder.reshape(x, &[shape[0], shape[1], positions[0], positions[1]])?;
    let x = call.builder.to_channels_last(x)?;
    let weights = tap_weights(call, x, &window, shape[1]);
    let pads = pads.into_iter().map(|pad| (pad, pad)).collect();
    let op = TransposedConvolution { strides, dilations, pads, output_pads, groups: channels, sums: None };
    let y = call.builder.apply(op, &[x, weights])?;
    let y = call.builder.to_channels_first(y)?;
    unbatched(call, y, added)
}

/// Weights [kh, kw, C, 1]: 1 where the channel's number within its group is that of the tap.
fn tap_weights(call: &mut Call<'_, '_>, x: Value, window: &[usize], channels: usize) -> Value {
    let taps = window[0] * window[1];
    let values = (0..taps).flat_map(|tap| (0..channels).map(move |channel| f64::from(u8::from(channel % taps == tap))));
    let dtype = call.builder.dtype(x);
    let dtype = if dtype.is_float() { dtype } else { DType::F32 };
    let ty = TensorType::new(dtype, [window[0], window[1], channels, 1]);
    call.builder.constant("taps", Attribute::from_tensor(&Tensor::from_floats(ty, values.collect())))
}

/// `aten::unfold (x, dim, size, step)`: windows of an axis, along a new last axis.
fn sliding(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let mut number = |label: &str, position: usize| -> Result<i64, Fault> {
        let item = call.labelled_item(label, position)?;
        item.int().ok_or_else(|| Fault::parameter(format!("`{label}` must be a whole number")))
    };
    let (axis, size, step) = (number("dimension", 1)?, number("size", 2)?, number("step", 3)?);
    let axis = call.axis(x, axis)?;
    let extent = call.shape(x)[axis];
    let fitting = usize::try_from(size).ok().filter(|&size| size > 0 && size <= extent && size <= 1 << 12);
    let (Some(size), Some(stride)) = (fitting, usize::try_from(step).ok().filter(|&step| step > 0)) else {
        return Err(Fault::parameter(format!(
            "no windows of {size} by {step} fit axis {axis} of {}",
            call.builder.ty(x)
        )));
    };
    let count = (extent - size) / stride + 1;
    let taps =
        (0..size).map(|tap| call.builder.slice_axis(x, axis, tap, count, step)).collect::<Result<Vec<_>, _>>()?;
    let rank = call.builder.rank(x);
    Ok(call.builder.stack(&taps, rank)?)
}

/// `aten::cdist (a, b, p, mode)`: norm of every difference of a row of a (.., P, M) and one of b (.., R, M).
fn cdist(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right) = (call.labelled_input("x1", 0)?, call.labelled_input("x2", 1)?);
    let p = float_at(call, "p", 2, 2.0)?;
    let rank = call.builder.rank(left);
    if rank < 2 || call.builder.rank(right) < 2 {
        return Err(Fault::operands("matrices expected"));
    }
    let left = call.builder.insert_axis(left, rank - 1)?;
    let right = call.builder.insert_axis(right, call.builder.rank(right) - 2)?;
    let difference = call.builder.binary(BinaryFunction::Subtract, left, right)?;
    let axis = call.builder.rank(difference) - 1;
    super::reduction::norm(call, difference, p, vec![axis], false)
}

/// Vector product along an axis of three: a[i + 1] b[i + 2] - a[i + 2] b[i + 1].
fn cross(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right) = (call.x()?, call.labelled_input("other", 1)?);
    let axis = match call.int("dim")? {
        Some(axis) => call.axis(left, axis)?,
        None => call.shape(left).iter().position(|&extent| extent == 3).unwrap_or(0),
    };
    if call.shape(left).get(axis) != Some(&3) || call.shape(right).get(axis) != Some(&3) {
        return Err(Fault::operands(format!("axis {axis} must have 3 elements")));
    }
    let mut rotated = |x: Value, by: usize| -> Result<Value, Fault> {
        let pieces = call.builder.split(x, axis, &[by, 3 - by])?;
        Ok(call.builder.concat(&[pieces[1], pieces[0]], axis)?)
    };
    let (a1, b2) = (rotated(left, 1)?, rotated(right, 2)?);
    let (a2, b1) = (rotated(left, 2)?, rotated(right, 1)?);
    let first = call.builder.binary(BinaryFunction::Multiply, a1, b2)?;
    let second = call.builder.binary(BinaryFunction::Multiply, a2, b1)?;
    Ok(call.builder.binary(BinaryFunction::Subtract, first, second)?)
}

/// The diagonal of a matrix, or the matrix of a diagonal.
fn diag(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let diagonal = call.int_or("diagonal", 0)?;
    let skipped = diagonal.unsigned_abs() as usize;
    let (down, right) = if diagonal < 0 { (skipped, 0) } else { (0, skipped) };
    let shape = call.shape(x);
    match shape[..] {
        [rows, columns] => {
            let count = rows.saturating_sub(down).min(columns.saturating_sub(right));
            let flat = call.builder.reshape(x, &[rows * columns])?;
            let start = if count == 0 { 0 } else { down * columns + right };
            Ok(call.builder.slice_axis(flat, 0, start, count, columns as i64 + 1)?)
        }
        [count] => {
            // Every row begins one element further: with as many zeros between, the flat list is the matrix.
            let side = count + skipped;
            let column = call.builder.reshape(x, &[count, 1])?;
            let spread = call.builder.pad(column, &[(0, 0), (0, side as i64)], PadMode::Constant, 0.0)?;
            let flat = call.builder.reshape(spread, &[count * (side + 1)])?;
            let front = (down * side + right) as i64;
            let behind = (side * side) as i64 - front - (count * (side + 1)) as i64;
            let all = call.builder.pad(flat, &[(front, behind)], PadMode::Constant, 0.0)?;
            Ok(call.builder.reshape(all, &[side, side])?)
        }
        _ => Err(Fault::operands(format!("{} is neither a vector nor a matrix", call.builder.ty(x)))),
    }
}
