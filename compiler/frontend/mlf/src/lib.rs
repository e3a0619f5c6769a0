//! Imports Model Library Format archives that hold a graph: its C functions become `extern` nodes.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod code;
mod import;

pub use import::import;
