//! Changes of scale of tensors of integers, and functions of their elements.

use super::Builder;
use super::quantization::{FixedPoint, QuantizedResult};
use crate::fault::Fault;
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, Rounding, ScalarId, UnaryFunction as U};
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

/// Where numbers in the middle of two integers are rounded to, when that is done once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halves {
    /// To the larger one.
    Upwards,
    /// To the one that is further from zero.
    Outwards,
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
        let is_narrow = self.dtype(x).size() <= 4 && self.dtype(x) != DType::U32 && factors.are_narrow();
        let wide = if is_narrow { DType::I32 } else { DType::I64 };
        let mut operands = vec![x];
        let parts = self.factor_parts(factors, (x, axis), wide, &mut operands)?;
        Ok(self.map(&operands, |b| {
            let x = b.operand(0);
            let x = b.cast(wide, x);
            let [number, shift] = parts.map(|part| part.read(b, wide));
            let y = b.rescale(rounding, x, number, shift);
            stored.store(b, wide, y)
        })?)
    }

    /// Multipliers and shifts of factors along an axis: one number for all is a part of the expression, others become an operand.
    fn factor_parts(
        &mut self,
        factors: &FixedPoint,
        (x, axis): (Value, usize),
        wide: DType,
        operands: &mut Vec<Value>,
    ) -> Result<[Part; 2], Fault> {
        let mut parts = [Part::Shared(0); 2];
        for (part, list) in parts.iter_mut().zip([&factors.numbers, &factors.shifts()]) {
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
        Ok(parts)
    }

    /// `saturate(zero_point + round((x - x_zero) * factor))` of integers, as in 64 bits. Factors run along an axis of `x`; zero
    /// points are one number, or one for each of its indices.
    ///
    /// # Errors
    /// When the types don't fit, or a factor is out of range.
    pub fn requantize(
        &mut self,
        x: Value,
        x_zero: Value,
        (factors, axis): (&[f64], usize),
        halves: Halves,
        result: QuantizedResult,
    ) -> Result<Value, Fault> {
        if !self.dtype(x).is_integer() {
            return Err(Fault::operands(format!("{} isn't a quantised tensor", self.ty(x))));
        }
        let is_unit = factors.iter().all(|&factor| factor == 1.0);
        let fixed = FixedPoint::of(factors)?;
        let largest = factors.iter().copied().fold(0.0, f64::max);
        let is_narrow = fixed.are_narrow() && self.fits_32_bits((x, x_zero), largest, halves, result)?;
        let wide = if is_narrow { DType::I32 } else { DType::I64 };
        let mut operands = vec![x];
        let [from, to] = [x_zero, result.zero_point].map(|zero| (!self.is_zero(zero)).then_some(zero));
        let mut zero_points = [None; 2];
        for (place, zero) in zero_points.iter_mut().zip([from, to]) {
            let Some(zero) = zero else { continue };
            let zero = self.along_axis(zero, x, axis)?;
            *place = Some(operands.len() as u32);
            operands.push(zero);
        }
        let parts = if is_unit { None } else { Some(self.factor_parts(&fixed, (x, axis), wide, &mut operands)?) };
        let (low, high) = result.ty.range()?;
        Ok(self.map(&operands, |b| {
            let x = b.operand(0);
            let mut y = b.cast(wide, x);
            let zero_points = zero_points.map(|place| {
                place.map(|place| {
                    let zero = b.operand(place);
                    b.cast(wide, zero)
                })
            });
            if let [Some(zero), _] = zero_points {
                y = b.binary(B::Subtract, y, zero);
            }
            if let Some(parts) = parts {
                let [number, shift] = parts.map(|part| part.read(b, wide));
                y = halves.rescale(b, wide, y, [number, shift]);
            }
            if let [_, Some(zero)] = zero_points {
                y = b.binary(B::Add, y, zero);
            }
            let (low, high) = (b.number(wide, low), b.number(wide, high));
            let y = b.binary(B::Maximum, y, low);
            let y = b.binary(B::Minimum, y, high);
            b.cast(result.ty.dtype, y)
        })?)
    }

    /// Whether nothing on the way from `x` to the result has more than 32 bits, whatever the integers are.
    fn fits_32_bits(
        &self,
        (x, x_zero): (Value, Value),
        factor: f64,
        halves: Halves,
        result: QuantizedResult,
    ) -> Result<bool, Fault> {
        let range = |dtype: DType| dtype.integer_range(8 * dtype.size());
        let (low, high) = range(self.dtype(x));
        let largest = |value: Value| {
            let numbers = self.graph().constant(value)?.to_tensor().to_integers();
            numbers.into_iter().map(|number| (number as f64).abs()).reduce(f64::max)
        };
        let (Some(from), Some(to)) = (largest(x_zero), largest(result.zero_point)) else { return Ok(false) };
        let furthest = high.max(-low) + from;
        let most = f64::from(i32::MAX);
        // The smallest number of 32 bits has no counterpart.
        let stays = halves == Halves::Upwards && from == 0.0 && self.dtype(x) == DType::I32;
        let is_near = furthest <= most || stays;
        Ok(is_near && furthest * factor + to + 1.0 < most && result.ty.range()?.1 <= most)
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
        let places = self.map(&[x], |b| place(b, low))?;
        Ok(self.gather(table, places, 0)?)
    }
}

