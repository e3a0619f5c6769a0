//! [`Method`]: the range of real numbers that the integers of a tensor stand for, from what calibration has seen of it.

use crate::statistics::{Histogram, Statistics};
use mlc_ir::{Float, Quantization};

/// How the range of a tensor follows from what calibration has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// From the smallest to the largest number.
    #[default]
    MinMax,
    /// Without the outermost numbers: a ten-thousandth of all but zeros on either side.
    Percentile,
    /// The range whose 8-bit form has the distribution that is nearest to that of the numbers, by relative entropy.
    Entropy,
}

/// The part of all numbers that a percentile leaves out on either side.
const LEFT_OUT: f64 = 1e-4;

/// Steps of 8 bits without those of an extreme.
const LEVELS: usize = 256;

/// Ranges that the entropy is computed for: how many parts the whole range is cut into.
const CANDIDATES: usize = 128;

/// Least probability, so that no logarithm is infinite.
const LEAST: f64 = 1e-12;

impl Method {
    /// The range of a tensor.
    pub fn range(self, statistics: &Statistics) -> (f64, f64) {
        let whole = (statistics.least, statistics.most);
        match self {
            Method::MinMax => whole,
            Method::Percentile => within(percentile(&statistics.histogram), whole),
            Method::Entropy => within(entropy(&statistics.histogram, whole), whole),
        }
    }
}

fn within((low, high): (f64, f64), (least, most): (f64, f64)) -> (f64, f64) {
    (low.max(least), high.min(most))
}

/// The outermost bins that hold more than what is left out.
fn percentile(histogram: &Histogram) -> (f64, f64) {
    let total: u64 = histogram.counts().iter().sum();
    let allowed = (total as f64 * LEFT_OUT) as u64;
    let low = outermost(histogram.counts().iter().enumerate(), allowed) + histogram.low();
    let high = outermost(histogram.counts().iter().enumerate().rev(), allowed) + histogram.low() + 1;
    (low as f64 * histogram.width(), high as f64 * histogram.width())
}

/// The first bin with which more numbers are passed than are allowed to be.
fn outermost<'a>(mut counts: impl Iterator<Item = (usize, &'a u64)>, allowed: u64) -> i64 {
    let mut passed = 0;
    let found = counts.find(|(_, count)| {
        passed += **count;
        passed > allowed
    });
    found.map_or(0, |(index, _)| index as i64)
}

/// The best of the ranges that are a part of the whole one, with zero where it is.
fn entropy(histogram: &Histogram, (least, most): (f64, f64)) -> (f64, f64) {
    let bin = |number: f64| ((number / histogram.width()).floor() as i64 - histogram.low()) as usize;
    let (zero, first, last) = (bin(0.0), bin(least.min(0.0)), bin(most.max(0.0)));
    let mut best = (f64::INFINITY, (first, last + 1));
    for candidate in 1..=CANDIDATES {
        // The same number of bins on both sides, as far as there are so many.
        let reach = ((zero - first).max(last + 1 - zero) * candidate).div_ceil(CANDIDATES);
        let (start, end) = (first.max(zero.saturating_sub(reach)), (last + 1).min(zero + reach));
        // Fewer bins than levels have nothing to lose by being quantised.
        if end - start < LEVELS && candidate < CANDIDATES {
            continue;
        }
        let divergence = relative_entropy(histogram.counts(), start, end);
        if divergence < best.0 {
            best = (divergence, (start, end));
        }
    }
    let (start, end) = best.1;
    let number = |bin: usize| (bin as i64 + histogram.low()) as f64 * histogram.width();
    (number(start), number(end))
}

