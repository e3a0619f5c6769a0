//! What is left of memory in the program on values: zeros, views, boxes, and boxes side by side.

use super::call::{Call, Results, Table};
use crate::memory::Action;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{BitCast, ReduceFunction, Slice};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

pub(super) const STEPS: Table = &[
    ("memory.join", One(join)),
    ("memory.slice", One(slice)),
    ("memory.view", One(view)),
    ("memory.zeros", One(zeros)),
];

fn zeros(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let dtype = call.result_dtype(0)?;
    let zero = call.builder.number(dtype, 0.0);
    call.spread(zero)
}

fn slice(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, sizes) = (call.input(0)?, call.result_shape(0)?);
    let Action::Slice(starts) = &call.site.operator.action else { return Ok(x) };
    let steps = vec![1; starts.len()];
    Ok(call.builder.apply(Slice { starts: starts.clone(), sizes: sizes.to_vec(), steps }, &[x])?)
}

fn join(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let parts = call.all_inputs()?;
    let Action::Join(axis) = call.site.operator.action else { return Err(Fault::operands("there is nothing to join")) };
    Ok(call.builder.concat(&parts, axis)?)
}

/// The same bytes as elements of another type. Bytes of a number follow each other from the lowest to the highest.
fn view(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, dtype) = (call.input(0)?, call.result_dtype(0)?);
    let from = call.dtype_of(x);
    let y = match from.size().cmp(&dtype.size()) {
        std::cmp::Ordering::Equal => bits(call, x, dtype)?,
        std::cmp::Ordering::Greater => {
            let whole = bits(call, x, unsigned(from))?;
            let pieces = split(call, whole, dtype.size())?;
            bits(call, pieces, dtype)?
        }
        std::cmp::Ordering::Less => {
            let pieces = bits(call, x, unsigned(from))?;
            let whole = unite(call, pieces, unsigned(dtype))?;
            bits(call, whole, dtype)?
        }
    };
    call.shaped(y, 0)
}

/// The type of whole numbers of this size.
fn unsigned(dtype: DType) -> DType {
    match dtype.size() {
        1 => DType::U8,
        2 => DType::U16,
        _ => DType::U32,
    }
}

fn bits(call: &mut Call<'_, '_>, x: Value, dtype: DType) -> Result<Value, Fault> {
    if call.dtype_of(x) == dtype {
        return Ok(x);
    }
    Ok(call.builder.apply(BitCast { dtype }, &[x])?)
}

/// How far each piece of `size` bytes of a whole number is shifted in it.
fn shifts(call: &mut Call<'_, '_>, dtype: DType, size: usize) -> Result<Value, Fault> {
    let shifts: Vec<i64> = (0..dtype.size() / size).map(|piece| (piece * size * 8) as i64).collect();
    let ty = TensorType::new(dtype, [shifts.len()]);
    Ok(call.builder.constant("shifts", Attribute::from_tensor(&Tensor::from_integers(ty, shifts))))
}

/// Whole numbers as shorter ones along a new last axis.
fn split(call: &mut Call<'_, '_>, x: Value, size: usize) -> Result<Value, Fault> {
    let shifts = shifts(call, call.dtype_of(x), size)?;
    let x = call.builder.insert_axis(x, call.rank(x))?;
    let shifted = call.builder.binary(B::ShiftRight, x, shifts)?;
    let piece = if size == 1 { DType::U8 } else { DType::U16 };
    Ok(call.builder.cast(shifted, piece)?)
}

/// Longer whole numbers out of short ones that follow each other.
fn unite(call: &mut Call<'_, '_>, x: Value, dtype: DType) -> Result<Value, Fault> {
    let (size, elements) = (call.dtype_of(x).size(), call.builder.ty(x).elements());
    let pieces = dtype.size() / size;
    let x = call.builder.reshape(x, &[elements / pieces, pieces])?;
    let x = call.builder.cast(x, dtype)?;
    let shifts = shifts(call, dtype, size)?;
    let shifted = call.builder.binary(B::ShiftLeft, x, shifts)?;
    Ok(call.builder.reduce(ReduceFunction::Sum, shifted, &[1], false)?)
}
