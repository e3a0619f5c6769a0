//! `mlc verify`

use super::arguments::Verify;
use super::console::Console;
use super::layers::Seen;
use super::per_layer::{self, Layer};
use super::subject::{bundle, check_built, in_model, input_ports, load_for, program_options, read_inputs, renamed};
use super::words::mismatch;
use crate::compare::{Comparison, Tolerance, compare_within};
use crate::conditioning::{Bound, Bounds};
use crate::files;
use crate::format::Format;
use crate::functions::CFunctions;
use crate::inputs::{self, InputPort};
use crate::npy;
use crate::pipeline::{self, Failure};
use crate::steps::Steps;
use crate::toolchain::Toolchain;
use mlc_ir::{Code, Diagnostic, Graph, Location, Quantization, Tensor, TensorType};
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
    /// Of integers that stand for real numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Steps>,
}

pub(super) fn verify(arguments: &Verify, console: &Console) -> Result<(), Failure> {
    let path = &arguments.model.path;
    let format = pipeline::detect(path, &files::read(path)?, arguments.model.format)?;
    let is_archive = format == Format::Mlf && arguments.model.from.is_none();
    if is_archive && arguments.layers.per_layer {
        let message = "--per-layer compares with the graph that code was generated of, which an archive doesn't give";
        return Err(mismatch(message.into())
            .with_help("give the model itself; 'mlc run --layers' takes archives and writes what kernels compute")
            .into());
    }
    if is_archive && !arguments.expect.is_empty() {
        return verify_archive(arguments, console);
    }
    let options = program_options(&arguments.code, &arguments.machine, console)?;
    let loaded = match load_for(&arguments.model, &arguments.code, &arguments.inputs.files, console) {
        Err(failure) if is_archive && failure.diagnostics.iter().any(|fault| fault.code == Code::RelatedFormat) => {
            return verify_archive(arguments, console);
        }
        loaded => loaded?,
    };
    let graph = &loaded.graph;
    let given = graph.open_inputs().into_iter().map(|number| graph.inputs()[number]);
    let ports: Vec<InputPort> = given.map(|input| (&*graph.node(input).name, graph.ty(input.into()))).collect();
    let inputs = read_inputs(&renamed(&arguments.inputs, &arguments.model, &loaded.aliases), &ports, console)?;
    let numbers = graph.open_outputs();
    let types = numbers.iter().map(|&number| graph.ty(graph.outputs()[number].value).clone());
    let outputs: Vec<(&str, TensorType)> = output_names(graph).into_iter().zip(types).collect();
    let known = read_expected(&arguments.expect, &outputs)?;

    let progress = console.progress("compiling, building and evaluating");
    let compiled = pipeline::compile(graph, &options, &mut |_, _| {})
        .map_err(|diagnostics| in_model(diagnostics, &arguments.model, loaded.sources))?;
    let (toolchain, bundle) = (arguments.machine.toolchain()?, compiled.bundle()?);
    let program =
        if arguments.layers.per_layer { toolchain.build_to_watch(&bundle) } else { toolchain.build(&bundle) }?;
    check_built(&program, &arguments.code)?;
    // Rounded weights are the model, not an error of the code.
    let graph = if options.weights_type.is_some() { &compiled.graph } else { graph };
    // States show from the second run on only. Known outputs are those of the first.
    let runs = if graph.states.is_empty() || !known.is_empty() { 1 } else { RUNS };
    let functions = CFunctions::new(Toolchain::from_variable(std::env::var("CC").ok().as_deref()));
    let layers = if arguments.layers.per_layer {
        let kernels = bundle.origin.as_ref().map_or(&[][..], |origin| &origin.kernels);
        let (_, tensors) = program.run_watched(&inputs)?;
        let seen = Seen { model: &bundle.model.name, kernels, results: &program.results, tensors: &tensors };
        Some(per_layer::compare(arguments, &seen, (graph, &compiled.graph), &inputs, &functions)?)
    } else {
        None
    };
    // The evaluator is slow; it isn't needed where goldens are given.
    let expected: Vec<(usize, usize, Tensor, &str)> = if known.is_empty() {
        let all = mlc_ir::evaluate_runs_with(graph, &vec![inputs.clone(); runs as usize], &functions)?;
        let of_run = |(run, outputs): (usize, Vec<Tensor>)| {
            outputs.into_iter().enumerate().map(move |(index, output)| (run, index, output, EVALUATOR))
        };
        all.into_iter().enumerate().flat_map(of_run).collect()
    } else {
        known.into_iter().map(|(index, output, against)| (0, index, output, against)).collect()
    };
    // Behind the evaluator, which takes so many turns of a loop only.
    let outputs = (0..runs).map(|earlier| program.run_after(&inputs, earlier)).collect::<Result<Vec<_>, _>>()?;
    drop(progress);
    let names = output_names(graph);
    let mut results = Vec::new();
    let runs_of = vec![inputs; runs as usize];
    let mut conditioning = Conditioning { graph, functions: &functions, runs: runs_of, bounds: None };
    for (run, index, expected, against) in expected {
        let (name, actual) = (names[index], &outputs[run][index]);
        let quantization = graph.quantization.outputs.get(&numbers[index]).copied();
        let default = default_tolerance(&expected, quantization, against);
        let mut comparison = compared(arguments, name, actual, &expected, default, &|_| Bound::STRICT)?;
        let is_default = arguments.tolerance.is_default();
        if !comparison.passes() && against == EVALUATOR && is_default {
            let _progress = console.progress("evaluating with noise of the size of rounding errors");
            let bounds = conditioning.of(run, index)?;
            comparison = compared(arguments, name, actual, &expected, default, &|element| {
                bounds.get(element).copied().unwrap_or(Bound::STRICT)
            })?;
        }
        let run = (runs > 1).then_some(run as u32 + 1);
        let steps = quantization.and_then(|quantization| Steps::of(actual, &expected, quantization));
        results.push(OutputResult { name, run, against, passed: comparison.passes(), comparison, steps });
    }
    report(arguments, &results, layers.as_deref(), console)
}

