//! Quantised operators: integers that stand for real numbers, `real = scale * (integer - zero_point)`.
//!
//! Changes of scale are done in 64-bit integers: the quotient of the scales is a number of 31 bits and a shift, and halves are
//! rounded upwards, which is what the reference does unless it is told otherwise.

use super::call::{Arguments, Call, Table};
use super::elementwise::along;
use super::nn::{Geometry, centred, product};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, Code, DType, Value};

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

/// A factor as a number below 2^31 and the power of two that it is multiplied by.
fn fixed_point(factor: f64) -> Result<(i64, i32), Fault> {
    if factor == 0.0 {
        return Ok((0, 0));
    }
    if !(factor.is_finite() && factor > 0.0) {
        return Err(Fault::operands(format!("the quotient of two scales is {factor}")));
    }
    let (significand, mut exponent) = split(factor);
    let mut number = (significand * f64::from(1u32 << 31)).round() as i64;
    if number == 1 << 31 {
        number /= 2;
        exponent += 1;
    }
    if exponent > 30 {
        return Err(Fault::operands(format!("the quotient of two scales is {factor}, which is too large")));
    }
    // What is shifted out beyond this is 0 anyway.
    if exponent < -31 { Ok((0, 0)) } else { Ok((number, exponent)) }
}

/// A positive number as one in 0.5..1 and a power of two.
fn split(value: f64) -> (f64, i32) {
    let mut exponent = value.log2().floor() as i32 + 1;
    let mut significand = value / 2f64.powi(exponent);
    while significand >= 1.0 {
        significand /= 2.0;
        exponent += 1;
    }
    while significand < 0.5 {
        significand *= 2.0;
        exponent -= 1;
    }
    (significand, exponent)
}

/// Factors, and what they mean to 64-bit integers: shift left, multiply, add a half, shift right.
struct Factors {
    left: Vec<i64>,
    numbers: Vec<i64>,
    halves: Vec<i64>,
    right: Vec<i64>,
}

impl Factors {
    fn new(factors: &[f64]) -> Result<Factors, Fault> {
        let pairs = factors.iter().map(|&factor| fixed_point(factor)).collect::<Result<Vec<_>, Fault>>()?;
        let right = |exponent: i32| i64::from(31 - exponent.min(0));
        Ok(Factors {
            left: pairs.iter().map(|&(_, exponent)| i64::from(exponent.max(0))).collect(),
            numbers: pairs.iter().map(|&(number, _)| number).collect(),
            halves: pairs.iter().map(|&(_, exponent)| 1 << (right(exponent) - 1)).collect(),
            right: pairs.iter().map(|&(_, exponent)| right(exponent)).collect(),
        })
    }
}

/// `saturate(zero + round((x - x_zero) * factor))` of integers; factors are one, or one for each index of the axis.
fn scaled(
    call: &mut Call<'_, '_>,
    x: Value,
    x_zero: Value,
    (factors, axis): (&[f64], usize),
    (zero, dtype): (Value, DType),
) -> Result<Value, Fault> {
    if !call.builder.dtype(x).is_integer() {
        return Err(Fault::operands(format!("{} isn't a quantised tensor", call.builder.ty(x))));
    }
    let unit = factors.iter().all(|&factor| factor == 1.0);
    let factors = Factors::new(factors)?;
    let (x_zero, zero) = (along(call, x_zero, x, axis)?, along(call, zero, x, axis)?);
    let mut operands = vec![x, x_zero, zero];
    for list in [&factors.left, &factors.numbers, &factors.halves, &factors.right] {
        let constant = Attribute::from_i64(&[list.len()], list);
        let constant = constant.ok_or_else(|| Fault::operands("there are no scales"))?;
        let constant = call.builder.constant("factor", constant);
        operands.push(along(call, constant, x, axis)?);
    }
    if unit {
        operands.truncate(3);
    }
    let (low, high) = range(dtype)?;
    Ok(call.builder.map(&operands, |b| {
        let wide = DType::I64;
        let [x, x_zero, zero] = [0, 1, 2].map(|operand| {
            let operand = b.operand(operand);
            b.cast(wide, operand)
        });
        let mut y = b.binary(B::Subtract, x, x_zero);
        if !unit {
            let [left, number, half, right] = [3, 4, 5, 6].map(|operand| b.operand(operand));
            let shifted = b.binary(B::ShiftLeft, y, left);
            let product = b.binary(B::Multiply, shifted, number);
            let raised = b.binary(B::Add, product, half);
            y = b.binary(B::ShiftRight, raised, right);
        }
        let y = b.binary(B::Add, y, zero);
        let (low, high) = (b.number(wide, low), b.number(wide, high));
        let y = b.binary(B::Maximum, y, low);
        let y = b.binary(B::Minimum, y, high);
        b.cast(dtype, y)
    })?)
}

