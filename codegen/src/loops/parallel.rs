//! Which loops have independent turns: turns that write nothing that another turn reads or writes, so that they may run at the same time.
//!
//! That is proved, or the loop isn't marked. An address is a sum of multiples of counters: one of the loop at hand, some of loops
//! inside of it, and what is the same in all turns. It is read as a number whose digits are the counters: where the digit of the loop can
//! be told from every address that is touched in a piece of memory, no two turns meet there.

mod lines;
mod places;
mod touched;

pub use places::Knowledge;
pub use touched::Touched;

use super::statement::{Function, Overlaps, Stmt};
use super::variable::{Var, VarKind};
use places::{Counter, Interval, Place, joined, product, sum};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use touched::Memories;

/// Marks the loops of a function whose turns are independent.
pub fn mark(function: &mut Function) {
    let kinds: Vec<VarKind> = function.vars.iter().map(|var| var.kind).collect();
    let mut knowledge = knowledge(function, &kinds);
    let mut independent = VecDeque::new();
    let mut see = |var: Var, step: i64, touched: &Touched, inside: &Knowledge<'_>| {
        independent.push_back(has_independent_turns((var, step), touched, inside, &BTreeSet::new()));
    };
    Touched::default().block_with_loops(&function.body, &mut knowledge, &mut see);
    mark_block(&mut function.body, &mut independent);
}

/// What is known where a function begins, whose variables have these kinds.
pub fn knowledge<'a>(function: &Function, kinds: &'a [VarKind]) -> Knowledge<'a> {
    let parameters = function.parameters.iter();
    let of = |overlaps: Overlaps| {
        let own = parameters.clone().filter(move |parameter| parameter.overlaps == overlaps);
        own.map(|parameter| parameter.var).collect()
    };
    // Memory that others may overlap is all one.
    Knowledge::of(kinds, of(Overlaps::Alike), of(Overlaps::Anyhow))
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

/// Marks loops, those inside of others first, as they were seen.
fn mark_block(body: &mut [Stmt], independent: &mut VecDeque<bool>) {
    for statement in body {
        match statement {
            Stmt::For { body, parallel, .. } => {
                mark_block(body, independent);
                *parallel = independent.pop_front().unwrap_or(false);
            }
            Stmt::If { then, otherwise, .. } => {
                mark_block(then, independent);
                mark_block(otherwise, independent);
            }
            Stmt::IfValue { then, .. } => mark_block(then, independent),
            _ => {}
        }
    }
}

/// Whether no turn of a loop writes what another one reads or writes. `free` are counters of loops around it that may differ, too.
pub fn is_independent(var: Var, step: i64, body: &[Stmt], knowledge: &Knowledge<'_>, free: &BTreeSet<Var>) -> bool {
    let (mut touched, mut inside) = (Touched::default(), knowledge.clone());
    touched.block(body, &mut inside);
    has_independent_turns((var, step), &touched, &inside, free)
}

/// The same of a loop's counter and step, by what its body touches and what is known behind it.
fn has_independent_turns(
    (var, step): (Var, i64),
    touched: &Touched,
    inside: &Knowledge<'_>,
    free: &BTreeSet<Var>,
) -> bool {
    if !touched.assigned.is_subset(&touched.begun) {
        return false;
    }
    let inner: BTreeSet<Var> = touched.begun.union(free).copied().collect();
    let mut memories = touched.memories(inside);
    memories.retain(|memory, _| memory.is_none_or(|root| !inside.gathered.contains(&root)));
    written(&memories).all(|list| {
        let places: Option<Vec<&Place>> = list.iter().map(|(place, _)| place.as_ref()).collect();
        places.is_some_and(|places| is_apart(var, step, &places, &inner, inside))
    })
}

/// What is touched of memory that is written.
fn written(memories: &Memories) -> impl Iterator<Item = &Vec<(Option<Place>, bool)>> {
    memories.values().filter(|list| list.iter().any(|(_, is_written)| *is_written))
}

/// Whether what some statements write is nothing that others, which follow them, read or write, whatever the turns of the loops around
/// them. `knowledge` is what is known behind all of them.
pub fn are_disjoint(one: &Touched, other: &Touched, knowledge: &Knowledge<'_>) -> bool {
    let (one, other) = (one.memories(knowledge), other.memories(knowledge));
    one.iter().all(|(memory, own)| {
        let Some(others) = other.get(memory) else { return true };
        let writes = |list: &[(Option<Place>, bool)]| list.iter().any(|(_, is_written)| *is_written);
        let places = |list: &[(Option<Place>, bool)]| -> Option<Vec<Place>> {
            list.iter().map(|(place, _)| place.clone()).collect()
        };
        let Some((own_places, other_places)) = places(own).zip(places(others)) else {
            return !writes(own) && !writes(others);
        };
        !writes(own) && !writes(others) || is_elsewhere(&own_places, &other_places, knowledge)
    })
}

