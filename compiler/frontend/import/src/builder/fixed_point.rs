//! Arithmetic with fixed-point numbers as the reference kernels of TensorFlow Lite do it: steps of scalar expressions over 64-bit
//! integers that hold 32-bit ones.
//!
//! A number of format Qn has 31 - n fractional bits: the integer is `value * 2^(31 - n)`.

use super::quantization::FixedPoint;
use crate::fault::Fault;
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, Rounding, ScalarId};
use mlc_ir::{DType, Literal};

/// Fractional bits of a number that stands for -1 to 1.
pub(super) const FRACTION: u32 = 31;

/// The largest number, which stands for 1 in Q0.
const LARGEST: i64 = i32::MAX as i64;

/// One factor: shift left, multiply by a number below 2^31, shift right by 31 bits and more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factor {
    /// The number.
    pub number: i64,
    /// Bits of the first shift.
    pub left: i64,
    /// Bits of the second shift, the 31 of the number included.
    pub right: i64,
}

impl Factor {
    /// The factor nearest to a real one.
    ///
    /// # Errors
    /// When it is negative, not finite, or 2^30 and more.
    pub fn of(factor: f64) -> Result<Self, Fault> {
        Ok(FixedPoint::of(&[factor])?.factor(0))
    }

    /// `x * factor` of an integer of 32 or 64 bits, rounded twice.
    pub fn multiply(self, b: &mut ExpressionBuilder, dtype: DType, x: ScalarId) -> ScalarId {
        let [number, shift] =
            [self.number, self.right - self.left].map(|part| b.literal(Literal::integer(dtype, part)));
        b.rescale(Rounding::Twice, x, number, shift)
    }

    /// The power of two that the number, as one below 1, is multiplied by.
    pub fn exponent(self) -> i64 {
        self.left + i64::from(FRACTION) - self.right
    }
}

impl FixedPoint {
    fn factor(&self, index: usize) -> Factor {
        Factor { number: self.numbers[index], left: self.left[index], right: self.right[index] }
    }

    /// The factors with numbers of 15 bits, by which sums of 64 bits are multiplied once.
    ///
    /// # Errors
    /// When a factor is 2^14 and more.
    pub fn narrowed(&self) -> Result<Self, Fault> {
        let narrow = |index: usize| {
            let factor = self.factor(index);
            let number = if factor.number < 0x7FFF_0000 { (factor.number + (1 << 15)) >> 16 } else { 0x7FFF };
            match 15 - factor.exponent() {
                right @ 1.. => Ok((number, 0, right as i32)),
                _ => Err(Fault::operands("the quotient of two scales is too large for sums of 64 bits")),
            }
        };
        (0..self.numbers.len()).map(narrow).collect()
    }
}

/// A step that is a whole number.
pub fn whole(b: &mut ExpressionBuilder, number: i64) -> ScalarId {
    b.literal(Literal::integer(DType::I64, number))
}

/// `x + number`.
pub fn plus(b: &mut ExpressionBuilder, x: ScalarId, number: i64) -> ScalarId {
    if number == 0 {
        return x;
    }
    let number = whole(b, number);
    b.binary(B::Add, x, number)
}

/// `max(low, min(x, high))`.
pub fn limited(b: &mut ExpressionBuilder, x: ScalarId, low: i64, high: i64) -> ScalarId {
    let (low, high) = (whole(b, low), whole(b, high));
    let x = b.binary(B::Maximum, x, low);
    b.binary(B::Minimum, x, high)
}

/// `x * 2^bits`.
pub fn shifted_left(b: &mut ExpressionBuilder, x: ScalarId, bits: i64) -> ScalarId {
    if bits == 0 {
        return x;
    }
    let bits = whole(b, bits);
    b.binary(B::ShiftLeft, x, bits)
}

/// `x * 2^bits` within 32 bits.
fn saturated_left(b: &mut ExpressionBuilder, x: ScalarId, bits: i64) -> ScalarId {
    let shifted = shifted_left(b, x, bits);
    limited(b, shifted, i32::MIN.into(), LARGEST)
}

/// `x * y / 2^bits` to the nearest number, halves upwards.
fn upper_product(b: &mut ExpressionBuilder, x: ScalarId, y: ScalarId, bits: u32) -> ScalarId {
    let product = b.binary(B::Multiply, x, y);
    let raised = plus(b, product, 1 << (bits - 1));
    let bits = whole(b, bits.into());
    b.binary(B::ShiftRight, raised, bits)
}

