//! The graphs that every rule is tried on: the samples of all rules, near misses of them, and random graphs.
//!
//! A rule's own sampler draws what satisfies its conditions, so that it can't show that one is missing. Near misses do.

use super::common::random::{network, sampled};
use super::mutants;
use crate::rewrite::Rule;
use mlc_ir::ops::Constant;
use mlc_ir::{Attribute, Category, DType, Generator, Graph, Literal, NodeId, Op, OpKind, Tensor, TensorType, Value};
use std::collections::BTreeMap;

/// Samples of each rule.
const SAMPLES: u64 = 8;
/// Of these, so many have every field of every operator changed once.
const MUTATED: u64 = 4;
/// Random near misses of each sample.
const NEAR_MISSES: usize = 6;
/// Random applications of each operator.
const APPLICATIONS: u64 = 4;
/// Random networks.
const NETWORKS: u64 = 40;

/// The graphs, each with the name of what it was drawn from.
pub(super) fn graphs(rules: &[Rule]) -> Vec<(String, Graph)> {
    let mut graphs = Vec::new();
    for rule in rules {
        for seed in 0..SAMPLES {
            let mut random = Generator::new(seed);
            let sample = (rule.sample)(&mut random);
            let mut near: Vec<Graph> = if seed < MUTATED { all_mutated(&sample) } else { Vec::new() };
            near.extend((0..NEAR_MISSES).filter_map(|_| near_miss(&sample, &mut random)));
            let named = near.into_iter().enumerate();
            graphs.extend(
                named.map(|(number, near)| (format!("near miss {number} of sample {seed} of {}", rule.name), near)),
            );
            graphs.push((format!("sample {seed} of {}", rule.name), sample));
        }
    }
    for &kind in OpKind::OWN {
        graphs.extend((0..APPLICATIONS).map(|seed| (format!("{} of seed {seed}", kind.name()), sampled(kind, seed))));
    }
    graphs.extend((0..NETWORKS).map(|seed| (format!("network {seed}"), network(seed))));
    graphs
}

/// A graph under construction that follows another one.
struct Copy<'g> {
    source: &'g Graph,
    graph: Graph,
    values: BTreeMap<Value, Value>,
}

impl Copy<'_> {
    fn operands(&self, node: NodeId) -> Vec<Value> {
        self.source.operands(node).iter().map(|value| self.values[value]).collect()
    }

    fn input(&mut self, ty: TensorType) -> Option<Value> {
        Some(self.graph.add_input("x", ty))
    }

    fn constant(&mut self, tensor: &Tensor) -> Option<Value> {
        Some(self.graph.add_constant("c", Attribute::from_tensor(tensor)))
    }

    fn apply(&mut self, op: Op, operands: &[Value]) -> Option<Value> {
        self.graph.add(op, operands, "n").ok().map(Value::from)
    }

    fn unchanged(&mut self, node: NodeId) -> Option<Value> {
        let operands = self.operands(node);
        match &self.source.node(node).op {
            Op::Input(input) => self.input(input.ty.clone()),
            op => self.apply(op.clone(), &operands),
        }
    }
}

