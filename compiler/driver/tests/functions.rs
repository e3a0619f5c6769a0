//! Functions in C where a graph is evaluated: they run in a process of their own, and what goes wrong there is told.

use mlc::functions::CFunctions;
use mlc::pipeline::{CompileOptions, compile};
use mlc::toolchain::Toolchain;
use mlc_codegen::Target;
use mlc_ir::{DType, Diagnostic, Graph, Tensor, TensorType, evaluate_runs_with, evaluate_with};
use std::time::Duration;

/// The fields of a function `f` of one operand and one result, `f32[4]`, whose C file has this text.
fn fields(convention: &str, effect: usize, source: &str) -> String {
    format!(
        "{{symbol = f, convention = {convention}, operands = [f32[4]], results = [f32[4]], workspace = 0, alignment = 1, operations = 0, \
         overwrites = [], persistent = [], effect = {effect}, begin = none, end = none, instance = none, \
         sources = [[\"f.c\", {source:?}]]}}"
    )
}

/// The body of `f`, over `x` and `y`, as a C file.
fn unpacked(body: &str) -> String {
    format!(
        "#include <stdint.h>\nint32_t f(const void *x0, void *y0);\nint32_t f(const void *x0, void *y0) {{\n  const float *x = x0;\n  \
         float *y = y0;\n  {body}\n}}\n"
    )
}

const DOUBLE: &str = "for (int i = 0; i < 4; ++i) y[i] = 2 * x[i]; return 0;";

fn parsed(text: &str) -> Graph {
    let graph = mlc_ir::text::parse(text, &()).unwrap();
    mlc_ir::verify(&graph).unwrap();
    graph
}

/// The function between two kernels.
fn graph(fields: &str) -> Graph {
    parsed(&text(fields))
}

fn text(fields: &str) -> String {
    format!(
        "mlc 1\ngraph @g(%x: f32[4]) -> (\"y\": f32[4]) {{\n  %a = unary %x {{function = tanh}}\n  %f = extern %a {fields}\n  \
         %y = unary %f {{function = exp}}\n  return %y\n}}\n"
    )
}

fn input() -> Tensor {
    Tensor::from_floats(TensorType::new(DType::F32, [4]), vec![0.0, 0.5, -1.0, 2.0])
}

fn evaluated(fields: &str, functions: &CFunctions) -> Result<Vec<f64>, Diagnostic> {
    Ok(evaluate_with(&graph(fields), &[input()], functions)?.remove(0).to_floats())
}

#[test]
fn c_compiler_makes_functions_that_the_evaluator_calls() {
    let functions = CFunctions::default();
    let found = evaluated(&fields("unpacked", 0, &unpacked(DOUBLE)), &functions).unwrap();
    for (found, x) in found.iter().zip(input().to_floats()) {
        assert!((found - (2.0 * x.tanh()).exp()).abs() < 1e-6, "{found} of {x}");
    }
    let packed = "#include \"tvm/runtime/c_runtime_api.h\"\n\
        int32_t f(void *args, int32_t *ids, int32_t count, void *out, int32_t *code, void *handle);\n\
        int32_t f(void *args, int32_t *ids, int32_t count, void *out, int32_t *code, void *handle) {\n  \
        const float *x = ((DLTensor *)((TVMValue *)args)[0].v_handle)->data;\n  \
        float *y = ((DLTensor *)((TVMValue *)args)[1].v_handle)->data;\n  \
        (void)ids, (void)count, (void)out, (void)code, (void)handle;\n  \
        for (int i = 0; i < 4; ++i) y[i] = 2 * x[i];\n  return 0;\n}\n";
    assert_eq!(evaluated(&fields("packed", 0, packed), &functions).unwrap(), found);
}

