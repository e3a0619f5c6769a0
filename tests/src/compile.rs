//! From a case, or a graph, to an archive, by the compiler's own library.

use crate::case::Case;
use indexmap::IndexMap;
use mlc::pipeline::{self, CompileOptions, LoadOptions, Loaded};
use mlc_codegen::package::Package;
use mlc_codegen::{Execution, Module, Options, ScheduleOptions, Target, generate};
use mlc_ir::{Code, Diagnostic, Graph, Location, text};
use std::path::PathBuf;

/// What the compiler makes of a model.
#[derive(Debug)]
pub struct Compiled {
    /// The code, before it was packed.
    pub module: Module,
    /// The Model Library Format archive.
    pub archive: Vec<u8>,
    /// Warnings and notes.
    pub findings: Vec<Diagnostic>,
}

/// Reads a case's model; where it leaves dimensions or data types open, the inputs give them, and where shapes depend on inputs,
/// these are taken to be always the same.
///
/// # Errors
/// What the frontend finds wrong with the model.
pub fn load(case: &Case) -> Result<Loaded, Vec<Diagnostic>> {
    let mut options = LoadOptions::default();
    if case.dynamic {
        for input in &case.inputs {
            options.input_shapes.insert(input.name.clone(), input.value.shape().to_vec());
            options.input_dtypes.insert(input.name.clone(), input.value.ty().dtype);
        }
    }
    options.bindings.weights = case.weights.iter().map(|weight| (weight.name.clone(), weight.weight())).collect();
    options.weights.clone_from(&case.weights_file);
    if case.format == "lightnet" {
        // Some cases look at tensors that operators take, too.
        let outputs = case.outputs.iter().map(|output| (output.name.clone(), format!("tensor:{}", output.name)));
        options.bindings.outputs = outputs.collect();
    }
    let loaded = pipeline::load(&case.model, &options).map_err(|failure| failure.diagnostics);
    match loaded {
        Err(findings) if findings.iter().all(|found| found.code == Code::DataDependentShape) && case.dynamic => {
            options.input_values = whole_inputs(case);
            pipeline::load(&case.model, &options).map_err(|failure| failure.diagnostics)
        }
        loaded => loaded,
    }
}

/// The files of a case's inputs that shapes can depend on: those of integers.
fn whole_inputs(case: &Case) -> IndexMap<String, PathBuf> {
    let inputs = case.inputs.iter().enumerate().filter(|(_, input)| input.value.ty().dtype.is_integer());
    let file = |number| case.model.with_file_name(format!("input_{number}.npy"));
    inputs.map(|(number, input)| (input.name.clone(), file(number))).collect()
}

/// Compiles a case's model.
///
/// # Errors
/// What the compiler finds wrong with the model.
pub fn compile(case: &Case, target: &Target) -> Result<Compiled, Vec<Diagnostic>> {
    compile_as(case, "default", target)
}

/// Compiles a case's model by a name.
///
/// # Errors
/// What the compiler finds wrong with the model.
pub fn compile_as(case: &Case, name: &str, target: &Target) -> Result<Compiled, Vec<Diagnostic>> {
    let loaded = load(case)?;
    let mut compiled = compile_graph(&loaded.graph, name, target)?;
    compiled.findings.extend(loaded.warnings);
    Ok(compiled)
}

/// Optimises a graph and generates code for it.
///
/// # Errors
/// What the compiler finds wrong with it.
pub fn compile_graph(graph: &Graph, name: &str, target: &Target) -> Result<Compiled, Vec<Diagnostic>> {
    let options = CompileOptions { model_name: name.to_owned(), target: target.clone(), ..CompileOptions::default() };
    let compiled = pipeline::compile(graph, &options, &mut |_, _| {})?;
    let archive = compiled.archive().map_err(|error| vec![error])?.to_vec();
    Ok(Compiled { module: compiled.module, archive, findings: Vec::new() })
}

/// Generates code for a graph as it is, without optimising it.
///
/// # Errors
/// What the code generator refuses.
pub fn compile_kernels(graph: &Graph, name: &str, target: &Target) -> Result<Compiled, Vec<Diagnostic>> {
    compile_scheduled(graph, name, target, ScheduleOptions::default())
}

/// Compiles a graph of kernels with options of their schedules.
///
/// # Errors
/// What the code generator refuses.
pub fn compile_scheduled(
    graph: &Graph,
    name: &str,
    target: &Target,
    schedules: ScheduleOptions,
) -> Result<Compiled, Vec<Diagnostic>> {
    let module = generate(
        graph,
        &Options { model_name: name.to_owned(), target: target.clone(), execution: Execution::default(), schedules },
    )?;
    let archive = Package::of(&module, target, &text::print(graph))
        .archive()
        .map_err(|error| vec![Diagnostic::error(Code::FileUnwritable, Location::default(), error.to_string())])?;
    Ok(Compiled { module, archive, findings: Vec::new() })
}
