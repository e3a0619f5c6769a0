//! The verifier: checks that a graph keeps the invariants of the intermediate representation. It runs after every frontend
//! and every pass, so that a defect shows where it arises. It takes linear time, and reports everything that it finds.

use crate::diagnostics::{Code, Diagnostic, Location};
use crate::graph::{Graph, NodeId};
use crate::messages;
use crate::ops::Op;
use petgraph::Direction;
use petgraph::visit::EdgeRef;
use std::collections::{BTreeMap, BTreeSet};

/// Checks that the graph is acyclic; operand slots are dense and refer to results that exist; result types are those that
/// inference gives; names are unique and the index of names is right; inputs are exactly the input nodes; outputs exist, under
/// unique names; each state ties one input and one output of its type; and messages are of inputs and outputs, in an order that
/// can be kept. Bodies of loops are checked alike.
///
/// # Errors
/// One diagnostic for each broken invariant.
pub fn verify(graph: &Graph) -> Result<(), Vec<Diagnostic>> {
    let mut verifier = Verifier { graph, faults: Vec::new() };
    let order = graph.topological_order();
    verifier.check_cycles(&order);
    for node in graph.node_ids() {
        if verifier.check_operands(node) && verifier.check_body(node) {
            verifier.check_types(node);
        }
        verifier.check_name(node);
    }
    if graph.names.len() != graph.len() {
        let (names, nodes) = (graph.names.len(), graph.len());
        verifier.graph_fault(format!("the index has {names} names for {nodes} nodes"));
    }
    verifier.check_inputs();
    verifier.check_outputs();
    verifier.check_states();
    verifier.check_quantization();
    verifier.check_effects(&order);
    for fault in messages::faults(graph, &order) {
        verifier.graph_fault(fault);
    }
    if verifier.faults.is_empty() { Ok(()) } else { Err(verifier.faults) }
}

struct Verifier<'a> {
    graph: &'a Graph,
    faults: Vec<Diagnostic>,
}

impl Verifier<'_> {
    fn fault(&mut self, node: NodeId, message: impl Into<String>) {
        let node = self.graph.node(node);
        let location = Location::default().at_operator(node.op.name(), &*node.name);
        self.faults.push(Diagnostic::error(Code::InvalidGraph, location, message));
    }

    fn graph_fault(&mut self, message: impl Into<String>) {
        let location = Location { node: Some(self.graph.name.clone()), ..Location::default() };
        self.faults.push(Diagnostic::error(Code::InvalidGraph, location, message));
    }

    fn check_cycles(&mut self, order: &[NodeId]) {
        if order.len() == self.graph.len() {
            return;
        }
        let ordered: BTreeSet<NodeId> = order.iter().copied().collect();
        let stuck: Vec<NodeId> = self.graph.node_ids().filter(|node| !ordered.contains(node)).collect();
        for node in stuck {
            self.fault(node, "the node is on a cycle, or behind one");
        }
    }

    /// Whether the operands are complete and exist.
    fn check_operands(&mut self, node: NodeId) -> bool {
        let edges: Vec<(u32, u32, NodeId)> = self
            .graph
            .nodes
            .edges_directed(node, Direction::Incoming)
            .map(|edge| (edge.weight().to, edge.weight().from, edge.source()))
            .collect();
        let before = self.faults.len();
        let mut slots: Vec<u32> = edges.iter().map(|(to, _, _)| *to).collect();
        slots.sort_unstable();
        if !slots.iter().copied().eq(0..slots.len() as u32) {
            self.fault(node, format!("operand slots are {slots:?}, not one for each number from 0 on"));
        }
        for (to, from, source) in edges {
            let producer = self.graph.node(source);
            if from as usize >= producer.results.len() {
                let (name, count) = (producer.name.clone(), producer.results.len());
                self.fault(node, format!("operand {to} is result {from} of \"{name}\", which has {count}"));
            }
        }
        self.faults.len() == before
    }

    /// Whether the graph inside of the operator, if there is one, is sound.
    fn check_body(&mut self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        let Op::Loop(op) = &node.op else { return true };
        if !op.body.states.is_empty() {
            self.fault(id, "the body of a loop keeps no states");
            return false;
        }
        if op.body.distribution.is_some() {
            self.fault(id, "the body of a loop exchanges no messages");
            return false;
        }
        let Err(faults) = verify(&op.body) else { return true };
        let note = format!("in the body of {} \"{}\"", node.op.name(), node.name);
        self.faults.extend(faults.into_iter().map(|fault| fault.with_note(note.clone())));
        false
    }

    fn check_types(&mut self, id: NodeId) {
        let node = self.graph.node(id);
        match node.op.infer(&self.graph.operand_types(id)) {
            Err(error) => self.fault(id, error.to_string()),
            Ok(types) if types != node.results => {
                let list = |types: &[crate::TensorType]| {
                    let types: Vec<String> = types.iter().map(ToString::to_string).collect();
                    types.join(", ")
                };
                let message = format!("the results are {}, inference gives {}", list(&node.results), list(&types));
                self.fault(id, message);
            }
            Ok(types) => {
                if let Some(large) = types.iter().find(|ty| ty.checked_bytes().is_none()) {
                    self.fault(id, format!("the result {large} is too large"));
                }
            }
        }
    }

    fn check_name(&mut self, id: NodeId) {
        let name = self.graph.node(id).name.clone();
        match self.graph.find(&name) {
            Some(found) if found == id => {}
            Some(_) => self.fault(id, "the name belongs to another node too"),
            None => self.fault(id, "the name isn't in the graph's index"),
        }
    }

    fn check_inputs(&mut self) {
        let mut declared = BTreeSet::new();
        for &input in self.graph.inputs() {
            if !self.graph.nodes.contains_node(input) {
                self.graph_fault("a declared input isn't in the graph");
            } else if !matches!(self.graph.node(input).op, Op::Input(_)) {
                self.fault(input, "the node is declared as an input, but is none");
            } else if !declared.insert(input) {
                self.fault(input, "the input is declared twice");
            }
        }
        let nodes: Vec<NodeId> = self.graph.node_ids().collect();
        for node in nodes {
            if matches!(self.graph.node(node).op, Op::Input(_)) && !declared.contains(&node) {
                self.fault(node, "the input isn't declared");
            }
        }
    }

    fn check_outputs(&mut self) {
        if self.graph.outputs().is_empty() && self.graph.distribution.is_none() {
            self.graph_fault("the graph has no output");
        }
        let mut names = BTreeSet::new();
        for output in self.graph.outputs() {
            let name = &output.name;
            if !names.insert(name.clone()) {
                self.graph_fault(format!("two outputs have the name \"{name}\""));
            }
            let producer = self.graph.nodes.node_weight(output.value.node);
            match producer.map(|node| node.results.len()) {
                None => self.graph_fault(format!("output \"{name}\" is of a node that isn't in the graph")),
                Some(count) if output.value.slot as usize >= count => {
                    self.graph_fault(format!("output \"{name}\" is result {} of {count}", output.value.slot));
                }
                Some(_) => {}
            }
        }
    }
}

