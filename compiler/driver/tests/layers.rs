//! What every kernel computes: `mlc run --layers`, `mlc verify --per-layer`, and the hook of the generated code that both go by.

use crate::common::mlc;
use mlc::npy;
use mlc_ir::{DType, Tensor, TensorType};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Three products in a row, `b` of which has a function that no other kernel calls. `@2` is a factor.
const MODEL: &str = r#"mlc 1
graph @chain(%x: f32[2, 3]) -> ("y": f32[2, 2]) {
  %u = constant f32[3, 4] [1.0, -1.0, 0.5, 2.0, 0.25, -0.5, 1.0, 1.0, -2.0, 0.5, 0.75, -1.5]
  %v = constant f32[4, 2] [0.5, -0.25, 1.0, 0.75, -1.0, 0.5, 0.25, 0.125]
  %w = constant f32[2, 2] [@2, -1.0, 0.5, 0.75]
  %a = matmul %x, %u {transpose_left = false, transpose_right = false} : f32[2, 4] from("a")
  %r = unary %a {function = relu} : f32[2, 4] from("r")
  %b = matmul %r, %v {transpose_left = false, transpose_right = false} : f32[2, 2] from("b")
  %t = unary %b {function = tanh} : f32[2, 2] from("t")
  %y = matmul %t, %w {transpose_left = false, transpose_right = false} : f32[2, 2] from("y")
  return %y
}
"#;

/// Two rows that are joined, so that one kernel's result has gaps between its rows, and a loop.
const GAPS: &str = r#"mlc 1
graph @gaps(%x: f32[2, 3]) -> ("y": f32[2, 5]) {
  %u = constant f32[3, 2] [1.0, -1.0, 0.5, 2.0, 0.25, -0.5]
  %a = matmul %x, %u {transpose_left = false, transpose_right = false} : f32[2, 2] from("a")
  %e = unary %x {function = relu} : f32[2, 3] from("e")
  %y = concat %a, %e {axis = 1} : f32[2, 5] from("y")
  return %y
}
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("model.mlc", &MODEL.replace("@2", "2.0"));
    write("other.mlc", &MODEL.replace("@2", "2.5"));
    write("gaps.mlc", GAPS);
    let ty = TensorType::new(DType::F32, [2, 3]);
    let input = Tensor::from_floats(ty, vec![1.0, 2.0, -1.0, 0.5, -0.5, 0.25]);
    std::fs::write(folder.path().join("x.npy"), npy::format(&input)).unwrap();
    folder
}

fn array(folder: &Path, name: &str, shape: &[usize]) -> Vec<f64> {
    npy::read_tensor(&folder.join(name), &TensorType::new(DType::F32, shape)).unwrap().to_floats()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The names under a key of a list of objects.
fn names<'v>(list: &'v Value, key: &str) -> Vec<&'v str> {
    list.as_array().unwrap().iter().map(|entry| entry[key].as_str().unwrap_or("")).collect()
}

#[test]
fn c_compiler_writes_what_every_kernel_computes() {
    let folder = folder();
    let folder = folder.path();
    for model in ["model.mlc", "model.tar", "packed.tar"] {
        match model {
            "model.tar" => drop(mlc(folder, 0, &["compile", "model.mlc", "-o", model])),
            "packed.tar" => drop(mlc(folder, 0, &["compile", "model.mlc", "--interface-api", "packed", "-o", model])),
            _ => {}
        }
        let run = ["run", model, "--input", "x.npy", "--output-dir", "out", "--layers", "layers"];
        mlc(folder, 0, &run);
        let list = json(&std::fs::read_to_string(folder.join("layers/layers.json")).unwrap());
        assert_eq!(names(&list, "file"), ["kernels/a.npy", "kernels/b.npy", "kernels/y.npy"], "{model}");
        assert_eq!(array(folder, "layers/kernels/a.npy", &[2, 4]), [3.5, 0.0, 1.75, 5.5, 0.0, 0.0, 0.0, 0.125]);
        assert_eq!(array(folder, "layers/kernels/y.npy", &[2, 2]), array(folder, "out/y.npy", &[2, 2]), "{model}");
        // An archive doesn't hold the model's own values.
        let values = if model == "model.mlc" { ["r", "t", "y"] } else { [""; 3] };
        assert_eq!(names(&list, "value"), values, "{model}");
        if model == "model.mlc" {
            assert_eq!(list[0]["value_file"], "values/r.npy");
            let tanh: Vec<f64> = array(folder, "layers/kernels/b.npy", &[2, 2]);
            assert_eq!(array(folder, "layers/values/t.npy", &[2, 2]), tanh);
            assert!((tanh[0] - (1.375f64).tanh()).abs() < 1e-6, "{tanh:?}");
        }
        std::fs::remove_dir_all(folder.join("layers")).unwrap();
    }
}

