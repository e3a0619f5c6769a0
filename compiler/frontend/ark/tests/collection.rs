//! Every model of the collection is read, and every damaged one refused: the repository's own, and the whole collection where it
//! is at hand.
#![allow(clippy::unwrap_used, missing_docs)]

use mlc_ark::model::{BufferIndex, Node, Operation, Tensor, TensorIndex};
use mlc_ark::{Dialect, Form, Model};
use mlc_ir::{Diagnostic, Generator};
use std::path::{Path, PathBuf};

/// Damaged files that are read.
const DAMAGED: usize = 5000;

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
    for path in damaged
        .iter()
        .filter(|path| !["index.json", "case.json"].contains(&path.file_name().unwrap().to_str().unwrap()))
    {
        let errors = mlc_ark::read(&std::fs::read(path).unwrap()).err();
        let errors = errors.unwrap_or_else(|| panic!("{} is accepted", path.display()));
        for error in &errors {
            println!("{}: {error}", path.file_name().unwrap().display());
            assert!(!error.location.to_string().is_empty(), "{}: {error}", path.display());
        }
    }
}

/// The file that a model is written as.
fn written(model: &Model, form: Form) -> Vec<u8> {
    let mut bytes = Vec::new();
    mlc_ark::write(model, form, &mut bytes).unwrap();
    bytes
}

/// What a model has, apart from how operations are spread over nodes, and where things stand in the file.
fn substance(model: &Model) -> impl PartialEq {
    let tensors = |indices: &[TensorIndex]| -> Vec<_> {
        let whole =
            |&index| (Tensor { buffer: BufferIndex(0), ..model.tensor(index).clone() }, model.buffer_of(index).clone());
        indices.iter().map(whole).collect()
    };
    let operations = model.operations().map(|operation| {
        let Operation { kind, name, is_virtual, reads, writes, results, arguments, .. } = operation;
        let used = [reads, writes, results].map(|list| tensors(list));
        (kind.clone(), name.clone(), *is_virtual, used, arguments.clone())
    });
    let counts = (model.tensors.len(), model.buffers.len());
    (model.rank, model.world_size, counts, operations.collect::<Vec<_>>())
}

#[test]
fn what_is_written_is_read_back_equal() {
    for path in models() {
        let model = mlc_ark::read(&std::fs::read(&path).unwrap()).unwrap();
        for form in [Form::Pretty, Form::Compact] {
            let bytes = written(&model, form);
            let again = mlc_ark::read(&bytes).unwrap_or_else(|errors| panic!("{}: {errors:#?}", path.display()));
            assert!(substance(&again) == substance(&model), "{}", path.display());
            assert!(again.warnings.is_empty(), "{}: {:?}", path.display(), again.warnings);
            let dialect = if model.dialect == Dialect::Model2026 { model.dialect } else { Dialect::Model2024b };
            assert_eq!(again.dialect, dialect, "{}", path.display());
            let is_plan = model.dialect == Dialect::Plan;
            if !is_plan && model.nodes.iter().all(|node| node.operations.len() == 1) {
                let neighbours = |model: &Model| -> Vec<_> {
                    model.nodes.iter().map(|node| (node.id, node.producers.clone(), node.consumers.clone())).collect()
                };
                assert_eq!(neighbours(&again), neighbours(&model), "{}", path.display());
            }
            let is_used = |node: &&Node| !node.consumers.is_empty();
            assert!(!is_plan || again.nodes.iter().filter(is_used).count() + 1 == again.nodes.len());
            assert_eq!(written(&again, form), bytes, "{}", path.display());
        }
    }
}

/// Files of the format's own tools are written as they were, byte for byte.
#[test]
fn files_are_written_as_the_formats_own_tools_do() {
    let mut equal = 0;
    for path in models() {
        let bytes = std::fs::read(&path).unwrap();
        let model = mlc_ark::read(&bytes).unwrap();
        let form = if bytes.contains(&b'\n') { Form::Pretty } else { Form::Compact };
        // Other dialects are written anew, and a buffer of this rank says so by one of two numbers.
        let own = format!("\"Rank\":{},\"SendTags\"", model.rank);
        if model.dialect == Dialect::Model2024b && !String::from_utf8_lossy(&bytes).contains(&own) {
            assert!(written(&model, form) == bytes, "{}", path.display());
            equal += 1;
        }
    }
    assert!(equal > 0);
}

/// Damage that leaves the text JSON: one digit becomes another.
fn change_number(bytes: &mut [u8], generator: &mut Generator) {
    let start = generator.range(0, bytes.len() - 1);
    if let Some(digit) = bytes[start..].iter_mut().find(|byte| byte.is_ascii_digit()) {
        *digit = generator.choose(b"0123456789");
    }
}

/// Any byte may be anything: a file is refused with a place, or read, and then written and read again.
#[test]
fn damage_anywhere_does_no_harm() {
    let files: Vec<Vec<u8>> = models().iter().map(|path| std::fs::read(path).unwrap()).collect();
    let mut generator = Generator::new(11);
    let mut refused = 0;
    for turn in 0..DAMAGED {
        let mut bytes = generator.damaged(&files[turn % files.len()]);
        if turn % 2 == 1 {
            bytes.clone_from(&files[turn % files.len()]);
            change_number(&mut bytes, &mut generator);
        }
        match mlc_ark::read(&bytes) {
            Ok(model) => assert!(mlc_ark::read(&written(&model, Form::Compact)).is_ok(), "turn {turn}"),
            Err(errors) => {
                refused += 1;
                assert!(errors.iter().any(Diagnostic::is_error), "turn {turn}");
                for error in errors {
                    assert_ne!(error.location.to_string(), "", "turn {turn}: {error}");
                }
            }
        }
    }
    assert!((1000..DAMAGED).contains(&refused), "{refused} of {DAMAGED} are refused");
}
