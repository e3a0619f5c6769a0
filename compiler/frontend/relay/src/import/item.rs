//! [`Item`]: what an operand is, a tensor or a tuple.

use mlc_import::Fault;
use mlc_ir::{Code, Value};
use std::rc::Rc;

/// Most members of a tuple once its tuples are written out.
const MOST_MEMBERS: usize = 1 << 16;

/// How deep tuples may nest.
const MOST_TUPLES: usize = 32;

/// What an operand stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A tensor.
    Tensor(Value),
    /// Several.
    Tuple(Tuple),
    /// Nothing; Relay itself has no such operand.
    Absent,
    /// What couldn't be imported.
    Unknown,
}

/// Several tensors, or tuples of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuple {
    pub items: Rc<[Item]>,
    /// How many there are in all, those of inner tuples counted.
    members: usize,
    /// How deep tuples nest in it.
    depth: usize,
    /// Whether one of them couldn't be imported.
    unknown: bool,
}

impl Tuple {
    pub fn new(items: Vec<Item>) -> Result<Self, Fault> {
        let (mut members, mut depth, mut unknown) = (0usize, 0, false);
        for item in &items {
            match item {
                Item::Tensor(_) | Item::Absent => members += 1,
                Item::Tuple(inner) => {
                    members = members.saturating_add(inner.members + 1);
                    depth = depth.max(inner.depth);
                    unknown |= inner.unknown;
                }
                Item::Unknown => unknown = true,
            }
        }
        if members > MOST_MEMBERS || depth >= MOST_TUPLES {
            let message = format!("the tuple has more than {MOST_MEMBERS} members, or tuples {MOST_TUPLES} deep");
            return Err(Fault::new(Code::NumberOutOfRange, message));
        }
        Ok(Tuple { items: items.into(), members, depth: depth + 1, unknown })
    }
}

/// Tensors as the one result of an operator.
pub fn tuple(values: Vec<Value>) -> Result<Vec<Item>, Fault> {
    Ok(vec![Item::Tuple(Tuple::new(values.into_iter().map(Item::Tensor).collect())?)])
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
        match self {
            Item::Unknown => true,
            Item::Tuple(tuple) => tuple.unknown,
            _ => false,
        }
    }

    fn description(&self) -> String {
        match self {
            Item::Tensor(_) => "a tensor".into(),
            Item::Tuple(tuple) => format!("a tuple of {}", tuple.items.len()),
            Item::Absent => "nothing".into(),
            Item::Unknown => "unknown".into(),
        }
    }

    fn map(self, replace: &mut dyn FnMut(Value) -> Value) -> Self {
        match self {
            Item::Tensor(value) => Item::Tensor(replace(value)),
            Item::Tuple(tuple) => {
                let items = tuple.items.iter().map(|item| item.clone().map(replace)).collect();
                Item::Tuple(Tuple { items, ..tuple })
            }
            other => other,
        }
    }
}
