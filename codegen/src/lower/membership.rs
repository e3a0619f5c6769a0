//! What nodes of a stripe are to each other.

use super::patches::{kept_of, rows_of};
use mlc_ir::{Graph, NodeId, Op};
use std::collections::BTreeSet;

/// Whether a node's one result is computed row by row.
pub fn has_rows(graph: &Graph, id: NodeId) -> bool {
    let node = graph.node(id);
    node.results.len() == 1 && node.op.by_rows(&graph.operand_types(id)).is_some()
}

/// Whether a node is one of some, or some columns that these alone read.
pub fn is_among(graph: &Graph, id: NodeId, nodes: &BTreeSet<NodeId>) -> bool {
    let is_output = || graph.outputs().iter().any(|output| output.value.node == id);
    let is_read_there = || graph.uses(id.into()).iter().all(|(user, _)| nodes.contains(user));
    nodes.contains(&id) || rows_of(graph, id.into()).is_some() && is_read_there() && !is_output()
}

/// Whether a node of some does nothing but copy rows that another one of them computes, for others than them.
pub fn is_kept(graph: &Graph, id: NodeId, nodes: &BTreeSet<NodeId>) -> bool {
    let is_read_outside = graph.uses(id.into()).iter().all(|(user, _)| !nodes.contains(user));
    is_read_outside && kept_of(graph, id).is_some_and(|whole| nodes.contains(&whole.node))
}

/// Whether a node of some computes nothing but a part of what another one of them joins.
pub fn is_joined(graph: &Graph, id: NodeId, nodes: &BTreeSet<NodeId>) -> bool {
    let joins = |user: NodeId| nodes.contains(&user) && matches!(graph.node(user).op, Op::Concat(_));
    let is_whole = graph.outputs().iter().any(|output| output.value.node == id);
    let [(user, _)] = graph.uses(id.into())[..] else { return false };
    joins(user) && has_rows(graph, id) && !is_whole && !matches!(graph.node(id).op, Op::Concat(_))
}
