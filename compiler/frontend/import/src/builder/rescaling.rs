//! Changes of scale of tensors of integers, and functions of their elements.

use super::Builder;
use super::quantization::FixedPoint;
use crate::fault::Fault;
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, Rounding, ScalarId};
use mlc_ir::{Attribute, DType, Literal, Tensor, TensorType, Value};

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

/// Where a part of the factors is.
#[derive(Clone, Copy)]
enum Part {
    /// It is one number.
    Shared(i64),
    /// It is an operand of the expression.
    Operand(u32),
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
        let (count, shape) = (factors.numbers.len(), self.shape(x));
        if count > 1 && shape.get(axis) != Some(&count) {
            return Err(Fault::operands(format!("{count} scales don't fit axis {axis} of {}", self.ty(x))));
        }
        let shifts = factors.right.iter().zip(&factors.left).map(|(right, left)| right - left);
        // Times zero any shift will do: one that others may have, to the right.
        let shifts: Vec<i64> =
            shifts.zip(&factors.numbers).map(|(shift, &number)| if number == 0 { 40 } else { shift }).collect();
        let fits = |list: &[i64]| list.iter().all(|&number| i32::try_from(number).is_ok());
        let is_narrow = self.dtype(x).size() <= 4 && self.dtype(x) != DType::U32 && fits(&factors.numbers);
        let wide = if is_narrow { DType::I32 } else { DType::I64 };
        // One number for all is a part of the expression, others are an operand.
        let mut operands = vec![x];
        let mut parts = [Part::Shared(0); 2];
        for (part, list) in parts.iter_mut().zip([&factors.numbers, &shifts]) {
            *part = match list.split_first() {
                None => return Err(Fault::operands("there are no scales")),
                Some((&first, rest)) if rest.iter().all(|&number| number == first) => Part::Shared(first),
                Some(_) => {
                    let numbers = Tensor::from_integers(TensorType::new(wide, [list.len()]), list.clone());
                    let numbers = self.constant("factor", Attribute::from_tensor(&numbers));
                    operands.push(self.along_axis(numbers, x, axis)?);
                    Part::Operand(operands.len() as u32 - 1)
                }
            };
        }
        Ok(self.map(&operands, |b| {
            let x = b.operand(0);
            let x = b.cast(wide, x);
            let [number, shift] = parts.map(|part| match part {
                Part::Shared(number) => b.literal(Literal::integer(wide, number)),
                Part::Operand(operand) => b.operand(operand),
            });
            let y = b.rescale(rounding, x, number, shift);
            stored.store(b, wide, y)
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

    /// `clamp(x + zero_point)` of an integer of type `wide`, as the data type.
    pub fn store(self, b: &mut ExpressionBuilder, wide: DType, x: ScalarId) -> ScalarId {
        let number = |b: &mut ExpressionBuilder, number: i64| b.literal(Literal::integer(wide, number));
        let mut y = x;
        if self.zero_point != 0 {
            let zero_point = number(b, self.zero_point);
            y = b.binary(B::Add, y, zero_point);
        }
        let (low, high) = (number(b, self.low), number(b, self.high));
        let y = b.binary(B::Maximum, y, low);
        let y = b.binary(B::Minimum, y, high);
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
