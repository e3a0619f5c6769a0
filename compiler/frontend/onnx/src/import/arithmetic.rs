//! Arithmetic and comparisons of two and more tensors, and choices between them.

use super::call::{Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::promoted;
use mlc_import::normalized_axis;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Literal, Value};

pub(super) const OPERATORS: Table = &[
    ("Add", 1, One(|call| binary(call, B::Add))),
    ("And", 1, One(|call| logic(call, B::And))),
    ("BitShift", 11, One(bit_shift)),
    ("BitwiseAnd", 18, One(|call| bits(call, B::And))),
    ("BitwiseOr", 18, One(|call| bits(call, B::Or))),
    ("BitwiseXor", 18, One(|call| bits(call, B::Xor))),
    ("Div", 1, One(|call| binary(call, B::Divide))),
    ("Equal", 1, One(|call| binary(call, B::Equal))),
    ("Greater", 1, One(|call| binary(call, B::Greater))),
    ("GreaterOrEqual", 12, One(|call| binary(call, B::GreaterEqual))),
    ("IsInf", 10, One(is_infinite)),
    ("IsNaN", 9, One(is_nan)),
    ("Less", 1, One(|call| binary(call, B::Less))),
    ("LessOrEqual", 12, One(|call| binary(call, B::LessEqual))),
    ("Max", 1, One(|call| all(call, B::Maximum))),
    ("Mean", 1, One(mean)),
    ("Min", 1, One(|call| all(call, B::Minimum))),
    ("Mod", 10, One(modulo)),
    ("Mul", 1, One(|call| binary(call, B::Multiply))),
    ("Or", 1, One(|call| logic(call, B::Or))),
    ("Pow", 1, One(power)),
    ("Sub", 1, One(|call| binary(call, B::Subtract))),
    ("Sum", 1, One(|call| all(call, B::Add))),
    ("Where", 9, One(choose)),
    ("Xor", 1, One(|call| logic(call, B::Xor))),
];

/// The two operands. Before version 7 the second one only broadcasts when an attribute says so, from an axis on or at the
/// last axes.
fn pair(call: &mut Call<'_, '_>) -> Result<(Value, Value), Fault> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    call.ignore(&["consumed_inputs"]);
    if call.version() >= 7 {
        return Ok((x, y));
    }
    let (broadcast, axis) = (call.flag_or("broadcast", false)?, call.int("axis")?);
    if !broadcast {
        if call.shape(x) != call.shape(y) {
            let (x, y) = (call.builder.ty(x), call.builder.ty(y));
            return Err(Fault::operands(format!("{x} and {y} differ, and attribute `broadcast` isn't given")));
        }
        return Ok((x, y));
    }
    let Some(axis) = axis else { return Ok((x, y)) };
    let rank = call.rank(x);
    let mut shape = call.shape(y);
    let behind = normalized_axis(axis, rank).and_then(|axis| rank.checked_sub(axis + shape.len()));
    let Some(behind) = behind else {
        let (x, y) = (call.builder.ty(x), call.builder.ty(y));
        return Err(Fault::parameter(format!("{y} can't be aligned at axis {axis} of {x}")));
    };
    shape.extend(std::iter::repeat_n(1, behind));
    Ok((x, call.builder.reshape(y, &shape)?))
}

fn binary(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let (x, y) = pair(call)?;
    Ok(call.builder.binary(function, x, y)?)
}

fn logic(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let (x, y) = pair(call)?;
    if call.dtype_of(x) != DType::Bool {
        return Err(Fault::operands(format!("the operands must hold bools, found {}", call.builder.ty(x))));
    }
    Ok(call.builder.binary(function, x, y)?)
}

fn bits(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let (x, y) = pair(call)?;
    if !call.dtype_of(x).is_integer() {
        return Err(Fault::operands(format!("the operands must hold integers, found {}", call.builder.ty(x))));
    }
    Ok(call.builder.binary(function, x, y)?)
}

fn bit_shift(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let direction = call.word("direction")?;
    match call.required("direction", direction)? {
        "LEFT" => binary(call, B::ShiftLeft),
        "RIGHT" => binary(call, B::ShiftRight),
        other => Err(Fault::parameter(format!("there is no direction {other}"))),
    }
}

/// The rest has the divisor's sign, or with attribute `fmod` the dividend's.
fn modulo(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let function = if call.flag_or("fmod", false)? { B::Remainder } else { B::Modulo };
    binary(call, function)
}

/// The result has the base's data type, whatever the exponent's is.
fn power(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (base, exponent) = pair(call)?;
    let (dtype, other) = (call.dtype_of(base), call.dtype_of(exponent));
    let number = call.builder.graph().constant(exponent).and_then(Attribute::splat);
    if let Some(number) = number
        && call.builder.broadcasts_to(exponent, &call.shape(base))
        && let Some(power) = call.builder.simple_power(base, number.to_f64())?
    {
        return Ok(power);
    }
    let computed = match (dtype.is_float(), other.is_float()) {
        (true, _) => promoted(dtype, other),
        (false, true) => DType::F64,
        (false, false) if dtype == other => dtype,
        (false, false) => DType::I64,
    };
    let (base, exponent) = (call.builder.cast(base, computed)?, call.builder.cast(exponent, computed)?);
    let power = call.builder.binary(B::Power, base, exponent)?;
    Ok(call.builder.cast(power, dtype)?)
}

/// A function of the first two operands, of that and the third, and so on.
fn all(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    call.ignore(&["consumed_inputs"]);
    let operands = call.all_inputs()?;
    let (&first, others) = operands
        .split_first()
        .ok_or_else(|| Fault::new(mlc_ir::Code::OperandCount, "the operator needs at least one operand"))?;
    let mut result = first;
    for &other in others {
        result = call.builder.binary(function, result, other)?;
    }
    Ok(result)
}

fn mean(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let sum = all(call, B::Add)?;
    if call.operands() == 1 {
        return Ok(sum);
    }
    Ok(call.builder.binary_number(B::Divide, sum, call.operands() as f64)?)
}

fn is_nan(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    Ok(call.builder.unary(U::IsNan, x)?)
}

fn is_infinite(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (negative, positive) = (call.flag_or("detect_negative", true)?, call.flag_or("detect_positive", true)?);
    if !call.dtype_of(x).is_float() {
        return Err(Fault::operands(format!("the operand must hold floats, found {}", call.builder.ty(x))));
    }
    Ok(match (negative, positive) {
        (true, true) => call.builder.unary(U::IsInfinite, x)?,
        (false, true) => call.builder.binary_number(B::Equal, x, f64::INFINITY)?,
        (true, false) => call.builder.binary_number(B::Equal, x, f64::NEG_INFINITY)?,
        (false, false) => {
            let shape = call.shape(x);
            let no = call.builder.literal(Literal::integer(DType::Bool, 0));
            call.builder.broadcast(no, &shape)?
        }
    })
}

fn choose(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (condition, x, y) = (call.input(0)?, call.input(1)?, call.input(2)?);
    Ok(call.builder.select(condition, x, y)?)
}