/// The product of two numbers of 31 fractional bits, to the nearest number, halves upwards.
pub fn product(b: &mut ExpressionBuilder, x: ScalarId, y: ScalarId) -> ScalarId {
    upper_product(b, x, y, FRACTION)
}

/// The product of two numbers of 15 fractional bits, likewise.
pub fn short_product(b: &mut ExpressionBuilder, x: ScalarId, y: ScalarId) -> ScalarId {
    upper_product(b, x, y, 15)
}

fn product_by(b: &mut ExpressionBuilder, x: ScalarId, number: i64) -> ScalarId {
    let number = whole(b, number);
    product(b, x, number)
}

/// `x / 2^bits` to the nearest number, halves away from zero; `bits` is a step of at least 0.
pub fn rounded_right_by(b: &mut ExpressionBuilder, x: ScalarId, bits: ScalarId) -> ScalarId {
    let (zero, one) = (whole(b, 0), whole(b, 1));
    let power = b.binary(B::ShiftLeft, one, bits);
    let half = b.binary(B::ShiftRight, power, one);
    let is_negative = b.binary(B::Less, x, zero);
    // Without a shift there is no half to go down from.
    let step = b.binary(B::Minimum, half, one);
    let down = b.select(is_negative, step, zero);
    let raised = b.binary(B::Add, x, half);
    let nudged = b.binary(B::Subtract, raised, down);
    b.binary(B::ShiftRight, nudged, bits)
}

/// `x / 2^bits` to the nearest number, halves away from zero.
pub fn rounded_right(b: &mut ExpressionBuilder, x: ScalarId, bits: i64) -> ScalarId {
    if bits == 0 {
        return x;
    }
    let bits = whole(b, bits);
    rounded_right_by(b, x, bits)
}

/// `x * factor`, rounded twice.
pub fn multiplied(b: &mut ExpressionBuilder, x: ScalarId, factor: Factor) -> ScalarId {
    factor.multiply(b, DType::I64, x)
}

/// `x / 2^15` of a product within 16 bits and so on: a number within 16 bits.
pub fn saturated_short(b: &mut ExpressionBuilder, x: ScalarId) -> ScalarId {
    limited(b, x, i16::MIN.into(), i16::MAX.into())
}

/// e^x in Q0, of a number x of at most 0 in Qn, n = `integer_bits`.
pub fn exponential(b: &mut ExpressionBuilder, x: ScalarId, integer_bits: u32) -> ScalarId {
    let fraction = FRACTION - integer_bits;
    let quarter = 1i64 << (fraction - 2);
    let mask = whole(b, quarter - 1);
    let low = b.binary(B::And, x, mask);
    // What is left of x is in -1/4..0.
    let near = plus(b, low, -quarter);
    let rest = b.binary(B::Subtract, near, x);
    let near = saturated_left(b, near, integer_bits.into());
    let mut y = exponential_near(b, near);
    for (place, number) in [1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242].into_iter().enumerate()
    {
        let bit = fraction - 2 + place as u32;
        if bit >= FRACTION {
            break;
        }
        let bit = whole(b, 1 << bit);
        let zero = whole(b, 0);
        let hit = b.binary(B::And, rest, bit);
        let is_hit = b.binary(B::NotEqual, hit, zero);
        let smaller = product_by(b, y, number);
        y = b.select(is_hit, smaller, y);
    }
    let (zero, one) = (whole(b, 0), whole(b, LARGEST));
    if integer_bits > 5 {
        let least = whole(b, -32 << fraction);
        let is_tiny = b.binary(B::Less, x, least);
        y = b.select(is_tiny, zero, y);
    }
    let is_zero = b.binary(B::Equal, x, zero);
    b.select(is_zero, one, y)
}

/// e^x of a number from -1/4 to 0, both in Q0: Taylor's polynomial around -1/8.
fn exponential_near(b: &mut ExpressionBuilder, x: ScalarId) -> ScalarId {
    let x = plus(b, x, 1 << 28);
    let square = product(b, x, x);
    let cube = product(b, square, x);
    let fourth = product(b, square, square);
    let fourth = rounded_right(b, fourth, 2);
    let sum = b.binary(B::Add, fourth, cube);
    let third = product_by(b, sum, 715827883);
    let sum = b.binary(B::Add, third, square);
    let tail = rounded_right(b, sum, 1);
    let sum = b.binary(B::Add, x, tail);
    let change = product_by(b, sum, 1895147668);
    plus(b, change, 1895147668)
}