/// How far the distribution of all numbers, those outside moved to the ends, is from the one that its 8-bit form has.
fn relative_entropy(counts: &[u64], start: usize, end: usize) -> f64 {
    let inside = &counts[start..end];
    let (below, above): (u64, u64) = (counts[..start].iter().sum(), counts[end..].iter().sum());
    let mut actual: Vec<f64> = inside.iter().map(|&count| count as f64).collect();
    // What is cut off counts for the true distribution only.
    let mut approximate = vec![0.0; inside.len()];
    for level in 0..LEVELS {
        let bins = level * inside.len() / LEVELS..(level + 1) * inside.len() / LEVELS;
        let held = &inside[bins.clone()];
        let filled = held.iter().filter(|&&count| count > 0).count().max(1);
        let mean = held.iter().sum::<u64>() as f64 / filled as f64;
        for bin in bins {
            if inside[bin] > 0 {
                approximate[bin] = mean;
            }
        }
    }
    let last = actual.len() - 1;
    actual[0] += below as f64;
    actual[last] += above as f64;
    let (total, approximate_total) = (actual.iter().sum::<f64>(), approximate.iter().sum::<f64>());
    let terms = actual.iter().zip(&approximate).filter(|(actual, _)| **actual > 0.0);
    terms
        .map(|(actual, approximate)| {
            let (p, q) = (actual / total, (approximate / approximate_total.max(LEAST)).max(LEAST));
            p * (p / q).ln()
        })
        .sum()
}

/// Scale and zero point of 8-bit integers for a range, which is widened to have zero in it: that is one of the numbers that they stand
/// for. The scale is a single.
pub fn quantization((low, high): (f64, f64)) -> Quantization {
    let (low, high) = (low.min(0.0), high.max(0.0));
    let scale = ((high - low) / (LEVELS - 1) as f64) as f32;
    // No scale can be zero, and none may be too small for a reciprocal.
    let scale = if scale < f32::MIN_POSITIVE { 1.0 } else { scale };
    let zero_point = (i8::MIN as f64 - low / f64::from(scale)).round().clamp(i8::MIN.into(), i8::MAX.into());
    Quantization { scale: Float(scale.into()), zero_point: zero_point as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::{DType, Generator, Tensor, TensorType};

    /// Numbers of a bell curve, and one that is far away.
    fn statistics() -> Statistics {
        let mut generator = Generator::new(3);
        let mut numbers: Vec<f64> = (0..300_000).map(|_| (0..6).map(|_| generator.unit()).sum::<f64>() / 2.0).collect();
        numbers[77] = 100.0;
        let mut statistics = Statistics::new();
        statistics.add(&Tensor::from_floats(TensorType::new(DType::F32, [numbers.len()]), numbers));
        statistics
    }

    #[test]
    fn outliers_count_for_the_extremes_only() {
        let statistics = statistics();
        let (low, high) = Method::MinMax.range(&statistics);
        assert!(low > -3.0 && high == 100.0, "{low} {high}");
        for method in [Method::Percentile, Method::Entropy] {
            let (low, high) = method.range(&statistics);
            assert!((-3.0..-1.0).contains(&low) && (1.0..8.0).contains(&high), "{method:?}: {low} {high}");
        }
    }

    #[test]
    fn ranges_hold_what_was_seen_where_nothing_is_far_away() {
        let numbers: Vec<f64> = (0..5000).map(|number| f64::from(number) / 1000.0).collect();
        let mut statistics = Statistics::new();
        statistics.add(&Tensor::from_floats(TensorType::new(DType::F32, [numbers.len()]), numbers));
        for method in [Method::MinMax, Method::Percentile, Method::Entropy] {
            let (low, high) = method.range(&statistics);
            assert!(low == 0.0 && high > 4.9, "{method:?}: {low} {high}");
        }
    }

    #[test]
    fn zero_is_one_of_the_numbers() {
        let of = |low, high| {
            let Quantization { scale, zero_point } = quantization((low, high));
            (scale.0, zero_point)
        };
        assert_eq!(of(0.0, 255.0), (1.0, -128));
        assert_eq!(of(-255.0, -200.0), (1.0, 127));
        assert_eq!(of(-127.0, 128.0), (1.0, -1));
        assert_eq!(of(0.0, 0.0), (1.0, -128));
    }
}
