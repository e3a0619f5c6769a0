//! Quantised tensors: integers that stand for real numbers, `real = scale * (integer - zero_point)`.
//!
//! The arithmetic is spelled here for all formats; where they differ (what a parameter runs along, which rounding a change of
//! scale has) the format says so.

use super::Builder;
use crate::fault::Fault;
use mlc_ir::ops::{Map, ReduceFunction};
use mlc_ir::scalar::{self, BinaryFunction as B, Expression, UnaryFunction as U};
use mlc_ir::{DType, Literal, Value};

/// The integers of a quantised tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantizedType {
    /// What an element is stored as.
    pub dtype: DType,
    /// Bits of an element, when they are fewer than the data type's.
    pub bits: Option<usize>,
}

impl QuantizedType {
    /// Smallest and largest number.
    ///
    /// # Errors
    /// When the type isn't one of integers of up to 32 bits.
    pub fn range(self) -> Result<(f64, f64), Fault> {
        let whole = 8 * self.dtype.size();
        if !self.dtype.is_integer() || whole > 32 {
            return Err(Fault::operands(format!("numbers can't be quantised to {}", self.dtype)));
        }
        Ok(self.dtype.integer_range(self.bits.unwrap_or(whole)))
    }
}

impl From<DType> for QuantizedType {
    fn from(dtype: DType) -> Self {
        QuantizedType { dtype, bits: None }
    }
}

/// Zero point and type of a quantised result.
#[derive(Debug, Clone, Copy)]
pub struct QuantizedResult {
    /// It broadcasts to the result.
    pub zero_point: Value,
    /// Its integers.
    pub ty: QuantizedType,
}

/// Real numbers as integers, by what the numbers themselves give.
#[derive(Debug, Clone, Copy)]
pub struct DynamicallyQuantized {
    /// Bytes without a sign.
    pub integers: Value,
    /// One number.
    pub scale: Value,
    /// One byte.
    pub zero_point: Value,
}

/// Positive factors as 64-bit integers apply them: shift left, multiply by a number below 2^31, add a half, shift right. One for
/// a tensor, or one for each index of an axis.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedPoint {
    pub(super) left: Vec<i64>,
    pub(super) numbers: Vec<i64>,
    halves: Vec<i64>,
    pub(super) right: Vec<i64>,
}

impl FixedPoint {
    /// The factors nearest to real ones.
    ///
    /// # Errors
    /// When a factor is negative, not finite, or 2^30 and more.
    pub fn of(factors: &[f64]) -> Result<Self, Fault> {
        let pairs = factors.iter().map(|&factor| fixed_point(factor)).collect::<Result<Vec<_>, Fault>>()?;
        let parts = pairs.into_iter().map(|(number, exponent)| (number, exponent.max(0), 31 - exponent.min(0)));
        Ok(parts.collect())
    }

    /// One factor, `number * 2^(exponent - 31)`.
    ///
    /// # Errors
    /// When the number has more than 32 bits, or the exponent isn't from -31 to 30.
    pub fn of_parts(number: i64, exponent: i64) -> Result<Self, Fault> {
        if !(-31..=30).contains(&exponent) || number.unsigned_abs() > 1 << 31 {
            return Err(Fault::parameter(format!("the multiplier {number} with the shift {exponent}")));
        }
        let exponent = exponent as i32;
        Ok([(number, exponent.max(0), 31 - exponent.min(0))].into_iter().collect())
    }
}

impl FixedPoint {
    /// How far products are shifted to the right in all. Times zero any shift will do: one that others may have.
    pub(super) fn shifts(&self) -> Vec<i64> {
        let shifts = self.right.iter().zip(&self.left).map(|(right, left)| right - left);
        shifts.zip(&self.numbers).map(|(shift, &number)| if number == 0 { 40 } else { shift }).collect()
    }

    /// Whether the numbers have no more than 32 bits.
    pub(super) fn are_narrow(&self) -> bool {
        self.numbers.iter().all(|&number| i32::try_from(number).is_ok())
    }
}

impl FromIterator<(i64, i32, i32)> for FixedPoint {
    /// Of the number and both shifts of each factor.
    fn from_iter<T: IntoIterator<Item = (i64, i32, i32)>>(factors: T) -> Self {
        let factors: Vec<(i64, i32, i32)> = factors.into_iter().collect();
        FixedPoint {
            left: factors.iter().map(|&(_, left, _)| i64::from(left)).collect(),
            numbers: factors.iter().map(|&(number, _, _)| number).collect(),
            halves: factors.iter().map(|&(_, _, right)| 1 << (right - 1)).collect(),
            right: factors.iter().map(|&(_, _, right)| i64::from(right)).collect(),
        }
    }
}

/// A factor as a number below 2^31 and the power of two that it is multiplied by.
fn fixed_point(factor: f64) -> Result<(i64, i32), Fault> {
    scalar::fixed_point(factor).ok_or_else(|| {
        let reason = if factor >= 1.0 && factor.is_finite() { ", which is too large" } else { "" };
        Fault::operands(format!("the quotient of two scales is {factor}{reason}"))
    })
}

