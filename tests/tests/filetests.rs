//! Every text test under `tests/filetests/`, and that there is one for every operator.

use mlc_ir::OpKind;
use mlc_ir::parallel;
use mlc_tests::filetest::{FileTest, Mode, collect};
use mlc_tests::paths;
use std::path::{Path, PathBuf};

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
    let failures = parallel::map(&files, 2, |path| {
        let name = path.strip_prefix(root()).unwrap().display();
        check(path).map_err(|message| format!("{name}: {message}")).err()
    });
    let failures: Vec<String> = failures.into_iter().flatten().collect();
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
    for kind in OpKind::ALL {
        let path = root().join("ops").join(format!("{}.mlc", kind.name()));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()));
        assert!(matches!(FileTest::parse(&path, &text).unwrap().mode, Mode::Run(_)), "{}", path.display());
        assert!(text.contains(kind.name()) || *kind == OpKind::Input, "{} is about something else", path.display());
    }
}
