//! The ONNX format: one protobuf message that holds operators and weights.
//!
//! [`read()`] takes a file's bytes apart and checks what can be checked without knowing the operators; weights stay slices of
//! the file. [`import`] makes a graph of a model; it alone knows what operators mean. Nothing here opens a file: weights
//! beside the model come through [`ExternalData`]. [`write()`] makes a file of a graph, with pairs of quantise and dequantise around what is
//! computed with integers.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod external;
mod import;
pub mod proto;
mod read;
mod tensor;
pub mod write;

pub use external::ExternalData;
pub use import::{import, operator_support};
pub use read::{Model, read};
pub use write::write;
