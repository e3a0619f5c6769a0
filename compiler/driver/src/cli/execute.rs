//! `mlc run` and `mlc bench`

use super::arguments::{Bench, Run};
use super::bindings::Inputs;
use super::console::Console;
use super::hardware;
use super::layers::{self, Seen};
use super::results::write_outputs;
use super::subject::{archive_bundle, build, bundle, check_built, compiled, input_ports, read_inputs};
use super::words::mismatch;
use crate::bundle::{Call, Port};
use crate::functions::CFunctions;
use crate::inputs;
use crate::kernel::Kernel;
use crate::layers::ModelValues;
use crate::pipeline::Failure;
use crate::toolchain::{Cost, Footprint, Program, Toolchain};
use mlc_codegen::Target;
use mlc_ir::{DType, Tensor};
use serde::Serialize;
use std::path::Path;

pub(super) fn run(arguments: &Run, console: &Console) -> Result<(), Failure> {
    let (program, outputs, cost) = match &arguments.results.layers {
        Some(folder) => run_watched(arguments, folder, console)?,
        None if arguments.steps => run_steps(arguments, console)?,
        None => {
            let Run { model, code, machine, .. } = arguments;
            let (program, inputs) = build(model, code, machine, &arguments.inputs, console)?;
            let inputs = read_inputs(&inputs, &input_ports(&program.inputs), console)?;
            let (outputs, cost) = program.run_counted(&inputs)?;
            (program, outputs, cost)
        }
    };
    match &arguments.results.output_dir {
        Some(folder) => {
            write_outputs(folder, &program.outputs, &outputs)?;
            console.status(&format!("wrote {} outputs to {}", outputs.len(), folder.display()));
        }
        None if arguments.results.json => {}
        None => {
            for (port, output) in program.outputs.iter().zip(&outputs) {
                console.print(&describe(&port.name, output));
            }
        }
    }
    let took = cost.as_ref().zip(program.footprint.as_ref());
    if arguments.results.json {
        let took = took.map(|(cost, footprint)| Took { cost: *cost, footprint: *footprint });
        let outputs = program.outputs.iter().zip(&outputs).map(|(port, output)| Values::of(port, output)).collect();
        console.print_json(&RunReport { outputs, took });
    } else if let Some((cost, footprint)) = took {
        hardware::report(footprint, cost, console);
    }
    Ok(())
}

/// What `mlc run --json` prints.
#[derive(Serialize)]
struct RunReport<'a> {
    outputs: Vec<Values<'a>>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    took: Option<Took>,
}

/// What an emulated board has counted.
#[derive(Serialize)]
struct Took {
    #[serde(flatten)]
    cost: Cost,
    #[serde(flatten)]
    footprint: Footprint,
}

/// An output with its elements, slowest axis first. JSON has no infinities and no NaN: these are null.
#[derive(Serialize)]
struct Values<'a> {
    name: &'a str,
    dtype: &'static str,
    shape: &'a [usize],
    values: serde_json::Value,
}

impl<'a> Values<'a> {
    fn of(port: &'a Port, output: &'a Tensor) -> Values<'a> {
        let values = match output.values() {
            mlc_ir::Values::Float(values) => serde_json::json!(values),
            mlc_ir::Values::Integer(values) => serde_json::json!(values),
        };
        Values { name: &port.name, dtype: output.ty().dtype.name(), shape: output.shape(), values }
    }
}

/// Runs the model once for each entry of the inputs' first axis; the outputs get that axis.
fn run_steps(arguments: &Run, console: &Console) -> Result<(Program, Vec<Tensor>, Option<Cost>), Failure> {
    let Run { model, code, machine, .. } = arguments;
    if arguments.inputs.files.is_empty() {
        let message = "--steps runs as often as the input files say, and there are none";
        return Err(mismatch(message.into()).with_help("add --input").into());
    }
    let stacked = Inputs { stacked: true, ..arguments.inputs.clone() };
    let (mut program, inputs) = build(model, code, machine, &stacked, console)?;
    let runs = inputs::read_runs(&inputs.files, &inputs.always, &input_ports(&program.inputs))?;
    let runs: Vec<&[Tensor]> = runs.iter().map(Vec::as_slice).collect();
    let (outputs, cost) = program.run_each(&runs)?;
    Ok((program, outputs, cost))
}

