//! [`Part`]: what a program is a tree of.

use super::exchange::Exchange;
use super::fetch::Fetch;
use super::homes::BufferId;
use super::overlay::Overlay;
use super::rings::{Ring, RowWalk};
use super::view::View;
use super::workers::WorkerTurns;
use crate::choice::Choice;
use crate::kernels::Packed;
use crate::loops::Function;
use crate::target::Target;
use mlc_ir::ops::{CallConvention, Extern};
use mlc_ir::{DType, TensorType};
use std::collections::BTreeSet;

/// A part of a program.
#[derive(Debug)]
pub enum Part {
    /// One function.
    Step(Box<Step>),
    /// Parts that run again and again.
    Loop(Box<Loop>),
    /// Kernels that take turns.
    Stripe(Box<Stripe>),
    /// Something that is done with a message; only in the outermost sequence.
    Exchange(Exchange),
    /// Something that is done with constants which are copied into the arena; only in the outermost sequence.
    Fetch(Fetch),
}

impl Part {
    /// How many positions of the walk it takes: one for each step and each loop in it.
    pub fn positions(&self) -> usize {
        match self {
            Part::Step(_) => 1,
            Part::Loop(_) | Part::Stripe(_) => 1 + self.inner().map(|(part, _)| part.positions()).sum::<usize>(),
            Part::Exchange(_) | Part::Fetch(_) => 0,
        }
    }