impl Builder {
    /// A tensor of one number, or of one for each index of an axis of `x`, so that it broadcasts to `x`.
    ///
    /// # Errors
    /// When it has another number of elements.
    pub fn along_axis(&mut self, parameter: Value, x: Value, axis: usize) -> Result<Value, Fault> {
        let (elements, shape) = (self.ty(parameter).elements(), self.shape(x));
        if elements == 1 {
            return Ok(self.reshape(parameter, &[])?);
        }
        if shape.get(axis) != Some(&elements) {
            let (parameter, x) = (self.ty(parameter), self.ty(x));
            return Err(Fault::operands(format!("{parameter} doesn't fit axis {axis} of {x}")));
        }
        let mut shape = vec![1; shape.len() - axis];
        shape[0] = elements;
        Ok(self.reshape(parameter, &shape)?)
    }

    /// `saturate(round(x / scale) + zero_point)`, halves to even; all broadcast. The quotient has the data type of both.
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn quantize(
        &mut self,
        x: Value,
        scale: Value,
        zero_point: Option<Value>,
        ty: QuantizedType,
    ) -> Result<Value, Fault> {
        if !self.dtype(x).is_float() || self.dtype(x) != self.dtype(scale) {
            let (x, scale) = (self.ty(x), self.ty(scale));
            return Err(Fault::operands(format!("{x} with the scale {scale} can't be quantised")));
        }
        let quotient = self.binary(B::Divide, x, scale)?;
        self.round_to_integers(quotient, zero_point, ty)
    }

    /// A tensor in bytes without a sign, by a scale and a zero point that its smallest and its largest number give, and zero.
    ///
    /// # Errors
    /// When it isn't one of real numbers.
    pub fn quantize_dynamically(&mut self, x: Value) -> Result<DynamicallyQuantized, Fault> {
        let axes: Vec<usize> = (0..self.rank(x)).collect();
        let low = self.reduce(ReduceFunction::Minimum, x, &axes, false)?;
        let low = self.binary_number(B::Minimum, low, 0.0)?;
        let high = self.reduce(ReduceFunction::Maximum, x, &axes, false)?;
        let high = self.binary_number(B::Maximum, high, 0.0)?;
        let distance = self.binary(B::Subtract, high, low)?;
        let scale = self.binary_number(B::Divide, distance, 255.0)?;
        let below = self.unary(U::Negate, low)?;
        let zero_point = self.quantize(below, scale, None, DType::U8.into())?;
        let integers = self.quantize(x, scale, Some(zero_point), DType::U8.into())?;
        Ok(DynamicallyQuantized { integers, scale, zero_point })
    }

    /// `saturate(round(x) + zero_point)`, halves to even; both broadcast.
    ///
    /// # Errors
    /// When the type isn't one of integers of up to 32 bits.
    pub fn round_to_integers(
        &mut self,
        x: Value,
        zero_point: Option<Value>,
        ty: QuantizedType,
    ) -> Result<Value, Fault> {
        let (low, high) = ty.range()?;
        // Whole numbers of 17 bits are exact from single precision on.
        let dtype = self.dtype(x);
        let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let operands: Vec<Value> = [x].into_iter().chain(zero_point).collect();
        Ok(self.map(&operands, |b| {
            let x = b.operand(0);
            let x = if dtype == wide { x } else { b.cast(wide, x) };
            let mut y = b.unary(U::Round, x);
            if zero_point.is_some() {
                let zero_point = b.operand(1);
                let zero_point = b.cast(wide, zero_point);
                y = b.binary(B::Add, y, zero_point);
            }
            let (low, high) = (b.number(wide, low), b.number(wide, high));
            let raised = b.binary(B::Maximum, y, low);
            let limited = b.binary(B::Minimum, raised, high);
            b.cast(ty.dtype, limited)
        })?)
    }

    /// `(x - zero_point) * scale`, of a float type; all broadcast.
    ///
    /// # Errors
    /// When `x` isn't one of integers of up to 32 bits, or the scale isn't a float.
    pub fn dequantize(
        &mut self,
        x: Value,
        scale: Value,
        zero_point: Option<Value>,
        dtype: DType,
    ) -> Result<Value, Fault> {
        let (stored, scale_dtype) = (self.dtype(x), self.dtype(scale));
        if !scale_dtype.is_float() || !stored.is_integer() || stored.size() > 4 {
            let (x, scale) = (self.ty(x), self.ty(scale));
            return Err(Fault::operands(format!("{x} with the scale {scale} isn't a quantised tensor")));
        }
        let wide = if scale_dtype == DType::F64 { DType::F64 } else { DType::F32 };
        let zero_point = zero_point.filter(|&value| !self.is_zero(value));
        // Differences of numbers of 16 bits are exact in single precision.
        let whole = stored.size() > 2 && zero_point.is_some();
        let operands: Vec<Value> = [x, scale].into_iter().chain(zero_point).collect();
        let expression = Expression::build(|b| {
            let (mut x, scale) = (b.operand(0), b.operand(1));
            if !whole {
                x = b.cast(wide, x);
            }
            if zero_point.is_some() {
                let zero_point = b.operand(2);
                let zero_point = if whole { zero_point } else { b.cast(wide, zero_point) };
                x = b.binary(B::Subtract, x, zero_point);
            }
            let x = if whole { b.cast(wide, x) } else { x };
            let scale = if scale_dtype == wide { scale } else { b.cast(wide, scale) };
            let real = b.binary(B::Multiply, x, scale);
            if dtype == wide { real } else { b.cast(dtype, real) }
        });
        // Which integers a constant comes from would no longer be known if it was computed.
        Ok(self.apply_uncomputed(Map { expression }, &operands)?)
    }

