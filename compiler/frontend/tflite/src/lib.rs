//! The TensorFlow Lite format (`.tflite`): a FlatBuffer of subgraphs, whose tensors may be quantised.
//!
//! [`read()`] takes a file's bytes apart and checks what can be checked without knowing the operators; weights stay slices of the
//! file. [`import`] makes a graph of a model; it alone knows what operators mean. Nothing here opens a file.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod element_type;
mod import;
mod model;
mod read;
mod schema;
mod sparsity;
#[cfg(test)]
mod test_models;
mod variables;

pub use element_type::ElementType;
pub use import::{import, operator_support};
pub use model::{Model, Operator, Quantization, Setting, Subgraph, Tensor};
pub use read::read;
pub use sparsity::{Level, Sparsity};
