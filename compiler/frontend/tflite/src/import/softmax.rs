//! Softmax of the last axis.

use super::call::{Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::Stored;
use mlc_import::builder::fixed_point::{
    Factor, exponential, inverse_of_successor, normalized, plus, product, rounded_right, rounded_right_by,
    shifted_left, whole,
};
use mlc_ir::ops::{ReduceFunction, Softmax};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("LOG_SOFTMAX", One(log_softmax)), ("SOFTMAX", One(softmax))];

fn last_axis(call: &Call<'_, '_>, x: Value) -> Result<usize, Fault> {
    call.axis(x, -1)
}

fn log_softmax(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    if call.is_quantized() {
        return Err(Fault::variant("the logarithm of a quantised softmax isn't supported"));
    }
    let x = call.input(0)?;
    let axis = last_axis(call, x)?;
    Ok(call.builder.apply(Softmax { axis, logarithm: true }, &[x])?)
}

fn softmax(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = last_axis(call, x)?;
    let beta = call.float_or("beta", 1.0)?;
    if call.is_quantized() && call.dtype_of(x).size() == 1 {
        return integers(call, x, axis, beta);
    }
    let real = call.real(0)?;
    let scaled = if beta == 1.0 { real } else { call.builder.binary_number(B::Multiply, real, beta)? };
    let y = call.builder.apply(Softmax { axis, logarithm: false }, &[scaled])?;
    if !call.is_quantized() {
        return Ok(y);
    }
    let (stored, result) = (call.stored()?, call.result_affine(0)?);
    Ok(call.builder.map(&[y], |b| {
        let (y, inverse) = (b.operand(0), b.number(DType::F32, (1.0 / result.scale).into()));
        let y = b.binary(B::Multiply, y, inverse);
        let y = super::quantization::nearest(b, y);
        let y = b.cast(DType::I64, y);
        stored.store(b, DType::I64, y)
    })?)
}

/// Exponentials of the distances from the largest number, in Q0, and their sum, with 12 integer bits.
fn integers(call: &mut Call<'_, '_>, x: Value, axis: usize, beta: f64) -> Result<Value, Fault> {
    const SUM_BITS: i64 = 12;
    let (own, stored) = (call.operand_affine(0)?, call.stored()?);
    let factor = (beta * f64::from(own.scale) * f64::from(1 << 26)).min(f64::from(i32::MAX));
    let factor = Factor::of(factor)?;
    if factor.exponent() < 0 {
        return Err(Fault::variant(format!("a softmax of numbers of the scale {} isn't supported", own.scale)));
    }
    let bits = factor.exponent();
    let least = -(31.0 * f64::from(1 << 26) / 2f64.powi(bits as i32)).floor() as i64;
    let largest = call.builder.reduce(ReduceFunction::Maximum, x, &[axis], true)?;
    let distances = call.builder.map(&[largest, x], |b| {
        let [largest, x] = [0, 1].map(|operand| {
            let operand = b.operand(operand);
            b.cast(DType::I16, operand)
        });
        let distance = b.binary(B::Subtract, largest, x);
        b.cast(DType::U8, distance)
    })?;
    let exponentials = call.builder.integer_function(distances, |b, distance| {
        let zero = whole(b, 0);
        let x = b.binary(B::Subtract, zero, distance);
        let least = whole(b, least);
        let is_near = b.binary(B::GreaterEqual, x, least);
        // What is farther away would leave 32 bits.
        let near = b.binary(B::Maximum, x, least);
        let shifted = shifted_left(b, near, bits);
        let number = whole(b, factor.number);
        let scaled = product(b, shifted, number);
        let y = exponential(b, scaled, 5);
        let y = b.select(is_near, y, zero);
        b.cast(DType::I32, y)
    })?;
    let summands = call.builder.integer_function(exponentials, |b, x| {
        let y = rounded_right(b, x, SUM_BITS);
        b.cast(DType::I32, y)
    })?;
    let sum = call.builder.reduce(ReduceFunction::Sum, summands, &[axis], true)?;
    let inverse = call.builder.map(&[sum], |b| {
        let sum = b.operand(0);
        let sum = b.cast(DType::I64, sum);
        let (filled, _) = normalized(b, sum);
        let fraction = plus(b, filled, -(1 << 31));
        let inverse = inverse_of_successor(b, fraction);
        b.cast(DType::I32, inverse)
    })?;
    Ok(call.builder.map(&[exponentials, inverse, sum], |b| {
        let [exponential, inverse, sum] = [0, 1, 2].map(|operand| {
            let operand = b.operand(operand);
            b.cast(DType::I64, operand)
        });
        let (_, zeros) = normalized(b, sum);
        let y = product(b, inverse, exponential);
        let width = 8 * stored.dtype.size() as i64;
        let most = whole(b, SUM_BITS + 31 - width);
        let bits = b.binary(B::Subtract, most, zeros);
        let y = rounded_right_by(b, y, bits);
        let offset = if stored.dtype == DType::U8 { 0 } else { i64::from(i8::MIN) };
        Stored { zero_point: offset, ..stored }.store(b, DType::I64, y)
    })?)
}
