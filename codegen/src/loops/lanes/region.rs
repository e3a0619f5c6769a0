//! Statements that belong together when lanes are computed one after the other: [`Region`].

use crate::loops::expression::{Expr, Index, value_type};
use crate::loops::statement::{Stmt, mentioned};
use crate::loops::variable::{Var, VarInfo, VarKind};
use std::collections::{BTreeMap, BTreeSet};

/// Whether there are vectors in a statement.
pub(super) fn has_vectors(vars: &[VarInfo], statement: &Stmt) -> bool {
    let mut found = false;
    visit_values(std::slice::from_ref(statement), &mut |value| found |= has_lanes(vars, value));
    found
}

/// Whether vectors are in a statement's blocks alone, those of no other statement.
pub(super) fn is_closed(vars: &[VarInfo], statement: &Stmt) -> bool {
    let blocks: [&[Stmt]; 2] = match statement {
        Stmt::For { body, .. } => [body, &[]],
        Stmt::If { then, otherwise, .. } => [then, otherwise],
        Stmt::IfValue { condition, then } if !has_lanes(vars, condition) => [then, &[]],
        _ => return false,
    };
    let is_vector = |var: &Var| matches!(vars[*var as usize].kind, VarKind::Value(ty) if ty.lanes > 1);
    blocks.iter().all(|block| {
        let own = defined(block);
        mentioned(block).iter().filter(|var| is_vector(var)).all(|var| own.contains(var))
    })
}

/// The end of the statements from `start` on that belong together: what is defined in them is mentioned nowhere else.
pub(super) fn end(statements: &[Stmt], start: usize) -> usize {
    let (mut end, mut next) = (start + 1, start);
    let mut last = BTreeMap::new();
    for (number, statement) in statements.iter().enumerate().skip(start) {
        for var in mentioned(std::slice::from_ref(statement)) {
            last.insert(var, number + 1);
        }
    }
    while next < end {
        let own = defined(&statements[next..=next]);
        end = own.iter().filter_map(|var| last.get(var)).fold(end, |end, &last| end.max(last));
        next += 1;
    }
    end
}

/// Statements that can be run for one lane after the other.
pub(super) struct Region {
    /// For how many.
    pub lanes: usize,
}

impl Region {
    /// None where lanes depend on each other, or statements on what an earlier lane's did.
    pub fn of(vars: &[VarInfo], memory: &Memory, statements: &[Stmt]) -> Option<Region> {
        let own = defined(statements);
        let mut checked = Checked { vars, own: &own, widths: BTreeSet::new(), stored: BTreeSet::new() };
        let is_apart = checked.are_apart(statements);
        let &width = checked.widths.first().filter(|_| is_apart && checked.widths.len() == 1)?;
        if !memory.is_apart(width, statements) {
            return None;
        }
        let lanes = checked.stored.last().copied().unwrap_or(width);
        Some(Region { lanes })
    }
}

struct Checked<'a> {
    vars: &'a [VarInfo],
    /// Variables that the statements define.
    own: &'a BTreeSet<Var>,
    /// Lanes of the vectors.
    widths: BTreeSet<usize>,
    /// How many lanes are stored.
    stored: BTreeSet<usize>,
}

impl Checked<'_> {
    /// Whether no lane reaches another one, nor anything behind the statements but memory.
    fn are_apart(&mut self, statements: &[Stmt]) -> bool {
        let mut is_apart = true;
        visit_values(statements, &mut |value| {
            is_apart &= !mixes_lanes(value);
            self.note_widths(value);
        });
        is_apart && statements.iter().all(|statement| self.is_apart(statement))
    }

    fn is_apart(&mut self, statement: &Stmt) -> bool {
        match statement {
            Stmt::For { body, .. } => body.iter().all(|statement| self.is_apart(statement)),
            Stmt::If { then, otherwise, .. } => then.iter().chain(otherwise).all(|statement| self.is_apart(statement)),
            // Lanes don't go different ways.
            Stmt::IfValue { .. } | Stmt::Routine { .. } | Stmt::Launch { .. } => false,
            Stmt::Assign { var, .. } => self.own.contains(var),
            Stmt::Store { value, valid, .. } => {
                let is_vector = value_type(self.vars, value).lanes > 1;
                self.stored.insert(*valid);
                is_vector
            }
            Stmt::Array { .. }
            | Stmt::Define { .. }
            | Stmt::DefineIndex { .. }
            | Stmt::Pointer { .. }
            | Stmt::Comment(_) => true,
        }
    }

    fn note_widths(&mut self, value: &Expr) {
        let lanes = value_type(self.vars, value).lanes;
        if lanes > 1 {
            self.widths.insert(lanes);
        }
        value.children().for_each(|child| self.note_widths(child));
    }
}

/// Which pointers point into the same memory.
pub(super) struct Memory(BTreeMap<Var, Var>);

impl Memory {
    /// That of a function.
    pub fn of(body: &[Stmt]) -> Memory {
        let mut memory = Memory(BTreeMap::new());
        memory.note(body);
        memory
    }

    fn note(&mut self, body: &[Stmt]) {
        for statement in body {
            if let Stmt::Pointer { var, base, .. } = statement {
                let root = self.root(*base);
                self.0.insert(*var, root);
            }
            blocks(statement).into_iter().for_each(|block| self.note(block));
        }
    }

