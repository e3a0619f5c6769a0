//! Weights that a model keeps in files beside it.

use crate::folder::ModelFolder;
use bytes::Bytes;
use mlc_ir::{Code, Diagnostic, Location};
use mlc_onnx::ExternalData;

impl ExternalData for ModelFolder {
    fn read(&self, location: &str, offset: u64, length: Option<u64>) -> Result<Bytes, Diagnostic> {
        let bytes = ModelFolder::read(self, location)?;
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
        assert_eq!(ExternalData::read(&model, "weights/a.bin", 2, Some(3)).unwrap()[..], *b"234");
        assert_eq!(ExternalData::read(&model, "weights/a.bin", 8, None).unwrap()[..], *b"89");
        for (offset, length) in [(8, Some(3)), (11, None), (u64::MAX, Some(2))] {
            assert!(ExternalData::read(&model, "weights/a.bin", offset, length).is_err(), "{offset} {length:?}");
        }
        assert!(ExternalData::read(&model, "missing", 0, None).unwrap_err().message.contains("can't be opened"));
        assert!(ExternalData::read(&model, "weights", 0, None).unwrap_err().message.contains("regular file"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("link")).unwrap();
            assert!(ExternalData::read(&model, "link", 0, None).unwrap_err().message.contains("leads out"));
            std::os::unix::fs::symlink(folder.path().join("weights/a.bin"), folder.path().join("inner")).unwrap();
            assert_eq!(ExternalData::read(&model, "inner", 0, Some(1)).unwrap()[..], *b"0");
        }
    }
}
