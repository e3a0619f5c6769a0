//! `mlc verify`

use super::arguments::Verify;
use super::console::Console;
use super::subject::{check_built, compile_options, in_model, load_for, mismatch, read_inputs};
use crate::compare::{Comparison, Tolerance, compare};
use crate::inputs::{self, InputPort};
use crate::npy;
use crate::pipeline::{self, Failure};
use mlc_ir::{Code, Diagnostic, Graph, Location, Tensor};
use serde::Serialize;

/// How far an output of the program is from what is expected.
#[derive(Serialize)]
struct OutputResult<'a> {
    name: &'a str,
    /// Which run in a row it is of; only of models with states.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<u32>,
    against: &'static str,
    passed: bool,
    #[serde(flatten)]
    comparison: Comparison,
}

pub(super) fn verify(arguments: &Verify, console: &Console) -> Result<(), Failure> {
    let options = compile_options(&arguments.code, arguments.machine.default_target(), console)?;
    let loaded = load_for(&arguments.model, &arguments.code, &arguments.inputs.files, console)?;
    let graph = &loaded.graph;
    let given = graph.open_inputs().into_iter().map(|number| graph.inputs()[number]);
    let ports: Vec<InputPort> = given.map(|input| (&*graph.node(input).name, graph.ty(input.into()))).collect();
    let inputs = read_inputs(&arguments.inputs, &ports, console)?;
    let known = read_expected(&arguments.expect, graph)?;

    let progress = console.progress("compiling, building and evaluating");
    let compiled = pipeline::compile(graph, &options, &mut |_, _| {})
        .map_err(|diagnostics| in_model(diagnostics, &arguments.model, loaded.sources))?;
    let program = arguments.machine.toolchain()?.build(&compiled.bundle()?)?;
    check_built(&program, &arguments.code)?;
    // States show from the second run on only. Known outputs are those of the first.
    let runs = if graph.states.is_empty() || !known.is_empty() { 1 } else { RUNS };
    let outputs = (0..runs).map(|earlier| program.run_after(&inputs, earlier)).collect::<Result<Vec<_>, _>>()?;

    // The evaluator is slow; it isn't needed where goldens are given.
    let expected: Vec<(usize, usize, Tensor, &str)> = if known.is_empty() {
        let all = mlc_ir::evaluate_runs(graph, &vec![inputs; runs as usize])?;
        let of_run = |(run, outputs): (usize, Vec<Tensor>)| {
            outputs.into_iter().enumerate().map(move |(index, output)| (run, index, output, "evaluator"))
        };
        all.into_iter().enumerate().flat_map(of_run).collect()
    } else {
        known.into_iter().map(|(index, output, against)| (0, index, output, against)).collect()
    };
    drop(progress);
    let names = output_names(graph);
    let mut results = Vec::new();
    for (run, index, expected, against) in expected {
        let default = Tolerance::of(expected.ty().dtype);
        let tolerance = Tolerance {
            absolute: arguments.atol.unwrap_or(default.absolute),
            relative: arguments.rtol.unwrap_or(default.relative),
        };
        let name = names[index];
        let comparison =
            compare(&outputs[run][index], &expected, tolerance).map_err(|message| differs(name, message))?;
        let run = (runs > 1).then_some(run as u32 + 1);
        results.push(OutputResult { name, run, against, passed: comparison.passes(), comparison });
    }
    if arguments.json {
        console.print_json(&results);
    } else {
        for result in &results {
            console.print(&describe(result));
        }
    }
    let faults: Vec<Diagnostic> = results.iter().filter(|result| !result.passed).map(fault).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
}

/// How many runs in a row are checked of a model that has states.
const RUNS: u32 = 3;

/// Names of the outputs that the caller gets.
fn output_names(graph: &Graph) -> Vec<&str> {
    graph.open_outputs().into_iter().map(|number| &*graph.outputs()[number].name).collect()
}

/// The known outputs: number, tensor, and a word for where they come from.
fn read_expected(arguments: &[String], graph: &Graph) -> Result<Vec<(usize, Tensor, &'static str)>, Failure> {
    let names = output_names(graph);
    let numbers = graph.open_outputs();
    let mut expected: Vec<(usize, Tensor, &'static str)> = Vec::new();
    let mut faults = Vec::new();
    for argument in arguments {
        let tensor = inputs::find_output(argument, &names).and_then(|(index, path)| {
            if expected.iter().any(|(other, ..)| *other == index) {
                return Err(mismatch(format!("the output '{}' is given twice", names[index])));
            }
            let ty = graph.ty(graph.outputs()[numbers[index]].value);
            Ok((index, npy::read_tensor(path, ty)?, "file"))
        });
        match tensor {
            Ok(tensor) => expected.push(tensor),
            Err(fault) => faults.push(fault),
        }
    }
    expected.sort_by_key(|(index, ..)| *index);
    if faults.is_empty() { Ok(expected) } else { Err(faults.into()) }
}

fn describe(result: &OutputResult) -> String {
    let OutputResult { name, run, against, passed, comparison } = result;
    let run = run.map_or(String::new(), |run| format!(" of run {run}"));
    let Comparison { max_absolute, max_ulps, elements, .. } = comparison;
    let verdict = if *passed { "ok" } else { "FAILED" };
    let noun = if *elements == 1 { "element" } else { "elements" };
    format!(
        "{name}{run}: {verdict}, {elements} {noun} against the {against}: max difference {max_absolute:e} ({max_ulps} ulp)\n"
    )
}

fn fault(result: &OutputResult) -> Diagnostic {
    let Comparison { mismatches, elements, worst, .. } = &result.comparison;
    let message = format!("{mismatches} of {elements} elements are outside the tolerance");
    let mut diagnostic = differs(result.name, message);
    if let Some(worst) = worst {
        let note = format!("at {:?} the program gives {:?}, {:?} expected", worst.index, worst.actual, worst.expected);
        diagnostic = diagnostic.with_note(note);
    }
    if result.against == "evaluator" {
        diagnostic =
            diagnostic.with_help("this is a defect of mlc unless the model amplifies rounding: please report it");
    }
    diagnostic
}

fn differs(name: &str, message: String) -> Diagnostic {
    Diagnostic::error(Code::OutputMismatch, Location::default(), format!("output '{name}': {message}"))
}
