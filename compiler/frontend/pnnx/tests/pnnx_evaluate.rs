//! Imports every PNNX case of the conformance suite, evaluates the graph, and compares with the outputs of the source
//! model. Operators that aren't supported may be refused; a result that differs is a defect, always.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use mlc_import::ImportOptions;
use mlc_ir::{DType, Tensor, TensorType, evaluate, parallel, verify};
use mlc_pnnx as pnnx;
use std::fs;
use std::path::{Path, PathBuf};

/// Cases whose file doesn't describe the source model, as computing the file's own operators by hand shows.
const DIFFERENT_EXPORTS: [(&str, &str); 2] = [
    ("op_LSTMCell_unrolled", "a constant that the exporter folded isn't what the source model computes"),
    ("up_F_gelu", "the exporter leaves `approximate=tanh` out of the fourth operator"),
];

#[derive(Debug)]
enum Outcome {
    Passed,
    /// The first diagnostic.
    Refused(String),
    Wrong(String),
}

/// The suite's folder: beside the repository, or where `MLC_CONFORMANCE` says; else the selection in the repository.
fn suite(format: &str) -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let outside = std::env::var_os("MLC_CONFORMANCE").map(PathBuf::from);
    let beside = ["../shared/conformance", "../../shared/conformance", "tests/data"].map(|path| repository.join(path));
    outside.into_iter().chain(beside).map(|folder| folder.join(format)).find(|folder| folder.is_dir())
}

/// Reads an array. A complex one becomes a float array with a last axis of 2.
fn read_array(path: &Path, dtype: Option<DType>) -> Tensor {
    let bytes = fs::read(path).unwrap();
    let file = npyz::NpyFile::new(&bytes[..]).unwrap();
    assert_eq!(file.order(), npyz::Order::C, "{path:?}");
    let mut shape: Vec<usize> = file.shape().iter().map(|&extent| extent as usize).collect();
    let npyz::DType::Plain(item) = file.dtype() else { panic!("{path:?}: structured array") };
    let found = match (item.type_char(), item.size_field()) {
        (npyz::TypeChar::Float, 4) => DType::F32,
        (npyz::TypeChar::Float, 8) => DType::F64,
        (npyz::TypeChar::Float, 2) => DType::F16,
        (npyz::TypeChar::Complex, 8) => {
            shape.push(2);
            DType::F32
        }
        (npyz::TypeChar::Int, 8) => DType::I64,
        (npyz::TypeChar::Int, 4) => DType::I32,
        (npyz::TypeChar::Int, 2) => DType::I16,
        (npyz::TypeChar::Int, 1) => DType::I8,
        (npyz::TypeChar::Uint, 1) => DType::U8,
        (npyz::TypeChar::Uint, 2) => dtype.unwrap_or(DType::U16),
        (npyz::TypeChar::Bool, 1) => DType::Bool,
        other => panic!("{path:?}: {other:?}"),
    };
    let ty = TensorType::new(found, shape);
    let data = &bytes[bytes.len() - ty.bytes()..];
    Tensor::from_le_bytes(ty, data)
}

fn arrays(folder: &Path, stem: &str) -> Vec<Tensor> {
    let paths = (0..).map(|index| folder.join(format!("{stem}_{index}.npy"))).take_while(|path| path.exists());
    paths.map(|path| read_array(&path, None)).collect()
}

