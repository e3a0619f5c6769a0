//! A block of statements as units: groups of statements each of which knows nothing of the variables of the others.

use super::parallel::{Knowledge, Touched};
use super::{Function, Stmt, Var, VarKind, mentioned};
use std::collections::{BTreeMap, BTreeSet};

/// A block of statements.
#[derive(Debug, Clone, Default)]
pub struct Level {
    /// Definitions of what is the same for all threads, and at all times that they may see: each thread has its own.
    pub pure: Vec<Stmt>,
    /// The rest, in order.
    pub units: Vec<Vec<Stmt>>,
}

/// What a function never writes.
#[derive(Debug, Clone)]
pub struct Unchanging {
    /// The memory that each pointer points into.
    roots: BTreeMap<Var, Var>,
    written: BTreeSet<Var>,
}

impl Unchanging {
    /// Of a function, whose variables have these kinds.
    pub fn of(function: &Function, knowledge: &Knowledge<'_>) -> Unchanging {
        let (mut touched, mut inside) = (Touched::default(), knowledge.clone());
        touched.block(&function.body, &mut inside);
        let mut written: BTreeSet<Var> =
            touched.accesses.iter().filter(|(.., is_written)| *is_written).map(|(root, ..)| *root).collect();
        if !written.is_disjoint(&knowledge.shared) {
            written.extend(&knowledge.shared);
        }
        let mut roots = BTreeMap::new();
        find_roots(&function.body, &mut roots);
        Unchanging { roots, written }
    }

    /// Whether nothing is written behind a pointer.
    fn holds(&self, pointer: Var) -> bool {
        !self.written.contains(self.roots.get(&pointer).unwrap_or(&pointer))
    }
}

fn find_roots(body: &[Stmt], roots: &mut BTreeMap<Var, Var>) {
    for statement in body {
        match statement {
            Stmt::Pointer { var, base, .. } => {
                let root = *roots.get(base).unwrap_or(base);
                roots.insert(*var, root);
            }
            Stmt::For { body, .. } | Stmt::IfValue { then: body, .. } => find_roots(body, roots),
            Stmt::If { then, otherwise, .. } => {
                find_roots(then, roots);
                find_roots(otherwise, roots);
            }
            _ => {}
        }
    }
}

/// The variable that a statement defines for those behind it.
pub fn defined(statement: &Stmt) -> Option<Var> {
    match statement {
        Stmt::Define { var, .. }
        | Stmt::DefineIndex { var, .. }
        | Stmt::Pointer { var, .. }
        | Stmt::Array { var, .. } => Some(*var),
        _ => None,
    }
}

impl Level {
    /// Cuts a block of a function with variables of these kinds.
    pub fn of(body: &[Stmt], kinds: &[VarKind], unchanging: &Unchanging) -> Level {
        let known: Vec<BTreeSet<Var>> =
            body.iter().map(|statement| mentioned(std::slice::from_ref(statement))).collect();
        let is_pointer = |var: Var| matches!(kinds.get(var as usize), Some(VarKind::Pointer { .. }));
        let mut own: BTreeSet<Var> = BTreeSet::new();
        let mut pure = vec![false; body.len()];
        for (number, statement) in body.iter().enumerate() {
            let knows_own = known[number].iter().any(|var| own.contains(var));
            let loads_changing = known[number].iter().any(|&var| is_pointer(var) && !unchanging.holds(var));
            pure[number] = !knows_own
                && match statement {
                    Stmt::Pointer { .. } => true,
                    Stmt::DefineIndex { .. } | Stmt::Define { mutable: false, .. } => !loads_changing,
                    _ => false,
                };
            if let Some(var) = defined(statement).filter(|_| !pure[number]) {
                own.insert(var);
            }
        }
        // Statements up to which each one reaches: to the last that knows what it defines.
        let reach = |number: usize| {
            let var = defined(&body[number]).filter(|_| !pure[number])?;
            (number..body.len()).rev().find(|&later| known[later].contains(&var))
        };
        let mut level = Level::default();
        let mut unit: Vec<Stmt> = Vec::new();
        let mut end = 0;
        for (number, statement) in body.iter().enumerate() {
            if pure[number] {
                level.pure.push(statement.clone());
                continue;
            }
            if number > end {
                level.close(&mut unit);
            }
            end = end.max(number).max(reach(number).unwrap_or(number));
            unit.push(statement.clone());
        }
        level.close(&mut unit);
        level
    }

    /// Ends a unit. Units without loops that follow each other are one.
    fn close(&mut self, unit: &mut Vec<Stmt>) {
        let has_loops = |unit: &[Stmt]| unit.iter().any(|statement| matches!(statement, Stmt::For { .. }));
        let done = std::mem::take(unit);
        match self.units.last_mut() {
            _ if done.is_empty() => {}
            Some(last) if !has_loops(last) && !has_loops(&done) => last.extend(done),
            // A remark belongs to what follows it.
            Some(last) if last.iter().all(|statement| matches!(statement, Stmt::Comment(_))) => last.extend(done),
            _ => self.units.push(done),
        }
    }
}

/// The loop that a unit is, if it is one, beside remarks.
pub fn only_loop(unit: &[Stmt]) -> Option<&Stmt> {
    let mut statements = unit.iter().filter(|statement| !matches!(statement, Stmt::Comment(_)));
    match (statements.next(), statements.next()) {
        (Some(code @ Stmt::For { .. }), None) => Some(code),
        _ => None,
    }
}
