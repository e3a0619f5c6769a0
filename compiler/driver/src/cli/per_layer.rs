//! `mlc verify --per-layer`: the error of every kernel, and which one is off.

use super::arguments::Verify;
use super::layers::Seen;
use super::model::Model;
use super::subject::load_options;
use super::words::mismatch;
use crate::compare::{Comparison, Mismatch, Tolerance, compare_within};
use crate::conditioning::Bound;
use crate::functions::CFunctions;
use crate::layers::{Distance, Expected, Layers, ModelValues, in_shape};
use crate::pipeline::{self, Failure, Loaded};
use mlc_ir::{Code, DType, Diagnostic, Graph, Location, Tensor, TensorType};
use serde::Serialize;
use std::path::Path;

/// An error of a kernel's result.
#[derive(Debug, Serialize)]
struct LayerError {
    max_absolute: f64,
    max_ulps: u64,
    /// Root of the quotient of the sums of squares of differences and of what is expected.
    relative: f64,
}

impl LayerError {
    fn of(actual: &Tensor, expected: &Tensor) -> Result<LayerError, Diagnostic> {
        let found = compare_within(actual, expected, EQUAL, &|_| Bound::Loose).map_err(mismatch)?;
        let Comparison { max_absolute, max_ulps, .. } = found;
        Ok(LayerError { max_absolute, max_ulps, relative: Distance::of(actual, expected).relative })
    }
}

/// How far a kernel's result is from a value of another model.
#[derive(Debug, Serialize)]
struct Against {
    value: String,
    max_absolute: f64,
    relative: f64,
    /// What a step of integers is worth, in the scale that fits best.
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<f64>,
    off: bool,
}

/// What is known of a kernel's result.
#[derive(Debug, Serialize)]
pub(super) struct Layer {
    /// What the result is called.
    kernel: String,
    node: String,
    operator: String,
    dtype: &'static str,
    elements: usize,
    own: LayerError,
    accumulated: LayerError,
    /// Elements outside the tolerance on the kernel's own operands.
    mismatches: usize,
    #[serde(skip)]
    worst: Option<Mismatch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<Against>,
}

/// Evaluates another model on the same inputs.
fn reference(
    arguments: &Verify,
    path: &Path,
    graph: &Graph,
    inputs: &[Tensor],
    functions: &CFunctions,
) -> Result<ModelValues, Failure> {
    let model = Model { path: path.to_owned(), format: None, weights: Vec::new(), ..arguments.model.clone() };
    let Loaded { graph: mut other, aliases, .. } = pipeline::load(path, &load_options(&model, "default", Vec::new()))?;
    // It gets the same numbers.
    model.interface.apply_types(&mut other, &aliases)?;
    let numbers = other.open_inputs();
    if numbers.len() != inputs.len() {
        let message = format!("'{}' has {} inputs, the model has {}", path.display(), numbers.len(), inputs.len());
        return Err(mismatch(message).into());
    }
    let own = graph.open_inputs();
    let given = numbers.iter().zip(own.iter().zip(inputs)).map(|(&number, (own, input))| {
        let node = other.inputs()[number];
        let ty = other.ty(node.into());
        let real = match graph.quantization.inputs.get(own) {
            Some(quantization) if ty.dtype.is_float() && !input.ty().dtype.is_float() => {
                let real = |integer: &f64| quantization.scale.0 * (integer - quantization.zero_point as f64);
                let real = input.to_floats().iter().map(real).collect();
                Tensor::from_floats(TensorType::new(ty.dtype, &input.ty().shape), real)
            }
            _ => input.clone(),
        };
        let fits = in_shape(&real, &ty.shape).pop().filter(|input| input.ty().dtype == ty.dtype);
        fits.ok_or_else(|| {
            let name = &other.node(node).name;
            let what = format!("the input '{name}' of '{}' is {ty}, the model's is {}", path.display(), input.ty());
            mismatch(what).with_help("--against takes a model that computes the same from the same inputs")
        })
    });
    let given = given.collect::<Result<Vec<Tensor>, _>>()?;
    Ok(ModelValues::of(&other, &given, functions)?)
}

