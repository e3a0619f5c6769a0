//! [`Subject`]: an operation whose rules are checked.

use crate::model::{Argument, Model, Operation, Tensor, TensorIndex};
use mlc_ir::{Code, Diagnostic, Location};
use std::fmt::Display;

/// An operation of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub model: &'a Model,
    pub operation: &'a Operation,
}

impl<'a> Subject<'a> {
    /// A tensor that it reads. Precondition: it reads that many, as its signature says.
    pub fn read(&self, position: usize) -> &'a Tensor {
        self.model.tensor(self.operation.reads[position])
    }

    /// A tensor that it writes, likewise.
    pub fn written(&self, position: usize) -> &'a Tensor {
        self.model.tensor(self.operation.writes[position])
    }

    /// What its result is another name of.
    pub fn output(&self) -> &'a Tensor {
        self.written(0)
    }

    /// An argument. Precondition: the signature has it as a truth value.
    pub fn flag(&self, name: &str) -> bool {
        matches!(self.operation.argument(name), Some(Argument::Bool(true)))
    }

    /// A tensor whose memory must be this rank's.
    pub fn local(&self, field: &str, tensors: &[TensorIndex], position: usize) -> Result<(), Diagnostic> {
        match self.model.buffer_of(tensors[position]).remote {
            None => Ok(()),
            Some(rank) => {
                let message = format!("memory of this rank expected, memory of rank {rank} found");
                Err(self.fault(format!("{field}[{position}]"), Code::OperandTypes, message))
            }
        }
    }

    /// The rank of a tensor whose memory must be another one's.
    pub fn remote(&self, field: &str, tensors: &[TensorIndex], position: usize) -> Result<u32, Diagnostic> {
        self.model.buffer_of(tensors[position]).remote.ok_or_else(|| {
            let message = "memory of another rank expected, memory of this rank found";
            self.fault(format!("{field}[{position}]"), Code::OperandTypes, message)
        })
    }

    /// An error about a key of the operation, or a part of it.
    pub fn fault(&self, field: impl Display, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, self.location(field), message)
    }

    /// The place of a key of the operation.
    pub fn location(&self, field: impl Display) -> Location {
        let mut location = self.operation.location();
        location.json_path = location.json_path.map(|path| format!("{path}.{field}"));
        location
    }
}
