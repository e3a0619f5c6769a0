//! What the format demands of a model beyond its schema: the graph, the operators' tensors and arguments, memory, and messages.

mod graph;
mod messages;
mod operation;
mod product;
mod rules;
mod signature;
mod subject;
#[cfg(test)]
mod tests;

pub(crate) use graph::check_graph;
pub use messages::{Direction, Message, messages};
pub(crate) use operation::check_operation;
pub(crate) use product::DERIVED;
pub(crate) use subject::Subject;