/// Compares the results of kernels with what the evaluator makes of `compiled`, the graph that they were generated of, and with values of
/// another model; names them as `imported`, the model itself, does.
pub(super) fn compare(
    arguments: &Verify,
    seen: &Seen<'_>,
    (imported, compiled): (&Graph, &Graph),
    inputs: &[Tensor],
    functions: &CFunctions,
) -> Result<Vec<Layer>, Failure> {
    let layers = Layers::of(compiled, inputs, seen.results, seen.tensors, functions)?;
    let values = ModelValues::of(imported, inputs, functions)?;
    let path = arguments.layers.against.as_deref();
    let reference = path.map(|path| reference(arguments, path, imported, inputs, functions)).transpose()?;
    let mut found = Vec::new();
    for (number, expected) in layers.expected.iter().enumerate() {
        let Some(expected) = expected else { continue };
        let (kernel, actual) = (seen.kernel(number), &seen.tensors[number]);
        let comparison = judged(arguments, &layers, expected, actual, functions)?;
        let against = reference.as_ref().and_then(|reference| against(reference, &kernel.origins, actual));
        found.push(Layer {
            kernel: seen.name(number),
            node: kernel.node.clone(),
            operator: kernel.operator.clone(),
            dtype: actual.ty().dtype.name(),
            elements: comparison.elements,
            own: LayerError::of(actual, &expected.own)?,
            accumulated: LayerError::of(actual, &expected.accumulated)?,
            mismatches: comparison.mismatches,
            worst: comparison.worst,
            value: values.find(&kernel.origins, &expected.accumulated).map(|near| near.name.to_owned()),
            against,
        });
    }
    if let Some(path) = path.filter(|_| found.iter().all(|layer| layer.against.is_none())) {
        let message = format!("no kernel stands for an operator of '{}'", path.display());
        return Err(mismatch(message).with_help("--against takes a model whose operators have the same names").into());
    }
    Ok(found)
}

/// What copies have to be.
const EQUAL: Tolerance = Tolerance { absolute: 0.0, relative: 0.0 };

/// Compares a kernel's result with what the evaluator makes of the kernel's operands. As with outputs, what is outside of the tolerance may
/// still be as far off as rounding moves it, unless the user gives a tolerance.
fn judged(
    arguments: &Verify,
    layers: &Layers<'_>,
    expected: &Expected,
    actual: &Tensor,
    functions: &CFunctions,
) -> Result<Comparison, Diagnostic> {
    let default = if expected.is_copy { EQUAL } else { Tolerance::of(actual.ty().dtype) };
    let tolerance = arguments.tolerance.or(default);
    let compared =
        |bound: &dyn Fn(usize) -> Bound| compare_within(actual, &expected.own, tolerance, bound).map_err(mismatch);
    let comparison = compared(&|_| Bound::STRICT)?;
    if comparison.passes() || expected.is_copy || !arguments.tolerance.is_default() {
        return Ok(comparison);
    }
    let bounds = layers.bounds(expected, functions)?;
    compared(&|element| bounds.get(element).copied().unwrap_or(Bound::STRICT))
}

/// The value of another model that is nearest to a kernel's result.
fn against(reference: &ModelValues, origins: &[String], actual: &Tensor) -> Option<Against> {
    let near = reference.nearest(origins, actual)?;
    let Distance { relative, largest, step } = near.distance;
    let off = relative > farthest(actual.ty().dtype);
    Some(Against { value: near.name.to_owned(), max_absolute: largest, relative, step, off })
}

/// The relative distance from which on a result isn't that of another model: ten times what an element may be off, and a tenth for integers.
fn farthest(dtype: DType) -> f64 {
    if dtype.is_float() { 10.0 * Tolerance::of(dtype).relative } else { 0.1 }
}

