//! How far two tensors are apart.

use crate::conditioning::Bound;
use mlc_ir::{DType, Tensor, TensorType, Values};
use serde::Serialize;

/// What counts as equal: `|actual - expected| <= absolute + relative * |expected|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Absolute part.
    pub absolute: f64,
    /// Part of the expected value's magnitude.
    pub relative: f64,
}

impl Tolerance {
    /// What reordering of floating-point operations, and nothing worse, may cost; integers must be equal.
    pub fn of(dtype: DType) -> Tolerance {
        match dtype {
            DType::F64 => Tolerance { absolute: 1e-9, relative: 1e-7 },
            DType::F32 => Tolerance { absolute: 1e-5, relative: 1e-4 },
            DType::F16 => Tolerance { absolute: 2e-3, relative: 1e-2 },
            DType::Bf16 => Tolerance { absolute: 1e-2, relative: 5e-2 },
            _ => Tolerance { absolute: 0.0, relative: 0.0 },
        }
    }
}

/// The distance of two tensors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Largest difference; infinite when a NaN or an infinity stands on one side only.
    pub max_absolute: f64,
    /// Largest number of representable values between two elements.
    pub max_ulps: u64,
    /// Elements outside the tolerance, and beyond what rounding alone may do to them.
    pub mismatches: usize,
    /// Elements outside the tolerance that rounding alone may move as far.
    pub ill_conditioned: usize,
    /// All elements.
    pub elements: usize,
    /// The worst element outside the tolerance.
    pub worst: Option<Mismatch>,
}

/// One element outside the tolerance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mismatch {
    /// Its index in every axis.
    pub index: Vec<usize>,
    /// The program's value.
    pub actual: f64,
    /// The expected value.
    pub expected: f64,
}

impl Comparison {
    /// Whether all elements are within the tolerance.
    pub fn passes(&self) -> bool {
        self.mismatches == 0
    }
}

