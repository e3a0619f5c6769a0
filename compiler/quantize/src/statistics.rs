//! [`Statistics`]: what calibration has seen of a tensor.

use mlc_ir::Tensor;

/// Bins of a histogram, half of them for negative numbers.
const BINS: usize = 8192;

/// How many numbers of a tensor there are in intervals of one width, a power of two that grows with the numbers. It is the same in
/// whatever order the tensors come. Zeros aren't counted: every range has them, and rectifiers make so many that they would hide the rest.
#[derive(Debug, Clone)]
pub struct Histogram {
    /// Bin `i` is from `(i - BINS / 2) * width` on.
    counts: Vec<u64>,
    /// Its logarithm to base 2.
    exponent: i32,
}

impl Histogram {
    fn new() -> Self {
        Histogram { counts: vec![0; BINS], exponent: -1022 }
    }

    /// Width of a bin.
    pub fn width(&self) -> f64 {
        2f64.powi(self.exponent)
    }

    /// How many numbers there are from `(index + low) * width` on, for the index of each.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of the first bin: where the first number above -`width * BINS / 2` lies.
    pub fn low(&self) -> i64 {
        -(BINS as i64 / 2)
    }

    /// Makes bins wide enough for numbers up to a magnitude.
    fn widen(&mut self, largest: f64) {
        let half = BINS as f64 / 2.0;
        if largest < half * self.width() {
            return;
        }
        let is_empty = self.counts.iter().all(|&count| count == 0);
        while largest >= half * self.width() {
            self.exponent += 1;
            if is_empty {
                continue;
            }
            // Bins 2i and 2i + 1 lie in bin i, counted from zero on.
            let mut merged = vec![0; BINS];
            for (index, &count) in self.counts.iter().enumerate() {
                merged[(index + BINS / 2) / 2] += count;
            }
            self.counts = merged;
        }
    }

    fn add(&mut self, numbers: &[f64]) {
        self.widen(numbers.iter().fold(0.0, |largest, number| number.abs().max(largest)));
        let width = self.width();
        for number in numbers.iter().filter(|number| **number != 0.0) {
            let bin = (number / width).floor() + BINS as f64 / 2.0;
            self.counts[(bin as usize).min(BINS - 1)] += 1;
        }
    }
}

/// What calibration has seen of a tensor, all runs together.
#[derive(Debug, Clone)]
pub struct Statistics {
    /// Smallest element.
    pub least: f64,
    /// Largest element.
    pub most: f64,
    /// How they are distributed.
    pub histogram: Histogram,
    /// The largest magnitude for each index of the last axis.
    pub channels: Vec<f64>,
    /// Sum of the tensors of all runs.
    sums: Vec<f64>,
    runs: usize,
}

impl Statistics {
    /// Of nothing yet.
    pub fn new() -> Self {
        Statistics {
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
            histogram: Histogram::new(),
            channels: Vec::new(),
            sums: Vec::new(),
            runs: 0,
        }
    }

    /// Takes a run's tensor into account; all of them have one shape. Returns whether all elements are finite.
    pub fn add(&mut self, tensor: &Tensor) -> bool {
        let numbers = tensor.to_floats();
        if numbers.iter().any(|number| !number.is_finite()) {
            return false;
        }
        let channels = tensor.shape().last().copied().unwrap_or(1).max(1);
        self.channels.resize(channels, 0.0);
        self.sums.resize(numbers.len(), 0.0);
        for (place, &number) in numbers.iter().enumerate() {
            self.least = self.least.min(number);
            self.most = self.most.max(number);
            let largest = &mut self.channels[place % channels];
            *largest = largest.max(number.abs());
            self.sums[place] += number;
        }
        self.histogram.add(&numbers);
        self.runs += 1;
        true
    }

    /// The mean of the tensors of all runs, element by element.
    pub fn mean(&self) -> Vec<f64> {
        self.sums.iter().map(|sum| sum / self.runs.max(1) as f64).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::{DType, TensorType};

    fn tensor(values: &[f64]) -> Tensor {
        Tensor::from_floats(TensorType::new(DType::F64, [values.len() / 2, 2]), values.to_vec())
    }

    #[test]
    fn the_order_of_runs_does_not_matter() {
        let runs = [[1.0, -2.0, 0.25, 100.0], [0.0, 1e-3, 7.5, -0.125], [-3e4, 5.0, 1.0, 1.0]];
        let of = |order: [usize; 3]| {
            let mut statistics = Statistics::new();
            order.iter().for_each(|&run| assert!(statistics.add(&tensor(&runs[run]))));
            statistics
        };
        let (one, other) = (of([0, 1, 2]), of([2, 0, 1]));
        assert_eq!(one.histogram.counts(), other.histogram.counts());
        assert_eq!((one.histogram.width(), one.least, one.most), (other.histogram.width(), -3e4, 100.0));
        assert_eq!(one.histogram.counts().iter().sum::<u64>(), 11);
        assert_eq!((one.channels.clone(), one.mean()[0]), (vec![3e4, 100.0], -29999.0 / 3.0));
    }

    #[test]
    fn numbers_lie_in_their_bins() {
        let mut statistics = Statistics::new();
        statistics.add(&tensor(&[0.5, -0.5, 1000.0, 3.0]));
        let Histogram { counts, .. } = &statistics.histogram;
        let width = statistics.histogram.width();
        for number in [0.5, -0.5, 1000.0, 3.0] {
            let place = (number / width).floor() as i64 - statistics.histogram.low();
            assert!(counts[place as usize] > 0, "{number}");
        }
        assert!(!statistics.add(&tensor(&[f64::NAN, 0.0])));
    }
}
