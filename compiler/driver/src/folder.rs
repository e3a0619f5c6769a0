//! [`ModelFolder`]: the files beside a model, which it may name.

use crate::files;
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic, Location};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The files in a model's folder and below. Each is mapped once.
#[derive(Debug)]
pub(crate) struct ModelFolder {
    folder: PathBuf,
    files: RefCell<IndexMap<String, Bytes>>,
}

impl ModelFolder {
    /// The folder of a model file.
    pub(crate) fn of(model: &Path) -> Self {
        let folder = model.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        ModelFolder { folder: folder.to_owned(), files: RefCell::default() }
    }

    /// Where it is.
    #[cfg(feature = "lightnet")]
    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// What a file holds, whose name is relative to the folder.
    ///
    /// # Errors
    /// `MLC0001` when it isn't there, or isn't in the folder.
    pub(crate) fn read(&self, location: &str) -> Result<Bytes, Diagnostic> {
        if let Some(bytes) = self.files.borrow().get(location) {
            return Ok(bytes.clone());
        }
        let bytes = files::read(&self.file(location)?)?;
        self.files.borrow_mut().insert(location.to_owned(), bytes.clone());
        Ok(bytes)
    }

    /// Finds the file behind links, which must not lead out of the folder.
    fn file(&self, location: &str) -> Result<PathBuf, Diagnostic> {
        let path = self.folder.join(location);
        let fail = |reason: &str| {
            let named = Location::default().in_file(path.display().to_string());
            Diagnostic::error(Code::FileUnreadable, named, format!("the file `{location}` {reason}"))
        };
        let found = path.canonicalize().map_err(|error| fail(&format!("can't be opened: {error}")))?;
        let folder = self.folder.canonicalize().map_err(|error| fail(&format!("can't be opened: {error}")))?;
        if !found.starts_with(&folder) {
            return Err(fail("leads out of the model's folder").with_help("copy the file beside the model"));
        }
        if !found.is_file() {
            return Err(fail("isn't a regular file"));
        }
        Ok(found)
    }
}
