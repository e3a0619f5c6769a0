//! [`Foreign`]: what runs functions in C where a graph is evaluated. This crate does no input or output, so whoever evaluates a graph
//! with such functions hands something in that does.

use crate::ops::Extern;
use crate::tensor::Tensor;

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
