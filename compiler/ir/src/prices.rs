//! What a target pays: a [`Cost`], and the [`Weights`] by which costs are compared. Everything is a whole number, so that sums are the
//! same whatever their order. [`Prices`] is what the optimiser asks a target.

use crate::{Op, TensorType};
use std::fmt::Debug;
use std::ops::Add;

/// What something costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Time of a run, in cycles, or in instructions where the machine runs one after the other.
    pub time: u64,
    /// Bytes of code and constants.
    pub flash: u64,
    /// Bytes of memory that can be written, while it is computed and as long as somebody needs it.
    pub ram: u64,
}

impl Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            time: self.time.saturating_add(other.time),
            flash: self.flash.saturating_add(other.flash),
            ram: self.ram.saturating_add(other.ram),
        }
    }
}

/// What the parts of a cost are worth. Only their ratios matter: with `time` 4 and `flash` 1, a cycle is worth four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    /// Of a cycle, or an instruction.
    pub time: u64,
    /// Of a byte of code and constants.
    pub flash: u64,
    /// Of a byte of memory that can be written.
    pub ram: u64,
}

impl Weights {
    /// Time counts; memory decides between what is about as fast. A byte of constants has to come from a cache, at least.
    pub const fn speed() -> Weights {
        Weights { time: 16, flash: 1, ram: 0 }
    }

    /// Small code and few constants, whatever time it takes.
    pub const fn size() -> Weights {
        Weights { time: 1, flash: 64, ram: 1 }
    }

    /// Little memory that can be written, whatever time it takes.
    pub const fn ram() -> Weights {
        Weights { time: 4, flash: 1, ram: 64 }
    }

    /// A byte of flash is worth an instruction of each run, four bytes of memory as much: what suits a microcontroller.
    pub const fn balanced() -> Weights {
        Weights { time: 4, flash: 4, ram: 1 }
    }

    /// A cost as one number, by which costs are compared.
    pub fn weigh(&self, cost: Cost) -> u64 {
        let part = |amount: u64, each: u64| amount.saturating_mul(each);
        part(cost.time, self.time).saturating_add(part(cost.flash, self.flash)).saturating_add(part(cost.ram, self.ram))
    }
}

/// What is known of an operand when its user is priced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Known {
    /// Its type.
    Type,
    /// That it is a constant, whose layout is free.
    Constant,
    /// That all its elements are one number.
    Splat,
}

/// An operand of an application that is priced.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PricedOperand {
    /// Its type.
    pub ty: TensorType,
    /// What else is known.
    pub known: Known,
}

/// The prices of a target.
pub trait Prices: Debug {
    /// What an application costs whose operands are computed in memory of their own. Constants aren't counted: each is paid once,
    /// see [`Prices::constant`]. Nothing, where lowering makes a view of the result.
    fn application(&self, op: &Op, operands: &[PricedOperand], results: &[TensorType]) -> Cost;

    /// What the same application costs more if operand `number` is an input, or a view, of values of the type beside it; behind a
    /// view, what it is a view of may follow if that is one too. Elements that lie apart are read slowly, or copied before, and
    /// what isn't computed can't be computed in its place.
    fn operand(
        &self,
        op: &Op,
        operands: &[PricedOperand],
        results: &[TensorType],
        number: usize,
        source: &[(&Op, &TensorType)],
    ) -> Cost;

    /// What a constant costs that somebody needs, however many need it. A number in all elements is kept once.
    fn constant(&self, ty: &TensorType, known: Known) -> Cost {
        let bytes = if known == Known::Splat { ty.dtype.size() } else { ty.bytes() };
        Cost { flash: bytes as u64, ..Cost::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_order_costs_by_what_they_are_named_after() {
        let [fast, small, narrow] =
            [(10, 900, 900), (900, 10, 900), (900, 900, 10)].map(|(time, flash, ram)| Cost { time, flash, ram });
        let best = |weights: Weights| [fast, small, narrow].into_iter().min_by_key(|&cost| weights.weigh(cost));
        assert_eq!(best(Weights::speed()), Some(fast));
        assert_eq!(best(Weights::size()), Some(small));
        assert_eq!(best(Weights::ram()), Some(narrow));
    }

    #[test]
    fn the_largest_costs_are_weighed_without_wrapping() {
        let largest = Cost { time: u64::MAX, flash: u64::MAX, ram: u64::MAX };
        for weights in [Weights::speed(), Weights::size(), Weights::ram(), Weights::balanced()] {
            assert_eq!(weights.weigh(largest), u64::MAX);
        }
    }
}
