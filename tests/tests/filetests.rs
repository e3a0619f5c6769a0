//! Every text test under `tests/filetests/`, and that there is one for every operator.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc_ir::OpKind;
use mlc_tests::filetest::{FileTest, Mode, collect};
use mlc_tests::paths;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn root() -> PathBuf {
    paths::repository().join("tests/filetests")
}

fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    FileTest::parse(path, &text)?.check()
}

/// Runs all tests of an area, two at a time, and reports all that fail.
fn run(area: &str) {
    let files = collect(&root().join(area)).unwrap();
    assert!(!files.is_empty(), "there is no test in {area}");
    let (next, failures) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(message) = check(path) {
                        let name = path.strip_prefix(root()).unwrap().display();
                        failures.lock().unwrap().push(format!("{name}: {message}"));
                    }
                }
            });
        }
    });
    let mut failures = failures.into_inner().unwrap();
    failures.sort();
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), files.len(), failures.join("\n"));
}

#[test]
fn text_form_and_verifier() {
    run("ir");
}

#[test]
fn operators() {
    run("ops");
}

#[test]
fn optimiser() {
    run("passes");
}

#[test]
fn code_generator() {
    run("codegen");
}

#[test]
fn every_operator_has_a_test_that_runs_its_code() {
    for kind in OpKind::OWN {
        let path = root().join("ops").join(format!("{}.mlc", kind.name()));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()));
        assert!(matches!(FileTest::parse(&path, &text).unwrap().mode, Mode::Run(_)), "{}", path.display());
        assert!(text.contains(kind.name()) || *kind == OpKind::Input, "{} is about something else", path.display());
    }
}
