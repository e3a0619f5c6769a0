//! Weights in files beside the model.

use super::proto::StringStringEntryProto;
use bytes::Bytes;
use mlc_import::Fault;
use mlc_ir::{Code, Diagnostic};

/// Gives the importer the bytes of files beside the model: the frontend opens none itself.
pub trait ExternalData {
    /// Bytes of a file; `length` `None` for all from `offset` on. The location is a relative path with `/`, without `..`;
    /// whoever opens it makes sure that no symbolic link leads out of the model's folder and that it is a regular file.
    ///
    /// # Errors
    /// When the file can't be read or is too short.
    fn read(&self, location: &str, offset: u64, length: Option<u64>) -> Result<Bytes, Diagnostic>;
}

/// No files: a model that needs some is refused.
impl ExternalData for () {
    fn read(&self, location: &str, _offset: u64, _length: Option<u64>) -> Result<Bytes, Diagnostic> {
        let message = format!("the weights are in the file `{location}`, which isn't at hand");
        Err(Diagnostic::error(Code::FileUnreadable, mlc_ir::Location::default(), message))
    }
}

fn unsafe_location(location: &str) -> bool {
    let absolute = location.starts_with(['/', '\\']) || location.as_bytes().get(1) == Some(&b':');
    let odd = location.is_empty() || location.contains(['\0', '\\']);
    absolute || odd || location.split('/').any(|part| part == "..")
}

/// Reads the bytes that the entries of a tensor's `external_data` describe.
///
/// # Errors
/// When the entries don't make sense, the path leads elsewhere, or the file is missing or too short.
pub(super) fn read(
    entries: &[StringStringEntryProto],
    expected: usize,
    external: &dyn ExternalData,
) -> Result<Bytes, Fault> {
    let value = |key: &str| entries.iter().rev().find(|entry| entry.key == key).map(|entry| entry.value.as_str());
    let number = |key: &str| {
        let parse = |text: &str| {
            let invalid =
                || Fault::new(Code::NumberOutOfRange, format!("`{key}` of external data isn't a size: {text}"));
            text.trim().parse::<u64>().map_err(|_| invalid())
        };
        value(key).map(parse).transpose()
    };
    let location = value("location")
        .ok_or_else(|| Fault::new(Code::WeightMissing, "the tensor's external data doesn't name a file"))?;
    if unsafe_location(location) {
        let message = format!("external data must be beside the model, found the path `{location}`");
        return Err(Fault::new(Code::FileUnreadable, message)
            .with_help("move the file into the model's folder and correct the path in the model"));
    }
    let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
    if offset.checked_add(length.unwrap_or(expected as u64)).is_none() {
        return Err(Fault::new(Code::NumberOutOfRange, format!("offset {offset} and length of `{location}` overflow")));
    }
    if length.is_some_and(|length| length != expected as u64) {
        let message = format!("`{location}` holds {} bytes of the tensor, {expected} are needed", length.unwrap_or(0));
        return Err(Fault::new(Code::WeightSizeMismatch, message));
    }
    external.read(location, offset, Some(expected as u64)).map_err(|error| Fault::new(error.code, error.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str) -> StringStringEntryProto {
        StringStringEntryProto { key: key.into(), value: value.into() }
    }

    struct Zeros;

    impl ExternalData for Zeros {
        fn read(&self, _location: &str, offset: u64, length: Option<u64>) -> Result<Bytes, Diagnostic> {
            Ok(vec![offset as u8; length.unwrap_or(0) as usize].into())
        }
    }

    #[test]
    fn paths_that_leave_the_folder_are_refused() {
        for location in ["/etc/passwd", "../x", "a/../../x", "C:/x", "\\\\host\\x", "a\\..\\x", "", "x\0y"] {
            let fault = read(&[entry("location", location)], 4, &Zeros).unwrap_err();
            assert!(fault.message.contains("beside the model"), "{location}: {}", fault.message);
        }
        assert_eq!(
            read(&[entry("location", "weights/a..b.bin"), entry("offset", "3")], 2, &Zeros).unwrap()[..],
            [3, 3]
        );
    }

    #[test]
    fn sizes_are_checked_without_overflow() {
        let location = entry("location", "x");
        for (key, value) in [("offset", "18446744073709551615"), ("offset", "-1"), ("length", "3"), ("length", "x")] {
            assert!(read(&[location.clone(), entry(key, value)], 4, &Zeros).is_err(), "{key} {value}");
        }
        assert!(read(&[], 4, &Zeros).is_err());
        assert!(read(&[location], 4, &()).unwrap_err().message.contains("isn't at hand"));
    }
}
