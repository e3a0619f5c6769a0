//! What is known of addresses: sums of multiples of counters.

use crate::loops::expression::{Atom, Index};
use crate::loops::statement::Stmt;
use crate::loops::variable::{Var, VarKind};
use std::collections::{BTreeMap, BTreeSet};

/// An interval of integers.
pub type Interval = (i64, i64);

pub fn sum(left: Interval, right: Interval) -> Interval {
    (left.0.saturating_add(right.0), left.1.saturating_add(right.1))
}

pub fn product(interval: Interval, factor: i64) -> Interval {
    let (one, other) = (interval.0.saturating_mul(factor), interval.1.saturating_mul(factor));
    (one.min(other), one.max(other))
}

/// An interval that has all numbers of both.
pub fn joined(whole: Option<Interval>, own: Interval) -> Interval {
    whole.map_or(own, |whole| (whole.0.min(own.0), whole.1.max(own.1)))
}

/// What changes from turn to turn: the counter of a loop, or what is made of some by more than sums and products.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    Var(Var),
    Quotient(Box<Place>, i64),
    Remainder(Box<Place>, i64),
    Maximum(Box<[Place; 2]>),
    Minimum(Box<[Place; 2]>),
}

impl Counter {
    /// Whether one of these loops changes it.
    pub fn depends_on(&self, vars: &BTreeSet<Var>) -> bool {
        let of = |place: &Place| place.counters.keys().any(|counter| counter.depends_on(vars));
        match self {
            Counter::Var(var) => vars.contains(var),
            Counter::Quotient(place, _) | Counter::Remainder(place, _) => of(place),
            Counter::Maximum(places) | Counter::Minimum(places) => places.iter().any(of),
        }
    }
}

/// `sum of factor * counter`, and something in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub counters: BTreeMap<Counter, i64>,
    pub rest: Interval,
}

impl Place {
    fn of(counter: Counter) -> Place {
        Place { counters: BTreeMap::from([(counter, 1)]), rest: (0, 0) }
    }

    pub fn add(&mut self, other: &Place, factor: i64) {
        for (counter, &own) in &other.counters {
            let total = self.counters.entry(counter.clone()).or_insert(0);
            *total = total.saturating_add(own.saturating_mul(factor));
        }
        self.counters.retain(|_, factor| *factor != 0);
        self.rest = sum(self.rest, product(other.rest, factor));
    }
}

/// What is known at a statement.
#[derive(Debug, Clone, Default)]
pub struct Knowledge<'a> {
    kinds: &'a [VarKind],
    /// Pointers to the same byte of memory.
    pub shared: BTreeSet<Var>,
    /// Pointers to anywhere in the same memory.
    pub astray: BTreeSet<Var>,
    /// Memory that each turn fills for itself, where turns don't run at the same time.
    pub gathered: BTreeSet<Var>,
    /// Values of counters.
    ranges: BTreeMap<Var, Interval>,
    /// Integers by their counters.
    indices: BTreeMap<Var, Place>,
    /// Pointers by the memory that they point into, in bytes.
    pointers: BTreeMap<Var, (Var, Option<Place>)>,
}

