//! [`Program`]: what lowering makes of a graph. Loops have programs as their bodies.

use super::exchange::{Exchange, LoweredMessage};
use super::homes::{Buffer, BufferId};
use crate::choice::Choice;
use crate::loops::Function;
use crate::module::MemoryPlan;
use mlc_ir::ops::{CallConvention, Extern};
use mlc_ir::{Attribute, DType, Graph, NodeId, Value};
use std::collections::BTreeMap;

/// Kernels in execution order, over buffers with offsets.
#[derive(Debug)]
pub struct Program {
    /// The legal graph that the steps compute.
    pub graph: Graph,
    /// The kernels.
    pub steps: Vec<Step>,
    /// The graph's messages.
    pub messages: Vec<LoweredMessage>,
    /// What is done with messages between the steps, in order.
    pub exchanges: Vec<Exchange>,
    /// The buffers that the steps' bindings name.
    pub buffers: Vec<Buffer>,
    /// Offset in the arena of each arena buffer, in bytes.
    pub offsets: BTreeMap<BufferId, usize>,
    /// Offset in the arena of each step's scratch memory, by (step, number of the binding).
    pub scratch: BTreeMap<(usize, usize), usize>,
    /// Arena buffers that share memory.
    pub groups: Vec<Group>,
    /// The memory plan.
    pub plan: MemoryPlan,
}

impl Program {
    /// Whether a step returns a status.
    pub fn can_fail(&self) -> bool {
        self.steps.iter().any(|step| step.routine.can_fail())
    }

    /// Its calls of functions that aren't mlc's own, in order, those inside of loops among them, each with the program that it is
    /// a step of and its number there.
    pub fn calls(&self) -> Vec<(&Program, usize, &ExternRoutine)> {
        (0..self.steps.len()).flat_map(|step| self.calls_of(step)).collect()
    }

    /// Those of [`Program::calls`] that a step makes.
    pub fn calls_of(&self, step: usize) -> Vec<(&Program, usize, &ExternRoutine)> {
        match &self.steps[step].routine {
            Routine::Kernel(_) => Vec::new(),
            Routine::Loop(code) => code.body.calls(),
            Routine::Extern(code) => vec![(self, step, &**code)],
        }
    }

    /// C symbol of a persistent result.
    pub fn persistent_symbol(&self, value: Value) -> Option<&str> {
        self.steps.iter().filter(|step| step.node == value.node).find_map(|step| match &step.routine {
            Routine::Extern(code) => {
                let place = code.op.persistent.iter().position(|&result| result == value.slot as usize)?;
                code.persistent.get(place).map(String::as_str)
            }
            _ => None,
        })
    }
}

/// Arena buffers that share memory: results that overwrite operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The buffers.
    pub members: Vec<BufferId>,
    /// Size of the memory in bytes.
    pub bytes: usize,
    /// First step that touches it.
    pub first: usize,
    /// Last step that touches it.
    pub last: usize,
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
        value: Attribute,
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

/// What a step runs.
#[derive(Debug)]
pub enum Routine {
    /// A kernel.
    Kernel(Function),
    /// A loop over other steps.
    Loop(Box<LoopRoutine>),
    /// A function that isn't mlc's own.
    Extern(Box<ExternRoutine>),
}

impl Routine {
    /// C symbol of the function.
    pub fn name(&self) -> &str {
        match self {
            Routine::Kernel(function) => &function.name,
            Routine::Loop(code) => &code.name,
            Routine::Extern(code) => &code.name,
        }
    }

    /// Whether it calls a function of the packed convention.
    pub fn is_packed(&self) -> bool {
        matches!(self, Routine::Extern(code) if code.op.convention == CallConvention::Packed)
    }

    /// Whether it returns a status.
    pub fn can_fail(&self) -> bool {
        match self {
            Routine::Kernel(_) => false,
            Routine::Loop(code) => code.body.can_fail(),
            Routine::Extern(_) => true,
        }
    }
}

/// One kernel and what its parameters point at.
#[derive(Debug)]
pub struct Step {
    /// What it runs.
    pub routine: Routine,
    /// What each parameter of the function points at.
    pub bindings: Vec<Binding>,
    /// The node that is computed.
    pub node: NodeId,
    /// What is computed, for the summary.
    pub operator: String,
    /// Multiply-accumulate operations.
    pub macs: u64,
    /// Pairs of a result's buffer and an operand's that it may overwrite: one of the same layout that is read element by element, or
    /// that a function says it can write over.
    pub in_place: Vec<(BufferId, BufferId)>,
    /// The schedules that there were.
    pub choice: Choice,
}

impl Step {
    /// Buffers that are read.
    pub fn reads(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.bindings.iter().filter_map(|binding| match binding {
            Binding::Buffer { buffer, constant: true, .. } => Some(*buffer),
            _ => None,
        })
    }

    /// Buffers that are written.
    pub fn writes(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.bindings.iter().filter_map(|binding| match binding {
            Binding::Buffer { buffer, constant: false, .. } => Some(*buffer),
            _ => None,
        })
    }
}

/// A loop over the steps of its body.
#[derive(Debug)]
pub struct LoopRoutine {
    /// C symbol.
    pub name: String,
    /// What it computes, as a C comment.
    pub comment: String,
    /// The number of turns.
    pub trip_count: usize,
    /// Whether the first carried value ends the loop when it is false.
    pub conditional: bool,
    /// What turns hand on.
    pub carried: Vec<Carried>,
    /// How each scanned operand is walked.
    pub scanned: Vec<Walk>,
    /// How many operands each turn sees as they are.
    pub captured: usize,
    /// How each stacked result is walked.
    pub stacked: Vec<Walk>,
    /// What each turn does. Its inputs are the number of the turn, the carried values, slices and captured values.
    pub body: Program,
    /// Where the body's arena starts in the loop's scratch memory.
    pub arena: usize,
}

/// A carried value.
#[derive(Debug)]
pub struct Carried {
    /// Its size.
    pub bytes: usize,
    /// Its second place: an offset in the loop's scratch memory.
    pub spare: usize,
}

/// How a tensor is walked, slice by slice.
#[derive(Debug)]
pub struct Walk {
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
