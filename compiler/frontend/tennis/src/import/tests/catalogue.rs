//! Every operator that is imported has a case of TenniS's own runtime in the repository, or a test in [`values`](super::values).

use super::values::TESTS;
use crate::operator_support;
use std::collections::BTreeSet;
use std::path::Path;

/// The operators of the repository's cases, which end in a quotation mark each in their descriptions.
fn operators_of_cases() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/data/tennis");
    let mut operators = BTreeSet::new();
    for case in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(case.unwrap().path().join("case.json")).unwrap();
        let (_, list) = text.split_once("\"ops\": [").unwrap();
        let (list, _) = list.split_once(']').unwrap();
        operators.extend(list.split('"').skip(1).step_by(2).map(str::to_owned));
    }
    operators
}

#[test]
fn every_operator_is_tested() {
    let cases = operators_of_cases();
    assert!(cases.len() > 80, "{cases:?}");
    let imported = operator_support().into_iter().filter(|support| support.refused.is_none());
    let untested: Vec<&str> = imported
        .map(|support| support.name)
        .filter(|name| {
            *name != crate::Node::CONSTANT && !cases.contains(*name) && TESTS.iter().all(|(tested, _)| tested != name)
        })
        .collect();
    assert!(untested.is_empty(), "{untested:?}");
}

#[test]
fn operators_compute_what_was_worked_out() {
    for (_, test) in TESTS {
        test();
    }
}
