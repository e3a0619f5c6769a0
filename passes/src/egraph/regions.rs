//! Large graphs are cut into regions, each of which is saturated alone, and put together again.
//!
//! A cut runs where few values cross it, so that siblings on one value seldom come apart. Regions keep the order of the
//! graph: a region needs earlier ones only. What a region has moved to its end, such as a transpose, the next ones begin with:
//! so a cut stops nothing that sinks through the whole graph.

use indexmap::{IndexMap, IndexSet};
use mlc_ir::{Category, Graph, NodeId, Op, OperatorError, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Operators of a region at most.
pub const LIMIT: usize = 1200;

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

/// Cuts a graph into regions of at most `limit` operators, has `optimize` make another graph of each, with the same inputs and
/// outputs, and puts these together.
///
/// # Errors
/// Those of `optimize`, and when an operator refuses its operands, which a verified graph excludes.
pub fn each(
    graph: &Graph,
    limit: usize,
    mut optimize: impl FnMut(Graph) -> Result<Graph, OperatorError>,
) -> Result<Graph, OperatorError> {
    let mut assembly = Assembly::new(graph);
    for run in runs(graph, limit) {
        let region = assembly.region(&run)?;
        let part = optimize(region.graph)?;
        assembly.append(&part, &region.inputs, &region.outputs)?;
    }
    assembly.finish()
}

/// A part of a graph as a graph of its own.
struct Region {
    /// Values from outside are inputs, values needed outside are outputs.
    graph: Graph,
    /// What the inputs are in the graph put together.
    inputs: IndexSet<Value>,
    /// What the outputs are in the graph that was cut.
    outputs: Vec<Value>,
}

/// An operator of one operand that stands at the end of a region, and begins the next ones.
#[derive(Clone)]
struct Move {
    op: Op,
    name: Arc<str>,
    origins: BTreeSet<Arc<str>>,
}

impl Move {
    fn apply(&self, graph: &mut Graph, x: Value) -> Result<Value, OperatorError> {
        graph.add_with_origins(self.op.clone(), &[x], &self.name, self.origins.clone()).map(Value::from)
    }
}

/// A value of the graph put together, and moves of it that were put off.
#[derive(Clone)]
struct Moved {
    base: Value,
    moves: Vec<Move>,
}

impl Moved {
    /// The output of a part without the views at its end.
    fn of(part: &Graph, mut base: Value) -> Moved {
        let mut moves = Vec::new();
        loop {
            let node = part.node(base.node);
            match part.operands(base.node)[..] {
                [operand] if node.op.category() == Category::View && node.results.len() == 1 => {
                    moves.push(Move { op: node.op.clone(), name: node.name.clone(), origins: node.origins.clone() });
                    base = operand;
                }
                _ => break,
            }
        }
        moves.reverse();
        Moved { base, moves }
    }

    fn apply(&self, graph: &mut Graph, base: Value) -> Result<Value, OperatorError> {
        self.moves.iter().try_fold(base, |value, step| step.apply(graph, value))
    }
}

/// The graph being put together.
struct Assembly<'g> {
    graph: &'g Graph,
    whole: Graph,
    /// What is known of the values of the graph that was cut.
    known: IndexMap<Value, Moved>,
}

impl<'g> Assembly<'g> {
    fn new(graph: &'g Graph) -> Self {
        let mut whole = Graph::new(graph.name.clone());
        whole.take_interface(graph);
        let mut known = IndexMap::new();
        for &input in graph.inputs() {
            let node = graph.node(input);
            let base = whole.add_input(&node.name, node.results[0].clone());
            known.insert(input.into(), Moved { base, moves: Vec::new() });
        }
        Assembly { graph, whole, known }
    }

    fn moved(&self, value: Value) -> Result<&Moved, OperatorError> {
        let lost = || OperatorError::Evaluation(format!("{} got lost", self.graph.node(value.node).name));
        self.known.get(&value).ok_or_else(lost)
    }

    fn region(&self, run: &[NodeId]) -> Result<Region, OperatorError> {
        let graph = self.graph;
        let mut region = Region { graph: Graph::new(graph.name.clone()), inputs: IndexSet::new(), outputs: Vec::new() };
        let mut values: IndexMap<Value, Value> = IndexMap::new();
        for &id in run {
            let mut operands = Vec::new();
            for operand in graph.operands(id) {
                let own = match (values.get(&operand), graph.constant(operand)) {
                    (Some(&own), _) => own,
                    (None, Some(constant)) => {
                        region.graph.add_constant(&graph.node(operand.node).name, constant.clone())
                    }
                    (None, None) => self.enter(&mut region, operand)?,
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
        let members: IndexSet<NodeId> = run.iter().copied().collect();
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

    /// Gives a region a value from outside, with the moves that were put off.
    fn enter(&self, region: &mut Region, value: Value) -> Result<Value, OperatorError> {
        let moved = self.moved(value)?;
        let (number, is_new) = region.inputs.insert_full(moved.base);
        let base = if is_new {
            let name = &self.whole.node(moved.base.node).name;
            region.graph.add_input(name, self.whole.ty(moved.base).clone())
        } else {
            region.graph.inputs()[number].into()
        };
        moved.apply(&mut region.graph, base)
    }

    /// Adds what a region has become, but for the moves at its end.
    fn append(&mut self, part: &Graph, inputs: &IndexSet<Value>, outputs: &[Value]) -> Result<(), OperatorError> {
        let ends: Vec<Moved> = part.outputs().iter().map(|output| Moved::of(part, output.value)).collect();
        let effects = part.node_ids().filter(|&id| part.node(id).op.effects().is_some());
        let needed = needed(part, ends.iter().map(|end| end.base.node).chain(effects));
        let mut values: IndexMap<Value, Value> = IndexMap::new();
        for (&input, outside) in part.inputs().iter().zip(inputs) {
            values.insert(input.into(), *outside);
        }
        for id in part.topological_order().into_iter().filter(|id| needed.contains(id)) {
            let node = part.node(id);
            match &node.op {
                Op::Input(_) => {}
                Op::Constant(constant) => {
                    values.insert(id.into(), self.whole.add_constant(&node.name, constant.value.clone()));
                }
                op => {
                    let operands: Vec<Value> = part.operands(id).iter().map(|operand| values[operand]).collect();
                    let own = self.whole.add_with_origins(op.clone(), &operands, &node.name, node.origins.clone())?;
                    for slot in 0..node.results.len() as u32 {
                        values.insert(Value { node: id, slot }, Value { node: own, slot });
                    }
                }
            }
        }
        for (end, outside) in ends.into_iter().zip(outputs) {
            self.known.insert(*outside, Moved { base: values[&end.base], moves: end.moves });
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Graph, OperatorError> {
        for output in self.graph.outputs() {
            let value = match self.graph.constant(output.value) {
                Some(constant) => self.whole.add_constant(&self.graph.node(output.value.node).name, constant.clone()),
                None => {
                    let moved = self.moved(output.value)?.clone();
                    moved.apply(&mut self.whole, moved.base)?
                }
            };
            self.whole.add_output(&output.name, value);
        }
        Ok(self.whole)
    }
}

/// Nodes that these need, and these.
fn needed(graph: &Graph, of: impl Iterator<Item = NodeId>) -> IndexSet<NodeId> {
    let mut needed: IndexSet<NodeId> = of.collect();
    let mut next = 0;
    while let Some(&node) = needed.get_index(next) {
        next += 1;
        needed.extend(graph.operands(node).into_iter().map(|operand| operand.node));
    }
    needed
}
