//! ARK model files. They hold no weights: those are in a file that the user names.

use super::contents::{Contents, Memory};
use super::frontend::{Frontend, ModelFile};
use super::outcome::loaded;
use crate::arrays;
use crate::format::Format;
use crate::pipeline::failure::{Failure, in_file};
use crate::pipeline::model::{LoadOptions, Loaded};
use crate::render::Sources;
use mlc_ark::{Model, Port};
use mlc_ir::Diagnostic;
use std::path::Path;

pub(super) const FRONTEND: Frontend =
    Frontend { format: Format::Ark, load, operators: Some(mlc_ark::operator_support), contents: Some(contents) };

fn load(&ModelFile { path, bytes, options }: &ModelFile<'_>) -> Result<Loaded, Failure> {
    let sources: Sources = [(path.display().to_string(), bytes.clone())].into_iter().collect();
    let mut model = read(path, bytes, options)?;
    let mut import = options.import_options();
    if let Some(file) = &options.weights {
        import.bindings.weights.extend(arrays::read(file)?);
    }
    let warnings = in_file(path, std::mem::take(&mut model.warnings));
    loaded(path, Format::Ark, mlc_ark::import(&model, &import), warnings, sources)
}

/// Reads an ARK model without importing it.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn read_ark(path: &Path, bytes: &[u8]) -> Result<Model, Failure> {
    read(path, bytes, &LoadOptions::default())
}

/// Reads a model whose operators are ARK's, or those that the user describes.
fn read(path: &Path, bytes: &[u8], options: &LoadOptions) -> Result<Model, Failure> {
    let operators = options.described.as_ref().map(|described| &described.operators);
    let is_described = |kind: &str| operators.is_some_and(|operators| operators.knows("", kind));
    mlc_ark::read_with(bytes, &is_described).map_err(|errors: Vec<Diagnostic>| in_file(path, errors).into())
}

fn port(port: Port) -> Memory {
    let Port { name, place, data_type, shape, bytes, is_written } = port;
    Memory { name, place, r#type: format!("{data_type}{shape:?}"), bytes: bytes as u64, updated: is_written }
}

fn contents(&ModelFile { path, bytes, options }: &ModelFile<'_>) -> Result<Contents, Failure> {
    let model = read(path, bytes, options)?;
    let memory: usize = model.buffers.iter().filter(|buffer| buffer.remote.is_none()).map(|buffer| buffer.bytes).sum();
    let ports = |ports: Vec<Port>| ports.into_iter().map(port).collect();
    let mut contents = Contents {
        facts: vec![
            ("dialect", model.dialect.to_string()),
            ("rank", format!("{} of {}", model.rank, model.world_size)),
            ("buffers", format!("{} ({memory} bytes here)", model.buffers.len())),
        ],
        external: ports(mlc_ark::external_ports(&model)),
        left_over: ports(mlc_ark::output_ports(&model)),
        ..Contents::default()
    };
    for operation in model.operations().filter(|operation| !operation.is_virtual) {
        *contents.operators.entry(operation.kind.to_string()).or_default() += 1;
    }
    Ok(contents)
}
