use super::*;
use crate::pipeline::{CompileOptions, compile};
use crate::targets;
use bytes::Bytes;
use mlc_codegen::package::Package;
use mlc_codegen::{Module, SourceFile, Target};
use mlc_ir::ops::{Binary, Unary};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{Attribute, Code, DType, Generator, Graph, Tensor, TensorType};
use std::path::Path;

/// A program of a module whose main function has this body; one input `x` and one output `y`, both `f32[4]`.
fn program(body: &str) -> Result<Program, Diagnostic> {
    let port = |name: &str| mlc_codegen::Port {
        name: name.into(),
        field: name.into(),
        ty: TensorType::new(DType::F32, [4]),
        quantization: None,
    };
    let text = format!(
        "#include <stdint.h>\nint32_t tvmgen_tiny___tvm_main__(const void* x, void* y, uint8_t* workspace);\n\
         int32_t tvmgen_tiny___tvm_main__(const void* x, void* y, uint8_t* workspace) {{\n  (void)workspace;\n{body}}}\n"
    );
    let module = Module {
        model_name: "tiny".into(),
        inputs: vec![port("x")],
        outputs: vec![port("y")],
        sources: vec![SourceFile { name: "tiny_lib1.c".into(), text }],
        ..Module::default()
    };
    let bytes = Package::of(&module, &Target::generic(), "").archive().unwrap();
    Toolchain::default().build(&Bundle::parse(&Bytes::from(bytes))?)
}

fn input() -> Tensor {
    Tensor::from_floats(TensorType::new(DType::F32, [4]), vec![1.0, 2.0, 3.0, 4.0])
}

#[test]
fn c_compiler_builds_a_program_that_runs_and_is_timed() {
    let program =
        program("  int i;\n  for (i = 0; i < 4; ++i) ((float*)y)[i] = 2 * ((const float*)x)[i];\n  return 0;\n")
            .unwrap();
    let outputs = program.run(&[input()]).unwrap();
    assert_eq!(outputs[0].to_floats(), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(program.bench(&[input()], 3).unwrap().len(), 3);
    assert!((5..=1000).contains(&program.bench(&[input()], 0).unwrap().len()));
    assert_eq!(program.run(&[]).unwrap_err().code, Code::OptionMismatch);
    let other = Tensor::from_floats(TensorType::new(DType::F32, [2]), vec![1.0, 2.0]);
    assert_eq!(program.run(&[other]).unwrap_err().code, Code::OptionMismatch);
}

#[test]
fn c_compiler_builds_programs_whose_broken_promises_are_told() {
    for (body, message) in [
        ("  ((float*)y)[4] = 1; return 0;\n", "the model wrote beyond output 0"),
        ("  ((float*)y)[-1] = 1; return 0;\n", "the model wrote beyond output 0"),
        ("  ((float*)(uintptr_t)x)[1] = 7; return 0;\n", "the model changed input 0"),
        ("  return x == y ? 0 : -1;\n", "the model failed with status -1"),
        ("  *(volatile int*)0 = 1; return 0;\n", "the program crashed"),
    ] {
        let error = program(body).unwrap().run(&[input()]).unwrap_err();
        assert_eq!(error.code, Code::ToolFailed);
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn c_compiler_errors_are_shown() {
    let error = program("  return nonsense;\n").unwrap_err();
    assert_eq!(error.code, Code::ToolFailed);
    assert!(error.notes[0].contains("nonsense"), "{:?}", error.notes);
}

#[test]
fn options_stand_behind_those_of_the_target() {
    let hasty = |toolchain| Toolchain { options: vec!["-O1".into()], ..toolchain };
    for (name, toolchain) in [("host", Toolchain::default()), ("cortex-m4", Toolchain::emulated("cortex-m4").unwrap())]
    {
        let target = targets::find(name).unwrap();
        let (usual, flags) = (toolchain.flags(&target).unwrap(), hasty(toolchain).flags(&target).unwrap());
        assert!(usual.iter().any(|flag| flag == "-O3"), "{usual:?}");
        assert_eq!(flags.split_last(), Some((&"-O1".to_owned(), &usual[..])));
    }
}

#[test]
fn a_missing_compiler_is_told() {
    let toolchain = Toolchain::from_variable(Some("/nonexistent/cc -m32"));
    assert_eq!(toolchain.compiler, ["/nonexistent/cc", "-m32"]);
    let bundle = compile(&graph(), &CompileOptions::default(), &mut |_, _| {}).unwrap().bundle().unwrap();
    let error = toolchain.build(&bundle).unwrap_err();
    assert!(error.message.contains("can't start the C compiler '/nonexistent/cc'"), "{error}");
    assert_eq!(Toolchain::from_variable(Some(" ")), Toolchain::default());
    assert!(Path::new(&Toolchain::from_variable(Some("tools/cc -m32")).compiler[0]).is_absolute());
    assert_eq!(Toolchain::from_variable(Some("ccache gcc")).compiler, ["ccache", "gcc"]);
}

/// sigmoid(a + w) and a + w.
fn graph() -> Graph {
    let mut graph = Graph::new("g");
    let a = graph.add_input("a:0", TensorType::new(DType::F32, [2, 3]));
    let w = graph.add_constant("w", Attribute::from_f32(&[3], &[0.5, -1.0, 2.0]).unwrap());
    let sum = graph.add(Binary { function: BinaryFunction::Add }, &[a, w], "sum").unwrap();
    let sigmoid = graph.add(Unary { function: UnaryFunction::Sigmoid }, &[sum.into()], "sigmoid").unwrap();
    graph.add_output("probabilities", sigmoid.into());
    graph.add_output("sum", sum.into());
    graph
}

#[test]
fn c_compiler_builds_what_the_pipeline_makes_and_it_agrees_with_the_evaluator() {
    let graph = graph();
    let input = Generator::new(1).tensor(&TensorType::new(DType::F32, [2, 3]));
    let expected = mlc_ir::evaluate(&graph, std::slice::from_ref(&input)).unwrap();
    for target in targets::all().into_iter().filter(|target| target.tools.is_none()) {
        let mut stages = Vec::new();
        let options = CompileOptions { target, ..CompileOptions::default() };
        let compiled = compile(&graph, &options, &mut |stage, _| stages.push(stage.to_owned())).unwrap();
        assert!(!stages.is_empty());
        assert_eq!(compiled.archive().unwrap(), compiled.archive().unwrap());
        let program = Toolchain::default().build(&compiled.bundle().unwrap()).unwrap();
        let outputs = program.run(std::slice::from_ref(&input)).unwrap();
        for (actual, expected) in outputs.iter().zip(&expected) {
            let comparison = crate::compare::compare(actual, expected, crate::compare::Tolerance::of(DType::F32));
            assert!(comparison.unwrap().passes());
        }
    }
}
