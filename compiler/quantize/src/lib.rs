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
mod model;
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
pub use model::Options;
pub use prepare::prepare;
pub use range::Method;
pub use report::Report;

use mlc_ir::{Code, Diagnostic, Graph, Location, Tensor};
use model::{Model, one};
use report::FloatReport;

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
