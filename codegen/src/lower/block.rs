//! [`Block`]: nodes that are computed together, row by row.

use super::considered::Span;
use super::patch::Halo;
use mlc_ir::{Graph, NodeId};

/// Nodes that are computed row by row, as one stripe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Their names, in the order of the graph.
    pub nodes: Vec<String>,
    /// How many rows are computed at a time.
    pub rows: usize,
    /// In how many patches.
    pub patches: usize,
    /// What becomes of rows that two of them read.
    pub halo: Halo,
    /// Of what is itself a patch, which of how many.
    pub patch: (usize, usize),
    /// Operations that patches do beyond those of the whole.
    pub twice: u64,
    /// The input whose rows are given one after the other, if the nodes read it.
    pub fed: Option<String>,
}

impl Default for Block {
    fn default() -> Block {
        Block { nodes: Vec::new(), rows: 1, patches: 1, halo: Halo::Computed, patch: (0, 1), twice: 0, fed: None }
    }
}

impl Block {
    /// Whether a node is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.nodes.iter().any(|node| node == name)
    }

    /// The nodes in a graph that has them.
    pub fn found(&self, graph: &Graph) -> Vec<NodeId> {
        self.nodes.iter().filter_map(|name| graph.find(name)).collect()
    }

    /// Its first and its last node.
    pub fn span(&self) -> Span {
        let name = |node: Option<&String>| node.cloned().unwrap_or_default();
        let (first, last) = (name(self.nodes.first()), name(self.nodes.last()));
        Span { first, last, nodes: self.nodes.len(), patches: self.patches, halo: self.halo, twice: self.twice }
    }

    /// See [`Block::fed`], in a graph that has it.
    pub fn fed(&self, graph: &Graph) -> Option<NodeId> {
        graph.find(self.fed.as_ref()?)
    }
}