/// Half of 1 + x in Q0, and 1 / (that) in Q2 by three steps of Newton's method, for x from 0 to 1 in Q0.
fn inverse(b: &mut ExpressionBuilder, x: ScalarId) -> ScalarId {
    let sum = plus(b, x, LARGEST);
    let half = rounded_right(b, sum, 1);
    let start = product_by(b, half, -1010580540);
    let mut y = plus(b, start, 1515870810);
    for _ in 0..3 {
        let found = product(b, half, y);
        let one = whole(b, 1 << 29);
        let missing = b.binary(B::Subtract, one, found);
        let change = product(b, y, missing);
        let change = saturated_left(b, change, 2);
        y = b.binary(B::Add, y, change);
    }
    y
}

/// 1 / (1 + x) in Q0, of a number from 0 to 1 in Q0.
pub fn inverse_of_successor(b: &mut ExpressionBuilder, x: ScalarId) -> ScalarId {
    let y = inverse(b, x);
    saturated_left(b, y, 1)
}

/// Whether x is negative, and -|x|.
fn negative_part(b: &mut ExpressionBuilder, x: ScalarId) -> (ScalarId, ScalarId) {
    let zero = whole(b, 0);
    let is_negative = b.binary(B::Less, x, zero);
    let opposite = b.binary(B::Subtract, zero, x);
    (is_negative, b.select(is_negative, x, opposite))
}

/// 1 / (1 + e^-x) in Q0, of a number in Q4.
pub fn logistic(b: &mut ExpressionBuilder, x: ScalarId) -> ScalarId {
    let (is_negative, below) = negative_part(b, x);
    let exponential = exponential(b, below, 4);
    let y = inverse_of_successor(b, exponential);
    let (one, zero, half) = (whole(b, LARGEST), whole(b, 0), whole(b, 1 << 30));
    let mirrored = b.binary(B::Subtract, one, y);
    let y = b.select(is_negative, mirrored, y);
    let is_zero = b.binary(B::Equal, x, zero);
    b.select(is_zero, half, y)
}

/// tanh(x) in Q0, of a number in Q4.
pub fn tanh(b: &mut ExpressionBuilder, x: ScalarId) -> ScalarId {
    let (is_negative, below) = negative_part(b, x);
    // The number is twice as large when it is read with one integer bit more.
    let exponential = exponential(b, below, 5);
    let y = inverse(b, exponential);
    let y = plus(b, y, -(1 << 29));
    let y = saturated_left(b, y, 2);
    let zero = whole(b, 0);
    let opposite = b.binary(B::Subtract, zero, y);
    let y = b.select(is_negative, opposite, y);
    let is_zero = b.binary(B::Equal, x, zero);
    b.select(is_zero, zero, y)
}

/// A number from 1 to 2^32 - 1 shifted left until it fills 32 bits, and the bits of that shift.
pub fn normalized(b: &mut ExpressionBuilder, x: ScalarId) -> (ScalarId, ScalarId) {
    let (mut x, mut count) = (x, whole(b, 0));
    for bits in [16, 8, 4, 2, 1] {
        let bound = whole(b, 1 << (32 - bits));
        let is_small = b.binary(B::Less, x, bound);
        let moved = shifted_left(b, x, bits);
        let counted = plus(b, count, bits);
        x = b.select(is_small, moved, x);
        count = b.select(is_small, counted, count);
    }
    (x, count)
}

