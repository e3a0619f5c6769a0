//! Which loops have independent turns: turns that write nothing that another turn reads or writes, so that they may run at the same time.
//!
//! That is proved, or the loop isn't marked. An address is a sum of multiples of counters: one of the loop at hand, some of loops
//! inside of it, and what is the same in all turns. It is read as a number whose digits are the counters: where the digit of the loop can
//! be told from every address that is touched in a piece of memory, no two turns meet there.

use super::expression::{Atom, Expr, Index};
use super::statement::{Function, Stmt};
use super::variable::{Var, VarKind};
use std::collections::{BTreeMap, BTreeSet};

/// Marks the loops of a function whose turns are independent.
pub fn mark(function: &mut Function) {
    let kinds: Vec<VarKind> = function.vars.iter().map(|var| var.kind).collect();
    let parameters = function.parameters.iter();
    // Memory that others may overlap is all one.
    let shared = parameters.filter(|parameter| !parameter.restrict).map(|parameter| parameter.var).collect();
    let knowledge = Knowledge { kinds: &kinds, shared, ..Knowledge::default() };
    mark_block(&mut function.body, &knowledge);
}

/// How many turns of a marked function can run at the same time: of those loops that no other loop is around, the one with most. 1 where
/// there is none, or data decide it.
pub fn most_turns(body: &[Stmt]) -> u64 {
    let turns = |statement: &Stmt| match statement {
        Stmt::For { start, end, step, parallel: true, .. } => {
            let extent = end.as_constant().zip(start.as_constant()).map_or(1, |(end, start)| end - start);
            u64::try_from(extent).unwrap_or(1).div_ceil(step.unsigned_abs().max(1))
        }
        _ => 1,
    };
    body.iter().map(turns).max().unwrap_or(1)
}

fn mark_block(body: &mut [Stmt], knowledge: &Knowledge<'_>) {
    let mut knowledge = knowledge.clone();
    for statement in body {
        knowledge.learn(statement);
        match statement {
            Stmt::For { var, step, body, parallel, .. } => {
                *parallel = is_independent(*var, *step, body, &knowledge);
                mark_block(body, &knowledge);
            }
            Stmt::If { then, otherwise, .. } => {
                mark_block(then, &knowledge);
                mark_block(otherwise, &knowledge);
            }
            Stmt::IfValue { then, .. } => mark_block(then, &knowledge),
            _ => {}
        }
    }
}

/// An interval of integers.
type Interval = (i64, i64);

fn sum(left: Interval, right: Interval) -> Interval {
    (left.0.saturating_add(right.0), left.1.saturating_add(right.1))
}

fn product(interval: Interval, factor: i64) -> Interval {
    let (one, other) = (interval.0.saturating_mul(factor), interval.1.saturating_mul(factor));
    (one.min(other), one.max(other))
}

/// `sum of factor * counter`, and something in an interval.
#[derive(Debug, Clone, Default)]
struct Place {
    counters: BTreeMap<Var, i64>,
    rest: Interval,
}

impl Place {
    fn add(&mut self, other: &Place, factor: i64) {
        for (&var, &own) in &other.counters {
            let total = self.counters.entry(var).or_insert(0);
            *total = total.saturating_add(own.saturating_mul(factor));
        }
        self.counters.retain(|_, factor| *factor != 0);
        self.rest = sum(self.rest, product(other.rest, factor));
    }
}

/// What is known at a statement.
#[derive(Debug, Clone, Default)]
struct Knowledge<'a> {
    kinds: &'a [VarKind],
    shared: BTreeSet<Var>,
    /// Values of counters.
    ranges: BTreeMap<Var, Interval>,
    /// Integers by their counters.
    indices: BTreeMap<Var, Place>,
    /// Pointers by the memory that they point into, in bytes.
    pointers: BTreeMap<Var, (Var, Option<Place>)>,
}

