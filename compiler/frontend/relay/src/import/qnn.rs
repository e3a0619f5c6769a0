//! Quantised operators: integers that stand for real numbers, `real = scale * (integer - zero_point)`.
//!
//! Changes of scale are done in integers: the quotient of the scales is a number of 31 bits and a shift, and halves are rounded upwards
//! or, where an operator names that, away from zero, as the reference does.

use super::call::{Arguments, Call, Table};
use super::nn::{Geometry, centred, product};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::{FixedPoint, Halves, QuantizedResult};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Code, DType, Value};

pub(super) const OPERATORS: Table = &[
    ("fixed_point_multiply", One(fixed_point_multiply)),
    ("qnn.abs", One(|call| through_real(call, Some(U::Absolute)))),
    ("qnn.add", One(|call| sum(call, B::Add))),
    ("qnn.concatenate", One(concatenate)),
    ("qnn.conv2d", One(convolution)),
    ("qnn.dense", One(dense)),
    ("qnn.dequantize", One(dequantize)),
    ("qnn.erf", One(|call| through_real(call, Some(U::Erf)))),
    ("qnn.exp", One(|call| through_real(call, Some(U::Exp)))),
    ("qnn.hardswish", One(|call| through_real(call, Some(U::HardSwish)))),
    ("qnn.log", One(|call| through_real(call, Some(U::Log)))),
    ("qnn.mul", One(multiply)),
    ("qnn.quantize", One(quantize)),
    ("qnn.requantize", One(requantize)),
    ("qnn.rsqrt", One(|call| through_real(call, Some(U::Rsqrt)))),
    ("qnn.sigmoid", One(|call| through_real(call, Some(U::Sigmoid)))),
    ("qnn.softmax", One(|call| through_real(call, None))),
    ("qnn.sqrt", One(|call| through_real(call, Some(U::Sqrt)))),
    ("qnn.subtract", One(|call| sum(call, B::Subtract))),
    ("qnn.tanh", One(|call| through_real(call, Some(U::Tanh)))),
];

/// How a result with a zero point is stored.
fn stored_as(dtype: DType, zero_point: Value) -> QuantizedResult {
    QuantizedResult { zero_point, ty: dtype.into() }
}

/// An axis of an attribute; the last one for -1, whatever the rank.
fn quantized_axis(call: &mut Call<'_, '_>, x: Value, name: &'static str) -> Result<usize, Fault> {
    let axis = call.int_or(name, -1)?;
    if call.builder.rank(x) == 0 { Ok(0) } else { call.axis(x, axis) }
}

/// Scales of operand `index`, which is a constant.
fn scales(call: &mut Call<'_, '_>, index: usize) -> Result<Vec<f64>, Fault> {
    let scales = call.numbers(index)?;
    if scales.iter().any(|&scale| !(scale > 0.0 && scale.is_finite())) {
        return Err(Fault::operands(format!("operand {index} has scales that aren't positive")));
    }
    Ok(scales)
}

/// One scale of operand `index`.
fn scale(call: &mut Call<'_, '_>, index: usize) -> Result<f64, Fault> {
    match scales(call, index)?[..] {
        [scale] => Ok(scale),
        _ => Err(Fault::variant(format!("operand {index} has several scales, one is expected"))),
    }
}

fn requantize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (from, to) = (scales(call, 1)?, scale(call, 3)?);
    let (x_zero, zero) = (call.input(2)?, call.input(4)?);
    let axis = quantized_axis(call, x, "axis")?;
    let halves = match call.word_or("rounding", "None")? {
        "None" | "UPWARD" | "" => Halves::Upwards,
        "TONEAREST" => Halves::Outwards,
        other => {
            let message = format!("attribute `rounding` is {other:?}, \"UPWARD\" and \"TONEAREST\" are supported");
            return Err(Fault::variant(message));
        }
    };
    match call.word_or("compute_dtype", "None")? {
        "None" | "int64" | "" => {}
        other => {
            return Err(Fault::variant(format!("attribute `compute_dtype` is {other:?}, only \"int64\" is supported")));
        }
    }
    let dtype = call.dtype("out_dtype")?.unwrap_or(DType::I8);
    let factors: Vec<f64> = from.iter().map(|&from| single(from) / single(to)).collect();
    call.builder.requantize(x, x_zero, (&factors, axis), halves, stored_as(dtype, zero))
}

/// A scale as the single-precision number that it is in the text.
fn single(scale: f64) -> f64 {
    f64::from(scale as f32)
}

fn convolution(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights, x_zero, zero) = (call.input(0)?, call.input(1)?, call.input(2)?, call.input(3)?);
    // What the sums are worth is for a requantize behind this.
    call.input(4)?;
    call.input(5)?;
    let geometry = Geometry::read(call, 2)?;
    sums_of_32_bits(call)?;
    let x = centred(call, x, x_zero, geometry.channel_axis())?;
    let weights = centred(call, weights, zero, geometry.output_axis())?;
    geometry.apply(call, x, weights)
}

fn dense(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights, x_zero, zero) = (call.input(0)?, call.input(1)?, call.input(2)?, call.input(3)?);
    call.input(4)?;
    call.input(5)?;
    sums_of_32_bits(call)?;
    let x = centred(call, x, x_zero, 0)?;
    let weights = centred(call, weights, zero, 0)?;
    product(call, x, weights)
}

fn sums_of_32_bits(call: &mut Call<'_, '_>) -> Result<(), Fault> {
    match call.dtype("out_dtype")? {
        None | Some(DType::I32) => Ok(()),
        Some(other) => Err(Fault::variant(format!("attribute `out_dtype` is {other}, only int32 is supported"))),
    }
}

