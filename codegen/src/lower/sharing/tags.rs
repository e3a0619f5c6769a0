//! Memory of tags: what was written where, byte by byte, by the loop programs of parts as they run.

use super::super::homes::{Buffer, BufferId, BufferKind};
use super::super::layout::Layout;
use super::super::part::{Binding, Part, Routine, Step, Stripe};
use super::super::rings::Ring;
use crate::loops::{Atom, Expr, Function, Index, Relation, Stmt, Var, VarKind};
use std::collections::BTreeMap;

/// Memory, each byte of which knows whose it is.
pub struct Tags<'a> {
    memory: Vec<Option<(usize, i64)>>,
    buffers: &'a [Buffer],
    /// Where buffers are.
    bases: BTreeMap<BufferId, i64>,
    scratch: BTreeMap<(usize, usize), i64>,
    /// Buffers of a stripe's turn: what they are part of, and where its rows begin.
    moving: BTreeMap<BufferId, (BufferId, i64)>,
    /// Reads that found something else than what they were for.
    pub lost: usize,
}

impl<'a> Tags<'a> {
    /// A plan's arena.
    pub fn planned(layout: &Layout, buffers: &'a [Buffer]) -> Tags<'a> {
        let places = layout.offsets.iter().map(|(&id, &offset)| (id, offset as i64));
        let scratch = layout.scratch.iter().map(|(&key, &offset)| (key, offset as i64)).collect();
        Tags { scratch, ..Tags::new(layout.plan.arena_bytes, buffers, places.collect()) }
    }

    /// An operand, whole, and a result so many bytes before it.
    pub fn pair(buffers: &'a [Buffer], operand: BufferId, result: BufferId, distance: i64) -> Tags<'a> {
        let room = (buffers[operand].bytes + buffers[result].bytes) as i64 + distance.abs();
        let mut tags =
            Tags::new(3 * room as usize, buffers, BTreeMap::from([(operand, room), (result, room - distance)]));
        tags.write(operand, 0, buffers[operand].bytes as i64);
        tags
    }

    fn new(bytes: usize, buffers: &'a [Buffer], bases: BTreeMap<BufferId, i64>) -> Tags<'a> {
        Tags { memory: vec![None; bytes], buffers, bases, scratch: BTreeMap::new(), moving: BTreeMap::new(), lost: 0 }
    }

    /// Moves a buffer.
    pub fn shift(&mut self, buffer: BufferId, bytes: i64) {
        self.bases.entry(buffer).and_modify(|base| *base += bytes);
    }

    fn write(&mut self, owner: usize, first: i64, bytes: i64) {
        let Some(base) = self.bases.get(&owner) else { return };
        for place in first..first + bytes {
            self.memory[(base + place) as usize] = Some((owner, place));
        }
    }

    fn read(&mut self, owner: usize, first: i64, bytes: i64) {
        let Some(base) = self.bases.get(&owner) else { return };
        // What is gathered in scratch memory needn't all have been written.
        let is_found = |place: i64| self.memory[(base + place) as usize] == Some((owner, place));
        if owner < self.buffers.len() && !(first..first + bytes).all(is_found) {
            self.lost += 1;
        }
    }

    /// Runs parts, the first of which has a position.
    pub fn run<'p>(&mut self, parts: impl IntoIterator<Item = &'p Part>, mut position: usize) {
        for part in parts {
            match part {
                Part::Step(step) => self.step(step, position),
                Part::Stripe(code) => self.stripe(code, position),
                Part::Loop(_) | Part::Exchange(_) | Part::Fetch(_) => panic!("only steps and stripes are run"),
            }
            position += part.positions();
        }
    }

    fn stripe(&mut self, code: &Stripe, position: usize) {
        let ring_of = |ring: &Ring| code.bindings[ring.binding].buffer().unwrap();
        for ring in code.acts.iter().filter_map(|act| act.ring.as_ref()) {
            self.write(ring_of(ring), 0, ring.bytes as i64);
        }
        for turn in 0..code.turns {
            let mut next = position + 1;
            for act in &code.acts {
                let first = next;
                next += act.body.iter().map(Part::positions).sum::<usize>();
                let Some(time) = act.turns.act(turn) else { continue };
                if let Some(ring) = &act.ring {
                    self.append(ring, ring_of(ring), time);
                }
                if time >= act.turns.computed {
                    continue;
                }
                for walk in &act.walks {
                    let whole = code.bindings[walk.whole].buffer().unwrap();
                    self.moving.insert(walk.rows, (whole, walk.place(turn)));
                }
                self.run(&act.body, first);
            }
        }
    }

    /// Makes room in a ring for what is appended the n-th time.
    fn append(&mut self, ring: &Ring, buffer: BufferId, time: usize) {
        let (kept, appended) = (ring.kept() as i64, ring.appended as i64);
        let place = (time % ring.slides) as i64 * appended;
        if place == 0 && time > 0 {
            self.read(buffer, ring.slides as i64 * appended, kept);
            self.write(buffer, 0, kept);
        }
        // A border is there without being written; so is a sum.
        self.read(buffer, place, kept + appended);
        self.write(buffer, place + kept, appended);
    }

    fn step(&mut self, step: &Step, position: usize) {
        let Routine::Kernel(function) = &step.routine else { panic!("only kernels are run") };
        let mut pointers = vec![None; function.vars.len()];
        for (number, (parameter, binding)) in function.parameters.iter().zip(&step.bindings).enumerate() {
            pointers[parameter.var as usize] = match *binding {
                Binding::Buffer { buffer, offset, dtype, .. } => {
                    let (whole, first) = match self.buffers[buffer].kind {
                        BufferKind::Moving => self.moving[&buffer],
                        _ => (buffer, 0),
                    };
                    Some((whole, first + offset * dtype.size() as i64))
                }
                Binding::Scratch { .. } => {
                    let owner = self.buffers.len() + number;
                    if let Some(&offset) = self.scratch.get(&(position, number)) {
                        self.bases.insert(owner, offset);
                    }
                    Some((owner, 0))
                }
                Binding::Packed { .. } => None,
            };
        }
        let values = vec![0; function.vars.len()];
        Run { function, pointers, values, tags: self }.block(&function.body);
        let buffers = self.buffers.len();
        self.bases.retain(|&owner, _| owner < buffers);
    }
}

/// A function that runs.
struct Run<'f, 't, 'a> {
    function: &'f Function,
    /// What each pointer points into, and at which byte.
    pointers: Vec<Option<(usize, i64)>>,
    values: Vec<i64>,
    tags: &'t mut Tags<'a>,
}

impl Run<'_, '_, '_> {
    fn block(&mut self, body: &[Stmt]) {
        for statement in body {
            match statement {
                Stmt::For { var, start, end, step, descends, body, .. } => {
                    let mut turns = Vec::new();
                    let (mut turn, end) = (self.index(start), self.index(end));
                    while turn < end {
                        turns.push(turn);
                        turn += step;
                    }
                    if *descends {
                        turns.reverse();
                    }
                    for turn in turns {
                        self.values[*var as usize] = turn;
                        self.block(body);
                    }
                }
                Stmt::Define { value, .. } | Stmt::Assign { value, .. } => self.value(value),
                Stmt::DefineIndex { var, value } => self.values[*var as usize] = self.index(value),
                Stmt::Pointer { var, base, offset } => {
                    let bytes = self.index(offset) * self.size(*base);
                    self.pointers[*var as usize] = self.pointers[*base as usize].map(|(owner, at)| (owner, at + bytes));
                }
                Stmt::Store { pointer, index, stride, valid, value } => {
                    self.value(value);
                    self.touch(*pointer, index, (*stride, *valid), true);
                }
                Stmt::If { conditions, then, otherwise } => {
                    let holds = conditions.iter().all(|(left, relation, right)| {
                        let (left, right) = (self.index(left), self.index(right));
                        match relation {
                            Relation::Less => left < right,
                            Relation::GreaterEqual => left >= right,
                            Relation::Equal => left == right,
                        }
                    });
                    self.block(if holds { then } else { otherwise });
                }
                Stmt::Routine { routine: crate::loops::Routine::CopyBytes { .. }, pointers, numbers } => {
                    for ((pointer, index), is_written) in pointers.iter().zip([false, true]) {
                        let elements = numbers[0] / self.size(*pointer);
                        self.touch(*pointer, index, (1, elements as usize), is_written);
                    }
                }
                Stmt::Array { .. } | Stmt::Comment(_) => {}
                other => panic!("{other:?} isn't run"),
            }
        }
    }

