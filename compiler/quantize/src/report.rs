//! [`Report`]: how far integers are from the real numbers that they stand for, layer by layer and at the end.

use mlc_ir::Tensor;
use serde::{Serialize, Serializer};
use std::fmt::Write as _;

/// How far tensors are from what they should be, all runs together.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Difference {
    /// Sum of the squares of what is expected.
    signal: f64,
    /// Sum of the squares of the differences.
    noise: f64,
    /// Sum of the squares of what is there.
    actual: f64,
    /// Sum of the products of both.
    product: f64,
    /// The largest difference.
    largest: f64,
}

/// What people want to know of a [`Difference`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Error {
    /// Signal to quantisation noise in dB: `10 log10(sum of squares / sum of squares of differences)`. `null` if there is no difference.
    #[serde(serialize_with = "finite")]
    pub sqnr_db: f64,
    /// Root of the quotient of both sums: 0.01 is 40 dB.
    #[serde(serialize_with = "finite")]
    pub relative: f64,
    /// The largest difference.
    pub largest: f64,
    /// Cosine of the angle between both.
    pub cosine: f64,
}

fn finite<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if number.is_finite() { serializer.serialize_f64(*number) } else { serializer.serialize_none() }
}

impl Difference {
    /// Takes a tensor into account.
    pub fn add(&mut self, actual: &Tensor, expected: &Tensor) {
        for (actual, expected) in actual.to_floats().into_iter().zip(expected.to_floats()) {
            let difference = actual - expected;
            self.signal += expected * expected;
            self.noise += difference * difference;
            self.actual += actual * actual;
            self.product += actual * expected;
            self.largest = self.largest.max(difference.abs());
        }
    }

    /// What it comes to.
    pub fn error(&self) -> Error {
        let cosine = match (self.signal == 0.0, self.actual == 0.0) {
            (true, true) => 1.0,
            (false, false) => self.product / (self.signal * self.actual).sqrt(),
            _ => 0.0,
        };
        let quotient = if self.noise == 0.0 { 0.0 } else { self.noise / self.signal };
        Error { sqnr_db: -10.0 * quotient.log10(), relative: quotient.sqrt(), largest: self.largest, cosine }
    }
}

/// A layer of the network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerReport {
    /// Its name, which `--keep` takes.
    pub name: String,
    /// Its operator.
    pub operator: String,
    /// What it adds to the error by itself: on integers of exact operands.
    pub own: Error,
    /// The error of its result in the quantised network.
    pub in_network: Error,
}

/// An output of the network.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputReport {
    /// Its name.
    pub name: String,
    /// Its error.
    #[serde(flatten)]
    pub error: Error,
    /// Rows along the last axis, of all runs.
    pub rows: usize,
    /// Rows whose largest element is where it should be.
    pub argmax_agrees: usize,
}

/// A layer of real numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FloatReport {
    /// Its name.
    pub name: String,
    /// Its operator.
    pub operator: String,
    /// Why it isn't quantised.
    pub reason: String,
}

/// How far integers are from the real numbers that they stand for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Runs of the calibration data, on which it was found out.
    pub runs: usize,
    /// Pairs of layers that were equalised.
    pub equalised: usize,
    /// The outputs.
    pub outputs: Vec<OutputReport>,
    /// The layers of integers, the one with the largest error of its own first.
    pub layers: Vec<LayerReport>,
    /// The layers of real numbers, in the order of computation.
    pub float: Vec<FloatReport>,
}

/// Counts rows and those whose argmax agrees.
pub fn rows(actual: &Tensor, expected: &Tensor) -> (usize, usize) {
    let length = expected.shape().last().copied().unwrap_or(1).max(1);
    let (actual, expected) = (actual.to_floats(), expected.to_floats());
    let pairs = || actual.chunks(length).zip(expected.chunks(length));
    let agrees = |(actual, expected): &(&[f64], &[f64])| {
        let most = actual.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let best = expected.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        actual.iter().zip(*expected).any(|(actual, expected)| *actual == most && *expected == best)
    };
    (pairs().count(), pairs().filter(agrees).count())
}

/// Characters of a name in the table.
const NAME: usize = 40;

impl Report {
    /// As a table for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "outputs, in {} runs:", self.runs);
        for OutputReport { name, error, rows, argmax_agrees } in &self.outputs {
            let _ = writeln!(
                text,
                "  {}: {}, relative error {:.5}, largest difference {:.6}, cosine {:.6}, argmax agrees in {argmax_agrees} of {rows}",
                shortened(name),
                decibels(error.sqnr_db),
                error.relative,
                error.largest,
                error.cosine,
            );
        }
        if self.equalised > 0 {
            let _ = writeln!(text, "equalised pairs of layers: {}", self.equalised);
        }
        let _ = writeln!(text, "layers of integers, the worst one first:");
        let _ = writeln!(
            text,
            "  {:<NAME$} {:<24} {:>10} {:>10} {:>12} {:>9}",
            "layer", "operator", "own", "in network", "largest", "cosine"
        );
        for LayerReport { name, operator, own, in_network } in &self.layers {
            let _ = writeln!(
                text,
                "  {:<NAME$} {operator:<24} {:>10} {:>10} {:>12.6} {:>9.6}",
                shortened(name),
                decibels(own.sqnr_db),
                decibels(in_network.sqnr_db),
                in_network.largest,
                in_network.cosine
            );
        }
        if !self.float.is_empty() {
            let _ = writeln!(text, "layers of real numbers:");
        }
        for FloatReport { name, operator, reason } in &self.float {
            let _ = writeln!(text, "  {:<NAME$} {operator:<24} {reason}", shortened(name));
        }
        text
    }
}

fn decibels(number: f64) -> String {
    if number.is_infinite() && number > 0.0 { "exact".into() } else { format!("{number:.1} dB") }
}

/// Names of some converters have hundreds of characters; the last ones tell them apart.
fn shortened(name: &str) -> String {
    let count = name.chars().count();
    if count <= NAME {
        return name.to_owned();
    }
    let end: String = name.chars().skip(count - NAME + 3).collect();
    format!("...{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::{DType, TensorType};

    fn tensor(values: &[f64]) -> Tensor {
        Tensor::from_floats(TensorType::new(DType::F32, [values.len() / 2, 2]), values.to_vec())
    }

    #[test]
    fn noise_is_told_in_decibels() {
        let mut difference = Difference::default();
        difference.add(&tensor(&[10.0, 0.0]), &tensor(&[10.0, 0.0]));
        assert_eq!(difference.error().sqnr_db, f64::INFINITY);
        difference.add(&tensor(&[0.0, 1.0]), &tensor(&[0.0, 0.0]));
        let error = difference.error();
        assert!((error.sqnr_db - 20.0).abs() < 1e-9 && (error.relative - 0.1).abs() < 1e-9, "{error:?}");
        assert_eq!(error.largest, 1.0);
        let mut opposite = Difference::default();
        opposite.add(&tensor(&[-1.0, 0.0]), &tensor(&[1.0, 0.0]));
        assert_eq!(opposite.error().cosine, -1.0);
    }

    #[test]
    fn rows_agree_where_a_largest_element_is_one() {
        assert_eq!(rows(&tensor(&[1.0, 2.0, 3.0, 3.0]), &tensor(&[5.0, 1.0, 1.0, 2.0])), (2, 1));
    }

    #[test]
    fn long_names_keep_their_end() {
        let name = "a".repeat(50) + "/conv";
        let short = shortened(&name);
        assert!(short.starts_with("...a") && short.ends_with("/conv") && short.chars().count() == NAME, "{short}");
    }
}