/// A quantised operand: number of the operand, of its scale and of its zero point.
struct Quantized {
    x: Value,
    scale: f64,
    zero: Value,
}

impl Quantized {
    fn read(call: &mut Call<'_, '_>, x: usize, parameters: usize) -> Result<Quantized, Fault> {
        Ok(Quantized { x: call.input(x)?, scale: scale(call, parameters)?, zero: call.input(parameters + 1)? })
    }

    /// The same numbers in 32 bits, with the scale and the zero point of a result.
    fn rescaled(&self, call: &mut Call<'_, '_>, scale: f64, zero: Value) -> Result<Value, Fault> {
        let factor = single(self.scale) / single(scale);
        call.builder.requantize(self.x, self.zero, (&[factor], 0), Halves::Upwards, stored_as(DType::I32, zero))
    }
}

/// The sum or the difference, after both operands got the scale of the result.
fn sum(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let (left, right) = (Quantized::read(call, 0, 2)?, Quantized::read(call, 1, 4)?);
    let (to, zero) = (scale(call, 6)?, call.input(7)?);
    call.ignore(&["lhs_axis", "rhs_axis"]);
    let dtype = call.builder.dtype(left.x);
    let (left, right) = (left.rescaled(call, to, zero)?, right.rescaled(call, to, zero)?);
    let sum = call.builder.binary(function, left, right)?;
    let zero = call.builder.cast(zero, DType::I32)?;
    // Both operands have the zero point in them: twice in the sum, not at all in the difference.
    let back = if function == B::Add { B::Subtract } else { B::Add };
    let sum = call.builder.binary(back, sum, zero)?;
    call.builder.saturate(sum, dtype.into())
}

fn multiply(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right) = (Quantized::read(call, 0, 2)?, Quantized::read(call, 1, 4)?);
    let (to, zero) = (scale(call, 6)?, call.input(7)?);
    call.ignore(&["lhs_axis", "rhs_axis"]);
    let dtype = call.builder.dtype(left.x);
    let factor = single(single(left.scale) * single(right.scale)) / single(to);
    let (left, right) = (centred(call, left.x, left.zero, 0)?, centred(call, right.x, right.zero, 0)?);
    let product = call.builder.binary(B::Multiply, left, right)?;
    let none = call.builder.number(DType::I32, 0.0);
    call.builder.requantize(product, none, (&[factor], 0), Halves::Upwards, stored_as(dtype, zero))
}

fn concatenate(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (parts, scales, zeros) = (call.tuple(0)?, call.tuple(1)?, call.tuple(2)?);
    let (to, zero) = (scale(call, 3)?, call.input(4)?);
    let axis = call.int_or("axis", 0)?;
    if parts.is_empty() || scales.len() != parts.len() || zeros.len() != parts.len() {
        return Err(Fault::new(Code::OperandCount, "there must be a scale and a zero point for each part"));
    }
    let axis = call.axis(parts[0], axis)?;
    let mut rescaled = Vec::new();
    for ((&x, from), zero_of) in parts.iter().zip(scales).zip(zeros) {
        let from = call.builder.graph().constant(from).filter(|from| from.ty().elements() == 1);
        let from =
            from.ok_or_else(|| Fault::variant("the scales must be constant numbers"))?.to_tensor().to_floats()[0];
        let dtype = call.builder.dtype(x);
        let factor = single(from) / single(to);
        rescaled.push(call.builder.requantize(x, zero_of, (&[factor], 0), Halves::Upwards, stored_as(dtype, zero))?);
    }
    Ok(call.builder.concat(&rescaled, axis)?)
}

fn quantize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, scale, zero) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let axis = quantized_axis(call, x, "axis")?;
    let dtype = call.dtype("out_dtype")?.unwrap_or(DType::I8);
    let (scale, zero) = (call.builder.along_axis(scale, x, axis)?, call.builder.along_axis(zero, x, axis)?);
    call.builder.quantize(x, scale, Some(zero), dtype.into())
}

fn dequantize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, scale, zero) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let axis = quantized_axis(call, x, "axis")?;
    let dtype = call.dtype("out_dtype")?.unwrap_or(DType::F32);
    let (scale, zero) = (call.builder.along_axis(scale, x, axis)?, call.builder.along_axis(zero, x, axis)?);
    call.builder.dequantize(x, scale, Some(zero), dtype)
}

/// A function of real numbers between two quantisations; without one, the softmax.
fn through_real(call: &mut Call<'_, '_>, function: Option<U>) -> Result<Value, Fault> {
    let (x, scale, zero) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let (out_scale, out_zero) = (call.input(3)?, call.input(4)?);
    let axis = quantized_axis(call, x, "axis")?;
    let dtype = call.builder.dtype(x);
    let real = call.dtype_of(scale);
    let x = call.builder.dequantize(x, scale, Some(zero), real)?;
    let y = match function {
        Some(function) => call.builder.unary(function, x)?,
        None => call.builder.apply(mlc_ir::ops::Softmax { axis, logarithm: false }, &[x])?,
    };
    call.builder.quantize(y, out_scale, Some(out_zero), dtype.into())
}

/// `round(x * multiplier * 2^(shift - 31))` in 64 bits, halves upwards.
fn fixed_point_multiply(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let factor = FixedPoint::of_parts(call.int_or("multiplier", 0)?, call.int_or("shift", 0)?)?;
    call.builder.multiply_fixed_point(x, &factor)
}
