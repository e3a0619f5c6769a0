//! How often statements run: bounds and conditions are looked at for some positions of the loops around them, spread evenly.

use crate::loops::{Atom, Index, Relation, Var};
use std::collections::BTreeMap;

/// Positions that are looked at.
pub const SAMPLES: usize = 32;

/// A number for each sample.
pub type Sampled = [f64; SAMPLES];

/// Steps of the golden ratio spread positions evenly, however many loops there are: one irrational step each.
const STEPS: [f64; 6] = [
    0.618_033_988_749_895,
    0.754_877_666_246_693,
    0.569_840_290_998_053,
    0.819_172_513_396_164,
    0.671_043_606_703_789,
    0.549_700_477_901_970,
];

/// Values of index variables in each sample, and how often each sample stands for.
#[derive(Debug, Clone)]
pub struct Samples {
    values: BTreeMap<Var, Sampled>,
    /// How often the current statement runs, as each sample sees it.
    pub weight: Sampled,
    depth: usize,
}

impl Samples {
    /// Outside of all loops.
    pub fn new() -> Samples {
        Samples { values: BTreeMap::new(), weight: [1.0; SAMPLES], depth: 0 }
    }

    /// How often the current statement runs.
    pub fn mean(&self) -> f64 {
        self.weight.iter().sum::<f64>() / SAMPLES as f64
    }

    /// The value of an index in each sample; what depends on data counts as 0.
    pub fn value(&self, index: &Index) -> Sampled {
        let mut sum = [index.constant as f64; SAMPLES];
        for (atom, factor) in &index.terms {
            let atom = self.atom(atom);
            sum.iter_mut().zip(atom).for_each(|(sum, value)| *sum += value * *factor as f64);
        }
        sum
    }

    fn atom(&self, atom: &Atom) -> Sampled {
        let each = |left: &Index, right: &Index, function: fn(f64, f64) -> f64| {
            let (left, right) = (self.value(left), self.value(right));
            std::array::from_fn(|sample| function(left[sample], right[sample]))
        };
        match atom {
            Atom::Var(var) => self.values.get(var).copied().unwrap_or([0.0; SAMPLES]),
            Atom::Quotient(inner, divisor) => self.value(inner).map(|value| (value / *divisor as f64).floor()),
            Atom::Remainder(inner, divisor) => {
                let divisor = *divisor as f64;
                self.value(inner).map(|value| value - (value / divisor).floor() * divisor)
            }
            Atom::Maximum(left, right) => each(left, right, f64::max),
            Atom::Minimum(left, right) => each(left, right, f64::min),
            Atom::Value(_) => [0.0; SAMPLES],
        }
    }

    /// Gives an index variable its value.
    pub fn define(&mut self, var: Var, value: &Index) {
        let value = self.value(value);
        self.values.insert(var, value);
    }

    /// Goes into a loop; gives the mean number of turns, as the samples are weighed.
    pub fn enter(&mut self, var: Var, start: &Index, end: &Index, step: i64) -> f64 {
        let (start, end) = (self.value(start), self.value(end));
        let before = self.mean();
        let golden = STEPS[self.depth % STEPS.len()];
        let mut values = [0.0; SAMPLES];
        for sample in 0..SAMPLES {
            let turns = ((end[sample] - start[sample]) / step as f64).ceil().max(0.0);
            self.weight[sample] *= turns;
            let place = ((sample as f64 + 0.5) * golden).fract();
            values[sample] = start[sample] + step as f64 * (place * turns).floor();
        }
        self.values.insert(var, values);
        self.depth += 1;
        if before > 0.0 { self.mean() / before } else { 0.0 }
    }

    /// Keeps to the samples in which conditions hold.
    pub fn assume(&mut self, conditions: &[(Index, Relation, Index)], hold: bool) {
        let holds = conditions.iter().map(|(left, relation, right)| {
            let (left, right) = (self.value(left), self.value(right));
            let holds = |sample: usize| match relation {
                Relation::Less => left[sample] < right[sample],
                Relation::GreaterEqual => left[sample] >= right[sample],
                Relation::Equal => left[sample] == right[sample],
            };
            std::array::from_fn(holds)
        });
        let holds: Vec<[bool; SAMPLES]> = holds.collect();
        for sample in 0..SAMPLES {
            if holds.iter().all(|holds| holds[sample]) != hold {
                self.weight[sample] = 0.0;
            }
        }
    }
}
