//! [`Emitter`]: what the texts of a module share, and [`Scope`]: where calls are written.

use super::constants::Constants;
use crate::execution::Execution;
use crate::graph::Call;
use crate::loops::Intrinsics;
use crate::lower::Program;
use crate::lower::homes::BufferId;
use crate::module::KeptState;
use crate::names::Names;
use crate::threads::Shared;
use std::collections::BTreeMap;

/// Writes the texts of a module, and holds what they share.
pub(super) struct Emitter {
    /// Symbols of the file.
    pub names: Names,
    /// Helpers that the code needs.
    pub intrinsics: Intrinsics,
    /// Who runs the kernels.
    pub execution: Execution,
    /// Of buffers, in bytes.
    pub alignment: usize,
    /// Whether the model is one of several ranks.
    pub is_rank: bool,
    /// States with their symbols.
    pub states: Vec<KeptState>,
    /// For buffers that loops move: the C expression of their address, and the variable in it.
    pub variables: BTreeMap<BufferId, (String, String)>,
    /// Constants that the code refers to.
    pub constants: Constants,
    /// Whether constants must be part of the code, where no pool of them is at hand.
    pub in_code_only: bool,
    /// See [`Target::keeps_kernels_apart`](crate::Target::keeps_kernels_apart).
    pub keeps_kernels_apart: bool,
    /// What threads compute.
    pub shared: Shared,
}

/// Where parts are called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    /// The program that they are of.
    pub program: &'a Program,
    /// Name of the model.
    pub model: &'a str,
    /// The function of the graph executor that calls them; none in the main function.
    pub call: Option<&'a Call>,
}
