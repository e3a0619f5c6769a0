//! Numbers that are cut into lines: of pixel `number`, what is in line `number / columns` at column `number % columns`.

use super::places::{Counter, Interval, Knowledge, Place, joined, product, sum};
use crate::loops::variable::Var;
use std::collections::BTreeSet;

/// A place in lines: `line * (number / columns) + column * (number % columns)`, and the rest. From one number to the next one it moves on by
/// `column` at least, as a line isn't shorter than its columns.
struct InLines<'p> {
    number: &'p Place,
    columns: i64,
    line: i64,
    column: i64,
    rest: Place,
}

impl<'p> InLines<'p> {
    /// A place that names one number's line and column.
    fn of(place: &'p Place, knowledge: &Knowledge<'_>) -> Option<InLines<'p>> {
        let mut found = place.counters.iter().filter_map(|(counter, &line)| {
            let Counter::Quotient(number, columns) = counter else { return None };
            let remainder = Counter::Remainder(number.clone(), *columns);
            let column = *place.counters.get(&remainder)?;
            let is_long = column > 0 && line >= column.saturating_mul(*columns);
            let mut rest = place.clone();
            rest.counters.remove(counter);
            rest.counters.remove(&remainder);
            is_long.then_some(InLines { number, columns: *columns, line, column, rest })
        });
        let only = found.next().filter(|own| knowledge.reach(own.number).is_some_and(|(least, _)| least >= 0))?;
        found.next().is_none().then_some(only)
    }
}

/// Whether the turns of a loop, whose counter moves the number on, touch places of numbers that are further apart than what else varies.
pub fn is_apart(var: Var, step: i64, places: &[&Place], inner: &BTreeSet<Var>, knowledge: &Knowledge<'_>) -> bool {
    are_apart(var, step, places, inner, knowledge).unwrap_or(false)
}

/// The same; `None` where the places aren't in lines that are all alike.
fn are_apart(var: Var, step: i64, places: &[&Place], inner: &BTreeSet<Var>, knowledge: &Knowledge<'_>) -> Option<bool> {
    let all: Vec<InLines<'_>> = places.iter().map(|place| InLines::of(place, knowledge)).collect::<Option<_>>()?;
    let first = all.first()?;
    let factor = |own: &InLines<'_>| own.number.counters.get(&Counter::Var(var)).copied();
    let moved = factor(first).filter(|&factor| factor > 0)?;
    let (mut numbers, mut low): (Option<Interval>, Option<Interval>) = (None, None);
    for own in &all {
        let is_alike = (own.columns, own.line, own.column, factor(own))
            == (first.columns, first.line, first.column, Some(moved))
            && outer(own.number, var, inner) == outer(first.number, var, inner)
            && outer(&own.rest, var, inner) == outer(&first.rest, var, inner);
        let depends = |counter: &Counter| *counter != Counter::Var(var) && counter.depends_on(&[var].into());
        let is_elsewhere = own.number.counters.keys().any(depends)
            || own.rest.counters.keys().any(|counter| counter.depends_on(&[var].into()));
        if !is_alike || is_elsewhere {
            return None;
        }
        numbers = Some(joined(numbers, within(own.number, inner, knowledge)?));
        low = Some(joined(low, within(&own.rest, inner, knowledge)?));
    }
    let width = |interval: Option<Interval>| interval.map_or(0, |(least, most)| most.saturating_sub(least));
    let apart = moved.saturating_mul(step).saturating_sub(width(numbers));
    Some(apart > 0 && first.column.saturating_mul(apart) > width(low))
}

/// What no turn changes.
fn outer<'p>(place: &'p Place, var: Var, inner: &BTreeSet<Var>) -> Vec<(&'p Counter, i64)> {
    let all = place.counters.iter().map(|(counter, &factor)| (counter, factor));
    all.filter(|(counter, _)| **counter != Counter::Var(var) && !counter.depends_on(inner)).collect()
}

/// What changes within a turn.
fn within(place: &Place, inner: &BTreeSet<Var>, knowledge: &Knowledge<'_>) -> Option<Interval> {
    let mut own = place.counters.iter().filter(|(counter, _)| counter.depends_on(inner));
    own.try_fold(place.rest, |whole, (counter, &factor)| Some(sum(whole, product(knowledge.range(counter)?, factor))))
}
