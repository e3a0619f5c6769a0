//! `mlc run` and `mlc bench`

use super::arguments::{Bench, Run};
use super::console::Console;
use super::hardware;
use super::subject::{build, bundle, check_built, read_inputs};
use super::words::mismatch;
use crate::bundle::{Call, Kernel, Port};
use crate::inputs::InputPort;
use crate::pipeline::Failure;
use crate::{files, npy};
use indexmap::IndexSet;
use mlc_ir::Tensor;
use serde::Serialize;
use std::path::Path;

pub(super) fn run(arguments: &Run, console: &Console) -> Result<(), Failure> {
    let (program, inputs) = build(&arguments.model, &arguments.code, &arguments.machine, &arguments.inputs, console)?;
    let inputs = read_inputs(&inputs, &input_ports(&program.inputs), console)?;
    let (outputs, cost) = program.run_counted(&inputs)?;
    match &arguments.output_dir {
        Some(folder) => {
            write_outputs(folder, &program.outputs, &outputs)?;
            console.status(&format!("wrote {} outputs to {}", outputs.len(), folder.display()));
        }
        None => {
            for (port, output) in program.outputs.iter().zip(&outputs) {
                console.print(&describe(&port.name, output));
            }
        }
    }
    if let (Some(cost), Some(footprint)) = (&cost, &program.footprint) {
        hardware::report(footprint, cost, console);
    }
    Ok(())
}

pub(super) fn input_ports(ports: &[Port]) -> Vec<InputPort<'_>> {
    ports.iter().map(|port| (port.name.as_str(), &port.ty)).collect()
}

/// An entry of `outputs.json`.
#[derive(Serialize)]
struct OutputEntry<'a> {
    name: &'a str,
    file: String,
    dtype: &'static str,
    shape: &'a [usize],
}

/// Writes every output as an array, and the list of them.
pub(super) fn write_outputs(folder: &Path, ports: &[Port], outputs: &[Tensor]) -> Result<(), Failure> {
    let names = file_names(ports);
    let entries: Vec<OutputEntry> = ports
        .iter()
        .zip(&names)
        .map(|(port, file)| OutputEntry {
            name: &port.name,
            file: file.clone(),
            dtype: port.ty.dtype.name(),
            shape: &port.ty.shape,
        })
        .collect();
    // Structures of strings, numbers and lists: writing them to memory can't fail.
    let list = serde_json::to_string_pretty(&entries).unwrap_or_default() + "\n";
    let mut contents: Vec<(&str, Vec<u8>)> =
        names.iter().zip(outputs).map(|(name, output)| (name.as_str(), npy::format(output))).collect();
    contents.push(("outputs.json", list.into_bytes()));
    files::write_folder(folder, contents.iter().map(|(name, bytes)| (*name, bytes.as_slice())))?;
    Ok(())
}

/// Safe file names, all different even where file names don't tell upper from lower case.
fn file_names(ports: &[Port]) -> Vec<String> {
    let mut taken: IndexSet<String> = IndexSet::new();
    let unique = |port: &Port| {
        let base = files::safe_file_name(&port.name);
        let mut name = base.clone();
        let mut number = 1;
        while !taken.insert(name.to_ascii_lowercase()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        format!("{name}.npy")
    };
    ports.iter().map(unique).collect()
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
    #[serde(skip_serializing_if = "Option::is_none")]
    min_ns: Option<u64>,
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
    let kernels = match (arguments.per_kernel, &bundle.origin) {
        // A program of its own, so that watching the kernels doesn't slow the other figures.
        (true, Some(origin)) if matches!(bundle.call, Call::CInterface(_)) => {
            let times = toolchain.build_to_profile(&bundle)?.bench_kernels(&inputs, runs)?;
            Some(kernel_times(&origin.kernels, &times, counted))
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
    let lines: String = kernels.iter().flatten().map(describe_kernel).collect();
    match (arguments.json, counted) {
        (true, false) => {
            console.print_json(&Times { runs, min_ns: least, median_ns: middle, ns_per_inference: &times, kernels });
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
            console.print(&format!("{runs} runs: min {least:.3} us, median {middle:.3} us\n{lines}"));
        }
        (false, true) => console.print(&format!("{least} executed instructions\n{lines}")),
    }
    Ok(())
}

fn micros(nanos: u64) -> f64 {
    nanos as f64 / 1000.0
}

fn kernel_times(kernels: &[Kernel], times: &[u64], counted: bool) -> Vec<KernelTime> {
    let time = |(kernel, &time): (&Kernel, &u64)| KernelTime {
        function: kernel.function.clone(),
        node: kernel.node.clone(),
        operator: kernel.operator.clone(),
        macs: kernel.macs,
        min_ns: (!counted).then_some(time),
        min_instructions: counted.then_some(time),
    };
    kernels.iter().zip(times).map(time).collect()
}

/// A line about a kernel: what it took, and how that relates to its work.
fn describe_kernel(kernel: &KernelTime) -> String {
    let KernelTime { node, operator, macs, .. } = kernel;
    let (took, rate) = match (kernel.min_ns, kernel.min_instructions.unwrap_or_default()) {
        (Some(nanos), _) => {
            let rate = format!("{:>7.1} GFLOP/s", 2.0 * *macs as f64 / nanos.max(1) as f64);
            (format!("{:>12.3} us", micros(nanos)), rate)
        }
        (None, count) => {
            (format!("{count:>12} instructions"), format!("{:>6.2} per MAC", count as f64 / (*macs).max(1) as f64))
        }
    };
    let rate = if *macs > 0 { rate } else { " ".repeat(15) };
    format!("{took} {rate}  {node} ({operator})\n")
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
    use mlc_ir::{DType, TensorType};

    #[test]
    fn medians() {
        assert_eq!((median(&[]), median(&[3]), median(&[1, 4]), median(&[1, 2, 9])), (0, 3, 2, 2));
    }

    #[test]
    fn files_of_outputs_never_meet() {
        let port = |name: &str| Port {
            name: name.into(),
            field: "x".into(),
            ty: TensorType::new(DType::F32, []),
            quantization: None,
            shape_known: true,
        };
        let names = file_names(&[port("a/b"), port("a:b"), port("A_b"), port("c")]);
        assert_eq!(names, ["a_b.npy", "a_b_2.npy", "A_b_3.npy", "c.npy"]);
    }
}
