//! What statements read and write, and where.

use super::places::{Knowledge, Place};
use crate::loops::expression::{Expr, Index};
use crate::loops::statement::Stmt;
use crate::loops::variable::Var;
use std::collections::{BTreeMap, BTreeSet};

/// Where a piece of memory is touched: places, if they are known, and whether each is written. Memory that others may overlap is all one,
/// `None`.
pub type Memories = BTreeMap<Option<Var>, Vec<(Option<Place>, bool)>>;

/// Takes a loop's counter and step, what its body touches, and what is known behind it.
pub type SeeLoop<'a> = dyn FnMut(Var, i64, &Touched, &Knowledge<'_>) + 'a;

/// What statements touch.
#[derive(Debug, Default)]
pub struct Touched {
    /// Memory, place of the first byte and whether it is written; bytes behind it are part of the place's rest.
    pub accesses: Vec<(Var, Option<Place>, bool)>,
    /// Variables that begin there.
    pub begun: BTreeSet<Var>,
    /// Variables that are assigned.
    pub assigned: BTreeSet<Var>,
}

impl Touched {
    /// By the memory, without what begins there.
    pub fn memories(&self, knowledge: &Knowledge<'_>) -> Memories {
        let mut memories = Memories::new();
        for (root, place, is_written) in self.accesses.iter().filter(|(root, ..)| !self.begun.contains(root)) {
            let is_astray = knowledge.astray.contains(root);
            let memory = if is_astray || knowledge.shared.contains(root) { None } else { Some(*root) };
            let place = if is_astray { None } else { place.clone() };
            memories.entry(memory).or_default().push((place, *is_written));
        }
        memories
    }

    /// Takes in statements, and has what is known follow them.
    pub fn block(&mut self, body: &[Stmt], knowledge: &mut Knowledge<'_>) {
        self.block_with_loops(body, knowledge, &mut |_, _, _, _| ());
    }

    /// The same, where `see` is given each loop, those inside of it first: its counter and step, what its body touches, and what is known
    /// behind it.
    pub fn block_with_loops(&mut self, body: &[Stmt], knowledge: &mut Knowledge<'_>, see: &mut SeeLoop<'_>) {
        for statement in body {
            knowledge.learn(statement);
            match statement {
                Stmt::For { var, start, end, step, body, .. } => {
                    self.begun.insert(*var);
                    self.index(start, knowledge);
                    self.index(end, knowledge);
                    let mut inside = Touched::default();
                    inside.block_with_loops(body, knowledge, see);
                    see(*var, *step, &inside, knowledge);
                    self.accesses.append(&mut inside.accesses);
                    self.begun.append(&mut inside.begun);
                    self.assigned.append(&mut inside.assigned);
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
                    self.block_with_loops(then, knowledge, see);
                    self.block_with_loops(otherwise, knowledge, see);
                }
                Stmt::IfValue { condition, then } => {
                    self.value(condition, knowledge);
                    self.block_with_loops(then, knowledge, see);
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
                Stmt::Launch { .. } | Stmt::Comment(_) => {}
            }
        }
    }

    /// What is loaded to compute an index.
    fn index(&mut self, index: &Index, knowledge: &Knowledge<'_>) {
        index.reads(&mut |pointer, index, elements| self.access((pointer, index), elements, false, knowledge));
    }

    fn value(&mut self, value: &Expr, knowledge: &Knowledge<'_>) {
        value.reads(&mut |pointer, index, elements| self.access((pointer, index), elements, false, knowledge));
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
