//! Inputs, outputs and weights.

use super::{data, imported, input, refusal, refusals};
use indexmap::IndexMap;
use mlc_import::{Bindings, ImportOptions, Weight};
use mlc_ir::{Attribute, Code, Severity, evaluate};

const RELU: &str = "relu(src=x | dst=y |);\n";

fn model() -> String {
    input("x", "TL_FLOAT", "[2]") + &input("w", "TL_FLOAT", "[2]") + "elew(src1=x, src2=w | dst=y | elew_op=TL_MUL);\n"
}

fn weight(numbers: &[f32]) -> Weight {
    Weight { value: Attribute::from_f32(&[numbers.len()], numbers).unwrap(), has_shape: false }
}

fn bound(bindings: Bindings) -> ImportOptions {
    ImportOptions { bindings, ..ImportOptions::default() }
}

fn weights(names: &[&str]) -> IndexMap<String, Weight> {
    names.iter().map(|name| ((*name).to_owned(), weight(&[2.0, 3.0]))).collect()
}

#[test]
fn what_no_array_is_for_is_an_input() {
    let ports = |options: &ImportOptions| {
        let graph = imported(&model(), options).unwrap().graph;
        let inputs: Vec<String> = graph.inputs().iter().map(|&node| graph.node(node).name.to_string()).collect();
        let outputs: Vec<String> = graph.outputs().iter().map(|output| output.name.to_string()).collect();
        (inputs.join(" "), outputs.join(" "))
    };
    assert_eq!(ports(&ImportOptions::default()), ("x w".into(), "y".into()));
    let given = Bindings { weights: weights(&["w", "unused"]), ..Bindings::default() };
    assert_eq!(ports(&bound(given.clone())), ("x".into(), "y".into()));
    assert_eq!(ports(&bound(Bindings { inputs: vec!["w".into()], ..given.clone() })), ("x w".into(), "y".into()));
    let warnings = imported(&model(), &bound(given.clone())).unwrap().warnings;
    assert!(warnings[0].message.contains("'unused' is for nothing") && warnings.len() == 1, "{warnings:?}");
    let all = bound(Bindings { require_all: true, ..given });
    assert_eq!(refusals(&model(), &all)[0].code, Code::OptionMismatch);
    // Data of the file count more than an array, and less than the wish to have an input.
    let own = data("x", "TL_FLOAT", "[2]", "[-1, 1]") + RELU;
    let options = bound(Bindings { weights: weights(&["x"]), ..Bindings::default() });
    let found = imported(&own, &options).unwrap();
    assert!(found.graph.inputs().is_empty() && found.warnings[0].message.contains("'x' is for nothing"));
    assert_eq!(evaluate(&found.graph, &[]).unwrap()[0].to_floats(), [0.0, 1.0]);
    let options = bound(Bindings { inputs: vec!["x".into()], ..Bindings::default() });
    assert_eq!(imported(&own, &options).unwrap().graph.inputs().len(), 1);
}

#[test]
fn outputs_are_what_nobody_takes_or_what_is_named() {
    let text =
        model() + "print(src=y || msg=\"y\");\nfprint(src=y || msg=\"y\", file=\"f\");\nsigmoid(src=w | dst=z |);\n";
    let graph = imported(&text, &ImportOptions::default()).unwrap();
    let names: Vec<&str> = graph.graph.outputs().iter().map(|output| &*output.name).collect();
    assert_eq!(names, ["y", "z"]);
    let notes: Vec<Severity> = graph.warnings.iter().map(|finding| finding.severity).collect();
    assert_eq!(notes, [Severity::Note; 2]);
    let outputs = |places: &[(&str, &str)]| {
        let outputs = places.iter().map(|(name, place)| ((*name).to_owned(), (*place).to_owned())).collect();
        bound(Bindings { outputs, ..Bindings::default() })
    };
    let chosen = outputs(&[("b", "tensor:x"), ("a", "name:sigmoid0")]);
    let graph = imported(&text, &chosen).unwrap().graph;
    let names: Vec<&str> = graph.outputs().iter().map(|output| &*output.name).collect();
    assert_eq!(names, ["b", "a"]);
    for place in ["tensor:q", "name:print0", "buffer:1", "y"] {
        let found = refusals(&text, &outputs(&[("a", place)]));
        assert!(found[0].code == Code::OptionMismatch && found[0].message.contains(place), "{found:?}");
    }
}

