//! What the user says beyond an ARK model's file: weights, names, outputs, states.

use mlc::pipeline::{self, LoadOptions, Loaded};
use mlc_import::Bindings;
use mlc_ir::{Code, Diagnostic, Graph, evaluate_runs};
use mlc_tests::case::Case;
use mlc_tests::{array, paths};
use std::path::PathBuf;

fn folder(case: &str) -> PathBuf {
    paths::data().join("ark").join(case)
}

fn try_load(case: &str, bindings: Bindings) -> Result<Loaded, Vec<Diagnostic>> {
    let options = LoadOptions { bindings, ..LoadOptions::default() };
    pipeline::load(&folder(case).join("model.json"), &options).map_err(|failure| failure.diagnostics)
}

fn load(case: &str, bindings: Bindings) -> Loaded {
    try_load(case, bindings).unwrap_or_else(|errors| panic!("{case}: {errors:?}"))
}

/// The first error of a model that isn't loaded.
fn refusal(case: &str, bindings: Bindings) -> (Code, String) {
    let errors = try_load(case, bindings).err().unwrap_or_else(|| panic!("{case} is loaded"));
    let error = errors.into_iter().find(Diagnostic::is_error).unwrap();
    (error.code, error.message)
}

fn inputs(graph: &Graph) -> Vec<String> {
    graph.inputs().iter().map(|&id| graph.node(id).name.to_string()).collect()
}

fn outputs(graph: &Graph) -> Vec<String> {
    graph.outputs().iter().map(|output| format!("{}: {}", output.name, graph.ty(output.value))).collect()
}

/// The case's weights by name, with those that are said to be.
fn weights(case: &str) -> Bindings {
    let case = Case::read(&folder(case)).unwrap();
    let weights = case.weights.iter().chain(&case.inputs);
    Bindings { weights: weights.map(|tensor| (tensor.name.clone(), tensor.weight())).collect(), ..Bindings::default() }
}

fn map(pairs: &[(&str, &str)]) -> indexmap::IndexMap<String, String> {
    pairs.iter().map(|&(name, place)| (name.to_owned(), place.to_owned())).collect()
}

#[test]
fn weights_are_constants_and_named_inputs_stay_inputs() {
    let bindings = Bindings { inputs: vec!["x".into(), "tensor.4".into()], ..weights("seed_mlp_fp32") };
    assert_eq!(refusal("seed_mlp_fp32", bindings).1, "no memory that gets its content from outside is called 'x'");
    let bindings = Bindings { inputs: vec!["tensor.0".into(), "buffer.4".into()], ..weights("seed_mlp_fp32") };
    assert_eq!(inputs(&load("seed_mlp_fp32", bindings).graph), ["tensor.0", "tensor.4"]);
}

#[test]
fn weights_must_fit() {
    let mut bindings = weights("ffn_tutorial");
    bindings.inputs.push("input".into());
    assert_eq!(inputs(&load("ffn_tutorial", bindings.clone()).graph), ["input"]);
    // Leading ones don't count, other shapes do.
    let value = bindings.weights["w1"].value.clone();
    let shape = value.ty().shape.clone();
    bindings.weights["w1"].value = value.reshape(&[1, shape[0], shape[1]]).unwrap();
    assert_eq!(inputs(&load("ffn_tutorial", bindings.clone()).graph), ["input"]);
    bindings.weights["w1"].value = value.reshape(&[shape[1], shape[0]]).unwrap();
    assert_eq!(refusal("ffn_tutorial", bindings.clone()).0, Code::ShapeMismatch);
    bindings.weights["w1"].has_shape = false;
    assert_eq!(inputs(&load("ffn_tutorial", bindings.clone()).graph), ["input"]);
    bindings.weights["w1"].value = value.reshape(&[shape[0] * shape[1]]).unwrap();
    assert_eq!(inputs(&load("ffn_tutorial", bindings.clone()).graph), ["input"]);

    let floats = mlc_ir::Tensor::from_floats(
        mlc_ir::TensorType::new(mlc_ir::DType::F32, &shape[..]),
        value.to_tensor().to_floats(),
    );
    bindings.weights["w1"] = mlc_import::Weight { value: mlc_ir::Attribute::from_tensor(&floats), has_shape: true };
    let (code, message) = refusal("ffn_tutorial", bindings.clone());
    assert_eq!(
        (code, &*message),
        (Code::OptionMismatch, "the weight 'w1': it is f32[96, 64], the model wants f16[96, 64]")
    );
    bindings.cast = true;
    let cast = load("ffn_tutorial", bindings.clone()).graph;
    let is_the_weight = |&id: &mlc_ir::NodeId| cast.constant(id.into()) == Some(&value);
    assert!(cast.node_ids().any(|id| is_the_weight(&id)), "a single that is a half stays that half");

    bindings.weights.extend([("nobody".to_owned(), bindings.weights["w2"].clone())]);
    let warnings = load("ffn_tutorial", bindings.clone()).warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!(warnings[0].message, "the weight 'nobody' is for nothing that the model has");
    bindings.require_all = true;
    assert_eq!(refusal("ffn_tutorial", bindings).0, Code::OptionMismatch);
}

