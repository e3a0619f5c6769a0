//! From a graph to the archive of its code.

use crate::bundle::Bundle;
use crate::files;
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_codegen::package::{FormatVersion, Package, PackageError, PackageModel};
use mlc_codegen::{Execution, Limits, Module, ScheduleOptions, Target, TargetPrices};
use mlc_ir::{Attribute, Code, DType, Diagnostic, Graph, Location, Objective, OperatorError};
use mlc_passes::{NarrowedWeights, OptimizeOptions, OptimizeReport, Reference};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

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
            reference: None,
            source_model: true,
            weights_type: None,
        }
    }
}

/// A compiled model.
#[derive(Debug)]
pub struct Compiled {
    /// The generated code.
    pub module: Module,
    /// The optimised graph.
    pub graph: Graph,
    /// What the optimiser did.
    pub report: OptimizeReport,
    /// What became of weights that were to be in half precision.
    pub narrowed: NarrowedWeights,
    options: CompileOptions,
    graph_text: String,
    constants: IndexMap<String, Attribute>,
    /// The model as it was imported, for its Relay text.
    #[cfg(feature = "relay")]
    relay: RelayText,
}

/// Writes a text piece by piece.
#[cfg(feature = "relay")]
type WriteText = dyn Fn(&mut dyn std::io::Write) -> std::io::Result<()> + Send + Sync;

/// Writes the model as it was imported.
#[cfg(feature = "relay")]
struct RelayText(Box<WriteText>);

#[cfg(feature = "relay")]
impl std::fmt::Debug for RelayText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RelayText")
    }
}

/// Optimises a graph and generates C for it. `observer` sees the graph after each stage of the optimiser, under its name.
///
/// # Errors
/// When the optimiser breaks the graph, which is a defect, the target can't run it, or it exceeds a limit.
pub fn compile(
    graph: &Graph,
    options: &CompileOptions,
    observer: &mut dyn FnMut(&str, &Graph),
) -> Result<Compiled, Vec<Diagnostic>> {
    #[cfg(feature = "relay")]
    let relay = {
        let imported = graph.clone();
        RelayText(Box::new(move |out: &mut dyn std::io::Write| mlc_relay::write(&imported, out)))
    };
    let compiled = match options.target.objective {
        Objective::Ram => smallest_arena(graph, options, observer)?,
        objective => compiled_for(graph, options, objective, observer)?,
    };
    let Optimized { graph, report, narrowed, module } = compiled;
    options.limits.check(&[&module])?;
    let (graph_text, constants) = mlc_ir::text::print_with_constants(&graph);
    Ok(Compiled {
        module,
        graph,
        report,
        narrowed,
        options: options.clone(),
        graph_text,
        constants,
        #[cfg(feature = "relay")]
        relay,
    })
}

/// The graph with the rounding of another reference, if one is named.
fn referenced(graph: Graph, reference: Option<Reference>) -> Result<Graph, Diagnostic> {
    let Some(reference) = reference else { return Ok(graph) };
    mlc_passes::reference::with_reference(&graph, reference).map_err(|error| {
        let message = format!("another rounding gives a graph in which {error}");
        Diagnostic::error(Code::InvalidGraph, Location::default(), message)
    })
}

fn defect(error: &OperatorError) -> Diagnostic {
    Diagnostic::error(Code::InvalidGraph, Location::default(), error.to_string())
}

/// A graph that was optimised, what was done to it, and its C.
struct Optimized {
    graph: Graph,
    report: OptimizeReport,
    narrowed: NarrowedWeights,
    module: Module,
}

/// Optimises a graph by what things are worth to an objective, and generates C of it.
fn compiled_for(
    graph: &Graph,
    options: &CompileOptions,
    objective: Objective,
    observer: &mut dyn FnMut(&str, &Graph),
) -> Result<Optimized, Vec<Diagnostic>> {
    let optimize_options = OptimizeOptions {
        prices: Rc::new(TargetPrices::new(&options.target, graph)),
        weights: objective.of_graphs(),
        explain: options.explain,
        exact: options.target.is_strict(),
        ..OptimizeOptions::default()
    };
    let (graph, report) =
        mlc_passes::optimize(graph.clone(), &optimize_options, observer).map_err(|error| vec![error])?;
    let graph = referenced(graph, options.reference).map_err(|error| vec![error])?;
    let (graph, narrowed) = match options.weights_type {
        Some(half) => {
            let narrowed = mlc_passes::weights::narrow(graph, half).map_err(|error| vec![defect(&error)])?;
            mlc_ir::verify(&narrowed.0)?;
            narrowed
        }
        None => (graph, NarrowedWeights::default()),
    };
    let CompileOptions { model_name, target, execution, schedules: forced, explain: tell_all, .. } = options.clone();
    let schedules = ScheduleOptions { forced, tell_all };
    let generator_options = mlc_codegen::Options { model_name, target, execution, schedules };
    let module = mlc_codegen::generate(&graph, &generator_options)?;
    Ok(Optimized { graph, report, narrowed, module })
}

