//! The documents that are generated from the sources, so that they can't be wrong: operators and errors.

use mlc_import::OperatorSupport;
use mlc_ir::{Code, ops_table};
use std::fmt::Write as _;

const GENERATED: &str = "Generated from the sources by `MLC_BLESS=1 cargo test -p mlc-tests`; don't edit.";

/// `docs/ops.md`: every operator of the intermediate representation, and those of the formats with their support.
pub fn operators() -> String {
    let mut text = ops_table();
    text += "\n# Operators of ONNX models\n\n";
    text += "Since which version of the operator set an operator is supported; `mlc ops --format onnx` prints the same.\n\n";
    text += "| operator | since |\n|---|---:|\n";
    let onnx = mlc_onnx::operator_support();
    for operator in onnx.iter().filter(|operator| operator.refused.is_none()) {
        let since = operator.since.map_or_else(String::new, |since| since.to_string());
        let _ = writeln!(text, "| {} | {since} |", full_name(operator));
    }
    text += &refused(&onnx);
    let others = [
        ("PNNX models", mlc_pnnx::operator_support()),
        ("Relay texts", mlc_relay::operator_support()),
        ("ARK models", mlc_ark::operator_support()),
        ("LightNet models", mlc_lightnet::operator_support()),
        ("TenniS modules", mlc_tennis::operator_support()),
        ("TensorFlow Lite models", mlc_tflite::operator_support()),
    ];
    for (files, support) in others {
        let names: Vec<String> = support.iter().filter(|operator| operator.refused.is_none()).map(full_name).collect();
        let _ = write!(text, "\n# Operators of {files}\n\n{}\n{}", names.join(", "), refused(&support));
    }
    format!("{text}\n{GENERATED}\n")
}

fn full_name(operator: &OperatorSupport) -> String {
    let OperatorSupport { domain, name, .. } = operator;
    if domain.is_empty() { format!("`{name}`") } else { format!("`{domain}.{name}`") }
}

/// The operators that are known but can't be compiled, with the reasons.
fn refused(operators: &[OperatorSupport]) -> String {
    let mut rows = String::new();
    for operator in operators {
        if let Some(reason) = operator.refused {
            let _ = writeln!(rows, "| {} | {reason} |", full_name(operator));
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!("\nRefused, whatever the model:\n\n| operator | reason |\n|---|---|\n{rows}")
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
