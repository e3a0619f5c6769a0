//! What `mlc` says at a terminal: the summary of `mlc compile`, results as JSON, its version, completions and pages for `man`.

use crate::common::mlc;
use serde_json::Value;

/// A product with weights, and its softmax.
const MODEL: &str = r#"mlc 1
graph @t(%x: f32[2, 3]) -> ("y": f32[2, 2]) {
  %w = constant f32[3, 2] [1.0, -1.0, 0.5, 2.0, 0.25, -0.5]
  %a = matmul %x, %w {transpose_left = false, transpose_right = false} : f32[2, 2]
  %y = softmax %a {axis = 1, logarithm = false} : f32[2, 2]
  return %y
}
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.mlc"), MODEL).unwrap();
    folder
}

#[test]
fn compile_closes_with_what_users_ask_first() {
    let folder = folder();
    let folder = folder.path();
    let said = mlc(folder, 0, &["compile", "model.mlc", "--target", "cortex-m4", "-o", "m.tar"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "wrote m.tar: 2 kernels, 12 MACs, for cortex-m4, balanced");
    for (line, what, unit) in
        [(1, "  RAM ", "of working memory"), (3, "  flash ", "24 bytes of constants"), (5, "  time ", "instructions")]
    {
        assert!(lines[line].starts_with(what) && lines[line].contains(unit), "{said}");
        assert!(lines[line + 1].trim_start().starts_with("most: "), "{said}");
    }
    assert_eq!(lines.len(), 7, "{said}");
    let said = mlc(folder, 0, &["compile", "model.mlc", "--target", "x86-64-v3", "-o", "m.tar"]);
    assert!(said.contains(" cycles, as predicted"), "{said}");
    assert_eq!(mlc(folder, 0, &["compile", "model.mlc", "-o", "m.tar", "--quiet"]), "");
}

#[test]
fn large_weights_are_advised_upon() {
    let folder = folder();
    let folder = folder.path();
    let text = "mlc 1\ngraph @t(%x: f32[1, 2000]) -> (\"y\": f32[1, 2000]) {\n  \
                %w = constant f32[2000, 2000] random(seed = 1)\n  \
                %y = matmul %x, %w {transpose_left = false, transpose_right = false} : f32[1, 2000]\n  return %y\n}\n";
    std::fs::write(folder.join("large.mlc"), text).unwrap();
    let compile = ["compile", "large.mlc", "-o", "large.tar", "--target", "generic"];
    assert!(mlc(folder, 0, &compile).contains("of constants are C text"));
    // Of strings it takes ten times as many to be slow.
    assert!(!mlc(folder, 0, &[&compile[..4], &["--target", "x86-64-v3"]].concat()).contains("C text"));
    assert!(!mlc(folder, 0, &[&compile[..], &["--weights-as", "incbin"]].concat()).contains("C text"));
}

#[test]
fn c_compiler_prints_outputs_as_json() {
    let folder = folder();
    let said = mlc(folder.path(), 0, &["run", "model.mlc", "--json", "--quiet"]);
    let report: Value = serde_json::from_str(&said).unwrap();
    let output = &report["outputs"][0];
    assert_eq!((output["name"].as_str(), output["dtype"].as_str()), (Some("y"), Some("f32")));
    assert_eq!(output["shape"], serde_json::json!([2, 2]));
    let values: Vec<f64> = output["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert!((values[0] + values[1] - 1.0).abs() < 1e-6 && values.len() == 4, "{values:?}");
}

#[test]
fn c_compiler_relates_kernels_to_the_machine() {
    let folder = folder();
    let said = mlc(folder.path(), 0, &["bench", "model.mlc", "--per-kernel", "--runs", "3", "--json", "--quiet"]);
    let times: Value = serde_json::from_str(&said).unwrap();
    let peak = times["peak_gflops"].as_f64().unwrap();
    assert!(peak > 0.1, "{said}");
    let [product, softmax] = [0, 1].map(|number| &times["kernels"][number]);
    // x, the weights and the result.
    assert_eq!(product["bytes"], 4 * (6 + 6 + 4));
    let nanos = product["min_ns"].as_f64().unwrap().max(1.0);
    assert!((product["peak_share"].as_f64().unwrap() - 2.0 * 12.0 / nanos / peak).abs() < 1e-9, "{said}");
    assert!(softmax["gigabytes_per_second"].as_f64().unwrap() > 0.0 && softmax["peak_share"].is_null(), "{said}");
}

#[test]
fn shells_and_man_know_every_command() {
    let folder = folder();
    let folder = folder.path();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let text = mlc(folder, 0, &["completions", shell]);
        assert!(text.contains("per-layer") && text.contains("completions"), "{shell}");
    }
    let said = mlc(folder, 2, &["completions", "dos"]);
    assert!(said.contains("possible values"), "{said}");
    mlc(folder, 0, &["man", "-o", "man"]);
    let page = |name: &str| std::fs::read_to_string(folder.join("man").join(name)).unwrap();
    assert!(page("mlc.1").contains("mlc\\-verify(1)"), "{}", page("mlc.1"));
    assert!(page("mlc-verify.1").contains("per\\-layer"), "{}", page("mlc-verify.1"));
}

#[test]
fn the_version_tells_commit_and_formats() {
    let folder = folder();
    let folder = folder.path();
    let version = concat!("mlc ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(mlc(folder, 0, &["-V"]), version);
    let text = mlc(folder, 0, &["--version"]);
    let mut lines = text.strip_prefix(version).unwrap().lines();
    let commit = lines.next().unwrap().strip_prefix("commit: ").unwrap();
    assert!(commit == "unknown" || commit.len() >= 40, "{text}");
    assert_eq!(lines.next(), Some("formats: ark, lightnet, mlf, onnx, pnnx, relay, tennis, tflite"));
    // What mlc writes is the same whatever commit it is built from.
    mlc(folder, 0, &["compile", "model.mlc", "-o", "m.tar"]);
    let archive = String::from_utf8_lossy(&std::fs::read(folder.join("m.tar")).unwrap()).into_owned();
    assert!(commit == "unknown" || !archive.contains(&commit[..12]));
}
