//! The data type that operands of two types are computed with.

use super::call::Call;
use mlc_import::Fault;
use mlc_import::builder::Builder;
use mlc_ir::{DType, Value};

/// The data type of the result of an operator of single elements.
///
/// Unlike in other formats, most mixtures of signed and unsigned integers are as wide as the wider one, not wider.
pub(super) fn promoted(left: DType, right: DType) -> DType {
    if left == right || right == DType::Bool {
        return left;
    }
    if left == DType::Bool {
        return right;
    }
    match (left.is_float(), right.is_float()) {
        (true, true) => wider(left, right),
        (true, false) => with_float(right, left),
        (false, true) => with_float(left, right),
        (false, false) => integers(left, right),
    }
}

fn wider(left: DType, right: DType) -> DType {
    if left.size() > right.size() { left } else { right }
}

fn with_float(integer: DType, float: DType) -> DType {
    match (integer.size(), float) {
        (_, DType::F64) | (8, _) => DType::F64,
        (4, _) => DType::F32,
        _ => float,
    }
}

fn integers(left: DType, right: DType) -> DType {
    match (left.min(right), left.max(right)) {
        // Two pairs of unsigned types are signed, others aren't.
        (DType::U8, DType::U16) => DType::I16,
        (DType::U8, DType::U64) => DType::I64,
        _ => {
            let wide = wider(left, right);
            if left.is_signed() || right.is_signed() { signed(wide) } else { wide }
        }
    }
}

fn signed(dtype: DType) -> DType {
    match dtype {
        DType::U8 => DType::I8,
        DType::U16 => DType::I16,
        DType::U32 => DType::I32,
        DType::U64 => DType::I64,
        other => other,
    }
}

/// The first two operands in the data type that both are computed in.
pub(super) fn pair(call: &mut Call<'_, '_>) -> Result<(Value, Value), Fault> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    let dtype = promoted(call.dtype_of(x), call.dtype_of(y));
    Ok((call.builder.cast(x, dtype)?, call.builder.cast(y, dtype)?))
}

/// Refuses operands of different data types.
pub(super) fn check_equal(builder: &Builder, values: &[Value]) -> Result<(), Fault> {
    let Some((&first, others)) = values.split_first() else { return Ok(()) };
    match others.iter().find(|&&other| builder.dtype(other) != builder.dtype(first)) {
        Some(&other) => {
            let (first, other) = (builder.ty(first), builder.ty(other));
            Err(Fault::operands(format!("the operands {first} and {other} must be of one data type")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DType::{Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};

    #[test]
    fn mixtures_have_the_types_of_the_format() {
        for (left, right, expected) in [
            (I8, U8, I8),
            (I16, U32, I32),
            (U8, U16, I16),
            (U8, U64, I64),
            (U8, U32, U32),
            (U16, U32, U32),
            (U16, U64, U64),
            (U32, U64, U64),
            (I8, I64, I64),
            (I64, U64, I64),
            (U8, F16, F16),
            (I16, F16, F16),
            (I32, F16, F32),
            (U64, F16, F64),
            (I32, F32, F32),
            (I64, F32, F64),
            (I8, F64, F64),
            (F16, F32, F32),
            (F32, F64, F64),
            (Bool, U8, U8),
            (F16, Bool, F16),
            (Bool, Bool, Bool),
        ] {
            assert_eq!((promoted(left, right), promoted(right, left)), (expected, expected), "{left} and {right}");
        }
    }
}
