//! The graph that the graph executor runs (Model Library Format, section 4): one node per step of the lowered program, one
//! entry per tensor, and the blocks of memory that entries share.
//!
//! The kernels are the ones of the ahead-of-time code and compute bit for bit the same. A buffer into which several kernels
//! write, as into a concatenation, is an entry for each of them over one block; each takes the entry before it as an argument,
//! so that the order of the nodes is the order of the writes.

mod build;
mod storage;

pub(crate) use build::{Call, Place, Registry, build};

use mlc_ir::DType;

/// A tensor that the executor knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Type of the elements.
    pub dtype: DType,
    /// Extents; at least one.
    pub shape: Vec<usize>,
    /// Number of the block of memory that holds it.
    pub storage: usize,
}

impl Entry {
    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size()
    }
}

/// A node of the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorNode {
    /// The input's or parameter's name, or the function's symbol.
    pub name: String,
    /// Whether a function is called; inputs and parameters are given.
    pub calls: bool,
    /// Numbers of the entries that the function reads.
    pub inputs: Vec<usize>,
    /// The entries that it writes, numbered over all nodes.
    pub outputs: Vec<Entry>,
}

/// What the graph executor runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecutorGraph {
    /// Inputs first, then parameters, then calls in the order of execution.
    pub nodes: Vec<ExecutorNode>,
    /// Numbers of the entries that are the model's outputs.
    pub heads: Vec<usize>,
    /// For each parameter node, in their order, the number of its constant in [`crate::Module::constants`].
    pub parameters: Vec<usize>,
    /// Largest scratch memory of a function in bytes, which it takes from the runtime while it runs.
    pub workspace_bytes: usize,
}

impl ExecutorGraph {
    /// All entries by number.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.nodes.iter().flat_map(|node| &node.outputs)
    }

    /// Size in bytes of each block: its largest entry.
    pub fn storage_bytes(&self) -> Vec<usize> {
        let mut bytes = Vec::new();
        for entry in self.entries() {
            if bytes.len() <= entry.storage {
                bytes.resize(entry.storage + 1, 0);
            }
            bytes[entry.storage] = entry.bytes().max(bytes[entry.storage]);
        }
        bytes
    }

    /// Most arguments of a call.
    pub fn most_arguments(&self) -> usize {
        let calls = self.nodes.iter().filter(|node| node.calls);
        calls.map(|node| node.inputs.len() + node.outputs.len()).max().unwrap_or(0)
    }

    /// Bytes that the executor allocates for intermediate results, and a function for its scratch memory: what is needed
    /// beyond inputs, outputs and parameters.
    pub fn planned_bytes(&self) -> usize {
        let given: Vec<usize> = self.nodes.iter().filter(|node| !node.calls).flat_map(storages).collect();
        let entries: Vec<&Entry> = self.entries().collect();
        let heads: Vec<usize> = self.heads.iter().map(|&head| entries[head].storage).collect();
        let blocks = self.storage_bytes().into_iter().enumerate();
        let own = blocks.filter(|(storage, _)| !given.contains(storage) && !heads.contains(storage));
        own.map(|(_, bytes)| bytes).sum::<usize>() + self.workspace_bytes
    }
}

fn storages(node: &ExecutorNode) -> impl Iterator<Item = usize> + '_ {
    node.outputs.iter().map(|entry| entry.storage)
}
