//! The documents that are generated from the sources, so that they can't be wrong: operators and errors.

use mlc_ir::{Code, ops_table};
use std::fmt::Write as _;

const GENERATED: &str = "Generated from the sources by `MLC_BLESS=1 cargo test -p mlc-tests`; don't edit.";

/// `docs/ops.md`: every operator of the intermediate representation.
pub fn operators() -> String {
    format!("{}\n{GENERATED}\n", ops_table())
}

/// `docs/errors.md`: every code of a finding.
pub fn errors() -> String {
    let mut text = format!("# Errors and warnings\n\n`mlc explain MLC0101` prints one of these pages. {GENERATED}\n");
    for &code in Code::ALL {
        let _ = write!(text, "\n## {code} {}\n\n", code.title());
        for line in code.page().lines() {
            let _ = writeln!(text, "{}", line.trim());
        }
    }
    text
}
