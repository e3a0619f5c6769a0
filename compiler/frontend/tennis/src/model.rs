//! [`Model`]: a file taken apart. Its nodes are in topological order, whatever the file's was.

use crate::tensor::Tensor;
use std::collections::BTreeMap;
use std::fmt;

/// A node's place in [`Model::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// As an index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A value and how it is made.
#[derive(Debug, Clone)]
pub struct Node {
    /// The operator, or `<param>` or `<const>`.
    pub kind: String,
    /// Its name; it may be empty, and several nodes may have it.
    pub name: String,
    /// Its parameters besides kind and name.
    pub parameters: BTreeMap<String, Tensor>,
    /// The nodes whose values it takes, in order; they come before it.
    pub inputs: Vec<NodeId>,
    /// Where it starts in its file, for messages.
    pub offset: u64,
    /// Its number in its file, for messages.
    pub number: u32,
}

/// Two nodes are equal when they say the same, wherever they stand.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        let Node { kind, name, parameters, inputs, offset: _, number: _ } = self;
        (kind, name, parameters, inputs) == (&other.kind, &other.name, &other.parameters, &other.inputs)
    }
}

impl Node {
    /// An input of the module.
    pub const PARAMETER: &'static str = "<param>";
    /// A constant.
    pub const CONSTANT: &'static str = "<const>";
    /// A state, which nothing computes with.
    pub const VARIABLE: &'static str = "<var>";

    /// Whether it is the end of an edge, not an operator.
    pub fn is_endpoint(&self) -> bool {
        [Node::PARAMETER, Node::CONSTANT, Node::VARIABLE].contains(&&*self.kind)
    }

    /// Its name, or its number where it has none.
    pub fn title(&self) -> String {
        if self.name.is_empty() { format!("node {}", self.number) } else { self.name.clone() }
    }
}

/// A module as its file has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The inputs in the order of a call.
    pub inputs: Vec<NodeId>,
    /// The outputs in the order of results; one may be there several times.
    pub outputs: Vec<NodeId>,
    /// The nodes in topological order.
    pub nodes: Vec<Node>,
}

impl Model {
    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// Whether each node is needed for an output.
    pub fn reachable(&self) -> Vec<bool> {
        let mut reachable = vec![false; self.nodes.len()];
        for id in &self.outputs {
            reachable[id.index()] = true;
        }
        for index in (0..self.nodes.len()).rev() {
            if reachable[index] {
                for input in &self.nodes[index].inputs {
                    reachable[input.index()] = true;
                }
            }
        }
        reachable
    }

    /// How often each operator occurs, those that nothing needs included.
    pub fn operators(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| !node.is_endpoint()) {
            *counts.entry(node.kind.clone()).or_default() += 1;
        }
        counts
    }

    /// Number of constants and what they take in bytes.
    pub fn weights(&self) -> (usize, u64) {
        let fields = self.nodes.iter().filter(|node| node.kind == Node::CONSTANT);
        let fields = fields.filter_map(|node| node.parameters.get("value")).flat_map(|value| &value.fields);
        fields.fold((0, 0), |(count, bytes), field| (count + 1, bytes + field.data.len() as u64))
    }
}