/// What outputs are compared with where none is known.
const EVALUATOR: &str = "evaluator";

/// How far rounding alone may move the elements of a model's outputs; found out when it is asked for.
struct Conditioning<'a> {
    graph: &'a Graph,
    functions: &'a CFunctions,
    runs: Vec<Vec<Tensor>>,
    bounds: Option<Vec<Bounds>>,
}

impl Conditioning<'_> {
    /// The bounds of an output in a run; none where noise moves every element, which would say nothing of the program.
    fn of(&mut self, run: usize, output: usize) -> Result<Vec<Bound>, Diagnostic> {
        if self.bounds.is_none() {
            self.bounds = Some(Bounds::of_runs(self.graph, &self.runs, self.functions)?);
        }
        let bounds = self.bounds.as_ref().and_then(|all| all.get(run));
        Ok(bounds.map(|bounds| bounds.telling(output)).unwrap_or_default())
    }
}

/// Runs an archive's own code, which can be compared with known outputs only.
fn verify_archive(arguments: &Verify, console: &Console) -> Result<(), Failure> {
    if arguments.expect.is_empty() {
        let message = "an archive without a graph can only be compared with known outputs, none is given";
        return Err(mismatch(message.into()).with_help("add --expect NAME=FILE.npy for each output").into());
    }
    let Verify { model, code, machine, .. } = arguments;
    let (bundle, inputs) = bundle(model, code, machine, &arguments.inputs, console)?;
    let inputs = read_inputs(&inputs, &input_ports(&bundle.inputs), console)?;
    let shapes = inputs::shapes(&arguments.expect);
    let mut ports = bundle.outputs.clone();
    for (number, port) in ports.iter_mut().enumerate() {
        if let Some(shape) = shapes.get(&port.name).or_else(|| shapes.get(&number.to_string())) {
            port.adopt_shape(shape);
        }
    }
    let types: Vec<(&str, TensorType)> = ports.iter().map(|port| (port.name.as_str(), port.ty.clone())).collect();
    let known = read_expected(&arguments.expect, &types)?;
    let mut program = machine.toolchain()?.build(&bundle)?;
    check_built(&program, code)?;
    program.outputs.clone_from(&ports);
    let outputs = program.run(&inputs)?;
    let mut results = Vec::new();
    for (index, expected, against) in known {
        let name = ports[index].name.as_str();
        let quantization = ports[index].quantization;
        let default = default_tolerance(&expected, quantization, against);
        let comparison = compared(arguments, name, &outputs[index], &expected, default, &|_| Bound::STRICT)?;
        let steps = quantization.and_then(|quantization| Steps::of(&outputs[index], &expected, quantization));
        results.push(OutputResult { name, run: None, against, passed: comparison.passes(), comparison, steps });
    }
    report(arguments, &results, None, console)
}

/// The tolerance where the options say none: that of the data type. Integers that stand for real numbers may be off by one step from what
/// other programs have computed, which round in other places.
fn default_tolerance(expected: &Tensor, quantization: Option<Quantization>, against: &str) -> Tolerance {
    let of_type = Tolerance::of(expected.ty().dtype);
    match quantization {
        Some(_) if against != EVALUATOR => Tolerance { absolute: 1.0, ..of_type },
        _ => of_type,
    }
}

