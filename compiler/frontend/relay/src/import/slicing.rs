//! Parts of tensors, by places and by indices.

use super::call::{Arguments, Call, Table, axis_of};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{SearchSorted, Slice};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("gather", One(gather)),
    ("searchsorted", One(search_sorted)),
    ("strided_slice", One(strided_slice)),
    ("take", One(take)),
];

/// Where values would be inserted into sequences that are sorted along the last axis.
fn search_sorted(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (sequence, values) = (call.input(0)?, call.input(1)?);
    let right = call.flag_or("right", false)?;
    let dtype = call.dtype("dtype")?.unwrap_or(DType::I32);
    let places = call.builder.apply(SearchSorted { right }, &[sequence, values])?;
    Ok(call.builder.cast(places, dtype)?)
}

fn strided_slice(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let shape = call.shape(x);
    let begin = call.required_ints("begin")?;
    let end = call.required_ints("end")?;
    let strides = call.ints("strides")?.filter(|strides| !strides.is_empty()).unwrap_or_else(|| vec![1]);
    let size_mode = match call.word_or("slice_mode", "end")? {
        "end" => false,
        "size" => true,
        other => return Err(Fault::parameter(format!("attribute `slice_mode` is {other:?}"))),
    };
    let axes = match call.ints("axes")? {
        Some(axes) => axes.iter().map(|&axis| axis_of(axis, shape.len())).collect::<Result<Vec<usize>, Fault>>()?,
        None => (0..begin.len().max(end.len())).collect(),
    };
    let unfit =
        || Fault::parameter(format!("begin {begin:?} and end {end:?} don't fit the axes {axes:?} of {shape:?}"));
    if begin.len() > axes.len() || end.len() > axes.len() || axes.iter().any(|&axis| axis >= shape.len()) {
        return Err(unfit());
    }
    let mut slice = Slice { starts: vec![0; shape.len()], sizes: shape.to_vec(), steps: vec![1; shape.len()] };
    for (place, &axis) in axes.iter().enumerate() {
        let extent = shape[axis] as i64;
        let step = if strides.len() == 1 { strides[0] } else { strides.get(place).copied().unwrap_or(1) };
        if step == 0 || step == i64::MIN {
            return Err(unfit());
        }
        let step = if size_mode { 1 } else { step };
        let wrapped = |index: i64| if index < 0 { index.saturating_add(extent) } else { index };
        let (first, limit) = if step > 0 { (0, extent) } else { (extent - 1, -1) };
        let start = begin.get(place).map_or(first, |&index| wrapped(index)).clamp(limit.min(first), limit.max(first));
        let stop = match end.get(place) {
            None => limit,
            Some(&size) if size_mode && size < 0 => limit,
            Some(&size) if size_mode => start.saturating_add(size).min(limit),
            Some(&index) => wrapped(index).clamp(limit.min(first), limit.max(first)),
        };
        let count = if step > 0 { stop - start } else { start - stop };
        let size = count.max(0) as usize;
        slice.starts[axis] = if size == 0 { 0 } else { start as usize };
        slice.sizes[axis] = size.div_ceil(step.unsigned_abs() as usize);
        slice.steps[axis] = step;
    }
    let whole = slice.sizes[..] == shape[..] && slice.steps.iter().all(|&step| step == 1);
    if whole { Ok(x) } else { Ok(call.builder.apply(slice, &[x])?) }
}

/// Slices along an axis, or elements of the flat tensor without one.
fn take(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let mode = call.word_or("mode", "clip")?;
    if call.int_or("batch_dims", 0)? != 0 {
        return Err(Fault::variant("attribute `batch_dims` is supported for 0 only"));
    }
    let (x, axis) = match call.int("axis")? {
        Some(axis) => (x, call.axis(x, axis)?),
        None => {
            let elements = call.builder.ty(x).elements();
            (call.builder.reshape(x, &[elements])?, 0)
        }
    };
    let extent = call.shape(x)[axis];
    let indices = call.builder.cast(indices, DType::I64)?;
    let last = extent.saturating_sub(1) as f64;
    let indices = match mode {
        "fast" => indices,
        "clip" => call.builder.map(&[indices], |b| {
            let (index, zero, last) = (b.operand(0), b.number(DType::I64, 0.0), b.number(DType::I64, last));
            let raised = b.binary(B::Maximum, index, zero);
            b.binary(B::Minimum, raised, last)
        })?,
        "wrap" => call.builder.binary_number(B::Modulo, indices, extent as f64)?,
        other => return Err(Fault::variant(format!("attribute `mode` is {other:?}, which isn't known"))),
    };
    Ok(call.builder.gather(x, indices, axis)?)
}

/// An element for each index, along an axis.
fn gather(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices) = (call.input(0)?, call.input(1)?);
    let axis = call.int_or("axis", 0)?;
    let axis = call.axis(x, axis)?;
    Ok(call.builder.gather_elements(x, indices, axis)?)
}
