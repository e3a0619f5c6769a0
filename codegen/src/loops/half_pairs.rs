//! Neighbouring halves that are loaded as one word, from whose lower and upper part two instructions make singles. A half alone takes a
//! load, a move to the floating-point registers and a conversion.

use super::{Atom, Expr, Index, Stmt, ValueType, Var, VarInfo, VarKind, value_type};
use mlc_ir::DType;
use std::collections::BTreeSet;

/// Where a half is: behind which pointer, at which terms of an index, at which even place, and whether it is the second there.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    pointer: Var,
    index: Index,
    is_upper: bool,
}

/// Has neighbours be loaded at once where they are behind one of the pointers `even`, which are multiples of words, or behind what is
/// computed of these, and nothing is stored between the loads.
pub fn pair(vars: &mut Vec<VarInfo>, body: &mut Vec<Stmt>, even: &BTreeSet<Var>) {
    if !even.is_empty() {
        Pairing { vars, even: even.clone() }.block(body);
    }
}

struct Pairing<'a> {
    vars: &'a mut Vec<VarInfo>,
    /// Pointers at whole words, and indices that are even.
    even: BTreeSet<Var>,
}

impl Pairing<'_> {
    fn block(&mut self, body: &mut Vec<Stmt>) {
        let mut run = Vec::new();
        for mut statement in std::mem::take(body) {
            match &mut statement {
                Stmt::Define { .. } | Stmt::Assign { .. } | Stmt::Comment(_) => {
                    run.push(statement);
                    continue;
                }
                Stmt::Pointer { var, base, offset } => {
                    if self.even.contains(base) && self.is_even(offset) {
                        self.even.insert(*var);
                    }
                    run.push(statement);
                    continue;
                }
                Stmt::DefineIndex { var, value } => {
                    if self.is_even(value) {
                        self.even.insert(*var);
                    }
                    run.push(statement);
                    continue;
                }
                Stmt::For { var, start, step, body, .. } => {
                    if self.is_even(start) && *step % 2 == 0 {
                        self.even.insert(*var);
                    }
                    self.block(body);
                }
                Stmt::If { then, otherwise, .. } => {
                    self.block(then);
                    self.block(otherwise);
                }
                Stmt::IfValue { then, .. } => self.block(then),
                Stmt::Store { .. } | Stmt::Array { .. } | Stmt::Routine { .. } | Stmt::Launch { .. } => {}
            }
            self.run(&mut run, body);
            body.push(statement);
        }
        self.run(&mut run, body);
    }

    fn is_even(&self, index: &Index) -> bool {
        index.constant % 2 == 0
            && index
                .terms
                .iter()
                .all(|(atom, factor)| factor % 2 == 0 || matches!(atom, Atom::Var(var) if self.even.contains(var)))
    }

    /// Statements without a store between them.
    fn run(&mut self, run: &mut Vec<Stmt>, body: &mut Vec<Stmt>) {
        let mut places: Vec<(Place, Option<Var>)> = Vec::new();
        for statement in &*run {
            values(statement).for_each(|value| self.places(value, &mut places));
        }
        let other = |place: &Place| Place { is_upper: !place.is_upper, ..place.clone() };
        let lone = |place: &Place| !places.iter().any(|(found, _)| *found == other(place));
        let lone: Vec<bool> = places.iter().map(|(place, _)| lone(place)).collect();
        let mut keep = lone.into_iter();
        places.retain(|_| keep.next() == Some(false));
        for mut statement in run.drain(..) {
            if !places.is_empty() {
                let mut words = Vec::new();
                for value in values_mut(&mut statement) {
                    self.replace(value, &mut places, &mut words);
                }
                body.append(&mut words);
            }
            body.push(statement);
        }
    }

    /// The place of a half that is loaded to be a single, where its parity is known.
    fn place(&self, expr: &Expr) -> Option<Place> {
        let Expr::Cast(DType::F32, inner) = expr else { return None };
        let Expr::Load { pointer, index, ty } = &**inner else { return None };
        if *ty != ValueType::scalar(DType::F16) || !self.even.contains(pointer) {
            return None;
        }
        let is_upper = index.constant.rem_euclid(2) == 1;
        let index = index.offset(-i64::from(is_upper));
        self.is_even(&index).then_some(Place { pointer: *pointer, index, is_upper })
    }

    fn places(&self, expr: &Expr, places: &mut Vec<(Place, Option<Var>)>) {
        match self.place(expr) {
            Some(place) if places.iter().all(|(known, _)| *known != place) => places.push((place, None)),
            Some(_) => {}
            None => expr.children().for_each(|child| self.places(child, places)),
        }
    }

    /// Puts halves of words in the place of loads; the words are to be defined before.
    fn replace(&mut self, expr: &mut Expr, places: &mut [(Place, Option<Var>)], words: &mut Vec<Stmt>) {
        let Some(place) = self.place(expr) else {
            expr.children_mut().for_each(|child| self.replace(child, places, words));
            return;
        };
        let Some(found) = places.iter().position(|(known, _)| *known == place) else { return };
        let word = places[found].1.unwrap_or_else(|| {
            let Place { pointer, index, .. } = place.clone();
            let value = Expr::Pair { pointer, index };
            let ty = value_type(self.vars, &value);
            self.vars.push(VarInfo { name: format!("pair_{}", self.vars.len()), kind: VarKind::Value(ty) });
            let var = self.vars.len() as Var - 1;
            words.push(Stmt::Define { var, value, mutable: false });
            let both = |known: &Place| known.pointer == place.pointer && known.index == place.index;
            places.iter_mut().filter(|(known, _)| both(known)).for_each(|(_, word)| *word = Some(var));
            var
        });
        *expr = Expr::HalfOf { is_upper: place.is_upper, pair: Box::new(Expr::Var(word)) };
    }
}

fn values(statement: &Stmt) -> impl Iterator<Item = &Expr> {
    match statement {
        Stmt::Define { value, .. } | Stmt::Assign { value, .. } => Some(value),
        _ => None,
    }
    .into_iter()
}

fn values_mut(statement: &mut Stmt) -> impl Iterator<Item = &mut Expr> {
    match statement {
        Stmt::Define { value, .. } | Stmt::Assign { value, .. } => Some(value),
        _ => None,
    }
    .into_iter()
}
