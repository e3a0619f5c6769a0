//! What importers of all model formats share: what they take and give, and the builder of graphs. Nothing here knows a
//! format, and nothing opens a file.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod builder;
mod fault;
mod options;
pub mod support;

pub use builder::Builder;
pub use fault::Fault;
pub use options::{ImportOptions, Imported, unknown_dimension};
pub use support::OperatorSupport;
