//! Prices of kernels against what they took: `prices [--machine NAME]… [--network PART]… [--rows] [--schedules] [--runs N] [--write]`, where
//! `--write` puts the machines' lines into the tables of `docs/prices.md`.
//!
//! Every kernel of the collection's networks runs on this machine, and on emulated boards where every executed instruction is
//! counted. A price is cycles on this machine; how many there are in a nanosecond is the median of all kernels'.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::{Program, Toolchain};
use mlc_codegen::KernelSummary;
use mlc_ir::{Objective, Tensor};
use mlc_tests::case::Case;
use mlc_tests::compile::load;
use mlc_tests::{firmware, paths};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

/// The heads of the page's tables.
const HEAD: &str = "| machine | kernels | within 1.15 | within 1.5 | within 2 |\n|---|---:|---:|---:|---:|\n";
const SCHEDULES_HEAD: &str = "| machine | pairs | order right | 0 % | 3 % | 6 % | 10 % | 20 % | fastest |\n\
                              |---|---:|---:|---:|---:|---:|---:|---:|---:|\n";

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
    networks: Vec<String>,
    rows: bool,
    schedules: bool,
    write: bool,
    runs: u32,
}

fn plan() -> Result<Plan, String> {
    let mut plan =
        Plan { machines: Vec::new(), networks: Vec::new(), rows: false, schedules: false, write: false, runs: 30 };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--machine" => plan.machines.push(value()?),
            "--network" => plan.networks.push(value()?),
            "--runs" => plan.runs = value()?.parse().map_err(|_| "--runs needs a number")?,
            "--rows" => plan.rows = true,
            "--schedules" => plan.schedules = true,
            "--write" => plan.write = true,
            "--bench" => {}
            option => return Err(format!("there is no option {option}")),
        }
    }
    if plan.machines.is_empty() {
        plan.machines = ["host", "cortex-m4", "cortex-m55", "riscv32"].map(String::from).to_vec();
    }
    Ok(plan)
}

