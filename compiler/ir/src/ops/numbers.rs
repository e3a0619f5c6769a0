//! What the reference evaluations share: arithmetic over the two kinds of element, and walks over indices.

use crate::operator::OperatorError;
use crate::tensor::Tensor;
use crate::types::{DType, Shape, row_major_strides};

/// An element as the evaluator holds it: `f64`, or `i64` with wrapping arithmetic.
pub trait Number: Copy + PartialOrd {
    /// 0.
    const ZERO: Self;
    /// What no element is below.
    const LOWEST: Self;

    /// A whole number.
    fn of(value: i64) -> Self;

    /// The sum.
    fn add(self, other: Self) -> Self;

    /// The product.
    fn multiply(self, other: Self) -> Self;

    /// The larger one; NaN wins.
    fn larger(self, other: Self) -> Self;

    /// The smaller one; NaN wins.
    fn smaller(self, other: Self) -> Self;
}

impl Number for f64 {
    const ZERO: f64 = 0.0;
    const LOWEST: f64 = f64::NEG_INFINITY;

    fn of(value: i64) -> f64 {
        value as f64
    }

    fn add(self, other: f64) -> f64 {
        self + other
    }

    fn multiply(self, other: f64) -> f64 {
        self * other
    }

    fn larger(self, other: f64) -> f64 {
        if self.is_nan() || self > other { self } else { other }
    }

    fn smaller(self, other: f64) -> f64 {
        if self.is_nan() || self < other { self } else { other }
    }
}

impl Number for i64 {
    const ZERO: i64 = 0;
    const LOWEST: i64 = i64::MIN;

    fn of(value: i64) -> i64 {
        value
    }

    fn add(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }

    fn multiply(self, other: i64) -> i64 {
        self.wrapping_mul(other)
    }

    fn larger(self, other: i64) -> i64 {
        self.max(other)
    }

    fn smaller(self, other: i64) -> i64 {
        self.min(other)
    }
}

/// A number that orders as the integer `value` of a type does, and its own inverse: `u64` is held by its bits.
pub fn order_key(dtype: DType, value: i64) -> i64 {
    if dtype == DType::U64 { value ^ i64::MIN } else { value }
}

/// The place along an axis that an index of an integer type means; negative ones count from the end.
///
/// # Errors
/// When it is none of the axis's places.
pub fn resolve_index(index: i64, extent: usize, dtype: DType) -> Result<usize, OperatorError> {
    let from_end = index < 0 && dtype.is_signed();
    let place = if from_end { index.checked_add_unsigned(extent as u64) } else { Some(index) };
    let place = place.and_then(|place| usize::try_from(place).ok()).filter(|&place| place < extent);
    place.ok_or_else(|| OperatorError::Evaluation(format!("index {index} leaves an axis of {extent} elements")))
}

/// The smallest value of an integer type.
pub fn lowest_integer(dtype: DType) -> i64 {
    if dtype.is_signed() { i64::MIN >> (64 - 8 * dtype.size()) } else { 0 }
}

/// Checks the number of operands of an evaluation.
pub fn expect_values<'a, const N: usize>(operands: &[&'a Tensor]) -> Result<[&'a Tensor; N], OperatorError> {
    operands.try_into().map_err(|_| OperatorError::OperandCount { expected: N.to_string(), found: operands.len() })
}

/// The error for a float operand beside an integer operand.
pub fn mixed_kinds() -> OperatorError {
    OperatorError::types("floating-point and integer operands don't mix")
}

/// All indices of a shape, in row-major order.
pub fn indices(shape: &[usize]) -> impl Iterator<Item = Shape> + '_ {
    let count: usize = shape.iter().product();
    let mut next: Shape = shape.iter().map(|_| 0).collect();
    (0..count).map(move |_| {
        let current = next.clone();
        for axis in (0..shape.len()).rev() {
            next[axis] += 1;
            if next[axis] < shape[axis] {
                break;
            }
            next[axis] = 0;
        }
        current
    })
}

/// The sum of products of an index and strides.
pub fn dot(index: &[usize], strides: &[usize]) -> usize {
    index.iter().zip(strides).map(|(index, stride)| index * stride).sum()
}

/// For each index of the other axes, in row-major order, the flat places of the elements along `axes`.
pub fn groups<'a>(shape: &'a [usize], axes: &'a [usize]) -> impl Iterator<Item = Vec<usize>> + 'a {
    let strides = row_major_strides(shape);
    let select = |inside: bool| -> (Shape, Shape) {
        let chosen = (0..shape.len()).filter(|axis| axes.contains(axis) == inside);
        chosen.map(|axis| (shape[axis], strides[axis])).unzip()
    };
    let ((inner, inner_strides), (outer, outer_strides)) = (select(true), select(false));
    let bases: Vec<usize> = indices(&outer).map(|index| dot(&index, &outer_strides)).collect();
    let inner = if bases.is_empty() { Shape::from_slice(&[0]) } else { inner };
    let offsets: Vec<usize> = indices(&inner).map(|index| dot(&index, &inner_strides)).collect();
    bases.into_iter().map(move |base| offsets.iter().map(|offset| base + offset).collect())
}
