//! The generated documents are what the sources say now. `MLC_BLESS=1` writes them.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc_tests::{documents, paths};

fn check(name: &str, text: &str) {
    let path = paths::repository().join("docs").join(name);
    if paths::bless() {
        std::fs::write(&path, text).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(present == text, "docs/{name} is stale: run MLC_BLESS=1 cargo test -p mlc-tests --test documents");
}

#[test]
fn the_operators_are_up_to_date() {
    check("ops.md", &documents::operators());
}

#[test]
fn the_errors_are_up_to_date() {
    check("errors.md", &documents::errors());
}