fn load(folder: &Path) -> Result<pnnx::Model, String> {
    let param = fs::read(folder.join("model.pnnx.param")).unwrap();
    let bin = fs::read(folder.join("model.pnnx.bin")).ok().map(Into::into);
    let read = pnnx::read(&param, bin).map(|(model, _)| model);
    read.map_err(|diagnostics| diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Shapes for the inputs whose shapes the model leaves open.
fn options(model: &pnnx::Model, inputs: &[Tensor]) -> ImportOptions {
    let mut options = ImportOptions::default();
    let operators = model.operators.iter().filter(|operator| operator.kind == "pnnx.Input");
    for (operator, input) in operators.zip(inputs) {
        let ty = model.operand(operator.outputs[0]).ty.as_ref();
        let known = |dimension: &pnnx::Dimension| matches!(dimension, pnnx::Dimension::Known(_));
        if !ty.is_some_and(|ty| ty.shape.iter().all(known)) {
            options.input_shapes.insert(operator.name.clone(), input.shape().to_vec());
        }
    }
    options
}

fn difference(found: &Tensor, golden: &Tensor, rtol: f64, atol: f64) -> Option<String> {
    if found.ty() != golden.ty() {
        return Some(format!("{} instead of {}", found.ty(), golden.ty()));
    }
    let pairs = found.to_floats().into_iter().zip(golden.to_floats());
    let worst = pairs
        .enumerate()
        .filter(|(_, (a, b))| !((a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= atol + rtol * b.abs()))
        .max_by(|(_, (a, b)), (_, (c, d))| (a - b).abs().total_cmp(&(c - d).abs()));
    worst.map(|(index, (found, golden))| {
        format!("element {index} of {}: {found} instead of {golden}", found_type(golden))
    })
}

fn found_type(golden: f64) -> &'static str {
    if golden.is_finite() { "the output" } else { "the output (not finite)" }
}

fn run(folder: &Path) -> Outcome {
    let case: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("case.json")).unwrap()).unwrap();
    let (rtol, atol) = (case["rtol"].as_f64().unwrap(), case["atol"].as_f64().unwrap());
    let inputs = arrays(folder, "input");
    let model = match load(folder) {
        Ok(model) => model,
        Err(message) => return Outcome::Refused(message),
    };
    let imported = match pnnx::import(&model, &options(&model, &inputs)) {
        Ok(imported) => imported,
        Err(diagnostics) => {
            assert!(diagnostics[0].is_error(), "{folder:?}: {diagnostics:?}");
            return Outcome::Refused(diagnostics[0].to_string());
        }
    };
    if let Err(diagnostics) = verify(&imported.graph) {
        return Outcome::Wrong(format!("the graph isn't valid: {}", diagnostics[0]));
    }
    let found = match evaluate(&imported.graph, &inputs) {
        Ok(found) => found,
        Err(diagnostic) => return Outcome::Wrong(diagnostic.to_string()),
    };
    let golden = arrays(folder, "output");
    if found.len() != golden.len() {
        return Outcome::Wrong(format!("{} outputs instead of {}", found.len(), golden.len()));
    }
    let mut pairs = found.iter().zip(&golden).enumerate();
    let different = pairs.find_map(|(index, (found, golden))| {
        Some(format!("output {index}: {}", difference(found, golden, rtol, atol)?))
    });
    different.map_or(Outcome::Passed, Outcome::Wrong)
}

/// Runs the cases whose names pass the filter, and returns numbers of passed ones and of all.
fn run_all(filter: impl Fn(&str) -> bool + Sync) -> Option<(usize, usize)> {
    let Some(suite) = suite("pnnx") else {
        println!("skipped: the conformance suite isn't there");
        return None;
    };
    let only = std::env::var("MLC_CASE").unwrap_or_default();
    let mut names: Vec<String> =
        fs::read_dir(&suite).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| filter(name) && name.contains(&only));
    for (name, reason) in DIFFERENT_EXPORTS.iter().filter(|(name, _)| names.iter().any(|other| other == name)) {
        println!("left out {name}: {reason}");
    }
    names.retain(|name| !DIFFERENT_EXPORTS.iter().any(|(other, _)| other == name));
    names.sort();
    let outcomes = parallel::map(&names, 2, |name| run(&suite.join(name)));
    for (name, outcome) in names.iter().zip(&outcomes) {
        match outcome {
            Outcome::Passed => {}
            Outcome::Refused(reason) => println!("refused  {name}: {reason}"),
            Outcome::Wrong(reason) => println!("WRONG    {name}: {reason}"),
        }
    }
    let count = |test: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| test(outcome)).count();
    let passed = count(|outcome| matches!(outcome, Outcome::Passed));
    let refused = count(|outcome| matches!(outcome, Outcome::Refused(_)));
    let wrong = count(|outcome| matches!(outcome, Outcome::Wrong(_)));
    println!("{passed} passed, {refused} refused, {wrong} wrong of {}", outcomes.len());
    assert_eq!(wrong, 0, "results differ from the source models'");
    assert!(!only.is_empty() || names.len() == outcomes.len());
    only.is_empty().then_some((passed, outcomes.len()))
}

