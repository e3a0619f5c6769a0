//! [`Item`]: what an operand is: a tensor, or a packed value, which `_field` takes apart.

use mlc_ir::Value;
use std::rc::Rc;

/// What a node's value is.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A tensor.
    Tensor(Value),
    /// An ordered tuple of tensors.
    Packed(Rc<[Value]>),
    /// Convolution weights that stand for their Winograd transform.
    Winograd(Value),
    /// Nothing.
    Absent,
    /// The result of an operator that couldn't be imported.
    Unknown,
}

impl Item {
    /// A packed value of tensors.
    pub fn packed(values: impl Into<Rc<[Value]>>) -> Self {
        Item::Packed(values.into())
    }
}

impl mlc_import::Item for Item {
    fn of(value: Value) -> Self {
        Item::Tensor(value)
    }

    fn absent() -> Self {
        Item::Absent
    }

    fn unknown() -> Self {
        Item::Unknown
    }

    fn tensor(&self) -> Option<Value> {
        match self {
            Item::Tensor(value) => Some(*value),
            _ => None,
        }
    }

    fn is_unknown(&self) -> bool {
        *self == Item::Unknown
    }

    fn description(&self) -> String {
        match self {
            Item::Tensor(_) => "a tensor".into(),
            Item::Packed(values) => format!("a packed value of {}", values.len()),
            Item::Winograd(_) => "weights in Winograd's form".into(),
            Item::Absent => "nothing".into(),
            Item::Unknown => "unknown".into(),
        }
    }

    fn map(self, replace: &mut dyn FnMut(Value) -> Value) -> Self {
        match self {
            Item::Tensor(value) => Item::Tensor(replace(value)),
            Item::Packed(values) => Item::Packed(values.iter().map(|&value| replace(value)).collect()),
            Item::Winograd(value) => Item::Winograd(replace(value)),
            other => other,
        }
    }
}
