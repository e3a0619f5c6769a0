//! Operations on single elements. The result may be larger than the operand, which is repeated along axes of extent 1.

use super::call::{Call, Results, Table};
use mlc_import::Fault;
use mlc_import::Handler::{Binary, One};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("Add", Binary(B::Add)),
    ("Cast", One(cast)),
    ("Copy", One(copy)),
    ("Div", Binary(B::Divide)),
    ("Exp", One(|call| function(call, U::Exp))),
    ("Gelu", One(|call| function(call, U::GeluTanh))),
    ("Mul", Binary(B::Multiply)),
    ("Relu", One(relu)),
    ("Rope", One(rope)),
    ("Rsqrt", One(|call| function(call, U::Rsqrt))),
    ("ScalarAdd", One(|call| with_scalar(call, B::Add))),
    ("ScalarAssign", One(assign)),
    ("ScalarMul", One(|call| with_scalar(call, B::Multiply))),
    ("Sigmoid", One(|call| function(call, U::Sigmoid))),
    ("Sqrt", One(|call| function(call, U::Sqrt))),
    ("Store", One(copy)),
    ("Sub", Binary(B::Subtract)),
];

fn function(call: &mut Call<'_, '_>, function: U) -> Result<Value, Fault> {
    let y = call.unary(function)?;
    call.spread(y)
}

fn copy(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    call.spread(x)
}

/// The larger one of x and 0, which is 0 if x is NaN.
fn relu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dtype = call.dtype_of(x);
    let y = call.builder.map(&[x], |b| {
        let (x, zero) = (b.operand(0), b.number(dtype, 0.0));
        let is_positive = b.binary(B::Greater, x, zero);
        b.select(is_positive, x, zero)
    })?;
    call.spread(y)
}

/// The nearest number of the other type. A single is truncated to an integer, a half is rounded to the nearest one.
fn cast(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (mut x, dtype) = (call.input(0)?, call.result_dtype(0)?);
    let is_half = matches!(call.dtype_of(x), DType::F16 | DType::Bf16);
    if is_half && matches!(dtype, DType::I32 | DType::U32) {
        x = call.builder.unary(U::Round, x)?;
    }
    let y = call.builder.cast(x, dtype)?;
    call.spread(y)
}

/// The number of a scalar operation, under either of its names.
fn scalar(call: &mut Call<'_, '_>) -> Result<f64, Fault> {
    let value = match call.float("Factor")? {
        Some(factor) => Some(factor),
        None => call.float("Value")?,
    };
    call.required("Factor", value)
}

fn with_scalar(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let (x, number) = (call.input(0)?, scalar(call)?);
    let y = call.builder.binary_number(function, x, number)?;
    call.spread(y)
}

fn assign(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let value = call.float("Value")?;
    let value = call.required("Value", value)?;
    let dtype = call.result_dtype(0)?;
    let number = call.builder.number(dtype, value);
    call.spread(number)
}

/// Products of complex numbers, which are pairs of neighbours on the last axis.
fn rope(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, factor) = (call.input(0)?, call.input(1)?);
    let shape = call.result_shape(0)?;
    let [x, factor] = [pairs(call, x)?, pairs(call, factor)?];
    let axis = call.rank(x[0]).max(call.rank(factor[0]));
    let (x_first, x_second) = (x[0], x[1]);
    let mut combination = |function, first: [Value; 2], second: [Value; 2]| {
        let first = call.builder.binary(B::Multiply, first[0], first[1])?;
        let second = call.builder.binary(B::Multiply, second[0], second[1])?;
        call.builder.binary(function, first, second)
    };
    let real = combination(B::Subtract, [x_first, factor[0]], [x_second, factor[1]])?;
    let imaginary = combination(B::Add, [x_first, factor[1]], [x_second, factor[0]])?;
    let turned = call.builder.stack(&[real, imaginary], axis)?;
    Ok(call.builder.reshape(turned, &shape)?)
}

/// The elements at even and at odd places of the last axis.
fn pairs(call: &mut Call<'_, '_>, x: Value) -> Result<[Value; 2], Fault> {
    let mut shape = call.shape(x);
    let last = shape.pop().filter(|last| last % 2 == 0);
    let last = last.ok_or_else(|| Fault::operands(format!("the last axis of {} must be even", call.builder.ty(x))))?;
    shape.extend([last / 2, 2]);
    let axis = shape.len() - 1;
    let pairs = call.builder.reshape(x, &shape)?;
    Ok([call.builder.pick(pairs, axis, 0)?, call.builder.pick(pairs, axis, 1)?])
}
