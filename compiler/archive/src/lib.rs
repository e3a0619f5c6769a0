//! Model Library Format archives, versions 1 to 7, as microTVM and mlc write them.
//!
//! [`Archive`] is the tar file with checked names, [`Metadata`] what `metadata.json` of any version says, [`Graph`] a graph
//! executor's graph, and [`Interface`] the tensors that go in and out of a model. Everything in an archive is untrusted: names
//! that lead out of it are refused, counts and sizes are checked against what is there, identifiers that reach C are C's.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod archive;
mod graph;
mod header;
mod interface;
mod metadata;
mod signature;
mod storage;

#[cfg(test)]
mod tests;

pub use archive::{Archive, is_gzip};
pub use graph::{Call, Entry, Graph, Node};
pub use header::{Header, Reset};
pub use interface::{Interface, Port};
pub use metadata::{Executor, MainMemory, Memory, Metadata, Model, OperatorMemory, StorageEntry, Style};
pub use storage::{Storage, check as check_storage, storage};

/// Whether a text is an identifier of C, so that generated code may mention it.
pub fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