    /// The parts inside of it, in order, each with how often it runs.
    pub fn inner(&self) -> Box<dyn Iterator<Item = (&Part, u64)> + '_> {
        match self {
            Part::Loop(code) => Box::new(code.body.iter().map(|part| (part, code.counted_turns as u64))),
            Part::Stripe(code) => {
                Box::new(code.acts.iter().flat_map(|act| act.body.iter().map(|part| (part, act.turns.computed as u64))))
            }
            _ => Box::new(std::iter::empty()),
        }
    }

    /// Buffers of the arena that nothing outside of it touches.
    pub fn locals(&self) -> Option<&BTreeSet<BufferId>> {
        match self {
            Part::Loop(code) => Some(&code.locals),
            Part::Stripe(code) => Some(&code.locals),
            Part::Step(_) | Part::Exchange(_) | Part::Fetch(_) => None,
        }
    }

    /// Whether it returns a status.
    pub fn can_fail(&self) -> bool {
        match self {
            Part::Step(step) => matches!(step.routine, Routine::Extern(_)),
            Part::Loop(_) | Part::Stripe(_) => self.inner().any(|(part, _)| part.can_fail()),
            Part::Exchange(_) => true,
            Part::Fetch(_) => false,
        }
    }

    /// C symbol of its function.
    pub fn name(&self) -> &str {
        match self {
            Part::Step(step) => step.routine.name(),
            Part::Loop(code) => &code.name,
            Part::Stripe(code) => &code.name,
            Part::Exchange(_) | Part::Fetch(_) => "",
        }
    }

    /// What it computes.
    pub fn label(&self) -> Option<&Label> {
        match self {
            Part::Step(step) => Some(&step.label),
            Part::Loop(code) => Some(&code.label),
            Part::Stripe(code) => Some(&code.label),
            Part::Exchange(_) | Part::Fetch(_) => None,
        }
    }

    /// What its own parameters point at; those of the parts inside of it aren't among them.
    pub fn bindings(&self) -> &[Binding] {
        match self {
            Part::Step(step) => &step.bindings,
            Part::Loop(code) => &code.bindings,
            Part::Stripe(code) => &code.bindings,
            Part::Exchange(_) | Part::Fetch(_) => &[],
        }
    }

    /// Where the values lie that it computes.
    pub fn results(&self) -> &[ResultPlace] {
        match self {
            Part::Step(step) => &step.results,
            Part::Loop(code) => &code.results,
            Part::Stripe(_) | Part::Exchange(_) | Part::Fetch(_) => &[],
        }
    }

    /// Pairs of a buffer that is written and one that it may overwrite: a result and an operand of the same layout that is read element by
    /// element, or that a function says it can write over; what turns hand on and where the first turn finds it.
    pub fn in_place(&self) -> &[(BufferId, BufferId)] {
        match self {
            Part::Step(step) => &step.in_place,
            Part::Loop(code) => &code.in_place,
            Part::Stripe(_) | Part::Exchange(_) | Part::Fetch(_) => &[],
        }
    }

    /// Results that may lie over operands at a distance.
    pub fn overlays(&self) -> &[Overlay] {
        match self {
            Part::Step(step) => &step.overlays,
            Part::Stripe(code) => &code.overlays,
            Part::Loop(_) | Part::Exchange(_) | Part::Fetch(_) => &[],
        }
    }

    /// Has all that it names be in other buffers, by a function from a buffer to another one and the first of its elements there.
    pub(super) fn rebind(&mut self, moved: &dyn Fn(BufferId) -> (BufferId, i64)) {
        let rebind = |bindings: &mut [Binding], in_place: &mut [(BufferId, BufferId)]| {
            for binding in bindings {
                if let Binding::Buffer { buffer, offset, .. } = binding {
                    let (other, first) = moved(*buffer);
                    (*buffer, *offset) = (other, *offset + first);
                }
            }
            for (over, under) in in_place {
                (*over, *under) = (moved(*over).0, moved(*under).0);
            }
        };
        match self {
            Part::Step(step) => {
                rebind(&mut step.bindings, &mut step.in_place);
                step.overlays.iter_mut().for_each(|overlay| overlay.rebind(moved));
            }
            Part::Loop(code) => {
                rebind(&mut code.bindings, &mut code.in_place);
                code.locals = code.locals.iter().map(|&buffer| moved(buffer).0).collect();
                code.moving().for_each(|buffer| *buffer = moved(*buffer).0);
                code.body.iter_mut().for_each(|part| part.rebind(moved));
            }
            Part::Stripe(code) => {
                rebind(&mut code.bindings, &mut []);
                code.overlays.iter_mut().for_each(|overlay| overlay.rebind(moved));
                code.locals = code.locals.iter().map(|&buffer| moved(buffer).0).collect();
                for act in &mut code.acts {
                    act.walks.iter_mut().for_each(|walk| walk.rows = moved(walk.rows).0);
                    act.body.iter_mut().for_each(|part| part.rebind(moved));
                }
            }
            Part::Exchange(_) | Part::Fetch(_) => {}
        }
    }
}

/// What a part computes, for who reads of it.
#[derive(Debug, Clone, Default)]
pub struct Label {
    /// Name of the node.
    pub node: String,
    /// What is computed, such as `convolution with epilogue`.
    pub operator: String,
    /// Source operators that the node stands for.
    pub origins: Vec<String>,
    /// Types of the node's results.
    pub results: Vec<TensorType>,
    /// Multiply-accumulate operations of one time.
    pub macs: u64,
    /// Bytes that are read and written if each element is once: of operands, constants and results, or of what is copied, twice.
    pub bytes: u64,
}

/// Where a value lies when the part that computes it has run.
#[derive(Debug, Clone)]
pub struct ResultPlace {
    /// Name of the value's node.
    pub node: String,
    /// Which result of the node it is.
    pub slot: usize,
    /// Number of the binding that points at its first element.
    pub binding: usize,
    /// How the elements lie from there on.
    pub view: View,
}

/// What a kernel's parameter points at.
#[derive(Debug, Clone)]
pub enum Binding {
    /// An element of a buffer.
    Buffer {
        /// The buffer.
        buffer: BufferId,
        /// The element.
        offset: i64,
        /// Type of the elements.
        dtype: DType,
        /// Whether it is only read.
        constant: bool,
    },
    /// A packed constant.
    Packed {
        /// Name of the constant that it was made of.
        name: String,
        /// The values.
        value: Packed,
    },
    /// Scratch memory of the kernel.
    Scratch {
        /// Bytes.
        bytes: usize,
        /// Type of the elements.
        dtype: DType,
        /// Alignment in bytes, where it is more than the arena's.
        alignment: usize,
    },
}

