//! Operators that come from descriptions, in models, as programs: they compute what the original computed, between kernels that are
//! fused as always.

use mlc::pipeline::{self, CompileOptions, LoadOptions, Loaded};
use mlc::toolchain::Toolchain;
use mlc_codegen::{Execution, Interface};
use mlc_import::{CustomOperators, Renamed};
use mlc_ir::Tensor;
use mlc_tests::case::Case;
use mlc_tests::compare::compare;
use mlc_tests::compile::compile_graph;
use mlc_tests::described::described;
use mlc_tests::mode::Mode;
use mlc_tests::paths;
use mlc_tests::program::{Unpacked, main_source};

/// What the firmware of `vendor_relu` links.
const VENDOR_LIBRARY: &str = "
#include <stdint.h>
void arm_relu_q7(int8_t *data, uint16_t size);
void arm_relu_q7(int8_t *data, uint16_t size) {
  uint16_t i;
  for (i = 0; i < size; ++i) {
    data[i] = data[i] < 0 ? 0 : data[i];
  }
}
";

fn case(name: &str) -> Case {
    Case::read(&paths::data().join("custom-operators").join(name)).unwrap()
}

fn load(case: &Case, change: impl FnOnce(&mut CustomOperators)) -> Loaded {
    let options = LoadOptions { described: Some(described(&case.model, change).unwrap()), ..LoadOptions::default() };
    pipeline::load(&case.model, &options).unwrap_or_else(|failure| panic!("{:?}", failure.diagnostics))
}

fn inputs(case: &Case) -> Vec<Tensor> {
    case.inputs.iter().map(|input| input.value.clone()).collect()
}

fn compare_all(case: &Case, found: &[Tensor], how: &str) {
    assert_eq!(found.len(), case.outputs.len());
    for (output, golden) in found.iter().zip(&case.outputs) {
        compare(output, &golden.value, case.tolerance).unwrap_or_else(|error| panic!("{}, {how}: {error}", case.name));
    }
}

/// Compiles, builds, runs and compares a case; `library` is C that the firmware links beside it.
fn check(case: &Case, loaded: &Loaded, library: &str) {
    for mode in [Mode::generic(true), Mode::host(true), Mode::generic(false)] {
        let compiled = compile_graph(&loaded.graph, "default", &mode.target).unwrap();
        let main = main_source(&compiled.module) + library;
        let unpacked = Unpacked::new(&compiled.archive).unwrap();
        let program = unpacked.build(&main, &mode.build);
        let program = program.unwrap_or_else(|error| panic!("{}, {}: {error}", case.name, mode.name));
        let found = program.run(&inputs(case), &compiled.module.outputs);
        compare_all(case, &found.unwrap_or_else(|error| panic!("{}: {error}", case.name)), &mode.name);
    }
}

#[test]
fn c_compiler_adds_an_operator_that_onnx_has_and_mlc_has_not() {
    let case = case("non_max_suppression");
    let bare = pipeline::load(&case.model, &LoadOptions::default()).unwrap_err();
    assert!(bare.diagnostics[0].message.contains("NonMaxSuppression"), "{:?}", bare.diagnostics);
    let loaded = load(&case, |_| ());
    check(&case, &loaded, "");
    let aot = |interface| Execution { aot: Some(interface), ..Execution::default() };
    let graph = Execution { aot: None, graph: true, ..Execution::default() };
    for execution in [graph, aot(Interface::Packed), aot(Interface::C)] {
        let options = CompileOptions { execution, ..CompileOptions::default() };
        let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {}).unwrap();
        let program = Toolchain::default().build(&compiled.bundle().unwrap());
        let found = program.unwrap_or_else(|error| panic!("{error:?}")).run(&inputs(&case));
        compare_all(&case, &found.unwrap_or_else(|error| panic!("{error:?}")), &format!("{execution:?}"));
    }
}

#[test]
fn a_described_operator_stands_between_fused_kernels() {
    let case = case("non_max_suppression");
    let compiled = compile_graph(&load(&case, |_| ()).graph, "default", &Mode::generic(false).target).unwrap();
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(paths::repository().join("snapshots/custom-operators"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("non_max_suppression.c", compiled.module.sources[0].text));
}

#[test]
fn c_compiler_puts_a_call_of_a_library_in_the_place_of_a_kernel() {
    let case = case("vendor_relu");
    let loaded = load(&case, |operators| operators.replace_own = true);
    let compiled = compile_graph(&loaded.graph, "default", &Mode::generic(false).target).unwrap();
    assert!(compiled.module.sources[0].text.contains("Relu_cpu_call"), "{}", compiled.module.sources[0].text);
    check(&case, &loaded, VENDOR_LIBRARY);
}

/// Its options are a FlexBuffer: a list of numbers, a real and a whole number, a truth value.
#[test]
fn c_compiler_takes_a_custom_operator_of_tensorflow_lite_with_its_options() {
    let case = case("tflite_staircase");
    let bare = pipeline::load(&case.model, &LoadOptions::default()).unwrap_err();
    assert!(bare.diagnostics[0].message.contains("StaircaseDetector"), "{:?}", bare.diagnostics);
    check(&case, &load(&case, |_| ()), "");
    let renamed = |operators: &mut CustomOperators| {
        let parameters = [("slope".to_owned(), "incline".to_owned())].into_iter().collect();
        let optype = "StaircaseDetector".to_owned();
        operators.renamed.insert(optype.clone(), Renamed { optype, parameters });
    };
    let options = LoadOptions { described: Some(described(&case.model, renamed).unwrap()), ..LoadOptions::default() };
    let without = pipeline::load(&case.model, &options).unwrap_err();
    assert!(without.diagnostics[0].message.contains("needs a `slope` param"), "{:?}", without.diagnostics);
}

#[test]
fn a_view_is_an_address_in_its_owner() {
    let model = paths::data().join("lightnet-opdesc/row_view_owner_offset/model.json");
    let options = LoadOptions { described: Some(described(&model, |_| ()).unwrap()), ..LoadOptions::default() };
    let graph = pipeline::load(&model, &options).unwrap_or_else(|failure| panic!("{:?}", failure.diagnostics)).graph;
    let module = compile_graph(&graph, "default", &Mode::generic(false).target).unwrap().module;
    let code: String = module.sources.iter().map(|source| source.text.as_str()).collect();
    // Rows 2 to 4 of six floats each, and of those all but the first: no kernel copies them.
    assert!(code.contains("(const float *)input0 + 12") && code.contains("(const float *)input0 + 18"), "{code}");
    assert!(module.kernels.iter().all(|kernel| !kernel.node.starts_with("row_view")), "{:?}", module.kernels);
}
