//! [`Transposed`]: a graph whose nodes walk columns instead of rows.

use super::patch::{height, of_node, transposition};
use super::rewriting::misfit;
use mlc_ir::operator::OperatorError;
use mlc_ir::{Diagnostic, Graph, NodeId, Operator, PatchRead, Value, folding};
use std::collections::BTreeMap;

/// A graph's nodes that have patches, each of them transposed as a whole: what stripes along columns are measured by.
pub struct Transposed {
    /// The nodes, and inputs for all else that they read.
    pub graph: Graph,
    /// What each node has become.
    nodes: BTreeMap<NodeId, NodeId>,
    /// What the values were.
    values: BTreeMap<Value, Value>,
}

impl Transposed {
    /// Transposes the nodes of a graph.
    ///
    /// # Errors
    /// When one doesn't fit: a defect of mlc.
    pub fn new(graph: &Graph) -> Result<Transposed, Diagnostic> {
        let (nodes, values) = (BTreeMap::new(), BTreeMap::new());
        let mut result = Transposed { graph: Graph::new(graph.name.clone()), nodes, values };
        let mut known: BTreeMap<(Value, bool), Value> = BTreeMap::new();
        for id in graph.topological_order() {
            let Some((op, reads)) = height(graph, id).and_then(|height| of_node(graph, id, 0..height)) else {
                continue;
            };
            let node = graph.node(id);
            let own = graph.operands(id).into_iter().zip(&reads);
            let operands = own.map(|(value, read)| result.operand(graph, &mut known, value, read));
            let own = operands.collect::<Result<Vec<Value>, OperatorError>>();
            let own = own.and_then(|operands| result.graph.add(op, &operands, &node.name));
            let own = own.map_err(|error| misfit(node, &error))?;
            result.nodes.insert(id, own);
            result.values.insert(own.into(), id.into());
            let is_output = || graph.outputs().iter().any(|output| output.value.node == id);
            known.insert((id.into(), true), own.into());
            if is_output() {
                result.graph.add_output(&node.name, own.into());
            }
        }
        // What others read is needed whole.
        for (&id, &own) in &result.nodes {
            if graph.uses(id.into()).iter().any(|(user, _)| !result.nodes.contains_key(user)) {
                result.graph.add_output(&graph.node(id).name, own.into());
            }
        }
        Ok(result)
    }

    /// What an operand has become: what computes it, a constant, or an input.
    fn operand(
        &mut self,
        graph: &Graph,
        known: &mut BTreeMap<(Value, bool), Value>,
        value: Value,
        read: &PatchRead,
    ) -> Result<Value, OperatorError> {
        let key = (value, *read != PatchRead::Whole);
        if let Some(&known) = known.get(&key) {
            return Ok(known);
        }
        let ty = graph.ty(value);
        let name = &graph.node(value.node).name;
        let moved = transposition(read, ty.rank());
        let own = match (graph.constant(value), &moved) {
            (Some(constant), None) => self.graph.add_constant(name, constant.clone()),
            (Some(constant), Some(transpose)) => {
                let transposed = folding::compute(&transpose.clone().into(), &[constant])?;
                self.graph.add_constant(name, transposed[0].clone())
            }
            (None, None) => self.graph.add_input(name, ty.clone()),
            (None, Some(transpose)) => {
                let results = transpose.infer(std::slice::from_ref(ty))?;
                self.graph.add_input(name, results[0].clone())
            }
        };
        self.values.insert(own, value);
        known.insert(key, own);
        Ok(own)
    }

    /// What some nodes have become; `None` where one of them has no patches.
    pub fn nodes(&self, nodes: &[NodeId]) -> Option<Vec<NodeId>> {
        nodes.iter().map(|id| self.nodes.get(id).copied()).collect()
    }

    /// What a value of it was.
    pub fn original(&self, value: Value) -> Option<Value> {
        self.values.get(&value).copied()
    }
}
