//! Every model of the collection is read, and every damaged one refused: the repository's own, and the whole collection where it
//! is at hand.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};

/// The files below the folders of this name whose names end so.
fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let named = std::env::var_os("MLC_CONFORMANCE_DIR").map(PathBuf::from);
    let collection = named.unwrap_or_else(|| repository.join("../shared/conformance"));
    let mut pending = vec![repository.join("tests/data").join(folder), collection.join(folder)];
    let mut found = Vec::new();
    while let Some(folder) = pending.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                pending.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn models() -> Vec<PathBuf> {
    files("ark", "model.json")
}

#[test]
fn models_are_read() {
    for path in models() {
        let read = mlc_ark::read(&std::fs::read(&path).unwrap());
        let model = read.unwrap_or_else(|errors| panic!("{}: {errors:#?}", path.display()));
        assert!(model.warnings.is_empty(), "{}: {:?}", path.display(), model.warnings);
    }
}

#[test]
fn damaged_models_are_refused() {
    let damaged = files("ark-malformed", ".json");
    for path in damaged.iter().filter(|path| !["index.json", "case.json"].contains(&path.file_name().unwrap().to_str().unwrap())) {
        let errors = mlc_ark::read(&std::fs::read(path).unwrap()).err();
        let errors = errors.unwrap_or_else(|| panic!("{} is accepted", path.display()));
        for error in &errors {
            println!("{}: {error}", path.file_name().unwrap().display());
            assert!(!error.location.to_string().is_empty(), "{}: {error}", path.display());
        }
    }
}
