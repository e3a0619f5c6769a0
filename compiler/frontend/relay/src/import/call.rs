//! The engine's types for Relay, and what Relay's operators have besides what the engine reads for all formats: tuples as
//! operands, pairs and sets of axes as attributes.

use super::format::Relay;
use super::item::Item;
use crate::syntax::AttributeValue;
use mlc_import::{Fault, normalized_axis};
use mlc_ir::{Code, Value};

/// An operator while it is imported.
pub(super) type Call<'c, 'm> = mlc_import::Call<'c, 'm, Relay>;

/// Names and handlers.
pub(super) type Table = mlc_import::Table<Relay>;

/// Access to what only Relay has.
pub(super) trait Arguments<'m> {
    /// The tensors of operand `index`, a tuple.
    fn tuple(&mut self, index: usize) -> Result<Vec<Value>, Fault>;

    /// A word, with its default.
    fn word_or(&mut self, name: &str, default: &'static str) -> Result<&'m str, Fault>;

    /// A list of pairs of whole numbers.
    fn pairs(&mut self, name: &str) -> Result<Vec<(i64, i64)>, Fault>;

    /// The axes that an attribute lists, ascending; all of them without it, the others if `exclude` is set.
    fn chosen_axes(&mut self, x: Value) -> Result<Vec<usize>, Fault>;

    /// The numbers of a constant operand.
    fn numbers(&mut self, index: usize) -> Result<Vec<f64>, Fault>;

    /// The whole numbers of a constant operand.
    fn whole_numbers(&mut self, index: usize) -> Result<Vec<i64>, Fault>;
}

impl<'m> Arguments<'m> for Call<'_, 'm> {
    fn tuple(&mut self, index: usize) -> Result<Vec<Value>, Fault> {
        let item = self.item(index);
        let not_tensors = || Fault::operands(format!("operand {index} isn't a tuple of tensors"));
        let Item::Tuple(tuple) = item else { return Err(not_tensors()) };
        let values = tuple.items.iter().map(|item| match item {
            Item::Tensor(value) => Ok(*value),
            _ => Err(not_tensors()),
        });
        values.collect()
    }

    fn word_or(&mut self, name: &str, default: &'static str) -> Result<&'m str, Fault> {
        Ok(self.word(name)?.unwrap_or(default))
    }

    fn pairs(&mut self, name: &str) -> Result<Vec<(i64, i64)>, Fault> {
        let pair = |pair: &AttributeValue| match pair {
            AttributeValue::List(pair) => match pair[..] {
                [AttributeValue::Integer(first), AttributeValue::Integer(second)] => Some((first, second)),
                _ => None,
            },
            _ => None,
        };
        let pairs = self.typed(name, "a list of pairs of whole numbers", |value| match value {
            AttributeValue::List(pairs) => pairs.iter().map(pair).collect(),
            _ => None,
        })?;
        self.required(name, pairs)
    }

    fn chosen_axes(&mut self, x: Value) -> Result<Vec<usize>, Fault> {
        let rank = self.rank(x);
        let listed = self.ints("axis")?;
        let exclude = self.flag_or("exclude", false)?;
        let Some(listed) = listed else { return Ok((0..rank).collect()) };
        let mut axes = listed.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<Vec<usize>, Fault>>()?;
        axes.sort_unstable();
        axes.dedup();
        Ok(if exclude { (0..rank).filter(|axis| !axes.contains(axis)).collect() } else { axes })
    }

    fn numbers(&mut self, index: usize) -> Result<Vec<f64>, Fault> {
        self.constant_floats(index, "the numbers")?.ok_or_else(|| missing(index))
    }

    fn whole_numbers(&mut self, index: usize) -> Result<Vec<i64>, Fault> {
        self.constant_ints(index, "the numbers")?.ok_or_else(|| missing(index))
    }
}

fn missing(index: usize) -> Fault {
    Fault::new(Code::OperandCount, format!("operand {index} is missing"))
}

/// An axis of so many; negative ones count from the end.
pub(super) fn axis_of(axis: i64, rank: usize) -> Result<usize, Fault> {
    normalized_axis(axis, rank).ok_or_else(|| Fault::parameter(format!("there is no axis {axis} among {rank}")))
}
