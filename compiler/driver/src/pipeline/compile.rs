//! From a graph to the archive of its code.

use super::levels::all_levels;
use super::optimized::Optimized;
use super::options::CompileOptions;
use crate::bundle::Bundle;
use crate::files;
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_codegen::package::{Package, PackageError, PackageModel};
use mlc_codegen::{Module, Target};
use mlc_ir::{Attribute, Code, Diagnostic, Graph, Location};
use mlc_passes::{NarrowedWeights, OptimizeReport};
use std::path::Path;

/// A compiled model.
#[derive(Debug)]
pub struct Compiled {
    /// The generated code.
    pub module: Module,
    /// The optimised graph; of several levels of a machine, that of the last.
    pub graph: Graph,
    /// What the optimiser did with it.
    pub report: OptimizeReport,
    /// What became of weights that were to be in half precision.
    pub narrowed: NarrowedWeights,
    options: CompileOptions,
    graph_text: String,
    constants: IndexMap<String, Attribute>,
    /// The model as it was imported, for its Relay text.
    #[cfg(feature = "relay")]
    relay: RelayText,
}

/// Writes a text piece by piece.
#[cfg(feature = "relay")]
type WriteText = dyn Fn(&mut dyn std::io::Write) -> std::io::Result<()> + Send + Sync;

/// Writes the model as it was imported.
#[cfg(feature = "relay")]
struct RelayText(Box<WriteText>);

#[cfg(feature = "relay")]
impl std::fmt::Debug for RelayText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RelayText")
    }
}

/// Optimises a graph and generates C for it. `observer` sees the graph after each stage of the optimiser, under its name.
///
/// # Errors
/// When the optimiser breaks the graph, which is a defect, the target can't run it, or it exceeds a limit.
pub fn compile(
    graph: &Graph,
    options: &CompileOptions,
    observer: &mut dyn FnMut(&str, &Graph),
) -> Result<Compiled, Vec<Diagnostic>> {
    #[cfg(feature = "relay")]
    let relay = {
        let imported = graph.clone();
        RelayText(Box::new(move |out: &mut dyn std::io::Write| mlc_relay::write(&imported, out)))
    };
    let (fitted, compiled) = all_levels(graph, options, observer)?;
    let options = fitted.as_ref().unwrap_or(options);
    let Optimized { graph, report, narrowed, module } = compiled;
    let (graph_text, constants) = mlc_ir::text::print_with_constants(&graph);
    Ok(Compiled {
        module,
        graph,
        report,
        narrowed,
        options: options.clone(),
        graph_text,
        constants,
        #[cfg(feature = "relay")]
        relay,
    })
}

impl Compiled {
    fn package(&self) -> Package<'_> {
        package(std::slice::from_ref(self), &self.options)
    }

    /// The archive's files by path.
    ///
    /// # Errors
    /// `MLC0002` when the version of the format can't hold the model.
    pub fn files(&self) -> Result<IndexMap<String, Vec<u8>>, Diagnostic> {
        files_of(std::slice::from_ref(self))
    }

    /// The archive.
    ///
    /// # Errors
    /// `MLC0002` when a name or a file is too large for a tar archive.
    pub fn archive(&self) -> Result<Bytes, Diagnostic> {
        self.package().archive().map(Bytes::from).map_err(unpackable)
    }

    /// The archive, read back: what a toolchain builds.
    ///
    /// # Errors
    /// As [`Compiled::archive`].
    pub fn bundle(&self) -> Result<Bundle, Diagnostic> {
        Bundle::parse(&self.archive()?)
    }

    /// The machine that it was compiled for.
    pub fn target(&self) -> &Target {
        &self.options.target
    }

    /// Time stamp of its archive in seconds since 1970.
    pub fn modified(&self) -> u64 {
        self.options.modified
    }

    /// The large constants that the optimised graph's text refers to, by name.
    pub fn graph_constants(&self) -> &IndexMap<String, Attribute> {
        &self.constants
    }

    /// The optimised graph as text.
    pub fn graph_text(&self) -> &str {
        &self.graph_text
    }
}

/// The package of models that were compiled with the same options but for their names.
fn package<'a>(models: &'a [Compiled], options: &'a CompileOptions) -> Package<'a> {
    let model = |compiled: &'a Compiled| PackageModel {
        module: &compiled.module,
        graph_text: &compiled.graph_text,
        #[cfg(feature = "relay")]
        relay: options.source_model.then_some(&*compiled.relay.0),
        #[cfg(not(feature = "relay"))]
        relay: None,
    };
    Package {
        models: models.iter().map(model).collect(),
        target: &options.target,
        modified: options.modified,
        version: options.version,
    }
}

fn unpackable(error: PackageError) -> Diagnostic {
    let code = match error {
        PackageError::Models(..) | PackageError::NoObjectFormat(_) => Code::OptionMismatch,
        _ => Code::FileUnwritable,
    };
    Diagnostic::error(code, Location::default(), error.to_string())
}

/// The files of an archive of models that were compiled with the same options but for their names, by path.
///
/// # Errors
/// `MLC0002` when there are none, or the version of the format can't hold them together.
pub fn files_of(models: &[Compiled]) -> Result<IndexMap<String, Vec<u8>>, Diagnostic> {
    let options = models.first().map(|first| first.options.clone()).unwrap_or_default();
    package(models, &options).files().map_err(unpackable)
}

/// Writes files as an archive, which appears whole or not at all.
///
/// # Errors
/// `MLC0002` when the disk refuses, or a name or a file is too large for a tar archive.
pub fn write_files(archive: IndexMap<String, Vec<u8>>, modified: u64, path: &Path) -> Result<(), Diagnostic> {
    files::write_atomically_with(path, |file| {
        Package::write_files(archive, modified, file).map_err(std::io::Error::other)
    })
}

/// Writes an archive of models that were compiled with the same options but for their names to a file, which appears whole or
/// not at all. The archive isn't held in memory: it is several times as large as the weights.
///
/// # Errors
/// `MLC0002` when the disk refuses, a name or a file is too large for a tar archive, or as [`files_of`].
pub fn write_archive(models: &[Compiled], path: &Path) -> Result<(), Diagnostic> {
    let options = models.first().map(|first| first.options.clone()).unwrap_or_default();
    let package = package(models, &options);
    package.check().map_err(unpackable)?;
    files::write_atomically_with(path, |file| package.write(file).map_err(std::io::Error::other))
}

/// Longest name of a model: it becomes a part of every symbol and of file names.
const MODEL_NAME_LENGTH: usize = 48;

/// A name as a model's name: lower case letters, digits and `_`.
pub fn model_name(name: &str) -> String {
    let safe: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' })
        .take(MODEL_NAME_LENGTH)
        .collect();
    if safe.is_empty() { "default".into() } else { safe }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_names_are_made_safe() {
        for (name, safe) in [("default", "default"), ("KWS-Net.v2", "kws_net_v2"), ("", "default"), ("é", "_")] {
            assert_eq!(model_name(name), safe);
        }
        assert_eq!(model_name(&"x".repeat(100)).len(), MODEL_NAME_LENGTH);
    }
}
