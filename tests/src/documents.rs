//! The documents that are generated from the sources, so that they can't be wrong: operators, rules, targets and errors.

use mlc::targets;
use mlc_import::OperatorSupport;
use mlc_ir::{Code, ops_table};
use mlc_passes::Pipeline;
use std::collections::BTreeSet;
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

/// `docs/rules.md`: the stages of the optimiser, their passes, and the rules of each.
pub fn rules() -> String {
    let mut text = format!(
        "# The optimiser's rules\n\n[optimiser.md](optimiser.md) says how they work together; `mlc passes` prints the same. Rules in \
         *italics* round in another order, which `--fp strict` doesn't allow. {GENERATED}\n"
    );
    let mut listed = BTreeSet::new();
    for stage in Pipeline::default().stages {
        let _ = write!(text, "\n## {}\n\n{}.\n", stage.name, stage.summary);
        for pass in stage.passes() {
            let heading = format!("**{}**", pass.name);
            if !listed.insert(pass.name) {
                let _ = write!(text, "\n{heading}: as above.\n");
                continue;
            }
            let _ = write!(text, "\n{heading}: {}.\n", pass.summary);
            if !pass.rules.is_empty() {
                text += "\n| rule | why it holds |\n|---|---|\n";
            }
            for rule in &pass.rules {
                let mark = if rule.exactness.rounds_alike() { "" } else { "*" };
                let _ = writeln!(text, "| {mark}{}{mark} | {} |", rule.name, in_table(rule.reason));
            }
        }
    }
    text
}

/// A text in a cell of a table, as it stands.
fn in_table(text: &str) -> String {
    let is_formula = text.contains(['*', '|', '^', '_', '<']);
    // A bar ends a cell even within code.
    let text = text.replace('|', "\\|");
    if is_formula { format!("`{text}`") } else { text }
}

/// `docs/targets.md`: the machines that code can be generated for.
pub fn targets() -> String {
    let mut text = format!(
        "# Targets\n\nThe names that `--target` takes; `mlc targets` prints them, `mlc targets --json` more. `--on` takes those with an \
         emulator: [firmware.md](firmware.md), [computers.md](computers.md). {GENERATED}\n\n\
         | target | machine | options of the C compiler | a usual part |\n|---|---|---|---|\n"
    );
    for target in targets::all() {
        let is_host = target.name == "host";
        let summary = if is_host { "this machine, with vectors as wide as it has them" } else { &target.summary };
        let memories = target.memories.map_or(String::new(), |memories| {
            format!("{} KiB of flash, {} KiB of RAM", memories.flash_bytes >> 10, memories.ram_bytes >> 10)
        });
        let _ = writeln!(text, "| `{}` | {summary} | `{}` | {memories} |", target.name, target.c_flags.join(" "));
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
