//! [`Model`]: a prepared model, what calibration has seen of it, and what comes of a choice of its layers.

use crate::convert::{self, Interface};
use crate::layers::{self, Layer};
use crate::plan::{self, Plan, Seen};
use crate::prepare::prepare;
use crate::range::Method;
use crate::report::FloatReport;
use crate::{correct, equalise, select};
use mlc_ir::{Code, Diagnostic, Graph, Location, OperatorError, Tensor};
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

/// What a defect of an operator is told as.
fn defect(error: OperatorError) -> Vec<Diagnostic> {
    one(Diagnostic::error(Code::InvalidGraph, Location::default(), error.to_string()))
}

/// A list of one.
pub fn one(fault: Diagnostic) -> Vec<Diagnostic> {
    vec![fault]
}

/// A prepared model, and what calibration has seen of it.
pub struct Model<'a> {
    pub graph: Graph,
    pub layers: Vec<Layer>,
    pub refused: Vec<FloatReport>,
    pub seen: Seen,
    pub runs: &'a [Vec<Tensor>],
    pub options: &'a Options,
    pub equalised: usize,
}

/// A choice of layers that keep real numbers, and what comes of it.
pub struct Chosen {
    pub kept: BTreeSet<usize>,
    pub plan: Plan,
    pub conversion: convert::Conversion,
}

impl<'a> Model<'a> {
    pub fn new(graph: &Graph, runs: &'a [Vec<Tensor>], options: &'a Options) -> Result<Self, Vec<Diagnostic>> {
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
    pub fn quantized(&self, kept: &BTreeSet<usize>) -> Result<Chosen, Vec<Diagnostic>> {
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

    pub fn float(&self, layer: &Layer, reason: String) -> FloatReport {
        FloatReport { name: layer.name.to_string(), operator: self.operator(layer), reason }
    }

    /// The operators of a layer.
    pub fn operator(&self, layer: &Layer) -> String {
        let node = self.graph.node(layer.nodes[0]);
        node.op.name().to_owned()
    }
}
