//! [`WorkingSet`]: what is touched between two runs of a kernel.

use crate::target::Cache;

/// What a program touches, from one run of a kernel to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkingSet {
    /// Bytes in all: arena and constants.
    pub bytes: usize,
    /// The turns of the stripe that the kernel is in, if it is in one.
    pub turns: Option<StripeTurns>,
}

/// Turns of a stripe's kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StripeTurns {
    /// How many there are.
    pub count: usize,
    /// Bytes that one touches: rings, constants, and rows of whole tensors.
    pub bytes: usize,
}

impl From<usize> for WorkingSet {
    fn from(bytes: usize) -> WorkingSet {
        WorkingSet { bytes, turns: None }
    }
}

impl WorkingSet {
    /// That of the same program's kernels that take turns, if they are in a stripe. What they cost depends on which cache holds a turn, so that
    /// turns in one cache are equal, and none is told from the program's where the same cache holds both.
    pub fn in_turns(self, turns: Option<StripeTurns>, caches: &[Cache]) -> WorkingSet {
        let holder = |bytes: usize| caches.iter().map(|cache| cache.bytes).find(|&capacity| bytes <= capacity);
        let turns = turns.and_then(|turns| Some(StripeTurns { bytes: holder(turns.bytes)?, ..turns }));
        WorkingSet { turns: turns.filter(|turns| holder(self.bytes) != Some(turns.bytes)), ..self }
    }

    /// How often constants come through a cache of `capacity` bytes that holds them, in each run of their kernel.
    pub fn constants_come(&self, capacity: usize) -> f64 {
        match self.turns {
            _ if self.bytes <= capacity => 0.0,
            Some(turns) if turns.bytes <= capacity => 1.0 / turns.count.max(1) as f64,
            _ => 1.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{StripeTurns, WorkingSet};
    use crate::target::Cache;

    const CACHES: [Cache; 2] = [Cache { bytes: 1000, fill: 4.0 }, Cache { bytes: 10_000, fill: 2.0 }];

    #[test]
    fn constants_of_a_stripe_come_once_in_all_its_turns_through_a_cache_that_holds_one() {
        let program = WorkingSet::from(20_000);
        let stripe = program.in_turns(Some(StripeTurns { count: 8, bytes: 5000 }), &CACHES);
        assert_eq!(stripe.constants_come(1000), 1.0);
        assert_eq!(stripe.constants_come(10_000), 0.125);
        assert_eq!(program.constants_come(10_000), 1.0);
        assert_eq!(program.constants_come(20_000), 0.0);
    }

    #[test]
    fn turns_are_equal_in_one_cache_and_none_where_it_holds_the_program() {
        let turns = |bytes| Some(StripeTurns { count: 8, bytes });
        let program = WorkingSet::from(20_000);
        assert_eq!(program.in_turns(turns(2000), &CACHES), program.in_turns(turns(9000), &CACHES));
        assert_ne!(program.in_turns(turns(900), &CACHES), program.in_turns(turns(9000), &CACHES));
        for (bytes, of_turn) in [(9000, 5000), (900, 900), (20_000, 15_000)] {
            let program = WorkingSet::from(bytes);
            assert_eq!(program.in_turns(turns(of_turn), &CACHES), program);
        }
    }
}
