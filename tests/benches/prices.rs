//! Prices of kernels against what they took: `prices [--machine NAME]… [--network PART] [--rows] [--schedules] [--runs N]`. `docs/prices.md` is
//! what it prints without options.
//!
//! Every kernel of the collection's networks runs on this machine, and on emulated boards where every executed instruction is
//! counted. A price is cycles on this machine; how many there are in a nanosecond is the median of all kernels'.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::Toolchain;
use mlc_codegen::KernelSummary;
use mlc_ir::{Objective, Tensor};
use mlc_tests::case::Case;
use mlc_tests::compile::load;
use mlc_tests::{firmware, paths};
use std::collections::BTreeMap;
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
    schedules: bool,
    runs: u32,
}

fn plan() -> Result<Plan, String> {
    let mut plan = Plan { machines: Vec::new(), network: String::new(), rows: false, schedules: false, runs: 30 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--machine" => plan.machines.push(value()?),
            "--network" => plan.network = value()?,
            "--runs" => plan.runs = value()?.parse().map_err(|_| "--runs needs a number")?,
            "--rows" => plan.rows = true,
            "--schedules" => plan.schedules = true,
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

/// A network on a machine.
struct Bench<'a> {
    case: &'a Case,
    graph: mlc_ir::Graph,
    options: CompileOptions,
    toolchain: Toolchain,
    runs: u32,
}

impl<'a> Bench<'a> {
    fn new(case: &'a Case, machine: &str, runs: u32) -> Result<Bench<'a>, String> {
        let loaded = load(case).map_err(|errors| first_of(case, errors))?;
        let target = mlc::targets::find(machine).ok_or_else(|| format!("there is no target {machine}"))?;
        let toolchain = match machine {
            "host" => Toolchain::default(),
            name => Toolchain::emulated(name).ok_or_else(|| format!("there is no board for {name}"))?,
        };
        // Prices are of time here.
        let target = target.with_objective(Objective::Speed);
        let options = CompileOptions { target, explain: true, ..CompileOptions::default() };
        Ok(Bench { case, graph: loaded.graph, options, toolchain, runs: if machine == "host" { runs } else { 1 } })
    }

    /// The kernels, by the schedules that nodes are to take, and what each took.
    fn measure(&self, schedules: BTreeMap<String, String>) -> Result<Vec<(KernelSummary, f64)>, String> {
        let text = |error: mlc_ir::Diagnostic| format!("{}: {error}", self.case.name);
        let options = CompileOptions { schedules, ..self.options.clone() };
        let compiled = pipeline::compile(&self.graph, &options, &mut |_, _| {});
        let compiled = compiled.map_err(|errors| first_of(self.case, errors))?;
        let program = self.toolchain.build_to_profile(&compiled.bundle().map_err(text)?).map_err(text)?;
        let inputs: Vec<Tensor> = self.case.inputs.iter().map(|input| input.value.clone()).collect();
        let times = program.bench_kernels(&inputs, self.runs).map_err(text)?;
        Ok(compiled.module.kernels.into_iter().zip(times.into_iter().map(|time| time as f64)).collect())
    }
}

fn first_of(case: &Case, errors: impl IntoIterator<Item = mlc_ir::Diagnostic>) -> String {
    errors.into_iter().next().map_or_else(String::new, |error| format!("{}: {error}", case.name))
}

/// Runs a network's kernels.
fn rows(case: &Case, machine: &str, runs: u32) -> Result<Vec<Row>, String> {
    let row = |(kernel, measured): (KernelSummary, f64)| Row {
        network: case.name.clone(),
        kernel: kernel.function,
        operator: kernel.operator,
        price: kernel.price.time as f64,
        measured,
    };
    Ok(Bench::new(case, machine, runs)?.measure(BTreeMap::new())?.into_iter().map(row).collect())
}

/// A kernel's schedules: the name of each, its price and what it took, in the order of the list.
struct Ways {
    network: String,
    kernel: String,
    list: Vec<(String, f64, f64)>,
}

/// Runs the kernels of a network that there are several schedules for by each of them.
fn ways(case: &Case, machine: &str, runs: u32) -> Result<Vec<Ways>, String> {
    let bench = Bench::new(case, machine, runs)?;
    let kernels = bench.measure(BTreeMap::new())?;
    let alone = |own: &KernelSummary| kernels.iter().filter(|(other, _)| other.node == own.node).count() == 1;
    let mut all: Vec<(Ways, &KernelSummary)> = Vec::new();
    for (kernel, _) in kernels.iter().filter(|(kernel, _)| kernel.choice.offers.len() > 1 && alone(kernel)) {
        let (network, name) = (case.name.clone(), kernel.function.clone());
        all.push((Ways { network, kernel: name, list: Vec::new() }, kernel));
    }
    for number in 0..all.iter().map(|(_, kernel)| kernel.choice.offers.len()).max().unwrap_or(0) {
        let offer = |kernel: &KernelSummary| kernel.choice.offers.get(number).map(|offer| offer.schedule.to_string());
        let forced = all.iter().filter_map(|(_, kernel)| Some((kernel.node.clone(), offer(kernel)?))).collect();
        let measured = bench.measure(forced)?;
        for (ways, kernel) in &mut all {
            let Some(offer) = kernel.choice.offers.get(number) else { continue };
            let time = measured.iter().find(|(other, _)| other.function == kernel.function).map_or(0.0, |own| own.1);
            ways.list.push((offer.schedule.to_string(), offer.price.time as f64, time));
        }
    }
    Ok(all.into_iter().map(|(ways, _)| ways).collect())
}

/// Shares of the price by which a schedule must be cheaper than the first of the list to be taken.
const TRUSTS: [f64; 5] = [0.0, 0.03, 0.06, 0.1, 0.2];

const SCHEDULES_HEAD: &str = "
Two schedules of one kernel that differ by more than a fiftieth (on the host a tenth): how often the cheaper one is the faster one; and what all
kernels with several schedules take if one is taken where its price is lower than that of the first of the list by so much, relative to always taking the
first. The last column takes the fastest of each list. `--schedules` writes this table.

| machine | pairs | order right | 0 % | 3 % | 6 % | 10 % | 20 % | fastest |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
";

/// Of schedules of the same kernels: how often prices tell the faster one, and what comes of choosing by them.
fn schedules(plan: &Plan, name: &str, cases: &[Case]) -> String {
    let mut all = Vec::new();
    for case in cases {
        match ways(case, name, plan.runs) {
            Ok(ways) => all.extend(ways),
            Err(error) => eprintln!("left out: {error}"),
        }
    }
    let least = if name == "host" { 400.0 } else { 2000.0 };
    all.retain(|ways| ways.list.iter().all(|way| way.2 >= least));
    let apart = if name == "host" { 1.1 } else { 1.02 };
    let (mut pairs, mut right) = (0, 0);
    for ways in &all {
        for (number, x) in ways.list.iter().enumerate() {
            for y in &ways.list[..number] {
                if x.2.max(y.2) > apart * x.2.min(y.2) {
                    pairs += 1;
                    right += usize::from((x.1 < y.1) == (x.2 < y.2) && x.1 != y.1);
                }
            }
        }
    }
    let total = |taken: &dyn Fn(&Ways) -> f64| all.iter().map(taken).sum::<f64>();
    let first = total(&|ways| ways.list[0].2);
    let by_price = |trust: f64| {
        total(&|ways| {
            let cheapest = ways.list.iter().min_by(|x, y| x.1.total_cmp(&y.1)).unwrap_or(&ways.list[0]);
            if cheapest.1 < (1.0 - trust) * ways.list[0].1 { cheapest.2 } else { ways.list[0].2 }
        })
    };
    let best = total(&|ways| ways.list.iter().map(|way| way.2).fold(f64::INFINITY, f64::min));
    let mut text = format!("| {name} | {pairs} | {:.0} % |", 100.0 * f64::from(right as u32) / f64::from(pairs.max(1)));
    for sum in TRUSTS.map(by_price).into_iter().chain([best]) {
        let _ = write!(text, " {:.3} |", sum / first);
    }
    text.push('\n');
    if plan.rows {
        for ways in &all {
            let _ = writeln!(text, "{} {}", ways.network, ways.kernel);
            for (schedule, price, measured) in &ways.list {
                let _ = writeln!(text, "{price:>12.0} {measured:>12.0}  {schedule}");
            }
        }
    }
    text
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
    print!("{}", if plan.schedules { SCHEDULES_HEAD } else { HEAD });
    for name in &plan.machines {
        match firmware::missing(name).filter(|_| name != "host") {
            Some(reason) => println!("{name}: left out, {reason}"),
            None if plan.schedules => print!("{}", schedules(&plan, name, &cases)),
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
