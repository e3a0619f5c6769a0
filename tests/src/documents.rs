//! The documents that are generated from the sources, so that they can't be wrong: operators and errors.

use mlc_ir::{Code, Generator, OpKind};
use std::fmt::Write as _;

const GENERATED: &str = "Generated from the sources by `MLC_BLESS=1 cargo test -p mlc-tests`; don't edit.";

/// `docs/ops.md`: every operator of the intermediate representation.
pub fn operators() -> String {
    let mut text = format!("# Operators of the intermediate representation\n\n{GENERATED}\n");
    for &kind in OpKind::ALL {
        let (sample, _) = kind.sample(&mut Generator::new(1));
        let category = format!("{:?}", sample.category()).to_lowercase();
        let documentation = kind.documentation();
        let prefix = format!("`{}`: ", kind.name());
        let body = documentation.strip_prefix(&prefix).unwrap_or(&documentation);
        let _ = write!(text, "\n## {}\n\n*{category}* · {body}\n", kind.name());
        if !kind.field_descriptions().is_empty() {
            text += "\n| field | meaning |\n|---|---|\n";
        }
        for (name, meaning) in kind.field_descriptions() {
            let _ = writeln!(text, "| `{name}` | {} |", meaning.replace('|', "\\|"));
        }
    }
    text
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