#[test]
fn bits_of_bf16_are_taken() {
    let words = array::read(&folder("matmul_bf16").join("input_1.npy"), false).unwrap();
    let weight = mlc_import::Weight { value: mlc_ir::Attribute::from_tensor(&words), has_shape: true };
    let bindings = Bindings { weights: [("b".to_owned(), weight)].into_iter().collect(), ..Bindings::default() };
    assert_eq!(inputs(&load("matmul_bf16", bindings).graph), ["a"]);
}

#[test]
fn memory_and_outputs_get_the_names_that_the_user_gives() {
    let bindings = Bindings {
        places: map(&[("x", "buffer:0"), ("w", "tensor:1"), ("scratch", "name:exp")]),
        outputs: map(&[("logits", "name:add_2"), ("p", "tensor:32"), ("all", "buffer:19")]),
        ..Bindings::default()
    };
    let graph = load("v2026_mlp_placeholder", bindings).graph;
    assert_eq!(inputs(&graph)[..2], ["x", "w"]);
    assert!(inputs(&graph).contains(&"scratch".to_owned()), "internal memory may be given, too: {:?}", inputs(&graph));
    assert_eq!(outputs(&graph), ["logits: f32[4, 10]", "p: f32[4, 10]", "all: f32[4, 10]"]);

    for (place, message) in [
        ("buffer:99", "the model has no buffer 99"),
        ("tensor:x", "the place 'tensor:x' must have a number behind the colon"),
        ("name:nobody", "no operation that has a result is called 'nobody'"),
        ("memory:3", "'memory:3' is no place of memory"),
    ] {
        let bindings = Bindings { outputs: map(&[("y", place)]), ..Bindings::default() };
        let expected = (Code::OptionMismatch, message.to_owned());
        assert_eq!(refusal("v2026_mlp_placeholder", bindings), expected);
        let bindings = Bindings { places: map(&[("y", place)]), ..Bindings::default() };
        assert_eq!(refusal("v2026_mlp_placeholder", bindings), expected);
    }
    let twice = Bindings { places: map(&[("x", "buffer:1")]), ..Bindings::default() };
    assert_eq!(refusal("v2026_mlp_placeholder", twice).1, "two inputs are called 'x'");
}

#[test]
fn numbers_are_other_names_of_inputs() {
    let loaded = load("kv_cache_append", Bindings::default());
    let aliases: Vec<String> = loaded.aliases.iter().map(|(alias, name)| format!("{alias} = {name}")).collect();
    assert_eq!(aliases[..2], ["tensor.0 = cache", "buffer.0 = cache"]);
}

#[test]
fn a_cache_is_kept_from_one_run_to_the_next() {
    let case = Case::read(&folder("kv_cache_append")).unwrap();
    // As a weight that the model writes to, it is what the first run begins with.
    let kept = Bindings { inputs: vec!["new_row".into(), "q".into()], ..weights("kv_cache_append") };
    let graph = load("kv_cache_append", kept).graph;
    assert_eq!((graph.states.len(), &*graph.states[0].name), (1, "cache"));
    assert_eq!(graph.states[0].initial.to_tensor(), case.inputs[0].value);
    let inputs = [case.inputs[1].value.clone(), case.inputs[2].value.clone()];
    let runs = evaluate_runs(&graph, &[inputs.to_vec(), inputs.to_vec()]).unwrap();
    let same = mlc_tests::compare::compare(&runs[0][0], &case.outputs[0].value, case.tolerance);
    assert_eq!(same, Ok(()));

    let updated = Bindings { updated: vec!["tensor.0".into()], ..Bindings::default() };
    let graph = load("kv_cache_append", updated).graph;
    assert_eq!(outputs(&graph)[1], "cache.next: f32[8, 4]");
    assert!(graph.states.is_empty());
}

#[test]
fn other_formats_say_their_interface_themselves() {
    let bindings = Bindings { outputs: map(&[("y", "tensor:3")]), ..Bindings::default() };
    let options = LoadOptions { bindings, ..LoadOptions::default() };
    let model = paths::data().join("pnnx/op_bmm/model.pnnx.param");
    let failure = pipeline::load(&model, &options).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, Code::OptionMismatch);
}
