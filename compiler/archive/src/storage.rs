//! The blocks of memory of a graph executor. Archives tell their sizes wrongly, so they are computed from the graph.

use super::graph::Graph;
use super::metadata::StorageEntry;
use mlc_ir::{Code, Diagnostic, Location};
use serde::Serialize;
use std::collections::BTreeMap;

/// A block of memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Storage {
    /// Its number.
    pub storage_id: usize,
    /// Its size: that of the largest tensor in it.
    pub size_bytes: u64,
    /// The input or parameter that it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_binding: Option<String>,
    /// Whether a result of the graph is in it.
    pub holds_result: bool,
}

/// The blocks of a graph, in the order of their first use.
pub fn storage(graph: &Graph) -> Vec<Storage> {
    let mut blocks: Vec<Storage> = Vec::new();
    let mut known: BTreeMap<usize, usize> = BTreeMap::new();
    for entry in &graph.entries {
        let place = *known.entry(entry.storage_id).or_insert_with(|| {
            let storage_id = entry.storage_id;
            blocks.push(Storage { storage_id, size_bytes: 0, input_binding: None, holds_result: false });
            blocks.len() - 1
        });
        blocks[place].size_bytes = blocks[place].size_bytes.max(entry.ty.bytes() as u64);
    }
    for node in graph.arguments() {
        let node = &graph.nodes[node];
        blocks[known[&graph.entries[node.first].storage_id]].input_binding = Some(node.name.clone());
    }
    for &head in &graph.heads {
        blocks[known[&graph.entries[head].storage_id]].holds_result = true;
    }
    blocks
}

/// Warns when an archive tells the sizes of a graph's blocks wrongly.
pub fn check(told: &[StorageEntry], computed: &[Storage]) -> Option<Diagnostic> {
    if told.is_empty() {
        return None;
    }
    let sizes: BTreeMap<usize, u64> = computed.iter().map(|block| (block.storage_id, block.size_bytes)).collect();
    let wrong = told.iter().filter(|block| sizes.get(&block.storage_id) != Some(&block.size_bytes)).count();
    let message = if told.len() != computed.len() {
        format!("'metadata.json' lists {} blocks of memory, the graph has {}", told.len(), computed.len())
    } else if wrong > 0 {
        format!("'metadata.json' tells the sizes of {wrong} of {} blocks of memory wrongly", told.len())
    } else {
        return None;
    };
    let place = Location { json_path: Some("memory.sids".into()), ..Location::default() };
    Some(
        Diagnostic::warning(Code::CountMismatch, place, message)
            .with_note("the reference writer has this defect; mlc shows and uses the sizes that follow from the graph"),
    )
}
