//! Reading and writing files: models are mapped, not copied; output appears whole or not at all.

use bytes::Bytes;
use mlc_ir::{Code, Diagnostic, Location};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The contents of a file. Large files are mapped into memory, so that weights are read when, and only if, they are used.
///
/// # Errors
/// `MLC0001` when the file can't be opened or read.
pub fn read(path: &Path) -> Result<Bytes, Diagnostic> {
    let unreadable = |error: std::io::Error| {
        let diagnostic = Diagnostic::error(
            Code::FileUnreadable,
            Location::default().in_file(path.display().to_string()),
            format!("can't read the file: {}", describe(&error)),
        );
        match error.kind() {
            std::io::ErrorKind::NotFound => {
                diagnostic.with_help("check the path; it is relative to the current folder")
            }
            _ => diagnostic,
        }
    };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() || metadata.len() == 0 {
        // Pipes and devices have no length to map.
        return fs::read(path).map(Bytes::from).map_err(unreadable);
    }
    map(&file).map_err(unreadable)
}

/// Maps a file into memory.
#[expect(
    unsafe_code,
    reason = "a mapping is only sound while nobody shortens the file, which no safe interface can promise"
)]
fn map(file: &File) -> std::io::Result<Bytes> {
    // SAFETY: the mapping is private and read-only, and `Bytes` keeps it alive. A process that truncates the file while mlc
    // runs makes an access fault; mlc can't prevent that, and replaces its own outputs by renaming instead of truncating.
    unsafe { memmap2::Mmap::map(file) }.map(Bytes::from_owner)
}

/// Writes a file so that it holds either its old or the whole new contents, whatever happens.
///
/// # Errors
/// `MLC0002` when the folder or the disk refuses.
pub fn write_atomically(path: &Path, contents: &[u8]) -> Result<(), Diagnostic> {
    write_atomically_with(path, |file| file.write_all(contents))
}

/// Lets `write` write a file that appears whole or not at all.
///
/// # Errors
/// `MLC0002` when the folder, the disk or the writer refuses.
pub fn write_atomically_with(
    path: &Path,
    write: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> Result<(), Diagnostic> {
    let attempt = move || -> std::io::Result<()> {
        let mut builder = tempfile::Builder::new();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // As for any new file, the process's mask takes from this.
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let mut temporary = builder.prefix(".mlc-").tempfile_in(folder_of(path))?;
        write(temporary.as_file_mut())?;
        temporary.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    if path.is_dir() {
        return Err(unwritable(path, &std::io::ErrorKind::IsADirectory.into()));
    }
    attempt().map_err(|error| unwritable(path, &error))
}

/// Writes files below a folder. Everything is written to a temporary folder beside it first; a new folder then appears with
/// one renaming, in an existing folder file after file is replaced and nothing is removed.
///
/// # Errors
/// `MLC0002` when a folder or the disk refuses.
pub fn write_folder<'a>(folder: &Path, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<(), Diagnostic> {
    let attempt = || -> std::io::Result<()> {
        let parent = folder_of(folder);
        fs::create_dir_all(&parent)?;
        let staging = tempfile::Builder::new().prefix(".mlc-").tempdir_in(&parent)?;
        let root = staging.path().join("new");
        fs::create_dir(&root)?;
        let mut paths = Vec::new();
        for (relative, contents) in files {
            let path = root.join(relative);
            fs::create_dir_all(folder_of(&path))?;
            fs::write(&path, contents)?;
            paths.push(relative);
        }
        if !folder.exists() {
            return fs::rename(&root, folder);
        }
        for relative in paths {
            let path = folder.join(relative);
            fs::create_dir_all(folder_of(&path))?;
            fs::rename(root.join(relative), path)?;
        }
        Ok(())
    };
    attempt().map_err(|error| unwritable(folder, &error))
}

/// The folder that holds a path, `.` for a bare name.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error(
        Code::FileUnwritable,
        Location::default().in_file(path.display().to_string()),
        format!("can't write the file: {}", describe(error)),
    )
}

/// An error without the number that the system appends, which differs between systems.
pub(crate) fn describe(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

/// A name as a file name that no system misunderstands: letters, digits, `.`, `_` and `-`; everything else becomes `_`.
pub fn safe_file_name(name: &str) -> String {
    let mut safe: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).take(120).collect();
    if safe.is_empty() || safe.starts_with('.') {
        safe.insert(0, '_');
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_or_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.tar");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(read(&path).unwrap(), "new");
        let error = write_atomically(&folder.path().join("missing/out.tar"), b"x").unwrap_err();
        assert_eq!(error.code, Code::FileUnwritable);
        assert_eq!(write_atomically(folder.path(), b"x").unwrap_err().code, Code::FileUnwritable);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary is left behind");
    }

    #[test]
    fn a_folder_appears_whole_and_keeps_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("model");
        write_folder(&target, [("a/b.c", &b"1"[..]), ("c", b"2")]).unwrap();
        fs::write(target.join("mine"), "kept").unwrap();
        write_folder(&target, [("a/b.c", &b"3"[..])]).unwrap();
        assert_eq!(read(&target.join("a/b.c")).unwrap(), "3");
        assert_eq!(read(&target.join("c")).unwrap(), "2");
        assert_eq!(read(&target.join("mine")).unwrap(), "kept");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary is left behind");
    }

    #[test]
    fn unreadable_files_are_explained() {
        let folder = tempfile::tempdir().unwrap();
        let missing = read(&folder.path().join("no")).unwrap_err();
        assert_eq!(missing.message, "can't read the file: no such file or directory");
        assert!(missing.help.is_some());
        assert_eq!(read(folder.path()).unwrap_err().code, Code::FileUnreadable);
        fs::write(folder.path().join("empty"), "").unwrap();
        assert!(read(&folder.path().join("empty")).unwrap().is_empty());
    }

    #[test]
    fn file_names_are_made_safe() {
        for (name, safe) in
            [("out", "out"), ("a/b:0", "a_b_0"), ("..", "_.."), ("", "_"), ("../../etc", "_.._.._etc"), ("é", "_")]
        {
            assert_eq!(safe_file_name(name), safe);
        }
    }
}
