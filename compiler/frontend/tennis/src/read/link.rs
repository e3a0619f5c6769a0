//! What nodes say of each other: references, endpoints, the order in which nodes can be computed.

use super::order::{self, Unordered};
use super::stream::{Parts, RawNode, Reference};
use crate::model::{Model, Node, NodeId};
use mlc_import::Report;
use mlc_ir::{Code, Diagnostic, Location};
use std::collections::BTreeSet;

/// Makes a model of a stream's parts; `None` when there is none to make.
pub(super) fn link(parts: Parts, report: &mut Report) -> Option<Model> {
    let Parts { inputs, outputs, nodes: raw } = parts;
    let count = raw.len();
    let inputs = resolve_listed(&inputs, "module inputs", count, report);
    let outputs = resolve_listed(&outputs, "module outputs", count, report);
    let nodes: Option<Vec<Node>> =
        raw.into_iter().enumerate().map(|(number, node)| resolve(node, number, count, report)).collect();
    let (inputs, outputs, nodes) = (inputs?, outputs?, nodes?);
    match order::sort(Model { inputs, outputs, nodes }) {
        Ok(model) => {
            check_endpoints(&model, report);
            check_inputs(&model, report);
            Some(model)
        }
        Err(Unordered { nodes, cycle }) => {
            report.push(cycle_fault(&nodes, &cycle));
            None
        }
    }
}

/// The node that a number means.
fn node_id(number: i32, count: usize) -> Option<NodeId> {
    u32::try_from(number).ok().filter(|&number| (number as usize) < count).map(NodeId)
}

fn resolve_listed(list: &[Reference], what: &str, count: usize, report: &mut Report) -> Option<Vec<NodeId>> {
    let mut found = Vec::new();
    for reference in list {
        match node_id(reference.number, count) {
            Some(id) => found.push(id),
            None => {
                let message = format!("the list of {what} has node {}, there are {count} nodes", reference.number);
                let location = Location::byte_offset(reference.offset);
                report.push(Diagnostic::error(Code::UndefinedValue, location, message));
            }
        }
    }
    (found.len() == list.len()).then_some(found)
}

fn resolve(raw: RawNode, number: usize, count: usize, report: &mut Report) -> Option<Node> {
    let RawNode { kind, name, parameters, inputs, offset, inputs_offset } = raw;
    let mut node = Node { kind, name, parameters, inputs: Vec::new(), offset, number: number as u32 };
    for (place, &input) in inputs.iter().enumerate() {
        match node_id(input, count) {
            Some(id) => node.inputs.push(id),
            None => {
                let message = format!("input {place} of the node is node {input}, there are {count} nodes");
                let location = Location::byte_offset(inputs_offset + 4 * place as u64);
                let location = location.at_operator(&*node.kind, node.title());
                report.push(Diagnostic::error(Code::UndefinedValue, location, message));
            }
        }
    }
    (node.inputs.len() == inputs.len()).then_some(node)
}

fn location(node: &Node) -> Location {
    Location::byte_offset(node.offset).at_operator(&*node.kind, node.title())
}

/// Most nodes of a cycle that a message lists.
const MOST_LISTED: usize = 8;

fn cycle_fault(nodes: &[Node], cycle: &[NodeId]) -> Diagnostic {
    let titles: Vec<String> =
        cycle.iter().take(MOST_LISTED).map(|id| format!("`{}`", nodes[id.index()].title())).collect();
    let more = if cycle.len() > MOST_LISTED { ", …" } else { "" };
    let message = format!("nodes need each other's values: {}{more}", titles.join(", "));
    let place = cycle.first().map_or_else(Location::default, |first| location(&nodes[first.index()]));
    Diagnostic::error(Code::UndefinedValue, place, message).with_help("a graph of values has no cycles")
}

/// Endpoints take nothing and have what they need; operators that count take something.
fn check_endpoints(model: &Model, report: &mut Report) {
    for (node, reachable) in model.nodes.iter().zip(model.reachable()) {
        let fault = |code, message: &str| Diagnostic::error(code, location(node), message);
        if node.is_endpoint() && !node.inputs.is_empty() {
            let message = format!("{} takes nothing, but the node lists {} inputs", node.kind, node.inputs.len());
            report.push(fault(Code::OperandCount, &message));
        }
        if !node.is_endpoint() && node.inputs.is_empty() && reachable && !node.kind.is_empty() {
            report.push(fault(Code::OperandCount, "an operator needs at least one input"));
        }
        if node.kind == Node::CONSTANT && !node.parameters.contains_key("value") {
            report.push(fault(Code::ParameterMissing, "the constant has no parameter `value`"));
        }
    }
}

/// The module's inputs are inputs, each once, and all those that count are listed.
fn check_inputs(model: &Model, report: &mut Report) {
    let mut listed = BTreeSet::new();
    for &id in &model.inputs {
        let node = model.node(id);
        if node.kind != Node::PARAMETER {
            let message = format!("the list of module inputs has a node that isn't {}", Node::PARAMETER);
            report.push(Diagnostic::error(Code::ParameterInvalid, location(node), message));
        }
        if !listed.insert(id) {
            let message = "the list of module inputs has the node twice";
            report.push(Diagnostic::error(Code::DuplicateDefinition, location(node), message));
        }
    }
    for (index, reachable) in model.reachable().into_iter().enumerate() {
        let node = &model.nodes[index];
        if reachable && node.kind == Node::PARAMETER && !listed.contains(&NodeId(index as u32)) {
            let message = "an output depends on the input, which isn't in the list of module inputs";
            report.push(Diagnostic::error(Code::UndefinedValue, location(node), message));
        }
    }
}
