//! Descriptions of operators, from files and folders.

use crate::files;
use crate::pipeline::Failure;
use crate::render::Sources;
use mlc_descriptions::Library;
use mlc_import::CustomOperators;
use mlc_ir::{Code, Diagnostic, Location};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The endings of files of a folder that are descriptions.
const EXTENSIONS: [&str; 2] = ["json", "op"];

/// Operators that the user describes, and the texts that say so.
#[derive(Debug, Clone)]
pub struct Described {
    /// The operators.
    pub operators: Arc<CustomOperators>,
    /// The descriptions' texts by their files.
    pub sources: Sources,
}

/// Reads descriptions from files, and from all `.json` and `.op` files of folders, in the order of their names.
///
/// # Errors
/// All problems of all files.
pub fn read(paths: &[PathBuf]) -> Result<(Library, Sources), Failure> {
    let (mut sources, mut known) = (Sources::new(), Vec::new());
    for path in paths {
        for file in files_of(path)? {
            let bytes = files::read(&file)?;
            // A file may be named by itself and as one of a folder.
            let same = file.canonicalize().unwrap_or_else(|_| file.clone());
            if known.contains(&same) {
                continue;
            }
            known.push(same);
            sources.insert(file.display().to_string(), bytes);
        }
    }
    let files: Vec<(&str, &[u8])> = sources.iter().map(|(name, bytes)| (name.as_str(), bytes.as_ref())).collect();
    match Library::read(&files) {
        Ok(library) => Ok((library, sources)),
        Err(diagnostics) => Err(Failure { diagnostics, sources }),
    }
}

/// A file, or the descriptions of a folder.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, Diagnostic> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let unreadable = |error: &std::io::Error| {
        let message = format!("can't read the folder: {}", files::describe(error));
        Diagnostic::error(Code::FileUnreadable, Location::default().in_file(path.display().to_string()), message)
    };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|error| unreadable(&error))? {
        let file = entry.map_err(|error| unreadable(&error))?.path();
        let extension = file.extension().and_then(OsStr::to_str);
        if extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && file.is_file() {
            found.push(file);
        }
    }
    found.sort();
    if found.is_empty() {
        let message = "the folder holds no description: no file in it ends in .json or .op";
        let place = Location::default().in_file(path.display().to_string());
        return Err(Diagnostic::error(Code::FileUnreadable, place, message));
    }
    Ok(found)
}