/// Compares an output with what is expected, by the tolerance of the options, or the default one, and by the elements' bounds.
fn compared(
    arguments: &Verify,
    name: &str,
    actual: &Tensor,
    expected: &Tensor,
    default: Tolerance,
    bound: &dyn Fn(usize) -> Bound,
) -> Result<Comparison, Diagnostic> {
    let tolerance = arguments.tolerance.or(default);
    compare_within(actual, expected, tolerance, bound).map_err(|message| differs(name, message))
}

/// Prints the differences; fails when some are too large.
fn report(
    arguments: &Verify,
    results: &[OutputResult],
    layers: Option<&[Layer]>,
    console: &Console,
) -> Result<(), Failure> {
    if let (true, Some(layers)) = (arguments.json, layers) {
        console.print_json(&serde_json::json!({ "kernels": layers, "outputs": results }));
    } else if arguments.json {
        console.print_json(&results);
    } else {
        console.print(&layers.map_or(String::new(), per_layer::describe));
        for result in results {
            console.print(&describe(result));
        }
    }
    let mut faults =
        layers.map_or_else(Vec::new, |layers| per_layer::faults(layers, arguments.layers.against.as_deref()));
    faults.extend(results.iter().filter(|result| !result.passed).map(fault));
    if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
}

/// How many runs in a row are checked of a model that has states.
const RUNS: u32 = 3;

/// Names of the outputs that the caller gets.
fn output_names(graph: &Graph) -> Vec<&str> {
    graph.open_outputs().into_iter().map(|number| &*graph.outputs()[number].name).collect()
}

/// The known outputs: number, tensor, and a word for where they come from. `outputs` are names and types.
fn read_expected(
    arguments: &[String],
    outputs: &[(&str, TensorType)],
) -> Result<Vec<(usize, Tensor, &'static str)>, Failure> {
    let names: Vec<&str> = outputs.iter().map(|(name, _)| *name).collect();
    let mut expected: Vec<(usize, Tensor, &'static str)> = Vec::new();
    let mut faults = Vec::new();
    for argument in arguments {
        let tensor = inputs::find_output(argument, &names).and_then(|(index, path)| {
            if expected.iter().any(|(other, ..)| *other == index) {
                return Err(mismatch(format!("the output '{}' is given twice", names[index])));
            }
            Ok((index, npy::read_tensor(path, &outputs[index].1)?, "file"))
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
    let OutputResult { name, run, against, passed, comparison, steps } = result;
    let run = run.map_or(String::new(), |run| format!(" of run {run}"));
    let Comparison { max_absolute, max_ulps, elements, ill_conditioned, .. } = comparison;
    let verdict = if *passed { "ok" } else { "FAILED" };
    let noun = if *elements == 1 { "element" } else { "elements" };
    let excused = match ill_conditioned {
        0 => String::new(),
        1 => "; 1 element is outside the tolerance as far as rounding may move it".to_owned(),
        number => format!("; {number} elements are outside the tolerance as far as rounding may move them"),
    };
    let difference = match steps {
        Some(steps) => describe_steps(steps),
        None => format!("max difference {max_absolute:e} ({max_ulps} ulp)"),
    };
    format!("{name}{run}: {verdict}, {elements} {noun} against the {against}: {difference}{excused}\n")
}

/// `2 off by one step of 0.25, 1 further, by up to 3 steps; cosine 0.999998; argmax holds`
fn describe_steps(steps: &Steps) -> String {
    let &Steps { scale, largest, off_by_one, further, cosine, rows, argmax_moved } = steps;
    if largest == 0 {
        return format!("equal, in steps of {scale}");
    }
    let further = match further {
        0 => "none further".to_owned(),
        number => format!("{number} further, by up to {largest} steps"),
    };
    let argmax = match argmax_moved {
        0 => "argmax holds".to_owned(),
        number => format!("argmax moves in {number} of {rows} rows"),
    };
    format!("{off_by_one} off by one step of {scale}, {further}; cosine {cosine:.6}; {argmax}")
}

fn fault(result: &OutputResult) -> Diagnostic {
    let Comparison { mismatches, elements, worst, .. } = &result.comparison;
    let message = format!("{mismatches} of {elements} elements are outside the tolerance");
    let mut diagnostic = differs(result.name, message);
    if let Some(worst) = worst {
        let note = format!("at {:?} the program gives {:?}, {:?} expected", worst.index, worst.actual, worst.expected);
        diagnostic = diagnostic.with_note(note);
    }
    if result.against == EVALUATOR {
        diagnostic =
            diagnostic.with_help("this is a defect of mlc unless the model amplifies rounding: please report it");
    }
    diagnostic
}

fn differs(name: &str, message: String) -> Diagnostic {
    Diagnostic::error(Code::OutputMismatch, Location::default(), format!("output '{name}': {message}"))
}
