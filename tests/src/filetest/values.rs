//! Seeded inputs for a graph, and judging what a transformed graph or a program makes of them.

use crate::compare::{Tolerance, compare};
use crate::program::RUNS;
use mlc::functions::CFunctions;
use mlc_ir::{DType, Diagnostic, Generator, Graph, Tensor, Values, evaluate_runs_with, evaluate_with};
use std::fmt::Write as _;

/// How many inputs a transformation is judged by.
const SAMPLES: usize = 3;

/// Inputs of a graph and the outputs that the evaluator gives for them.
pub struct Sample {
    /// Inputs in order.
    pub inputs: Vec<Tensor>,
    /// Outputs in order.
    pub outputs: Vec<Tensor>,
}

/// Inputs for which the graph has values; random integers may be bad indices, so that some seeds are left out.
///
/// # Errors
/// When hardly any seed gives values.
pub fn samples(graph: &Graph) -> Result<Vec<Sample>, String> {
    let all: Vec<usize> = (0..graph.inputs().len()).collect();
    let functions = CFunctions::default();
    collect(graph, &all, |inputs| evaluate_with(graph, inputs, &functions))
}

/// What the caller of the generated code gives and gets: with states, the outputs are those of the last of [`RUNS`] runs.
///
/// # Errors
/// As [`samples`].
pub fn run_samples(graph: &Graph) -> Result<Vec<Sample>, String> {
    let runs = if graph.states.is_empty() { 1 } else { RUNS };
    let functions = CFunctions::default();
    collect(graph, &graph.open_inputs(), |inputs| {
        let mut outputs = evaluate_runs_with(graph, &vec![inputs.to_vec(); runs], &functions)?;
        Ok(outputs.pop().unwrap_or_default())
    })
}

fn collect(
    graph: &Graph,
    numbers: &[usize],
    outputs: impl Fn(&[Tensor]) -> Result<Vec<Tensor>, Diagnostic>,
) -> Result<Vec<Sample>, String> {
    let mut samples = Vec::new();
    let mut last = String::new();
    for seed in 0..200 {
        let mut generator = Generator::new(seed);
        let inputs = numbers.iter().map(|&number| generator.tensor(graph.ty(graph.inputs()[number].into())));
        let inputs: Vec<Tensor> = inputs.collect();
        match outputs(&inputs) {
            Ok(outputs) => samples.push(Sample { inputs, outputs }),
            Err(error) => last = error.to_string(),
        }
        if samples.len() == SAMPLES {
            return Ok(samples);
        }
    }
    Err(format!("no seeded input has values: {last}"))
}

/// Checks that outputs are the sample's, up to rounding.
///
/// # Errors
/// Which output differs, and how.
pub fn judge(what: &str, sample: &Sample, outputs: &[Tensor]) -> Result<(), String> {
    if outputs.len() != sample.outputs.len() {
        return Err(format!("{what}: {} outputs instead of {}", outputs.len(), sample.outputs.len()));
    }
    for (number, (actual, right)) in outputs.iter().zip(&sample.outputs).enumerate() {
        compare(actual, right, tolerance(right)).map_err(|error| format!("{what}, output {number}: {error}"))?;
    }
    Ok(())
}

/// What rounding in another order may change.
fn tolerance(tensor: &Tensor) -> Tolerance {
    let precision = match tensor.ty().dtype {
        DType::F64 => 1e-9,
        DType::F32 => 1e-4,
        DType::F16 => 1e-2,
        DType::Bf16 => 4e-2,
        _ => 0.0,
    };
    let largest =
        tensor.to_floats().into_iter().filter(|value| value.is_finite()).fold(0.0, |a: f64, b| a.max(b.abs()));
    Tolerance { absolute: precision * largest.min(1.0), relative: precision }
}

/// The start of every tensor, rounded so far that every way to compute it prints the same.
pub fn show(graph: &Graph, tensors: &[Tensor]) -> String {
    let mut text = String::new();
    let outputs = graph.open_outputs().into_iter().map(|number| &graph.outputs()[number]);
    for (output, tensor) in outputs.zip(tensors) {
        let values: Vec<String> = match tensor.values() {
            Values::Float(values) => values.iter().take(8).map(|&value| rounded(value)).collect(),
            Values::Integer(values) if tensor.ty().dtype == DType::U64 => {
                values.iter().take(8).map(|&value| (value as u64).to_string()).collect()
            }
            Values::Integer(values) => values.iter().take(8).map(i64::to_string).collect(),
        };
        let rest = if tensor.ty().elements() > 8 { ", …" } else { "" };
        let _ = writeln!(text, "{}: {} = [{}{rest}]", output.name, tensor.ty(), values.join(", "));
    }
    text
}

fn rounded(value: f64) -> String {
    let text = format!("{value:.3}");
    if text == "-0.000" { "0.000".into() } else { text }
}
