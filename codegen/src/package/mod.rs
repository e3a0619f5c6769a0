//! The Model Library Format archive of compiled models: versions 5 to 7, for the ahead-of-time and the graph executor.
//!
//! [`Package::files`] says what is in it, [`Package::write`] packs it. The same modules and options give the same bytes on every
//! machine; a time stamp comes from the caller. The archive is complete: it builds with a C compiler and nothing else.

mod arena;
pub mod build_files;
mod content;
mod description;
mod entry;
mod error;
mod example;
mod feed;
mod graph_json;
mod header;
mod input;
mod levels;
mod metadata;
mod names;
mod packed;
mod parameters;
mod pools;
mod registry;
mod signature;
mod states;
mod tarball;
mod weights;

#[cfg(test)]
mod tests;

pub use description::{Predicted, PredictedKernel};
pub use error::PackageError;
pub use input::{FormatVersion, Package, PackageModel, TextWriter};

use crate::execution::{Interface, WeightsAs};
use crate::module::Module;
use crate::target::Target;
use content::{Content, Files};
use indexmap::IndexMap;
use mlc_runtime::Library;
use names::Names;
use std::io;

impl<'a> Package<'a> {
    /// A package of one model in the newest version of the format.
    pub fn of(module: &'a Module, target: &'a Target, graph_text: &'a str) -> Package<'a> {
        let models = vec![PackageModel { module, graph_text, relay: None }];
        Package { models, target, modified: 0, version: FormatVersion::default() }
    }

    /// The files of the package by path, sorted; folders are implied.
    ///
    /// # Errors
    /// When the version can't hold the models, and those of the models' own text writers.
    pub fn files(&self) -> Result<IndexMap<String, Vec<u8>>, PackageError> {
        let mut files = IndexMap::new();
        for (path, content) in self.contents()? {
            let mut bytes = Vec::new();
            content.write(&mut bytes)?;
            files.insert(path, bytes);
        }
        Ok(files)
    }

    /// Writes files, given by path, as an archive of the same form.
    ///
    /// # Errors
    /// When a path or a file is too large for a tar header, and those of the writer.
    pub fn write_files<W: io::Write + io::Seek>(
        files: IndexMap<String, Vec<u8>>,
        modified: u64,
        out: &mut W,
    ) -> Result<(), PackageError> {
        let files: Files<'_> = files.into_iter().map(|(path, bytes)| (path, Content::Bytes(bytes))).collect();
        tarball::pack(&files, modified, out)
    }

    /// The package as an uncompressed tar archive.
    ///
    /// # Errors
    /// As [`Package::write`].
    pub fn archive(&self) -> Result<Vec<u8>, PackageError> {
        let mut archive = io::Cursor::new(Vec::new());
        self.write(&mut archive)?;
        Ok(archive.into_inner())
    }

    /// Writes the package as an uncompressed tar archive, without holding it in memory.
    ///
    /// # Errors
    /// When the version can't hold the models, or a path or a file is too large for a tar header, and those of the writer.
    pub fn write<W: io::Write + io::Seek>(&self, out: &mut W) -> Result<(), PackageError> {
        tarball::pack(&self.contents()?, self.modified, out)
    }

    fn contents(&self) -> Result<Files<'a>, PackageError> {
        self.check()?;
        let mut files = Files::new();
        let mut add = |path: &str, text: String| files.insert(path.to_owned(), Content::Bytes(text.into_bytes()));
        let modules: Vec<&Module> = self.models.iter().map(|model| model.module).collect();
        add("metadata.json", metadata::metadata(self));
        add("Makefile", build_files::makefile(&modules, self.target));
        add("CMakeLists.txt", build_files::cmake_lists(&modules, self.target));
        add("example/main.c", example::example(&modules));
        let libraries = self.libraries();
        for file in mlc_runtime::files(&libraries) {
            add(&format!("runtime/{}", file.path), file.text.to_owned());
        }
        for file in mlc_runtime::TEMPLATES {
            add(&format!("templates/{}", file.path), file.text.to_owned());
        }
        let registry = registry::registry(&modules);
        for (number, model) in self.models.iter().enumerate() {
            // A program links one registry: the first model's file has it for all.
            let registry = if number == 0 { registry.as_str() } else { "" };
            self.add_model(model, registry, &mut files);
            add_weights(model.module, self.target, &mut files)?;
        }
        files.sort_unstable_keys();
        Ok(files)
    }

