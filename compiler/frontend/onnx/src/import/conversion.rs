//! Conversions between data types.

use super::call::{Call, Table, TensorAttributes};
use crate::tensor;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::BitCast;
use mlc_ir::{Attribute, DType, TensorType, Value};

pub(super) const OPERATORS: Table =
    &[("BitCast", 26, One(bit_cast)), ("Cast", 1, One(cast)), ("CastLike", 15, One(cast_like))];

/// The number of the data type in the standard; before version 6 the attribute is its name.
fn target(call: &mut Call<'_, '_>) -> Result<i64, Fault> {
    if call.version() >= 6 {
        let number = call.int("to")?;
        return call.required("to", number);
    }
    let name = call.word("to")?;
    let name = call.required("to", name)?;
    tensor::number_of(name).ok_or_else(|| Fault::parameter(format!("there is no element type {name}")))
}

fn cast(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let number = target(call)?;
    // They matter for floats of 8 bits only, which are refused.
    call.ignore(&["round_mode", "saturate"]);
    let dtype = tensor::dtype_of(number)?;
    if let Some(bits) = tensor::packed_bits(number)? {
        return Err(Fault::variant(format!("a conversion to integers of {bits} bits isn't supported")));
    }
    converted(call, x, dtype)
}

fn cast_like(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, like) = (call.input(0)?, call.input(1)?);
    call.ignore(&["round_mode", "saturate"]);
    if let Some(bits) = call.packed_bits(like) {
        return Err(Fault::variant(format!("a conversion to integers of {bits} bits isn't supported")));
    }
    let dtype = call.dtype_of(like);
    converted(call, x, dtype)
}

fn converted(call: &mut Call<'_, '_>, x: Value, dtype: DType) -> Result<Value, Fault> {
    Ok(call.builder.cast(x, dtype)?)
}

/// The same bits as another type of the same size.
fn bit_cast(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let number = target(call)?;
    let (from, to) = (call.builder.ty(x).clone(), tensor::dtype_of(number)?);
    if from.dtype.size() != to.size() || call.packed_bits(x) != tensor::packed_bits(number)? {
        return Err(Fault::operands(format!("{from} can't be read as {to}: an element of it has another size")));
    }
    if let Some(constant) = call.builder.graph().constant(x)
        && to != DType::Bool
    {
        let same = Attribute::new(TensorType::new(to, &from.shape), constant.bytes().clone())?;
        return Ok(call.builder.constant("value", same));
    }
    if from.dtype != to && (from.dtype.is_float() || to.is_float()) {
        return Ok(call.builder.apply(BitCast { dtype: to }, &[x])?);
    }
    // Integers of one size convert by keeping their bits.
    converted(call, x, to)
}