/// The smallest and the largest number of a quantised tensor's type.
fn range(dtype: DType) -> Result<(f64, f64), Fault> {
    if !dtype.is_integer() || dtype.size() > 4 {
        return Err(Fault::parameter(format!("numbers can't be quantised to {dtype}")));
    }
    let count = 2f64.powi(8 * dtype.size() as i32);
    Ok(if dtype.is_signed() { (-count / 2.0, count / 2.0 - 1.0) } else { (0.0, count - 1.0) })
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
    match call.word_or("rounding", "None")? {
        "None" | "UPWARD" | "" => {}
        other => {
            return Err(Fault::variant(format!("attribute `rounding` is {other:?}, only \"UPWARD\" is supported")));
        }
    }
    match call.word_or("compute_dtype", "None")? {
        "None" | "int64" | "" => {}
        other => {
            return Err(Fault::variant(format!("attribute `compute_dtype` is {other:?}, only \"int64\" is supported")));
        }
    }
    let dtype = call.dtype("out_dtype")?.unwrap_or(DType::I8);
    let factors: Vec<f64> = from.iter().map(|&from| single(from) / single(to)).collect();
    scaled(call, x, x_zero, (&factors, axis), (zero, dtype))
}

/// A scale as the single-precision number that it is in the text.
fn single(scale: f64) -> f64 {
    f64::from(scale as f32)
}

fn convolution(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights, x_zero, zero) = (call.input(0)?, call.input(1)?, call.input(2)?, call.input(3)?);
    // What the sums are worth is for a requantize behind this.
    call.input(5)?;
    let geometry = Geometry::read(call, 2)?;
    sums_of_32_bits(call)?;
    let x = centred(call, x, x_zero, geometry.channel_axis())?;
    let weights = centred(call, weights, zero, geometry.output_axis())?;
    geometry.apply(call, x, weights)
}

fn dense(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights, x_zero, zero) = (call.input(0)?, call.input(1)?, call.input(2)?, call.input(3)?);
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
        scaled(call, self.x, self.zero, (&[factor], 0), (zero, DType::I32))
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
    saturated(call, sum, dtype)
}

/// 32-bit integers as ones of fewer bits, up to the ends of their range.
fn saturated(call: &mut Call<'_, '_>, x: Value, dtype: DType) -> Result<Value, Fault> {
    let (low, high) = range(dtype)?;
    let from = call.builder.dtype(x);
    Ok(call.builder.map(&[x], |b| {
        let (x, low, high) = (b.operand(0), b.number(from, low), b.number(from, high));
        let x = b.binary(B::Maximum, x, low);
        let x = b.binary(B::Minimum, x, high);
        b.cast(dtype, x)
    })?)
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
    scaled(call, product, none, (&[factor], 0), (zero, dtype))
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
        rescaled.push(scaled(call, x, zero_of, (&[factor], 0), (zero, dtype))?);
    }
    Ok(call.builder.concat(&rescaled, axis)?)
}

