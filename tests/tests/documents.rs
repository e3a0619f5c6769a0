//! The generated documents are what the sources say now. `MLC_BLESS=1` writes them.

use mlc_ir::Code;
use mlc_tests::{documents, paths};
use std::path::Path;

fn check(name: &str, text: &str) {
    let path = paths::repository().join("docs").join(name);
    if paths::bless() {
        std::fs::write(&path, text).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(present == text, "docs/{name} is stale: run MLC_BLESS=1 cargo test -p mlc-tests documents::");
}

#[test]
fn the_operators_are_up_to_date() {
    check("ops.md", &documents::operators());
}

#[test]
fn the_rules_are_up_to_date() {
    check("rules.md", &documents::rules());
}

#[test]
fn the_targets_are_up_to_date() {
    check("targets.md", &documents::targets());
}

#[test]
fn the_errors_are_up_to_date() {
    check("errors.md", &documents::errors());
}

#[test]
fn the_page_on_schedules_quotes_what_is_generated() {
    let root = paths::repository();
    let page = std::fs::read_to_string(root.join("docs/schedules.md")).unwrap();
    let test = std::fs::read_to_string(root.join("tests/filetests/codegen/register-tile.mlc")).unwrap();
    let (graph, code) = test.split_once("// ==>\n").unwrap();
    let code: String = code.lines().map(|line| format!("{}\n", line.strip_prefix("// ").unwrap_or_default())).collect();
    let quotations: Vec<(&str, &str)> =
        page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect();
    assert!(quotations.len() > 5, "{quotations:?}");
    for (language, quotation) in quotations {
        let source = if language == "mlc" { graph } else { &code };
        assert!(source.contains(quotation), "docs/schedules.md quotes what the test doesn't have:\n{quotation}");
    }
}

/// All Rust sources of a folder, as one text.
fn sources(folder: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().unwrap() != "tests" {
            text += &sources(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text += &std::fs::read_to_string(&path).unwrap();
        }
    }
    text
}

#[test]
fn every_code_is_used_and_has_a_page() {
    let root = paths::repository();
    let text: String =
        ["compiler", "passes/src", "codegen/src"].iter().map(|folder| sources(&root.join(folder))).collect();
    for &code in Code::ALL {
        assert!(text.contains(&format!("Code::{}", code.title())), "{code} {} is never reported", code.title());
        assert!(code.page().trim().len() > 20, "{code} has no page");
    }
}