/// Compares two tensors of one data type and shape.
///
/// # Errors
/// A message when the types differ.
pub fn compare(actual: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Result<Comparison, String> {
    compare_within(actual, expected, tolerance, &|_| Bound::Within(0.0))
}

/// Compares two tensors as [`compare`] does; an element outside the tolerance may still be within its bound.
///
/// # Errors
/// As [`compare`].
pub fn compare_within(
    actual: &Tensor,
    expected: &Tensor,
    tolerance: Tolerance,
    bound: &dyn Fn(usize) -> Bound,
) -> Result<Comparison, String> {
    let (left, right) = (actual.ty(), expected.ty());
    if left.dtype != right.dtype || left.shape != right.shape {
        return Err(format!("the output is {}{:?}, {}{:?} expected", left.dtype, left.shape, right.dtype, right.shape));
    }
    let elements: Vec<Element> = match (actual.values(), expected.values()) {
        (Values::Float(actual), Values::Float(expected)) => {
            actual.iter().zip(expected).map(|(&a, &e)| Element::of_floats(left.dtype, a, e)).collect()
        }
        (Values::Integer(actual), Values::Integer(expected)) => {
            actual.iter().zip(expected).map(|(&a, &e)| Element::of_integers(a, e)).collect()
        }
        _ => return Err("one output holds floating-point numbers, the other integers".into()),
    };
    let mut comparison = Comparison {
        max_absolute: 0.0,
        max_ulps: 0,
        mismatches: 0,
        ill_conditioned: 0,
        elements: elements.len(),
        worst: None,
    };
    let mut worst_distance = -1.0;
    for (position, element) in elements.iter().enumerate() {
        comparison.max_absolute = comparison.max_absolute.max(element.distance);
        comparison.max_ulps = comparison.max_ulps.max(element.ulps);
        let allowed = tolerance.absolute + tolerance.relative * element.expected.abs();
        // An infinite expectation would allow everything.
        if element.distance == 0.0 || (element.distance <= allowed && allowed.is_finite()) {
            continue;
        }
        if bound(position).allows(element.actual, element.expected) {
            comparison.ill_conditioned += 1;
            continue;
        }
        comparison.mismatches += 1;
        if element.distance > worst_distance {
            worst_distance = element.distance;
            let index = unravel(left, position);
            comparison.worst = Some(Mismatch { index, actual: element.actual, expected: element.expected });
        }
    }
    Ok(comparison)
}

struct Element {
    actual: f64,
    expected: f64,
    distance: f64,
    ulps: u64,
}

impl Element {
    fn of_floats(dtype: DType, actual: f64, expected: f64) -> Element {
        let equal = actual == expected || (actual.is_nan() && expected.is_nan());
        let distance = if equal {
            0.0
        } else if actual.is_finite() && expected.is_finite() {
            (actual - expected).abs()
        } else {
            f64::INFINITY
        };
        let ulps = if equal {
            0
        } else if distance.is_finite() {
            ordinal(dtype, actual).abs_diff(ordinal(dtype, expected))
        } else {
            u64::MAX
        };
        Element { actual, expected, distance, ulps }
    }

    fn of_integers(actual: i64, expected: i64) -> Element {
        let ulps = actual.abs_diff(expected);
        Element { actual: actual as f64, expected: expected as f64, distance: ulps as f64, ulps }
    }
}

/// A number's place among the numbers of its type: neighbours differ by 1, and both zeroes are 0.
fn ordinal(dtype: DType, value: f64) -> i64 {
    let (bits, sign) = match dtype {
        DType::F64 => (value.to_bits() as i64 & i64::MAX, value.is_sign_negative()),
        _ => {
            let bits = i64::from((value as f32).to_bits() & 0x7fff_ffff);
            // bf16 is the upper half of a single; f16 has 13 bits of fraction less, and its exponents are a part of a single's.
            let shift = match dtype {
                DType::Bf16 => 16,
                DType::F16 => 13,
                _ => 0,
            };
            (bits >> shift, value.is_sign_negative())
        }
    };
    if sign { -bits } else { bits }
}

fn unravel(ty: &TensorType, mut position: usize) -> Vec<usize> {
    let mut index: Vec<usize> = ty
        .shape
        .iter()
        .rev()
        .map(|&extent| {
            let along = position % extent.max(1);
            position /= extent.max(1);
            along
        })
        .collect();
    index.reverse();
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f64]) -> Tensor {
        Tensor::from_floats(TensorType::new(DType::F32, [values.len()]), values.to_vec())
    }

    #[test]
    fn equal_special_values_are_equal_and_others_are_infinitely_far() {
        let tolerance = Tolerance::of(DType::F32);
        let special = floats(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]);
        let same = compare(&special, &floats(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0]), tolerance).unwrap();
        assert!(same.passes() && same.max_ulps == 0);
        let other = compare(&floats(&[1.0, 2.0]), &floats(&[f64::INFINITY, 2.0]), tolerance).unwrap();
        assert_eq!((other.mismatches, other.max_absolute, other.max_ulps), (1, f64::INFINITY, u64::MAX));
        let other = compare(&floats(&[f64::NAN]), &floats(&[0.0]), tolerance).unwrap();
        assert_eq!(other.mismatches, 1);
    }

    #[test]
    fn distances_count_representable_values() {
        let next = f64::from(f32::from_bits(1.0f32.to_bits() + 3));
        let near = compare(&floats(&[next]), &floats(&[1.0]), Tolerance::of(DType::F32)).unwrap();
        assert_eq!((near.max_ulps, near.passes()), (3, true));
        let across = compare(&floats(&[1e-45]), &floats(&[-1e-45]), Tolerance::of(DType::F32)).unwrap();
        assert_eq!(across.max_ulps, 2);
    }

    #[test]
    fn the_worst_element_is_named() {
        let ty = TensorType::new(DType::I32, [2, 3]);
        let left = Tensor::from_integers(ty.clone(), vec![0, 1, 2, 3, 4, 5]);
        let right = Tensor::from_integers(ty, vec![0, 2, 2, 3, 9, 5]);
        let comparison = compare(&left, &right, Tolerance::of(DType::I32)).unwrap();
        assert_eq!(comparison.mismatches, 2);
        assert_eq!(comparison.worst, Some(Mismatch { index: vec![1, 1], actual: 4.0, expected: 9.0 }));
        assert!(compare(&left, &floats(&[1.0]), Tolerance::of(DType::I32)).is_err());
    }
}
