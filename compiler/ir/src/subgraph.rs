//! [`Subgraph`]: a graph as a field of an operator.

use crate::fields::{Field, FieldValue, Nested};
use crate::graph::Graph;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A graph inside of an operator. It is shared and never changes, so that operators stay cheap to copy, compare and hash.
/// Two are equal when their graphs are, names included.
#[derive(Debug, Clone)]
pub struct Subgraph {
    graph: Arc<Graph>,
    hash: u64,
}

impl Subgraph {
    /// Wraps a graph.
    pub fn new(graph: Graph) -> Self {
        // Names and operators suffice: graphs of equal hashes are compared in full.
        let mut hasher = DefaultHasher::new();
        graph.name.hash(&mut hasher);
        for (name, &node) in &graph.names {
            name.hash(&mut hasher);
            graph.nodes.node_weight(node).map(|node| &node.op).hash(&mut hasher);
        }
        Subgraph { graph: Arc::new(graph), hash: hasher.finish() }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}

impl FieldValue {
    /// A graph as a field's value.
    pub fn of_graph(graph: Subgraph) -> Self {
        FieldValue::Nested(Nested::new(graph))
    }

    /// The graph, if the value is one.
    pub fn as_graph(&self) -> Option<&Subgraph> {
        match self {
            FieldValue::Nested(nested) => nested.get(),
            _ => None,
        }
    }
}

impl Field for Subgraph {
    fn to_value(&self) -> FieldValue {
        FieldValue::of_graph(self.clone())
    }

    fn from_value(value: &FieldValue) -> Option<Self> {
        value.as_graph().cloned()
    }
}

impl Deref for Subgraph {
    type Target = Graph;

    fn deref(&self) -> &Graph {
        &self.graph
    }
}

impl PartialEq for Subgraph {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.graph, &other.graph)
            || (self.hash == other.hash && self.graph.structurally_equal(&other.graph))
    }
}

impl Eq for Subgraph {}

impl Hash for Subgraph {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Unary;
    use crate::scalar::UnaryFunction;
    use crate::types::{DType, TensorType};

    fn graph(function: UnaryFunction) -> Subgraph {
        let mut graph = Graph::new("g");
        let x = graph.add_input("x", TensorType::new(DType::F32, [2]));
        let y = graph.add(Unary { function }, &[x], "y").unwrap();
        graph.add_output("y", y.into());
        Subgraph::new(graph)
    }

    #[test]
    fn equality_is_that_of_the_graphs() {
        assert_eq!(graph(UnaryFunction::Exp), graph(UnaryFunction::Exp));
        assert_eq!(graph(UnaryFunction::Exp).hash, graph(UnaryFunction::Exp).hash);
        assert_ne!(graph(UnaryFunction::Exp), graph(UnaryFunction::Tanh));
        let mut more = graph(UnaryFunction::Exp).graph().clone();
        let y = more.find("y").unwrap();
        more.add_output("again", y.into());
        assert_ne!(Subgraph::new(more), graph(UnaryFunction::Exp));
    }
}
