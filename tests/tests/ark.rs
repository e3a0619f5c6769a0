//! ARK models: what goes into them and comes out of them, which their files don't say.

use mlc::pipeline::{self, LoadOptions, Loaded};
use mlc_ir::ranks::evaluate_ranks;
use mlc_ir::{Graph, Tensor, evaluate};
use mlc_tests::case::Case;
use mlc_tests::{array, compare, paths};
use std::path::Path;

/// A model, loaded with some options.
fn load(model: &Path, options: &LoadOptions) -> Loaded {
    pipeline::load(model, options).unwrap_or_else(|failure| panic!("{}: {:?}", model.display(), failure.diagnostics))
}

fn cases() -> Vec<Case> {
    let folders = paths::subfolders(&paths::data().join("ark")).unwrap();
    let folders = folders.iter().filter(|folder| !folder.join("rank0").is_dir());
    folders.map(|folder| Case::read(folder).unwrap()).collect()
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

/// The values of one list of a rank's `tensors.json`, with their names.
fn listed(folder: &Path, list: &str) -> Vec<(String, Tensor)> {
    let ports: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("tensors.json")).unwrap()).unwrap();
    let read = |port: &serde_json::Value| {
        let value = array::read(&folder.join(port["file"].as_str().unwrap()), port["encoding"] == "bf16-bits");
        (port["name"].as_str().unwrap().to_owned(), value.unwrap())
    };
    ports[list].as_array().unwrap().iter().map(read).collect()
}

#[test]
fn ranks_exchange_messages_as_their_files_say() {
    for case in ["d_all_reduce_2", "d_recv_reduce_send_packet", "d_send_packet", "d_send_recv"] {
        let folder = paths::data().join("ark").join(case);
        let ranks: Vec<_> = (0..2).map(|rank| folder.join(format!("rank{rank}"))).collect();
        let graphs: Vec<Graph> =
            ranks.iter().map(|rank| load(&rank.join("model.json"), &LoadOptions::default()).graph).collect();
        let inputs: Vec<Vec<Tensor>> =
            ranks.iter().map(|rank| listed(rank, "inputs").into_iter().map(|(_, value)| value).collect()).collect();
        let outputs = evaluate_ranks(&graphs.iter().collect::<Vec<_>>(), &inputs).unwrap();
        for ((rank, graph), found) in ranks.iter().zip(&graphs).zip(outputs) {
            let golden = listed(rank, "outputs");
            let names: Vec<&str> = graph.outputs().iter().map(|output| &*output.name).collect();
            assert_eq!(names[..golden.len()], golden.iter().map(|(name, _)| &**name).collect::<Vec<_>>());
            for (found, (name, value)) in found.iter().zip(&golden) {
                let tolerance = compare::Tolerance { absolute: 4e-3, relative: 4e-3 };
                assert_eq!(compare::compare(found, value, tolerance), Ok(()), "{case}: {name}");
            }
        }
    }
}
