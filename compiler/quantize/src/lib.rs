//! Post-training quantisation: a graph of integers of 8 bits from a graph of singles and calibration data, in the operators that importers
//! of quantised models use, so that every kernel for these is one for it.
//!
//! [`quantize`] prepares the graph ([`prepare`]), finds its [`layers`], runs it on the data to see what its tensors are like
//! ([`statistics`], [`range`]), and builds the graph anew with layers of integers ([`convert`]). What an operator's form of integers is, it
//! says itself ([`mlc_ir::IntegerForm`]). Weights have a scale for each channel and no zero point, other tensors one of each.
//!
//! Promises: the same graph and data give the same graph and report everywhere. Never: reads files, knows model formats or C.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod annotated;
pub mod convert;
mod correct;
mod equalise;
mod kernels;
pub mod layers;
mod measure;
mod plan;
mod prepare;
mod range;
pub mod report;
mod search;
mod select;
mod statistics;
#[cfg(test)]
mod tests;
mod weights;

pub use annotated::{Annotated, StoredConstant};
pub use convert::Interface;
pub use prepare::prepare;
pub use range::Method;
pub use report::Report;

use layers::Layer;
use mlc_ir::{Code, Diagnostic, Graph, Location, OperatorError, Tensor};
use plan::{Plan, Seen};
use report::FloatReport;
use std::collections::BTreeSet;

/// How a model is quantised.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// How ranges follow from what calibration has seen.
    pub method: Method,
    /// Whether the channels between two layers are evened out first.
    pub equalise: bool,
    /// Whether biases make up for the mean error of rounded weights.
    pub bias_correction: bool,
    /// Layers that keep real numbers.
    pub keep: Vec<String>,
    /// The largest relative error of an output: as many of the worst layers keep real numbers as that takes.
    pub max_error: Option<f64>,
    /// What the inputs and outputs are.
    pub interface: Interface,
}

/// A quantised model.
#[derive(Debug, Clone)]
pub struct Quantized {
    /// The graph of integers.
    pub graph: Graph,
    /// How far it is from the one of real numbers.
    pub report: Report,
    /// What isn't quantised, and why.
    pub notes: Vec<Diagnostic>,
    /// The graph of real numbers, and what of it became integers.
    pub annotated: Annotated,
}

/// Quantises a graph by its inputs of several runs, each in the order of [`Graph::inputs`].
///
/// # Errors
/// When the graph keeps states or exchanges messages, a name isn't a layer's, nothing can be quantised, the evaluator can't run it, or
/// no choice of layers keeps to the error asked for.
pub fn quantize(graph: &Graph, runs: &[Vec<Tensor>], options: &Options) -> Result<Quantized, Vec<Diagnostic>> {
    check(graph)?;
    let model = Model::new(graph, runs, options)?;
    let kept = select::named(&model.graph, &model.layers, &options.keep)?;
    let chosen = match options.max_error {
        Some(most) => search::within(&model, &kept, most)?,
        None => model.quantized(&kept)?,
    };
    let mut float = model.refused.clone();
    for (result, fault) in &chosen.conversion.refused {
        if let Some(layer) = model.layers.iter().find(|layer| layer.result == *result) {
            float.push(model.float(layer, fault.message.clone()));
        }
    }
    let notes = float.iter().map(note).collect();
    for (number, layer) in model.layers.iter().enumerate() {
        let is_refused = chosen.conversion.refused.iter().any(|(result, _)| *result == layer.result);
        if is_refused || chosen.conversion.results.contains_key(&layer.result) {
            continue;
        }
        let reason = match (kept.contains(&number), chosen.kept.contains(&number)) {
            (true, _) => "kept by name",
            (_, true) => "kept for the sake of the error",
            _ => "it isn't connected with a layer of products of integers",
        };
        float.push(model.float(layer, reason.to_owned()));
    }
    let report = model.report(&chosen, float).map_err(one)?;
    let annotated = model.annotated(&chosen);
    Ok(Quantized { graph: chosen.conversion.graph, report, notes, annotated })
}

