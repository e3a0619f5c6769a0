//! [`lead`]: how far what a function writes may lie over what it reads.
//!
//! The function is walked with the values of its counters, in the order in which it runs. With the one piece of memory *d* bytes before the
//! other, what is written at *w* takes the place of what is read at *w* - *d*: nothing that is still needed is lost if *d* is at least
//! the end of all that has been written less the start of what is read then, at any time. That is the lead. Where the distance is a multiple of some
//! bytes, a pixel's, only reads and writes at the same bytes of a pixel meet, so that channels which don't mix may come in any order.
//!
//! Of a function that goes [downwards](super::downwards()) it is told in the mirror: places count from the end of memory to its start, so that the
//! lead says how far behind what is read that has to be which is written.
//!
//! A loop in which memory is only read, or only written, at places that are sums of multiples of counters, reaches furthest in its first or its last turn, so
//! that no other one is walked.

use super::expression::{Atom, Expr, Index};
use super::statement::{Function, Relation, Stmt};
use super::variable::{Var, VarKind};
use mlc_ir::DType;
use std::collections::BTreeMap;

/// Which way the loops of a function go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Results are written from their start to their end.
    Upwards,
    /// From their end to their start.
    Downwards,
}

/// Places in bytes, from where the pointers point; downwards, less than they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    /// The first byte that is read.
    pub first_read: Option<i64>,
    /// The end of what is written.
    pub end_written: Option<i64>,
    /// How far before what is read that has to be which is written, or behind it downwards, at least; `None` where nothing is read after something
    /// has been written.
    pub distance: Option<i64>,
}

/// What a lead is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    /// A pointer that is read through.
    pub read: Var,
    /// One that is written through.
    pub written: Var,
    /// What distances are multiples of, in bytes.
    pub modulus: usize,
    /// Which way the function goes.
    pub direction: Direction,
}

/// What functions do with their pointers, as far as it has been asked for.
#[derive(Debug, Default)]
pub struct Leads(BTreeMap<(String, Question), (Function, Option<Lead>)>);

impl Leads {
    /// What `found` finds out the first time; functions of one name, that of a kernel and its schedule, may still differ.
    pub fn of(
        &mut self,
        name: String,
        function: &Function,
        question: Question,
        found: impl FnOnce() -> Option<Lead>,
    ) -> Option<Lead> {
        let key = (name, question);
        match self.0.get(&key) {
            Some((known, lead)) if known.body == function.body => *lead,
            _ => {
                let lead = found();
                self.0.insert(key, (function.clone(), lead));
                lead
            }
        }
    }
}

/// Statements and turns that are walked at most, so that compilation stays short.
const MOST_STEPS: usize = 1 << 21;

/// What is written through one pointer of a function against what is read through another, at distances that are multiples of some bytes.
/// `None` where that depends on data, or takes too long to find out.
pub fn lead(function: &Function, question: Question) -> Option<Lead> {
    let Question { read, written, modulus, direction } = question;
    let modulus = i64::try_from(modulus.max(1)).ok()?;
    let mut reducer = Reducer { function, modulus, memories: vec![None; function.vars.len()] };
    for (var, memory) in [(read, Memory::Read), (written, Memory::Written)] {
        if let Some(own) = reducer.memories.get_mut(var as usize) {
            *own = Some(memory);
        }
    }
    let nodes = reducer.block(&function.body)?;
    let unit = if modulus == 1 { 1 } else { reducer.unit(&[read, written])? };
    let mut walker = Walker {
        is_mirrored: direction == Direction::Downwards,
        modulus,
        unit,
        values: vec![None; function.vars.len()],
        places: vec![0; function.vars.len()],
        ends: vec![i64::MIN; usize::try_from(modulus / unit).ok()?],
        found: Lead { first_read: None, end_written: None, distance: None },
        steps: 0,
    };
    walker.block(&nodes)?;
    Some(walker.found)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    Read,
    Written,
}

/// A statement, as far as it says where memory is touched.
enum Node<'a> {
    /// Of a short one, only the first and the last turn are walked.
    Loop {
        var: Var,
        start: &'a Index,
        end: &'a Index,
        step: i64,
        descends: bool,
        is_short: bool,
        body: Vec<Node<'a>>,
    },
    Index {
        var: Var,
        value: &'a Index,
    },
    Pointer {
        var: Var,
        base: Var,
        offset: &'a Index,
        bytes: i64,
    },
    Touch {
        memory: Memory,
        pointer: Var,
        index: &'a Index,
        bytes: i64,
        first: i64,
        length: i64,
    },
    If {
        conditions: &'a [(Index, Relation, Index)],
        then: Vec<Node<'a>>,
        otherwise: Vec<Node<'a>>,
    },
}

/// Leaves out what touches neither piece of memory.
struct Reducer<'a> {
    function: &'a Function,
    modulus: i64,
    /// What each pointer points into.
    memories: Vec<Option<Memory>>,
}

