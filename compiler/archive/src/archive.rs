//! The archive: an uncompressed tar file, its members by their normalised names.

use bytes::Bytes;
use indexmap::IndexMap;
use mlc_ir::{Code, Diagnostic, Location};
use mlc_json::Json;
use serde_json::Value;
use std::io::Cursor;
use std::path::{Component, Path};
use tar::EntryType;

/// The most members that are read. A model has a few hundred at most.
const MOST_MEMBERS: usize = 100_000;

/// Whether a file is compressed by gzip, as archives of this format never are.
pub fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// The files of an archive. Their contents are slices of the tar file.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    files: IndexMap<String, Bytes>,
}

impl Archive {
    /// Reads a tar file.
    ///
    /// # Errors
    /// `MLC0107` when it is compressed, damaged, cut short, or holds a name that leads out of it, a link or a device.
    pub fn read(bytes: &Bytes) -> Result<Archive, Diagnostic> {
        if is_gzip(bytes) {
            let message = "the archive is compressed with gzip; a Model Library Format archive is a plain tar file";
            return Err(Diagnostic::error(Code::ArchiveDamaged, Location::default(), message)
                .with_help("decompress it first: gzip -dc x.tar.gz > x.tar"));
        }
        let mut files = IndexMap::new();
        let mut reader = tar::Archive::new(Cursor::new(bytes.as_ref()));
        let entries = reader.entries().map_err(|error| damaged(0, error.to_string()))?;
        let mut position = 0;
        for (count, entry) in entries.enumerate() {
            let entry = entry.map_err(|error| damaged(position, error.to_string()))?;
            position = entry.raw_header_position();
            if count == MOST_MEMBERS {
                return Err(damaged(position, format!("it has more than {MOST_MEMBERS} members")));
            }
            if let Some((name, contents)) = member(&entry, bytes).map_err(|what| damaged(position, what))?
                && files.insert(name.clone(), contents).is_some()
            {
                return Err(damaged(position, format!("it holds '{name}' twice")));
            }
        }
        if files.is_empty() {
            return Err(damaged(position, "it holds no files"));
        }
        Ok(Archive { files })
    }

    /// The contents of a file.
    pub fn get(&self, path: &str) -> Option<&Bytes> {
        self.files.get(path)
    }

    /// The contents of a file that must be there.
    ///
    /// # Errors
    /// `MLC0107` when it isn't.
    pub fn file(&self, path: &str) -> Result<&Bytes, Diagnostic> {
        self.get(path).ok_or_else(|| missing(path))
    }

    /// A text file that must be there.
    ///
    /// # Errors
    /// `MLC0107` when it isn't, `MLC0101` when it isn't UTF-8.
    pub fn text(&self, path: &str) -> Result<&str, Diagnostic> {
        std::str::from_utf8(self.file(path)?).map_err(|error| {
            let place = Location::byte_offset(error.valid_up_to() as u64);
            Diagnostic::error(Code::Syntax, place, format!("'{path}' of the archive isn't UTF-8"))
        })
    }

    /// A JSON file that must be there.
    ///
    /// # Errors
    /// `MLC0107` when it isn't, `MLC0101` when it isn't JSON, or an object of it has a key twice.
    pub(super) fn json(&self, path: &str) -> Result<Value, Diagnostic> {
        mlc_json::parse(self.file(path)?).map_err(|error| {
            let place = Location::line_column(error.line() as u32, error.column() as u32);
            Diagnostic::error(Code::Syntax, place, format!("'{path}' of the archive isn't JSON: {error}"))
        })
    }

    /// All files with their contents, in the archive's order. Names are relative, with `/` between folders and without `..`.
    pub fn files(&self) -> impl Iterator<Item = (&str, &Bytes)> {
        self.files.iter().map(|(path, contents)| (path.as_str(), contents))
    }
}

/// The value of a JSON file, whose mistakes name it.
pub(super) fn root<'a>(path: &str, value: &'a Value) -> Json<'a> {
    Json::root("$", format!("'{path}' of the archive: "), value)
}

fn missing(path: &str) -> Diagnostic {
    Diagnostic::error(Code::ArchiveDamaged, Location::default(), format!("the archive is damaged: it has no '{path}'"))
}

fn damaged(offset: u64, what: impl std::fmt::Display) -> Diagnostic {
    let message = format!("the archive is damaged: {what}");
    Diagnostic::error(Code::ArchiveDamaged, Location::byte_offset(offset), message)
}

/// Name and contents of a member; nothing for a folder, and for the extended headers that the crate leaves to its caller.
fn member(entry: &tar::Entry<'_, Cursor<&[u8]>>, bytes: &Bytes) -> Result<Option<(String, Bytes)>, String> {
    let path = entry.path().map_err(|error| error.to_string())?;
    let name = normalise(&path).ok_or_else(|| format!("the path '{}' leads out of it", path.display()))?;
    match entry.header().entry_type() {
        EntryType::Directory | EntryType::XGlobalHeader | EntryType::XHeader => return Ok(None),
        EntryType::Regular if !name.is_empty() => {}
        _ => return Err(format!("'{name}' is neither a file nor a folder")),
    }
    let start = usize::try_from(entry.raw_file_position()).ok();
    let size = usize::try_from(entry.size()).ok();
    let range = start.zip(size).and_then(|(start, size)| Some(start..start.checked_add(size)?));
    let range = range.filter(|range| range.end <= bytes.len());
    let range = range.ok_or_else(|| format!("it ends inside '{name}'"))?;
    Ok(Some((name, bytes.slice(range))))
}

/// A path below the archive's root with `/` between folders, `None` when it leads elsewhere.
fn normalise(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(part) => parts.push(part.to_str().filter(|part| !part.contains(['\\', '\0']))?),
            _ => return None,
        }
    }
    Some(parts.join("/"))
}
