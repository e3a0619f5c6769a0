//! The language of `pnnx.Expression`: a tree of scalar arithmetic over an operator's inputs, as in
//! `add(mul(@0,2),size(@1,2))`.
//!
//! An [`Expression`] is an arena in which operands come before the nodes that use them, so that it can be evaluated in
//! one pass. Parsing, printing and dropping take time linear in the text and no stack, however deep the calls nest.

mod function;
mod parse;
mod tree;

pub use function::Function;
pub use parse::{ExpressionError, ExpressionErrorKind};
pub use tree::{Children, Expression, Node, NodeId};

#[cfg(test)]
mod tests;