impl<'a> Knowledge<'a> {
    /// Where a function begins, whose variables have these kinds, some of which point to the same byte of memory, and others to anywhere in the
    /// same memory.
    pub fn of(kinds: &'a [VarKind], shared: BTreeSet<Var>, astray: BTreeSet<Var>) -> Knowledge<'a> {
        Knowledge { kinds, shared, astray, ..Knowledge::default() }
    }

    /// Takes in a statement.
    pub fn learn(&mut self, statement: &Stmt) {
        match statement {
            Stmt::For { var, start, end, step, .. } => {
                let bounds = self.interval(start).zip(self.interval(end));
                if let Some((start, end)) = bounds {
                    let far = end.1.saturating_sub(1).saturating_sub(start.0).max(0);
                    // From one start on, the counter goes in steps.
                    let last = if start.0 == start.1 { far - far % (*step).max(1) } else { far };
                    self.ranges.insert(*var, (start.0, start.0.saturating_add(last)));
                }
                self.indices.insert(*var, Place::of(Counter::Var(*var)));
            }
            Stmt::DefineIndex { var, value } => {
                if let Some(place) = self.place(value) {
                    self.indices.insert(*var, place);
                }
            }
            Stmt::Pointer { var, base, offset } => {
                let moved = self.moved(*base, offset);
                self.pointers.insert(*var, moved);
            }
            _ => {}
        }
    }

    /// An index by its counters; nothing where values decide it.
    pub fn place(&self, index: &Index) -> Option<Place> {
        let mut place = Place { counters: BTreeMap::new(), rest: (index.constant, index.constant) };
        for (atom, factor) in &index.terms {
            let pair = |left: &Index, right: &Index| Some(Box::new([self.place(left)?, self.place(right)?]));
            let part = match atom {
                Atom::Var(var) => self.indices.get(var).cloned()?,
                Atom::Quotient(inner, divisor) => Place::of(Counter::Quotient(Box::new(self.place(inner)?), *divisor)),
                Atom::Remainder(inner, divisor) => {
                    Place::of(Counter::Remainder(Box::new(self.place(inner)?), *divisor))
                }
                Atom::Maximum(left, right) => Place::of(Counter::Maximum(pair(left, right)?)),
                Atom::Minimum(left, right) => Place::of(Counter::Minimum(pair(left, right)?)),
                Atom::Value(_) => return None,
            };
            place.add(&part, *factor);
        }
        Some(place)
    }

    /// The least and the greatest value of an index.
    pub fn interval(&self, index: &Index) -> Option<Interval> {
        self.reach(&self.place(index)?)
    }

    /// The least and the greatest value of a place.
    pub fn reach(&self, place: &Place) -> Option<Interval> {
        let terms = &mut place.counters.iter();
        terms.try_fold(place.rest, |whole, (counter, factor)| Some(sum(whole, product(self.range(counter)?, *factor))))
    }

    /// The least and the greatest value of a counter.
    pub fn range(&self, counter: &Counter) -> Option<Interval> {
        let both = |places: &[Place; 2]| Some((self.reach(&places[0])?, self.reach(&places[1])?));
        Some(match counter {
            Counter::Var(var) => *self.ranges.get(var)?,
            Counter::Quotient(inner, divisor) => {
                let (low, high) = self.reach(inner)?;
                (low.div_euclid(*divisor), high.div_euclid(*divisor))
            }
            Counter::Remainder(inner, divisor) => {
                let (low, high) = self.reach(inner)?;
                if low >= 0 && high < *divisor { (low, high) } else { (low.min(0), divisor - 1) }
            }
            Counter::Maximum(places) => {
                let (left, right) = both(places)?;
                (left.0.max(right.0), left.1.max(right.1))
            }
            Counter::Minimum(places) => {
                let (left, right) = both(places)?;
                (left.0.min(right.0), left.1.min(right.1))
            }
        })
    }

    /// Whether something may be written through a pointer.
    pub fn is_mutable(&self, pointer: Var) -> bool {
        let kind = self.kinds.get(pointer as usize);
        !matches!(kind, Some(VarKind::Pointer { holds, .. }) if !holds.is_written())
    }

    /// Bytes of an element behind a pointer.
    pub fn element_bytes(&self, pointer: Var) -> i64 {
        match self.kinds.get(pointer as usize) {
            Some(VarKind::Pointer { dtype, .. }) => dtype.size() as i64,
            _ => 1,
        }
    }

    /// The memory and the place in it, in bytes, of some elements behind a pointer.
    pub fn moved(&self, pointer: Var, index: &Index) -> (Var, Option<Place>) {
        let (root, base) = self.pointers.get(&pointer).cloned().unwrap_or((pointer, Some(Place::default())));
        let place = base.zip(self.place(index)).map(|(mut base, moved)| {
            base.add(&moved, self.element_bytes(pointer));
            base
        });
        (root, place)
    }
}