/// Runs the model and writes what every kernel computes. What that costs says nothing of the model.
fn run_watched(
    arguments: &Run,
    folder: &Path,
    console: &Console,
) -> Result<(Program, Vec<Tensor>, Option<Cost>), Failure> {
    let Run { model, code, machine, .. } = arguments;
    let toolchain = machine.toolchain()?;
    let (graph, bundle, inputs) = match archive_bundle(model, code, machine, &arguments.inputs.files)? {
        Some(bundle) => (None, bundle, arguments.inputs.clone()),
        None => {
            let (graph, compiled, inputs) = compiled(model, code, machine, &arguments.inputs, console)?;
            (Some(graph), compiled.bundle()?, inputs)
        }
    };
    let program = toolchain.build_to_watch(&bundle)?;
    let inputs = read_inputs(&inputs, &input_ports(&program.inputs), console)?;
    let (outputs, tensors) = program.run_watched(&inputs)?;
    let progress = console.progress("evaluating");
    let functions = CFunctions::new(Toolchain::from_variable(std::env::var("CC").ok().as_deref()));
    let values = graph.map(|graph| ModelValues::of(&graph, &inputs, &functions)).transpose()?;
    drop(progress);
    let kernels = bundle.origin.as_ref().map_or(&[][..], |origin| &origin.kernels);
    let seen = Seen { model: &bundle.model.name, kernels, results: &program.results, tensors: &tensors };
    layers::write(folder, &seen, values.as_ref())?;
    console.status(&format!("wrote what {} kernels compute to {}", kernels.len(), folder.display()));
    Ok((program, outputs, None))
}

/// Name, type, range and first values of an output.
pub(super) fn describe(name: &str, output: &Tensor) -> String {
    let values = output.to_floats();
    let mut text = format!("{name}: {}\n", output.ty());
    if values.is_empty() {
        return text;
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    text += &format!("  min {low:.6} max {high:.6} mean {mean:.6}\n");
    let shown: Vec<String> = values.iter().take(8).map(|value| format!("{value:.6}")).collect();
    let rest = if values.len() > shown.len() { " ..." } else { "" };
    text + &format!("  [{}{rest}]\n", shown.join(" "))
}

/// What `mlc bench --json` prints of this machine.
#[derive(Serialize)]
struct Times<'a> {
    runs: usize,
    min_ns: u64,
    median_ns: u64,
    ns_per_inference: &'a [u64],
    /// What one core of this machine computes at most in single precision.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_gflops: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<Vec<KernelTime>>,
}

/// What `mlc bench --json` prints of an emulated board.
#[derive(Serialize)]
struct Counts<'a> {
    runs: usize,
    min_instructions: u64,
    median_instructions: u64,
    instructions_per_inference: &'a [u64],
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<Vec<KernelTime>>,
}

/// The shortest time of a kernel, or its least number of executed instructions.
#[derive(Serialize)]
struct KernelTime {
    function: String,
    node: String,
    operator: String,
    macs: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_ns: Option<u64>,
    /// Bytes in a nanosecond, each element read or written once.
    #[serde(skip_serializing_if = "Option::is_none")]
    gigabytes_per_second: Option<f64>,
    /// How much of the machine's peak its multiply-adds in single precision reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_instructions: Option<u64>,
}

