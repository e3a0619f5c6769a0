//! Changes of scale of tensors of integers, and functions of their elements.

use super::Builder;
use super::fixed_point::{FRACTION, limited, plus, product, rounded_right_by, whole};
use super::quantization::FixedPoint;
use crate::fault::Fault;
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId};
use mlc_ir::{Attribute, DType, Literal, Tensor, TensorType, Value};

/// How the product of an integer by a factor is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Twice, as the micro reference kernels do: the upper half of the product to the nearest number, halves upwards, and what
    /// is shifted out of that to the nearest one, halves away from zero.
    Twice,
    /// Once, halves upwards.
    Once,
}

/// What becomes of rescaled integers.
#[derive(Debug, Clone, Copy)]
pub struct Stored {
    /// Added to them.
    pub zero_point: i64,
    /// Smallest one.
    pub low: i64,
    /// Largest one.
    pub high: i64,
    /// What they are stored as.
    pub dtype: DType,
}

impl Builder {
    /// `clamp(round(x * factor) + zero_point)` of integers: one factor, or one for each index of the last axis.
    ///
    /// # Errors
    /// When `x` isn't one of integers, or the factors don't fit.
    pub fn rescale(
        &mut self,
        x: Value,
        factors: &FixedPoint,
        rounding: Rounding,
        stored: Stored,
    ) -> Result<Value, Fault> {
        if !self.dtype(x).is_integer() {
            return Err(Fault::operands(format!("{} isn't a quantised tensor", self.ty(x))));
        }
        let axis = self.rank(x).saturating_sub(1);
        let mut operands = vec![x];
        operands.extend(self.fixed_point_operands(factors, x, axis)?);
        let shared = |list: &[i64]| list.windows(2).all(|pair| pair[0] == pair[1]).then(|| list[0]);
        let numbers = [&factors.left, &factors.numbers, &factors.right].map(|list| shared(list));
        Ok(self.map(&operands, |b| {
            let x = b.operand(0);
            let x = b.cast(DType::I64, x);
            let [left, number, right] =
                [(1, numbers[0]), (2, numbers[1]), (4, numbers[2])].map(|(operand, shared)| match shared {
                    Some(number) => whole(b, number),
                    None => b.operand(operand),
                });
            let x = if numbers[0] == Some(0) { x } else { b.binary(B::ShiftLeft, x, left) };
            let y = match rounding {
                Rounding::Twice => {
                    let upper = product(b, x, number);
                    let fraction = whole(b, FRACTION.into());
                    let rest = b.binary(B::Subtract, right, fraction);
                    rounded_right_by(b, upper, rest)
                }
                Rounding::Once => {
                    let product = b.binary(B::Multiply, x, number);
                    let (one, before) = (whole(b, 1), plus(b, right, -1));
                    let half = b.binary(B::ShiftLeft, one, before);
                    let raised = b.binary(B::Add, product, half);
                    b.binary(B::ShiftRight, raised, right)
                }
            };
            stored.store(b, y)
        })?)
    }

    /// A function of each element of a tensor of integers, as the elements are in 64 bits. Those of 8 bits are looked up in a
    /// table of all results.
    ///
    /// # Errors
    /// When the tensor doesn't hold integers.
    pub fn integer_function(
        &mut self,
        x: Value,
        body: impl FnOnce(&mut ExpressionBuilder, ScalarId) -> ScalarId,
    ) -> Result<Value, Fault> {
        let dtype = self.dtype(x);
        if !dtype.is_integer() {
            return Err(Fault::operands(format!("{} isn't a quantised tensor", self.ty(x))));
        }
        let function = |b: &mut ExpressionBuilder| {
            let x = b.operand(0);
            let x = b.cast(DType::I64, x);
            body(b, x)
        };
        if dtype.size() > 1 {
            return Ok(self.map(&[x], function)?);
        }
        let low = dtype.integer_range(8).0 as i64;
        let all = Tensor::from_integers(TensorType::new(dtype, [256]), (low..low + 256).collect());
        let all = self.constant("integers", Attribute::from_tensor(&all));
        let table = self.map(&[all], function)?;
        let places = self.map(&[x], |b| {
            let x = b.operand(0);
            let x = b.cast(DType::I32, x);
            let low = b.literal(Literal::integer(DType::I32, low));
            b.binary(B::Subtract, x, low)
        })?;
        Ok(self.gather(table, places, 0)?)
    }
}

impl Stored {
    /// The range of a data type.
    pub fn of(dtype: DType, zero_point: i64) -> Self {
        let (low, high) = dtype.integer_range(8 * dtype.size());
        Stored { zero_point, low: low as i64, high: high as i64, dtype }
    }

    /// `clamp(x + zero_point)` as the data type.
    pub fn store(self, b: &mut ExpressionBuilder, x: ScalarId) -> ScalarId {
        let y = plus(b, x, self.zero_point);
        let y = limited(b, y, self.low, self.high);
        b.cast(self.dtype, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integers(builder: &Builder, value: Value) -> Vec<i64> {
        builder.graph().constant(value).unwrap().to_tensor().to_integers()
    }

    #[test]
    fn both_roundings_differ_where_a_half_is_made_by_the_first() {
        let mut builder = Builder::new("t");
        builder.compute_constants();
        let x = builder.indices(&[4], &[1, -1, 100, -300]).unwrap();
        let (factors, stored) = (FixedPoint::of(&[0.3]).unwrap(), Stored::of(DType::I8, 1));
        let twice = builder.rescale(x, &factors, Rounding::Twice, stored).unwrap();
        let once = builder.rescale(x, &factors, Rounding::Once, stored).unwrap();
        assert_eq!(integers(&builder, twice), [2, 0, 31, -89]);
        assert_eq!(integers(&builder, once), [1, 1, 31, -89]);
        assert_eq!(builder.dtype(twice), DType::I8);
    }

    #[test]
    fn factors_run_along_the_last_axis() {
        let mut builder = Builder::new("t");
        builder.compute_constants();
        let x = builder.indices(&[2, 2], &[10, 10, 1000, -20]).unwrap();
        let factors = FixedPoint::of(&[0.5, 3.0]).unwrap();
        let y = builder.rescale(x, &factors, Rounding::Twice, Stored::of(DType::I8, 0)).unwrap();
        assert_eq!(integers(&builder, y), [5, 30, 127, -60]);
        assert!(
            builder.rescale(x, &FixedPoint::of(&[1.0; 3]).unwrap(), Rounding::Once, Stored::of(DType::I8, 0)).is_err()
        );
    }

    #[test]
    fn functions_of_narrow_integers_are_tables() {
        let mut builder = Builder::new("t");
        builder.compute_constants();
        for dtype in [DType::I8, DType::U8, DType::I16] {
            let x = Tensor::from_integers(TensorType::new(dtype, [3]), vec![0, 3, 127]);
            let x = builder.constant("x", Attribute::from_tensor(&x));
            let y = builder.integer_function(x, |b, x| b.binary(B::Multiply, x, x)).unwrap();
            assert_eq!(integers(&builder, y), [0, 9, 16129]);
        }
        let x = builder.number(DType::F32, 1.0);
        assert!(builder.integer_function(x, |_, x| x).is_err());
    }
}
