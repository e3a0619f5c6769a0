//! [`Graph`]: operator applications and the values between them, over a petgraph graph.

use crate::attribute::Attribute;
use crate::distribution::{Distribution, Message};
use crate::operator::OperatorError;
use crate::ops::{Constant, Input, Op};
use crate::types::{Quantization, TensorType};
use petgraph::Direction;
use petgraph::stable_graph::{NodeIndex, StableDiGraph};
use petgraph::visit::EdgeRef;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Names a node; stays valid while other nodes come and go.
pub type NodeId = NodeIndex<u32>;

/// One result of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value {
    /// The node that computes it.
    pub node: NodeId,
    /// Which of its results it is.
    pub slot: u32,
}

impl From<NodeId> for Value {
    fn from(node: NodeId) -> Value {
        Value { node, slot: 0 }
    }
}

/// One operator application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The operator.
    pub op: Op,
    /// Unique in the graph; reaches C comments, the report and errors.
    pub name: Arc<str>,
    /// Names of the source operators that this node stands for.
    pub origins: BTreeSet<Arc<str>>,
    /// Types of the results, as inferred.
    pub results: Vec<TensorType>,
}

/// A use of a value as an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Use {
    /// Which result of the producer.
    pub from: u32,
    /// Which operand of the consumer.
    pub to: u32,
}

/// A named result of the whole graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its name in the model.
    pub name: Arc<str>,
    /// What it is.
    pub value: Value,
}

/// A value that is kept between two runs of the model: what an output gives, an input gets at the next run. To the evaluator and
/// to passes both are like any other input and output; generated code keeps the value to itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    /// Its name, unique among the states.
    pub name: Arc<str>,
    /// Number of the input that gets it.
    pub input: usize,
    /// Number of the output that gives it.
    pub output: usize,
    /// What the input gets at the first run.
    pub initial: Attribute,
}

/// What integers at the inputs and outputs of a graph stand for, by the numbers of those that it is known of. It changes nothing of what
/// is computed: callers need it to make such integers, and to read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterfaceQuantization {
    /// Of inputs.
    pub inputs: BTreeMap<usize, Quantization>,
    /// Of outputs.
    pub outputs: BTreeMap<usize, Quantization>,
}

/// A directed acyclic graph of operator applications, with ordered inputs and outputs.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// Name of the model.
    pub name: String,
    /// Values that are kept between two runs.
    pub states: Vec<State>,
    /// What integers at its inputs and outputs stand for.
    pub quantization: InterfaceQuantization,
    /// The graph's place among several that run together, if it is one of those.
    pub distribution: Option<Distribution>,
    pub(crate) nodes: StableDiGraph<Node, Use, u32>,
    pub(crate) inputs: Vec<NodeId>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) names: BTreeMap<Arc<str>, NodeId>,
    /// The last number that was put behind a name, so that many nodes of one name don't try all the numbers before.
    numbers: BTreeMap<Arc<str>, u32>,
}

impl Graph {
    /// An empty graph.
    pub fn new(name: impl Into<String>) -> Self {
        Graph { name: name.into(), ..Graph::default() }
    }

    /// Appends an input.
    pub fn add_input(&mut self, name: &str, ty: TensorType) -> Value {
        let node = self.insert(Input { ty: ty.clone() }.into(), name, BTreeSet::new(), vec![ty]);
        self.inputs.push(node);
        node.into()
    }

    /// Adds a constant.
    pub fn add_constant(&mut self, name: &str, value: Attribute) -> Value {
        let ty = value.ty().clone();
        self.insert(Constant { value }.into(), name, BTreeSet::new(), vec![ty]).into()
    }

    /// Applies an operator. The name is made unique by a suffix when it is taken.
    ///
    /// # Errors
    /// When the operator doesn't accept the operands.
    pub fn add(&mut self, op: impl Into<Op>, operands: &[Value], name: &str) -> Result<NodeId, OperatorError> {
        self.add_with_origins(op, operands, name, BTreeSet::new())
    }

    /// Applies an operator that stands for these source operators.
    ///
    /// # Errors
    /// When the operator doesn't accept the operands.
    pub fn add_with_origins(
        &mut self,
        op: impl Into<Op>,
        operands: &[Value],
        name: &str,
        origins: BTreeSet<Arc<str>>,
    ) -> Result<NodeId, OperatorError> {
        let op = op.into();
        let types: Vec<TensorType> = operands.iter().map(|&value| self.ty(value).clone()).collect();
        let results = op.infer(&types)?;
        if let Some(large) = results.iter().find(|ty| ty.checked_bytes().is_none()) {
            return Err(OperatorError::types(format!("the result {large} is too large")));
        }
        let node = self.insert(op, name, origins, results);
        for (to, value) in operands.iter().enumerate() {
            self.nodes.add_edge(value.node, node, Use { from: value.slot, to: to as u32 });
        }
        Ok(node)
    }

