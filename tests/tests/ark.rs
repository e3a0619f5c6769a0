//! ARK models: what goes into them and comes out of them, which their files don't say.
#![allow(clippy::unwrap_used, clippy::panic)]
use mlc::pipeline::{self, LoadOptions, Loaded};
use mlc_ir::{Graph, Tensor, evaluate};
use mlc_tests::case::Case;
use mlc_tests::{compare, paths};
use std::path::Path;

/// A model, loaded with some options.
fn load(model: &Path, options: &LoadOptions) -> Loaded {
    pipeline::load(model, options).unwrap_or_else(|failure| panic!("{}: {:?}", model.display(), failure.diagnostics))
}

fn cases() -> Vec<Case> {
    let folders = paths::subfolders(&paths::data().join("ark")).unwrap();
    folders.iter().map(|folder| Case::read(folder).unwrap()).collect()
}

/// Inputs and outputs of a graph, by name, data type and shape.
fn interface(graph: &Graph) -> (Vec<String>, Vec<String>) {
    let inputs = graph.inputs().iter().map(|&id| format!("{}: {}", graph.node(id).name, graph.ty(id.into())));
    let outputs = graph.outputs().iter().map(|output| format!("{}: {}", output.name, graph.ty(output.value)));
    (inputs.collect(), outputs.collect())
}

#[test]
fn inputs_and_outputs_are_those_that_the_cases_list() {
    for case in cases() {
        let graph = load(&case.model, &LoadOptions::default()).graph;
        let text = |tensors: &[mlc_tests::case::NamedTensor]| -> Vec<String> {
            tensors.iter().map(|tensor| format!("{}: {}", tensor.name, tensor.value.ty())).collect()
        };
        let (inputs, outputs) = interface(&graph);
        // Inputs come before weights in a case, in the model they come in the file's order.
        let mut listed = text(&case.inputs);
        listed.extend(text(&case.weights));
        let (mut sorted, mut found) = (listed.clone(), inputs.clone());
        sorted.sort();
        found.sort();
        assert_eq!(found, sorted, "{}", case.name);
        assert_eq!(outputs, text(&case.outputs), "{}", case.name);

        // Weights as inputs give the same numbers.
        let all: Vec<&mlc_tests::case::NamedTensor> = case.inputs.iter().chain(&case.weights).collect();
        let value = |name: &str| all.iter().find(|tensor| tensor.name == name).unwrap().value.clone();
        let values: Vec<Tensor> = graph.inputs().iter().map(|&id| value(&graph.node(id).name)).collect();
        for (found, golden) in evaluate(&graph, &values).unwrap().iter().zip(&case.outputs) {
            let same = compare::compare(found, &golden.value, case.tolerance);
            assert_eq!(same, Ok(()), "{}: {}", case.name, golden.name);
        }
    }
}