impl Binding {
    /// The buffer that it points into.
    pub fn buffer(&self) -> Option<BufferId> {
        if let Binding::Buffer { buffer, .. } = self { Some(*buffer) } else { None }
    }
}

/// What a step runs.
#[derive(Debug)]
pub enum Routine {
    /// A kernel.
    Kernel(Function),
    /// A function that isn't mlc's own.
    Extern(Box<ExternRoutine>),
}

impl Routine {
    /// C symbol of the function.
    pub fn name(&self) -> &str {
        match self {
            Routine::Kernel(function) => &function.name,
            Routine::Extern(code) => &code.name,
        }
    }

    /// Whether it calls a function of the packed convention.
    pub fn is_packed(&self) -> bool {
        matches!(self, Routine::Extern(code) if code.op.convention == CallConvention::Packed)
    }
}

/// One function and what its parameters point at.
#[derive(Debug)]
pub struct Step {
    /// What it runs.
    pub routine: Routine,
    /// What each parameter of the function points at.
    pub bindings: Vec<Binding>,
    /// What is computed.
    pub label: Label,
    /// Where the values lie that it computes, as far as they are whole then.
    pub results: Vec<ResultPlace>,
    /// See [`Part::in_place`].
    pub in_place: Vec<(BufferId, BufferId)>,
    /// See [`Part::overlays`].
    pub overlays: Vec<Overlay>,
    /// The schedules that there were.
    pub choice: Choice,
}

/// Parts that run again and again. What the turns see elsewhere each time is a buffer of kind [`Moving`](super::homes::BufferKind::Moving).
#[derive(Debug)]
pub struct Loop {
    /// C symbol.
    pub name: String,
    /// What it computes, as a C comment.
    pub comment: String,
    /// What it computes.
    pub label: Label,
    /// The number of turns, at most if a condition ends them; `None` where nothing else does.
    pub trip_count: Option<usize>,
    /// The number of turns that prices count with.
    pub counted_turns: usize,
    /// Whether the first carried value ends the loop when it is false.
    pub conditional: bool,
    /// The number of the turn: one i64.
    pub turn: BufferId,
    /// What turns hand on.
    pub carried: Vec<Carried>,
    /// How each scanned operand is walked.
    pub scanned: Vec<Walk>,
    /// How each stacked result is walked.
    pub stacked: Vec<Walk>,
    /// What carried, scanned and stacked values name by number.
    pub bindings: Vec<Binding>,
    /// Where its results lie after the last turn.
    pub results: Vec<ResultPlace>,
    /// What each turn does.
    pub body: Vec<Part>,
    /// Buffers of the arena that nothing outside of the loop touches.
    pub locals: BTreeSet<BufferId>,
    /// See [`Part::in_place`].
    pub in_place: Vec<(BufferId, BufferId)>,
}

impl Loop {
    /// The buffers of kind [`Moving`](super::homes::BufferKind::Moving).
    fn moving(&mut self) -> impl Iterator<Item = &mut BufferId> {
        let carried = self.carried.iter_mut().flat_map(|carried| [&mut carried.read, &mut carried.written]);
        let walks = self.scanned.iter_mut().chain(&mut self.stacked).map(|walk| &mut walk.slice);
        [&mut self.turn].into_iter().chain(carried).chain(walks)
    }

    /// Whether turns find a buffer elsewhere each time.
    pub(super) fn moves(&self, buffer: BufferId) -> bool {
        let carried = self.carried.iter().any(|carried| [carried.read, carried.written].contains(&buffer));
        let walked = self.scanned.iter().chain(&self.stacked).any(|walk| walk.slice == buffer);
        self.turn == buffer || carried || walked
    }
}

