//! [`Foreign`]: what runs functions in C where a graph is evaluated. This crate does no input or output, so whoever evaluates a graph
//! with such functions hands something in that does.

use crate::operator::OperatorError;
use crate::ops::{Extern, Op};
use crate::tensor::Tensor;
use crate::types::TensorType;

/// Runs functions in C.
pub trait Foreign {
    /// The results of a call. `known` says which operands are the same at every call, so that the function's `begin` gets them.
    ///
    /// # Errors
    /// Why there are none, in words: it can't be compiled, crashes, hangs or says that it failed.
    fn call(&self, op: &Extern, operands: &[&Tensor], known: &[bool]) -> Result<Vec<Tensor>, String>;

    /// Forgets what functions with effects have kept: the next call is a first one.
    fn restart(&self);
}

/// Runs none.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl Foreign for Nobody {
    fn call(&self, op: &Extern, _operands: &[&Tensor], _known: &[bool]) -> Result<Vec<Tensor>, String> {
        Err(op.unavailable())
    }

    fn restart(&self) {}
}

impl Op {
    /// [`Op::evaluate`] where functions in C may be called; `known` is of the operands ([`crate::evaluator::known_operands`]).
    ///
    /// # Errors
    /// When the values have no result, or a function fails.
    pub fn evaluate_with(
        &self,
        operands: &[&Tensor],
        known: &[bool],
        results: &[TensorType],
        foreign: &dyn Foreign,
    ) -> Result<Vec<Tensor>, OperatorError> {
        match self {
            Op::Extern(op) => foreign.call(op, operands, known).map_err(OperatorError::Evaluation),
            Op::Loop(op) => op.evaluate_with(operands, results, foreign),
            _ => self.evaluate(operands, results),
        }
    }
}
