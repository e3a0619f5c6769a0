//! Prices of kernels against what they took: `prices [--machine NAME]… [--network PART] [--rows] [--runs N]`. `docs/prices.md` is
//! what it prints without options.
//!
//! Every kernel of the collection's networks runs on this machine, and on emulated boards where every executed instruction is
//! counted. A price is cycles on this machine; how many there are in a nanosecond is the median of all kernels'.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::Toolchain;
use mlc_ir::Tensor;
use mlc_tests::case::Case;
use mlc_tests::compile::load;
use mlc_tests::{firmware, paths};
use std::fmt::Write as _;
use std::process::ExitCode;

const HEAD: &str = "# Prices

What `codegen/src/price` reads off the loop program of every kernel of the collection's networks, against what the kernel took: executed
instructions on emulated boards, time on the host, where the unit of a price is the median over all kernels. Kernels under 400 ns, or
2,000 instructions, are left out. `cargo bench -p mlc-tests --bench prices` writes this page; `--rows` shows every kernel.

| machine | kernels | within 1.15 | within 1.5 | within 2 |
|---|---:|---:|---:|---:|
";

/// What a kernel was said to take, and what it took.
struct Row {
    network: String,
    kernel: String,
    operator: String,
    price: f64,
    measured: f64,
}

struct Plan {
    machines: Vec<String>,
    network: String,
    rows: bool,
    runs: u32,
}

fn plan() -> Result<Plan, String> {
    let mut plan = Plan { machines: Vec::new(), network: String::new(), rows: false, runs: 30 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--machine" => plan.machines.push(value()?),
            "--network" => plan.network = value()?,
            "--runs" => plan.runs = value()?.parse().map_err(|_| "--runs needs a number")?,
            "--rows" => plan.rows = true,
            "--bench" => {}
            option => return Err(format!("there is no option {option}")),
        }
    }
    if plan.machines.is_empty() {
        plan.machines = ["host", "cortex-m4", "cortex-m55", "riscv32"].map(String::from).to_vec();
    }
    Ok(plan)
}

/// The networks of the collection, or of the repository where there is no collection.
fn networks(part: &str) -> Result<Vec<Case>, String> {
    let folder = paths::conformance().unwrap_or_else(paths::data).join("pnnx");
    let mut folders = paths::subfolders(&folder).map_err(|error| error.to_string())?;
    folders.sort();
    let is_network = |folder: &std::path::Path| {
        folder
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("net_") && name.to_string_lossy().contains(part))
    };
    folders.iter().filter(|folder| is_network(folder)).map(|folder| Case::read(folder)).collect()
}

/// Runs a network's kernels.
fn rows(case: &Case, machine: &str, runs: u32) -> Result<Vec<Row>, String> {
    let text = |error: mlc_ir::Diagnostic| format!("{}: {error}", case.name);
    let loaded = load(case).map_err(|errors| errors.into_iter().next().map_or_else(String::new, text))?;
    let target = mlc::targets::find(machine).ok_or_else(|| format!("there is no target {machine}"))?;
    let toolchain = match machine {
        "host" => Toolchain::default(),
        name => Toolchain::emulated(name).ok_or_else(|| format!("there is no board for {name}"))?,
    };
    let options = CompileOptions { target, ..CompileOptions::default() };
    let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {})
        .map_err(|errors| errors.into_iter().next().map_or_else(String::new, text))?;
    let program = toolchain.build_to_profile(&compiled.bundle().map_err(text)?).map_err(text)?;
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let runs = if machine == "host" { runs } else { 1 };
    let times = program.bench_kernels(&inputs, runs).map_err(text)?;
    let row = |(kernel, &time): (&mlc_codegen::module::KernelSummary, &u64)| Row {
        network: case.name.clone(),
        kernel: kernel.function.clone(),
        operator: kernel.operator.clone(),
        price: kernel.price.time as f64,
        measured: time as f64,
    };
    Ok(compiled.module.kernels.iter().zip(&times).map(row).collect())
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list.get(list.len() / 2).copied().unwrap_or(1.0)
}

/// A machine's kernels: how many prices are near what was measured.
fn machine(plan: &Plan, name: &str, cases: &[Case]) -> Result<String, String> {
    let mut all = Vec::new();
    for case in cases {
        match rows(case, name, plan.runs) {
            Ok(rows) => all.extend(rows),
            // Not every network fits every board.
            Err(error) => eprintln!("left out: {error}"),
        }
    }
    // Kernels of a few dozen nanoseconds are mostly the clock's.
    let least = if name == "host" { 400.0 } else { 2000.0 };
    all.retain(|row| row.measured >= least && row.price > 0.0);
    let scale = if name == "host" { median(all.iter().map(|row| row.measured / row.price).collect()) } else { 1.0 };
    let error = |row: &Row| row.price * scale / row.measured;
    let within = |factor: f64| {
        let near = all.iter().filter(|row| (1.0 / factor..=factor).contains(&error(row))).count();
        100.0 * near as f64 / all.len().max(1) as f64
    };
    let mut text =
        format!("| {name} | {} | {:.0} % | {:.0} % | {:.0} % |\n", all.len(), within(1.15), within(1.5), within(2.0));
    if plan.rows {
        let _ = writeln!(text, "a unit of price is {scale:.3}");
        all.sort_by(|left, right| error(left).total_cmp(&error(right)));
        for row in &all {
            let Row { network, kernel, operator, price, measured } = row;
            let _ = writeln!(text, "{:7.3} {price:>12.0} {measured:>12.0} {network} {kernel} {operator}", error(row));
        }
    }
    Ok(text)
}

fn run() -> Result<(), String> {
    let plan = plan()?;
    let cases = networks(&plan.network)?;
    print!("{HEAD}");
    for name in &plan.machines {
        match firmware::missing(name).filter(|_| name != "host") {
            Some(reason) => println!("{name}: left out, {reason}"),
            None => print!("{}", machine(&plan, name, &cases)?),
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
