//! What a test can do with its graph: what each mode makes of a graph's text.

use super::values::{Sample, judge, run_samples, samples, show};
use crate::compile::{self, Compiled};
use crate::mode::Mode as Target;
use crate::program::{Program, Unpacked, main_source};
use mlc::functions::CFunctions;
use mlc_codegen::FloatingPoint;
use mlc_ir::{Diagnostic, Graph, evaluate_with, text, verify};
use mlc_passes::OptimizeOptions;

/// What a test does with its graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// The text parses, and prints as it is written.
    Roundtrip,
    /// The text doesn't parse, or the graph breaks an invariant: the errors.
    Verify,
    /// The graph after a stage of the optimiser, or after all of them.
    Optimize(Option<String>),
    /// The C of the kernels, for the generic target or a microcontroller, of the graph as it is.
    Emit(FloatingPoint, Option<String>),
    /// The values that the generated code computes, for the host and for the generic target.
    Run(FloatingPoint),
}

/// What the mode makes of the text.
///
/// # Errors
/// What the text, or what came of it, does wrong.
pub fn run(mode: &Mode, input: &str) -> Result<String, String> {
    if *mode == Mode::Verify {
        return rejection(input);
    }
    let graph = sound(input)?;
    match mode {
        Mode::Roundtrip | Mode::Verify => Ok(String::new()),
        Mode::Optimize(stage) => optimize(graph, stage.clone()),
        Mode::Emit(floating_point, machine) => emit(&graph, *floating_point, machine.as_deref()),
        Mode::Run(floating_point) => execute(&graph, *floating_point),
    }
}

/// The graph of a text that is sound.
fn sound(input: &str) -> Result<Graph, String> {
    let graph = text::parse(input, &()).map_err(|findings| list(&findings))?;
    verify(&graph).map_err(|findings| list(&findings))?;
    Ok(graph)
}

/// The text as it should be written: printed, but with random constants as they are.
///
/// # Errors
/// What is wrong with it.
pub fn formatted(input: &str) -> Result<String, String> {
    let printed = text::print(&sound(input)?);
    let mut result = String::new();
    for line in printed.lines() {
        let definition = line.split_inclusive("] ").next().unwrap_or(line);
        let random = |given: &&str| given.trim_end().starts_with(&format!("{definition}random("));
        let written = if line.contains(" = constant ") { input.lines().find(random) } else { None };
        result += written.unwrap_or(line).trim_end();
        result.push('\n');
    }
    Ok(result)
}

fn rejection(input: &str) -> Result<String, String> {
    let findings = match text::parse(input, &()) {
        Ok(graph) => verify(&graph).err().ok_or("the graph is sound")?,
        Err(findings) => findings,
    };
    Ok(list(&findings))
}

fn list(findings: &[Diagnostic]) -> String {
    findings.iter().map(|finding| format!("{finding}\n")).collect()
}

fn optimize(graph: Graph, stage: Option<String>) -> Result<String, String> {
    let samples = samples(&graph)?;
    let options = OptimizeOptions { stop_after: stage.clone(), ..OptimizeOptions::default() };
    let mut seen = stage.is_none();
    let mut observer = |name: &str, _: &Graph| seen |= Some(name) == stage.as_deref();
    let (graph, _) = mlc_passes::optimize(graph, &options, &mut observer).map_err(|error| error.to_string())?;
    if !seen {
        return Err(format!("there is no stage {}", stage.unwrap_or_default()));
    }
    let functions = CFunctions::default();
    for sample in &samples {
        let outputs = evaluate_with(&graph, &sample.inputs, &functions).map_err(|error| error.to_string())?;
        judge("the optimised graph", sample, &outputs)?;
    }
    Ok(text::print(&graph))
}

fn emit(graph: &Graph, floating_point: FloatingPoint, machine: Option<&str>) -> Result<String, String> {
    let samples = run_samples(graph)?;
    let target = match machine {
        None => Target::generic(false),
        Some(name) => {
            let found = mlc_codegen::Target::embedded().into_iter().find(|target| target.name == name);
            Target::elsewhere(found.ok_or_else(|| format!("there is no microcontroller {name}"))?, false)
        }
    };
    let target = target.with_floating_point(floating_point);
    let compiled = compile::compile_kernels(graph, "test", &target.target).map_err(|findings| list(&findings))?;
    run_program(&build(&compiled, &target)?, &compiled, &samples, &format!("target {}", target.name))?;
    let kernels = compiled.module.sources.first().ok_or("there is no source")?;
    Ok(kernels.text.clone())
}

fn execute(graph: &Graph, floating_point: FloatingPoint) -> Result<String, String> {
    let samples = run_samples(graph)?;
    for target in [Target::generic(true), Target::host(false)] {
        let target = target.with_floating_point(floating_point);
        let compiled = compile::compile_kernels(graph, "test", &target.target).map_err(|findings| list(&findings))?;
        run_program(&build(&compiled, &target)?, &compiled, &samples, &format!("target {}", target.name))?;
    }
    Ok(samples.first().map_or_else(String::new, |sample| show(graph, &sample.outputs)))
}

fn build(compiled: &Compiled, target: &Target) -> Result<(Program, Unpacked), String> {
    let module = &compiled.module;
    let unpacked = Unpacked::new(&compiled.archive)?;
    let main = main_source(module);
    Ok((unpacked.build(&main, &target.build)?, unpacked))
}

fn run_program(
    (program, _folder): &(Program, Unpacked),
    compiled: &Compiled,
    samples: &[Sample],
    what: &str,
) -> Result<(), String> {
    for sample in samples {
        judge(what, sample, &program.run(&sample.inputs, &compiled.module.outputs)?)?;
    }
    Ok(())
}
