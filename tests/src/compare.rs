//! Judging a tensor against a golden one.

use mlc_ir::{Tensor, Values};

/// How far a value may be from the golden one: `|a - b| <= absolute + relative * |b|`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tolerance {
    /// Allowed whatever the golden value is.
    pub absolute: f64,
    /// Allowed per unit of the golden value.
    pub relative: f64,
}

impl Tolerance {
    /// Equal values only.
    pub const EXACT: Tolerance = Tolerance { absolute: 0.0, relative: 0.0 };

    fn accepts(self, actual: f64, golden: f64) -> bool {
        actual == golden
            || (actual.is_nan() && golden.is_nan())
            || (actual - golden).abs() <= self.absolute + self.relative * golden.abs()
    }
}

/// Checks type, shape and every element; NaN equals NaN.
///
/// # Errors
/// A sentence that names the first element outside the tolerance and how many there are.
pub fn compare(actual: &Tensor, golden: &Tensor, tolerance: Tolerance) -> Result<(), String> {
    if actual.ty().dtype != golden.ty().dtype || actual.shape() != golden.shape() {
        return Err(format!("the result is {}, the golden one {}", actual.ty(), golden.ty()));
    }
    let wrong: Vec<usize> = match (actual.values(), golden.values()) {
        (Values::Integer(actual), Values::Integer(golden)) if tolerance == Tolerance::EXACT => {
            (0..golden.len()).filter(|&index| actual[index] != golden[index]).collect()
        }
        _ => {
            let (actual, golden) = (actual.to_floats(), golden.to_floats());
            (0..golden.len()).filter(|&index| !tolerance.accepts(actual[index], golden[index])).collect()
        }
    };
    let Some(&first) = wrong.first() else { return Ok(()) };
    let (actual, golden) = (actual.to_floats(), golden.to_floats());
    let worst = wrong.iter().map(|&index| (actual[index] - golden[index]).abs()).fold(0.0, f64::max);
    Err(format!(
        "{} of {} elements differ, the first is element {first}: {} instead of {} (largest difference {worst:.3e})",
        wrong.len(),
        golden.len(),
        actual[first],
        golden[first],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::{DType, TensorType};

    fn floats(values: &[f64]) -> Tensor {
        Tensor::from_floats(TensorType::new(DType::F32, [values.len()]), values.to_vec())
    }

    #[test]
    fn nan_equals_nan_and_infinity_itself() {
        let tensor = floats(&[f64::NAN, f64::INFINITY, -0.0]);
        assert_eq!(compare(&tensor, &floats(&[f64::NAN, f64::INFINITY, 0.0]), Tolerance::EXACT), Ok(()));
        assert!(compare(&tensor, &floats(&[0.0, f64::INFINITY, 0.0]), Tolerance::EXACT).is_err());
    }

    #[test]
    fn tolerance_grows_with_the_golden_value() {
        let tolerance = Tolerance { absolute: 0.0, relative: 0.01 };
        assert_eq!(compare(&floats(&[100.5]), &floats(&[100.0]), tolerance), Ok(()));
        let message = compare(&floats(&[0.0, 1.5]), &floats(&[0.0, 1.0]), tolerance).unwrap_err();
        assert!(message.starts_with("1 of 2 elements differ, the first is element 1: 1.5 instead of 1"), "{message}");
    }

    #[test]
    fn shapes_must_be_equal() {
        let reshaped = floats(&[1.0, 2.0]).with_shape(&[2, 1]);
        assert!(compare(&reshaped, &floats(&[1.0, 2.0]), Tolerance::EXACT).is_err());
    }
}
