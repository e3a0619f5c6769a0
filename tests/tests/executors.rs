//! Whole networks under every executor: archives for the graph executor and for the packed interface, built with the C compiler
//! and our runtime alone, give the golden outputs, and the same bits as ahead-of-time code. Ten networks from the repository and,
//! where it is, the conformance collection.

use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::Toolchain;
use mlc_codegen::{Execution, Interface, WeightsAs};
use mlc_ir::Tensor;
use mlc_ir::parallel;
use mlc_tests::case::Case;
use mlc_tests::compare::compare;
use mlc_tests::compile::load;
use mlc_tests::firmware::find;
use mlc_tests::program::hasty;

/// Branches, recurrences, transformers, resizing, grouped convolutions.
const NETWORKS: [&str; 12] = [
    "net_coord_attention",
    "net_dueling_dqn",
    "net_gru_classifier",
    "net_lenet_relu_maxpool",
    "net_lstm_streaming_state",
    "net_mlperftiny_dscnn_kws",
    "net_mlperftiny_resnet8",
    "net_vit_tiny_separate_qkv",
    // In the collection only.
    "net_gpt_tiny_causal",
    "net_shufflenet_v2_x0_5",
    "net_transformer_encoder_mha",
    "net_unet_transposed",
];

fn run(case: &Case, execution: Execution) -> Vec<Tensor> {
    let loaded = load(case).unwrap();
    let options = CompileOptions { execution, ..CompileOptions::default() };
    let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {}).unwrap();
    let bundle = compiled.bundle().unwrap();
    let program = hasty(Toolchain::default()).build(&bundle).unwrap_or_else(|error| panic!("{}: {error:?}", case.name));
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    program.run(&inputs).unwrap_or_else(|error| panic!("{}: {error:?}", case.name))
}

#[test]
fn c_compiler_builds_networks_for_every_executor_with_the_same_bits() {
    let seen = parallel::map(&NETWORKS, 2, |name| check(name));
    let seen = seen.into_iter().filter(|&seen| seen).count();
    assert!(seen >= 8, "{seen} networks");
}

/// Whether the network is here; it gives the same bits under every executor, which are those of its golden outputs.
fn check(name: &str) -> bool {
    let Some(case) = find(name) else {
        eprintln!("skipped: {name} isn't here");
        return false;
    };
    let aot = |interface| Execution { aot: Some(interface), ..Execution::default() };
    let expected = run(&case, aot(Interface::C));
    assert_eq!(expected.len(), case.outputs.len(), "{name}");
    for (output, golden) in expected.iter().zip(&case.outputs) {
        compare(output, &golden.value, case.tolerance).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    let graph = Execution { aot: None, graph: true, ..Execution::default() };
    let binary = Execution { weights: WeightsAs::Binary, ..aot(Interface::C) };
    // A file of weights is read alike whatever the network.
    let with_binary = NETWORKS.iter().position(|other| *other == name).is_some_and(|number| number % 4 == 0);
    for execution in [graph, aot(Interface::Packed)].into_iter().chain(with_binary.then_some(binary)) {
        let found = run(&case, execution);
        assert!(found.len() == expected.len(), "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.to_le_bytes() == expected.to_le_bytes(), "{name} under {execution:?}");
        }
    }
    true
}
