//! [`downwards`]: the same function with its loops the other way round, so that a result is written from its end to its start.
//!
//! A function is a partial order of what it does: turns of a loop that touch nothing of each other's results may run in any order, and so may
//! units of a block, groups of statements that share no variables. What is proved to be apart ([`parallel`](super::parallel)) is turned
//! round, and so are turns that [gather](Holds::Gathered) what they read in scratch memory; all else stays as it is, such as sums, and loops whose
//! turns hand on rows there.

use super::level::{Level, Unchanging};
use super::parallel::{Knowledge, Touched, are_disjoint, is_independent, knowledge};
use super::statement::{Function, Stmt, last_turn};
use super::variable::{Holds, Var, VarKind};
use std::collections::BTreeSet;

/// Most units of a block that change places.
const MOST_UNITS: usize = 128;

/// The function downwards, as far as it writes through the pointer `result`; `None` where nothing can be turned round. Operands that a result
/// may lie over at a distance count as if they were apart: whether they are far enough is up to [`lead`](super::lead()).
pub fn downwards(function: &Function, result: Var) -> Option<Function> {
    let kinds: Vec<VarKind> = function.vars.iter().map(|var| var.kind).collect();
    let mut known = knowledge(function, &kinds);
    known.astray.clear();
    let all = (0..).zip(&kinds);
    let gathered = all.filter(|(_, kind)| matches!(kind, VarKind::Pointer { holds: Holds::Gathered, .. }));
    known.gathered = gathered.map(|(var, _)| var).collect();
    let turner = Turner { kinds: &kinds, unchanging: Unchanging::of(function, &known), result };
    let body = turner.block(&function.body, &known)?;
    Some(Function { body, ..function.clone() })
}

struct Turner<'a> {
    kinds: &'a [VarKind],
    unchanging: Unchanging,
    result: Var,
}

impl<'a> Turner<'a> {
    /// A block whose units come from the last to the first, as far as none needs another one, and whose loops go downwards.
    fn block(&self, body: &[Stmt], knowledge: &Knowledge<'a>) -> Option<Vec<Stmt>> {
        let Level { pure, units } = Level::of(body, self.kinds, &self.unchanging);
        let mut known = knowledge.clone();
        pure.iter().for_each(|statement| known.learn(statement));
        let mut behind = known.clone();
        let touched: Vec<Touched> = units.iter().map(|unit| touched(unit, &mut behind)).collect();
        let begun: BTreeSet<Var> = touched.iter().flat_map(|own| &own.begun).copied().collect();
        // What others define, units may change together.
        if !touched.iter().all(|own| own.assigned.is_subset(&begun)) {
            return None;
        }
        let order = order(&touched, &behind);
        let is_moved = !order.is_sorted();
        let turned: Vec<Option<Vec<Stmt>>> = units.iter().map(|unit| self.unit(unit, &known)).collect();
        if !is_moved && turned.iter().all(Option::is_none) {
            return None;
        }
        let units = order.into_iter().flat_map(|number| turned[number].as_ref().unwrap_or(&units[number]));
        Some(pure.iter().chain(units).cloned().collect())
    }

    /// A unit whose loops go downwards, if any can.
    fn unit(&self, unit: &[Stmt], knowledge: &Knowledge<'a>) -> Option<Vec<Stmt>> {
        let mut known = knowledge.clone();
        let mut copy = unit.to_vec();
        let mut is_turned = false;
        for statement in &mut copy {
            known.learn(statement);
            is_turned |= self.statement(statement, &known);
        }
        is_turned.then_some(copy)
    }

    /// Turns a statement round, if it can be; whether it was.
    fn statement(&self, statement: &mut Stmt, knowledge: &Knowledge<'a>) -> bool {
        match statement {
            Stmt::For { var, start, end, step, descends, body, .. } => {
                *descends = last_turn(start, end, *step).is_some()
                    && self.is_written(body, knowledge)
                    && is_independent(*var, *step, body, knowledge, &BTreeSet::new());
                if *descends {
                    replace(body, self.block(body, knowledge));
                }
                *descends
            }
            Stmt::If { then, otherwise, .. } => {
                replace(then, self.block(then, knowledge)) | replace(otherwise, self.block(otherwise, knowledge))
            }
            _ => false,
        }
    }

    /// Whether statements write through the pointer that counts.
    fn is_written(&self, body: &[Stmt], knowledge: &Knowledge<'a>) -> bool {
        let touched = touched(body, &mut knowledge.clone());
        touched.accesses.iter().any(|(root, _, is_written)| *is_written && *root == self.result)
    }
}

fn replace(body: &mut Vec<Stmt>, other: Option<Vec<Stmt>>) -> bool {
    other.map(|other| *body = other).is_some()
}

fn touched(body: &[Stmt], knowledge: &mut Knowledge<'_>) -> Touched {
    let mut touched = Touched::default();
    touched.block(body, knowledge);
    touched
}

/// The numbers of units, last ones first, but none before one that stood before it and that it has memory in common with which either writes.
fn order(touched: &[Touched], knowledge: &Knowledge<'_>) -> Vec<usize> {
    let mut left: Vec<usize> = (0..touched.len()).collect();
    if left.len() > MOST_UNITS {
        return left;
    }
    let needs = |later: usize, earlier: usize| !are_disjoint(&touched[earlier], &touched[later], knowledge);
    let earlier: Vec<BTreeSet<usize>> =
        left.iter().map(|&later| (0..later).filter(|&earlier| needs(later, earlier)).collect()).collect();
    let mut order = Vec::new();
    while let Some(place) = left.iter().rposition(|number| left.iter().all(|other| !earlier[*number].contains(other))) {
        order.push(left.remove(place));
    }
    order
}

#[cfg(test)]
mod tests;
