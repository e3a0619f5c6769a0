//! Where the repository keeps what the tests need.

use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn repository() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().unwrap_or(tests).to_path_buf()
}

/// The models that the repository carries: `tests/data/<format>/<case>/`.
pub fn data() -> PathBuf {
    repository().join("tests/data")
}

/// The whole conformance collection: `MLC_CONFORMANCE_DIR`, or the folder beside the repository, where either exists.
pub fn conformance() -> Option<PathBuf> {
    let named = std::env::var_os("MLC_CONFORMANCE_DIR").map(PathBuf::from);
    let beside = repository().join("../shared/conformance");
    named.or(Some(beside)).filter(|folder| folder.is_dir())
}

/// Whether the tests shall rewrite their expectations instead of failing: `MLC_BLESS=1`.
pub fn bless() -> bool {
    std::env::var("MLC_BLESS").is_ok_and(|value| value == "1")
}

/// The folders inside a folder, sorted by name.
///
/// # Errors
/// When the folder can't be listed.
pub fn subfolders(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}
