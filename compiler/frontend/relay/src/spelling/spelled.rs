//! [`Spelled`]: an operator in Relay's words, and where what is inside of it goes.

use crate::syntax::AttributeValue;
use mlc_import::Fault;
use mlc_ir::{Attribute, Literal, Subgraph};

/// Takes what is inside of operators, but not in their lines.
pub(crate) trait Store {
    /// The name of the function that stands for a graph.
    fn graph(&mut self, graph: &Subgraph) -> String;

    /// The number of a constant.
    fn constant(&mut self, constant: &Attribute) -> usize;
}

/// Gives what a [`Store`] has taken.
pub(crate) trait Source {
    /// The graph of a function's name.
    fn graph(&mut self, name: &str) -> Result<Subgraph, Fault>;

    /// The constant of a kind and a number.
    fn constant(&mut self, key: &str, index: usize) -> Result<Attribute, Fault>;
}

/// An operator without its operands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Spelled {
    pub name: String,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// An operand behind the others that is a number.
    pub literal: Option<Literal>,
    /// Whether the operands are one tuple.
    pub tuple: bool,
}

impl Spelled {
    /// Whether one of the numbers is none, of which Relay's text knows one kind only.
    pub fn has_nan(&self) -> bool {
        let is_nan = |value: &AttributeValue| matches!(value, AttributeValue::Float(value, _) if value.is_nan());
        self.literal.is_some_and(|literal| literal.to_f64().is_nan())
            || self.attributes.iter().any(|(_, value)| is_nan(value))
    }
}
