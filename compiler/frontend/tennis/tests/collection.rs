//! Every module of the collection survives being written, and damaged ones are read or refused: the repository's own, and the whole
//! collection where it is at hand.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use bytes::Bytes;
use mlc_import::ImportOptions;
use mlc_ir::Generator;
use mlc_tennis::{Model, import, read, write};
use std::path::{Path, PathBuf};

/// Damaged files that are read and imported.
const DAMAGED: usize = 5000;

/// Largest file that is damaged: others are weights for the greater part.
const LARGEST: usize = 1 << 14;

fn modules() -> Vec<(PathBuf, Bytes)> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let named = std::env::var_os("MLC_CONFORMANCE_DIR").map(PathBuf::from);
    let collection = named.unwrap_or_else(|| repository.join("../shared/conformance"));
    let mut modules = Vec::new();
    for folder in [repository.join("tests/data/tennis"), collection.join("tennis")] {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for path in entries.map(|entry| entry.unwrap().path().join("model.tsm")).filter(|path| path.is_file()) {
            modules.push((path.clone(), std::fs::read(path).unwrap().into()));
        }
    }
    modules.sort();
    assert!(modules.len() > 80);
    modules
}

fn written(model: &Model) -> Bytes {
    let mut bytes = Vec::new();
    write(model, &mut bytes).unwrap();
    bytes.into()
}

#[test]
fn modules_are_written_as_they_were_read() {
    for (path, bytes) in modules() {
        let (model, _) = read(&bytes).unwrap_or_else(|errors| panic!("{}: {errors:?}", path.display()));
        let new = written(&model);
        let (again, notes) = read(&new).unwrap();
        assert_eq!(again, model, "{}", path.display());
        assert_eq!(notes, [], "{}", path.display());
        assert_eq!(written(&again), new, "{}", path.display());
    }
}

#[test]
fn weights_are_parts_of_the_file() {
    for (path, bytes) in modules() {
        let (model, _) = read(&bytes).unwrap();
        let fields = model.nodes.iter().flat_map(|node| node.parameters.values()).flat_map(|value| &value.fields);
        for field in fields.filter(|field| !field.data.is_empty()) {
            assert!(bytes.as_ptr_range().contains(&field.data.as_ptr()), "{}", path.display());
        }
    }
}

#[test]
fn damaged_modules_are_imported_or_refused() {
    let modules: Vec<Bytes> = modules().into_iter().map(|(_, bytes)| bytes).filter(|b| b.len() <= LARGEST).collect();
    let mut random = Generator::new(7);
    let (mut read_back, mut imported, mut refused) = (0, 0, 0);
    for round in 0..DAMAGED {
        let bytes: Bytes = random.damaged(&modules[round % modules.len()]).into();
        let model = match read(&bytes) {
            Ok((model, _)) => model,
            Err(errors) => {
                assert!(errors.iter().any(|error| error.is_error() && error.location.byte_offset.is_some()));
                refused += 1;
                continue;
            }
        };
        assert_eq!(read(&written(&model)).unwrap().0, model);
        read_back += 1;
        match import(&model, &ImportOptions::default()) {
            Ok(found) => {
                mlc_ir::verify(&found.graph).unwrap_or_else(|errors| panic!("{errors:?}"));
                imported += 1;
            }
            Err(errors) => assert!(errors.iter().any(|error| error.is_error() && !error.message.is_empty())),
        }
    }
    assert!(refused > 1000 && imported > 500 && read_back > imported, "{refused}, {read_back}, {imported}");
}
