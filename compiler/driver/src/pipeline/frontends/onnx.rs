//! ONNX, with its external data beside it.

use super::contents::Contents;
use super::frontend::{Frontend, ModelFile};
use super::outcome::loaded;
use crate::folder::ModelFolder;
use crate::format::Format;
use crate::pipeline::failure::{Failure, in_file};
use crate::pipeline::model::Loaded;
use crate::render::Sources;

pub(super) const FRONTEND: Frontend =
    Frontend { format: Format::Onnx, load, operators: Some(mlc_onnx::operator_support), contents: Some(contents) };

fn load(file: &ModelFile<'_>) -> Result<Loaded, Failure> {
    let model = read(file)?;
    let options = file.options.import_options_with_values()?;
    let imported = mlc_onnx::import(&model, &ModelFolder::of(file.path), &options);
    loaded(file.path, Format::Onnx, imported, Vec::new(), Sources::new())
}

fn contents(file: &ModelFile<'_>) -> Result<Contents, Failure> {
    let model = read(file)?;
    let (weights, weight_bytes) = model.weights();
    Ok(Contents { operators: model.operators(), weights, weight_bytes, ..Contents::default() })
}

/// The model without its operators understood.
fn read(file: &ModelFile<'_>) -> Result<mlc_onnx::Model, Failure> {
    mlc_onnx::read(file.bytes).map_err(|errors| in_file(file.path, errors).into())
}