    fn size(&self, pointer: Var) -> i64 {
        match self.function.vars[pointer as usize].kind {
            VarKind::Pointer { dtype, .. } => dtype.size() as i64,
            _ => 1,
        }
    }

    fn touch(&mut self, pointer: Var, index: &Index, (stride, count): (i64, usize), is_written: bool) {
        let Some((owner, at)) = self.pointers[pointer as usize] else { return };
        let (size, first) = (self.size(pointer), self.index(index));
        for number in 0..count as i64 {
            let place = at + (first + number * stride) * size;
            match is_written {
                true => self.tags.write(owner, place, size),
                false => self.tags.read(owner, place, size),
            }
        }
    }

    fn value(&mut self, value: &Expr) {
        match value {
            Expr::Load { pointer, index, ty } => self.touch(*pointer, index, (1, ty.lanes), false),
            Expr::Pair { pointer, index } => self.touch(*pointer, index, (1, 2), false),
            Expr::WidePairs { pointer, index, lanes } => self.touch(*pointer, index, (1, 2 * lanes), false),
            Expr::Quad { pointer, index } => self.touch(*pointer, index, (1, 4), false),
            Expr::Gather { pointer, index, stride, valid, .. } => self.touch(*pointer, index, (*stride, *valid), false),
            other => other.children().for_each(|child| self.value(child)),
        }
    }

    fn index(&self, index: &Index) -> i64 {
        let atom = |atom: &Atom| match atom {
            Atom::Var(var) => self.values[*var as usize],
            Atom::Quotient(inner, divisor) => self.index(inner) / divisor,
            Atom::Remainder(inner, divisor) => self.index(inner) % divisor,
            Atom::Maximum(left, right) => self.index(left).max(self.index(right)),
            Atom::Minimum(left, right) => self.index(left).min(self.index(right)),
            Atom::Value(_) => panic!("data decide where memory is touched"),
        };
        index.constant + index.terms.iter().map(|(own, factor)| factor * atom(own)).sum::<i64>()
    }
}