/// Whether some places are others than some other ones: by what is left of a division by some factor of counters, or as they are.
fn is_elsewhere(own: &[Place], others: &[Place], knowledge: &Knowledge<'_>) -> bool {
    let counters = own.iter().chain(others).flat_map(|place| place.counters.values());
    let mut sizes: BTreeSet<i64> = counters.map(|factor| factor.saturating_abs()).collect();
    sizes.insert(i64::MAX);
    sizes.iter().rev().any(|&size| match hull(own, size, knowledge).zip(hull(others, size, knowledge)) {
        Some((own, other)) => own.1 < other.0 || other.1 < own.0,
        None => false,
    })
}

/// The least and the greatest remainder of places by a size, if none of them goes over a multiple of it.
fn hull(places: &[Place], size: i64, knowledge: &Knowledge<'_>) -> Option<Interval> {
    let mut whole: Option<Interval> = None;
    for place in places {
        let mut own = place.rest;
        for (counter, &factor) in place.counters.iter().filter(|(_, factor)| **factor % size != 0) {
            own = sum(own, product(knowledge.range(counter)?, factor));
        }
        let below = own.0.div_euclid(size).saturating_mul(size);
        own = sum(own, (-below, -below));
        if own.1 >= size {
            return None;
        }
        whole = Some(joined(whole, own));
    }
    whole
}

/// Whether the counter of a loop can be told from any of these places. `inner` are counters that change within a turn.
fn is_apart(var: Var, step: i64, places: &[&Place], inner: &BTreeSet<Var>, knowledge: &Knowledge<'_>) -> bool {
    let mut changing = inner.clone();
    changing.insert(var);
    let digit = Counter::Var(var);
    let varies = |counter: &Counter| *counter != digit && counter.depends_on(&changing);
    if is_digit(&digit, step, places, &varies, knowledge) || lines::is_apart(var, step, places, inner, knowledge) {
        return true;
    }
    // The counter may be there as what is left of a division, and its quotient.
    let quotients = places.first().into_iter().flat_map(|place| place.counters.keys());
    quotients.filter(|quotient| names(quotient, var, inner)).any(|quotient| {
        let Counter::Quotient(divided, divisor) = quotient else { return false };
        let rest = Counter::Remainder(divided.clone(), *divisor);
        let beside = |counter: &Counter| counter != quotient && counter.depends_on(&changing);
        is_digit(quotient, 1, places, &beside, knowledge)
            && is_digit(&rest, 1, places, &|counter| *counter != rest && beside(counter), knowledge)
    })
}

/// Whether a counter is the quotient of a loop's counter, with something that no turn changes added.
fn names(counter: &Counter, var: Var, inner: &BTreeSet<Var>) -> bool {
    let Counter::Quotient(divided, _) = counter else { return false };
    divided.counters.contains_key(&Counter::Var(var))
        && divided.rest.0 == divided.rest.1
        && divided
            .counters
            .keys()
            .all(|own| *own == Counter::Var(var) || !own.depends_on(inner) && !own.depends_on(&[var].into()))
}

/// Whether a counter can be told from any of these places, whatever those are that vary beside it.
fn is_digit(
    digit: &Counter,
    step: i64,
    places: &[&Place],
    varies: &dyn Fn(&Counter) -> bool,
    knowledge: &Knowledge<'_>,
) -> bool {
    let factor = places.first().and_then(|place| place.counters.get(digit)).copied().unwrap_or(0);
    let outer = |place: &Place| -> Vec<(Counter, i64)> {
        let counters = place.counters.iter().filter(|(own, _)| *own != digit && !varies(own));
        counters.map(|(own, &factor)| (own.clone(), factor)).collect()
    };
    let alike =
        |place: &&Place| place.counters.get(digit).copied().unwrap_or(0) == factor && outer(place) == outer(places[0]);
    let (Some(turns), true) = (knowledge.range(digit), factor != 0 && places.iter().all(alike)) else { return false };
    // The digits above that of the loop, from the least on.
    let moves = |place: &Place| -> Vec<(Counter, i64)> {
        place.counters.iter().filter(|(own, _)| varies(own)).map(|(own, &factor)| (own.clone(), factor)).collect()
    };
    let above = places.iter().flat_map(|place| moves(place)).map(|(_, own)| own.saturating_abs());
    let above: BTreeSet<i64> = above.filter(|&own| own > factor.saturating_abs()).collect();
    let mut low: Option<Interval> = None;
    let mut digits: BTreeMap<i64, Interval> = BTreeMap::new();
    for place in places {
        let mut own = place.rest;
        let mut own_digits: BTreeMap<i64, Interval> = BTreeMap::new();
        for (counter, moved) in moves(place) {
            let Some(range) = knowledge.range(&counter) else { return false };
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
        low = Some(joined(low, own));
        for (size, digit) in own_digits {
            let whole = joined(digits.get(&size).copied(), digit);
            digits.insert(size, whole);
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