impl<'a> Reducer<'a> {
    fn block(&mut self, body: &'a [Stmt]) -> Option<Vec<Node<'a>>> {
        let mut nodes = Vec::new();
        for statement in body {
            match statement {
                Stmt::For { var, start, end, step, descends, body, .. } => {
                    let body = self.block(body)?;
                    if touches(&body) {
                        let is_one_way = is_simple(&body, Memory::Read) || is_simple(&body, Memory::Written);
                        let is_short = is_one_way && keeps_phase(&body, *var, *step, self.modulus);
                        let (var, step, descends) = (*var, *step, *descends);
                        nodes.push(Node::Loop { var, start, end, step, descends, is_short, body });
                    }
                }
                Stmt::Define { value, .. } | Stmt::Assign { value, .. } => self.value(value, &mut nodes),
                Stmt::DefineIndex { var, value } => {
                    self.index(value, &mut nodes);
                    nodes.push(Node::Index { var: *var, value });
                }
                Stmt::Pointer { var, base, offset } => {
                    if let Some(memory) = self.memories[*base as usize] {
                        self.memories[*var as usize] = Some(memory);
                        nodes.push(Node::Pointer { var: *var, base: *base, offset, bytes: self.element_bytes(*base) });
                    }
                }
                Stmt::Store { pointer, index, stride, valid, value } => {
                    self.value(value, &mut nodes);
                    self.index(index, &mut nodes);
                    self.touch(Memory::Written, *pointer, index, (*stride, *valid), &mut nodes);
                }
                Stmt::If { conditions, then, otherwise } => {
                    let (then, otherwise) = (self.block(then)?, self.block(otherwise)?);
                    if touches(&then) || touches(&otherwise) {
                        nodes.push(Node::If { conditions, then, otherwise });
                    }
                }
                Stmt::IfValue { condition, then } => {
                    self.value(condition, &mut nodes);
                    nodes.extend(self.block(then)?);
                }
                Stmt::Routine { routine, pointers, numbers } => {
                    // In which order a routine reads and writes isn't said: as if it wrote first.
                    for memory in [Memory::Written, Memory::Read] {
                        for ((pointer, index), elements) in pointers.iter().zip(routine.elements(numbers)) {
                            self.touch(memory, *pointer, index, (1, elements), &mut nodes);
                        }
                    }
                }
                Stmt::Launch { .. } => return None,
                Stmt::Array { .. } | Stmt::Comment(_) => {}
            }
        }
        Some(nodes)
    }

    fn index(&mut self, index: &'a Index, nodes: &mut Vec<Node<'a>>) {
        index.reads(&mut |pointer, index, elements| self.touch(Memory::Read, pointer, index, elements, nodes));
    }

    fn value(&mut self, value: &'a Expr, nodes: &mut Vec<Node<'a>>) {
        value.reads(&mut |pointer, index, elements| self.touch(Memory::Read, pointer, index, elements, nodes));
    }

    /// Elements a stride apart.
    fn touch(
        &mut self,
        memory: Memory,
        pointer: Var,
        index: &'a Index,
        (stride, count): (i64, usize),
        nodes: &mut Vec<Node<'a>>,
    ) {
        if self.memories[pointer as usize] != Some(memory) || count == 0 {
            return;
        }
        let bytes = self.element_bytes(pointer);
        let far = stride * (count as i64 - 1) * bytes;
        let (first, length) = (far.min(0), far.abs() + bytes);
        nodes.push(Node::Touch { memory, pointer, index, bytes, first, length });
    }

    fn dtype(&self, pointer: Var) -> Option<DType> {
        match self.function.vars.get(pointer as usize)?.kind {
            VarKind::Pointer { dtype, .. } => Some(dtype),
            _ => None,
        }
    }

    fn element_bytes(&self, pointer: Var) -> i64 {
        self.dtype(pointer).map_or(1, |dtype| dtype.size() as i64)
    }

    /// Bytes of elements that all have.
    fn unit(&self, pointers: &[Var]) -> Option<i64> {
        let sizes = pointers.iter().filter_map(|&pointer| self.dtype(pointer)).map(|dtype| dtype.size() as i64);
        sizes.min()
    }
}

/// Whether any memory is touched.
fn touches(nodes: &[Node<'_>]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Touch { .. } => true,
        Node::Loop { body, .. } => touches(body),
        Node::If { then, otherwise, .. } => touches(then) || touches(otherwise),
        Node::Index { .. } | Node::Pointer { .. } => false,
    })
}

fn is_sum(index: &Index) -> bool {
    index.terms.iter().all(|(atom, _)| matches!(atom, Atom::Var(_)))
}

