//! What quantised networks take on emulated boards, beside TensorFlow Lite Micro: `integers [--machine NAME] [--network PART]`.
//! `docs/integers.md` is what it prints without options. It needs the collection of conformance cases beside the repository.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use mlc_tests::case::Case;
use mlc_tests::firmware::{Measured, measure};
use mlc_tests::micro::{Micro, NETWORKS};
use mlc_tests::paths;
use std::process::ExitCode;

const HEAD: &str = "# Quantised networks on microcontrollers

The int8 networks of MLPerf Tiny as `.tflite` files, compiled for emulated boards; outputs equal the golden ones bit for bit. Executed instructions
are exact and no cycles: there is no pipeline, cache or flash wait state in them. Code is that of the model with the library functions that it
calls; RAM is static memory with the inputs and the outputs, without the stack.

In brackets is what TensorFlow Lite Micro takes for the same: with the kernels of CMSIS-NN on cortex-m4 and cortex-m55, with its reference kernels on
a cortex-m4 where the machine is a cortex-m0plus. It is of August 2026, built as its own release build, with int8 kernels picked by hand (which by
itself it doesn't); its RAM holds inputs and outputs, too.

`cargo bench -p mlc-tests --bench integers` writes this page.

| network | machine | instructions | per MAC | constants | code | RAM |
|---|---|---:|---:|---:|---:|---:|
";

const MACHINES: [&str; 5] = ["cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m55", "riscv32"];

fn row(network: &Micro, measured: &Measured, ports: usize) -> String {
    let Measured { machine, cost, footprint, macs, .. } = measured;
    let name = network.name();
    let instructions = match machine.as_str() {
        "cortex-m0plus" => format!(" ({} k)", network.reference_instructions),
        "cortex-m4" => format!(" ({} k)", network.m4_instructions),
        "cortex-m55" => format!(" ({} k)", network.m55_instructions),
        _ => String::new(),
    };
    let beside = |bytes: u64| if machine == "cortex-m4" { format!(" ({bytes})") } else { String::new() };
    format!(
        "| {name} | {machine} | {}{instructions} | {:.2} | {} | {}{} | {}{} |\n",
        cost.instructions,
        cost.instructions as f64 / (*macs).max(1) as f64,
        footprint.constants_bytes,
        measured.code_bytes(),
        beside(network.code_bytes),
        footprint.ram_bytes + ports,
        beside(network.ram_bytes),
    )
}

fn run() -> Result<(), String> {
    let (mut machines, mut part) = (MACHINES.map(str::to_owned).to_vec(), String::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--machine" => machines = vec![value()?],
            "--network" => part = value()?,
            "--bench" => {}
            option => return Err(format!("there is no option {option}")),
        }
    }
    let is_page = part.is_empty() && machines.len() > 1;
    let folder = paths::conformance().ok_or("the collection of conformance cases isn't beside the repository")?;
    let mut page = HEAD.to_owned();
    for network in NETWORKS.iter().filter(|network| network.case.contains(&part)) {
        let case = Case::read(&folder.join("tflite").join(network.case))?;
        let ports = case.inputs.iter().chain(&case.outputs).map(|port| port.value.ty().bytes()).sum();
        for machine in &machines {
            let row = row(network, &measure(&case, machine)?, ports);
            print!("{row}");
            page += &row;
        }
    }
    if is_page {
        std::fs::write(paths::repository().join("docs/integers.md"), page).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