/// Where the result of an integer is in a table that begins with that of `low`.
pub(super) fn place(b: &mut ExpressionBuilder, low: i64) -> ScalarId {
    let x = b.operand(0);
    let x = b.cast(DType::I32, x);
    let low = b.literal(Literal::integer(DType::I32, low));
    b.binary(B::Subtract, x, low)
}

impl Part {
    fn read(self, b: &mut ExpressionBuilder, wide: DType) -> ScalarId {
        match self {
            Part::Shared(number) => b.literal(Literal::integer(wide, number)),
            Part::Operand(operand) => b.operand(operand),
        }
    }
}

impl Halves {
    /// `round(x * number / 2^shift)`.
    fn rescale(self, b: &mut ExpressionBuilder, wide: DType, x: ScalarId, [number, shift]: [ScalarId; 2]) -> ScalarId {
        if self == Halves::Upwards {
            return b.rescale(Rounding::Once, x, number, shift);
        }
        let zero = b.literal(Literal::integer(wide, 0));
        let is_negative = b.binary(B::Less, x, zero);
        let distance = b.unary(U::Absolute, x);
        let distance = b.rescale(Rounding::Once, distance, number, shift);
        let negative = b.binary(B::Subtract, zero, distance);
        b.select(is_negative, negative, distance)
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
    use mlc_ir::scalar::ScalarNode;

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

    /// `saturate(round((x - x_zero) * factor) + zero)` as it is defined, in more bits than it takes.
    fn requantized(x: i64, x_zero: i64, factor: f64, halves: Halves, zero: i64) -> i64 {
        let fixed = FixedPoint::of(&[factor]).unwrap();
        let shift = fixed.right[0] - fixed.left[0];
        let product = i128::from(x - x_zero) * i128::from(fixed.numbers[0]);
        let half = 1i128 << (shift - 1);
        let rounded = match halves {
            Halves::Upwards => (product + half) >> shift,
            Halves::Outwards => product.signum() * ((product.abs() + half) >> shift),
        };
        (rounded + i128::from(zero)).clamp(-128, 127) as i64
    }

    #[test]
    fn requantising_is_exact_in_as_few_bits_as_it_takes() {
        let scattered = (0..400i64).map(|place| (place * 7919) % 997 - 500);
        let sums: Vec<i64> =
            [i64::from(i32::MIN), i64::from(i32::MIN) + 1, i64::from(i32::MAX)].into_iter().chain(scattered).collect();
        let bytes: Vec<i64> = (-128..128).collect();
        for (dtype, numbers) in [(DType::I32, &sums), (DType::I8, &bytes)] {
            for factor in [0.5, 0.3, 0.000_123, 0.999, 1.0, 1.7, 12.5] {
                for halves in [Halves::Upwards, Halves::Outwards] {
                    for x_zero in [0, 7] {
                        let mut builder = Builder::new("t");
                        builder.compute_constants();
                        let x = Tensor::from_integers(TensorType::new(dtype, [numbers.len()]), numbers.clone());
                        let x = builder.constant("x", Attribute::from_tensor(&x));
                        let zeros = [x_zero, -3].map(|zero| builder.literal(Literal::integer(DType::I32, zero)));
                        let result = QuantizedResult { zero_point: zeros[1], ty: DType::I8.into() };
                        let y = builder.requantize(x, zeros[0], (&[factor], 0), halves, result).unwrap();
                        let expected: Vec<i64> =
                            numbers.iter().map(|&x| requantized(x, x_zero, factor, halves, -3)).collect();
                        assert_eq!(integers(&builder, y), expected, "{dtype} {factor} {halves:?} {x_zero}");
                    }
                }
            }
        }
    }

    #[test]
    fn sums_of_layers_are_requantised_in_32_bits() {
        let is_wide = |dtype: DType, factor: f64, halves: Halves| {
            let mut builder = Builder::new("t");
            let x = builder.input("x", TensorType::new(dtype, [2]));
            let zero = builder.literal(Literal::integer(DType::I32, 0));
            let result = QuantizedResult { zero_point: zero, ty: DType::I8.into() };
            let y = builder.requantize(x, zero, (&[factor], 0), halves, result).unwrap();
            let graph = builder.graph();
            let expression = graph.node(y.node).op.expression(&graph.operand_types(y.node)).unwrap();
            expression.nodes().iter().any(|step| matches!(step, ScalarNode::Cast(DType::I64, _)))
        };
        assert!(!is_wide(DType::I32, 0.01, Halves::Upwards) && !is_wide(DType::I8, 3.0, Halves::Outwards));
        assert!(is_wide(DType::I32, 1.5, Halves::Upwards), "a result may have more than 32 bits");
        assert!(is_wide(DType::I32, 0.01, Halves::Outwards), "the smallest number has no counterpart");
        assert!(is_wide(DType::I64, 0.01, Halves::Upwards));
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
