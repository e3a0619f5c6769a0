//! From an optimised graph to C: schedules, a loop program, a memory plan, the C printer and the Model Library Format package.
//!
//! [`generate`] turns a graph into a [`Module`]; [`package`] packs a module into an archive. Neither does any input or output.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod choice;
pub mod constants;
pub mod emit;
pub mod execution;
pub mod graph;
mod hexadecimal;
pub mod kernels;
pub mod levels;
pub mod limits;
pub mod loops;
pub mod lower;
pub mod module;
pub mod names;
pub mod package;
pub mod price;
pub mod quantized;
mod source;
mod string_literals;
pub mod target;
pub mod target_prices;
pub mod threads;

pub use choice::{Choice, Offer, Reason};
pub use emit::{explore, generate};
pub use execution::{Execution, Interface, MemoryPool, Pools, WeightsAs};
pub use graph::ExecutorGraph;
pub use limits::{Contributor, Limits, ram_bytes, ram_contributors};
pub use loops::spelling::c_type;
pub use lower::{Point, front};
pub use module::{
    BranchSummary, ConstantForm, Exchanged, FedRows, KeptState, KernelResult, KernelSummary, LaidOver, Level,
    MemoryPlan, MessageSummary, Module, PackedConstant, PlannedBuffer, PlannedPool, Port, RankSummary, SourceFile,
    SplitSummary, StatePlace,
};
pub use source::function;
pub use target::{ByteDots, FloatingPoint, Memories, ObjectFormat, System, Target, Tools, VectorSpelling};
pub use target_prices::TargetPrices;

use std::collections::BTreeMap;

/// How code is generated.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Name of the model, made of lower case letters, digits and `_`; part of every symbol.
    pub model_name: String,
    /// The machine.
    pub target: Target,
    /// How other code runs the model.
    pub execution: Execution,
    /// What schedules kernels take, and what is told of them.
    pub schedules: ScheduleOptions,
}

/// What the caller wants of schedules, and the memory that there is for what they need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduleOptions {
    /// Schedules that kernels are to take whatever they cost, by node: the kind, or the kind with settings
    /// ([`kernels::Schedule::is_named`]).
    pub forced: BTreeMap<String, String>,
    /// Schedules that were measured to be the fastest, by kind of kernel ([`Choice::key`]); those that a kernel hasn't are left aside.
    pub measured: BTreeMap<String, String>,
    /// Whether all schedules of each kernel are told with their prices; otherwise only those that are looked at to choose.
    pub tell_all: bool,
    /// Bytes that the arena may have: the fastest program that has no more is taken, or the smallest one. The target's objective is memory.
    pub arena_bytes: Option<usize>,
    /// Thousandths of time beyond the fastest program's that the smallest one may take. The target's objective is memory.
    pub extra_work: Option<u64>,
    /// The pieces of memory that the arena is divided among; one of any size where none is named.
    pub pools: Vec<MemoryPool>,
    /// Constants of at least so many bytes are copied into the arena before kernels read them; none where there is no number.
    pub fetched_bytes: Option<usize>,
    /// Whether kernels do without schedules that are fast for a multiple of the weights, unless they are to take one whatever it costs.
    pub spares_flash: bool,
}
