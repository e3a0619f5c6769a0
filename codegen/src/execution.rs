//! [`Execution`]: how other code runs the model.

use mlc_ir::Diagnostic;
use serde::Serialize;

/// How a program calls a model that was compiled ahead of time (Model Library Format, section 8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// `tvmgen_<model>_run` takes a structure of input pointers and one of output pointers; the header declares them.
    #[default]
    C,
    /// `tvmgen_<model>_run` takes packed arguments, and so does the main function behind it. A registry and metadata let the
    /// runtime's AOT executor find everything by name.
    Packed,
    /// `tvmgen_<model>_run` takes packed arguments; the main function behind it takes plain pointers, and nothing is registered.
    PackedEntry,
}

/// Whose memory the model works in, or keeps its states in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pools {
    /// A static array of the generated code.
    #[default]
    Internal,
    /// The caller's, by a pointer in `struct tvmgen_<model>_workspace_pools`.
    External,
}

// Serde gives references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Pools {
    // Serde gives references.
    #[allow(clippy::trivially_copy_pass_by_ref)]
    fn are_internal(&self) -> bool {
        *self == Pools::Internal
    }
}

/// A piece of memory that the caller has for intermediate results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryPool {
    /// What the interface calls it: an identifier of lower case letters, digits and `_`.
    pub name: String,
    /// Its size.
    pub bytes: usize,
    /// Whether it gets what others have no room for, and what is accessed least.
    pub is_slow: bool,
}

/// How constants reach the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightsAs {
    /// C arrays.
    #[default]
    C,
    /// A binary file that the assembler includes.
    Incbin,
    /// An object file of the target's format.
    Object,
    /// A binary file that the caller loads, and passes by a pointer in `struct tvmgen_<model>_workspace_pools`.
    Binary,
}

/// How other code runs the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Execution {
    /// The interface of the function that runs the whole model, compiled ahead of time; none without that executor.
    pub aot: Option<Interface>,
    /// Whether the graph executor can run the model, from a description in JSON and functions by name.
    pub graph: bool,
    /// Where the memory of intermediate results comes from, ahead of time; the graph executor allocates its own.
    pub pools: Pools,
    /// Where the memory of states comes from. With the caller's, each of several streams has states of its own.
    #[serde(skip_serializing_if = "Pools::are_internal")]
    pub states: Pools,
    /// Number of the input whose rows the caller gives one after the other, so that the whole of it is never in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feed: Option<usize>,
    /// Whether the members of the C interface's structures point at elements of their types, such as `const float*`, and not at `void`.
    #[serde(skip_serializing_if = "is_false")]
    pub typed_pointers: bool,
    /// How constants reach the code; the graph executor alone takes them from the parameters' file.
    pub weights: WeightsAs,
    /// How many threads compute a kernel together; 1 takes nothing of a runtime.
    #[serde(skip_serializing_if = "is_one")]
    pub threads: usize,
}

// Serde gives references.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(number: &usize) -> bool {
    *number == 1
}

impl Default for Execution {
    fn default() -> Self {
        Execution {
            aot: Some(Interface::C),
            graph: false,
            pools: Pools::Internal,
            states: Pools::Internal,
            feed: None,
            typed_pointers: false,
            weights: WeightsAs::C,
            threads: 1,
        }
    }
}

impl Execution {
    /// Whether the code registers functions by name.
    pub fn has_registry(self) -> bool {
        self.graph || self.aot == Some(Interface::Packed)
    }

    /// Names of the executors as `metadata.json` has them.
    pub fn executors(self) -> Vec<&'static str> {
        let aot = self.aot.map(|_| "aot");
        aot.into_iter().chain(self.graph.then_some("graph")).collect()
    }

    /// C symbol of the function that runs all kernels on plain pointers.
    pub fn main_symbol(self, model: &str) -> String {
        match self.aot {
            // The name belongs to the function of the packed convention then.
            Some(Interface::Packed) => format!("tvmgen_{model}_all_kernels"),
            _ => format!("tvmgen_{model}___tvm_main__"),
        }
    }
}

/// Options that don't go together (`MLC0004`), and what to give instead.
pub(crate) fn refused(message: impl Into<String>, help: &str) -> Result<(), Diagnostic> {
    Err(Diagnostic::option_mismatch(message).with_help(help))
}