    /// Takes over what another graph of the same inputs and outputs does with them: its states and its messages, and
    /// what their integers stand for.
    pub fn take_interface(&mut self, other: &Graph) {
        self.states.clone_from(&other.states);
        self.quantization.clone_from(&other.quantization);
        self.distribution.clone_from(&other.distribution);
    }

    /// Appends an output.
    pub fn add_output(&mut self, name: &str, value: Value) {
        self.outputs.push(Output { name: name.into(), value });
    }

    /// A name that no node has: this one, or this one with a number.
    fn unique(&mut self, name: &str) -> Arc<str> {
        let mut unique: Arc<str> = name.into();
        if self.names.contains_key(&unique) {
            let number = self.numbers.entry(unique.clone()).or_insert(1);
            while self.names.contains_key(&unique) {
                *number += 1;
                unique = format!("{name}.{number}").into();
            }
        }
        unique
    }

    /// Gives a node another name. A node that has it gets a number.
    pub(crate) fn rename(&mut self, node: NodeId, name: &str) {
        if let Some(other) = self.find(name).filter(|&other| other != node) {
            let unique = self.unique(name);
            self.set_name(other, unique);
        }
        self.set_name(node, name.into());
    }

    fn set_name(&mut self, node: NodeId, name: Arc<str>) {
        let old = std::mem::replace(&mut self.nodes[node].name, name.clone());
        self.names.remove(&old);
        self.names.insert(name, node);
    }

    fn insert(&mut self, op: Op, name: &str, origins: BTreeSet<Arc<str>>, results: Vec<TensorType>) -> NodeId {
        let unique = self.unique(name);
        let node = self.nodes.add_node(Node { op, name: unique.clone(), origins, results });
        self.names.insert(unique, node);
        node
    }

    /// The node. Precondition: it is in the graph.
    pub fn node(&self, node: NodeId) -> &Node {
        &self.nodes[node]
    }

    /// Gives a node another operator with the same results.
    ///
    /// # Errors
    /// When the operator doesn't accept the node's operands, or gives other results.
    pub fn replace_op(&mut self, node: NodeId, op: impl Into<Op>) -> Result<(), OperatorError> {
        let op = op.into();
        if op.infer(&self.operand_types(node))? != self.nodes[node].results {
            return Err(OperatorError::types("the operator in place of another one gives other results"));
        }
        self.nodes[node].op = op;
        Ok(())
    }

    /// Changes which source operators a node stands for.
    pub fn origins_mut(&mut self, node: NodeId) -> &mut BTreeSet<Arc<str>> {
        &mut self.nodes[node].origins
    }

    /// The node of a name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    /// Type of a value.
    pub fn ty(&self, value: Value) -> &TensorType {
        &self.nodes[value.node].results[value.slot as usize]
    }

    /// Type of a value, if it exists.
    pub(crate) fn checked_ty(&self, value: Value) -> Option<&TensorType> {
        self.nodes.node_weight(value.node)?.results.get(value.slot as usize)
    }

    /// The constant behind a value.
    pub fn constant(&self, value: Value) -> Option<&Attribute> {
        match &self.nodes[value.node].op {
            Op::Constant(constant) => Some(&constant.value),
            _ => None,
        }
    }

    /// A node's operands, in order.
    pub fn operands(&self, node: NodeId) -> Vec<Value> {
        let mut edges: Vec<(u32, Value)> = self
            .nodes
            .edges_directed(node, Direction::Incoming)
            .map(|edge| (edge.weight().to, Value { node: edge.source(), slot: edge.weight().from }))
            .collect();
        edges.sort_unstable_by_key(|(to, _)| *to);
        edges.into_iter().map(|(_, value)| value).collect()
    }

    /// Types of a node's operands, in order.
    pub fn operand_types(&self, node: NodeId) -> Vec<TensorType> {
        self.operands(node).into_iter().map(|value| self.ty(value).clone()).collect()
    }

    /// The uses of a value as an operand: (consumer, operand number), sorted. Graph outputs aren't among them.
    pub fn uses(&self, value: Value) -> Vec<(NodeId, u32)> {
        let mut uses: Vec<(NodeId, u32)> = self
            .nodes
            .edges_directed(value.node, Direction::Outgoing)
            .filter(|edge| edge.weight().from == value.slot)
            .map(|edge| (edge.target(), edge.weight().to))
            .collect();
        uses.sort_unstable();
        uses
    }

    /// Inputs in order.
    pub fn inputs(&self) -> &[NodeId] {
        &self.inputs
    }

    /// Outputs in order.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Numbers of the inputs that the caller of the model gives: those that no state and no message is for.
    pub fn open_inputs(&self) -> Vec<usize> {
        let received = self.messages().iter().filter_map(|message| message.transfer.input());
        let taken: BTreeSet<usize> = self.states.iter().map(|state| state.input).chain(received).collect();
        (0..self.inputs.len()).filter(|number| !taken.contains(number)).collect()
    }

    /// Numbers of the outputs that the caller of the model gets: those that no state and no message takes.
    pub fn open_outputs(&self) -> Vec<usize> {
        let sent = self.messages().iter().filter_map(|message| message.transfer.output());
        let taken: BTreeSet<usize> = self.states.iter().map(|state| state.output).chain(sent).collect();
        (0..self.outputs.len()).filter(|number| !taken.contains(number)).collect()
    }

