//! Descriptions of operators: how users add an operator of their own, by one small file and without a new compiler.
//!
//! A description says what tensors and parameters an operator has, which checks they must pass, and how the types of its
//! results follow; and it brings the C that computes them. [`Library`] reads descriptions in all three syntaxes and tells all
//! problems of a file at once, and [`Library::infer`] types an operator of a model by them. [`Description::definition`]
//! is the C of an operator type, over the files of [`Description::support`]; [`Description::implementation`] is what a model's code
//! needs of an operator.
//!
//! This crate does no input or output, and no text of a description can make it panic, take long, or take much memory.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

mod c;
mod definition;
mod description;
mod glue;
mod implementation;
mod infer;
mod parameter;
mod problem;
mod program;
mod read;
mod source;
mod syntax;
mod template;

pub use definition::CFile;
pub use description::{Arch, Body, Description, Input, Output, PrivateMember};
pub use implementation::Implementation;
pub use infer::{ELEMENT_TYPES, Inference, InferredParameter, OperatorInstance, TensorDescription};
pub use parameter::{Parameter, ParameterKind, ParameterValue};
pub use read::Library;
pub use template::template;
