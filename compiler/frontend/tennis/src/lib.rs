//! The TenniS format (`.tsm`): one flat stream of nodes, each a map of named tensors and a list of the nodes that feed it.
//!
//! [`read()`] takes a file's bytes apart, checks what can be checked without knowing the operators, and puts the nodes in
//! topological order; weights stay slices of the file. [`write()`] writes what [`read()`] gives back equal. [`import`] makes a graph
//! of a model; it alone knows what operators mean. Nothing here opens a file.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod element_type;
mod import;
mod model;
mod read;
mod tensor;
mod write;

pub use element_type::ElementType;
pub use import::{import, operator_support};
pub use model::{Model, Node, NodeId};
pub use read::read;
pub use tensor::{Field, Tensor};
pub use write::write;