    /// What it exchanges with other ranks, in order.
    pub fn messages(&self) -> &[Message] {
        self.distribution.as_ref().map_or(&[], |distribution| &distribution.messages)
    }

    /// All nodes, by id.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.nodes.node_indices()
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.node_count()
    }

    /// Whether there is no node.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All nodes in a canonical topological order: producers first, else by id. Nodes on a cycle are left out.
    pub fn topological_order(&self) -> Vec<NodeId> {
        let mut missing: BTreeMap<NodeId, usize> = self
            .nodes
            .node_indices()
            .map(|node| (node, self.nodes.edges_directed(node, Direction::Incoming).count()))
            .collect();
        let mut ready: BTreeSet<NodeId> =
            missing.iter().filter(|(_, count)| **count == 0).map(|(node, _)| *node).collect();
        let mut order = Vec::with_capacity(self.len());
        while let Some(node) = ready.pop_first() {
            order.push(node);
            for edge in self.nodes.edges_directed(node, Direction::Outgoing) {
                if let Some(count) = missing.get_mut(&edge.target()) {
                    *count -= 1;
                    if *count == 0 {
                        ready.insert(edge.target());
                    }
                }
            }
        }
        order
    }

    /// Makes one operand of a node another value of the same type. Precondition: the node has the operand.
    pub fn replace_operand(&mut self, node: NodeId, operand: u32, new: Value) {
        let edges = self.nodes.edges_directed(node, Direction::Incoming);
        let Some(edge) = edges.filter(|edge| edge.weight().to == operand).map(|edge| edge.id()).next() else { return };
        self.nodes.remove_edge(edge);
        self.nodes.add_edge(new.node, node, Use { from: new.slot, to: operand });
    }

    /// Makes every user of a value, and every output, use another one of the same type.
    pub fn replace_value(&mut self, old: Value, new: Value) {
        debug_assert_eq!(self.ty(old), self.ty(new));
        let edges: Vec<_> = self
            .nodes
            .edges_directed(old.node, Direction::Outgoing)
            .filter(|edge| edge.weight().from == old.slot && edge.target() != new.node)
            .map(|edge| (edge.id(), edge.target(), edge.weight().to))
            .collect();
        for (edge, target, to) in edges {
            self.nodes.remove_edge(edge);
            self.nodes.add_edge(new.node, target, Use { from: new.slot, to });
        }
        for output in &mut self.outputs {
            if output.value == old {
                output.value = new;
            }
        }
    }

    /// Removes nodes that no output needs. Inputs stay. Returns whether any was removed.
    pub fn remove_dead(&mut self) -> bool {
        let mut live: BTreeSet<NodeId> = self.inputs.iter().copied().collect();
        let mut stack: Vec<NodeId> = self.outputs.iter().map(|output| output.value.node).collect();
        stack.extend(self.node_ids().filter(|&id| self.node(id).op.effects().is_some()));
        while let Some(node) = stack.pop() {
            if live.insert(node) {
                stack.extend(self.nodes.neighbors_directed(node, Direction::Incoming));
            }
        }
        let before = self.nodes.node_count();
        self.nodes.retain_nodes(|_, node| live.contains(&node));
        self.names.retain(|_, node| live.contains(node));
        // New names don't depend on what was there before: a graph that is read from its text gets the same ones.
        self.numbers.clear();
        self.nodes.node_count() != before
    }

    /// Whether both graphs have the same name, inputs, outputs with what their integers stand for, states, messages and nodes, by
    /// their names, and the same connections. The numbers of the nodes don't matter.
    pub fn structurally_equal(&self, other: &Graph) -> bool {
        let node_name = |graph: &Graph, node: NodeId| graph.nodes.node_weight(node).map(|node| node.name.clone());
        let inputs = |graph: &Graph| -> Vec<_> { graph.inputs.iter().map(|&node| node_name(graph, node)).collect() };
        let outputs = |graph: &Graph| -> Vec<_> {
            let value = |output: &Output| (output.name.clone(), node_name(graph, output.value.node), output.value.slot);
            graph.outputs.iter().map(value).collect()
        };
        let operands = |graph: &Graph, node: NodeId| -> Vec<_> {
            graph.operands(node).into_iter().map(|value| (node_name(graph, value.node), value.slot)).collect()
        };
        let same_node = |(name, &node): (&Arc<str>, &NodeId)| {
            other.find(name).is_some_and(|twin| {
                self.nodes.node_weight(node) == other.nodes.node_weight(twin)
                    && operands(self, node) == operands(other, twin)
            })
        };
        self.name == other.name
            && self.states == other.states
            && self.quantization == other.quantization
            && self.distribution == other.distribution
            && self.len() == other.len()
            && inputs(self) == inputs(other)
            && outputs(self) == outputs(other)
            && self.names.iter().all(same_node)
    }
}