impl Knowledge<'_> {
    fn learn(&mut self, statement: &Stmt) {
        match statement {
            Stmt::For { var, start, end, step, .. } => {
                let bounds = self.interval(start).zip(self.interval(end));
                if let Some((start, end)) = bounds {
                    let far = end.1.saturating_sub(1).saturating_sub(start.0).max(0);
                    // From one start on, the counter goes in steps.
                    let last = if start.0 == start.1 { far - far % (*step).max(1) } else { far };
                    self.ranges.insert(*var, (start.0, start.0.saturating_add(last)));
                }
                let place = Place { counters: BTreeMap::from([(*var, 1)]), rest: (0, 0) };
                self.indices.insert(*var, place);
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
    fn place(&self, index: &Index) -> Option<Place> {
        let mut place = Place { counters: BTreeMap::new(), rest: (index.constant, index.constant) };
        for (atom, factor) in &index.terms {
            let part = match atom {
                Atom::Var(var) => self.indices.get(var).cloned()?,
                Atom::Quotient(inner, divisor) => {
                    let (low, high) = self.interval(inner)?;
                    Place { rest: (low.div_euclid(*divisor), high.div_euclid(*divisor)), ..Place::default() }
                }
                Atom::Remainder(inner, divisor) => {
                    let (low, high) = self.interval(inner)?;
                    let rest = if low >= 0 && high < *divisor { (low, high) } else { (low.min(0), divisor - 1) };
                    Place { rest, ..Place::default() }
                }
                Atom::Maximum(left, right) | Atom::Minimum(left, right) => {
                    let (left, right) = (self.interval(left)?, self.interval(right)?);
                    let rest = match atom {
                        Atom::Maximum(..) => (left.0.max(right.0), left.1.max(right.1)),
                        _ => (left.0.min(right.0), left.1.min(right.1)),
                    };
                    Place { rest, ..Place::default() }
                }
                Atom::Value(_) => return None,
            };
            place.add(&part, *factor);
        }
        Some(place)
    }

    /// The least and the greatest value of an index.
    fn interval(&self, index: &Index) -> Option<Interval> {
        let place = self.place(index)?;
        place
            .counters
            .iter()
            .try_fold(place.rest, |whole, (var, factor)| Some(sum(whole, product(*self.ranges.get(var)?, *factor))))
    }

    /// Whether something may be written through a pointer.
    fn is_mutable(&self, pointer: Var) -> bool {
        !matches!(self.kinds.get(pointer as usize), Some(VarKind::Pointer { constant: true, .. }))
    }

    fn element_bytes(&self, pointer: Var) -> i64 {
        match self.kinds.get(pointer as usize) {
            Some(VarKind::Pointer { dtype, .. }) => dtype.size() as i64,
            _ => 1,
        }
    }

    /// The memory and the place in it, in bytes, of some elements behind a pointer.
    fn moved(&self, pointer: Var, index: &Index) -> (Var, Option<Place>) {
        let (root, base) = self.pointers.get(&pointer).cloned().unwrap_or((pointer, Some(Place::default())));
        let place = base.zip(self.place(index)).map(|(mut base, moved)| {
            base.add(&moved, self.element_bytes(pointer));
            base
        });
        (root, place)
    }
}

/// What the turns of a loop touch.
#[derive(Debug, Default)]
struct Touched {
    /// Memory, place of the first byte and whether it is written; bytes behind it are part of the place's rest.
    accesses: Vec<(Var, Option<Place>, bool)>,
    /// Variables that begin in a turn, and those that are assigned.
    begun: BTreeSet<Var>,
    assigned: BTreeSet<Var>,
}

impl Touched {
    fn block(&mut self, body: &[Stmt], knowledge: &mut Knowledge<'_>) {
        for statement in body {
            knowledge.learn(statement);
            match statement {
                Stmt::For { var, start, end, body, .. } => {
                    self.begun.insert(*var);
                    self.index(start, knowledge);
                    self.index(end, knowledge);
                    self.block(body, knowledge);
                }
                Stmt::Define { var, value, .. } => {
                    self.begun.insert(*var);
                    self.value(value, knowledge);
                }
                Stmt::Assign { var, value } => {
                    self.assigned.insert(*var);
                    self.value(value, knowledge);
                }
                Stmt::Store { pointer, index, stride, valid, value } => {
                    self.value(value, knowledge);
                    self.index(index, knowledge);
                    self.access((*pointer, index), (*stride, *valid), true, knowledge);
                }
                Stmt::If { conditions, then, otherwise } => {
                    for (left, _, right) in conditions {
                        self.index(left, knowledge);
                        self.index(right, knowledge);
                    }
                    self.block(then, knowledge);
                    self.block(otherwise, knowledge);
                }
                Stmt::IfValue { condition, then } => {
                    self.value(condition, knowledge);
                    self.block(then, knowledge);
                }
                Stmt::Array { var, .. } => {
                    self.begun.insert(*var);
                }
                Stmt::DefineIndex { value, .. } | Stmt::Pointer { offset: value, .. } => self.index(value, knowledge),
                Stmt::Routine { routine, pointers, numbers } => {
                    for ((pointer, index), elements) in pointers.iter().zip(routine.elements(numbers)) {
                        self.index(index, knowledge);
                        let is_written = knowledge.is_mutable(*pointer);
                        self.access((*pointer, index), (1, elements), is_written, knowledge);
                    }
                }
                Stmt::Comment(_) => {}
            }
        }
    }

    /// What is loaded to compute an index.
    fn index(&mut self, index: &Index, knowledge: &Knowledge<'_>) {
        for (atom, _) in &index.terms {
            match atom {
                Atom::Var(_) => {}
                Atom::Quotient(inner, _) | Atom::Remainder(inner, _) => self.index(inner, knowledge),
                Atom::Maximum(left, right) | Atom::Minimum(left, right) => {
                    self.index(left, knowledge);
                    self.index(right, knowledge);
                }
                Atom::Value(value) => self.value(value, knowledge),
            }
        }
    }

    fn value(&mut self, value: &Expr, knowledge: &Knowledge<'_>) {
        match value {
            Expr::Load { pointer, index, ty } => {
                self.index(index, knowledge);
                self.access((*pointer, index), (1, ty.lanes), false, knowledge);
            }
            Expr::Pair { pointer, index } => {
                self.index(index, knowledge);
                self.access((*pointer, index), (1, 2), false, knowledge);
            }
            Expr::Quad { pointer, index } => {
                self.index(index, knowledge);
                self.access((*pointer, index), (1, 4), false, knowledge);
            }
            Expr::Index(_, index) => self.index(index, knowledge),
            Expr::Gather { pointer, index, stride, valid, .. } => {
                self.index(index, knowledge);
                self.access((*pointer, index), (*stride, *valid), false, knowledge);
            }
            other => other.children().for_each(|child| self.value(child, knowledge)),
        }
    }

    /// Elements a stride apart.
    fn access(
        &mut self,
        (pointer, index): (Var, &Index),
        (stride, count): (i64, usize),
        is_written: bool,
        knowledge: &Knowledge<'_>,
    ) {
        let (root, place) = knowledge.moved(pointer, index);
        let bytes = knowledge.element_bytes(pointer);
        let far = stride.saturating_mul(count.saturating_sub(1) as i64).saturating_mul(bytes);
        let place = place.map(|place| Place {
            rest: (
                place.rest.0.saturating_add(far.min(0)),
                place.rest.1.saturating_add(far.max(0)).saturating_add(bytes - 1),
            ),
            ..place
        });
        self.accesses.push((root, place, is_written));
    }
}

/// Whether no turn of a loop writes what another one reads or writes.
fn is_independent(var: Var, step: i64, body: &[Stmt], knowledge: &Knowledge<'_>) -> bool {
    let (mut touched, mut inside) = (Touched::default(), knowledge.clone());
    touched.block(body, &mut inside);
    let Touched { accesses, begun, assigned } = touched;
    if !assigned.is_subset(&begun) {
        return false;
    }
    // What begins in a turn is its own.
    let mut memories: BTreeMap<Option<Var>, Vec<(Option<Place>, bool)>> = BTreeMap::new();
    for (root, place, is_written) in accesses.into_iter().filter(|(root, ..)| !begun.contains(root)) {
        let memory = if knowledge.shared.contains(&root) { None } else { Some(root) };
        memories.entry(memory).or_default().push((place, is_written));
    }
    memories.values().filter(|list| list.iter().any(|(_, is_written)| *is_written)).all(|list| {
        let places: Option<Vec<&Place>> = list.iter().map(|(place, _)| place.as_ref()).collect();
        places.is_some_and(|places| is_apart(var, step, &places, &begun, &inside.ranges))
    })
}

/// Whether the counter of a loop can be told from any of these places. `inner` are counters that change within a turn.
fn is_apart(var: Var, step: i64, places: &[&Place], inner: &BTreeSet<Var>, ranges: &BTreeMap<Var, Interval>) -> bool {
    let factor = places.first().and_then(|place| place.counters.get(&var)).copied().unwrap_or(0);
    let outer = |place: &Place| -> Vec<(Var, i64)> {
        let counters = place.counters.iter().filter(|(own, _)| **own != var && !inner.contains(own));
        counters.map(|(&own, &factor)| (own, factor)).collect()
    };
    let alike =
        |place: &&Place| place.counters.get(&var).copied().unwrap_or(0) == factor && outer(place) == outer(places[0]);
    let (Some(&turns), true) = (ranges.get(&var), factor != 0 && places.iter().all(alike)) else { return false };
    // The digits above that of the loop, from the least on.
    let moves = |place: &Place| -> Vec<(Var, i64)> {
        place.counters.iter().filter(|(own, _)| inner.contains(own)).map(|(&own, &factor)| (own, factor)).collect()
    };
    let above = places.iter().flat_map(|place| moves(place)).map(|(_, own)| own.saturating_abs());
    let above: BTreeSet<i64> = above.filter(|&own| own > factor.saturating_abs()).collect();
    let mut low: Option<Interval> = None;
    let mut digits: BTreeMap<i64, Interval> = BTreeMap::new();
    for place in places {
        let mut own = place.rest;
        let mut own_digits: BTreeMap<i64, Interval> = BTreeMap::new();
        for (counter, moved) in moves(place) {
            let Some(&range) = ranges.get(&counter) else { return false };
            if above.contains(&moved.saturating_abs()) {
                let digit = own_digits.entry(moved.saturating_abs()).or_insert((0, 0));
                *digit = sum(*digit, product(range, moved.signum()));
            } else {
                own = sum(own, product(range, moved));
            }
        }
        for &size in above.iter().rev() {
            let whole = own.0.div_euclid(size);
            own = sum(own, product((whole, whole), -size));
            let digit = own_digits.entry(size).or_insert((0, 0));
            *digit = sum(*digit, (whole, whole));
        }
        low = Some(low.map_or(own, |known| (known.0.min(own.0), known.1.max(own.1))));
        for (size, digit) in own_digits {
            let known = digits.entry(size).or_insert(digit);
            *known = (known.0.min(digit.0), known.1.max(digit.1));
        }
    }
    let width = |interval: Interval| interval.1.saturating_sub(interval.0);
    let mut below = low.map_or(0, width);
    if factor.saturating_abs().saturating_mul(step) <= below {
        return false;
    }
    below = below.saturating_add(width(product(turns, factor)));
    for (size, digit) in digits {
        if size <= below {
            return false;
        }
        below = below.saturating_add(width(product(digit, size)));
    }
    true
}

#[cfg(test)]
mod tests;
