//! An operator with its operands and attributes, as the functions that import it see it.

use super::Item;
use crate::syntax::{Argument, AttributeValue};
use mlc_import::Builder;
use mlc_import::Fault;
use mlc_ir::{Code, DType, Shape, Value};

pub(super) struct Call<'c, 'a> {
    pub builder: &'c mut Builder,
    items: Vec<Item<'a>>,
    attributes: &'a [Argument<'a>],
    used: Vec<&'static str>,
    taken: usize,
}

impl<'c, 'a> Call<'c, 'a> {
    pub fn new(builder: &'c mut Builder, items: Vec<Item<'a>>, attributes: &'a [Argument<'a>]) -> Self {
        Call { builder, items, attributes, used: Vec::new(), taken: 0 }
    }

    /// Operand `index`, a tensor.
    pub fn tensor(&mut self, index: usize) -> Result<Value, Fault> {
        self.taken = self.taken.max(index + 1);
        match self.items.get(index) {
            Some(Item::Tensor(value)) => Ok(*value),
            Some(_) => Err(Fault::operands(format!("operand {index} isn't a tensor"))),
            None => Err(self.missing(index)),
        }
    }

    /// The tensors of operand `index`, a tuple.
    pub fn tuple(&mut self, index: usize) -> Result<Vec<Value>, Fault> {
        self.taken = self.taken.max(index + 1);
        let Some(item) = self.items.get(index) else { return Err(self.missing(index)) };
        let not_tensors = || Fault::operands(format!("operand {index} isn't a tuple of tensors"));
        let Item::Tuple(tuple) = item else { return Err(not_tensors()) };
        let values = tuple.items.iter().map(|item| match item {
            Item::Tensor(value) => Ok(*value),
            _ => Err(not_tensors()),
        });
        values.collect()
    }

    pub fn operands(&self) -> usize {
        self.items.len()
    }

    fn missing(&self, index: usize) -> Fault {
        let message = format!("{} operands given, at least {} expected", self.items.len(), index + 1);
        Fault::new(Code::OperandCount, message)
    }

    /// Checks that every operand and attribute had a meaning.
    pub fn check_used(&self) -> Result<(), Fault> {
        if self.taken < self.items.len() {
            let message = format!("{} operands given, {} expected", self.items.len(), self.taken);
            return Err(Fault::new(Code::OperandCount, message));
        }
        match self.attributes.iter().find(|attribute| !self.used.contains(&attribute.name)) {
            Some(attribute) => Err(Fault::parameter(format!("there is no attribute `{}`", attribute.name))),
            None => Ok(()),
        }
    }

    /// An attribute; `None` also when it is said to be null.
    pub fn attribute(&mut self, name: &'static str) -> Option<&'a AttributeValue> {
        self.used.push(name);
        let found = self.attributes.iter().find(|attribute| attribute.name == name);
        found.map(|attribute| &attribute.value).filter(|value| **value != AttributeValue::None)
    }

    /// Attributes that don't matter.
    pub fn ignore(&mut self, names: &[&'static str]) {
        self.used.extend(names);
    }

    fn wrong(name: &str, value: &AttributeValue, expected: &str) -> Fault {
        Fault::parameter(format!("attribute `{name}` is {}, {expected} expected", value.describe()))
    }

    pub fn int(&mut self, name: &'static str) -> Result<Option<i64>, Fault> {
        match self.attribute(name) {
            None => Ok(None),
            Some(AttributeValue::Integer(value)) => Ok(Some(*value)),
            Some(AttributeValue::Bool(value)) => Ok(Some(i64::from(*value))),
            Some(value) => Err(Self::wrong(name, value, "a whole number")),
        }
    }

    pub fn int_or(&mut self, name: &'static str, default: i64) -> Result<i64, Fault> {
        Ok(self.int(name)?.unwrap_or(default))
    }

    /// A number that isn't negative.
    pub fn count_or(&mut self, name: &'static str, default: usize) -> Result<usize, Fault> {
        let Some(number) = self.int(name)? else { return Ok(default) };
        usize::try_from(number)
            .map_err(|_| Fault::parameter(format!("attribute `{name}` is {number}, at least 0 expected")))
    }

    pub fn flag_or(&mut self, name: &'static str, default: bool) -> Result<bool, Fault> {
        Ok(self.int(name)?.map_or(default, |number| number != 0))
    }

    pub fn float_or(&mut self, name: &'static str, default: f64) -> Result<f64, Fault> {
        match self.attribute(name) {
            None => Ok(default),
            Some(AttributeValue::Float(value, _)) => Ok(*value),
            Some(AttributeValue::Integer(value)) => Ok(*value as f64),
            Some(value) => Err(Self::wrong(name, value, "a number")),
        }
    }

    pub fn text_or(&mut self, name: &'static str, default: &'static str) -> Result<&'a str, Fault> {
        match self.attribute(name) {
            None => Ok(default),
            Some(AttributeValue::Text(text)) => Ok(text),
            Some(value) => Err(Self::wrong(name, value, "a string")),
        }
    }

    /// A data type; `None` when it isn't given.
    pub fn dtype(&mut self, name: &'static str) -> Result<Option<DType>, Fault> {
        match self.text_or(name, "")? {
            "" | "None" => Ok(None),
            text => DType::parse_long_name(text).map(Some).ok_or_else(|| {
                Fault::parameter(format!("attribute `{name}` is the data type {text}, which isn't supported"))
            }),
        }
    }

    /// Whole numbers; one number counts as a list.
    pub fn ints(&mut self, name: &'static str) -> Result<Option<Vec<i64>>, Fault> {
        let Some(value) = self.attribute(name) else { return Ok(None) };
        let wrong = || Self::wrong(name, value, "whole numbers");
        match value {
            AttributeValue::Integer(value) => Ok(Some(vec![*value])),
            AttributeValue::List(values) => values
                .iter()
                .map(|value| match value {
                    AttributeValue::Integer(value) => Ok(*value),
                    _ => Err(wrong()),
                })
                .collect::<Result<_, _>>()
                .map(Some),
            _ => Err(wrong()),
        }
    }

    pub fn required_ints(&mut self, name: &'static str) -> Result<Vec<i64>, Fault> {
        self.ints(name)?.ok_or_else(|| Fault::new(Code::ParameterMissing, format!("attribute `{name}` is missing")))
    }

    /// As many numbers as wanted, none of them negative; one number stands for all.
    pub fn counts(&mut self, name: &'static str, wanted: usize, default: usize) -> Result<Vec<usize>, Fault> {
        let Some(numbers) = self.ints(name)? else { return Ok(vec![default; wanted]) };
        let counts = extents(&numbers)?;
        match counts[..] {
            [one] => Ok(vec![one; wanted]),
            _ if counts.len() == wanted => Ok(counts.to_vec()),
            _ => Err(Fault::parameter(format!("attribute `{name}` has {} numbers, {wanted} expected", counts.len()))),
        }
    }

    /// A list of pairs of whole numbers.
    pub fn pairs(&mut self, name: &'static str) -> Result<Vec<(i64, i64)>, Fault> {
        let value = self.attribute(name);
        let value =
            value.ok_or_else(|| Fault::new(Code::ParameterMissing, format!("attribute `{name}` is missing")))?;
        let wrong = || Self::wrong(name, value, "a list of pairs of whole numbers");
        let AttributeValue::List(pairs) = value else { return Err(wrong()) };
        let pair = |pair: &AttributeValue| match pair {
            AttributeValue::List(pair) => match pair[..] {
                [AttributeValue::Integer(first), AttributeValue::Integer(second)] => Ok((first, second)),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        };
        pairs.iter().map(pair).collect()
    }

    pub fn shape(&self, x: Value) -> Shape {
        self.builder.shape(x)
    }

    /// An axis of a tensor; negative ones count from the end.
    pub fn axis(&self, x: Value, axis: i64) -> Result<usize, Fault> {
        axis_of(axis, self.builder.rank(x))
    }

    /// The axes that an attribute lists, ascending; all of them without it, the others if `exclude` is set.
    pub fn axes(&mut self, x: Value) -> Result<Vec<usize>, Fault> {
        let rank = self.builder.rank(x);
        let listed = self.ints("axis")?;
        let exclude = self.flag_or("exclude", false)?;
        let Some(listed) = listed else { return Ok((0..rank).collect()) };
        let mut axes = listed.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<Vec<usize>, Fault>>()?;
        axes.sort_unstable();
        axes.dedup();
        Ok(if exclude { (0..rank).filter(|axis| !axes.contains(axis)).collect() } else { axes })
    }

    /// The numbers of a constant operand.
    pub fn constant(&mut self, index: usize) -> Result<Vec<f64>, Fault> {
        let value = self.tensor(index)?;
        let constant = self.builder.graph().constant(value);
        let constant = constant.ok_or_else(|| Fault::variant(format!("operand {index} must be a constant")))?;
        Ok(constant.to_tensor().to_floats())
    }

    /// The whole numbers of a constant operand.
    pub fn constant_ints(&mut self, index: usize) -> Result<Vec<i64>, Fault> {
        let value = self.tensor(index)?;
        let constant = self.builder.graph().constant(value).filter(|constant| !constant.ty().dtype.is_float());
        let constant =
            constant.ok_or_else(|| Fault::variant(format!("operand {index} must be constant whole numbers")))?;
        Ok(constant.to_tensor().to_integers())
    }
}

/// Extents of numbers.
pub(super) fn extents(numbers: &[i64]) -> Result<Shape, Fault> {
    let extents: Option<Shape> = numbers.iter().map(|&number| usize::try_from(number).ok()).collect();
    extents.ok_or_else(|| Fault::parameter(format!("{numbers:?} has negative numbers")))
}

/// An axis of so many; negative ones count from the end.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize, Fault> {
    let count = rank as i64;
    let place = if axis < 0 { axis.saturating_add(count) } else { axis };
    if (0..count).contains(&place) {
        return Ok(place as usize);
    }
    Err(Fault::parameter(format!("there is no axis {axis} among {rank}")))
}
