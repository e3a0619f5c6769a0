//! `mlc quantize` from a model's file to code that runs, and to a file that onnxruntime runs. What lacks its tools here is skipped, and
//! says so.

use crate::common::mlc;
use mlc::npy;
use mlc_ir::{DType, Generator, Tensor, TensorType};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUNS: usize = 4;

fn case(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/pnnx/net_mlperftiny_dscnn_kws").join(file)
}

fn input_type() -> TensorType {
    let array = npy::parse(&fs::read(case("input_0.npy")).unwrap().into()).unwrap();
    TensorType::new(DType::F32, &array.shape)
}

/// A folder of calibration data: the known input, louder and softer, with noise.
fn calibration(folder: &Path) {
    let ty = input_type();
    let known = npy::read_tensor(&case("input_0.npy"), &ty).unwrap().to_floats();
    let mut generator = Generator::new(11);
    let mut values = Vec::new();
    for run in 0..RUNS {
        let loudness = 0.8 + 0.1 * run as f64;
        values.extend(known.iter().map(|number| loudness * number + generator.unit() / 4.0));
    }
    let shape: Vec<usize> = [RUNS].into_iter().chain(ty.shape.iter().copied()).collect();
    fs::create_dir(folder.join("data")).unwrap();
    fs::write(
        folder.join("data/any.npy"),
        npy::format(&Tensor::from_floats(TensorType::new(DType::F32, shape), values)),
    )
    .unwrap();
}

fn quantize(folder: &Path, more: &[&str]) -> String {
    let model = case("model.pnnx.param");
    let arguments = ["quantize", model.to_str().unwrap(), "--calibration", "data", "-o", "net.mlc"];
    mlc(folder, 0, &[&arguments[..], more].concat())
}

fn report(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("report.json")).unwrap()).unwrap()
}

/// The numbers of an array file, whatever its shape.
fn numbers(path: &Path) -> Vec<f64> {
    let array = npy::parse(&fs::read(path).unwrap().into()).unwrap();
    let ty = TensorType::new(array.dtype, &array.shape);
    array.into_tensor(&ty).unwrap().to_floats()
}

#[test]
fn a_network_becomes_integers_whose_code_computes_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    calibration(folder);
    let told = quantize(folder, &["--report", "report.json"]);
    assert!(told.contains("layers of integers, the worst one first"), "{told}");
    let report = report(folder);
    let output = &report["outputs"][0];
    assert!(output["sqnr_db"].as_f64().unwrap() > 25.0, "{output}");
    assert_eq!((output["rows"].as_u64(), output["argmax_agrees"].as_u64()), (Some(4), Some(4)));
    assert!(report["float"].as_array().unwrap().is_empty(), "{report}");
    let own: Vec<f64> =
        report["layers"].as_array().unwrap().iter().map(|layer| layer["own"]["sqnr_db"].as_f64().unwrap()).collect();
    assert!(own.len() > 10 && own.is_sorted(), "{own:?}");
    // The generated code has the integers of the evaluator.
    let told = mlc(folder, 0, &["verify", "net.mlc", "--input", case("input_0.npy").to_str().unwrap()]);
    assert!(told.contains("ok"), "{told}");
    // Weights lie in a file beside the text, and all kernels but those at the rim are of integers.
    assert!(fs::metadata(folder.join("net.mlc.safetensors")).unwrap().len() > 20_000);
    let told = mlc(folder, 0, &["compile", "net.mlc", "--target", "cortex-m4", "--emit", "dir", "-o", "net"]);
    assert!(!told.contains("MLC0403"), "{told}");
    let first = (fs::read(folder.join("net.mlc")).unwrap(), fs::read(folder.join("net.mlc.safetensors")).unwrap());
    quantize(folder, &[]);
    let second = (fs::read(folder.join("net.mlc")).unwrap(), fs::read(folder.join("net.mlc.safetensors")).unwrap());
    assert!(first == second, "the same model and data give another file");
}

