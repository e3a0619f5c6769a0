//! [`Program`]: the operations of a file on values in place of memory. Each value is made by one step.

use super::external::External;
use crate::check::Message;
use crate::model::{DataType, Operation};
use mlc_ir::Shape;
use std::fmt;

/// A value, by its number among those of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ValueId(pub u32);

impl fmt::Display for ValueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "value {}", self.0)
    }
}

/// Type and shape of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueType {
    pub data_type: DataType,
    pub shape: Shape,
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.data_type, self.shape)
    }
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The operation itself.
    Compute,
    /// Memory that nothing was written to.
    Zeros,
    /// The same bytes as elements of another type, or under another shape.
    View,
    /// A box of an array, which starts here.
    Slice(Vec<usize>),
    /// Boxes side by side along an axis.
    Join(usize),
}

impl Action {
    /// What a step that isn't the operation itself is called.
    pub fn name(&self) -> Option<&'static str> {
        match self {
            Action::Compute => None,
            Action::Zeros => Some("memory.zeros"),
            Action::View => Some("memory.view"),
            Action::Slice(_) => Some("memory.slice"),
            Action::Join(_) => Some("memory.join"),
        }
    }
}

/// One step: an operation of the file, or how what it reads is got out of what was written.
#[derive(Debug)]
pub struct Step<'m> {
    /// What it does.
    pub action: Action,
    /// The operation that it is, or that reads what it makes; `None` for what is read when the run is over.
    pub operation: Option<&'m Operation>,
    /// What the user may call it: the operation, or the output that it is for.
    pub name: String,
    /// What it takes.
    pub operands: Vec<ValueId>,
    /// What it makes: of an operation, one for each tensor that it writes.
    pub results: Vec<ValueId>,
}

/// A value that the user gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// The value.
    pub value: ValueId,
}

/// A value that another rank gets, or that comes from one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// What the file says of it.
    pub message: Message,
    /// The value.
    pub value: ValueId,
    /// The name of its operation.
    pub name: String,
}

/// A file's operations on values.
#[derive(Debug, Default)]
pub struct Program<'m> {
    /// The buffers that come from outside, each with the value that it starts with.
    pub externals: Vec<(External, ValueId)>,
    /// In the order of execution.
    pub steps: Vec<Step<'m>>,
    /// In the order of execution.
    pub outputs: Vec<Output>,
    /// Messages, in the order of execution.
    pub exchanges: Vec<Exchange>,
    pub(super) types: Vec<ValueType>,
}

impl Program<'_> {
    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &ValueType {
        &self.types[value.0 as usize]
    }
}