    /// Whether a value is a constant of zeros.
    pub(super) fn is_zero(&self, value: Value) -> bool {
        let known = self.graph().constant(value);
        known.is_some_and(|constant| constant.bytes().iter().all(|&byte| byte == 0))
    }

    /// The integers of a quantised tensor without their zero point, in 32 bits; the zero point broadcasts to them.
    ///
    /// # Errors
    /// When `x` isn't one of integers, or the zero point doesn't fit.
    pub fn centred(&mut self, x: Value, zero_point: Option<Value>) -> Result<Value, Fault> {
        let shape = self.shape(x);
        if !self.dtype(x).is_integer() {
            return Err(Fault::operands(format!("{} isn't a quantised tensor", self.ty(x))));
        }
        let wide = self.cast(x, DType::I32)?;
        let Some(zero_point) = zero_point.filter(|&value| !self.is_zero(value)) else { return Ok(wide) };
        let wide_zero = self.cast(zero_point, DType::I32)?;
        let difference = self.binary(B::Subtract, wide, wide_zero)?;
        if self.shape(difference) != shape {
            let (zero_point, x) = (self.ty(zero_point), self.ty(x));
            return Err(Fault::operands(format!("the zero point {zero_point} doesn't fit {x}")));
        }
        Ok(difference)
    }

    /// `round(x * factor)` of integers by one factor, computed in 64 bits, halves upwards.
    ///
    /// # Errors
    /// When `x` isn't one of integers.
    pub fn multiply_fixed_point(&mut self, x: Value, factor: &FixedPoint) -> Result<Value, Fault> {
        let dtype = self.dtype(x);
        let parts = [&factor.left, &factor.numbers, &factor.halves, &factor.right];
        let parts = parts.map(|list| Literal::integer(DType::I64, list.first().copied().unwrap_or(0)));
        Ok(self.map(&[x], |b| {
            let x = b.operand(0);
            let x = b.cast(DType::I64, x);
            let [left, number, half, right] = parts.map(|part| b.literal(part));
            let shifted = b.binary(B::ShiftLeft, x, left);
            let product = b.binary(B::Multiply, shifted, number);
            let raised = b.binary(B::Add, product, half);
            let y = b.binary(B::ShiftRight, raised, right);
            b.cast(dtype, y)
        })?)
    }

    /// Integers as ones of fewer bits, up to the ends of their range.
    ///
    /// # Errors
    /// When the type isn't one of integers of up to 32 bits.
    pub fn saturate(&mut self, x: Value, ty: QuantizedType) -> Result<Value, Fault> {
        let (low, high) = ty.range()?;
        let from = self.dtype(x);
        Ok(self.map(&[x], |b| {
            let (x, low, high) = (b.operand(0), b.number(from, low), b.number(from, high));
            let x = b.binary(B::Maximum, x, low);
            let x = b.binary(B::Minimum, x, high);
            b.cast(ty.dtype, x)
        })?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_are_numbers_of_31_bits_and_shifts() {
        let factors = FixedPoint::of(&[0.5, 3.0, 0.0, 2f64.powi(-40)]).unwrap();
        assert_eq!(factors.numbers, [1 << 30, 3 << 29, 0, 0]);
        assert_eq!((factors.left, factors.right), (vec![0, 2, 0, 0], vec![31, 31, 31, 31]));
        assert!(FixedPoint::of(&[f64::NAN]).is_err() && FixedPoint::of(&[2f64.powi(31)]).is_err());
        assert_eq!(FixedPoint::of_parts(1 << 30, -1).unwrap().right, [32]);
        assert!(FixedPoint::of_parts(1, 31).is_err());
    }

    #[test]
    fn ranges_follow_bits_and_sign() {
        assert_eq!(QuantizedType { dtype: DType::I8, bits: Some(4) }.range().unwrap(), (-8.0, 7.0));
        assert_eq!(QuantizedType::from(DType::U16).range().unwrap(), (0.0, 65535.0));
        assert!(QuantizedType::from(DType::I64).range().is_err() && QuantizedType::from(DType::Bool).range().is_err());
        assert!(QuantizedType::from(DType::F32).range().is_err());
    }
}
