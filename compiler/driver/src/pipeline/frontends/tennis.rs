//! TenniS modules.

use super::contents::Contents;
use super::frontend::{Frontend, ModelFile};
use super::outcome::loaded;
use crate::format::Format;
use crate::pipeline::failure::{Failure, in_file, named};
use crate::pipeline::model::Loaded;
use crate::render::Sources;
use bytes::Bytes;
use mlc_ir::{Code, Diagnostic};
use std::path::Path;

pub(super) const FRONTEND: Frontend =
    Frontend { format: Format::Tennis, load, operators: Some(mlc_tennis::operator_support), contents: Some(contents) };

fn load(file: &ModelFile<'_>) -> Result<Loaded, Failure> {
    let (model, warnings) = read_tennis(file.path, file.bytes)?;
    let options = file.options.import_options_with_values()?;
    let imported = mlc_tennis::import(&model, &options);
    loaded(file.path, Format::Tennis, imported, warnings, Sources::new())
}

fn contents(file: &ModelFile<'_>) -> Result<Contents, Failure> {
    let (model, _) = read_tennis(file.path, file.bytes)?;
    let (weights, weight_bytes) = model.weights();
    Ok(Contents { operators: model.operators(), weights, weight_bytes, ..Contents::default() })
}

/// Reads a TenniS module without understanding its operators.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn read_tennis(path: &Path, bytes: &Bytes) -> Result<(mlc_tennis::Model, Vec<Diagnostic>), Failure> {
    // Nothing in the bytes of an encrypted container tells what it is.
    if path.extension().is_some_and(|extension| extension == "csta") {
        let message =
            "the file is an encrypted container of keys and values (.csta), which holds modules, and isn't one";
        return Err(Diagnostic::error(Code::RelatedFormat, named(path), message)
            .with_help("take the module out of it with the library that it belongs to, and give mlc that")
            .into());
    }
    match mlc_tennis::read(bytes) {
        Ok((model, warnings)) => Ok((model, in_file(path, warnings))),
        Err(errors) => Err(in_file(path, errors).into()),
    }
}