#[test]
fn what_the_model_does_not_have_is_reported() {
    let mut options = bound(Bindings { inputs: vec!["q".into()], updated: vec!["x".into()], ..Bindings::default() });
    options.bindings.places.insert("x".into(), "buffer:0".into());
    let codes: Vec<Code> = refusals(&model(), &options).iter().map(|finding| finding.code).collect();
    assert_eq!(codes, [Code::OptionMismatch; 3]);
    let mut wrong = weights(&["w"]);
    wrong["w"] = weight(&[1.0]);
    let found = refusals(&model(), &bound(Bindings { weights: wrong, ..Bindings::default() }));
    assert!(found[0].code == Code::ShapeMismatch && found[0].message.starts_with("create `create1`"), "{found:?}");
    let integers = input("w", "TL_INT8", "[2]") + "forward(src=w | dst=y |);";
    let mut options = bound(Bindings { weights: weights(&["w"]), ..Bindings::default() });
    assert_eq!(refusals(&integers, &options)[0].code, Code::OptionMismatch);
    options.bindings.cast = true;
    assert!(imported(&integers, &options).is_ok());
    let mut options = ImportOptions::default();
    options.input_shapes.insert("x".into(), vec![3]);
    assert_eq!(refusals(&model(), &options)[0].code, Code::ShapeMismatch);
}

#[test]
fn what_an_operator_lacks_and_what_it_has_too_much_is_told_for_all_of_them() {
    let text = input("x", "TL_FLOAT", "[2, 4]")
        + "slice(src=x | dst=a | axis=1, start=0);\n"
        + "slice(src=x | dst=b | axis=\"1\", start=0, len=1);\n"
        + "slice(dst=x | dst=c | axis=0, start=0, len=1, end=2);\n"
        + "slice(src=ghost | dst=d | axis=0, start=0, len=1);\n"
        + "slice(src=x | dst=x | axis=0, start=0, len=1);\n"
        + "slice(src=a | dst=e | axis=7, start=0, len=1);\n"
        + "frobnicate(src=x | dst=f |);\n"
        + "relu_cuda(src=x | dst=g |);\n"
        + "relu_cpu(src=x | dst=h |);\n";
    let found = refusals(&text, &ImportOptions::default());
    let said = |words: &[&str]| {
        let all = |finding: &&mlc_ir::Diagnostic| {
            let text = format!("{finding} {}", finding.help.clone().unwrap_or_default());
            words.iter().all(|word| text.contains(word))
        };
        assert_eq!(found.iter().filter(all).count(), 1, "{words:?}: {found:#?}");
    };
    said(&["slice0", "3 parameters (`axis`, `start`, `len`) expected, 2 found", "missing: `len`", "line 2:1"]);
    said(&["slice1", "`axis` must be a number, found the text `1`"]);
    said(&["slice2", "1 input tensor (`src`) expected", "missing: `src`; not known: `dst`"]);
    said(&["slice2", "not known: `end`"]);
    said(&["slice3", "ghost"]);
    said(&["slice4", "`x` is defined twice"]);
    said(&["frobnicate0", "operator frobnicate"]);
    said(&["relu_cuda0", "`_cuda` means a back end for a device"]);
    assert_eq!(found.len(), 8, "{found:#?}");
}

#[test]
fn random_numbers_are_refused() {
    let text = "create_cpu(| dst=x | dtype=TL_FLOAT, dims=[2], ran=[0, 1], data=[0], from_file=false);\nrelu(src=x | dst=y |);";
    let found = refusal(text);
    assert!(found.message.contains("create `create_cpu0`: parameter `ran` is [0, 1]"), "{}", found.message);
}

#[test]
fn planned_models_are_taken_as_their_sources() {
    let tensor = |argument: &str, name: &str| {
        format!(r#"{{"arg_name": "{argument}", "name": "{name}", "dims": [2], "offset_h": 0, "offset_l": -1}}"#)
    };
    let text = format!(
        r#"{{"ops": [{{"name": "create0", "optype": "create_cpu", "tensors_in": [], "tensors_out": [{}], "params": [
            {{"arg_name": "dtype", "value": "TL_FLOAT"}}, {{"arg_name": "dims", "value": [2]}}, {{"arg_name": "ran", "value": [0, 0]}},
            {{"arg_name": "data", "value": [-1, 2]}}, {{"arg_name": "from_file", "value": false}}]}},
            {{"name": "relu0", "optype": "relu_cpu", "tensors_in": [{}], "tensors_out": [{}], "params": []}}],
            "mem_sizes_h": [0, 0], "mem_sizes_l": [0, 17]}}"#,
        tensor("dst", "x"),
        tensor("src", "x"),
        tensor("dst", "y")
    );
    let graph = imported(&text, &ImportOptions::default()).unwrap().graph;
    assert_eq!(evaluate(&graph, &[]).unwrap()[0].to_floats(), [0.0, 2.0]);
}
