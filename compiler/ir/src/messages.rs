//! What must hold for the messages of one graph.

use crate::distribution::{Distribution, Transfer};
use crate::graph::{Graph, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong with the graph's messages. `order` is the graph's, without nodes on cycles.
pub(crate) fn faults(graph: &Graph, order: &[NodeId]) -> Vec<String> {
    let Some(distribution) = &graph.distribution else { return Vec::new() };
    let mut faults = Vec::new();
    let &Distribution { rank, count, .. } = distribution;
    if rank >= count {
        faults.push(format!("the graph is rank {rank} of {count}"));
    }
    let kept_inputs: BTreeSet<usize> = graph.states.iter().map(|state| state.input).collect();
    let kept_outputs: BTreeSet<usize> = graph.states.iter().map(|state| state.output).collect();
    let mut received = BTreeSet::new();
    for (number, message) in distribution.messages.iter().enumerate() {
        let peer = message.peer;
        if peer >= count {
            faults.push(format!("message {number} has the peer {peer}, there are {count} ranks"));
        } else if peer == rank {
            faults.push(format!("message {number} goes from rank {rank} to itself"));
        }
        match message.transfer {
            Transfer::Send { output } if output >= graph.outputs().len() => {
                faults.push(format!("message {number} sends output {output} of {}", graph.outputs().len()));
            }
            Transfer::Receive { input } if input >= graph.inputs().len() => {
                faults.push(format!("message {number} is for input {input} of {}", graph.inputs().len()));
            }
            Transfer::Send { output } if kept_outputs.contains(&output) => {
                faults.push(format!("message {number} sends output {output}, which is a state's"));
            }
            Transfer::Receive { input } if kept_inputs.contains(&input) => {
                faults.push(format!("message {number} is for input {input}, which is a state's"));
            }
            Transfer::Receive { input } if !received.insert(input) => {
                faults.push(format!("message {number} is for input {input}, which is received before"));
            }
            _ => {}
        }
    }
    if faults.is_empty() {
        faults.extend(late_receives(graph, order, distribution));
    }
    faults
}

/// Messages that are sent before something that they are computed from is received.
fn late_receives(graph: &Graph, order: &[NodeId], distribution: &Distribution) -> Vec<String> {
    let mut latest: BTreeMap<NodeId, usize> = BTreeMap::new();
    for (number, message) in distribution.messages.iter().enumerate() {
        if let Some(&input) = message.transfer.input().and_then(|input| graph.inputs().get(input)) {
            latest.insert(input, number);
        }
    }
    for &node in order {
        let operands = graph.nodes.neighbors_directed(node, petgraph::Direction::Incoming);
        if let Some(number) = operands.filter_map(|operand| latest.get(&operand).copied()).max() {
            latest.insert(node, number);
        }
    }
    let mut faults = Vec::new();
    for (number, message) in distribution.messages.iter().enumerate() {
        let Some(output) = message.transfer.output().and_then(|output| graph.outputs().get(output)) else { continue };
        if let Some(&receive) = latest.get(&output.value.node).filter(|&&receive| receive > number) {
            let name = &output.name;
            faults
                .push(format!("message {number} sends \"{name}\", which depends on message {receive}, received later"));
        }
    }
    faults
}