#[test]
fn c_compiler_makes_functions_whose_faults_are_told_with_the_node() {
    let second = Toolchain { limit: Some(Duration::from_secs(1)), ..Toolchain::default() };
    let functions = CFunctions::new(second);
    for (body, message) in [
        ("*(volatile int *)0 = 1; return 0;", "f as a model by itself: the program crashed"),
        ("for (volatile int k = 0;; ++k) {} return 0;", "the program didn't end within 1 seconds"),
        ("return x == y ? 0 : 43;", "failed with status 43"),
        ("y[4] = 1; return 0;", "beyond output"),
        ("return nonsense;", "nonsense"),
    ] {
        let error = evaluated(&fields("unpacked", 0, &unpacked(body)), &functions).unwrap_err();
        assert!(error.message.contains(message), "{message}: {error}");
        assert_eq!(error.location.node.as_deref(), Some("f"), "{error}");
    }
    let missing = CFunctions::new(Toolchain::from_variable(Some("/nonexistent/cc")));
    let error = evaluated(&fields("unpacked", 0, &unpacked(DOUBLE)), &missing).unwrap_err();
    assert!(error.message.contains("can't start the C compiler '/nonexistent/cc'"), "{error}");
}

/// Counts its calls: what it keeps shows in the next run, and in the next turn of a loop.
const COUNTER: &str = "static float calls; calls += 1; for (int i = 0; i < 4; ++i) y[i] = x[i] + calls; return 0;";

#[test]
fn c_compiler_makes_functions_that_keep_what_programs_keep() {
    let call = |effect: usize| fields("unpacked", effect, &unpacked(COUNTER));
    let graph = parsed(&format!(
        "mlc 1\ngraph @g(%x: f32[4]) -> (\"y\": f32[4]) {{\n  %l = loop %x {{body = graph @body(%turn: i64[], %h: f32[4]) -> (\"h\": f32[4]) \
         {{\n    %f = extern %h {}\n    return %f\n  }}, trip_count = 3, carried = 1, scanned = [], stacked = [], conditional = false}}\n  \
         return %l\n}}\n",
        call(1)
    ));
    let runs = vec![vec![input()]; 3];
    let functions = CFunctions::default();
    let outputs = evaluate_runs_with(&graph, &runs, &functions).unwrap();
    for target in [Target::generic(), Target::host(16)] {
        let options = CompileOptions { target, ..CompileOptions::default() };
        let bundle = compile(&graph, &options, &mut |_, _| {}).unwrap().bundle().unwrap();
        let program = Toolchain::default().build(&bundle).unwrap();
        for (earlier, expected) in outputs.iter().enumerate() {
            let found = program.run_after(&[input()], earlier as u32).unwrap();
            assert_eq!(found[0].to_floats(), expected[0].to_floats(), "run {earlier}");
        }
    }
    // Turns 1 to 3 add 6, turns 4 to 6 add 15; and the first run of another evaluation is a first one.
    let first = |outputs: &[Tensor]| outputs[0].to_floats()[0];
    assert_eq!((first(&outputs[0]), first(&outputs[1])), (6.0, 15.0));
    assert_eq!(first(&evaluate_with(&graph, &[input()], &functions).unwrap()), 6.0);
}

#[test]
fn c_compiler_verifies_models_with_functions() {
    let folder = tempfile::tempdir().unwrap();
    let mlc = |arguments: &[&str]| {
        let (status, said) = crate::common::said(folder.path(), arguments);
        (status == 0, said)
    };
    std::fs::write(folder.path().join("m.mlc"), text(&fields("unpacked", 0, &unpacked(DOUBLE)))).unwrap();
    let (is_right, said) = mlc(&["verify", "m.mlc"]);
    assert!(is_right && said.contains("y: ok, 4 elements against the evaluator"), "{said}");
    for form in [&["--executor", "graph"][..], &["--interface-api", "packed"], &["--executor", "aot,graph"]] {
        let (is_right, said) = mlc(&[&["compile", "m.mlc", "-o", "m.tar"][..], form].concat());
        assert!(is_right, "{said}");
        let (is_right, said) = mlc(&["run", "m.tar"]);
        assert!(is_right, "{form:?}: {said}");
    }
    std::fs::write(folder.path().join("m.mlc"), text(&fields("unpacked", 0, &unpacked("return 5;")))).unwrap();
    let (is_right, said) = mlc(&["verify", "m.mlc"]);
    assert!(!is_right && said.contains("failed with status 5"), "{said}");
}
