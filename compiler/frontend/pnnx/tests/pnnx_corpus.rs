//! Reads and writes all PNNX models of the conformance data, where those stand beside the repository.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

use mlc_ir::{Code, Diagnostic};
use mlc_pnnx::{Model, read, to_bin, to_param_text};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

type Outcome = Result<(Model, Vec<Diagnostic>), Vec<Diagnostic>>;

/// The folders of one part of the conformance data by name; `None`, with a printed reason, if they aren't there.
fn cases(part: &str) -> Option<BTreeMap<String, PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance").join(part);
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: there are no conformance data in {}", folder.display());
        return None;
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    Some(paths.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path)).collect())
}

fn read_case(folder: &Path) -> Outcome {
    let param = std::fs::read(folder.join("model.pnnx.param")).unwrap();
    let bin = std::fs::read(folder.join("model.pnnx.bin")).ok();
    read(&param, bin.map(Into::into))
}

#[test]
fn models_come_back_byte_for_byte() {
    let Some(cases) = cases("pnnx") else { return };
    assert!(!cases.is_empty());
    let mut failures = Vec::new();
    for (name, folder) in &cases {
        let (model, diagnostics) = match read_case(folder) {
            Ok(read) => read,
            Err(diagnostics) => {
                failures.push(format!("{name}: {diagnostics:#?}"));
                continue;
            }
        };
        let param = to_param_text(&model).unwrap();
        let bin = to_bin(&model).unwrap();
        if !diagnostics.is_empty() {
            failures.push(format!("{name}: {diagnostics:#?}"));
        }
        if param.as_bytes() != std::fs::read(folder.join("model.pnnx.param")).unwrap() {
            failures.push(format!("{name}: another text:\n{param}"));
        }
        if bin != std::fs::read(folder.join("model.pnnx.bin")).unwrap() {
            failures.push(format!("{name}: another archive"));
        }
        let (back, _) = read(param.as_bytes(), Some(bin.into())).unwrap();
        if back != model {
            failures.push(format!("{name}: another model is read back"));
        }
    }
    assert!(failures.is_empty(), "{} of {}:\n{}", failures.len(), cases.len(), failures.join("\n"));
}

/// Code, line and byte offset of the first error of the malformed models that must be refused.
const REFUSED: &[(&str, Code, Option<u32>, Option<u64>)] = &[
    ("attr_dim_exceeds_i32", Code::NumberOutOfRange, Some(4), None),
    ("attr_missing_entry", Code::WeightMissing, Some(6), None),
    ("attr_overflow_dims", Code::NumberOutOfRange, Some(4), None),
    ("attr_size_mismatch_large", Code::WeightSizeMismatch, Some(4), None),
    ("attr_size_mismatch_small", Code::WeightSizeMismatch, Some(4), None),
    ("attr_truncated_zip", Code::ArchiveDamaged, None, Some(90)),
    ("counts_not_numeric", Code::Syntax, Some(2), None),
    ("cycle_two_ops", Code::UndefinedValue, Some(4), None),
    ("dangling_operand", Code::UndefinedValue, Some(5), None),
    ("expr_missing_operand", Code::Syntax, Some(4), None),
    ("expr_unbalanced", Code::Syntax, Some(4), None),
    ("forward_reference", Code::UndefinedValue, Some(4), None),
    ("input_with_inputs", Code::UndefinedValue, Some(3), None),
    ("line_too_few_tokens", Code::CountMismatch, Some(5), None),
    ("magic_ncnn_trailing_text", Code::Syntax, Some(1), None),
    ("nul_byte_in_line", Code::Syntax, Some(5), None),
    ("op_count_too_large", Code::CountMismatch, Some(2), None),
    ("op_count_too_small", Code::CountMismatch, Some(7), None),
    ("operand_count_mismatch", Code::CountMismatch, Some(2), None),
    ("self_loop", Code::UndefinedValue, Some(5), None),
    ("zip_data_descriptor", Code::ArchiveDamaged, None, Some(584)),
    ("zip_empty_file", Code::WeightMissing, Some(4), None),
    ("zip_size_wraps_u64", Code::ArchiveDamaged, None, Some(368)),
];

/// Malformed only for those who know the operators.
const BEYOND_THIS_LEVEL: &[&str] = &["linear_missing_weight_attr"];

#[test]
fn malformed_models_are_refused_at_the_right_place() {
    let Some(cases) = cases("pnnx-malformed") else { return };
    for (name, folder) in &cases {
        let start = Instant::now();
        let outcome = read_case(folder);
        assert!(start.elapsed() < Duration::from_secs(1), "{name} took {:?}", start.elapsed());
        let case = std::fs::read(folder.join("case.json")).unwrap();
        let case: serde_json::Value = serde_json::from_slice(&case).unwrap();
        match case["expect"].as_str().unwrap() {
            "accept" => assert!(outcome.is_ok(), "{name}: {outcome:#?}"),
            "error" if BEYOND_THIS_LEVEL.contains(&name.as_str()) => assert!(outcome.is_ok(), "{name}: {outcome:#?}"),
            "error" => check_refused(name, outcome),
            _ => {
                let diagnostics = outcome.map_or_else(|errors| errors, |(_, warnings)| warnings);
                assert!(!diagnostics.is_empty(), "{name} is accepted without a word");
            }
        }
    }
}

fn check_refused(name: &str, outcome: Outcome) {
    let diagnostics = outcome.err().unwrap_or_else(|| panic!("{name} is accepted"));
    let first = diagnostics.iter().find(|diagnostic| diagnostic.is_error()).unwrap();
    let found = (name, first.code, first.location.line, first.location.byte_offset);
    let expected = REFUSED.iter().find(|refused| refused.0 == name);
    assert_eq!(Some(&found), expected, "{diagnostics:#?}");
}
