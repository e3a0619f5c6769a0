//! Reading a model file: each format's reader, with the files beside it.

use super::failure::{Failure, in_file, named};
use super::from_relay;
use super::model::{LoadOptions, Loaded};
use crate::bundle;
use crate::external::ModelFolder;
use crate::files;
use crate::format::{self, Format};
use crate::render::Sources;
use bytes::Bytes;
use mlc_import::Imported;
use mlc_ir::{Code, Diagnostic, Location};
use mlc_mlf::{Archive, Metadata};
use std::path::Path;

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

/// A format that is recognised, but has no reader.
fn unreadable_format(path: &Path, format: Format) -> Diagnostic {
    let message = format!("the file is of the format {format}, which this version of mlc recognises but can't read");
    Diagnostic::error(Code::FormatUnknown, named(path), message)
        .with_help("convert the model to PNNX, for example with the tool 'pnnx'")
}
