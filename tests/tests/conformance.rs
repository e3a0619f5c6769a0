//! The repository's own models, each from its file to the original framework's numbers; and damaged files. All models run on the
//! generic target, PNNX's also on others: the `conformance` program runs every format on every target.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc_tests::conformance::{Status, failures, run, summary};
use mlc_tests::mode::Mode;
use mlc_tests::paths;

/// Every case of the folder passes: a refusal is a failure too, for what the repository carries is supported.
fn check(format: &str, mode: &Mode) {
    let outcomes = run(&paths::data(), format, mode, "", 2).unwrap();
    assert!(!outcomes.is_empty(), "there are no cases of {format}");
    let all = outcomes.iter().all(|outcome| outcome.status == Status::Passed);
    assert!(all, "{format} on {}: {}\n{}", mode.name, summary(&outcomes), failures(&outcomes));
}

#[test]
fn models_on_the_generic_target() {
    check("pnnx", &Mode::generic(false));
    check("onnx", &Mode::generic(false));
    check("relay", &Mode::generic(false));
}

#[test]
fn models_on_the_host() {
    check("pnnx", &Mode::host(false));
    check("relay", &Mode::host(false));
}

#[test]
fn models_with_the_schedules_of_a_microcontroller() {
    check("pnnx", &Mode::microcontroller("cortex-m4", false).unwrap());
}

#[test]
fn damaged_files() {
    check("pnnx-malformed", &Mode::generic(false));
    check("onnx-malformed", &Mode::generic(false));
    check("relay-malformed", &Mode::generic(false));
}