/// `saturate(round(x / scale) + zero)`
fn quantized(call: &mut Call<'_, '_>, x: Value, scale: Value, zero: Value, dtype: DType) -> Result<Value, Fault> {
    let (low, high) = range(dtype)?;
    let wide = call.builder.dtype(x);
    if !wide.is_float() || wide != call.builder.dtype(scale) {
        let (x, scale) = (call.builder.ty(x), call.builder.ty(scale));
        return Err(Fault::operands(format!("{x} with the scale {scale} can't be quantised")));
    }
    Ok(call.builder.map(&[x, scale, zero], |b| {
        let (x, scale, zero) = (b.operand(0), b.operand(1), b.operand(2));
        let quotient = b.binary(B::Divide, x, scale);
        let rounded = b.unary(U::Round, quotient);
        let zero = b.cast(wide, zero);
        let moved = b.binary(B::Add, rounded, zero);
        let (low, high) = (b.number(wide, low), b.number(wide, high));
        let raised = b.binary(B::Maximum, moved, low);
        let limited = b.binary(B::Minimum, raised, high);
        b.cast(dtype, limited)
    })?)
}

fn quantize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, scale, zero) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let axis = quantized_axis(call, x, "axis")?;
    let dtype = call.dtype("out_dtype")?.unwrap_or(DType::I8);
    let (scale, zero) = (along(call, scale, x, axis)?, along(call, zero, x, axis)?);
    quantized(call, x, scale, zero, dtype)
}

/// `(x - zero) * scale`
fn real(call: &mut Call<'_, '_>, x: Value, scale: Value, zero: Value) -> Result<Value, Fault> {
    let dtype = call.builder.dtype(scale);
    if !dtype.is_float() || !call.builder.dtype(x).is_integer() {
        let (x, scale) = (call.builder.ty(x), call.builder.ty(scale));
        return Err(Fault::operands(format!("{x} with the scale {scale} isn't a quantised tensor")));
    }
    Ok(call.builder.map(&[x, scale, zero], |b| {
        let (x, scale, zero) = (b.operand(0), b.operand(1), b.operand(2));
        let (x, zero) = (b.cast(DType::I32, x), b.cast(DType::I32, zero));
        let whole = b.binary(B::Subtract, x, zero);
        let whole = b.cast(dtype, whole);
        b.binary(B::Multiply, whole, scale)
    })?)
}

fn dequantize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, scale, zero) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let axis = quantized_axis(call, x, "axis")?;
    let dtype = call.dtype("out_dtype")?.unwrap_or(DType::F32);
    let (scale, zero) = (along(call, scale, x, axis)?, along(call, zero, x, axis)?);
    let y = real(call, x, scale, zero)?;
    Ok(call.builder.cast(y, dtype)?)
}

/// A function of real numbers between two quantisations; without one, the softmax.
fn through_real(call: &mut Call<'_, '_>, function: Option<U>) -> Result<Value, Fault> {
    let (x, scale, zero) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let (out_scale, out_zero) = (call.input(3)?, call.input(4)?);
    let axis = quantized_axis(call, x, "axis")?;
    let dtype = call.builder.dtype(x);
    let x = real(call, x, scale, zero)?;
    let y = match function {
        Some(function) => call.builder.unary(function, x)?,
        None => call.builder.apply(mlc_ir::ops::Softmax { axis, logarithm: false }, &[x])?,
    };
    quantized(call, y, out_scale, out_zero, dtype)
}

/// `round(x * multiplier * 2^(shift - 31))` in 64 bits, halves upwards.
fn fixed_point_multiply(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (multiplier, shift) = (call.int_or("multiplier", 0)?, call.int_or("shift", 0)?);
    if !(-31..=30).contains(&shift) || multiplier.unsigned_abs() > 1 << 31 {
        return Err(Fault::parameter(format!("the multiplier {multiplier} with the shift {shift}")));
    }
    let dtype = call.builder.dtype(x);
    let (left, right) = (shift.max(0), 31 - shift.min(0));
    Ok(call.builder.map(&[x], |b| {
        let wide = DType::I64;
        let x = b.operand(0);
        let x = b.cast(wide, x);
        let number = |value: i64| mlc_ir::Literal::integer(wide, value);
        let (left, factor) = (b.literal(number(left)), b.literal(number(multiplier)));
        let (half, right) = (b.literal(number(1 << (right - 1))), b.literal(number(right)));
        let shifted = b.binary(B::ShiftLeft, x, left);
        let product = b.binary(B::Multiply, shifted, factor);
        let raised = b.binary(B::Add, product, half);
        let y = b.binary(B::ShiftRight, raised, right);
        b.cast(dtype, y)
    })?)
}
