//! Functions of single elements.

use super::call::{Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::{Binary, One, Unary};
use mlc_ir::ops::{BitCast, LeakyRelu};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Code, DType, Float, Value};

pub(super) const OPERATORS: Table = &[
    ("abs", Unary(U::Absolute)),
    ("acos", Unary(U::Acos)),
    ("acosh", Unary(U::Acosh)),
    ("add", Binary(B::Add)),
    ("asin", Unary(U::Asin)),
    ("asinh", Unary(U::Asinh)),
    ("atan", Unary(U::Atan)),
    ("atanh", Unary(U::Atanh)),
    ("bitwise_and", Binary(B::And)),
    ("bitwise_not", Unary(U::Not)),
    ("bitwise_or", Binary(B::Or)),
    ("bitwise_xor", Binary(B::Xor)),
    ("cast", One(cast)),
    ("ceil", Unary(U::Ceil)),
    ("clip", One(clip)),
    ("copy", One(same)),
    ("cos", Unary(U::Cos)),
    ("cosh", Unary(U::Cosh)),
    ("divide", Binary(B::Divide)),
    ("equal", Binary(B::Equal)),
    ("erf", Unary(U::Erf)),
    ("exp", Unary(U::Exp)),
    ("fast_erf", Unary(U::Erf)),
    ("fast_exp", Unary(U::Exp)),
    ("fast_tanh", Unary(U::Tanh)),
    ("floor", Unary(U::Floor)),
    ("floor_divide", Binary(B::FloorDivide)),
    ("floor_mod", Binary(B::Modulo)),
    ("greater", Binary(B::Greater)),
    ("greater_equal", Binary(B::GreaterEqual)),
    ("isinf", Unary(U::IsInfinite)),
    ("isnan", Unary(U::IsNan)),
    ("left_shift", Binary(B::ShiftLeft)),
    ("less", Binary(B::Less)),
    ("less_equal", Binary(B::LessEqual)),
    ("log", Unary(U::Log)),
    ("log10", Unary(U::Log10)),
    ("log2", Unary(U::Log2)),
    ("logical_and", Binary(B::And)),
    ("logical_not", Unary(U::Not)),
    ("logical_or", Binary(B::Or)),
    ("logical_xor", Binary(B::Xor)),
    ("maximum", Binary(B::Maximum)),
    ("minimum", Binary(B::Minimum)),
    ("mod", Binary(B::Remainder)),
    ("multiply", Binary(B::Multiply)),
    ("negative", Unary(U::Negate)),
    ("nn.leaky_relu", One(leaky_relu)),
    ("nn.prelu", One(prelu)),
    ("nn.relu", Unary(U::Relu)),
    ("not_equal", Binary(B::NotEqual)),
    ("power", Binary(B::Power)),
    ("reinterpret", One(reinterpret)),
    ("right_shift", Binary(B::ShiftRight)),
    ("round", Unary(U::Round)),
    ("rsqrt", Unary(U::Rsqrt)),
    ("sigmoid", Unary(U::Sigmoid)),
    ("sign", Unary(U::Sign)),
    ("sin", Unary(U::Sin)),
    ("sinh", Unary(U::Sinh)),
    ("sqrt", Unary(U::Sqrt)),
    ("stop_gradient", One(same)),
    ("subtract", Binary(B::Subtract)),
    ("tan", Unary(U::Tan)),
    ("tanh", Unary(U::Tanh)),
    ("trunc", Unary(U::Truncate)),
    ("where", One(select)),
];

fn same(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    call.input(0)
}

fn cast(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dtype = call.dtype("dtype")?;
    let dtype = dtype.ok_or_else(|| Fault::new(Code::ParameterMissing, "attribute `dtype` is missing"))?;
    Ok(call.builder.cast(x, dtype)?)
}

/// The same bits as numbers of another type of the same size.
fn reinterpret(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dtype = call.dtype("dtype")?;
    let dtype = dtype.ok_or_else(|| Fault::new(Code::ParameterMissing, "attribute `dtype` is missing"))?;
    Ok(call.builder.apply(BitCast { dtype }, &[x])?)
}

fn clip(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (low, high) = (call.float_or("a_min", f64::NEG_INFINITY)?, call.float_or("a_max", f64::INFINITY)?);
    Ok(call.builder.clamp(x, low, high)?)
}

fn leaky_relu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let slope = Float(call.float_or("alpha", 0.25)?);
    Ok(call.builder.apply(LeakyRelu { slope }, &[x])?)
}

/// The slopes run along an axis.
fn prelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, slopes) = (call.input(0)?, call.input(1)?);
    let axis = call.int_or("axis", 1)?;
    let axis = call.axis(x, axis)?;
    let slopes = call.builder.along_axis(slopes, x, axis)?;
    let dtype = call.builder.dtype(x);
    Ok(call.builder.map(&[x, slopes], |b| {
        let (x, slope, zero) = (b.operand(0), b.operand(1), b.number(dtype, 0.0));
        let scaled = b.binary(B::Multiply, x, slope);
        let positive = b.binary(B::Greater, x, zero);
        b.select(positive, x, scaled)
    })?)
}

/// The condition may be a number, which is true when it isn't 0.
fn select(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (condition, x, y) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let condition = call.builder.cast(condition, DType::Bool)?;
    Ok(call.builder.select(condition, x, y)?)
}
