//! What a target pays: a [`Cost`], and the [`Weights`] by which costs are compared. Everything is a whole number, so that sums are the
//! same whatever their order.

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
