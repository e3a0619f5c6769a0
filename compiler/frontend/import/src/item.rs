//! What an operand is while a model is imported, and what an attribute's value can be read as.

use crate::builder::Builder;
use crate::fault::Fault;
use mlc_ir::{DType, Value};
use std::ops::Deref;

/// What an operand or a result of an operator is: a tensor of the graph, or what the format knows besides.
pub trait Item: Clone + PartialEq {
    /// A tensor.
    fn of(value: Value) -> Self;

    /// Nothing: an optional operand or result that isn't there.
    fn absent() -> Self;

    /// The result of an operator that couldn't be imported; what depends on it is left out without a word.
    fn unknown() -> Self;

    /// The tensor, if it is one.
    fn tensor(&self) -> Option<Value>;

    /// Whether an operator that couldn't be imported stands behind it.
    fn is_unknown(&self) -> bool;

    /// For messages: `a tensor`, `a sequence`.
    fn description(&self) -> String;

    /// The tensor that it stands for; numbers of some formats become constants of rank 0.
    ///
    /// # Errors
    /// When it stands for none. `what` names the operand.
    fn to_value(&self, _builder: &mut Builder, what: &str) -> Result<Value, Fault> {
        self.tensor()
            .ok_or_else(|| Fault::operands(format!("operand {what} must be a tensor, found {}", self.description())))
    }

    /// The same with every tensor replaced.
    #[must_use]
    fn map(self, replace: &mut dyn FnMut(Value) -> Value) -> Self;

    /// Both items as one, tensor by tensor, as where data decide between them; `None` when they are of different kinds.
    ///
    /// # Errors
    /// What `merge` finds.
    fn merged(
        self,
        other: Self,
        merge: &mut dyn FnMut(Value, Value) -> Result<Value, Fault>,
    ) -> Option<Result<Self, Fault>> {
        Some(merge(self.tensor()?, other.tensor()?).map(Self::of))
    }

    /// Whether it is nothing.
    fn is_absent(&self) -> bool {
        *self == Self::absent()
    }
}

/// The items of formats whose operands are tensors, or sequences of them.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// A tensor.
    Tensor(Value),
    /// A sequence of tensors, known while the model is imported.
    Sequence(Vec<Value>),
    /// Nothing.
    Absent,
    /// The result of an operator that couldn't be imported.
    Unknown,
}

impl Item for Operand {
    fn of(value: Value) -> Self {
        Operand::Tensor(value)
    }

    fn absent() -> Self {
        Operand::Absent
    }

    fn unknown() -> Self {
        Operand::Unknown
    }

    fn tensor(&self) -> Option<Value> {
        match self {
            Operand::Tensor(value) => Some(*value),
            _ => None,
        }
    }

    fn is_unknown(&self) -> bool {
        *self == Operand::Unknown
    }

    fn description(&self) -> String {
        match self {
            Operand::Tensor(_) => "a tensor",
            Operand::Sequence(_) => "a sequence",
            Operand::Absent => "nothing",
            Operand::Unknown => "unknown",
        }
        .into()
    }

    fn map(self, replace: &mut dyn FnMut(Value) -> Value) -> Self {
        match self {
            Operand::Tensor(value) => Operand::Tensor(replace(value)),
            Operand::Sequence(values) => Operand::Sequence(values.into_iter().map(replace).collect()),
            other => other,
        }
    }

    fn merged(
        self,
        other: Self,
        merge: &mut dyn FnMut(Value, Value) -> Result<Value, Fault>,
    ) -> Option<Result<Self, Fault>> {
        match (self, other) {
            (Operand::Tensor(first), Operand::Tensor(second)) => Some(merge(first, second).map(Operand::Tensor)),
            (Operand::Sequence(first), Operand::Sequence(second)) if first.len() == second.len() => {
                let values = first.into_iter().zip(second).map(|(first, second)| merge(first, second));
                Some(values.collect::<Result<_, _>>().map(Operand::Sequence))
            }
            _ => None,
        }
    }
}

/// The value of an operator's attribute. Each reading is `None` when the value isn't of that kind.
pub trait AttributeValue: Clone {
    /// A text of the file.
    type Word: Deref<Target = str>;

    /// Whether the file says that there is none: null, Python's None.
    fn is_absent(&self) -> bool {
        false
    }

    /// For messages: `the whole number 3`, `a list of 2`.
    fn description(&self) -> String;

    /// A whole number.
    fn int(&self) -> Option<i64>;

    /// A number.
    fn float(&self) -> Option<f64>;

    /// A truth value; most formats have the numbers 0 and 1.
    fn flag(&self) -> Option<bool> {
        match self.int()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Whole numbers.
    fn ints(&self) -> Option<Vec<i64>>;

    /// Numbers.
    fn floats(&self) -> Option<Vec<f64>>;

    /// A word.
    fn word(&self) -> Option<Self::Word>;

    /// Words.
    fn words(&self) -> Option<Vec<String>> {
        None
    }

    /// Truth values; most formats have the numbers 0 and 1.
    fn flags(&self) -> Option<Vec<bool>> {
        let flag = |number| match number {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        self.ints()?.into_iter().map(flag).collect()
    }

    /// A data type, in the format's numbers or words; an error when it is one that the IR lacks.
    fn dtype(&self) -> Option<Result<DType, Fault>>;
}
