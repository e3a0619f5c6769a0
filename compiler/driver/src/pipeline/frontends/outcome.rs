//! What a frontend made of a model, as the rest of the driver takes it.

use crate::format::Format;
use crate::pipeline::failure::{Failure, in_file};
use crate::pipeline::model::Loaded;
use crate::render::Sources;
use mlc_import::{Imported, Update};
use mlc_ir::{Diagnostic, stateful};
use std::path::Path;

/// Takes what a frontend made of a model, with what reading it has found.
pub fn loaded(
    path: &Path,
    format: Format,
    imported: Result<Imported, Vec<Diagnostic>>,
    mut warnings: Vec<Diagnostic>,
    sources: Sources,
) -> Result<Loaded, Failure> {
    match imported {
        Ok(imported) => {
            warnings.extend(in_file(path, imported.warnings));
            let Imported { mut graph, aliases, updates, .. } = imported;
            for Update { input, output, initial } in updates {
                stateful::tie_from(&mut graph, &input, &output, Some(initial))?;
            }
            mlc_ir::verify(&graph)?;
            Ok(Loaded { graph, format, warnings, sources, aliases })
        }
        Err(errors) => {
            warnings.extend(in_file(path, errors));
            Err(Failure { diagnostics: warnings, sources })
        }
    }
}
