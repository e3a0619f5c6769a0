//! LightNet models. What their files leave out is in a file that the user names.

use super::contents::{Contents, Memory};
use super::frontend::{Frontend, ModelFile};
use super::outcome::loaded;
use crate::arrays;
use crate::format::Format;
use crate::pipeline::failure::{Failure, in_file};
use crate::pipeline::model::Loaded;
use crate::render::Sources;
use bytes::Bytes;
use mlc_ir::Diagnostic;
use mlc_lightnet::{Model, NoIncludes, Port};
use std::path::Path;

pub(super) const FRONTEND: Frontend = Frontend {
    format: Format::Lightnet,
    load,
    operators: Some(mlc_lightnet::operator_support),
    contents: Some(contents),
};

fn load(&ModelFile { path, bytes, options }: &ModelFile<'_>) -> Result<Loaded, Failure> {
    let RawLightnet { model, warnings, sources } = read_lightnet(path, bytes)?;
    let mut import = options.import_options();
    if let Some(file) = &options.weights {
        import.bindings.weights.extend(arrays::read(file)?);
    }
    loaded(path, Format::Lightnet, mlc_lightnet::import(&model, &import), warnings, sources)
}

/// A LightNet model that isn't imported.
pub struct RawLightnet {
    /// The model.
    pub model: Model,
    /// What the user should know.
    pub warnings: Vec<Diagnostic>,
    /// The texts that it is made of.
    pub sources: Sources,
}

/// Reads a LightNet model without importing it.
///
/// # Errors
/// Everything that is wrong with the file.
pub fn read_lightnet(path: &Path, bytes: &Bytes) -> Result<RawLightnet, Failure> {
    let sources: Sources = [(path.display().to_string(), bytes.clone())].into_iter().collect();
    match mlc_lightnet::read(bytes, &NoIncludes) {
        Ok((model, warnings)) => Ok(RawLightnet { model, warnings: in_file(path, warnings), sources }),
        Err(errors) => Err(Failure { diagnostics: in_file(path, errors), sources }),
    }
}

fn contents(&ModelFile { path, bytes, .. }: &ModelFile<'_>) -> Result<Contents, Failure> {
    let RawLightnet { model, .. } = read_lightnet(path, bytes)?;
    let memory = |Port { name, ty }: Port| Memory {
        place: format!("tensor:{name}"),
        name,
        r#type: ty.to_string(),
        bytes: ty.bytes() as u64,
        updated: false,
    };
    let mut contents = Contents {
        facts: vec![("form", if model.is_planned { "planned" } else { "source" }.into())],
        external: mlc_lightnet::model_inputs(&model).into_iter().map(memory).collect(),
        ..Contents::default()
    };
    for operator in &model.operators {
        *contents.operators.entry(operator.kind.clone()).or_default() += 1;
    }
    Ok(contents)
}
