//! The intermediate representation of mlc: a graph of operators over dense tensors.
//!
//! A [`Graph`] holds operator applications ([`Node`]) and the [`Value`]s between them. Every operator is one file under
//! [`ops`] and implements [`Operator`]: fields, shape inference, reference evaluation, cost, a random sample. Convolutions,
//! pools and resizing work on channels-last tensors; frontends of channels-first formats insert transposes, and passes move
//! them to the rim. Elementwise operators are scalar [`scalar::Expression`]s; after fusion a node is a kernel: an anchor
//! operator with such an expression as its epilogue ([`ops::Kernel`]), or a [`ops::Map`] without an anchor.
//!
//! This crate knows no file formats, no e-graphs and no C, and does no input or output.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod attribute;
pub mod checksum;
pub mod diagnostics;
pub mod distribution;
pub mod evaluator;
pub mod fields;
pub mod folding;
pub mod foreign;
pub mod generator;
pub mod graph;
pub mod interface;
mod literal;
mod messages;
mod objective;
pub mod operator;
pub mod ops;
pub mod parallel;
pub mod prices;
pub mod ranks;
mod rounding;
pub mod scalar;
pub mod stateful;
pub mod subgraph;
pub mod tensor;
pub mod text;
mod transposition;
pub mod types;
pub mod verify;

pub use attribute::{Attribute, AttributeError};
pub use diagnostics::{Code, Diagnostic, Location, Severity};
pub use distribution::{Distribution, Message, Transfer};
pub use evaluator::{
    evaluate, evaluate_all, evaluate_all_with, evaluate_runs, evaluate_runs_with, evaluate_with, evaluation_order,
    in_a_row, known_operands,
};
pub use fields::{Field, FieldValue, Fields};
pub use foreign::Foreign;
pub use generator::Generator;
pub use graph::{Graph, InterfaceQuantization, Node, NodeId, Output, State, Value};
pub use literal::Literal;
pub use objective::Objective;
pub use operator::{Category, IntegerForm, Operator, OperatorError, PatchRead, PatchReads, RowReads, RowWindow, Work};
pub use ops::{Op, OpKind, ops_table};
pub use prices::{Cost, Known, PricedOperand, Prices, Weights};
pub use subgraph::Subgraph;
pub use tensor::{Tensor, Values};
pub use types::{DType, Float, Quantization, Shape, TensorType};
pub use verify::verify;