impl Verifier<'_> {
    /// Whether calls with effects can be made in their order: each has a place of its own, behind those of what it depends on.
    fn check_effects(&mut self, order: &[NodeId]) {
        let places = |id: NodeId| self.graph.node(id).op.effects().map(|(first, last)| (first, last, id));
        let mut all: Vec<(usize, usize, NodeId)> = order.iter().filter_map(|&id| places(id)).collect();
        if all.is_empty() {
            return;
        }
        all.sort_unstable();
        let shared = all.windows(2).filter(|pair| pair[1].0 <= pair[0].1).map(|pair| pair[1].2);
        let shared: Vec<NodeId> = shared.collect();
        for id in shared {
            self.fault(id, "its place in the order of effects is another call's too");
        }
        let mut latest: BTreeMap<NodeId, usize> = BTreeMap::new();
        for &id in order {
            let operands = self.graph.operands(id).into_iter();
            let before = operands.filter_map(|operand| latest.get(&operand.node)).max().copied().unwrap_or(0);
            let own = self.graph.node(id).op.effects();
            if own.is_some_and(|(first, _)| first < before) {
                self.fault(id, "its effect comes before that of a call that it depends on");
            }
            latest.insert(id, own.map_or(before, |(_, last)| last.max(before)));
        }
    }

    fn check_quantization(&mut self) {
        let numbers = &self.graph.quantization;
        let lost = numbers.inputs.keys().any(|&number| number >= self.graph.inputs().len())
            || numbers.outputs.keys().any(|&number| number >= self.graph.outputs().len());
        if lost {
            self.graph_fault("a quantization is of no input and no output");
        }
        let all = numbers.inputs.values().chain(numbers.outputs.values());
        if all.map(|own| own.scale.0).any(|scale| !(scale > 0.0 && scale.is_finite())) {
            self.graph_fault("the scale of a quantization is a positive number");
        }
    }

    fn check_states(&mut self) {
        let (mut names, mut inputs, mut outputs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for state in &self.graph.states {
            let name = &state.name;
            if !names.insert(name.clone()) {
                self.graph_fault(format!("two states have the name \"{name}\""));
            }
            if !inputs.insert(state.input) || !outputs.insert(state.output) {
                self.graph_fault(format!("state \"{name}\" shares its input or output with another one"));
            }
            let input = self.graph.inputs().get(state.input).and_then(|&input| self.graph.nodes.node_weight(input));
            let output = self.graph.outputs().get(state.output).map(|output| output.value);
            let output =
                output.and_then(|value| self.graph.nodes.node_weight(value.node)?.results.get(value.slot as usize));
            let (Some([given]), Some(taken)) = (input.map(|node| &node.results[..]), output) else {
                self.graph_fault(format!("state \"{name}\" has no input or no output"));
                continue;
            };
            let initial = state.initial.ty();
            if given != taken || given != initial {
                let message = format!("state \"{name}\" starts as {initial}, the input is {given}, the output {taken}");
                self.graph_fault(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Use, Value};
    use crate::ops::{Binary, CallConvention, Extern, Unary};
    use crate::scalar::{BinaryFunction, UnaryFunction};
    use crate::types::{DType, TensorType};

    /// x, y -> sum -> exp, an output.
    fn sample() -> (Graph, [NodeId; 4]) {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", TensorType::new(DType::F32, [2]));
        let y = graph.add_input("y", TensorType::new(DType::F32, [2]));
        let sum = graph.add(Binary { function: BinaryFunction::Add }, &[x, y], "sum").unwrap();
        let exp = graph.add(Unary { function: UnaryFunction::Exp }, &[sum.into()], "exp").unwrap();
        graph.add_output("exp", exp.into());
        (graph, [x.node, y.node, sum, exp])
    }

    fn faults(graph: &Graph) -> Vec<String> {
        let faults = verify(graph).unwrap_err();
        assert!(faults.iter().all(|fault| fault.code == Code::InvalidGraph));
        faults.into_iter().map(|fault| format!("{}: {}", fault.location.node.unwrap(), fault.message)).collect()
    }

    #[test]
    fn accepts_a_sound_graph() {
        verify(&sample().0).unwrap();
    }

    #[test]
    fn finds_operands_that_are_missing_doubled_or_unknown() {
        let (mut graph, [x, _, sum, exp]) = sample();
        let edge = graph.nodes.find_edge(x, sum).unwrap();
        graph.nodes.remove_edge(edge);
        graph.nodes.add_edge(x, exp, Use { from: 3, to: 0 });
        assert_eq!(
            faults(&graph),
            [
                "sum: operand slots are [1], not one for each number from 0 on",
                "exp: operand slots are [0, 0], not one for each number from 0 on",
                "exp: operand 0 is result 3 of \"x\", which has 1",
            ]
        );
    }

    #[test]
    fn finds_cycles() {
        let (mut graph, [_, y, sum, exp]) = sample();
        let edge = graph.nodes.find_edge(y, sum).unwrap();
        graph.nodes.remove_edge(edge);
        graph.nodes.add_edge(exp, sum, Use { from: 0, to: 1 });
        let message = "the node is on a cycle, or behind one";
        assert_eq!(faults(&graph), [format!("sum: {message}"), format!("exp: {message}")]);
    }

    #[test]
    fn finds_wrong_types() {
        let (mut graph, [_, _, sum, _]) = sample();
        graph.nodes[sum].results = vec![TensorType::new(DType::F32, [3])];
        assert_eq!(
            faults(&graph),
            [
                "sum: the results are f32[3], inference gives f32[2]",
                "exp: the results are f32[2], inference gives f32[3]"
            ]
        );
    }

    #[test]
    fn finds_effects_that_cannot_be_kept_in_order() {
        let mut graph = Graph::new("g");
        let ty = TensorType::new(DType::F32, [2]);
        let x = graph.add_input("x", ty.clone());
        let call = |graph: &mut Graph, operand: Value, effect: usize, name: &str| {
            let types = vec![ty.clone()];
            let mut op = Extern::new(name, CallConvention::Unpacked, types.clone(), types, Vec::new());
            op.effect = effect;
            Value::from(graph.add(op, &[operand], name).unwrap())
        };
        let second = call(&mut graph, x, 2, "second");
        let exp: Value = graph.add(Unary { function: UnaryFunction::Exp }, &[second], "exp").unwrap().into();
        let third = call(&mut graph, exp, 3, "third");
        graph.add_output("y", third);
        verify(&graph).unwrap();
        call(&mut graph, exp, 1, "first");
        call(&mut graph, x, 3, "twin");
        assert_eq!(
            faults(&graph),
            [
                "twin: its place in the order of effects is another call's too",
                "first: its effect comes before that of a call that it depends on"
            ]
        );
        assert!(!graph.remove_dead(), "what has an effect stays");
    }

    #[test]
    fn finds_wrong_names() {
        let (mut graph, [_, _, _, exp]) = sample();
        graph.nodes[exp].name = "sum".into();
        assert_eq!(faults(&graph), ["sum: the name belongs to another node too"]);
    }

    #[test]
    fn finds_wrong_inputs_and_outputs() {
        let (mut graph, [x, y, sum, exp]) = sample();
        graph.inputs = vec![x, x, sum];
        graph.outputs[0].value = Value { node: exp, slot: 1 };
        graph.add_output("exp", sum.into());
        assert_eq!(
            faults(&graph),
            [
                "x: the input is declared twice",
                "sum: the node is declared as an input, but is none",
                "y: the input isn't declared",
                "g: output \"exp\" is result 1 of 1",
                "g: two outputs have the name \"exp\"",
            ]
        );
        graph.nodes.remove_node(y);
        graph.outputs.clear();
        let found = faults(&graph);
        assert!(found.contains(&"g: the graph has no output".to_owned()), "{found:?}");
        assert!(found.contains(&"g: the index has 4 names for 3 nodes".to_owned()), "{found:?}");
    }
}
