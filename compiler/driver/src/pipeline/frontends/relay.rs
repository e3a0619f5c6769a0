//! Relay text, with its weights in it or in a `.params` file.

use super::frontend::{Frontend, ModelFile};
use super::outcome::loaded;
use crate::files;
use crate::format::Format;
use crate::pipeline::failure::Failure;
use crate::pipeline::model::Loaded;
use crate::render::Sources;
use mlc_ir::{Code, Diagnostic, Location};

pub(super) const FRONTEND: Frontend =
    Frontend { format: Format::Relay, load, operators: Some(mlc_relay::operator_support), contents: None };

/// Reads the text of Relay and the parameters that the options name.
fn load(&ModelFile { path, bytes, options }: &ModelFile<'_>) -> Result<Loaded, Failure> {
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
