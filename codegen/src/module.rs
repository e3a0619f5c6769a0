//! [`Module`]: everything that the code generator makes of a graph, before it is packed into an archive.

use crate::choice::Choice;
use crate::execution::Execution;
use crate::graph::ExecutorGraph;
use crate::lower::Considered;
use crate::price::Price;
use crate::target::ProcessorBits;
use mlc_ir::{Attribute, Quantization, TensorType};
use serde::{Deserialize, Serialize};

/// An input or output of the generated function.
#[derive(Debug, Clone, PartialEq)]
pub struct Port {
    /// Its name in the model.
    pub name: String,
    /// The name as a C identifier, unique among the inputs, or the outputs.
    pub field: String,
    /// Type of the dense, row-major tensor that the caller's pointer points at.
    pub ty: TensorType,
    /// What its integers stand for, if that is known.
    pub quantization: Option<Quantization>,
}

/// The rows of an input that are given one after the other: along axis 1, each a dense piece of it.
#[derive(Debug, Clone, Copy)]
pub struct FedRows<'a> {
    /// The input.
    pub port: &'a Port,
    /// How many there are.
    pub count: usize,
    /// Bytes of each.
    pub row_bytes: usize,
}

impl FedRows<'_> {
    /// Bytes of the input that are never in memory, if the caller has one row at a time.
    pub fn saved_bytes(&self) -> usize {
        self.port.ty.bytes() - self.row_bytes
    }
}

/// One generated kernel, or a loop over kernels or a stripe of them, which follow it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelSummary {
    /// C symbol, `tvmgen_<model>_…`.
    pub function: String,
    /// Name of the node that it computes.
    pub node: String,
    /// The operator, for example `kernel(convolution)`.
    pub operator: String,
    /// Source operators that it stands for.
    pub origins: Vec<String>,
    /// How many of those behind it are inside of it; only loops and stripes have any.
    #[serde(skip_serializing_if = "is_zero")]
    pub inside: usize,
    /// Multiply-accumulate operations of all turns of the loops around it; those of a loop are its kernels'.
    pub macs: u64,
    /// Bytes that it reads and writes in all turns if each element is read or written once.
    pub bytes: u64,
    /// Bytes of memory in the arena that only this kernel, or the kernels of this loop, use.
    pub workspace_bytes: u64,
    /// Where its results lie when it has run; of kernels inside of loops none, whose turns have results of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<KernelResult>,
    /// Its results that lie over operands which it reads for the last time, other than exactly.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub laid_over: Vec<LaidOver>,
    /// How many turns of its outermost loop can run at the same time.
    #[serde(skip)]
    pub parallel_turns: u64,
    /// What threads do of it; none where one thread computes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<SplitSummary>,
    /// Which thread computes it beside other branches of the model; none where it isn't in one that has others beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchSummary>,
    /// What it costs on the target in all turns of the loops around it; a loop without its kernels.
    #[serde(skip)]
    pub price: Price,
    /// The schedules that there were, and which was taken.
    #[serde(skip)]
    pub choice: Choice,
}

// Serde gives references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// What threads do of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SplitSummary {
    /// How often threads get work each time that the kernel runs.
    pub launches: u64,
    /// Hundredths of the kernel's price that threads compute at the same time.
    pub percent: u64,
}

/// Where a kernel of a branch is computed that doesn't depend on others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BranchSummary {
    /// Number of the launch by which threads get it and those beside it.
    pub launch: usize,
    /// Number of the share of that which it is in.
    pub share: usize,
}

/// A result that lies over an operand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaidOver {
    /// Name of the result's node.
    pub result: String,
    /// Name of the operand's node.
    pub operand: String,
    /// Bytes from the first one of the result's memory to the first one of the operand's.
    pub distance_bytes: i64,
    /// Which way the loops go: upwards the result begins before the operand, downwards behind it.
    pub direction: &'static str,
    /// How many bytes that way the loop program needs between them, at least.
    pub least_bytes: i64,
}

/// A value that a kernel computes, as the hook of the generated code finds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KernelResult {
    /// Name of the value's node in the optimised graph.
    pub node: String,
    /// Which result of the node it is.
    pub slot: usize,
    /// Type of the elements.
    pub dtype: &'static str,
    /// Extents.
    pub shape: Vec<usize>,
    /// Elements between neighbours along each axis, from the address on that the hook gets; none of a dense tensor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub strides: Vec<i64>,
}