#[test]
fn interfaces_of_integers_have_scales_in_the_header() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    calibration(folder);
    quantize(folder, &["--interface", "int8", "--method", "percentile"]);
    mlc(folder, 0, &["compile", "net.mlc", "--emit", "dir", "-o", "net"]);
    let header = fs::read_to_string(folder.join("net/codegen/host/include/tvmgen_default.h")).unwrap();
    let scales = header.lines().filter(|line| line.starts_with("#define") && line.contains("_SCALE "));
    assert_eq!(scales.count(), 2, "{header}");
    assert!(header.contains("_SCALE 0.00390625f") && header.contains("_ZERO_POINT (-128)"), "{header}");
}

#[test]
fn layers_are_kept_by_name_and_for_the_sake_of_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    calibration(folder);
    quantize(folder, &["--report", "report.json"]);
    let all = report(folder);
    let (error, worst) = (all["outputs"][0]["relative"].as_f64().unwrap(), all["layers"][0]["name"].clone());
    quantize(folder, &["--report", "report.json", "--keep", worst.as_str().unwrap()]);
    let kept = report(folder)["float"].clone();
    assert_eq!((&kept[0]["name"], &kept[0]["reason"]), (&worst, &Value::from("kept by name")));
    let most = (error / 2.0).to_string();
    quantize(folder, &["--report", "report.json", "--max-error", &most]);
    let within = report(folder);
    assert!(within["outputs"][0]["relative"].as_f64().unwrap() <= error / 2.0);
    let kept = within["float"].as_array().unwrap().len();
    assert!((1..all["layers"].as_array().unwrap().len()).contains(&kept), "{kept} layers kept");
}

#[test]
fn what_calibration_lacks_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let model = case("model.pnnx.param");
    let of = |more: &[&str], status: i32| {
        let arguments = ["quantize", model.to_str().unwrap(), "-o", "net.mlc"];
        mlc(folder, status, &[&arguments[..], more].concat())
    };
    assert!(of(&["--calibration", "nothing"], 1).contains("MLC0001"));
    fs::create_dir(folder.join("data")).unwrap();
    let told = of(&["--calibration", "data"], 1);
    assert!(told.contains("MLC0008") && told.contains("there are no calibration data for the input"), "{told}");
    let ty = input_type();
    let constant = Tensor::from_floats(ty.clone(), vec![1.0; ty.elements()]);
    fs::write(folder.join("data/x.npy"), npy::format(&constant)).unwrap();
    assert!(of(&["--calibration", "data"], 1).contains("MLC0008"));
    fs::write(folder.join("data/x.npy"), "no array").unwrap();
    assert!(of(&["--calibration", "data"], 1).contains("MLC0006"));
    fs::remove_dir_all(folder.join("data")).unwrap();
    calibration(folder);
    assert!(of(&["--calibration", "data", "--keep", "no such layer"], 2).contains("MLC0004"));
    assert!(!folder.join("net.mlc").exists(), "nothing is written when something is wrong");
}

/// Runs the model on the known input.
const SCRIPT: &str = "
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])
[output] = session.run(None, {session.get_inputs()[0].name: numpy.load(sys.argv[2])})
numpy.save(sys.argv[3], output)
";

#[test]
fn onnxruntime_runs_what_is_written_for_it() {
    let found = Command::new("python3").args(["-c", "import onnxruntime"]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no onnxruntime for python3 here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    calibration(folder);
    quantize(folder, &["--qdq", "net.onnx"]);
    let input = case("input_0.npy");
    let output = Command::new("python3")
        .args(["-c", SCRIPT, "net.onnx"])
        .arg(&input)
        .arg("ort.npy")
        .current_dir(folder)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    mlc(folder, 0, &["run", "net.mlc", "--input", input.to_str().unwrap(), "--output-dir", "out"]);
    let mut files = fs::read_dir(folder.join("out")).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(|path| path.extension().is_some_and(|extension| extension == "npy")).unwrap();
    let (ours, theirs) = (numbers(&file), numbers(&folder.join("ort.npy")));
    assert_eq!(ours.len(), theirs.len());
    // Both round in other places, by a step or two of a tensor inside.
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!((ours - theirs).abs() < 0.04, "{ours} {theirs}");
    }
}
