//! TensorFlow Lite.

use super::contents::Contents;
use super::frontend::{Frontend, ModelFile};
use super::outcome::loaded;
use crate::format::Format;
use crate::pipeline::failure::{Failure, in_file};
use crate::pipeline::model::Loaded;
use crate::render::Sources;

pub(super) const FRONTEND: Frontend =
    Frontend { format: Format::Tflite, load, operators: Some(mlc_tflite::operator_support), contents: Some(contents) };

fn load(file: &ModelFile<'_>) -> Result<Loaded, Failure> {
    let model = read(file)?;
    let imported = mlc_tflite::import(&model, &file.options.import_options());
    loaded(file.path, Format::Tflite, imported, Vec::new(), Sources::new())
}

fn contents(file: &ModelFile<'_>) -> Result<Contents, Failure> {
    let model = read(file)?;
    let (weights, weight_bytes) = model.weights();
    Ok(Contents { operators: model.operators(), weights, weight_bytes, ..Contents::default() })
}

/// The model without its operators understood.
fn read(file: &ModelFile<'_>) -> Result<mlc_tflite::Model, Failure> {
    mlc_tflite::read(file.bytes).map_err(|errors| in_file(file.path, errors).into())
}