/// What of the graphs that any objective takes has the smallest arena: how buffers fit together isn't known before they are
/// planned. Where several do, that of the objective which runs fastest.
fn smallest_arena(
    graph: &Graph,
    options: &CompileOptions,
    observer: &mut dyn FnMut(&str, &Graph),
) -> Result<Optimized, Vec<Diagnostic>> {
    let mut best = (usize::MAX, Objective::Speed);
    for objective in [Objective::Speed, Objective::Balanced, Objective::Size] {
        let module = compiled_for(graph, options, objective, &mut |_, _| {})?.module;
        if module.plan.arena_bytes < best.0 {
            best = (module.plan.arena_bytes, objective);
        }
    }
    compiled_for(graph, options, best.1, observer)
}

impl Compiled {
    fn package(&self) -> Package<'_> {
        package(std::slice::from_ref(self), &self.options)
    }

    /// The archive's files by path.
    ///
    /// # Errors
    /// `MLC0002` when the version of the format can't hold the model.
    pub fn files(&self) -> Result<IndexMap<String, Vec<u8>>, Diagnostic> {
        files_of(std::slice::from_ref(self))
    }

    /// The archive.
    ///
    /// # Errors
    /// `MLC0002` when a name or a file is too large for a tar archive.
    pub fn archive(&self) -> Result<Bytes, Diagnostic> {
        self.package().archive().map(Bytes::from).map_err(unpackable)
    }

    /// The archive, read back: what a toolchain builds.
    ///
    /// # Errors
    /// As [`Compiled::archive`].
    pub fn bundle(&self) -> Result<Bundle, Diagnostic> {
        Bundle::parse(&self.archive()?)
    }

    /// The machine that it was compiled for.
    pub fn target(&self) -> &Target {
        &self.options.target
    }

    /// Time stamp of its archive in seconds since 1970.
    pub fn modified(&self) -> u64 {
        self.options.modified
    }

    /// The large constants that the optimised graph's text refers to, by name.
    pub fn graph_constants(&self) -> &IndexMap<String, Attribute> {
        &self.constants
    }

    /// The optimised graph as text.
    pub fn graph_text(&self) -> &str {
        &self.graph_text
    }
}

/// The package of models that were compiled with the same options but for their names.
fn package<'a>(models: &'a [Compiled], options: &'a CompileOptions) -> Package<'a> {
    let model = |compiled: &'a Compiled| PackageModel {
        module: &compiled.module,
        graph_text: &compiled.graph_text,
        #[cfg(feature = "relay")]
        relay: options.source_model.then_some(&*compiled.relay.0),
        #[cfg(not(feature = "relay"))]
        relay: None,
    };
    Package {
        models: models.iter().map(model).collect(),
        target: &options.target,
        modified: options.modified,
        version: options.version,
    }
}

fn unpackable(error: PackageError) -> Diagnostic {
    let code = match error {
        PackageError::Models(..) | PackageError::NoObjectFormat(_) => Code::OptionMismatch,
        _ => Code::FileUnwritable,
    };
    Diagnostic::error(code, Location::default(), error.to_string())
}

/// The files of an archive of models that were compiled with the same options but for their names, by path.
///
/// # Errors
/// `MLC0002` when there are none, or the version of the format can't hold them together.
pub fn files_of(models: &[Compiled]) -> Result<IndexMap<String, Vec<u8>>, Diagnostic> {
    let options = models.first().map(|first| first.options.clone()).unwrap_or_default();
    package(models, &options).files().map_err(unpackable)
}

/// Writes files as an archive, which appears whole or not at all.
///
/// # Errors
/// `MLC0002` when the disk refuses, or a name or a file is too large for a tar archive.
pub fn write_files(archive: IndexMap<String, Vec<u8>>, modified: u64, path: &Path) -> Result<(), Diagnostic> {
    files::write_atomically_with(path, |file| {
        Package::write_files(archive, modified, file).map_err(std::io::Error::other)
    })
}

/// Writes an archive of models that were compiled with the same options but for their names to a file, which appears whole or
/// not at all. The archive isn't held in memory: it is several times as large as the weights.
///
/// # Errors
/// `MLC0002` when the disk refuses, a name or a file is too large for a tar archive, or as [`files_of`].
pub fn write_archive(models: &[Compiled], path: &Path) -> Result<(), Diagnostic> {
    let options = models.first().map(|first| first.options.clone()).unwrap_or_default();
    let package = package(models, &options);
    package.check().map_err(unpackable)?;
    files::write_atomically_with(path, |file| package.write(file).map_err(std::io::Error::other))
}

/// Longest name of a model: it becomes a part of every symbol and of file names.
const MODEL_NAME_LENGTH: usize = 48;

/// A name as a model's name: lower case letters, digits and `_`.
pub fn model_name(name: &str) -> String {
    let safe: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .take(MODEL_NAME_LENGTH)
        .collect();
    if safe.is_empty() { "default".into() } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_names_are_made_safe() {
        for (name, safe) in [("default", "default"), ("KWS-Net.v2", "kws_net_v2"), ("", "default"), ("é", "_")] {
            assert_eq!(model_name(name), safe);
        }
        assert_eq!(model_name(&"x".repeat(100)).len(), MODEL_NAME_LENGTH);
    }
}
