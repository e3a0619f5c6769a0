//! Arithmetic, comparison and selection of single elements.

use super::call::{Call, Parameters, Table};
use super::promotion::{check_equal, pair};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{Attribute, DType, Literal, Value};

pub(super) const OPERATORS: Table = &[
    ("add", One(|call| binary(call, B::Add))),
    ("div", One(divide)),
    ("equal", One(|call| binary(call, B::Equal))),
    ("maximum", One(|call| binary(call, B::Maximum))),
    ("minimum", One(|call| binary(call, B::Minimum))),
    ("mod", One(modulo)),
    ("mul", One(|call| binary(call, B::Multiply))),
    ("pow", One(power)),
    ("sub", One(|call| binary(call, B::Subtract))),
    ("where", One(choose)),
];

fn binary(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let (x, y) = pair(call)?;
    Ok(call.builder.binary(function, x, y)?)
}

/// The smallest and the largest finite number.
fn ends(dtype: DType) -> (Literal, Literal) {
    if dtype.is_float() {
        let largest = match dtype {
            DType::F64 => f64::MAX,
            DType::F16 => 65504.0,
            _ => f64::from(f32::MAX),
        };
        return (Literal::float(dtype, -largest), Literal::float(dtype, largest));
    }
    (Literal::of(dtype, f64::NEG_INFINITY), Literal::of(dtype, f64::INFINITY))
}

/// The quotient; by zero the largest number where the dividend is positive, else the smallest one.
fn divide(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, y) = pair(call)?;
    let dtype = call.dtype_of(x);
    let zero_free = |divisor: &Attribute| divisor.to_tensor().to_floats().iter().all(|&value| value != 0.0);
    if dtype == DType::Bool || call.builder.graph().constant(y).is_some_and(zero_free) {
        return Ok(call.builder.binary(B::Divide, x, y)?);
    }
    let (smallest, largest) = ends(dtype);
    Ok(call.builder.map(&[x, y], |b| {
        let (x, y, zero) = (b.operand(0), b.operand(1), b.number(dtype, 0.0));
        let (smallest, largest) = (b.literal(smallest), b.literal(largest));
        let (by_zero, positive) = (b.binary(B::Equal, y, zero), b.binary(B::Greater, x, zero));
        let (end, quotient) = (b.select(positive, largest, smallest), b.binary(B::Divide, x, y));
        b.select(by_zero, end, quotient)
    })?)
}

/// The rest of a division of integers, with the sign of the dividend.
fn modulo(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, y) = pair(call)?;
    if !call.dtype_of(x).is_integer() {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("the operands must hold integers, found {ty}")));
    }
    Ok(call.builder.binary(B::Remainder, x, y)?)
}

fn power(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let exponent = call.required_float("y")?;
    match call.builder.simple_power(x, exponent)? {
        Some(power) => Ok(power),
        None => Ok(call.builder.binary_number(B::Power, x, exponent)?),
    }
}

/// Elements of the second operand where the first isn't zero, else of the third.
fn choose(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (condition, x, y) = (call.input(0)?, call.input(1)?, call.input(2)?);
    check_equal(call.builder, &[x, y])?;
    let condition = call.builder.cast(condition, DType::Bool)?;
    Ok(call.builder.select(condition, x, y)?)
}
