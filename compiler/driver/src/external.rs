//! Weights that a model keeps in files beside it.

use crate::files;
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic, Location};
use mlc_onnx::ExternalData;
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

    /// Finds the file behind links, which must not lead out of the folder.
    fn file(&self, location: &str) -> Result<PathBuf, Diagnostic> {
        let path = self.folder.join(location);
        let fail = |reason: &str| {
            let named = Location::default().in_file(path.display().to_string());
            Diagnostic::error(Code::FileUnreadable, named, format!("the weights' file `{location}` {reason}"))
        };
        let found = path.canonicalize().map_err(|error| fail(&format!("can't be opened: {error}")))?;
        let folder = self.folder.canonicalize().map_err(|error| fail(&format!("can't be opened: {error}")))?;
        if !found.starts_with(&folder) {
            return Err(
                fail("is a link that leads out of the model's folder").with_help("copy the file beside the model")
            );
        }
        if !found.is_file() {
            return Err(fail("isn't a regular file"));
        }
        Ok(found)
    }
}

impl ExternalData for ModelFolder {
    fn read(&self, location: &str, offset: u64, length: Option<u64>) -> Result<Bytes, Diagnostic> {
        let known = self.files.borrow().get(location).cloned();
        let bytes = match known {
            Some(bytes) => bytes,
            None => {
                let bytes = files::read(&self.file(location)?)?;
                self.files.borrow_mut().insert(location.to_owned(), bytes.clone());
                bytes
            }
        };
        let end = match length {
            Some(length) => offset.checked_add(length),
            None => Some(bytes.len() as u64),
        };
        let range = end.filter(|&end| offset <= end && end <= bytes.len() as u64);
        range.map(|end| bytes.slice(offset as usize..end as usize)).ok_or_else(|| {
            let message = format!(
                "the weights' file `{location}` has {} bytes; a tensor is to begin at {offset} and to take {}",
                bytes.len(),
                length.unwrap_or_default()
            );
            Diagnostic::error(Code::WeightSizeMismatch, Location::default(), message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_folder_are_read() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), b"0123").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let model = ModelFolder::of(&folder.path().join("model.onnx"));
        std::fs::create_dir(folder.path().join("weights")).unwrap();
        std::fs::write(folder.path().join("weights/a.bin"), b"0123456789").unwrap();
        assert_eq!(model.read("weights/a.bin", 2, Some(3)).unwrap()[..], *b"234");
        assert_eq!(model.read("weights/a.bin", 8, None).unwrap()[..], *b"89");
        for (offset, length) in [(8, Some(3)), (11, None), (u64::MAX, Some(2))] {
            assert!(model.read("weights/a.bin", offset, length).is_err(), "{offset} {length:?}");
        }
        assert!(model.read("missing", 0, None).unwrap_err().message.contains("can't be opened"));
        assert!(model.read("weights", 0, None).unwrap_err().message.contains("regular file"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("link")).unwrap();
            assert!(model.read("link", 0, None).unwrap_err().message.contains("leads out"));
            std::os::unix::fs::symlink(folder.path().join("weights/a.bin"), folder.path().join("inner")).unwrap();
            assert_eq!(model.read("inner", 0, Some(1)).unwrap()[..], *b"0");
        }
    }
}