    /// What of the runtime the models need. The C interface needs nothing at link time; the first ones are for code of
    /// other generators in the same image.
    fn libraries(&self) -> Vec<Library> {
        let mut libraries = vec![Library::Common, Library::Memory, Library::Stub];
        let modules = || self.models.iter().map(|model| model.module);
        if modules().any(|module| module.ranks.is_some()) {
            libraries.push(Library::Transport);
        }
        if modules().any(|module| module.execution.threads > 1) {
            libraries.push(Library::Threads);
        }
        if modules().any(|module| module.graph.is_some()) {
            libraries.extend([Library::GraphExecutor, Library::GraphExecutorModule, Library::Platform]);
        }
        if modules().any(|module| matches!(module.execution.aot, Some(Interface::Packed | Interface::PackedEntry))) {
            libraries.extend([Library::AotExecutor, Library::AotExecutorModule, Library::Platform]);
        }
        libraries
    }

    /// Whether the version of the format can hold the models in the form that they were compiled for.
    ///
    /// # Errors
    /// When it can't; nothing is written then.
    pub fn check(&self) -> Result<(), PackageError> {
        let version = self.version.number();
        // Levels have names of their own, in symbols and of files.
        let names = |module: &'a Module| {
            let levels = module.levels.iter().map(|level| level.model_name.as_str());
            std::iter::once(module.model_name.as_str()).chain(levels)
        };
        let mut names: Vec<&str> = self.models.iter().flat_map(|model| names(model.module)).collect();
        names.sort_unstable();
        if names.is_empty() {
            return Err(PackageError::Models(version, "there are none"));
        }
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(PackageError::Models(version, "two have the same name"));
        }
        let mut sources = IndexMap::new();
        for source in self.models.iter().flat_map(|model| &model.module.sources) {
            if *sources.entry(&source.name).or_insert(&source.text) != &source.text {
                return Err(PackageError::FileTwice(source.name.clone()));
            }
        }
        if self.version != FormatVersion::Seven && self.models.len() > 1 {
            return Err(PackageError::Models(version, "it has a place for one only"));
        }
        let objects = self.models.iter().any(|model| model.module.execution.weights == WeightsAs::Object);
        if objects && self.target.object_format().is_none() {
            return Err(PackageError::NoObjectFormat(self.target.name.clone()));
        }
        Ok(())
    }

    fn add_model(&self, model: &PackageModel<'a>, registry: &str, files: &mut Files<'a>) {
        let module = model.module;
        let name = &module.model_name;
        let mut add = |path: String, text: String| files.insert(path, Content::Bytes(text.into_bytes()));
        if module.execution.aot == Some(Interface::C) {
            add(format!("codegen/host/include/tvmgen_{name}.h"), header::header(module, &Names::new(module)));
        }
        let mut entry = match module.execution.aot {
            Some(Interface::C) => entry::entry(module),
            Some(Interface::Packed | Interface::PackedEntry) => packed::entry(module),
            None => format!("/* What runtimes find by name of the model \"{name}\". */\n"),
        };
        entry += registry;
        if module.execution.aot.is_none() && registry.is_empty() {
            entry += "typedef int mlc_nothing_here;\n";
        }
        add(format!("codegen/host/src/{name}_lib0.c"), entry);
        for source in &module.sources {
            add(source.path(), source.text.clone());
        }
        add(format!("src/{name}.mlc"), model.graph_text.to_owned());
        add(format!("src/{name}.json"), description::description(module, self.target));
        let newest = self.version == FormatVersion::Seven;
        if let Some(graph) = &module.graph {
            let file = if newest { format!("{name}.graph") } else { "graph.json".to_owned() };
            add(format!("executor-config/graph/{file}"), graph_json::graph_json(graph));
        }
        files.insert(format!("parameters/{name}.params"), Content::Parameters(module));
        if let Some(write) = model.relay {
            let file = if newest { format!("{name}.relay") } else { "relay.txt".to_owned() };
            files.insert(format!("src/{file}"), Content::Text(write));
        }
    }
}

/// Adds the files that hold a module's constants.
///
/// # Errors
/// When the target has no object files that mlc knows.
fn add_weights<'a>(module: &'a Module, target: &Target, files: &mut Files<'a>) -> Result<(), PackageError> {
    let model = &module.model_name;
    let source = format!("codegen/host/src/{model}_lib2.c");
    match module.execution.weights {
        _ if module.linked_constants().next().is_none() => {
            files.insert(source, Content::Constants(module));
        }
        WeightsAs::C | WeightsAs::Binary => {
            files.insert(source, Content::Constants(module));
        }
        WeightsAs::Incbin => {
            files.insert(format!("{source}.bin"), Content::Blob(module));
            files.insert(source, Content::Bytes(weights::assembly(module).into_bytes()));
        }
        WeightsAs::Object => {
            let format = target.object_format().ok_or_else(|| PackageError::NoObjectFormat(target.name.clone()))?;
            files.insert(format!("codegen/host/lib/{model}_lib0.o"), Content::Object(module, format));
        }
    }
    if module.execution.weights == WeightsAs::Binary {
        files.insert(format!("parameters/{model}.constants.bin"), Content::Blob(module));
    }
    Ok(())
}
