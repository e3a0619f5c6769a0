//! Operators on 8-bit integers that are computed in floating point: between a dequantisation and a quantisation that weren't folded
//! into integer arithmetic. Their numbers are right; who wants them small and fast has to know.

use crate::module::{KernelSummary, Module};
use mlc_ir::scalar::ScalarNode;
use mlc_ir::{Graph, NodeId, Op, Value};
use std::collections::BTreeSet;

/// Those kernels, in the order in which they run, of the module that was generated for the graph; of several levels, of the last.
pub fn floating_point_kernels<'m>(graph: &Graph, module: &'m Module) -> Vec<&'m KernelSummary> {
    let found: BTreeSet<&str> =
        graph.node_ids().filter(|&id| is_floating_point(graph, id)).map(|id| &*graph.node(id).name).collect();
    module.kernels_of_run().iter().filter(|kernel| found.contains(kernel.node.as_str())).collect()
}

/// What is before a value, or behind it, as far as the next products.
#[derive(Default)]
struct Surroundings {
    /// Values of 8 bits are read.
    bytes: bool,
    /// Floats become 8 bits.
    quantizes: bool,
}

/// Whether a node multiplies floats that 8-bit integers stand for. An image of bytes alone isn't enough: something must be quantised,
/// before the products or behind them.
fn is_floating_point(graph: &Graph, id: NodeId) -> bool {
    let operands = graph.operands(id);
    let own = match &graph.node(id).op {
        Op::Kernel(kernel) => kernel.anchor_operands,
        _ => operands.len(),
    };
    let floats = operands.iter().take(own).filter(|operand| graph.ty(**operand).dtype.is_float());
    if !multiplies(graph, id) || floats.clone().next().is_none() {
        return false;
    }
    let mut before = Surroundings::default();
    let mut seen = BTreeSet::new();
    floats.for_each(|operand| look_before(graph, *operand, &mut before, &mut seen));
    let mut behind = Surroundings { quantizes: quantizes(graph, id), ..Surroundings::default() };
    look_behind(graph, id, &mut behind, &mut BTreeSet::new());
    before.quantizes || (before.bytes && behind.quantizes)
}

fn look_before(graph: &Graph, value: Value, found: &mut Surroundings, seen: &mut BTreeSet<NodeId>) {
    let mut pending = vec![value.node];
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        found.quantizes |= quantizes(graph, id);
        if multiplies(graph, id) {
            continue;
        }
        for operand in graph.operands(id) {
            let is_constant = matches!(graph.node(operand.node).op, Op::Constant(_));
            found.bytes |= !is_constant && graph.ty(operand).dtype.is_byte();
            pending.push(operand.node);
        }
    }
}

fn look_behind(graph: &Graph, id: NodeId, found: &mut Surroundings, seen: &mut BTreeSet<NodeId>) {
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        for slot in 0..graph.node(id).results.len() as u32 {
            for (user, _) in graph.uses(Value { node: id, slot }) {
                found.quantizes |= quantizes(graph, user);
                if !multiplies(graph, user) {
                    pending.push(user);
                }
            }
        }
    }
}

fn multiplies(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    node.op.work(&graph.operand_types(id), &node.results).macs > 0
}

/// Whether a node has a step that makes 8 bits.
fn quantizes(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    let expression = match &node.op {
        Op::Kernel(kernel) => Some(kernel.expression.clone()),
        op => op.expression(&graph.operand_types(id)),
    };
    expression.is_some_and(|expression| {
        expression.nodes().iter().any(|step| matches!(step, ScalarNode::Cast(dtype, _) if dtype.is_byte()))
    })
}
