//! LightNet models. What their files leave out is in a file that the user names.

use super::contents::{Contents, Memory};
use super::frontend::{Frontend, ModelFile};
use super::outcome::loaded;
use crate::arrays;
use crate::folder::ModelFolder;
use crate::format::Format;
use crate::pipeline::failure::{Failure, in_file};
use crate::pipeline::model::Loaded;
use crate::render::Sources;
use bytes::Bytes;
use mlc_ir::Diagnostic;
use mlc_lightnet::{Included, Includes, Model, Port};
use std::cell::RefCell;
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
    let own: Sources = [(path.display().to_string(), bytes.clone())].into_iter().collect();
    let files = Files { folder: ModelFolder::of(path), sources: RefCell::new(own) };
    let read = mlc_lightnet::read(bytes, &files);
    let sources = files.sources.into_inner();
    match read {
        Ok((model, warnings)) => Ok(RawLightnet { model, warnings: in_file(path, warnings), sources }),
        Err(errors) => Err(Failure { diagnostics: in_file(path, errors), sources }),
    }
}

/// The files beside a text, which it may include.
struct Files {
    folder: ModelFolder,
    /// Those that it does include.
    sources: RefCell<Sources>,
}

impl Includes for Files {
    fn include(&self, name: &str, from: Option<&str>) -> Result<Included, String> {
        let folder = from.and_then(|from| Path::new(from).parent()?.strip_prefix(self.folder.path()).ok());
        let location = folder.unwrap_or(Path::new("")).join(name);
        let bytes = self.folder.read(&location.to_string_lossy()).map_err(|finding| finding.message)?;
        let text = std::str::from_utf8(&bytes).map_err(|_| "it isn't UTF-8")?.to_owned();
        let name = self.folder.path().join(location).display().to_string();
        self.sources.borrow_mut().insert(name.clone(), bytes);
        Ok(Included { name, text })
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
