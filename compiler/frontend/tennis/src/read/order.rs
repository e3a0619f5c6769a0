//! The order of the nodes: topological, and as near to the file's as that allows, so that a file in order stays as it is.

use crate::model::{Model, Node, NodeId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Nodes that have no order.
pub(super) struct Unordered {
    pub nodes: Vec<Node>,
    /// Nodes each of which takes the value of the next one, the last that of the first.
    pub cycle: Vec<NodeId>,
}

/// Where each node's users are in one list of them.
struct Users {
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl Users {
    fn of(nodes: &[Node]) -> Self {
        let mut starts = vec![0u32; nodes.len() + 1];
        for input in nodes.iter().flat_map(|node| &node.inputs) {
            starts[input.index() + 1] += 1;
        }
        for index in 0..nodes.len() {
            starts[index + 1] += starts[index];
        }
        let mut next = starts.clone();
        let mut list = vec![0; starts[nodes.len()] as usize];
        for (index, node) in nodes.iter().enumerate() {
            for input in &node.inputs {
                let place = &mut next[input.index()];
                list[*place as usize] = index as u32;
                *place += 1;
            }
        }
        Users { starts, list }
    }

    fn of_node(&self, node: usize) -> &[u32] {
        &self.list[self.starts[node] as usize..self.starts[node + 1] as usize]
    }
}

/// Puts the nodes in order: of those whose inputs are there, always the one that the file has first.
pub(super) fn sort(model: Model) -> Result<Model, Unordered> {
    let Model { mut inputs, mut outputs, nodes } = model;
    let users = Users::of(&nodes);
    let mut waiting: Vec<usize> = nodes.iter().map(|node| node.inputs.len()).collect();
    let ready = (0..nodes.len()).filter(|&node| waiting[node] == 0).map(|node| Reverse(node as u32));
    let mut ready: BinaryHeap<Reverse<u32>> = ready.collect();
    let mut order: Vec<u32> = Vec::with_capacity(nodes.len());
    while let Some(Reverse(node)) = ready.pop() {
        order.push(node);
        for &user in users.of_node(node as usize) {
            waiting[user as usize] -= 1;
            if waiting[user as usize] == 0 {
                ready.push(Reverse(user));
            }
        }
    }
    if order.len() < nodes.len() {
        let cycle = cycle(&nodes, &waiting);
        return Err(Unordered { nodes, cycle });
    }
    let mut places = vec![NodeId(0); nodes.len()];
    for (place, &node) in order.iter().enumerate() {
        places[node as usize] = NodeId(place as u32);
    }
    let mut taken: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    let mut sorted: Vec<Node> = order.iter().filter_map(|&node| taken[node as usize].take()).collect();
    let references = sorted.iter_mut().flat_map(|node| &mut node.inputs).chain(&mut inputs).chain(&mut outputs);
    references.for_each(|id| *id = places[id.index()]);
    Ok(Model { inputs, outputs, nodes: sorted })
}

/// A cycle among the nodes that wait for inputs.
fn cycle(nodes: &[Node], waiting: &[usize]) -> Vec<NodeId> {
    let waits = |node: &usize| waiting[*node] > 0;
    let Some(first) = (0..nodes.len()).find(waits) else { return Vec::new() };
    // Each waiting node waits for another one, so that the walk comes back to where it was.
    let mut seen_at = vec![usize::MAX; nodes.len()];
    let mut walk = Vec::new();
    let mut node = first;
    while seen_at[node] == usize::MAX {
        seen_at[node] = walk.len();
        walk.push(NodeId(node as u32));
        let next = nodes[node].inputs.iter().map(|input| input.index()).find(waits);
        let Some(next) = next else { break };
        node = next;
    }
    walk.split_off(seen_at[node])
}
