//! The Model Library Format archive of compiled models: versions 5 to 7, for the ahead-of-time and the graph executor.
//!
//! [`Package::files`] says what is in it, [`Package::write`] packs it. The same modules and options give the same bytes on every
//! machine; a time stamp comes from the caller. The archive is complete: it builds with a C compiler and nothing else.

mod arena;
mod build_files;
mod description;
mod entry;
mod example;
mod graph_json;
mod header;
mod metadata;
mod names;
mod packed;
mod parameters;
mod pools;
mod registry;
mod tarball;
mod weights;

#[cfg(test)]
mod tests;

use crate::constants::write_constants;
use crate::execution::{Interface, WeightsAs};
use crate::module::Module;
use crate::target::{ObjectFormat, Target};
use indexmap::IndexMap;
use mlc_runtime::Library;
use names::Names;
use std::io;

/// A version of the Model Library Format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FormatVersion {
    /// As TVM 0.8 wrote it: one model, fixed file names, targets by device type.
    Five,
    /// Targets are a list.
    Six,
    /// Several models, each with its own file names: TVM 0.9 to 0.18.
    #[default]
    Seven,
}

impl FormatVersion {
    /// Its number in `metadata.json`.
    pub fn number(self) -> u32 {
        match self {
            FormatVersion::Five => 5,
            FormatVersion::Six => 6,
            FormatVersion::Seven => 7,
        }
    }
}

/// Writes the text of a file piece by piece.
pub type TextWriter<'a> = &'a dyn Fn(&mut dyn io::Write) -> io::Result<()>;

/// A compiled model and its texts.
#[derive(Clone, Copy)]
pub struct PackageModel<'a> {
    /// The code.
    pub module: &'a Module,
    /// The optimised graph in the text form of the intermediate representation.
    pub graph_text: &'a str,
    /// Writes the model as it was imported, as Relay text.
    pub relay: Option<TextWriter<'a>>,
}

/// What goes into an archive.
pub struct Package<'a> {
    /// The models, with different names; exactly one for versions before 7.
    pub models: Vec<PackageModel<'a>>,
    /// The machine that the code was generated for.
    pub target: &'a Target,
    /// Time stamp of the entries and of `export_datetime`, in seconds since 1970, at most 2^33.
    pub modified: u64,
    /// Version of the format.
    pub version: FormatVersion,
}

/// Why a module can't be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// A tar header has 255 bytes for a path.
    #[error("the path '{0}' is too long for a tar archive")]
    PathTooLong(String),
    /// A tar header has 11 octal digits for a size.
    #[error("the file '{0}' is too large for a tar archive")]
    FileTooLarge(String),
    /// Versions before 7 have no place for more than one model, and an archive has one for each name.
    #[error("an archive of version {0} can't hold these models: {1}")]
    Models(u32, &'static str),
    /// An object file is for one kind of machine.
    #[error("mlc knows no object files for the target '{0}': take the weights as C, or compile for the machine itself")]
    NoObjectFormat(String),
    /// The archive can't be written.
    #[error("the archive can't be written: {0}")]
    Io(#[from] io::Error),
}

/// A file's content.
enum Content<'a> {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// The constants of a module as C, several times as long as the weights: written piece by piece.
    Constants(&'a Module),
    /// The constants of a module as they lie in memory.
    Blob(&'a Module),
    /// The constants of a module as an object file.
    Object(&'a Module, ObjectFormat),
    /// The parameters of a module's graph.
    Parameters(&'a Module),
    /// A text that the caller writes.
    Text(TextWriter<'a>),
}

impl Content<'_> {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match self {
            Content::Bytes(bytes) => out.write_all(bytes),
            Content::Constants(module) => write_constants(module, out),
            Content::Blob(module) => weights::write_blob(module, out),
            Content::Object(module, format) => weights::write_object(module, *format, out),
            Content::Parameters(module) => parameters::write(module, out),
            Content::Text(write) => write(out),
        }
    }
}

type Files<'a> = IndexMap<String, Content<'a>>;

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
            weights::add(model.module, self.target, &mut files)?;
        }
        files.sort_unstable_keys();
        Ok(files)
    }

    /// What of the runtime the models need. The C interface needs nothing at link time; the first ones are for code of
    /// other generators in the same image.
    fn libraries(&self) -> Vec<Library> {
        let mut libraries = vec![Library::Common, Library::Memory, Library::Stub];
        let modules = || self.models.iter().map(|model| model.module);
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
        let mut names: Vec<&str> = self.models.iter().map(|model| model.module.model_name.as_str()).collect();
        names.sort_unstable();
        if names.is_empty() {
            return Err(PackageError::Models(version, "there are none"));
        }
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(PackageError::Models(version, "two have the same name"));
        }
        if self.version != FormatVersion::Seven && names.len() > 1 {
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
            add(format!("codegen/host/src/{}", source.name), source.text.clone());
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