/// The kernels as a text, those with the largest errors of their own first, and what follows from them.
pub(super) fn describe(layers: &[Layer]) -> String {
    let mut order: Vec<&Layer> = layers.iter().collect();
    let worse = |left: f64, right: f64| right.total_cmp(&left);
    // What is the same keeps the order in which the kernels run.
    order.sort_by(|left, right| {
        let own = worse(left.own.relative, right.own.relative);
        own.then(worse(left.accumulated.relative, right.accumulated.relative))
    });
    let mut text = format!("{:<26} {:<26} kernel\n", "own error", "accumulated error");
    for layer in order {
        let Layer { kernel, operator, value, against, .. } = layer;
        let [own, accumulated] = [&layer.own, &layer.accumulated].map(|error| describe_error(layer, error));
        text += &format!("{own:<26} {accumulated:<26} {kernel} ({operator})");
        text += &value.as_ref().map_or(String::new(), |value| format!(": {value}"));
        text += &against.as_ref().map_or(String::new(), describe_against);
        text += "\n";
    }
    text + &verdict(layers)
}

/// `2.4e-7, 3 ulp` or `2 steps`.
fn describe_error(layer: &Layer, error: &LayerError) -> String {
    let LayerError { max_absolute, max_ulps, .. } = error;
    let is_float = DType::parse(layer.dtype).is_some_and(DType::is_float);
    match (is_float, max_ulps) {
        (_, 0) => "none".to_owned(),
        (true, _) if max_absolute.is_infinite() => "infinite".to_owned(),
        (true, _) => format!("{max_absolute:.3e}, {max_ulps} ulp"),
        (false, 1) => "1 step".to_owned(),
        (false, _) => format!("{max_ulps} steps"),
    }
}

fn describe_against(against: &Against) -> String {
    let Against { value, max_absolute, relative, step, off } = against;
    let steps = step.map_or(String::new(), |step| format!(", {:.1} steps of {step:.3e}", max_absolute / step));
    let off = if *off { ", off" } else { "" };
    format!("; from {value}: {relative:.2e} of its size, {max_absolute:.3e} at most{steps}{off}")
}

/// The first kernel that is off by itself, and the first that isn't the other model's.
fn verdict(layers: &[Layer]) -> String {
    let mut text = match layers.iter().find(|layer| layer.mismatches > 0) {
        Some(layer) => format!("the first kernel that is off by itself is {}\n", layer.kernel),
        None => "no kernel is off by itself\n".to_owned(),
    };
    let compared: Vec<&Layer> = layers.iter().filter(|layer| layer.against.is_some()).collect();
    if let Some(layer) = compared.iter().find(|layer| layer.is_off()) {
        text += &format!("the first kernel that is off the other model is {}\n", layer.kernel);
    } else if !compared.is_empty() {
        text += "no kernel is off the other model\n";
    }
    text
}

impl Layer {
    fn is_off(&self) -> bool {
        self.against.as_ref().is_some_and(|against| against.off)
    }
}

/// What to say of kernels that are off; nothing if none is.
pub(super) fn faults(layers: &[Layer], against: Option<&Path>) -> Vec<Diagnostic> {
    let fault = |message: String| Diagnostic::error(Code::OutputMismatch, Location::default(), message);
    let off: Vec<&Layer> = layers.iter().filter(|layer| layer.mismatches > 0).collect();
    let own = off.first().map(|Layer { kernel, mismatches, elements, worst, .. }| {
        let message = format!("kernel '{kernel}': {mismatches} of {elements} elements are off on its own operands");
        let diagnostic = match worst {
            Some(Mismatch { index, actual, expected }) => {
                fault(message).with_note(format!("at {index:?} it gives {actual:?}, {expected:?} expected"))
            }
            None => fault(message),
        };
        let further = off.len() - 1;
        let diagnostic =
            if further == 0 { diagnostic } else { diagnostic.with_note(format!("and {further} more kernels")) };
        diagnostic.with_help("this is a defect of mlc, or of a function that it calls: please report it")
    });
    let other = layers.iter().find(|layer| layer.is_off()).zip(against).map(|(layer, path)| {
        let relative = layer.against.as_ref().map_or(0.0, |against| against.relative);
        fault(format!(
            "kernel '{}': its result isn't that of '{}', by {relative:.2e} of its size",
            layer.kernel,
            path.display()
        ))
    });
    own.into_iter().chain(other).collect()
}
