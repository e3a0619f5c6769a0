//! The way from a model file to an archive: load, optimise, generate, pack. No step keeps state outside of its values, so
//! that tests and other programs can call them side by side.

use crate::bundle::{self, Bundle};
use crate::external::ModelFolder;
use crate::files;
use crate::format::{self, Format};
use crate::from_relay;
use crate::render::Sources;
use crate::toolchain::Toolchain;
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_codegen::package::{FormatVersion, Package, PackageError, PackageModel};
use mlc_codegen::{Execution, Limits, Module, Target};
use mlc_import::{ImportOptions, Imported};
use mlc_ir::{Code, Diagnostic, Graph, Location};
use mlc_mlf::{Archive, Metadata};
use mlc_passes::{OptimizeOptions, OptimizeReport};
use std::path::{Path, PathBuf};

/// Why a step failed: all that is known, and the texts that the diagnostics point into.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// At least one error.
    pub diagnostics: Vec<Diagnostic>,
    /// Text files by name.
    pub sources: Sources,
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        vec![diagnostic].into()
    }
}

impl From<Vec<Diagnostic>> for Failure {
    fn from(diagnostics: Vec<Diagnostic>) -> Self {
        Failure { diagnostics, sources: Sources::new() }
    }
}

/// What the user says about a model file.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Its format; told from its content if not given.
    pub format: Option<Format>,
    /// The file of its weights, if it isn't where the format has it.
    pub weights: Option<PathBuf>,
    /// The file of a Relay text's parameters (`.params`).
    pub parameters: Option<PathBuf>,
    /// Extents of inputs that the model leaves open, by name or number.
    pub input_shapes: IndexMap<String, Vec<usize>>,
    /// Extents of the model's named dimensions.
    pub dimensions: IndexMap<String, usize>,
    /// Take the Relay text of an archive instead of its code, which the toolchain builds to check the text.
    pub from_relay: Option<Toolchain>,
    /// Which model of an archive of several.
    pub model_name: String,
}

impl LoadOptions {
    pub(crate) fn import_options(&self) -> ImportOptions {
        ImportOptions {
            input_shapes: self.input_shapes.clone(),
            dimensions: self.dimensions.clone(),
            ..ImportOptions::default()
        }
    }
}

/// A model as its frontend read it.
#[derive(Debug)]
pub struct Loaded {
    /// The graph, not optimised.
    pub graph: Graph,
    /// Format of the file.
    pub format: Format,
    /// What the user should know.
    pub warnings: Vec<Diagnostic>,
    /// Text files that warnings point into.
    pub sources: Sources,
}

/// A PNNX model as its file has it, before its operators are understood.
#[derive(Debug)]
pub struct RawPnnx {
    /// The model.
    pub model: mlc_pnnx::Model,
    /// What the user should know.
    pub warnings: Vec<Diagnostic>,
    /// The `.param` text by its name.
    pub sources: Sources,
}

/// The format of a file whose content is given.
///
/// # Errors
/// `MLC0003` when it is none that mlc knows.
pub fn detect(path: &Path, bytes: &[u8], format: Option<Format>) -> Result<Format, Diagnostic> {
    format.or_else(|| format::detect(bytes)).ok_or_else(|| {
        let message = "the file is of no format that mlc knows";
        let mut diagnostic = Diagnostic::error(Code::FormatUnknown, named(path), message)
            .with_help("name the format with --format if you know better");
        if path.extension().is_some_and(|extension| extension == "bin") {
            diagnostic = diagnostic.with_help("give the .param file; mlc finds the .bin file beside it");
        }
        diagnostic
    })
}

