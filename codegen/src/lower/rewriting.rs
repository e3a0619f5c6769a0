//! Copies of a graph in which nodes are replaced by others.

use mlc_ir::operator::OperatorError;
use mlc_ir::ops::Constant;
use mlc_ir::{Code, Diagnostic, Graph, Location, Node, NodeId, Op, Value};
use std::collections::BTreeMap;

/// A copy of a graph while it is made: its nodes are to be added in topological order.
pub struct Rewriting<'a> {
    graph: &'a Graph,
    /// The copy.
    pub result: Graph,
    values: BTreeMap<Value, Value>,
}

impl<'a> Rewriting<'a> {
    /// A copy that has the graph's interface and constants, and none of its other nodes.
    pub fn new(graph: &'a Graph) -> Rewriting<'a> {
        let mut result = Graph::new(graph.name.clone());
        result.take_interface(graph);
        let mut values = BTreeMap::new();
        for &input in graph.inputs() {
            let node = graph.node(input);
            values.insert(input.into(), result.add_input(&node.name, node.results[0].clone()));
        }
        Rewriting { graph, result, values }
    }

    /// What a value has become. Precondition: its node was added.
    pub fn value(&self, value: Value) -> Value {
        self.values[&value]
    }

    /// What the operands of a node have become. Precondition: they were added.
    pub fn operands(&self, id: NodeId) -> Vec<Value> {
        self.graph.operands(id).iter().map(|&operand| self.value(operand)).collect()
    }

    /// Has the results of a node become some values.
    pub fn replace(&mut self, id: NodeId, results: Vec<Value>) {
        for (slot, value) in results.into_iter().enumerate() {
            self.values.insert(Value { node: id, slot: slot as u32 }, value);
        }
    }

    /// Adds an input, which is there already, or a constant; whether a node is one of them.
    pub fn add_source(&mut self, id: NodeId) -> bool {
        let node = self.graph.node(id);
        if let Op::Constant(Constant { value }) = &node.op {
            let constant = self.result.add_constant(&node.name, value.clone());
            self.replace(id, vec![constant]);
        }
        matches!(node.op, Op::Input(_) | Op::Constant(_))
    }

    /// The copy, without what isn't needed.
    pub fn finish(mut self) -> Graph {
        for output in self.graph.outputs() {
            self.result.add_output(&output.name, self.values[&output.value]);
        }
        self.result.remove_dead();
        self.result
    }
}

/// Copies a graph; `apply` adds each node's replacement and gives its results.
///
/// # Errors
/// When a replacement doesn't fit: a defect of mlc.
pub fn rewrite(
    graph: &Graph,
    apply: impl Fn(&mut Graph, &Node, &[Value]) -> Result<Vec<Value>, OperatorError>,
) -> Result<Graph, Diagnostic> {
    let mut rewriting = Rewriting::new(graph);
    for id in graph.topological_order() {
        if rewriting.add_source(id) {
            continue;
        }
        let (node, operands) = (graph.node(id), rewriting.operands(id));
        let results = apply(&mut rewriting.result, node, &operands).map_err(|error| misfit(node, &error))?;
        rewriting.replace(id, results);
    }
    Ok(rewriting.finish())
}

/// What is said of a replacement that doesn't fit.
pub fn misfit(node: &Node, error: &OperatorError) -> Diagnostic {
    let place = Location::default().at_operator(node.op.name(), node.name.to_string());
    Diagnostic::error(Code::InvalidGraph, place, error.to_string())
}

/// Adds an operator in the place of a node; its results.
pub fn add(graph: &mut Graph, op: Op, operands: &[Value], node: &Node) -> Result<Vec<Value>, OperatorError> {
    let id = graph.add_with_origins(op, operands, &node.name, node.origins.clone())?;
    let count = graph.node(id).results.len();
    Ok((0..count).map(|slot| Value { node: id, slot: slot as u32 }).collect())
}