#[test]
fn c_compiler_writes_results_with_gaps_between_their_rows() {
    let folder = folder();
    let folder = folder.path();
    mlc(folder, 0, &["run", "gaps.mlc", "--input", "x.npy", "--output-dir", "out", "--layers", "layers"]);
    let whole = array(folder, "out/y.npy", &[2, 5]);
    let [a, e] =
        [("a", 2), ("e", 3)].map(|(name, width)| array(folder, &format!("layers/kernels/{name}.npy"), &[2, width]));
    assert_eq!(whole, [&a[..2], &e[..3], &a[2..], &e[3..]].concat());
    let said = mlc(folder, 0, &["verify", "gaps.mlc", "--per-layer", "--input", "x.npy"]);
    assert!(said.contains("no kernel is off by itself"), "{said}");
}

#[test]
fn c_compiler_compares_every_kernel() {
    let folder = folder();
    let folder = folder.path();
    let verify = ["verify", "model.mlc", "--input", "x.npy", "--per-layer"];
    let said = mlc(folder, 0, &verify);
    assert!(said.starts_with("own error"), "{said}");
    for text in ["a (matmul with epilogue): r\n", "no kernel is off by itself\n", "y: ok, 4 elements"] {
        assert!(said.contains(text), "'{text}' isn't in: {said}");
    }
    let found = json(&mlc(folder, 0, &[&verify[..], &["--json"]].concat()));
    assert_eq!(names(&found["kernels"], "kernel"), ["a", "b", "y"]);
    assert_eq!(names(&found["outputs"], "name"), ["y"]);
    assert_eq!(found["kernels"][0]["own"]["max_absolute"], 0.0);
}

/// A C compiler that has a mistake in one function of the model's kernels.
#[cfg(unix)]
fn wrong_compiler(folder: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = folder.join("wrong-cc");
    let text = "#!/bin/sh\nfor file in \"$@\"; do\n  case \"$file\" in\n    *_lib1.c) sed -i 's/tanhf(/sinhf(/' \"$file\" ;;\n  \
                esac\ndone\nexec cc \"$@\"\n";
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
#[cfg(unix)]
fn c_compiler_that_is_wrong_about_one_kernel_is_told_from_its_victims() {
    let folder = folder();
    let folder = folder.path();
    let mut command = Command::new(env!("CARGO_BIN_EXE_mlc"));
    command.args(["verify", "model.mlc", "--target", "generic", "--input", "x.npy", "--per-layer"]);
    command.current_dir(folder).env("CC", wrong_compiler(folder)).env_remove("RUST_BACKTRACE");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    // The worst first: the culprit; its victim has no error of its own, but one that has accumulated.
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines[1].contains(" b (matmul with epilogue)"), "{out}");
    let victim = lines.iter().find(|line| line.contains(" y (matmul)")).unwrap();
    assert!(victim.starts_with("none ") && victim.matches("none").count() == 1, "{out}");
    assert!(out.contains("the first kernel that is off by itself is b\n"), "{out}");
    assert!(err.contains("kernel 'b': 3 of 4 elements are off on its own operands"), "{err}");
    assert!(!err.contains("more kernels") && err.contains("output 'y'"), "{err}");
}

#[test]
fn c_compiler_compares_kernels_with_another_model() {
    let folder = folder();
    let folder = folder.path();
    let verify = ["verify", "model.mlc", "--input", "x.npy", "--per-layer", "--against"];
    let said = mlc(folder, 0, &[&verify[..], &["model.mlc"]].concat());
    assert!(said.contains("; from t: ") && said.contains("no kernel is off the other model\n"), "{said}");
    let said = mlc(folder, 1, &[&verify[..], &["other.mlc"]].concat());
    assert!(said.contains("the first kernel that is off the other model is y\n"), "{said}");
    assert!(said.contains("kernel 'y': its result isn't that of 'other.mlc'"), "{said}");
    std::fs::write(folder.join("third.mlc"), GAPS.replace("f32[2, 3]) ->", "f32[2, 3], %z: f32[1]) ->")).unwrap();
    let said = mlc(folder, 2, &[&verify[..], &["third.mlc"]].concat());
    assert!(said.contains("'third.mlc' has 2 inputs, the model has 1"), "{said}");
}

