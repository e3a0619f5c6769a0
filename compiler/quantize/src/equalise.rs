//! [`equalise`]: cross-layer equalisation. Where one layer of products feeds another, and nothing but a rectifier is between them, a
//! channel may be divided by a number in the first and multiplied by it in the second: the network computes the same. The numbers are
//! chosen so that channels of the tensor between the layers, which has one scale, have ranges of about one size.
//!
//! The known method (Nagel and others, 2019) evens the ranges of the first layer's weights out. Here weights have a scale for each
//! channel anyway, so it is the ranges of the channels themselves, as calibration has seen them.

use crate::layers::{Layer, only_user};
use crate::plan::Seen;
use crate::weights::{channel_axis, indices_along, magnitudes, operand_axis};
use mlc_ir::{Attribute, Graph, IntegerForm, NodeId, Op, OperatorError, Tensor, Value};

/// Channels whose weights are that much smaller than the largest one's count as being as large.
const LEAST: f64 = 1e-6;

/// A layer and the one that it feeds.
struct Pair<'a> {
    first: &'a Layer,
    second: &'a Layer,
    /// The axis of the second one's weights along which its operand's channels lie.
    axis: usize,
    /// Whether each channel has weights of its own in the second.
    depthwise: bool,
}

/// Evens channels out wherever two layers allow it; returns how many pairs there were.
///
/// # Errors
/// When the graph doesn't accept weights of the same type, which is a defect.
pub fn equalise(graph: &mut Graph, layers: &[Layer], seen: &Seen) -> Result<usize, OperatorError> {
    let mut count = 0;
    for first in layers {
        let Some(pair) = pair(graph, layers, first) else { continue };
        let Some(factors) = factors(graph, &pair, seen) else { continue };
        count += 1;
        // Divided in the first, multiplied in the second.
        let inverse: Vec<f64> = factors.iter().map(|factor| 1.0 / factor).collect();
        let op = graph.node(first.nodes[0]).op.clone();
        if let Some(axis) = operand_type_axis(graph, &op, first.nodes[0]) {
            scale(graph, first.nodes[0], 1, axis, &inverse)?;
        }
        if let Some(node) = first.nodes.get(1).copied().filter(|_| first.bias.is_some()) {
            let place = graph.operands(node).iter().position(|&operand| graph.constant(operand).is_some());
            if let Some(place) = place {
                scale_bias(graph, node, place, &inverse)?;
            }
        }
        scale(graph, pair.second.nodes[0], 1, pair.axis, &factors)?;
    }
    Ok(count)
}

fn operand_type_axis(graph: &Graph, op: &Op, node: NodeId) -> Option<usize> {
    channel_axis(op, graph.operand_types(node).get(1)?)
}

/// What a layer of products feeds, if that is another one only, and the limits between them are those of a rectifier, or none.
fn pair<'a>(graph: &Graph, layers: &'a [Layer], first: &'a Layer) -> Option<Pair<'a>> {
    let is_homogeneous = [f64::NEG_INFINITY, 0.0].contains(&first.limits.0) && first.limits.1 == f64::INFINITY;
    if first.form != IntegerForm::Products || first.weights.is_none() || !is_homogeneous {
        return None;
    }
    let user = only_user(graph, first.result)?;
    let second = layers.iter().find(|layer| layer.nodes[0] == user)?;
    let weights = second.weights.filter(|_| second.form == IntegerForm::Products)?;
    operand_type_axis(graph, &graph.node(first.nodes[0]).op, first.nodes[0])?;
    let (axis, depthwise) = operand_axis(&graph.node(user).op, graph.ty(weights))?;
    Some(Pair { first, second, axis, depthwise })
}

/// A factor for each channel between two layers.
fn factors(graph: &Graph, pair: &Pair<'_>, seen: &Seen) -> Option<Vec<f64>> {
    let channels = &seen.get(&pair.first.result)?.channels;
    let current = graph.operands(pair.second.nodes[0])[1];
    let weights = magnitudes(&graph.constant(current)?.to_tensor(), pair.axis);
    let largest = |numbers: &[f64]| numbers.iter().fold(0.0, |largest, number| number.max(largest));
    let (most, heaviest) = (largest(channels), largest(&weights));
    if channels.len() != weights.len() || most == 0.0 || heaviest == 0.0 {
        return None;
    }
    let factor = |(channel, weight): (&f64, &f64)| {
        if *channel == 0.0 {
            1.0
        } else if pair.depthwise {
            // Its weights have a scale of their own, whatever they are multiplied by.
            (channel / most).max(LEAST)
        } else {
            (channel.max(most * LEAST) / weight.max(heaviest * LEAST)).sqrt()
        }
    };
    Some(channels.iter().zip(&weights).map(factor).collect())
}

/// Multiplies a constant operand by a factor for each index of an axis.
fn scale(graph: &mut Graph, node: NodeId, operand: usize, axis: usize, factors: &[f64]) -> Result<(), OperatorError> {
    let value = graph.operands(node)[operand];
    let Some(constant) = graph.constant(value).map(Attribute::to_tensor) else { return Ok(()) };
    let places = indices_along(constant.shape(), axis);
    let numbers = constant.to_floats().into_iter().zip(places).map(|(number, place)| number * factors[place]);
    let scaled = Tensor::from_floats(constant.ty().clone(), numbers.collect());
    replace(graph, node, operand, value, &scaled)
}

/// Multiplies a bias, which may be one number for all channels.
fn scale_bias(graph: &mut Graph, node: NodeId, operand: usize, factors: &[f64]) -> Result<(), OperatorError> {
    let value = graph.operands(node)[operand];
    let Some(constant) = graph.constant(value).map(Attribute::to_tensor) else { return Ok(()) };
    let numbers = constant.to_floats();
    let scaled = factors.iter().enumerate().map(|(channel, factor)| numbers[channel.min(numbers.len() - 1)] * factor);
    let ty = mlc_ir::TensorType::new(constant.ty().dtype, [factors.len()]);
    replace(graph, node, operand, value, &Tensor::from_floats(ty, scaled.collect()))
}

fn replace(graph: &mut Graph, node: NodeId, operand: usize, old: Value, tensor: &Tensor) -> Result<(), OperatorError> {
    let name = graph.node(old.node).name.to_string();
    let new = graph.add_constant(&name, Attribute::from_tensor(tensor));
    graph.replace_operand(node, operand as u32, new);
    let types = graph.operand_types(node);
    let op = graph.node(node).op.clone();
    if op.infer(&types)? == graph.node(node).results {
        return Ok(());
    }
    Err(OperatorError::types("scaled weights give another result"))
}
