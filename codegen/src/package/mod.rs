//! The Model Library Format archive of a module: version 7, one model, ahead-of-time executor with the C interface.
//!
//! [`files`] says what is in it, [`archive`] packs it. The same module and options give the same bytes on every machine; a
//! time stamp comes from the caller. The archive is complete: it builds with a C compiler and nothing else.

mod build_files;
mod entry;
mod header;
mod metadata;
mod names;
mod parameters;
mod tarball;

#[cfg(test)]
mod tests;

use crate::constants::write_constants;
use crate::module::Module;
use crate::target::Target;
use indexmap::IndexMap;
use names::Names;
use std::io;

/// What the package holds beyond the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageOptions<'a> {
    /// The machine that the module was generated for.
    pub target: &'a Target,
    /// The optimised graph in the text form of the intermediate representation.
    pub graph_text: &'a str,
    /// Time stamp of the entries and of `export_datetime`, in seconds since 1970, at most 2^33.
    pub modified: u64,
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
    /// The archive can't be written.
    #[error("the archive can't be written: {0}")]
    Io(#[from] io::Error),
}

/// A file's content.
enum Content<'a> {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// The constants of a module, several times as long as the weights: written piece by piece.
    Constants(&'a Module),
}

impl Content<'_> {
    fn write(&self, out: &mut dyn io::Write) -> io::Result<()> {
        match self {
            Content::Bytes(bytes) => out.write_all(bytes),
            Content::Constants(module) => write_constants(module, out),
        }
    }
}

/// The files of the package by path, sorted; folders are implied.
pub fn files(module: &Module, options: &PackageOptions) -> IndexMap<String, Vec<u8>> {
    let whole = |content: Content<'_>| match content {
        Content::Bytes(bytes) => bytes,
        Content::Constants(module) => {
            let mut bytes = Vec::new();
            // Writing to memory doesn't fail.
            let _ = write_constants(module, &mut bytes);
            bytes
        }
    };
    contents(module, options).into_iter().map(|(path, content)| (path, whole(content))).collect()
}

fn contents<'a>(module: &'a Module, options: &PackageOptions) -> IndexMap<String, Content<'a>> {
    let model = &module.model_name;
    let names = Names::new(module);
    let mut files: IndexMap<String, Content<'a>> = IndexMap::new();
    let mut add = |path: String, text: String| files.insert(path, Content::Bytes(text.into_bytes()));

    add("metadata.json".into(), metadata::metadata(module, options));
    add(format!("codegen/host/include/tvmgen_{model}.h"), header::header(module, &names));
    add(format!("codegen/host/src/{model}_lib0.c"), entry::entry(module));
    for source in &module.sources {
        add(format!("codegen/host/src/{}", source.name), source.text.clone());
    }
    add(format!("src/{model}.mlc"), options.graph_text.to_owned());
    add(format!("src/{model}.json"), metadata::description(module, options.target));
    add("Makefile".into(), build_files::makefile(module, options.target));
    add("CMakeLists.txt".into(), build_files::cmake_lists(module, options.target));
    add("example/main.c".into(), build_files::example(module, &names));
    for file in mlc_runtime::FILES {
        add(format!("runtime/{}", file.path), file.text.to_owned());
    }
    for file in mlc_runtime::TEMPLATES {
        add(format!("templates/{}", file.path), file.text.to_owned());
    }
    files.insert(format!("codegen/host/src/{model}_lib2.c"), Content::Constants(module));
    files.insert(format!("parameters/{model}.params"), Content::Bytes(parameters::no_arrays()));
    files.sort_unstable_keys();
    files
}

/// The package as an uncompressed tar archive.
///
/// # Errors
/// When a path or a file is too large for a tar header.
pub fn archive(module: &Module, options: &PackageOptions) -> Result<Vec<u8>, PackageError> {
    let mut archive = io::Cursor::new(Vec::new());
    write_archive(module, options, &mut archive)?;
    Ok(archive.into_inner())
}

/// Writes the package as an uncompressed tar archive, without holding it in memory.
///
/// # Errors
/// When a path or a file is too large for a tar header, and those of the writer.
pub fn write_archive<W: io::Write + io::Seek>(
    module: &Module,
    options: &PackageOptions,
    out: &mut W,
) -> Result<(), PackageError> {
    tarball::pack(&contents(module, options), options.modified, out)
}
