//! Models whose inputs and outputs are integers that stand for real numbers: what archives say of them, and how they are judged.

use crate::common::mlc;
use std::path::{Path, PathBuf};

fn case(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tflite/softmax_batch_int8").join(file)
}

/// The known output with its last elements changed.
fn changed(folder: &Path, name: &str, by: &[i8]) -> String {
    let mut bytes = std::fs::read(case("output_0.npy")).unwrap();
    let end = bytes.len();
    for (byte, by) in bytes[end - by.len()..].iter_mut().zip(by) {
        *byte = (*byte as i8 + by) as u8;
    }
    std::fs::write(folder.join(name), bytes).unwrap();
    name.to_owned()
}

#[test]
fn scales_reach_the_header_and_the_metadata() {
    let folder = tempfile::tempdir().unwrap();
    let model = case("model.tflite");
    mlc(folder.path(), 0, &["compile", model.to_str().unwrap(), "--emit", "dir", "-o", "net"]);
    let read = |path: &str| std::fs::read_to_string(folder.path().join("net").join(path)).unwrap();
    let header = read("codegen/host/include/tvmgen_default.h");
    let of_output: Vec<&str> =
        header.lines().filter(|line| line.starts_with("#define") && line.contains("_IDENTITY_")).collect();
    let [_, scale, zero_point] = of_output[..] else { panic!("{header}") };
    assert!(scale.ends_with("_SCALE 0.00390625f"), "{scale}");
    assert!(zero_point.ends_with("_ZERO_POINT (-128)"), "{zero_point}");
    let metadata: serde_json::Value = serde_json::from_str(&read("metadata.json")).unwrap();
    let main = &metadata["modules"]["default"]["memory"]["functions"]["main"][0];
    let output = main["outputs"].as_object().unwrap().values().next().unwrap();
    assert_eq!(output["quantization"], serde_json::json!({ "scale": 0.00390625, "zero_point": -128 }));
    let told = mlc(folder.path(), 0, &["inspect", model.to_str().unwrap()]);
    assert!(told.contains(", 0.00390625 * (integer + 128)"), "{told}");
}

#[test]
fn an_archive_keeps_them_for_those_who_compile_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let model = case("model.tflite");
    mlc(folder.path(), 0, &["compile", model.to_str().unwrap(), "-o", "net.tar"]);
    let told = mlc(folder.path(), 0, &["inspect", "net.tar", "--from", "relay"]);
    assert!(told.contains(", 0.00390625 * (integer + 128)"), "{told}");
}

#[test]
fn integers_are_judged_in_steps() {
    let folder = tempfile::tempdir().unwrap();
    let (model, input) = (case("model.tflite"), case("input_0.npy"));
    mlc(folder.path(), 0, &["compile", model.to_str().unwrap(), "-o", "net.tar"]);
    for subject in [model.to_str().unwrap(), "net.tar"] {
        let verify = |status: i32, expected: &str, more: &[&str]| {
            let own = ["verify", subject, "--input", input.to_str().unwrap(), "--expect", expected];
            mlc(folder.path(), status, &[&own[..], more].concat())
        };
        let text = verify(0, case("output_0.npy").to_str().unwrap(), &[]);
        assert!(text.contains(": equal, in steps of 0.00390625"), "{text}");
        let near = changed(folder.path(), "near.npy", &[1, -1]);
        let text = verify(0, &near, &[]);
        assert!(text.contains("2 off by one step of 0.00390625, none further; cosine 0.99"), "{text}");
        let text = verify(1, &near, &["--atol", "0"]);
        assert!(text.contains("2 of "), "{text}");
        let far = changed(folder.path(), "far.npy", &[1, 3]);
        let text = verify(1, &far, &[]);
        assert!(text.contains("1 further, by up to 3 steps"), "{text}");
        let json = verify(0, &near, &["--json"]);
        assert!(json.contains("\"off_by_one\": 2"), "{json}");
    }
}

/// The C that a model becomes.
fn code(model: &str, more: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(model);
    let own = ["compile", model.to_str().unwrap(), "--emit", "dir", "-o", "net"];
    mlc(folder.path(), 0, &[&own[..], more].concat());
    let sources = std::fs::read_dir(folder.path().join("net/codegen/host/src")).unwrap();
    sources.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn who_wants_another_rounding_names_its_reference() {
    let rounds = |model: &str, more: &[&str]| {
        let code = code(model, more);
        let helpers = ["mlc_round_to_integer", "mlc_rescale_twice", "mlc_rescale_once"];
        helpers.map(|name| code.matches(name).count() > 1)
    };
    // It quantises a float at first, and has a sigmoid: these are rounded to even whatever the reference.
    let onnx = "onnx/quantized_network_static/model.onnx";
    assert_eq!(rounds(onnx, &[]), [true, false, false]);
    assert_eq!(rounds(onnx, &["--int8-reference", "onnx"]), [true, false, false]);
    assert_eq!(rounds(onnx, &["--int8-reference", "tflm"]), [true, true, false]);
    assert_eq!(rounds(onnx, &["--int8-reference", "tflite-single-rounding"]), [true, false, true]);
    let tflite = "tflite/conv2d_same_3x3_s2_even_int8/model.tflite";
    assert_eq!(rounds(tflite, &[]), [false, true, false]);
    assert_eq!(rounds(tflite, &["--int8-reference", "onnx"]), [true, false, false]);
    assert_eq!(rounds(tflite, &["--int8-reference", "tflite-single-rounding"]), [false, false, true]);
}

/// What PyTorch rounds to the real numbers of integers is computed with these integers, between the first rounding and the last.
#[test]
fn fake_quantisation_of_pnnx_becomes_integer_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/pnnx/fake_quantized_convolutions");
    let model = data.join("model.pnnx.param");
    mlc(folder.path(), 0, &["compile", model.to_str().unwrap(), "--emit", "ir", "-o", "net.mlc"]);
    let text = std::fs::read_to_string(folder.path().join("net.mlc")).unwrap();
    let anchors: Vec<&str> = text.lines().filter(|line| line.contains("anchor = ")).collect();
    assert_eq!(anchors.len(), 3, "{text}");
    assert!(anchors.iter().all(|line| line.contains("sums = i32")), "{text}");
    assert!(anchors[..2].iter().all(|line| line.contains(": u8[")), "{text}");
}