#[test]
fn results_that_cannot_be_seen_are_refused() {
    let folder = folder();
    let folder = folder.path();
    mlc(folder, 0, &["compile", "model.mlc", "--executor", "graph", "-o", "graph.tar"]);
    let said = mlc(folder, 2, &["run", "graph.tar", "--input", "x.npy", "--layers", "layers"]);
    assert!(said.contains("the results of kernels can't be seen in this archive"), "{said}");
    let said = mlc(folder, 2, &["verify", "graph.tar", "--per-layer"]);
    assert!(said.contains("--per-layer compares with the graph"), "{said}");
    let said = mlc(folder, 2, &["verify", "model.mlc", "--against", "model.mlc"]);
    assert!(said.contains("--per-layer"), "{said}");
}

#[test]
fn c_compiler_sees_kernels_of_boards() {
    if Command::new("qemu-system-arm").arg("--version").output().is_err() {
        eprintln!("skipped: there is no qemu-system-arm");
        return;
    }
    let folder = folder();
    let folder = folder.path();
    let said = mlc(folder, 0, &["verify", "model.mlc", "--on", "cortex-m4", "--input", "x.npy", "--per-layer"]);
    assert!(said.contains("no kernel is off by itself\n"), "{said}");
    mlc(folder, 0, &["run", "model.mlc", "--on", "cortex-m4", "--input", "x.npy", "--layers", "layers"]);
    assert_eq!(array(folder, "layers/kernels/a.npy", &[2, 4]), [3.5, 0.0, 1.75, 5.5, 0.0, 0.0, 0.0, 0.125]);
}

/// Firmware that counts how often each kernel has run.
const FIRMWARE: &str = r#"
#include "tvmgen_default.h"
#include <stdio.h>

static int kernels[8];
static const float *last;

void on_kernel(int32_t kernel, int32_t result, const void *address);

void on_kernel(int32_t kernel, int32_t result, const void *address) {
  kernels[kernel] += result + 1;
  last = (const float *)address;
}

int main(void) {
  _Alignas(16) static float x[6] = {1.0f, 2.0f, -1.0f, 0.5f, -0.5f, 0.25f};
  _Alignas(16) static float y[4];
  struct tvmgen_default_inputs inputs = {x};
  struct tvmgen_default_outputs outputs = {y};
  if (tvmgen_default_run(&inputs, &outputs) != 0) {
    return 1;
  }
  printf("%d %d %d %d\n", kernels[0], kernels[1], kernels[2], kernels[3]);
  return last == y ? 0 : 2;
}
"#;

/// The hook is a function of the firmware, and nothing at all without the macro.
#[test]
fn c_compiler_calls_the_hook_behind_every_kernel() {
    let folder = folder();
    let folder = folder.path();
    mlc(folder, 0, &["compile", "model.mlc", "--emit", "dir", "-o", "c"]);
    std::fs::write(folder.join("main.c"), FIRMWARE).unwrap();
    let cc = |arguments: &[&str]| {
        let mut command = Command::new("cc");
        command.current_dir(folder).args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2"]);
        command.args(["-Ic/codegen/host/include", "-Ic/runtime/include"]).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let source = std::fs::read_to_string(folder.join("c/codegen/host/src/default_lib1.c")).unwrap();
    let sources = ["lib0", "lib1", "lib2"].map(|file| format!("c/codegen/host/src/default_{file}.c"));
    let sources: Vec<&str> = sources.iter().map(String::as_str).filter(|path| folder.join(path).exists()).collect();
    cc(&[&["-DTVMGEN_DEFAULT_PROFILE=on_kernel", "main.c", "-o", "program"][..], &sources, &["-lm"]].concat());
    let output = Command::new(folder.join("program")).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(0), &b"1 1 1 0\n"[..]));
    let without: String =
        source.lines().filter(|line| !line.contains("_PROFILE(")).map(|line| line.to_owned() + "\n").collect();
    assert!(without.len() < source.len());
    std::fs::write(folder.join("without.c"), without.replace("#else\n#endif", "#endif")).unwrap();
    std::fs::write(folder.join("with.c"), source).unwrap();
    for file in ["with", "without"] {
        cc(&["-S", "-fno-ident", &format!("{file}.c"), "-o", &format!("{file}.s")]);
    }
    let assembly = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    let body = |text: String| text.lines().filter(|line| !line.contains(".file")).map(String::from).collect::<Vec<_>>();
    assert_eq!(body(assembly("with.s")), body(assembly("without.s")));
}