/// One buffer of the arena.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedBuffer {
    /// Names of the values that live in it.
    pub values: Vec<String>,
    /// Offset in the arena in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub bytes: usize,
    /// First kernel or loop (index in execution order) that writes it.
    pub first: usize,
    /// Last kernel that touches it; what all turns of a loop need lives to the last kernel of the loop.
    pub last: usize,
}

/// Where everything lives, decided at compile time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryPlan {
    /// Bytes of the arena: what the user must reserve beyond constants, inputs and outputs.
    pub arena_bytes: usize,
    /// Alignment of the arena in bytes.
    pub alignment: usize,
    /// The buffers, by first use.
    pub buffers: Vec<PlannedBuffer>,
    /// Largest sum of live buffers: the arena can't be smaller.
    pub liveness_bound_bytes: usize,
    /// The pieces of memory that the arena is divided among, in order; none where it is one piece.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<PlannedPool>,
}

/// A piece of memory that a part of the arena is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedPool {
    /// What the interface calls it.
    pub name: String,
    /// Offset in the arena, in bytes, of what it holds.
    pub offset: usize,
    /// Bytes that it must have.
    pub bytes: usize,
    /// Whether it has what is accessed least.
    pub is_slow: bool,
}

/// A constant of the generated code, in the layout that its kernels want.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedConstant {
    /// C symbol, `tvmgen_<model>_…`.
    pub symbol: String,
    /// Name of the constant in the graph.
    pub name: String,
    /// The packed values.
    pub value: Attribute,
    /// How the code defines it.
    pub form: ConstantForm,
    /// Whether the code refers to it by its symbol.
    pub in_code: bool,
    /// Its offset in the pool of constants that the caller gives, if the code has it from there.
    pub pool_offset: Option<usize>,
}

/// What C text defines a constant by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConstantForm {
    /// Its numbers: an array of them.
    Numbers,
    /// A string of its bytes, the lowest of each number first: a union of both.
    String,
}

/// A value that the generated code keeps from one run to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptState {
    /// Where its memory is.
    pub place: StatePlace,
    /// Its name in the graph.
    pub name: String,
    /// What it is before the first run, and after a reset.
    pub initial: Attribute,
}

/// Where a state is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatePlace {
    /// A static array of this C symbol.
    Symbol(String),
    /// The caller's pool of states, from this byte on.
    Offset(usize),
}

/// A level of a machine, and what of a module is for that level alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Name of its target.
    pub target: String,
    /// One line about that.
    pub summary: String,
    /// What stands in the names of its functions, constants and files in the place of the model's name.
    pub model_name: String,
    /// How code knows it.
    pub processor: ProcessorBits,
    /// Bytes of the arena that its kernels need.
    pub arena_bytes: usize,
    /// Bytes of its constants.
    pub constants_bytes: usize,
    /// Where its constants begin in the pool of them that the caller gives.
    pub pool_offset: usize,
    /// How many kernels it has.
    pub kernels: usize,
    /// Whether something begins with its first run.
    pub ends: bool,
}

/// What functions that aren't mlc's own keep from one run to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    /// Bytes of the results that they compute once.
    pub bytes: usize,
    /// Whether something begins with the first run; the code has `tvmgen_<model>_end` then.
    pub ends: bool,
    /// Whether runs share anything, so that only one can be under way.
    pub is_shared: bool,
}

/// What the generated code exchanges with other ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RankSummary {
    /// How many ranks there are.
    pub count: usize,
    /// What is done with messages between the kernels, in order.
    pub exchanges: Vec<Exchanged>,
    /// The messages in the order of the model.
    pub messages: Vec<MessageSummary>,
    /// Which rank the model is.
    pub rank: usize,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessageSummary {
    /// Size in bytes.
    pub bytes: usize,
    /// Number of the channel among those of the two ranks in this direction: what transports use as the tag.
    pub channel: usize,
    /// Type of the elements.
    pub dtype: &'static str,
    /// The rank at the other end.
    pub peer: usize,
    /// Whether it goes to the peer.
    pub sent: bool,
    /// The tag in the model.
    pub tag: i32,
    /// Name of the output or the input.
    pub tensor: String,
}

/// Something that is done with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exchanged {
    /// `send`, `receive` (its memory is ready) or `wait`.
    pub action: &'static str,
    /// Number of the kernel before which it is done; the number of kernels at the end.
    pub before: usize,
    /// Number of the message.
    pub message: usize,
}

/// A generated text file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// File name without folder, such as `default_lib1.c`.
    pub name: String,
    /// Its text.
    pub text: String,
}