/// Reads a model file and makes a graph of it.
///
/// # Errors
/// Everything that stands in the way: files, their damage, unsupported operators, unknown shapes.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Loaded, Failure> {
    let bytes = files::read(path)?;
    let format = detect(path, &bytes, options.format)?;
    match format {
        format if format != Format::Mlf && options.from_relay.is_some() => {
            let message = format!("--from relay is for archives, the file is of the format {format}");
            Err(Diagnostic::error(Code::OptionMismatch, named(path), message).into())
        }
        Format::Pnnx => load_pnnx(path, &bytes, options),
        Format::Onnx => load_onnx(path, &bytes, options),
        Format::Ir => load_ir(path, &bytes),
        Format::Relay => load_relay(path, &bytes, options),
        Format::Mlf => match &options.from_relay {
            Some(toolchain) => from_relay::load(path, &bytes, options, toolchain),
            None => load_mlf(path, &bytes, options),
        },
        other => Err(unreadable_format(path, other).into()),
    }
}

fn load_pnnx(path: &Path, bytes: &Bytes, options: &LoadOptions) -> Result<Loaded, Failure> {
    let RawPnnx { model, warnings, sources } = read_pnnx(path, bytes, options.weights.as_deref())?;
    let imported = mlc_pnnx::import(&model, &options.import_options());
    loaded(path, Format::Pnnx, imported, warnings, sources)
}

/// Reads the text of Relay and the parameters that the options name.
fn load_relay(path: &Path, bytes: &Bytes, options: &LoadOptions) -> Result<Loaded, Failure> {
    let name = path.display().to_string();
    let sources: Sources = [(name.clone(), bytes.clone())].into_iter().collect();
    let fail = |diagnostic: Diagnostic| Failure { diagnostics: vec![diagnostic], sources: sources.clone() };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let location = Location::byte_offset(error.valid_up_to() as u64).in_file(name.clone());
        fail(Diagnostic::error(Code::Syntax, location, "the text isn't UTF-8"))
    })?;
    let parameters = match &options.parameters {
        None => mlc_relay::Parameters::new(),
        Some(path) => mlc_relay::read_parameters(&files::read(path)?)
            .map_err(|error| fail(error.in_file(&path.display().to_string())))?,
    };
    let imported = mlc_relay::read(text, &parameters, &options.import_options());
    loaded(path, Format::Relay, imported, Vec::new(), sources)
}

fn load_onnx(path: &Path, bytes: &Bytes, options: &LoadOptions) -> Result<Loaded, Failure> {
    let model = read_onnx(path, bytes)?;
    let imported = mlc_onnx::import(&model, &ModelFolder::of(path), &options.import_options());
    loaded(path, Format::Onnx, imported, Vec::new(), Sources::new())
}

/// Makes a graph of an archive's graph and C functions.
fn load_mlf(path: &Path, bytes: &Bytes, options: &LoadOptions) -> Result<Loaded, Failure> {
    let read = || {
        let archive = Archive::read(bytes)?;
        let metadata = Metadata::read(&archive)?;
        let model = bundle::select(&metadata, &options.model_name)?.clone();
        Ok::<_, Diagnostic>((archive, metadata, model))
    };
    let (archive, metadata, model) = read().map_err(|error| in_file(path, vec![error]))?;
    let imported = mlc_mlf::import(&archive, &metadata, &model, &options.import_options());
    loaded(path, Format::Mlf, imported, Vec::new(), Sources::new())
}

/// Reads an ONNX model without understanding its operators.
///
/// # Errors
/// When the file is damaged.
pub fn read_onnx(path: &Path, bytes: &Bytes) -> Result<mlc_onnx::Model, Failure> {
    mlc_onnx::read(bytes).map_err(|errors| in_file(path, errors).into())
}

pub(crate) fn in_file(path: &Path, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let name = path.display().to_string();
    diagnostics.into_iter().map(|diagnostic| diagnostic.in_file(&name)).collect()
}

/// Takes what a frontend made of a model, with what reading it has found.
fn loaded(
    path: &Path,
    format: Format,
    imported: Result<Imported, Vec<Diagnostic>>,
    mut warnings: Vec<Diagnostic>,
    sources: Sources,
) -> Result<Loaded, Failure> {
    match imported {
        Ok(imported) => {
            warnings.extend(in_file(path, imported.warnings));
            mlc_ir::verify(&imported.graph)?;
            Ok(Loaded { graph: imported.graph, format, warnings, sources })
        }
        Err(errors) => {
            warnings.extend(in_file(path, errors));
            Err(Failure { diagnostics: warnings, sources })
        }
    }
}

