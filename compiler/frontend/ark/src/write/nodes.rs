//! Nodes as dialect 2024b has them: one operation in each, numbered by position.

use crate::model::{Dialect, Model, Node, Operation, TensorIndex};
use std::collections::{BTreeMap, BTreeSet};

/// A node to be written.
#[derive(Debug)]
pub(super) struct WrittenNode<'a> {
    pub id: u32,
    pub producers: Vec<u32>,
    pub consumers: Vec<u32>,
    pub operation: &'a Operation,
}

/// A node for each operation. A file where each node has one keeps its neighbours and their order.
pub(super) fn single_nodes(model: &Model) -> Vec<WrittenNode<'_>> {
    let mut nodes: Vec<WrittenNode> = model
        .operations()
        .enumerate()
        .map(|(id, operation)| WrittenNode { id: id as u32, producers: Vec::new(), consumers: Vec::new(), operation })
        .collect();
    if model.dialect == Dialect::Plan {
        connect(&mut nodes);
        return nodes;
    }
    // Number of the first operation of each node, by the node's number in the file.
    let mut firsts = BTreeMap::new();
    let mut count = 0;
    for node in &model.nodes {
        firsts.insert(node.id, (count, node));
        count += node.operations.len();
    }
    for &(first, node) in firsts.values() {
        for later in first + 1..first + node.operations.len() {
            for earlier in first..later {
                if uses(model, nodes[later].operation, nodes[earlier].operation) {
                    nodes[later].producers.push(earlier as u32);
                    nodes[earlier].consumers.push(later as u32);
                }
            }
        }
    }
    let mut seen = BTreeSet::new();
    for node in &model.nodes {
        for producer in &node.producers {
            for (producer, consumer) in ends(model, &firsts, *producer, node.id) {
                if seen.insert((consumer, producer, false)) {
                    nodes[consumer as usize].producers.push(producer);
                }
            }
        }
        for consumer in &node.consumers {
            for (producer, consumer) in ends(model, &firsts, node.id, *consumer) {
                if seen.insert((consumer, producer, true)) {
                    nodes[producer as usize].consumers.push(consumer);
                }
            }
        }
    }
    nodes
}

/// Finds the neighbours of nodes that don't say them: who uses what another made.
fn connect(nodes: &mut [WrittenNode<'_>]) {
    let mut makers: BTreeMap<TensorIndex, usize> = BTreeMap::new();
    for later in 0..nodes.len() {
        let operation = nodes[later].operation;
        for used in operation.reads.iter().chain(&operation.writes) {
            if let Some(&earlier) = makers.get(used)
                && !nodes[later].producers.contains(&(earlier as u32))
            {
                nodes[later].producers.push(earlier as u32);
                nodes[earlier].consumers.push(later as u32);
            }
        }
        makers.extend(operation.results.iter().map(|&result| (result, later)));
    }
}

/// The operations that an edge between two nodes is between: those where one uses what the other made, or else the last of one node
/// and the first of the other.
fn ends(model: &Model, firsts: &BTreeMap<u32, (usize, &Node)>, producer: u32, consumer: u32) -> Vec<(u32, u32)> {
    let (Some((first, producer)), Some((second, consumer))) = (firsts.get(&producer), firsts.get(&consumer)) else {
        return Vec::new();
    };
    if let ([_], [_]) = (&producer.operations[..], &consumer.operations[..]) {
        return vec![(*first as u32, *second as u32)];
    }
    let mut found = Vec::new();
    for (position, operation) in consumer.operations.iter().enumerate() {
        for (earlier, maker) in producer.operations.iter().enumerate() {
            if uses(model, operation, maker) {
                found.push(((first + earlier) as u32, (second + position) as u32));
            }
        }
    }
    if found.is_empty() {
        found.push(((first + producer.operations.len() - 1) as u32, *second as u32));
    }
    found
}

/// Whether an operation reads or writes memory that an earlier one made.
fn uses(model: &Model, later: &Operation, earlier: &Operation) -> bool {
    let used = later.reads.iter().chain(&later.writes);
    used.flat_map(|used| earlier.results.iter().map(move |made| (used, made)))
        .any(|(used, made)| used == made || model.tensor(*used).overlaps(model.tensor(*made)))
}
