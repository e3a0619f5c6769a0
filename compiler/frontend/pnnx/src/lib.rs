//! The PNNX format: a `.param` text of operators beside a `.bin` archive of weights.
//!
//! [`read()`] takes the bytes of both files and checks everything that can be checked without knowing the operators;
//! [`to_param_text`] and [`to_bin`] write them as the current exporter does, so that one of its files comes back byte
//! for byte. Weights are never copied while reading: an [`Attribute`] is a slice of the archive.
//!
//! [`import`] makes a graph of a model; it alone knows what operators mean, apart from the four of the format itself
//! (`pnnx.Input`, `pnnx.Output`, `pnnx.Attribute`, `pnnx.Expression`). Nothing here opens a file, and nothing creates a
//! file from an entry's name.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod archive;
pub mod expression;
mod import;
pub mod model;
pub mod read;
pub mod value;
pub mod write;

pub use expression::{Expression, ExpressionError};
pub use import::{import, operator_support};
pub use model::{
    Attribute, Complex, Dimension, ElementType, Model, Operand, OperandId, OperandType, Operator, OperatorId, Parameter,
};
pub use read::{ReadOptions, read, read_with};
pub use write::{WriteError, to_bin, to_param_text};
