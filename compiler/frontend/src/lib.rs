//! Readers (and writers) of model formats. Bytes in, graph and diagnostics out; nothing here opens a file.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod builder;
mod fault;
mod import;

pub mod mlf;
pub mod onnx;
pub mod pnnx;
pub mod relay;
mod support;

pub use import::{ImportOptions, Imported};
pub use support::OperatorSupport;