pub(super) fn bench(arguments: &Bench, console: &Console) -> Result<(), Failure> {
    let Bench { model, code, machine, .. } = arguments;
    let toolchain = machine.toolchain()?;
    let counted = toolchain.board.is_some();
    if let Some(guest) = toolchain.guest.filter(|guest| guest.is_emulated()) {
        let message = format!("times of '{}' under an emulator say nothing about the machine", guest.target);
        return Err(mismatch(message).with_help("boards of microcontrollers count instructions").into());
    }
    let (bundle, inputs) = bundle(model, code, machine, &arguments.inputs, console)?;
    let program = toolchain.build(&bundle)?;
    check_built(&program, code)?;
    let inputs = read_inputs(&inputs, &input_ports(&program.inputs), console)?;
    let runs = arguments.runs.unwrap_or(0);
    let times = program.bench(&inputs, runs)?;
    let mut peak_gflops = None;
    let kernels: Option<Vec<KernelTime>> = match (arguments.per_kernel, &bundle.origin) {
        // A program of its own, so that watching the kernels doesn't slow the other figures.
        (true, Some(origin)) if matches!(bundle.call, Call::CInterface(_)) => {
            let times = toolchain.build_to_profile(&bundle)?.bench_kernels(&inputs, runs)?;
            Some(match counted {
                true => {
                    origin.kernels.iter().zip(times).map(|(kernel, count)| KernelTime::counted(kernel, count)).collect()
                }
                false => {
                    let peak = toolchain.peak_gflops(&bundle.target().unwrap_or_else(Target::generic))?;
                    peak_gflops = Some(peak);
                    let kernels = apart(&origin.kernels, &times);
                    kernels.iter().map(|(kernel, nanos)| KernelTime::timed(kernel, *nanos, peak)).collect()
                }
            })
        }
        (true, _) => {
            let message = "the kernels can't be told apart in this archive".into();
            return Err(mismatch(message).with_help("--per-kernel takes models, and AOT archives made by mlc").into());
        }
        _ => None,
    };
    let mut sorted = times.clone();
    sorted.sort_unstable();
    let least = sorted.first().copied().unwrap_or_default();
    let middle = median(&sorted);
    let runs = times.len();
    let lines: String = kernels.iter().flatten().map(KernelTime::describe).collect();
    match (arguments.json, counted) {
        (true, false) => {
            console.print_json(&Times {
                runs,
                min_ns: least,
                median_ns: middle,
                ns_per_inference: &times,
                peak_gflops,
                kernels,
            });
        }
        (true, true) => console.print_json(&Counts {
            runs,
            min_instructions: least,
            median_instructions: middle,
            instructions_per_inference: &times,
            kernels,
        }),
        (false, false) => {
            let (least, middle) = (micros(least), micros(middle));
            let peak = peak_gflops.map_or(String::new(), |peak| format!("; one core's peak is {peak:.0} GFLOP/s"));
            console.print(&format!("{runs} runs: min {least:.3} us, median {middle:.3} us{peak}\n{lines}"));
        }
        (false, true) => console.print(&format!("{least} executed instructions\n{lines}")),
    }
    Ok(())
}

