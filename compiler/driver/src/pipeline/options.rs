//! [`CompileOptions`]: how a graph is compiled.

use mlc_codegen::package::FormatVersion;
use mlc_codegen::{Execution, Limits, MemoryPool, Target};
use mlc_ir::DType;
use mlc_passes::Reference;
use std::collections::BTreeMap;

/// How a graph is compiled.
#[derive(Debug, Clone)]
pub struct CompileOptions {
    /// Name of the model: lower case letters, digits and `_`.
    pub model_name: String,
    /// The machine, and how closely code for it keeps to floating-point operations.
    pub target: Target,
    /// How other code runs the model.
    pub execution: Execution,
    /// Version of the archive's format.
    pub version: FormatVersion,
    /// How much memory the model may take.
    pub limits: Limits,
    /// Time stamp of the archive in seconds since 1970.
    pub modified: u64,
    /// Whether the report explains every changed node, and all schedules of each kernel are priced to be told; slower.
    pub explain: bool,
    /// Schedules that kernels are to take, by node.
    pub schedules: BTreeMap<String, String>,
    /// Schedules that were measured to be the fastest, by kind of kernel.
    pub measured: BTreeMap<String, String>,
    /// Bytes that the arena may have: the fastest program within them is taken. The target's objective is memory then.
    pub arena_bytes: Option<usize>,
    /// Whether kernels do without schedules that are fast for a multiple of the weights: where others exceed the limit of flash.
    pub spares_flash: bool,
    /// The pieces of memory that the caller has for intermediate results; none for one of any size.
    pub pools: Vec<MemoryPool>,
    /// Constants of at least so many bytes are copied into the working memory before kernels read them; none where there is no number.
    pub fetched_bytes: Option<usize>,
    /// Thousandths of time that the smallest program may take beyond the fastest one; any where memory is the objective and nothing is said.
    pub extra_work: Option<u64>,
    /// What defines how sums of quantised operators are rounded, if not the model's format.
    pub reference: Option<Reference>,
    /// Whether the archive carries the model as it was imported, as Relay text.
    pub source_model: bool,
    /// The half-precision type that constant weights of dense operators on singles are kept in, if any.
    pub weights_type: Option<DType>,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            model_name: "default".into(),
            target: Target::generic(),
            execution: Execution::default(),
            version: FormatVersion::default(),
            limits: Limits::default(),
            modified: 0,
            explain: false,
            schedules: BTreeMap::new(),
            measured: BTreeMap::new(),
            arena_bytes: None,
            spares_flash: false,
            pools: Vec::new(),
            fetched_bytes: None,
            extra_work: None,
            reference: None,
            source_model: true,
            weights_type: None,
        }
    }
}