fn check(graph: &Graph) -> Result<(), Vec<Diagnostic>> {
    let refused = |what: &str| {
        let message = format!("a model that {what} can't be quantised");
        Err(vec![Diagnostic::error(Code::VariantUnsupported, Location::default(), message)])
    };
    if !graph.states.is_empty() {
        return refused("keeps states from run to run");
    }
    if graph.distribution.is_some() {
        return refused("is one of several ranks");
    }
    Ok(())
}

fn note(float: &FloatReport) -> Diagnostic {
    let location = Location::default().at_operator(&*float.operator, &*float.name);
    let message = format!("the layer stays in floating point: {}", float.reason);
    Diagnostic::note(Code::LayerInFloat, location, message)
}

/// What a defect of an operator is told as.
fn defect(error: OperatorError) -> Vec<Diagnostic> {
    one(Diagnostic::error(Code::InvalidGraph, Location::default(), error.to_string()))
}

/// A list of one.
fn one(fault: Diagnostic) -> Vec<Diagnostic> {
    vec![fault]
}

/// A prepared model, and what calibration has seen of it.
struct Model<'a> {
    graph: Graph,
    layers: Vec<Layer>,
    refused: Vec<FloatReport>,
    seen: Seen,
    runs: &'a [Vec<Tensor>],
    options: &'a Options,
    equalised: usize,
}

/// A choice of layers that keep real numbers, and what comes of it.
struct Chosen {
    kept: BTreeSet<usize>,
    plan: Plan,
    conversion: convert::Conversion,
}

impl<'a> Model<'a> {
    fn new(graph: &Graph, runs: &'a [Vec<Tensor>], options: &'a Options) -> Result<Self, Vec<Diagnostic>> {
        let mut graph = prepare(graph).map_err(one)?;
        let (mut layers, mut refused) = layers::find(&graph);
        let mut seen = plan::calibrate(&graph, &layers, runs).map_err(one)?;
        let mut equalised = 0;
        if options.equalise {
            equalised = equalise::equalise(&mut graph, &layers, &seen).map_err(defect)?;
            graph.remove_dead();
            (layers, refused) = layers::find(&graph);
            seen = plan::calibrate(&graph, &layers, runs).map_err(one)?;
        }
        if layers.is_empty() {
            let message = "the model has nothing that can be quantised";
            return Err(vec![Diagnostic::error(Code::VariantUnsupported, Location::default(), message)]);
        }
        let float = |refused: layers::Refused| {
            let node = graph.node(refused.node);
            FloatReport { name: node.name.to_string(), operator: node.op.name().to_owned(), reason: refused.reason }
        };
        let refused = refused.into_iter().map(float).collect();
        Ok(Model { graph, layers, refused, seen, runs, options, equalised })
    }

    /// The model with all layers quantised but those that are kept from it.
    fn quantized(&self, kept: &BTreeSet<usize>) -> Result<Chosen, Vec<Diagnostic>> {
        let layers = select::connected(&self.layers, kept);
        let mut plan = Plan::new(&self.graph, &layers, &self.seen, self.options.method);
        if self.options.bias_correction {
            let corrections = correct::corrections(&self.graph, &layers, &plan, &self.seen);
            plan.corrections = corrections.map_err(defect)?;
        }
        let conversion = convert::convert(&self.graph, &layers, &plan, self.options.interface);
        let conversion = conversion.map_err(defect)?;
        mlc_ir::verify(&conversion.graph)?;
        Ok(Chosen { kept: kept.clone(), plan, conversion })
    }

    fn float(&self, layer: &Layer, reason: String) -> FloatReport {
        FloatReport { name: layer.name.to_string(), operator: self.operator(layer), reason }
    }

    /// The operators of a layer.
    fn operator(&self, layer: &Layer) -> String {
        let node = self.graph.node(layer.nodes[0]);
        node.op.name().to_owned()
    }
}
