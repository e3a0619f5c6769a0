//! From an optimised graph to C: schedules, a loop program, a memory plan, the C printer and the Model Library Format package.
//!
//! [`generate`] turns a graph into a [`Module`]; [`package`] packs a module into an archive. Neither does any input or output.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::panic))]

pub mod kernels;
pub mod loops;
pub mod lower;
pub mod module;
pub mod package;
pub mod target;

pub use module::{KernelSummary, MemoryPlan, Module, PackedConstant, PlannedBuffer, Port, SourceFile};
pub use target::{Target, VectorSpelling};

use mlc_ir::{Diagnostic, Graph};

/// How code is generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Name of the model, made of lower case letters, digits and `_`; part of every symbol.
    pub model_name: String,
    /// The machine.
    pub target: Target,
}

/// Generates C for a verified graph.
///
/// # Errors
/// When the target can't run an operator or a data type of the graph; all of them are reported.
pub fn generate(graph: &Graph, options: &Options) -> Result<Module, Vec<Diagnostic>> {
    let _ = (graph, options);
    Err(Vec::new())
}
