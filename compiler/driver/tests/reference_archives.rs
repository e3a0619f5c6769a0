//! Archives that microTVM wrote, with inputs and the outputs that it got: they are inspected, run by their own C code, and
//! graph archives are compiled again. They aren't part of this repository: without `MLC_REFERENCE_MLF_DIR` they are looked for
//! beside it.

use bytes::Bytes;
use indexmap::IndexMap;
use mlc::bundle::{self, Bundle, Port};
use mlc::compare::{Tolerance, compare};
use mlc::npy;
use mlc::pipeline::{self, CompileOptions, LoadOptions};
use mlc::toolchain::Toolchain;
use mlc_ir::Tensor;
use std::path::{Path, PathBuf};

/// The folder of the archives, if it is there.
fn folder() -> Option<PathBuf> {
    let given = std::env::var_os("MLC_REFERENCE_MLF_DIR").map(PathBuf::from);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference-mlf");
    let folder = given.unwrap_or_else(beside);
    let found = folder.is_dir();
    if !found {
        println!("skipped: there is no folder {}; MLC_REFERENCE_MLF_DIR names another", folder.display());
    }
    found.then_some(folder)
}

/// The archives, by name without the extension.
fn archives(folder: &Path) -> Vec<(String, Bytes)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|name| name == "tar")).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    paths.iter().map(|path| (name(path), std::fs::read(path).unwrap().into())).collect()
}

/// The arrays of an `.npz` file, which is a ZIP archive without compression, by name.
fn arrays(path: &Path) -> IndexMap<String, npy::Array> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut arrays = IndexMap::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).unwrap();
        let name = entry.name().unwrap().trim_end_matches(".npy").to_owned();
        let mut bytes = Vec::new();
        std::io::copy(&mut entry, &mut bytes).unwrap();
        arrays.insert(name, npy::parse(&bytes.into()).unwrap());
    }
    arrays
}

/// The inputs of a model, and its outputs with their types.
fn case(folder: &Path, name: &str, bundle: &mut Bundle) -> (Vec<Tensor>, Vec<Tensor>) {
    let (net, _) = name.rsplit_once('_').unwrap();
    let mut arrays = arrays(&folder.join(format!("{net}.npz")));
    let mut take = |key: String, port: &mut Port| {
        let array = arrays.shift_remove(&key).unwrap_or_else(|| panic!("{name}: no {key}"));
        port.adopt_shape(&array.shape);
        array.into_tensor(&port.ty).unwrap()
    };
    let inputs = bundle.inputs.iter_mut().map(|port| take(format!("input:{}", port.name), port)).collect();
    let outputs = bundle.outputs.iter_mut().enumerate();
    let outputs = outputs.map(|(number, port)| take(format!("output:{number}"), port)).collect();
    (inputs, outputs)
}

/// The host's, with little optimisation: what code computes is looked at, and not how fast it does.
fn toolchain() -> Toolchain {
    Toolchain { options: vec!["-O1".into()], ..Toolchain::default() }
}

/// Floats within 1e-5, integers within 1.
fn assert_close(name: &str, actual: &[Tensor], expected: &[Tensor]) {
    assert_eq!(actual.len(), expected.len(), "{name}");
    for (actual, expected) in actual.iter().zip(expected) {
        let absolute = if expected.ty().dtype.is_float() { 1e-5 } else { 1.0 };
        let comparison = compare(actual, expected, Tolerance { absolute, relative: 0.0 }).unwrap();
        assert!(comparison.passes(), "{name}: {comparison:?}");
    }
}

#[test]
fn reference_archives_run_by_their_own_code() {
    let Some(folder) = folder() else { return };
    for (name, bytes) in archives(&folder) {
        let mut bundle = Bundle::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(bundle.inputs.iter().chain(&bundle.outputs).all(|port| !port.name.is_empty()));
        let (inputs, expected) = case(&folder, &name, &mut bundle);
        let program = toolchain().build(&bundle).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let outputs = program.run(&inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_close(&name, &outputs, &expected);
    }
}

#[test]
fn graph_archives_compile_to_code_with_equal_results_in_less_memory() {
    let Some(folder) = folder() else { return };
    for (name, bytes) in archives(&folder).into_iter().filter(|(name, _)| name.ends_with("_graph")) {
        let mut bundle = Bundle::parse(&bytes).unwrap();
        let (inputs, expected) = case(&folder, &name, &mut bundle);
        let path = folder.join(format!("{name}.tar"));
        let loaded = pipeline::load(&path, &LoadOptions::default()).unwrap_or_else(|failure| panic!("{failure:?}"));
        let compiled = pipeline::compile(&loaded.graph, &CompileOptions::default(), &mut |_, _| {}).unwrap();
        let program = toolchain().build(&compiled.bundle().unwrap()).unwrap_or_else(|error| panic!("{error:?}"));
        let outputs = program.run(&inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_close(&name, &outputs, &expected);
        let interpreted = toolchain().build(&bundle).unwrap().run(&inputs).unwrap();
        let bits = |tensors: &[Tensor]| tensors.iter().map(Tensor::to_le_bytes).collect::<Vec<_>>();
        let message = "the results aren't bit for bit those of the graph executor";
        assert!(bits(&outputs) == bits(&interpreted), "{name}: {message}");

        // Both need the inputs and outputs, the graph executor in blocks of its own, which it may use again.
        let archive = bundle.archive();
        let graph = mlc_archive::Graph::read(archive, &bundle.metadata.graph_path(&bundle.model.name)).unwrap();
        let list = bundle::read_parameters(archive, &bundle.metadata.parameters_path(&bundle.model.name)).unwrap();
        let is_parameter = |block: &mlc_archive::Storage| {
            block.input_binding.as_ref().is_some_and(|name| list.iter().any(|named| named.name == name.as_str()))
        };
        let blocks: u64 = mlc_archive::storage(&graph)
            .iter()
            .filter(|block| !is_parameter(block))
            .map(|block| block.size_bytes)
            .sum();
        let operators = bundle.model.memory.operators.iter().map(|operator| operator.workspace_size_bytes);
        let interpreter = blocks + operators.max().unwrap_or_default();
        let module = &compiled.module;
        let own = (module.plan.arena_bytes + module.io_bytes()) as u64;
        println!("{name}: {own} bytes, the graph executor needs {interpreter}");
        assert!(own <= interpreter, "{name}: {own} bytes of memory, the graph executor needs {interpreter}");
    }
}