#[test]
fn operators_compute_what_the_source_models_did() {
    if let Some((passed, all)) = run_all(|name| !name.starts_with("net_")) {
        assert!(passed * 100 >= all * 97, "{passed} of {all} cases pass");
    }
}

#[test]
fn networks_compute_what_the_source_models_did() {
    if let Some((passed, all)) = run_all(|name| name.starts_with("net_")) {
        assert_eq!(passed, all, "every whole network must pass");
    }
}

#[test]
fn damaged_models_are_refused() {
    let Some(suite) = suite("pnnx-malformed") else {
        println!("skipped: the conformance suite isn't there");
        return;
    };
    for entry in fs::read_dir(suite).unwrap() {
        let folder = entry.unwrap().path();
        let case: serde_json::Value = serde_json::from_slice(&fs::read(folder.join("case.json")).unwrap()).unwrap();
        let mut inputs = arrays(&folder, "input");
        if inputs.is_empty() {
            inputs.push(Tensor::splat(TensorType::new(DType::F32, [1, 8]), mlc_ir::Literal::float(DType::F32, 1.0)));
        }
        let imported = load(&folder).and_then(|model| {
            pnnx::import(&model, &options(&model, &inputs)).map_err(|diagnostics| diagnostics[0].to_string())
        });
        match case["expect"].as_str().unwrap() {
            "error" => assert!(imported.is_err(), "{folder:?} was accepted: {}", case["why"]),
            "accept" => {
                let graph = imported.unwrap_or_else(|message| panic!("{folder:?}: {message}")).graph;
                verify(&graph).unwrap();
                let found = evaluate(&graph, &inputs).unwrap();
                let golden = arrays(&folder, "output");
                assert!(golden.is_empty() || difference(&found[0], &golden[0], 1e-4, 1e-5).is_none(), "{folder:?}");
            }
            _ => {}
        }
    }
}

/// Numbers in a model's text, changed one at a time, may lead to errors and to other results, but never to a panic.
#[test]
fn changed_numbers_never_panic() {
    let Some(suite) = suite("pnnx") else {
        println!("skipped: the conformance suite isn't there");
        return;
    };
    let mut folders: Vec<PathBuf> = fs::read_dir(suite).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let mut seed = 1u64;
    let mut random = |limit: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % limit
    };
    // More changes per model take longer, and are for looking for panics by hand.
    let changes = std::env::var("MLC_CHANGES").ok().and_then(|number| number.parse().ok()).unwrap_or(8);
    let (mut accepted, mut tried) = (0, 0);
    for folder in folders {
        let text = fs::read_to_string(folder.join("model.pnnx.param")).unwrap();
        let bin: Option<bytes::Bytes> = fs::read(folder.join("model.pnnx.bin")).ok().map(Into::into);
        let inputs = arrays(&folder, "input");
        for _ in 0..changes {
            tried += 1;
            let changed = change_a_number(&text, &mut random);
            let Ok((model, _)) = pnnx::read(changed.as_bytes(), bin.clone()) else { continue };
            let Ok(imported) = pnnx::import(&model, &options(&model, &inputs)) else { continue };
            verify(&imported.graph).unwrap_or_else(|errors| panic!("{folder:?}: {}\n{changed}", errors[0]));
            accepted += 1;
        }
    }
    println!("{accepted} of {tried} changed models were accepted");
    assert!(accepted * 20 > tried, "only {accepted} of {tried} changed models were accepted");
}

/// Replaces a run of digits behind the counts by another number.
fn change_a_number(text: &str, random: &mut impl FnMut(usize) -> usize) -> String {
    let begin = text.match_indices('\n').nth(1).map_or(0, |(index, _)| index);
    let digit = |index: usize| text.as_bytes().get(index).is_some_and(u8::is_ascii_digit);
    let starts: Vec<usize> = (begin..text.len()).filter(|&index| digit(index) && !digit(index - 1)).collect();
    let Some(&start) = starts.get(random(starts.len().max(1))) else { return text.to_owned() };
    let end = (start..).find(|&index| !digit(index)).unwrap();
    let numbers = ["0", "1", "-1", "2", "3", "7", "16", "1000", "65536", "2147483647", "-2147483648", "None"];
    format!("{}{}{}", &text[..start], numbers[random(numbers.len())], &text[end..])
}
