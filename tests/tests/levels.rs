//! Kernels for several levels of a machine in one archive: the golden outputs on each level that this machine has, and the bits that code
//! for that level alone computes.

use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::{Toolchain, guests};
use mlc_codegen::{Execution, Pools, Target};
use mlc_ir::Tensor;
use mlc_ir::parallel;
use mlc_tests::case::Case;
use mlc_tests::compare::{Tolerance, compare};
use mlc_tests::compile::load;
use mlc_tests::firmware::target;
use mlc_tests::paths;
use mlc_tests::program::hasty;

/// Convolutions, depthwise ones, attention, recurrence, 8-bit integers.
const NETWORKS: [&str; 4] = [
    "pnnx/net_mlperftiny_dscnn_kws",
    "pnnx/net_transformer_encoder_mha",
    "pnnx/net_lstm_classifier",
    "onnx/quantized_network_qdq",
];

/// A case of the repository, or of the collection beside it where that is there.
fn find(path: &str) -> Option<Case> {
    let folders = [Some(paths::data()), paths::conformance()].into_iter().flatten();
    folders.map(|folder| folder.join(path)).find(|folder| folder.is_dir()).map(|folder| Case::read(&folder).unwrap())
}

/// The levels that this machine has, with their numbers.
fn levels_here(target: &Target) -> Vec<(usize, Target)> {
    let is_here = |level: &Target| guests().any(|guest| guest.target == level.name && !guest.is_emulated());
    target.levels.iter().cloned().enumerate().filter(|(_, level)| is_here(level)).collect()
}

/// What a case's code computes, built by a compiler with options of its own.
fn outputs(case: &Case, target: &Target, execution: Execution, compiler: &[&str]) -> Vec<Tensor> {
    let name = &case.name;
    let graph = load(case).unwrap().graph;
    let options = CompileOptions { target: target.clone(), execution, ..CompileOptions::default() };
    let compiled = pipeline::compile(&graph, &options, &mut |_, _| {}).unwrap();
    let compiler = compiler.iter().copied().map(String::from).collect();
    let toolchain = hasty(Toolchain { compiler, ..Toolchain::default() });
    let program = toolchain.build(&compiled.bundle().unwrap()).unwrap_or_else(|fault| panic!("{name}: {fault:?}"));
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let outputs = program.run(&inputs).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    for (output, golden) in outputs.iter().zip(&case.outputs) {
        compare(output, &golden.value, case.tolerance_of(&golden.value))
            .unwrap_or_else(|fault| panic!("{name}, {}: {fault}", golden.name));
    }
    outputs
}

fn equal(found: &[Tensor], alone: &[Tensor], what: &str) {
    assert_eq!(found.len(), alone.len());
    for (found, alone) in found.iter().zip(alone) {
        compare(found, alone, Tolerance::EXACT).unwrap_or_else(|fault| panic!("{what}: {fault}"));
    }
}

#[test]
fn each_level_computes_the_bits_of_code_for_it_alone() {
    let all = target("x86-64").unwrap();
    let external = Execution { pools: Pools::External, ..Execution::default() };
    let cases: Vec<Case> = NETWORKS.iter().filter_map(|path| find(path)).collect();
    assert!(!cases.is_empty());
    parallel::map(&cases, 2, |case| {
        for (number, level) in levels_here(&all) {
            let forced = format!("-DTVMGEN_DEFAULT_LEVEL={number}");
            let alone = outputs(case, &level, Execution::default(), &["cc"]);
            // The memory's owner is of no network.
            let executions = if case.format == "onnx" { vec![Execution::default(), external] } else { vec![external] };
            for execution in executions {
                let found = outputs(case, &all, execution, &["cc", "-Wall", "-Wextra", "-Werror", &forced]);
                equal(&found, &alone, &format!("{} on {}", case.name, level.name));
            }
        }
    });
}

#[test]
fn each_level_has_no_undefined_behaviour_and_other_compilers_take_it() {
    let all = target("x86-64").unwrap();
    let sanitized = ["cc", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for (number, _) in levels_here(&all) {
        let forced = format!("-DTVMGEN_DEFAULT_LEVEL={number}");
        for compiler in [&sanitized[..], &["clang", "-Wall", "-Wextra", "-Werror"]] {
            for case in ["pnnx/net_lstm_classifier", "onnx/quantized_network_qdq"].iter().filter_map(|path| find(path))
            {
                outputs(&case, &all, Execution::default(), &[compiler, &[&forced]].concat());
            }
        }
    }
}

#[test]
fn the_last_level_is_picked_and_threads_compute_it_too() {
    let all = target("x86-64").unwrap();
    let Some((_, last)) = levels_here(&all).pop() else { return };
    let Some(case) = find("pnnx/net_mlperftiny_resnet8") else { return };
    let alone = outputs(&case, &last, Execution::default(), &["cc"]);
    for threads in [1, 2] {
        let execution = Execution { threads, ..Execution::default() };
        equal(&outputs(&case, &all, execution, &["cc"]), &alone, &format!("{threads} threads"));
    }
}
