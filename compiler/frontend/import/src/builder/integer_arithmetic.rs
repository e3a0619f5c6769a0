//! Arithmetic on the elements of quantised tensors, and functions of the real numbers that they stand for.

use super::Builder;
use super::fixed_point::{Factor, plus};
use super::rescaling::Stored;
use crate::fault::Fault;
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId, UnaryFunction as U};
use mlc_ir::{DType, Literal, Value};

/// What integers of 8 and 16 bits are computed in.
const WIDE: DType = DType::I32;

/// A tensor of integers that stand for the real numbers `scale * (integer - zero_point)`.
#[derive(Debug, Clone, Copy)]
pub struct Scaled {
    /// The integers as they are stored.
    pub integers: Value,
    /// What a step is worth.
    pub scale: f32,
    /// What stands for zero.
    pub zero_point: i64,
}

/// The nearest whole number of one in single precision, halves away from zero.
pub fn nearest(b: &mut ExpressionBuilder, x: ScalarId) -> ScalarId {
    let whole = b.unary(U::Truncate, x);
    // The difference is exact, where adding a half to x would round.
    let rest = b.binary(B::Subtract, x, whole);
    let distance = b.unary(U::Absolute, rest);
    let (half, zero) = (b.number(DType::F32, 0.5), b.number(DType::F32, 0.0));
    let is_far = b.binary(B::GreaterEqual, distance, half);
    let sign = b.unary(U::Sign, rest);
    let step = b.select(is_far, sign, zero);
    b.binary(B::Add, whole, step)
}

fn by(b: &mut ExpressionBuilder, function: B, x: ScalarId, number: i64) -> ScalarId {
    let number = b.literal(Literal::integer(WIDE, number));
    b.binary(function, x, number)
}

/// Both operands without their zero points.
fn centred(b: &mut ExpressionBuilder, zero_points: [i64; 2]) -> [ScalarId; 2] {
    [0, 1].map(|operand| {
        let x = b.operand(operand);
        let x = b.cast(WIDE, x);
        match zero_points[operand as usize] {
            0 => x,
            zero_point => by(b, B::Subtract, x, zero_point),
        }
    })
}

/// Two operands, their scales as real numbers, and twice the larger of these.
struct Pair {
    operands: [Value; 2],
    zero_points: [i64; 2],
    scales: [f64; 2],
    double: f64,
}

impl Pair {
    fn of(pair: [Scaled; 2]) -> Self {
        let scales = pair.map(|operand| f64::from(operand.scale));
        Pair {
            operands: pair.map(|operand| operand.integers),
            zero_points: pair.map(|operand| operand.zero_point),
            scales,
            double: 2.0 * scales[0].max(scales[1]),
        }
    }

    /// Both scales as parts of the double of the larger one.
    fn parts(&self) -> Result<[Factor; 2], Fault> {
        Ok([Factor::of(self.scales[0] / self.double)?, Factor::of(self.scales[1] / self.double)?])
    }
}

impl Builder {
    /// The sum or the difference of two quantised tensors, which broadcast: both are shifted left and brought to a common scale.
    ///
    /// # Errors
    /// When the quotient of two scales is out of range, or the shapes don't broadcast.
    pub fn add_integers(
        &mut self,
        function: B,
        operands: [Scaled; 2],
        scale: f32,
        stored: Stored,
    ) -> Result<Value, Fault> {
        let pair = Pair::of(operands);
        let bits = if self.dtype(pair.operands[0]).size() > 1 { 15 } else { 20 };
        let factors = pair.parts()?;
        let last = Factor::of(pair.double / (f64::from(1 << bits) * f64::from(scale)))?;
        Ok(self.map(&pair.operands, |b| {
            let operands = centred(b, pair.zero_points);
            let [x, y] = [0, 1].map(|index| {
                let shifted = by(b, B::ShiftLeft, operands[index], bits);
                factors[index].multiply(b, WIDE, shifted)
            });
            let sum = b.binary(function, x, y);
            let sum = last.multiply(b, WIDE, sum);
            stored.store(b, WIDE, sum)
        })?)
    }

    /// The product of two quantised tensors, which broadcast.
    ///
    /// # Errors
    /// When the quotient of the scales is out of range, or the shapes don't broadcast.
    pub fn multiply_integers(&mut self, operands: [Scaled; 2], scale: f32, stored: Stored) -> Result<Value, Fault> {
        let pair = Pair::of(operands);
        let factor = Factor::of(pair.scales[0] * pair.scales[1] / f64::from(scale))?;
        Ok(self.map(&pair.operands, |b| {
            let [x, y] = centred(b, pair.zero_points);
            let product = b.binary(B::Multiply, x, y);
            let product = factor.multiply(b, WIDE, product);
            stored.store(b, WIDE, product)
        })?)
    }

    /// The square of the difference of two quantised tensors, which broadcast.
    ///
    /// # Errors
    /// When the quotient of two scales is out of range, or the shapes don't broadcast.
    pub fn square_difference_of_integers(
        &mut self,
        operands: [Scaled; 2],
        scale: f32,
        stored: Stored,
    ) -> Result<Value, Fault> {
        const BITS: i64 = 7;
        let pair = Pair::of(operands);
        let factors = pair.parts()?;
        let last = Factor::of(pair.double * pair.double / (f64::from(1 << (2 * BITS)) * f64::from(scale)))?;
        Ok(self.map(&pair.operands, |b| {
            let operands = centred(b, pair.zero_points);
            let [x, y] = [0, 1].map(|index| {
                let shifted = by(b, B::ShiftLeft, operands[index], BITS);
                factors[index].multiply(b, WIDE, shifted)
            });
            let difference = b.binary(B::Subtract, x, y);
            let square = b.binary(B::Multiply, difference, difference);
            let square = last.multiply(b, WIDE, square);
            stored.store(b, WIDE, square)
        })?)
    }

    /// A function of the real numbers, in single precision, that the integers stand for; its results become integers again. Integers
    /// of 8 bits are looked up in a table.
    ///
    /// # Errors
    /// When the tensor doesn't hold integers.
    pub fn real_function(
        &mut self,
        x: Scaled,
        scale: f32,
        stored: Stored,
        function: impl FnOnce(&mut ExpressionBuilder, ScalarId) -> ScalarId,
    ) -> Result<Value, Fault> {
        let inverse = 1.0 / scale;
        self.integer_function(x.integers, |b, integer| {
            let centred = plus(b, integer, -x.zero_point);
            let centred = b.cast(DType::F32, centred);
            let scale = b.number(DType::F32, x.scale.into());
            let real = b.binary(B::Multiply, centred, scale);
            let y = function(b, real);
            let inverse = b.number(DType::F32, inverse.into());
            let y = b.binary(B::Multiply, y, inverse);
            let y = nearest(b, y);
            let y = b.cast(DType::I64, y);
            stored.store(b, DType::I64, y)
        })
    }
}