/// The networks of the collection, or of the repository where there is no collection, whose names have one of these parts.
fn networks(parts: &[String]) -> Result<Vec<Case>, String> {
    let folder = paths::conformance().unwrap_or_else(paths::data).join("pnnx");
    let mut folders = paths::subfolders(&folder).map_err(|error| error.to_string())?;
    folders.sort();
    let is_network = |folder: &std::path::Path| {
        let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        name.starts_with("net_") && (parts.is_empty() || parts.iter().any(|part| name.contains(part)))
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

    /// The program in which nodes take these schedules.
    fn build(&self, schedules: BTreeMap<String, String>) -> Result<Built, String> {
        let text = |error: mlc_ir::Diagnostic| format!("{}: {error}", self.case.name);
        let options = CompileOptions { schedules, ..self.options.clone() };
        let compiled = pipeline::compile(&self.graph, &options, &mut |_, _| {});
        let compiled = compiled.map_err(|errors| first_of(self.case, errors))?;
        let program = self.toolchain.build_to_profile(&compiled.bundle().map_err(text)?).map_err(text)?;
        Ok(Built { kernels: compiled.module.kernels, program })
    }

    /// What each kernel of a program took.
    fn times(&self, built: &Built) -> Result<Vec<f64>, String> {
        let inputs: Vec<Tensor> = self.case.inputs.iter().map(|input| input.value.clone()).collect();
        let times = built.program.bench_kernels(&inputs, self.runs);
        let times = times.map_err(|error| format!("{}: {error}", self.case.name))?;
        Ok(times.into_iter().map(|time| time as f64).collect())
    }
}

/// A program and its kernels.
struct Built {
    kernels: Vec<KernelSummary>,
    program: Program,
}

fn first_of(case: &Case, errors: impl IntoIterator<Item = mlc_ir::Diagnostic>) -> String {
    errors.into_iter().next().map_or_else(String::new, |error| format!("{}: {error}", case.name))
}

/// Runs a network's kernels.
fn rows(case: &Case, machine: &str, runs: u32) -> Result<Vec<Row>, String> {
    let bench = Bench::new(case, machine, runs)?;
    let built = bench.build(BTreeMap::new())?;
    let times = bench.times(&built)?;
    let row = |(kernel, measured): (KernelSummary, f64)| Row {
        network: case.name.clone(),
        kernel: kernel.function,
        operator: kernel.operator,
        price: kernel.price.time as f64,
        measured,
    };
    Ok(built.kernels.into_iter().zip(times).map(row).collect())
}

/// A schedule of a kernel.
struct Way {
    schedule: String,
    price: f64,
    /// What it took at least, in the one half of the runs and in the other.
    times: [f64; 2],
}

impl Way {
    fn time(&self) -> f64 {
        self.times[0].min(self.times[1])
    }

    /// Whether it took less than another one, by so much in both halves of the runs; `None` where that can't be told.
    fn is_faster(&self, other: &Way, apart: f64) -> Option<bool> {
        let by = |own: &Way, other: &Way| (0..2).all(|half| own.times[half] * apart < other.times[half]);
        match (by(self, other), by(other, self)) {
            (false, false) => None,
            (is_faster, _) => Some(is_faster),
        }
    }
}

/// A kernel's schedules, in the order of the list.
struct Ways {
    network: String,
    kernel: String,
    list: Vec<Way>,
}

impl Ways {
    fn print(&self) {
        eprintln!("{} {}", self.network, self.kernel);
        for Way { schedule, price, times: [one, other] } in &self.list {
            eprintln!("{price:>12.0} {one:>12.0} {other:>12.0}  {schedule}");
        }
    }
}

/// How often the programs of a network take turns on the host, so that all meet the same disturbances.
const ROUNDS: usize = 6;

/// Runs the kernels of a network that there are several schedules for by each of them. `repeated` gets by how much the times of code differ that
/// is the same in several of these programs.
fn ways(case: &Case, machine: &str, runs: u32, repeated: &mut Vec<f64>) -> Result<Vec<Ways>, String> {
    let bench = Bench::new(case, machine, runs)?;
    let kernels = bench.build(BTreeMap::new())?.kernels;
    let alone = |own: &KernelSummary| kernels.iter().filter(|other| other.node == own.node).count() == 1;
    let several: Vec<&KernelSummary> =
        kernels.iter().filter(|kernel| kernel.choice.offers.len() > 1 && alone(kernel)).collect();
    let most = several.iter().map(|kernel| kernel.choice.offers.len()).max().unwrap_or(0);
    let forced = |number: usize| {
        let offer = |kernel: &KernelSummary| kernel.choice.offers.get(number).map(|offer| offer.schedule.to_string());
        several.iter().filter_map(|kernel| Some((kernel.node.clone(), offer(kernel)?))).collect()
    };
    let programs = (0..most).map(|number| bench.build(forced(number))).collect::<Result<Vec<Built>, String>>()?;
    // Of each program, kernel by kernel.
    let mut least: Vec<Vec<[f64; 2]>> =
        programs.iter().map(|built| vec![[f64::INFINITY; 2]; built.kernels.len()]).collect();
    for round in 0..if machine == "host" { ROUNDS } else { 1 } {
        for (built, least) in programs.iter().zip(&mut least) {
            for (least, time) in least.iter_mut().zip(bench.times(built)?) {
                for half in least.iter_mut().enumerate().filter(|(half, _)| machine != "host" || round % 2 == *half) {
                    *half.1 = half.1.min(time);
                }
            }
        }
    }
    let times = |number: usize, kernel: &KernelSummary| {
        let place = programs[number].kernels.iter().position(|other| other.function == kernel.function);
        place.map_or([0.0; 2], |place| least[number][place])
    };
    for kernel in kernels.iter().filter(|kernel| kernel.choice.offers.len() == 1 && alone(kernel)) {
        let all: Vec<f64> = (0..most).map(|number| times(number, kernel)).map(|[x, y]| x.min(y)).collect();
        let enough = all.iter().all(|time| *time >= least_time(machine));
        let pairs = all.iter().enumerate().flat_map(|(number, x)| all[..number].iter().map(move |y| (x, y)));
        repeated.extend(pairs.filter(|_| enough).map(|(x, y)| x.max(*y) / x.min(*y)));
    }
    let way = |kernel: &KernelSummary, number: usize| {
        let offer = &kernel.choice.offers[number];
        Way { schedule: offer.schedule.to_string(), price: offer.price.time as f64, times: times(number, kernel) }
    };
    let ways = |kernel: &&KernelSummary| Ways {
        network: case.name.clone(),
        kernel: kernel.function.clone(),
        list: (0..kernel.choice.offers.len()).map(|number| way(kernel, number)).collect(),
    };
    Ok(several.iter().map(ways).collect())
}

/// Kernels that take less are mostly what measuring takes.
fn least_time(machine: &str) -> f64 {
    if machine == "host" { 400.0 } else { 2000.0 }
}

/// By how much two schedules must differ, as a factor, for their order to count. On the host that is what nine in ten pairs of the same code in two
/// programs differ by.
fn apart(machine: &str) -> f64 {
    if machine == "host" { 1.1 } else { 1.02 }
}

/// Shares of the price by which a schedule must be cheaper than the first of the list to be taken.
const TRUSTS: [f64; 5] = [0.0, 0.03, 0.06, 0.1, 0.2];

/// Of schedules of the same kernels: how often prices tell the faster one, and what comes of choosing by them.
fn schedules(plan: &Plan, name: &str, cases: &[Case]) -> String {
    let (mut all, mut repeated) = (Vec::new(), Vec::new());
    for case in cases {
        match ways(case, name, plan.runs, &mut repeated) {
            Ok(ways) => {
                ways.iter().filter(|_| plan.rows).for_each(Ways::print);
                all.extend(ways);
            }
            Err(error) => eprintln!("left out: {error}"),
        }
    }
    all.retain(|ways| ways.list.iter().all(|way| way.time() >= least_time(name)));
    repeated.sort_by(f64::total_cmp);
    if let Some(most) = repeated.get(repeated.len() * 9 / 10).filter(|_| name == "host") {
        eprintln!(
            "nine in ten of {} pairs of the same code in two programs differ by {most:.3} at most",
            repeated.len()
        );
    }
    let (mut pairs, mut right) = (0, 0);
    for ways in &all {
        for (number, x) in ways.list.iter().enumerate() {
            for y in &ways.list[..number] {
                if let Some(is_faster) = x.is_faster(y, apart(name)) {
                    pairs += 1;
                    right += usize::from((x.price < y.price) == is_faster && x.price != y.price);
                }
            }
        }
    }
    let total = |taken: &dyn Fn(&Ways) -> f64| all.iter().map(taken).sum::<f64>();
    let first = total(&|ways| ways.list[0].time());
    let by_price = |trust: f64| {
        total(&|ways| {
            let cheapest = ways.list.iter().min_by(|x, y| x.price.total_cmp(&y.price)).unwrap_or(&ways.list[0]);
            let is_taken = cheapest.price < (1.0 - trust) * ways.list[0].price;
            if is_taken { cheapest.time() } else { ways.list[0].time() }
        })
    };
    let best = total(&|ways| ways.list.iter().map(Way::time).fold(f64::INFINITY, f64::min));
    let mut text = format!("| {name} | {pairs} | {:.0} % |", 100.0 * f64::from(right as u32) / f64::from(pairs.max(1)));
    for sum in TRUSTS.map(by_price).into_iter().chain([best]) {
        let _ = write!(text, " {:.3} |", sum / first);
    }
    text.push('\n');
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
    all.retain(|row| row.measured >= least_time(name) && row.price > 0.0);
    let scale = if name == "host" { median(all.iter().map(|row| row.measured / row.price).collect()) } else { 1.0 };
    let error = |row: &Row| row.price * scale / row.measured;
    let within = |factor: f64| {
        let near = all.iter().filter(|row| (1.0 / factor..=factor).contains(&error(row))).count();
        100.0 * near as f64 / all.len().max(1) as f64
    };
    let text =
        format!("| {name} | {} | {:.0} % | {:.0} % | {:.0} % |\n", all.len(), within(1.15), within(1.5), within(2.0));
    if plan.rows {
        eprintln!("a unit of price is {scale:.3}");
        all.sort_by(|left, right| error(left).total_cmp(&error(right)));
        for row in &all {
            let Row { network, kernel, operator, price, measured } = row;
            eprintln!("{:7.3} {price:>12.0} {measured:>12.0} {network} {kernel} {operator}", error(row));
        }
    }
    Ok(text)
}

/// Puts a machine's line into the table of a page that begins like this.
fn replaced(page: &str, head: &str, line: &str) -> String {
    let cell = |line: &str| line.split('|').nth(1).map(str::to_owned);
    let (before, table) = page.split_once(head).unwrap_or((page, ""));
    let end = table.split_inclusive('\n').take_while(|line| line.starts_with('|')).map(str::len).sum();
    let (lines, after) = table.split_at(end);
    let mut lines: Vec<&str> = lines.split_inclusive('\n').collect();
    match lines.iter().position(|own| cell(own) == cell(line)) {
        Some(place) => lines[place] = line,
        None => lines.push(line),
    }
    format!("{before}{head}{}{after}", lines.concat())
}

fn run() -> Result<(), String> {
    let plan = plan()?;
    let cases = networks(&plan.networks)?;
    let head = if plan.schedules { SCHEDULES_HEAD } else { HEAD };
    print!("{head}");
    for name in &plan.machines {
        let line = match firmware::missing(name).filter(|_| name != "host") {
            Some(reason) => {
                println!("{name}: left out, {reason}");
                continue;
            }
            None if plan.schedules => schedules(&plan, name, &cases),
            None => machine(&plan, name, &cases)?,
        };
        print!("{line}");
        if plan.write {
            let path = paths::repository().join("docs/prices.md");
            let page = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            std::fs::write(&path, replaced(&page, head, &line)).map_err(|error| error.to_string())?;
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
