//! [`Emitter`]: what the texts of a module share.

use super::constants::Constants;
use crate::execution::Execution;
use crate::loops::Intrinsics;
use crate::module::KeptState;
use crate::names::Names;

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
    /// States with their symbols.
    pub states: Vec<KeptState>,
    /// Constants that the code refers to.
    pub constants: Constants,
    /// Whether constants must be part of the code, where no pool of them is at hand.
    pub in_code_only: bool,
}