/// The graph rebuilt by a function that adds each node; `None` where an operator doesn't accept what became of its operands.
fn rebuilt(graph: &Graph, mut add: impl FnMut(&mut Copy<'_>, NodeId) -> Option<Value>) -> Option<Graph> {
    let mut copy = Copy { source: graph, graph: Graph::new("near miss"), values: BTreeMap::new() };
    for id in graph.topological_order() {
        let added = add(&mut copy, id)?;
        for slot in 0..graph.node(id).results.len() as u32 {
            copy.values.insert(Value { node: id, slot }, Value { node: added.node, slot });
        }
    }
    for output in graph.outputs() {
        let value = copy.values[&output.value];
        copy.graph.add_output(&output.name, value);
    }
    Some(copy.graph)
}

/// The graph with another operator in one place; `None` when what is computed from it doesn't accept that.
fn with_operator(graph: &Graph, node: NodeId, op: &Op) -> Option<Graph> {
    rebuilt(graph, |copy, id| {
        let operands = copy.operands(id);
        if id == node { copy.apply(op.clone(), &operands) } else { copy.unchanged(id) }
    })
}

/// The graphs in which one field of one operator is changed.
fn all_mutated(graph: &Graph) -> Vec<Graph> {
    let mut graphs = Vec::new();
    for id in graph.topological_order() {
        let op = &graph.node(id).op;
        if op.category() != Category::Source {
            let mutants = mutants::operator(op).into_iter();
            graphs.extend(mutants.filter_map(|(_, op)| with_operator(graph, id, &op)));
        }
    }
    graphs
}

/// The graph with one thing changed at random; `None` when nothing can be, or it makes no sense then.
fn near_miss(graph: &Graph, random: &mut Generator) -> Option<Graph> {
    let (sources, others): (Vec<NodeId>, Vec<NodeId>) =
        graph.topological_order().into_iter().partition(|&id| graph.node(id).op.category() == Category::Source);
    if sources.is_empty() || others.is_empty() {
        return None;
    }
    let (source, other) = (random.choose(&sources), random.choose(&others));
    match random.range(0, 5) {
        0 => {
            let mutants = mutants::operator(&graph.node(other).op);
            if mutants.is_empty() { None } else { with_operator(graph, other, &random.choose(&mutants).1) }
        }
        1 => rebuilt(graph, |copy, id| {
            let mut operands = copy.operands(id);
            if id != other {
                return copy.unchanged(id);
            }
            operands.reverse();
            copy.apply(graph.node(id).op.clone(), &operands)
        }),
        2 => rebuilt(graph, |copy, id| {
            let op = &graph.node(id).op;
            match op {
                _ if id != source => copy.unchanged(id),
                Op::Input(input) => copy.constant(&random.tensor(&input.ty)),
                _ => copy.input(graph.node(id).results[0].clone()),
            }
        }),
        3 => rebuilt(graph, |copy, id| {
            if id != source {
                return copy.unchanged(id);
            }
            let ty = other_shape(&graph.node(id).results[0], random);
            match &graph.node(id).op {
                Op::Constant(Constant { value }) => {
                    let splat = value.splat().map(|literal| Tensor::splat(ty.clone(), literal));
                    copy.constant(&splat.unwrap_or_else(|| random.tensor(&ty)))
                }
                _ => copy.input(ty),
            }
        }),
        4 => {
            let same: Vec<Value> = graph.node_ids().filter(|&id| id != other).map(Value::from).collect();
            let another = random.choose(&same);
            rebuilt(graph, |copy, id| {
                let mut operands = copy.operands(id);
                match (operands.first_mut(), copy.values.get(&another)) {
                    (Some(first), Some(&another)) if id == other => *first = another,
                    _ => return copy.unchanged(id),
                }
                copy.apply(graph.node(id).op.clone(), &operands)
            })
        }
        _ => {
            let to = random.choose(&[DType::I32, DType::I8, DType::U8, DType::F64, DType::F16]);
            of_type(graph, to, random)
        }
    }
}

/// A type of another shape: an axis longer, shorter, added or left out.
fn other_shape(ty: &TensorType, random: &mut Generator) -> TensorType {
    let mut shape = ty.shape.to_vec();
    let axis = random.range(0, shape.len().saturating_sub(1));
    match random.range(0, 3) {
        _ if shape.is_empty() => shape.push(random.extent()),
        0 => shape[axis] += 1,
        1 => shape[axis] = 1,
        2 => shape.insert(0, random.extent()),
        _ => drop(shape.remove(axis)),
    }
    TensorType::new(ty.dtype, shape)
}

/// The graph with all inputs and constants of f32 in another type.
fn of_type(graph: &Graph, to: DType, random: &mut Generator) -> Option<Graph> {
    rebuilt(graph, |copy, id| {
        let ty = &graph.node(id).results[0];
        if ty.dtype != DType::F32 {
            return copy.unchanged(id);
        }
        let moved = TensorType::new(to, ty.shape.clone());
        match &graph.node(id).op {
            Op::Input(_) => copy.input(moved),
            Op::Constant(Constant { value }) => {
                let splat =
                    value.splat().map(|literal| Tensor::splat(moved.clone(), Literal::of(to, literal.to_f64())));
                copy.constant(&splat.unwrap_or_else(|| random.tensor(&moved)))
            }
            _ => copy.unchanged(id),
        }
    })
}