    fn root(&self, pointer: Var) -> Var {
        self.0.get(&pointer).copied().unwrap_or(pointer)
    }

    /// Whether no lane reads what another one stores.
    fn is_apart(&self, lanes: usize, statements: &[Stmt]) -> bool {
        let mut places: BTreeMap<Var, Vec<Place>> = BTreeMap::new();
        let mut read = BTreeSet::new();
        let mut note = |pointer: Var, index: &Index, stride: i64| {
            let list = places.entry(self.root(pointer)).or_default();
            let place = Place { pointer, index: index.clone(), stride };
            if !list.contains(&place) {
                list.push(place);
            }
        };
        visit_values(statements, &mut |value| {
            visit_loads(value, &mut |pointer, index, stride| {
                read.insert(self.root(pointer));
                note(pointer, index, stride);
            });
        });
        let mut written = BTreeSet::new();
        visit(statements, &mut |statement| {
            if let Stmt::Store { pointer, index, stride, .. } = statement {
                written.insert(self.root(*pointer));
                note(*pointer, index, *stride);
            }
        });
        let are_apart = |list: &Vec<Place>| {
            let [first, others @ ..] = &list[..] else { return true };
            let all_differ = |(number, place): (usize, &Place)| {
                list[..=number].iter().all(|before| before.is_apart(place, lanes as i64))
            };
            first.stride != 0 && others.iter().enumerate().all(all_differ)
        };
        written.intersection(&read).all(|root| places.get(root).is_none_or(are_apart))
    }
}

/// Where the elements of a vector are.
#[derive(PartialEq)]
struct Place {
    pointer: Var,
    index: Index,
    stride: i64,
}

impl Place {
    /// Whether no lane of the one is where another lane of the other is.
    fn is_apart(&self, other: &Place, lanes: i64) -> bool {
        let between = other.index.plus(&self.index.times(-1)).as_constant();
        let stride = self.stride.abs();
        let meets = |between: i64| between % stride.max(1) == 0 && between.abs() < lanes * stride;
        self.pointer == other.pointer && self.stride == other.stride && between.is_some_and(|between| !meets(between))
    }
}

/// The pointers behind which statements load or store vectors, with the elements between lanes.
pub(super) fn accesses(vars: &[VarInfo], statements: &[Stmt]) -> BTreeSet<(Var, i64)> {
    let mut found = BTreeSet::new();
    visit_values(statements, &mut |value| {
        visit_loads(value, &mut |pointer, _, stride| {
            found.insert((pointer, stride));
        });
    });
    visit(statements, &mut |statement| match statement {
        Stmt::Store { pointer, stride, value, .. } if value_type(vars, value).lanes > 1 => {
            found.insert((*pointer, *stride));
        }
        _ => {}
    });
    // Single elements are all lanes'.
    found.retain(|(_, stride)| *stride != 0);
    found
}

/// Whether a value's lanes are made of others' lanes.
pub(super) fn mixes_lanes(value: &Expr) -> bool {
    matches!(value, Expr::Lane(..) | Expr::Fold(..)) || value.children().any(mixes_lanes)
}

fn has_lanes(vars: &[VarInfo], value: &Expr) -> bool {
    value_type(vars, value).lanes > 1 || value.children().any(|child| has_lanes(vars, child))
}

/// All variables that statements define.
pub(super) fn defined(statements: &[Stmt]) -> BTreeSet<Var> {
    let mut found = BTreeSet::new();
    visit(statements, &mut |statement| match statement {
        Stmt::For { var, .. }
        | Stmt::Array { var, .. }
        | Stmt::Define { var, .. }
        | Stmt::DefineIndex { var, .. }
        | Stmt::Pointer { var, .. } => {
            found.insert(*var);
        }
        _ => {}
    });
    found
}

fn blocks(statement: &Stmt) -> [&[Stmt]; 2] {
    match statement {
        Stmt::For { body, .. } | Stmt::IfValue { then: body, .. } => [body, &[]],
        Stmt::If { then, otherwise, .. } => [then, otherwise],
        _ => [&[], &[]],
    }
}

/// Calls `found` with every statement, those around others first.
fn visit<'a>(statements: &'a [Stmt], found: &mut dyn FnMut(&'a Stmt)) {
    for statement in statements {
        found(statement);
        blocks(statement).into_iter().for_each(|block| visit(block, found));
    }
}

/// Calls `found` with the values of all statements.
fn visit_values(statements: &[Stmt], found: &mut dyn FnMut(&Expr)) {
    visit(statements, &mut |statement| match statement {
        Stmt::Define { value, .. }
        | Stmt::Assign { value, .. }
        | Stmt::Store { value, .. }
        | Stmt::IfValue { condition: value, .. } => found(value),
        _ => {}
    });
}

fn visit_loads(value: &Expr, found: &mut dyn FnMut(Var, &Index, i64)) {
    match value {
        Expr::Load { pointer, index, ty } => found(*pointer, index, if ty.lanes > 1 { 1 } else { 0 }),
        Expr::Gather { pointer, index, stride, ty, .. } => {
            found(*pointer, index, if ty.lanes > 1 { *stride } else { 0 })
        }
        Expr::Pair { pointer, index } | Expr::Quad { pointer, index } => found(*pointer, index, 0),
        Expr::WidePairs { pointer, index, .. } => found(*pointer, index, 1),
        other => other.children().for_each(|child| visit_loads(child, found)),
    }
}
