//! Conversions between data types.

use super::call::Call;
use super::registry::{Handler::One, Table};
use crate::fault::Fault;
use crate::onnx::tensor;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("Cast", 1, One(cast)), ("CastLike", 15, One(cast_like))];

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
