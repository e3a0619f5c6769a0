//! The softmax of quantised tensors, as the micro reference kernels of TensorFlow Lite compute it.

use super::Builder;
use super::fixed_point::{
    Factor, exponential, inverse_of_successor, normalized, plus, product, rounded_right, rounded_right_by,
    shifted_left, whole,
};
use super::integer_arithmetic::Scaled;
use super::rescaling::Stored;
use crate::fault::Fault;
use mlc_ir::ops::ReduceFunction;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

impl Builder {
    /// The softmax of `beta * x` along an axis, of integers of 8 bits, in steps of a 256th: the zero point stands for 0, whatever
    /// `stored` says it is.
    ///
    /// # Errors
    /// When the scale is too small for the fixed-point numbers, or the axis isn't there.
    pub fn softmax_of_integers(&mut self, x: Scaled, axis: usize, beta: f64, stored: Stored) -> Result<Value, Fault> {
        // Exponentials of the distances from the largest number are in Q0, their sum has 12 integer bits.
        const SUM_BITS: i64 = 12;
        let factor = (beta * f64::from(x.scale) * f64::from(1 << 26)).min(f64::from(i32::MAX));
        let factor = Factor::of(factor)?;
        if factor.exponent() < 0 {
            return Err(Fault::variant(format!("a softmax of numbers of the scale {} isn't supported", x.scale)));
        }
        let bits = factor.exponent();
        let least = -(31.0 * f64::from(1 << 26) / 2f64.powi(bits as i32)).floor() as i64;
        let largest = self.reduce(ReduceFunction::Maximum, x.integers, &[axis], true)?;
        let distances = self.map(&[largest, x.integers], |b| {
            let [largest, x] = [0, 1].map(|operand| {
                let operand = b.operand(operand);
                b.cast(DType::I16, operand)
            });
            let distance = b.binary(B::Subtract, largest, x);
            b.cast(DType::U8, distance)
        })?;
        let exponentials = self.integer_function(distances, |b, distance| {
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
        let summands = self.integer_function(exponentials, |b, x| {
            let y = rounded_right(b, x, SUM_BITS);
            b.cast(DType::I32, y)
        })?;
        let sum = self.reduce(ReduceFunction::Sum, summands, &[axis], true)?;
        let inverse = self.map(&[sum], |b| {
            let sum = b.operand(0);
            let sum = b.cast(DType::I64, sum);
            let (filled, _) = normalized(b, sum);
            let fraction = plus(b, filled, -(1 << 31));
            let inverse = inverse_of_successor(b, fraction);
            b.cast(DType::I32, inverse)
        })?;
        Ok(self.map(&[exponentials, inverse, sum], |b| {
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
}
