//! PNNX: a `.param` text with its `.bin` archive beside it.

use super::contents::Contents;
use super::frontend::{Frontend, ModelFile};
use super::outcome::loaded;
use crate::files;
use crate::format::Format;
use crate::pipeline::failure::Failure;
use crate::pipeline::model::Loaded;
use crate::render::Sources;
use bytes::Bytes;
use mlc_ir::Diagnostic;
use std::path::Path;

pub(super) const FRONTEND: Frontend =
    Frontend { format: Format::Pnnx, load, operators: Some(mlc_pnnx::operator_support), contents: Some(contents) };

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

fn load(&ModelFile { path, bytes, options }: &ModelFile<'_>) -> Result<Loaded, Failure> {
    let RawPnnx { model, warnings, sources } = read_pnnx(path, bytes, options.weights.as_deref())?;
    let imported = mlc_pnnx::import(&model, &options.import_options());
    loaded(path, Format::Pnnx, imported, warnings, sources)
}

fn contents(&ModelFile { path, bytes, options }: &ModelFile<'_>) -> Result<Contents, Failure> {
    let RawPnnx { model, .. } = read_pnnx(path, bytes, options.weights.as_deref())?;
    let mut contents = Contents::default();
    for operator in &model.operators {
        *contents.operators.entry(operator.kind.clone()).or_default() += 1;
        for attribute in operator.attributes.values() {
            contents.weights += 1;
            contents.weight_bytes += attribute.byte_size().unwrap_or_default();
        }
    }
    Ok(contents)
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
