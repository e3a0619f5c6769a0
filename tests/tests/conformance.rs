//! The repository's own models, each from its file to the original framework's numbers, on every target; and damaged files.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc_tests::conformance::{Outcome, Status, failures, run, summary};
use mlc_tests::mode::Mode;
use mlc_tests::paths;

/// Cases that mlc refuses today. A case that passes must leave this list.
const REFUSED: [&str; 0] = [];

/// Every case of the folder passes, but for those that are refused on purpose.
fn check(format: &str, mode: &Mode) {
    let outcomes = run(&paths::data().join(format), mode, "", 2).unwrap();
    assert!(!outcomes.is_empty(), "there are no cases of {format}");
    let unexpected = |outcome: &Outcome| {
        let listed = REFUSED.contains(&outcome.case.as_str());
        match outcome.status {
            Status::Passed => listed,
            Status::Refused(_) => !listed,
            Status::Wrong(_) => true,
        }
    };
    let unexpected: Vec<Outcome> = outcomes.iter().filter(|outcome| unexpected(outcome)).cloned().collect();
    let names: Vec<&str> = unexpected.iter().map(|outcome| outcome.case.as_str()).collect();
    assert!(
        unexpected.is_empty(),
        "{format} on {}: {}; unexpected: {}\n{}",
        mode.name,
        summary(&outcomes),
        names.join(", "),
        failures(&unexpected)
    );
}

#[test]
fn models_on_the_generic_target() {
    check("pnnx", &Mode::generic(false));
}

#[test]
fn models_on_the_host() {
    check("pnnx", &Mode::host(false));
}

#[test]
fn damaged_files() {
    check("pnnx-malformed", &Mode::generic(false));
}
