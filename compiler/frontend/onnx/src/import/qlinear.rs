//! onnxruntime's operators on quantised tensors: each computes with the real numbers and quantises the result.

use super::call::{Call, Table};
use super::pooling::average_of;
use super::quantization::saturated;
use super::softmax::softmax_of;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{LeakyRelu, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Float, Value};

pub(super) const OPERATORS: Table = &[
    ("QLinearAdd", 1, One(|call| binary(call, B::Add))),
    ("QLinearAveragePool", 1, One(average_pool)),
    ("QLinearConcat", 1, One(concat)),
    ("QLinearGlobalAveragePool", 1, One(global_average_pool)),
    ("QLinearLeakyRelu", 1, One(leaky_relu)),
    ("QLinearMul", 1, One(|call| binary(call, B::Multiply))),
    ("QLinearSigmoid", 1, One(sigmoid)),
    ("QLinearSoftmax", 1, One(softmax)),
    ("QLinearWhere", 1, One(select)),
];

/// Scale and zero point, one number each, in consecutive places; the zero point may be absent.
fn parameters(call: &mut Call<'_, '_>, index: usize) -> Result<(Value, Option<Value>), Fault> {
    let (scale, zero_point) = (call.input(index)?, call.optional(index + 1)?);
    let single = |call: &mut Call<'_, '_>, value: Value| -> Result<Value, Fault> {
        if call.builder.ty(value).elements() != 1 {
            let ty = call.builder.ty(value);
            return Err(Fault::operands(format!("a scale or a zero point must be one number, found {ty}")));
        }
        Ok(call.builder.reshape(value, &[])?)
    };
    let scale = single(call, scale)?;
    let zero_point = zero_point.map(|zero_point| single(call, zero_point)).transpose()?;
    Ok((scale, zero_point))
}

/// The real numbers of a quantised tensor whose scale and zero point follow it.
fn real(call: &mut Call<'_, '_>, index: usize) -> Result<Value, Fault> {
    let x = call.input(index)?;
    let (scale, zero_point) = parameters(call, index + 1)?;
    call.builder.dequantize(x, scale, zero_point, DType::F32)
}

/// Real numbers quantised to the data type of an operand, with the scale and the zero point from a place on.
fn stored(call: &mut Call<'_, '_>, real: Value, index: usize, like: usize) -> Result<Value, Fault> {
    let (scale, zero_point) = parameters(call, index)?;
    let like = call.input(like)?;
    let ty = call.dtype_of(like).into();
    let quotient = call.builder.binary(B::Divide, real, scale)?;
    saturated(call, quotient, zero_point, ty)
}

fn binary(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let (left, right) = (real(call, 0)?, real(call, 3)?);
    let result = call.builder.binary(function, left, right)?;
    stored(call, result, 6, 0)
}

fn sigmoid(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = real(call, 0)?;
    let y = call.builder.unary(U::Sigmoid, x)?;
    stored(call, y, 3, 0)
}

fn leaky_relu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = real(call, 0)?;
    let slope = Float(call.float_or("alpha", f64::from(0.01_f32))?);
    let y = call.builder.apply(LeakyRelu { slope }, &[x])?;
    stored(call, y, 3, 0)
}

/// The attribute `opset` says which version of softmax is meant.
fn softmax(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let version = call.int("opset")?;
    let version = call.required("opset", version)?;
    let x = real(call, 0)?;
    let y = softmax_of(call, x, version, false)?;
    stored(call, y, 3, 0)
}

fn average_pool(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    if call.flag_or("channels_last", false)? {
        return Err(Fault::variant("channels as the last axis aren't supported"));
    }
    let x = real(call, 0)?;
    let y = average_of(call, x)?;
    stored(call, y, 3, 0)
}

/// The condition comes first, then three operands for each tensor.
fn select(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let condition = call.input(0)?;
    let (yes, no) = (real(call, 1)?, real(call, 4)?);
    let chosen = call.builder.select(condition, yes, no)?;
    stored(call, chosen, 7, 1)
}

/// The mean over the spatial axes, which stay with extent 1.
fn global_average_pool(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = real(call, 0)?;
    let rank = call.rank(x);
    let spatial = if call.flag_or("channels_last", false)? { 1..rank.max(2) - 1 } else { 2..rank.max(2) };
    let axes: Vec<usize> = spatial.collect();
    let y = call.builder.reduce(ReduceFunction::Mean, x, &axes, true)?;
    stored(call, y, 3, 0)
}

/// Scale and zero point of the result come first, then three operands for each tensor.
fn concat(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let operands = call.operands();
    if operands < 5 || !(operands - 2).is_multiple_of(3) {
        let message = format!("tensors, scales and zero points must alternate, {operands} operands are given");
        return Err(Fault::new(mlc_ir::Code::OperandCount, message));
    }
    let parts = (2..operands).step_by(3).map(|index| real(call, index)).collect::<Result<Vec<_>, _>>()?;
    let axis = call.int("axis")?;
    let axis = call.required("axis", axis)?;
    let axis = call.axis(parts[0], axis)?;
    let joined = call.builder.concat(&parts, axis)?;
    stored(call, joined, 0, 2)
}
