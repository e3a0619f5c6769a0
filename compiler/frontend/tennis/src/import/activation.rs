//! Functions of single elements, and softmax.

use super::call::{Call, Parameters, Table};
use mlc_import::Fault;
use mlc_import::Handler::{One, Unary};
use mlc_ir::Value;
use mlc_ir::ops::Softmax;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};

pub(super) const OPERATORS: Table = &[
    ("abs", Unary(U::Absolute)),
    ("ceil", Unary(U::Ceil)),
    ("erf", Unary(U::Erf)),
    ("exp", Unary(U::Exp)),
    ("floor", Unary(U::Floor)),
    ("hard_sigmoid", One(hard_sigmoid)),
    ("leaky_relu", One(leaky_relu)),
    ("prelu", One(prelu)),
    ("relu", Unary(U::Relu)),
    ("relu_max", One(relu_max)),
    ("rsqrt", Unary(U::Rsqrt)),
    ("sigmoid", Unary(U::Sigmoid)),
    ("softmax", One(softmax)),
    ("softplus", Unary(U::Softplus)),
    ("sqrt", Unary(U::Sqrt)),
    ("square", Unary(U::Square)),
    ("tanh", Unary(U::Tanh)),
];

fn relu_max(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let largest = call.float_or("max", 0.0)?;
    if largest < 0.0 {
        // Nothing is between 0 and less: the outer limit is the last one taken.
        let zeros = call.builder.binary_number(B::Maximum, x, 0.0)?;
        return Ok(call.builder.binary_number(B::Minimum, zeros, largest)?);
    }
    Ok(call.builder.clamp(x, 0.0, largest)?)
}

fn leaky_relu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.floats_input(0)?;
    let slope = call.float_or("scale", 0.0)?;
    Ok(call.builder.apply(mlc_ir::ops::LeakyRelu { slope: mlc_ir::Float(slope) }, &[x])?)
}

/// x where x > 0, else x times the slope of its place along an axis.
fn prelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, slope) = (call.floats_input(0)?, call.input(1)?);
    let axis = call.required_plain_axis(x, "dim")?;
    let slope = vector(call, slope, x, axis)?;
    let dtype = call.dtype_of(x);
    Ok(call.builder.map(&[x, slope], |b| {
        let (x, slope, zero) = (b.operand(0), b.operand(1), b.number(dtype, 0.0));
        let (positive, scaled) = (b.binary(B::Greater, x, zero), b.binary(B::Multiply, x, slope));
        b.select(positive, x, scaled)
    })?)
}

/// A vector with an element for each place along an axis, so that it broadcasts to `x`.
pub(super) fn vector(call: &mut Call<'_, '_>, vector: Value, x: Value, axis: usize) -> Result<Value, Fault> {
    let (ty, expected) = (call.builder.ty(vector), call.builder.ty(x));
    if ty.dtype != expected.dtype || ty.shape[..] != expected.shape[axis..=axis] {
        return Err(Fault::operands(format!("the vector {ty} doesn't fit axis {axis} of {expected}")));
    }
    call.builder.along_axis(vector, x, axis)
}

fn hard_sigmoid(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.floats_input(0)?;
    let (alpha, beta) = (call.float_or("alpha", 0.2)?, call.float_or("beta", 0.5)?);
    let scaled = call.builder.binary_number(B::Multiply, x, alpha)?;
    let moved = call.builder.binary_number(B::Add, scaled, beta)?;
    Ok(call.builder.clamp(moved, 0.0, 1.0)?)
}

/// Whether the maximum is subtracted first makes no difference: it always is.
fn softmax(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.floats_input(0)?;
    let axis = call.required_axis(x, "dim")?;
    call.flag_or("smooth", true)?;
    Ok(call.builder.apply(Softmax { axis, logarithm: false }, &[x])?)
}