/// Whether all places are sums of multiples of counters, of memory of one kind.
fn is_simple(nodes: &[Node<'_>], kind: Memory) -> bool {
    nodes.iter().all(|node| match node {
        Node::Touch { memory, index, .. } => *memory == kind && is_sum(index),
        Node::Loop { start, end, body, .. } => start.terms.is_empty() && end.terms.is_empty() && is_simple(body, kind),
        Node::Index { value, .. } | Node::Pointer { offset: value, .. } => is_sum(value),
        Node::If { .. } => false,
    })
}

/// Whether the turns of a loop touch the same bytes of pixels.
fn keeps_phase(nodes: &[Node<'_>], var: Var, step: i64, modulus: i64) -> bool {
    nodes.iter().all(|node| match node {
        Node::Touch { index, bytes, .. } => {
            let moves = index.terms.iter().filter(|(atom, _)| *atom == Atom::Var(var));
            moves.map(|(_, factor)| factor * step * bytes).sum::<i64>() % modulus == 0
        }
        Node::Loop { body, .. } => keeps_phase(body, var, step, modulus),
        Node::Index { .. } | Node::Pointer { .. } | Node::If { .. } => modulus == 1,
    })
}

struct Walker {
    /// Whether places count from the end of memory.
    is_mirrored: bool,
    modulus: i64,
    /// Bytes that are looked at as one.
    unit: i64,
    values: Vec<Option<i64>>,
    /// Where each pointer points.
    places: Vec<i64>,
    /// The end of what has been written, for each unit of a pixel.
    ends: Vec<i64>,
    found: Lead,
    steps: usize,
}

impl Walker {
    fn block(&mut self, nodes: &[Node<'_>]) -> Option<()> {
        for node in nodes {
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return None;
            }
            match node {
                Node::Loop { var, start, end, step, descends, is_short, body } => {
                    let (start, end) = (self.value(start)?, self.value(end)?);
                    let last = start + (end - 1 - start).max(0) / step * step;
                    let stride = if *is_short { (last - start).max(*step) } else { *step };
                    let mut turn = start;
                    while turn < end {
                        self.values[*var as usize] = Some(if *descends { start + last - turn } else { turn });
                        self.block(body)?;
                        turn += stride;
                    }
                }
                // One that data decide is no concern until a place depends on it.
                Node::Index { var, value } => self.values[*var as usize] = self.value(value),
                Node::Pointer { var, base, offset, bytes } => {
                    self.places[*var as usize] = self.places[*base as usize] + self.value(offset)? * bytes;
                }
                Node::Touch { memory, pointer, index, bytes, first, length } => {
                    let start = self.places[*pointer as usize] + self.value(index)? * bytes + first;
                    let start = if self.is_mirrored { -(start + length) } else { start };
                    match memory {
                        Memory::Read => self.read(start, *length),
                        Memory::Written => self.written(start, *length),
                    }
                }
                Node::If { conditions, then, otherwise } => {
                    let mut holds = true;
                    for (left, relation, right) in *conditions {
                        let (left, right) = (self.value(left)?, self.value(right)?);
                        holds &= match relation {
                            Relation::Less => left < right,
                            Relation::GreaterEqual => left >= right,
                            Relation::Equal => left == right,
                        };
                    }
                    self.block(if holds { then } else { otherwise })?;
                }
            }
        }
        Some(())
    }

    fn value(&self, index: &Index) -> Option<i64> {
        let mut sum = index.constant;
        for (atom, factor) in &index.terms {
            let value = match atom {
                Atom::Var(var) => self.values[*var as usize]?,
                Atom::Quotient(inner, divisor) => self.value(inner)?.div_euclid(*divisor),
                Atom::Remainder(inner, divisor) => self.value(inner)?.rem_euclid(*divisor),
                Atom::Maximum(left, right) => self.value(left)?.max(self.value(right)?),
                Atom::Minimum(left, right) => self.value(left)?.min(self.value(right)?),
                Atom::Value(_) => return None,
            };
            sum += factor * value;
        }
        Some(sum)
    }

    /// The units of some bytes, each with the part of a pixel that it is; of more than a pixel the first ones.
    fn units(&self, start: i64, length: i64) -> impl Iterator<Item = (i64, usize)> + use<> {
        let (modulus, unit) = (self.modulus, self.unit);
        let count = if modulus == 1 { 1 } else { (length / unit).min(modulus / unit) };
        (0..count).map(move |number| {
            let place = start + number * unit;
            (place, (place.rem_euclid(modulus) / unit) as usize)
        })
    }

    fn read(&mut self, start: i64, length: i64) {
        self.steps += (length.min(self.modulus) / self.unit) as usize;
        for (place, part) in self.units(start, length) {
            let end = self.ends[part];
            if end > i64::MIN {
                self.found.distance = self.found.distance.max(Some(end - place));
            }
        }
        self.found.first_read = Some(self.found.first_read.map_or(start, |first| first.min(start)));
    }

    fn written(&mut self, start: i64, length: i64) {
        self.steps += (length.min(self.modulus) / self.unit) as usize;
        let end = start + length;
        // Of each unit of a pixel, the last one.
        let last = if self.modulus == 1 { end } else { start + length.min(self.modulus) };
        for (place, part) in self.units(end - (last - start), last - start) {
            let own = if self.modulus == 1 { end } else { place + self.unit };
            self.ends[part] = self.ends[part].max(own);
        }
        self.found.end_written = self.found.end_written.max(Some(end));
    }
}
