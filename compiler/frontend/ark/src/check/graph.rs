//! Nodes and their neighbours, and who makes which tensor.

use crate::model::{Model, Node, Place};
use mlc_ir::{Code, Diagnostic, Location};
use std::collections::BTreeMap;

/// What is wrong with the nodes of a model as a whole.
pub(crate) fn check_graph(model: &Model) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let mut positions = BTreeMap::new();
    for (position, node) in model.nodes.iter().enumerate() {
        if positions.insert(node.id, position).is_some() {
            let message = format!("two nodes have the number {}", node.id);
            found.push(fault(model, position, "Id", Code::DuplicateDefinition, message));
        }
    }
    if found.is_empty() {
        check_neighbours(model, &positions, &mut found);
    }
    check_results(model, &mut found);
    found
}

/// Neighbours exist, know of each other, and producers come first.
fn check_neighbours(model: &Model, positions: &BTreeMap<u32, usize>, found: &mut Vec<Diagnostic>) {
    let edges = |neighbours: fn(&Node) -> &[u32]| {
        let mut edges: Vec<(u32, u32)> =
            model.nodes.iter().flat_map(|node| neighbours(node).iter().map(|&other| (node.id, other))).collect();
        edges.sort_unstable();
        edges
    };
    let (producers, consumers) = (edges(|node| &node.producers), edges(|node| &node.consumers));
    for (position, node) in model.nodes.iter().enumerate() {
        for (field, neighbours, mirror, is_producer) in [
            ("ProducerNodeIds", &node.producers, &consumers, true),
            ("ConsumerNodeIds", &node.consumers, &producers, false),
        ] {
            for (index, &other) in neighbours.iter().enumerate() {
                let field = format!("{field}[{index}]");
                let Some(&place) = positions.get(&other) else {
                    let message = format!("no node has the number {other}");
                    found.push(fault(model, position, &field, Code::UndefinedValue, message));
                    continue;
                };
                if is_producer && place >= position {
                    let message = format!("node {other} makes what node {} uses, and must come before it", node.id);
                    found.push(fault(model, position, &field, Code::UndefinedValue, message));
                } else if mirror.binary_search(&(other, node.id)).is_err() {
                    let relation = if is_producer { "a producer of" } else { "a consumer of" };
                    let message =
                        format!("node {other} is {relation} node {} by this list, and not by its own", node.id);
                    found.push(fault(model, position, &field, Code::CountMismatch, message));
                }
            }
        }
    }
}

/// A tensor is the result of one operation.
fn check_results(model: &Model, found: &mut Vec<Diagnostic>) {
    let mut made = vec![false; model.tensors.len()];
    for operation in model.operations() {
        for (position, &result) in operation.results.iter().enumerate() {
            if std::mem::replace(&mut made[result.0 as usize], true) {
                let mut location = operation.location();
                location.json_path = location.json_path.map(|path| format!("{path}.ResultTensors[{position}]"));
                let message = format!("tensor {} is the result of another operation, too", model.tensor(result).id);
                found.push(Diagnostic::error(Code::DuplicateDefinition, location, message));
            }
        }
    }
}

/// An error about a key of a node.
fn fault(model: &Model, position: usize, field: &str, code: Code, message: String) -> Diagnostic {
    let operation = model.nodes[position].operations.first();
    let path = match operation {
        Some(operation) => operation.place.node_path(),
        None => Place { list: "Nodes", node: position as u32, operation: None }.node_path(),
    };
    let location = operation.map(|operation| operation.location()).unwrap_or_default();
    Diagnostic::error(code, Location { json_path: Some(format!("{path}.{field}")), ..location }, message)
}
