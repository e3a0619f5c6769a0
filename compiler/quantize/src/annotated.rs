//! [`Annotated`]: the graph of real numbers, and what of it is integers: for formats that say it by pairs of quantise and dequantise.

use crate::model::{Chosen, Model};
use crate::weights::{self, IntegerWeights};
use mlc_ir::{Attribute, DType, Graph, IntegerForm, NodeId, Quantization, Tensor, TensorType, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A constant of integers: `scale * integer`.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredConstant {
    /// The integers.
    pub integers: Attribute,
    /// One scale, or one for each index of an axis.
    pub scales: Vec<f32>,
    /// That axis.
    pub axis: usize,
}

/// A graph of real numbers, and what of it is integers.
#[derive(Debug, Clone)]
pub struct Annotated {
    /// The graph, prepared as layers are found in it.
    pub graph: Graph,
    /// The nodes of layers of integers.
    pub nodes: BTreeSet<NodeId>,
    /// The operands and results of these layers.
    pub tensors: BTreeMap<Value, Quantization>,
    /// Weights and biases, by the nodes that read them and the numbers of the operands.
    pub constants: BTreeMap<(NodeId, usize), StoredConstant>,
    /// Biases that corrections add to layers without one, by what they are added to.
    pub added: BTreeMap<Value, StoredConstant>,
}

impl Model<'_> {
    /// What of the model is integers by a choice.
    pub(crate) fn annotated(&self, chosen: &Chosen) -> Annotated {
        let mut annotated = Annotated {
            graph: self.graph.clone(),
            nodes: BTreeSet::new(),
            tensors: BTreeMap::new(),
            constants: BTreeMap::new(),
            added: BTreeMap::new(),
        };
        for layer in self.layers.iter().filter(|layer| chosen.conversion.results.contains_key(&layer.result)) {
            annotated.nodes.extend(&layer.nodes);
            for &value in layer.operands.iter().chain([&layer.result]) {
                if let Some(quantization) = chosen.plan.of(value).filter(|_| self.graph.constant(value).is_none()) {
                    annotated.tensors.insert(value, quantization);
                }
            }
            let known = layer.weights.and_then(|weights| self.graph.constant(weights));
            let operand = layer.operands.first().and_then(|&x| chosen.plan.of(x));
            if let (IntegerForm::Products, Some(constant), Some(operand)) = (layer.form, known, operand) {
                let op = &self.graph.node(layer.nodes[0]).op;
                let bias = weights::bias(&self.graph, layer, chosen.plan.corrections.get(&layer.result));
                let weights = IntegerWeights::of(op, constant, bias.as_deref(), operand.scale.0);
                if let Some(bias) = bias {
                    let bias = stored_bias(&bias, &weights.scales, operand);
                    match layer.bias.and_then(|value| Some((layer.nodes[1], self.place(layer.nodes[1], value)?))) {
                        Some(place) => drop(annotated.constants.insert(place, bias)),
                        None => drop(annotated.added.insert(layer.nodes[0].into(), bias)),
                    }
                }
                let axis = weights::channel_axis(op, constant.ty()).unwrap_or_default();
                let integers = Attribute::from_tensor(&weights.integers);
                let stored = StoredConstant { integers, scales: weights.scales, axis };
                annotated.constants.insert((layer.nodes[0], 1), stored);
            }
        }
        annotated
    }

    /// The number of an operand.
    fn place(&self, node: NodeId, value: Value) -> Option<usize> {
        self.graph.operands(node).iter().position(|&operand| operand == value)
    }
}

/// A bias in steps of the sums that it is added to.
fn stored_bias(bias: &[f64], weights: &[f32], operand: Quantization) -> StoredConstant {
    let scale = |channel: usize| (f64::from(weights[channel.min(weights.len() - 1)]) * operand.scale.0) as f32;
    let scales: Vec<f32> = (0..weights.len()).map(scale).collect();
    let integer = |(channel, number): (usize, &f64)| (number / f64::from(scale(channel))).round() as i64;
    let integers = bias.iter().enumerate().map(integer).collect();
    let integers = Tensor::from_integers(TensorType::new(DType::I32, [bias.len()]), integers);
    StoredConstant { integers: Attribute::from_tensor(&integers), scales, axis: 0 }
}
