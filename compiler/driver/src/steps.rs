//! [`Steps`]: how far outputs of quantised integers are apart, as people judge them.

use mlc_ir::{Quantization, Tensor, Values};
use serde::Serialize;

/// How far two tensors of integers are apart that stand for real numbers: in steps, the difference of two neighbouring integers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Steps {
    /// What a step is worth.
    pub scale: f64,
    /// The largest difference.
    pub largest: u64,
    /// Elements that differ by one step.
    pub off_by_one: usize,
    /// Elements that differ by more.
    pub further: usize,
    /// Cosine of the angle between the two, as vectors of real numbers; 1 when both are zero, 0 when one is.
    pub cosine: f64,
    /// Rows along the last axis.
    pub rows: usize,
    /// Rows whose largest element isn't a largest one of the expected row.
    pub argmax_moved: usize,
}

impl Steps {
    /// Of two tensors of one shape; nothing for floating-point numbers.
    pub fn of(actual: &Tensor, expected: &Tensor, quantization: Quantization) -> Option<Steps> {
        let (Values::Integer(left), Values::Integer(right)) = (actual.values(), expected.values()) else { return None };
        let differences = || left.iter().zip(right).map(|(left, right)| left.abs_diff(*right));
        let real = |&integer: &i64| quantization.scale.0 * (integer as f64 - quantization.zero_point as f64);
        let length = actual.ty().shape.last().copied().unwrap_or(1).max(1);
        let rows = || left.chunks(length).zip(right.chunks(length));
        Some(Steps {
            scale: quantization.scale.0,
            largest: differences().max().unwrap_or(0),
            off_by_one: differences().filter(|&steps| steps == 1).count(),
            further: differences().filter(|&steps| steps > 1).count(),
            cosine: cosine(left.iter().map(real), right.iter().map(real)),
            rows: rows().count(),
            argmax_moved: rows().filter(|(left, right)| argmax_moved(left, right)).count(),
        })
    }
}

fn cosine(left: impl Iterator<Item = f64>, right: impl Iterator<Item = f64>) -> f64 {
    let (mut product, mut of_left, mut of_right) = (0.0, 0.0, 0.0);
    for (left, right) in left.zip(right) {
        product += left * right;
        of_left += left * left;
        of_right += right * right;
    }
    match (of_left == 0.0, of_right == 0.0) {
        (true, true) => 1.0,
        (false, false) => product / (of_left * of_right).sqrt(),
        _ => 0.0,
    }
}

/// Whether the first largest element of one row is no largest element of the other.
fn argmax_moved(actual: &[i64], expected: &[i64]) -> bool {
    let largest = actual.iter().max();
    let place = actual.iter().position(|element| Some(element) == largest);
    place.is_some_and(|place| Some(&expected[place]) != expected.iter().max())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::{DType, Float, TensorType};

    fn integers(values: &[i64]) -> Tensor {
        Tensor::from_integers(TensorType::new(DType::I8, [2, values.len() / 2]), values.to_vec())
    }

    #[test]
    fn differences_are_counted_in_steps_and_rows() {
        let quantization = Quantization { scale: Float(0.5), zero_point: -3 };
        let steps = Steps::of(&integers(&[1, 5, -3, 2, 9, 9]), &integers(&[1, 4, -3, 5, 9, 8]), quantization).unwrap();
        let Steps { largest, off_by_one, further, rows, argmax_moved, .. } = steps;
        assert_eq!((largest, off_by_one, further, rows, argmax_moved), (3, 2, 1, 2, 0));
        // (2, 4, 0, 2.5, 6, 6) and (2, 3.5, 0, 4, 6, 5.5).
        assert!((steps.cosine - 97.0 / (98.25f64 * 98.5).sqrt()).abs() < 1e-12, "{}", steps.cosine);
        let moved = Steps::of(&integers(&[1, 2, 3, 4]), &integers(&[2, 1, 3, 4]), quantization).unwrap();
        assert_eq!(moved.argmax_moved, 1);
    }

    #[test]
    fn what_is_zero_points_the_same_way_as_itself_only() {
        let quantization = Quantization { scale: Float(1.0), zero_point: 0 };
        let (zero, other) = (integers(&[0, 0]), integers(&[0, 1]));
        assert_eq!(Steps::of(&zero, &zero, quantization).unwrap().cosine, 1.0);
        assert_eq!(Steps::of(&zero, &other, quantization).unwrap().cosine, 0.0);
        let floats = Tensor::from_floats(TensorType::new(DType::F32, [1]), vec![1.0]);
        assert_eq!(Steps::of(&floats, &floats, quantization), None);
    }
}