/// 1 / sqrt(x) of an integer below 2^31, as a number of 31 bits and the bits, at least 0, by which a product with it is shifted right.
pub fn inverse_square_root(b: &mut ExpressionBuilder, x: ScalarId) -> (ScalarId, ScalarId) {
    let (one, two) = (whole(b, 1), whole(b, 2));
    let is_tiny = b.binary(B::LessEqual, x, one);
    // The steps below want a number of at least 1.
    let value = b.binary(B::Maximum, x, one);
    let bound = whole(b, 1 << 29);
    let is_large = b.binary(B::GreaterEqual, value, bound);
    let quarter = b.binary(B::ShiftRight, value, two);
    let value = b.select(is_large, quarter, value);
    let start = whole(b, 11);
    let more = plus(b, start, 1);
    let shift = b.select(is_large, more, start);
    let (_, zeros) = normalized(b, value);
    let pairs = plus(b, zeros, -1);
    let pairs = b.binary(B::ShiftRight, pairs, one);
    let pairs = plus(b, pairs, -1);
    let shift = b.binary(B::Subtract, shift, pairs);
    let bits = b.binary(B::Multiply, pairs, two);
    let value = b.binary(B::ShiftLeft, value, bits);
    let value = b.binary(B::ShiftRight, value, one);
    let half = rounded_right(b, value, 1);
    let mut y = whole(b, 1 << 28);
    for _ in 0..5 {
        let square = product(b, y, y);
        let cube = product(b, square, y);
        let cube = saturated_left(b, cube, 6);
        let missing = product(b, half, cube);
        let raised = product_by(b, y, 3 << 27);
        let difference = b.binary(B::Subtract, raised, missing);
        y = saturated_left(b, difference, 3);
    }
    let y = product_by(b, y, 1518500250);
    let zero = whole(b, 0);
    let negative = b.binary(B::Minimum, shift, zero);
    let left = b.binary(B::Subtract, zero, negative);
    let y = b.binary(B::ShiftLeft, y, left);
    let shift = b.binary(B::Maximum, shift, zero);
    let largest = whole(b, LARGEST);
    (b.select(is_tiny, largest, y), b.select(is_tiny, zero, shift))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::Builder;

    /// The value of an expression of one whole number.
    fn value(x: i64, body: impl FnOnce(&mut ExpressionBuilder, ScalarId) -> ScalarId) -> i64 {
        let mut builder = Builder::new("t");
        builder.compute_constants();
        let x = builder.literal(Literal::integer(DType::I64, x));
        let y = builder.map(&[x], |b| {
            let x = b.operand(0);
            body(b, x)
        });
        builder.graph().constant(y.unwrap()).unwrap().to_tensor().to_integers()[0]
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        for (x, bits, expected) in [(5, 1, 3), (-5, 1, -3), (4, 3, 1), (-4, 3, -1), (3, 3, 0), (-3, 3, 0), (-7, 0, -7)]
        {
            assert_eq!(value(x, |b, x| rounded_right(b, x, bits)), expected, "{x} / 2^{bits}");
            let by = |b: &mut ExpressionBuilder, x| {
                let bits = whole(b, bits);
                rounded_right_by(b, x, bits)
            };
            assert_eq!(value(x, by), expected, "{x} / 2^{bits}");
        }
        assert_eq!(value(-1 << 30, |b, x| product_by(b, x, 1)), 0);
        assert_eq!(value((-1 << 30) - 1, |b, x| product_by(b, x, 1)), -1);
        assert_eq!(value(1 << 30, |b, x| product_by(b, x, 1)), 1);
    }

    #[test]
    fn functions_are_near_the_real_ones() {
        let q4 = |x: f64| (x * f64::from(1 << 27)) as i64;
        let q0 = |y: i64| y as f64 / f64::from(1u32 << 31);
        for x in [-9.0, -3.3, -0.7, -0.01, 0.0, 0.2, 1.5, 7.9f64] {
            assert!((q0(value(q4(x), logistic)) - 1.0 / (1.0 + (-x).exp())).abs() < 1e-6, "logistic of {x}");
            assert!((q0(value(q4(x), tanh)) - x.tanh()).abs() < 1e-6, "tanh of {x}");
            if x <= 0.0 {
                assert!((q0(value(q4(x), |b, x| exponential(b, x, 4))) - x.exp()).abs() < 1e-6, "e^{x}");
            }
        }
    }

    #[test]
    fn inverse_square_roots_are_near_the_real_ones() {
        for x in [2, 3, 100, 65025, 1 << 20, (1 << 30) + 5] {
            let number = value(x, |b, x| inverse_square_root(b, x).0) as f64;
            let shift = value(x, |b, x| inverse_square_root(b, x).1) as i32;
            // A product with the number of 31 bits has 7 bits more in the reference kernels.
            let found = number / 2f64.powi(31 + shift);
            assert!((found * (x as f64).sqrt() - 1.0).abs() < 1e-4, "{x}: {found}");
        }
    }

    #[test]
    fn narrow_factors_have_fifteen_bits() {
        let narrow = FixedPoint::of(&[0.75, 0.999_999]).unwrap().narrowed().unwrap();
        assert_eq!((narrow.numbers, narrow.right), (vec![3 << 13, 0x7FFF], vec![15, 15]));
        assert!(FixedPoint::of(&[65536.0]).unwrap().narrowed().is_err());
        assert_eq!(Factor::of(0.25).unwrap().exponent(), -1);
    }
}
