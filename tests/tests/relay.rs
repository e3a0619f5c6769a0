//! Models as Relay text: every model of the repository reads back to an equal graph, and archives compile again to the same C.
#![allow(clippy::unwrap_used, clippy::panic)]

use mlc::pipeline::{self, CompileOptions};
use mlc_frontend::ImportOptions;
use mlc_frontend::relay::{self, Parameters};
use mlc_ir::Graph;
use mlc_ir::text::print_with_constants;
use mlc_tests::case::Case;
use mlc_tests::compile::load;
use mlc_tests::paths;

/// The graphs of a format's cases, as the frontend leaves them.
fn graphs(format: &str) -> Vec<(Case, Graph)> {
    let folders = paths::subfolders(&paths::data().join(format)).unwrap();
    let cases = folders.iter().map(|folder| Case::read(folder).unwrap());
    cases
        .map(|case| {
            (load(&case).map(|loaded| (case.clone(), loaded.graph))).unwrap_or_else(|_| panic!("{}", case.name))
        })
        .collect()
}

fn printed(graph: &Graph) -> String {
    let mut text = Vec::new();
    relay::write(graph, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn read(text: &str, name: &str) -> Graph {
    let read = relay::read(text, &Parameters::new(), &ImportOptions::default());
    read.unwrap_or_else(|errors| panic!("{name}: {errors:?}")).graph
}

/// Reading the text of each graph gives an equal one, and printing that the same text.
fn check(format: &str) {
    let graphs = graphs(format);
    assert!(!graphs.is_empty());
    for (case, graph) in graphs {
        let text = printed(&graph);
        let again = read(&text, &case.name);
        assert!(print_with_constants(&graph) == print_with_constants(&again), "{}", case.name);
        assert!(graph.structurally_equal(&again), "{}", case.name);
        assert!(text == printed(&again), "{}", case.name);
    }
}

#[test]
fn pnnx_models_read_back_equal() {
    check("pnnx");
}

#[test]
fn onnx_models_read_back_equal() {
    check("onnx");
}

/// Every so many-th case is compiled, and every network.
const STRIDE: usize = 9;

#[test]
fn the_text_of_an_archive_compiles_to_the_same_archive() {
    let all = graphs("pnnx").into_iter().chain(graphs("onnx")).enumerate();
    for (index, (case, graph)) in all {
        if index % STRIDE != 0 && !case.network {
            continue;
        }
        let compile = |graph: &Graph| {
            let compiled = pipeline::compile(graph, &CompileOptions::default(), &mut |_, _| {});
            compiled.unwrap_or_else(|errors| panic!("{}: {errors:?}", case.name)).files().unwrap()
        };
        let first = compile(&graph);
        let text = std::str::from_utf8(&first["src/default.relay"]).unwrap();
        assert!(first == compile(&read(text, &case.name)), "{}", case.name);
    }
}