/// Reads the text of a graph. Large constants live outside of the text, so it can hold small ones only.
fn load_ir(path: &Path, bytes: &Bytes) -> Result<Loaded, Failure> {
    let name = path.display().to_string();
    let sources: Sources = [(name.clone(), bytes.clone())].into_iter().collect();
    let fail = |diagnostics: Vec<Diagnostic>| {
        let diagnostics = diagnostics.into_iter().map(|diagnostic| diagnostic.in_file(&name)).collect();
        Failure { diagnostics, sources: sources.clone() }
    };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let location = Location::byte_offset(error.valid_up_to() as u64);
        fail(vec![Diagnostic::error(Code::TextSyntax, location, "the text isn't UTF-8")])
    })?;
    let graph = mlc_ir::text::parse(text, &()).map_err(fail)?;
    mlc_ir::verify(&graph).map_err(fail)?;
    Ok(Loaded { graph, format: Format::Ir, warnings: Vec::new(), sources })
}

/// Reads a PNNX model without understanding its operators. The `.bin` file is looked for beside the `.param` file.
///
/// # Errors
/// Everything that is wrong with the two files.
pub fn read_pnnx(path: &Path, bytes: &Bytes, weights: Option<&Path>) -> Result<RawPnnx, Failure> {
    let name = path.display().to_string();
    let sources: Sources = [(name.clone(), bytes.clone())].into_iter().collect();
    let beside = path.with_extension("bin");
    let bin_path = match weights {
        Some(path) => Some(path),
        None => beside.is_file().then_some(beside.as_path()),
    };
    let bin = bin_path.map(files::read).transpose()?;
    let options = mlc_pnnx::ReadOptions {
        param_file: Some(name),
        bin_file: Some(bin_path.unwrap_or(&beside).display().to_string()),
        ..mlc_pnnx::ReadOptions::default()
    };
    match mlc_pnnx::read_with(bytes, bin, &options) {
        Ok((model, warnings)) => Ok(RawPnnx { model, warnings, sources }),
        Err(diagnostics) => Err(Failure { diagnostics, sources }),
    }
}

fn named(path: &Path) -> Location {
    Location::default().in_file(path.display().to_string())
}

/// A format that is recognised, but has no reader.
pub(crate) fn unreadable_format(path: &Path, format: Format) -> Diagnostic {
    let message = format!("the file is of the format {format}, which this version of mlc recognises but can't read");
    Diagnostic::error(Code::FormatUnknown, named(path), message)
        .with_help("convert the model to PNNX, for example with the tool 'pnnx'")
}

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
    /// Whether the report explains every changed node; slower.
    pub explain: bool,
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
    options: CompileOptions,
    graph_text: String,
    relay: RelayText,
}

/// Writes a text piece by piece.
type WriteText = dyn Fn(&mut dyn std::io::Write) -> std::io::Result<()> + Send + Sync;

/// Writes the model as it was imported.
struct RelayText(Box<WriteText>);

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
    let exact = options.target.is_strict();
    let imported = graph.clone();
    let relay = RelayText(Box::new(move |out: &mut dyn std::io::Write| mlc_relay::write(&imported, out)));
    let optimize_options = OptimizeOptions { explain: options.explain, exact, ..OptimizeOptions::default() };
    let (graph, report) =
        mlc_passes::optimize(graph.clone(), &optimize_options, observer).map_err(|error| vec![error])?;
    let CompileOptions { model_name, target, execution, .. } = options.clone();
    let generator_options = mlc_codegen::Options { model_name, target, execution };
    let module = mlc_codegen::generate(&graph, &generator_options)?;
    options.limits.check(&[&module])?;
    let graph_text = mlc_ir::text::print(&graph);
    Ok(Compiled { module, graph, report, options: options.clone(), graph_text, relay })
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
        relay: Some(&*compiled.relay.0),
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
