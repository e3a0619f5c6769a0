//! Models as Relay text: every model of the repository reads back to an equal graph, and archives compile again to the same C.

use mlc::pipeline::{self, CompileOptions, LoadOptions};
use mlc::toolchain::Toolchain;
use mlc_codegen::Execution;
use mlc_import::ImportOptions;
use mlc_ir::text::print_with_constants;
use mlc_ir::{Attribute, Graph};
use mlc_relay::Parameters;
use mlc_tests::case::Case;
use mlc_tests::compile::load;
use mlc_tests::paths;
use std::path::{Path, PathBuf};

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
    mlc_relay::write(graph, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn read(text: &str, name: &str) -> Graph {
    let read = mlc_relay::read(text, &Parameters::new(), &ImportOptions::default());
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

/// A graph archive of `%x + %w`, which carries another text than its own.
fn foreign(text: &str, folder: &Path) -> PathBuf {
    let sum = "def @main(%x: Tensor[(4), float32], %w: Tensor[(4), float32]) { %x + %w }";
    let mut parameters = Parameters::new();
    parameters.insert("w".into(), Attribute::from_f32(&[4], &[1.0, 2.0, 3.0, 4.0]).unwrap());
    let graph = mlc_relay::read(sum, &parameters, &ImportOptions::default()).unwrap().graph;
    let execution = Execution { aot: None, graph: true, ..Execution::default() };
    let options = CompileOptions { execution, ..CompileOptions::default() };
    let compiled = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap();
    let path = folder.join("foreign.tar");
    let mut archive = tar::Builder::new(std::fs::File::create(&path).unwrap());
    for (name, bytes) in compiled.files().unwrap() {
        let contents: &[u8] = if name == "src/default.relay" { text.as_bytes() } else { &bytes };
        let mut header = tar::Header::new_ustar();
        header.set_size(contents.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, &name, contents).unwrap();
    }
    archive.finish().unwrap();
    path
}

#[test]
fn texts_of_other_archives_are_bound_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let load = |text: &str| {
        let options = LoadOptions { from_relay: Some(Toolchain::default()), ..LoadOptions::default() };
        pipeline::load(&foreign(text, folder.path()), &options)
    };
    let variables = "%x: Tensor[(4), float32], %v_param_1: Tensor[(4), float32]";
    let graph = load(&format!("def @main({variables}) {{ add(%x, %v_param_1) }}")).unwrap().graph;
    assert_eq!(graph.inputs().len(), 1);
    let fault = |text: &str| load(text).unwrap_err().diagnostics[0].message.clone();
    let message = fault(&format!("def @main({variables}) {{ subtract(%x, %v_param_1) }}"));
    assert!(message.starts_with("the Relay text and the archive's own code disagree: 4 of 4 elements"), "{message}");
    let message = fault("def @main(%x: Tensor[(4), float32], %v_param_1: Tensor[(5), float32]) { (%x, %v_param_1) }");
    assert!(message.starts_with("the variable %v_param_1 can't be bound: the array `"), "{message}");
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

#[test]
fn quantised_layers_become_kernels_of_integers_in_32_bits() {
    let model = paths::data().join("relay/quantised_dense/model.relay");
    let loaded = pipeline::load(&model, &LoadOptions::default());
    let graph = loaded.unwrap_or_else(|failure| panic!("{:?}", failure.diagnostics)).graph;
    let compiled = pipeline::compile(&graph, &CompileOptions::default(), &mut |_, _| {}).unwrap();
    let text = mlc_ir::text::print(&compiled.graph);
    let product = text.lines().find(|line| line.contains("anchor = matmul")).unwrap_or_else(|| panic!("{text}"));
    assert!(product.contains("sums = i32") && product.contains("rescale_once"), "{product}");
    assert!(product.contains(": i8[1, 5]") && !text.contains("i64") && !text.contains("f32"), "{text}");
}
