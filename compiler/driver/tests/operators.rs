//! Described operators on the command line: `--op-descriptions` and the options beside it.

use std::path::{Path, PathBuf};

/// A case of the repository.
fn case(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/custom-operators").join(name)
}

/// Status and output of `mlc` in a case's folder: standard output of a success, else standard error.
fn mlc(case: &Path, arguments: &[&str]) -> (i32, String) {
    let output = crate::common::output(case, arguments);
    let text = if output.status.success() { output.stdout } else { output.stderr };
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[track_caller]
fn expect(case: &Path, arguments: &[&str], status: i32, parts: &[&str]) {
    let (found, text) = mlc(case, arguments);
    assert_eq!(found, status, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} isn't in {text}");
    }
}

#[test]
fn a_description_makes_a_model_known_to_every_command() {
    let folder = case("non_max_suppression");
    expect(&folder, &["inspect", "model.onnx"], 1, &["NonMaxSuppression"]);
    let described = ["model.onnx", "--op-descriptions", "op.json"];
    let with = |command: &'static str, more: &[&'static str]| [&[command], &described[..], more].concat();
    expect(&folder, &with("inspect", &[]), 0, &["rows"]);
    let files = ["--input", "boxes=input_0.npy", "--input", "logits=input_1.npy"];
    expect(&folder, &[&with("run", &[]), &files[..]].concat(), 0, &["rows"]);
    let known = ["--expect", "rows=output_0.npy"];
    expect(&folder, &[&with("verify", &[]), &files[..], &known[..]].concat(), 0, &["rows"]);
    let output = tempfile::tempdir().unwrap();
    let tar = output.path().join("model.tar").display().to_string();
    expect(&folder, &[&with("compile", &["-o"])[..], &[tar.as_str()]].concat(), 0, &[]);
    expect(&folder, &["run", &tar], 0, &["rows"]);
    expect(&folder, &["run", &tar, "--op-descriptions", "op.json"], 2, &["the archive is compiled"]);
}

#[test]
fn descriptions_are_checked_before_a_model_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let text =
            format!("{{\"optype\": \"{name}_gpu\", \"arch\": \"gpu\", \"tensors_in\": [], \"tensors_out\": []}}");
        std::fs::write(folder.path().join(format!("{name}.json")), text).unwrap();
    }
    let arguments = ["compile", "missing.onnx", "--op-descriptions", "."];
    let (status, said) = mlc(folder.path(), &arguments);
    assert_eq!(status, 1);
    for part in ["a.json", "b.json", "(unknown-value)", "'a_gpu' needs a `params`", "'b_gpu' needs a `author`"] {
        assert!(said.contains(part), "{part} isn't in {said}");
    }
    assert!(!said.contains("missing.onnx"), "{said}");
}

#[test]
fn faults_point_to_the_model_and_to_the_description() {
    let source = case("non_max_suppression");
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(source.join("op.json")).unwrap();
    let text = text.replace("boxes->dims[2] == 4", "boxes->dims[2] == 5");
    std::fs::write(folder.path().join("op.json"), text).unwrap();
    std::fs::copy(source.join("model.onnx"), folder.path().join("model.onnx")).unwrap();
    let parts = ["nms", "a box has 4 numbers, not 4", "op.json:", "`check` of input 'boxes' says so", "dims[2] == 5"];
    expect(folder.path(), &["compile", "model.onnx", "--op-descriptions", "op.json"], 1, &parts);
}

#[test]
fn names_are_mapped_to_what_is_described() {
    let folder = case("vendor_relu");
    let described = ["compile", "model.onnx", "--emit", "ir", "--op-descriptions", "op.json"];
    let with = |more: &[&'static str]| [&described[..], more].concat();
    expect(&folder, &with(&[]), 1, &["Relu", "--op-override"]);
    expect(&folder, &with(&["--op-override"]), 0, &["Relu_cpu_call"]);
    let mapped = ["--op-override", "--op-map"];
    expect(&folder, &with(&[mapped[0], mapped[1], "Relu=Relu_cpu"]), 0, &["Relu_cpu_call"]);
    expect(&folder, &with(&[mapped[0], mapped[1], "Relu=Clip"]), 2, &["'Clip', which isn't described", "Relu_cpu"]);
    let parts = ["the parameter 'slope', which 'Relu_cpu' doesn't have"];
    expect(&folder, &with(&[mapped[0], mapped[1], "Relu=Relu,alpha=slope"]), 2, &parts);
    expect(&folder, &["compile", "model.onnx", "--op-override"], 2, &["--op-descriptions"]);
}