/// Kernels that take turns, some rows at a time, with rings of rows between them.
#[derive(Debug)]
pub struct Stripe {
    /// C symbol.
    pub name: String,
    /// What it computes, as a C comment.
    pub comment: String,
    /// What it computes.
    pub label: Label,
    /// The number of turns.
    pub turns: usize,
    /// Bytes that a turn touches, about.
    pub turn_bytes: usize,
    /// Who takes turns, in the order of a turn.
    pub acts: Vec<Act>,
    /// What walks and rings name by number.
    pub bindings: Vec<Binding>,
    /// The rings, and buffers of the arena inside of acts.
    pub locals: BTreeSet<BufferId>,
    /// See [`Part::overlays`].
    pub overlays: Vec<Overlay>,
}

impl Stripe {
    /// Whether acts find a buffer elsewhere each time.
    pub(super) fn moves(&self, buffer: BufferId) -> bool {
        self.acts.iter().any(|act| act.walks.iter().any(|walk| walk.rows == buffer))
    }

    /// What it takes beside its kernels, in the unit of prices.
    pub fn time(&self, target: &Target) -> u64 {
        let each = &target.machine.instructions;
        let rings = self.acts.iter().filter_map(|act| Some((act, act.ring.as_ref()?)));
        let moved: f64 = rings.map(|(act, ring)| ring.time(act.turns.appended, each)).sum();
        let asked = each.turn * (self.turns * self.acts.len()) as f64;
        (each.call + asked + moved).round() as u64
    }
}

/// One who takes turns.
#[derive(Debug)]
pub struct Act {
    /// When.
    pub turns: WorkerTurns,
    /// Where the rows of whole tensors are that it reads and writes.
    pub walks: Vec<RowWalk>,
    /// The ring that it appends to, unless it writes a whole tensor, or rows for this turn alone.
    pub ring: Option<Ring>,
    /// What it does.
    pub body: Vec<Part>,
}

/// A carried value. It alternates between two places, so that a turn reads one and writes the other, or stays in one.
#[derive(Debug)]
pub struct Carried {
    /// Its size in bytes.
    pub bytes: usize,
    /// Where a turn reads it.
    pub read: BufferId,
    /// Where a turn writes it.
    pub written: BufferId,
    /// Number of the binding of its first value.
    pub initial: usize,
    /// Number of the binding of the place where its last value has to be.
    pub last: usize,
    /// Number of the binding of its other place; `last` where it has none.
    pub spare: usize,
}

impl Carried {
    /// Whether turns write the value where they have read it; the first one reads it at `initial`.
    pub fn stays(&self) -> bool {
        self.spare == self.last
    }
}

/// How a tensor is walked, slice by slice.
#[derive(Debug)]
pub struct Walk {
    /// The slice of a turn.
    pub slice: BufferId,
    /// Number of the tensor's binding.
    pub whole: usize,
    /// Bytes between slices.
    pub stride: usize,
    /// Whether the first turn has the last slice.
    pub reverse: bool,
}

/// A call of a function that isn't mlc's own.
#[derive(Debug)]
pub struct ExternRoutine {
    /// C symbol of the function around the call.
    pub name: String,
    /// What it computes, as a C comment.
    pub comment: String,
    /// What is called, and how.
    pub op: Extern,
    /// C symbol of what the function keeps.
    pub instance: Option<String>,
    /// C symbols of its persistent results, in their order.
    pub persistent: Vec<String>,
    /// What is called once before the first run and once after the last, if anything is.
    pub once: Option<Once>,
}

/// C symbols of what begins and ends with a function.
#[derive(Debug)]
pub struct Once {
    /// The function that begins, unless that has been done.
    pub begin: String,
    /// The function that ends, unless nothing has begun.
    pub end: String,
    /// Whether it has begun.
    pub begun: String,
}