/// Kernels whose times can be told apart: those of branches which threads compute at the same time are one.
fn apart(kernels: &[Kernel], times: &[u64]) -> Vec<(Kernel, u64)> {
    let all: Vec<(&Kernel, u64)> = kernels.iter().zip(times.iter().copied()).collect();
    let launch = |kernel: &Kernel| kernel.branch.map(|branch| branch.launch);
    let is_beside =
        |left: &(&Kernel, u64), right: &(&Kernel, u64)| launch(left.0).is_some() && launch(left.0) == launch(right.0);
    let one = |beside: &[(&Kernel, u64)]| {
        let mut kernel = beside[0].0.clone();
        if beside.len() > 1 {
            kernel.operator += &format!(", and {} more kernels of branches beside each other", beside.len() - 1);
        }
        kernel.macs = beside.iter().map(|(kernel, _)| kernel.macs).sum();
        kernel.bytes = beside.iter().map(|(kernel, _)| kernel.bytes).sum();
        (kernel, beside.iter().map(|(_, nanos)| nanos).sum())
    };
    all.chunk_by(is_beside).map(one).collect()
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

impl KernelTime {
    fn of(kernel: &Kernel) -> KernelTime {
        KernelTime {
            function: kernel.function.clone(),
            node: kernel.node.clone(),
            operator: kernel.operator.clone(),
            macs: kernel.macs,
            bytes: kernel.bytes,
            min_ns: None,
            gigabytes_per_second: None,
            peak_share: None,
            min_instructions: None,
        }
    }

    fn counted(kernel: &Kernel, instructions: u64) -> KernelTime {
        KernelTime { min_instructions: Some(instructions), ..KernelTime::of(kernel) }
    }

    /// On a machine with such a peak.
    fn timed(kernel: &Kernel, nanos: u64, peak_gflops: f64) -> KernelTime {
        let per_nano = |count: u64| count as f64 / nanos.max(1) as f64;
        let is_single = kernel.results.first().is_some_and(|result| result.ty.dtype == DType::F32);
        KernelTime {
            min_ns: Some(nanos),
            gigabytes_per_second: (kernel.bytes > 0).then(|| per_nano(kernel.bytes)),
            peak_share: (is_single && kernel.macs > 0).then(|| 2.0 * per_nano(kernel.macs) / peak_gflops),
            ..KernelTime::of(kernel)
        }
    }

    /// A line: what it took, and how that relates to its work.
    fn describe(&self) -> String {
        let KernelTime { node, operator, macs, .. } = self;
        let column = |figure: Option<String>, width: usize| format!("{:>width$}", figure.unwrap_or_default());
        let (took, rates) = match (self.min_ns, self.min_instructions.unwrap_or_default()) {
            (Some(nanos), _) => {
                let flops = (*macs > 0).then(|| format!("{:.1} GFLOP/s", 2.0 * *macs as f64 / nanos.max(1) as f64));
                let share = self.peak_share.map(|share| format!("{:.0} % of peak", 100.0 * share));
                let moved = self.gigabytes_per_second.map(|rate| format!("{rate:.1} GB/s"));
                let rates = [column(flops, 15), column(share, 14), column(moved, 12)].join(" ");
                (format!("{:>12.3} us", micros(nanos)), rates)
            }
            (None, count) => {
                let per_mac = (*macs > 0).then(|| format!("{:.2} per MAC", count as f64 / *macs as f64));
                (format!("{count:>12} instructions"), column(per_mac, 15))
            }
        };
        format!("{took} {rates}  {node} ({operator})\n")
    }
}

/// The middle of sorted times, or the mean of the two in the middle.
fn median(sorted: &[u64]) -> u64 {
    let middle = sorted.len() / 2;
    match (sorted.len() % 2, sorted.get(middle)) {
        (_, None) => 0,
        (1, Some(&time)) => time,
        (_, Some(&time)) => u64::midpoint(sorted[middle - 1], time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_threads_compute_beside_each_other_are_one() {
        let kernel = |node: &str, launch: Option<usize>| -> Kernel {
            let branch = launch.map(|launch| serde_json::json!({ "launch": launch, "share": 1 }));
            let text = serde_json::json!({ "function": "f", "node": node, "operator": "map", "macs": 10, "bytes": 3, "branch": branch });
            serde_json::from_value(text).unwrap()
        };
        let all =
            [("a", None), ("b", None), ("c", Some(0)), ("d", Some(0)), ("e", Some(0)), ("f", Some(1)), ("g", None)];
        let kernels = all.map(|(node, launch)| kernel(node, launch));
        let found = apart(&kernels, &[1, 2, 30, 1, 1, 4, 5]);
        let told: Vec<_> = found.iter().map(|(kernel, nanos)| (&*kernel.node, kernel.macs, *nanos)).collect();
        assert_eq!(told, [("a", 10, 1), ("b", 10, 2), ("c", 30, 32), ("f", 10, 4), ("g", 10, 5)]);
        assert_eq!(found[2].0.operator, "map, and 2 more kernels of branches beside each other");
        assert_eq!(found[3].0.operator, "map");
    }

    #[test]
    fn medians() {
        assert_eq!((median(&[]), median(&[3]), median(&[1, 4]), median(&[1, 2, 9])), (0, 3, 2, 2));
    }
}
