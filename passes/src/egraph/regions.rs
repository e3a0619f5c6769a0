//! Large graphs are cut into regions, each of which is saturated alone, and put together again.
//!
//! A cut runs where few values cross it, so that siblings on one value seldom come apart. Regions keep the order of the
//! graph: a region needs earlier ones only.

use indexmap::IndexMap;
use mlc_ir::{Category, Graph, NodeId, Op, OperatorError, Value};

/// Operators of a region at most.
pub const LIMIT: usize = 1200;

/// A part of a graph as a graph of its own.
pub struct Region {
    /// Values from outside are inputs, values needed outside are outputs.
    pub graph: Graph,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
}

/// The nodes that compute, in order, cut into runs of at most `limit`.
fn runs(graph: &Graph, limit: usize) -> Vec<Vec<NodeId>> {
    let order: Vec<NodeId> =
        graph.topological_order().into_iter().filter(|&id| graph.node(id).op.category() != Category::Source).collect();
    let crossing = crossing(graph, &order);
    let mut runs = Vec::new();
    let mut start = 0;
    while start < order.len() {
        let last = start + limit.max(1);
        let end = if last >= order.len() {
            order.len()
        } else {
            let narrow = (start + limit * 3 / 4 + 1..=last).min_by_key(|&end| crossing[end]);
            narrow.unwrap_or(last)
        };
        runs.push(order[start..end].to_vec());
        start = end;
    }
    runs
}

/// How many values are computed before each place of the order and used behind it.
fn crossing(graph: &Graph, order: &[NodeId]) -> Vec<i64> {
    let place: IndexMap<NodeId, usize> = order.iter().enumerate().map(|(place, &id)| (id, place)).collect();
    let mut last_use: IndexMap<Value, usize> = IndexMap::new();
    for (at, &id) in order.iter().enumerate() {
        graph.operands(id).into_iter().for_each(|value| {
            last_use.insert(value, at);
        });
    }
    let mut changes = vec![0i64; order.len() + 2];
    for (value, last) in last_use {
        if let Some(&from) = place.get(&value.node) {
            changes[from + 1] += 1;
            changes[last + 1] -= 1;
        }
    }
    let mut open = 0;
    changes
        .into_iter()
        .map(|change| {
            open += change;
            open
        })
        .collect()
}

/// Cuts a graph into regions of at most `limit` operators.
///
/// # Errors
/// When an operator refuses its operands, which a verified graph excludes.
pub fn cut(graph: &Graph, limit: usize) -> Result<Vec<Region>, OperatorError> {
    runs(graph, limit).iter().map(|run| region(graph, run)).collect()
}

fn region(graph: &Graph, run: &[NodeId]) -> Result<Region, OperatorError> {
    let mut region = Region { graph: Graph::new(graph.name.clone()), inputs: Vec::new(), outputs: Vec::new() };
    let mut values: IndexMap<Value, Value> = IndexMap::new();
    for &id in run {
        let mut operands = Vec::new();
        for operand in graph.operands(id) {
            let own = match (values.get(&operand), graph.constant(operand)) {
                (Some(&own), _) => own,
                (None, Some(constant)) => region.graph.add_constant(&graph.node(operand.node).name, constant.clone()),
                (None, None) => {
                    region.inputs.push(operand);
                    region.graph.add_input(&graph.node(operand.node).name, graph.ty(operand).clone())
                }
            };
            values.insert(operand, own);
            operands.push(own);
        }
        let node = graph.node(id);
        let own = region.graph.add_with_origins(node.op.clone(), &operands, &node.name, node.origins.clone())?;
        for slot in 0..node.results.len() as u32 {
            values.insert(Value { node: id, slot }, Value { node: own, slot });
        }
    }
    let members: indexmap::IndexSet<NodeId> = run.iter().copied().collect();
    for &id in run {
        for slot in 0..graph.node(id).results.len() as u32 {
            let value = Value { node: id, slot };
            let outside = graph.uses(value).iter().any(|(user, _)| !members.contains(user));
            if outside || graph.outputs().iter().any(|output| output.value == value) {
                region.graph.add_output(&format!("{}", region.outputs.len()), values[&value]);
                region.outputs.push(value);
            }
        }
    }
    Ok(region)
}

/// Puts optimised regions together: `parts` has for each region its graph, with inputs and outputs as before.
///
/// # Errors
/// When an operator refuses its operands.
pub fn join(graph: &Graph, regions: &[Region], parts: &[Graph]) -> Result<Graph, OperatorError> {
    let mut whole = Graph::new(graph.name.clone());
    whole.take_interface(graph);
    let mut known: IndexMap<Value, Value> = IndexMap::new();
    for &input in graph.inputs() {
        let node = graph.node(input);
        known.insert(input.into(), whole.add_input(&node.name, node.results[0].clone()));
    }
    for (region, part) in regions.iter().zip(parts) {
        let mut values: IndexMap<Value, Value> = IndexMap::new();
        for (&input, outside) in part.inputs().iter().zip(&region.inputs) {
            values.insert(input.into(), known[outside]);
        }
        for id in part.topological_order() {
            let node = part.node(id);
            match &node.op {
                Op::Input(_) => {}
                Op::Constant(constant) => {
                    values.insert(id.into(), whole.add_constant(&node.name, constant.value.clone()));
                }
                op => {
                    let operands: Vec<Value> = part.operands(id).iter().map(|operand| values[operand]).collect();
                    let own = whole.add_with_origins(op.clone(), &operands, &node.name, node.origins.clone())?;
                    for slot in 0..node.results.len() as u32 {
                        values.insert(Value { node: id, slot }, Value { node: own, slot });
                    }
                }
            }
        }
        for (output, outside) in part.outputs().iter().zip(&region.outputs) {
            known.insert(*outside, values[&output.value]);
        }
    }
    for output in graph.outputs() {
        let value = match (known.get(&output.value), graph.constant(output.value)) {
            (Some(&value), _) => value,
            (None, Some(constant)) => whole.add_constant(&graph.node(output.value.node).name, constant.clone()),
            (None, None) => return Err(OperatorError::Evaluation(format!("output {} got lost", output.name))),
        };
        whole.add_output(&output.name, value);
    }
    Ok(whole)
}