impl SourceFile {
    /// Its path in an archive.
    pub fn path(&self) -> String {
        let folder = if self.name.ends_with(".h") { "include" } else { "src" };
        format!("codegen/host/{folder}/{}", self.name)
    }
}

/// What the code generator makes of a graph.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Module {
    /// Name of the model: lower case letters, digits, `_`.
    pub model_name: String,
    /// How other code runs it.
    pub execution: Execution,
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
    /// Kernels in execution order, loops before the kernels of their bodies.
    pub kernels: Vec<KernelSummary>,
    /// The memory plan.
    pub plan: MemoryPlan,
    /// The programs that it is of.
    pub considered: Considered,
    /// Constants in the order of their first use.
    pub constants: Vec<PackedConstant>,
    /// Values that are kept from one run to the next; with any, the code has `tvmgen_<model>_reset`.
    pub states: Vec<KeptState>,
    /// What functions that aren't mlc's own keep.
    pub kept: Kept,
    /// The levels of the machine that there are kernels for, the last the fastest; none where there is one.
    pub levels: Vec<Level>,
    /// What it exchanges with other ranks, if it is one of several; the run function takes a transport then.
    pub ranks: Option<RankSummary>,
    /// What the graph executor runs, if it can.
    pub graph: Option<ExecutorGraph>,
    /// `<model>_lib1.c`: the kernels and `tvmgen_<model>___tvm_main__`. The constants' file, `<model>_lib2.c`, is written by
    /// [`crate::constants::write_constants`].
    pub sources: Vec<SourceFile>,
}

impl Module {
    /// The kernels and loops that aren't inside of a loop.
    pub fn outermost_kernels(&self) -> impl Iterator<Item = &KernelSummary> {
        let mut next = 0;
        self.kernels.iter().enumerate().filter_map(move |(number, kernel)| {
            let is_outermost = number == next;
            next += if is_outermost { 1 + kernel.inside } else { 0 };
            is_outermost.then_some(kernel)
        })
    }

    /// The kernels of a run: of several levels, those of the last.
    pub fn kernels_of_run(&self) -> &[KernelSummary] {
        let own = self.levels.last().map_or(self.kernels.len(), |level| level.kernels);
        &self.kernels[self.kernels.len().saturating_sub(own)..]
    }

    /// Bytes of all constants.
    pub fn constants_bytes(&self) -> usize {
        self.constants.iter().map(|constant| constant.value.ty().bytes()).sum()
    }

    /// The constants that the code refers to by symbol.
    pub fn linked_constants(&self) -> impl Iterator<Item = &PackedConstant> {
        self.constants.iter().filter(|constant| constant.in_code)
    }

    /// Bytes of the pool of constants that the caller gives.
    pub fn constant_pool_bytes(&self) -> usize {
        let ends =
            self.constants.iter().filter_map(|constant| Some(constant.pool_offset? + constant.value.ty().bytes()));
        ends.max().unwrap_or(0)
    }

    /// Bytes that a run needs beyond constants, inputs and outputs: the arena, or with the graph executor alone the blocks and
    /// scratch memory that it allocates.
    pub fn workspace_bytes(&self) -> usize {
        match (&self.graph, self.execution.aot) {
            (Some(graph), None) => graph.planned_bytes(),
            _ => self.plan.arena_bytes,
        }
    }

    /// Bytes of all states, in the caller's pool with what alignment leaves between them, and of what functions compute once.
    pub fn state_bytes(&self) -> usize {
        let bytes = self.states.iter().fold(0, |bytes, state| match state.place {
            StatePlace::Symbol(_) => bytes + state.initial.ty().bytes(),
            StatePlace::Offset(offset) => bytes.max(offset + state.initial.ty().bytes()),
        });
        bytes + self.kept.bytes
    }

    /// Bytes of all inputs and outputs; of an input whose rows are given one after the other, those of a row.
    pub fn io_bytes(&self) -> usize {
        let all: usize = self.inputs.iter().chain(&self.outputs).map(|port| port.ty.bytes()).sum();
        all - self.fed_rows().map_or(0, |rows| rows.saved_bytes())
    }

    /// The input whose rows are given one after the other, if there is one.
    pub fn fed_rows(&self) -> Option<FedRows<'_>> {
        let port = self.inputs.get(self.execution.feed?)?;
        let count = *port.ty.shape.get(1)?;
        Some(FedRows { port, count, row_bytes: port.ty.bytes() / count.max(1) })
    }
}
