//! Random graphs: what generated C computes, before and after optimisation, against the evaluator.
//!
//! [`random_graph`] grows a graph from a seed; [`Bounds`] says what its outputs may be; [`batch`](crate::batch) compiles and runs many at
//! once; [`shrunk`] makes a failing one small. Graphs of odd seeds run on the host, the others on the generic target and with the
//! schedules of microcontrollers; a quarter of each is compiled with optimisation.

mod adapt;
mod draft;
mod grow;
mod layers;
mod selections;
mod shrink;

pub use draft::Sample;
pub use grow::random_graph;
pub use mlc::conditioning::{Bounds, Compared, judge};
pub use shrink::{shrunk, text_with_seeds};

use crate::batch::{self, Job};
use crate::compile::{Compiled, compile_graph, compile_kernels};
use crate::mode::Mode;
use mlc_codegen::{Execution, Options, ScheduleOptions, Target, VectorSpelling, generate};
use mlc_ir::ops::Binary;
use mlc_ir::parallel;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Diagnostic, Graph, Objective, TensorType};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

/// Graphs in one program.
const BATCH: usize = 25;
/// One program out of so many is compiled with optimisation, as those of other tests.
const OPTIMISED_SHARE: u64 = 4;
/// Targets whose code this machine runs, too: with instructions for bytes, and with the fewest registers.
const MICROCONTROLLERS: [&str; 2] = ["cortex-m4", "riscv32"];

/// Whether the optimiser has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The graph as it was grown.
    Plain,
    /// The optimised graph.
    Optimised,
}

/// The names of the targets that random graphs run on.
pub fn targets() -> impl Iterator<Item = &'static str> {
    ["host", "generic"].into_iter().chain(MICROCONTROLLERS)
}

/// What is run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The first seed.
    pub seed: u64,
    /// How many seeds.
    pub count: u64,
    /// The only target; without it, all of [`targets`].
    pub target: Option<String>,
    /// Whether undefined behaviour stops the program.
    pub sanitize: bool,
    /// What is compiled.
    pub stages: Vec<Stage>,
    /// Whether failing graphs are made small.
    pub shrink: bool,
    /// Threads.
    pub threads: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            seed: 0,
            count: 2000,
            target: None,
            sanitize: false,
            stages: vec![Stage::Plain, Stage::Optimised],
            shrink: true,
            threads: 2,
        }
    }
}

impl Plan {
    /// The target and flags that the graph of a seed runs with.
    pub fn mode(&self, seed: u64) -> Mode {
        let name = self.target.as_deref().unwrap_or_else(|| {
            // Neither five objectives nor four degrees of optimisation go with one of three.
            let elsewhere = ["generic", MICROCONTROLLERS[0], MICROCONTROLLERS[1]];
            if seed.is_multiple_of(2) { elsewhere[(seed / 2 % 3) as usize] } else { "host" }
        });
        let mode = match name {
            "host" => Mode::host(self.sanitize),
            name => Mode::microcontroller(name, self.sanitize).unwrap_or_else(|| Mode::generic(self.sanitize)),
        };
        let mode = match (seed / 2) % 5 {
            1 => mode.with_objective(Objective::Size),
            2 => mode.with_objective(Objective::Ram),
            _ => mode,
        };
        // Of code for any machine there are two texts.
        let is_plain = mode.target.vectors == VectorSpelling::Either && (seed / 6).is_multiple_of(2);
        let mode = if is_plain { mode.with_flags(["-DMLC_VECTORS=0"]) } else { mode };
        if (seed / 2).is_multiple_of(OPTIMISED_SHARE) { mode } else { mode.unoptimised() }
    }

    /// The seeds in batches of one mode.
    fn batches(&self) -> Vec<Vec<u64>> {
        let mut groups: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for seed in self.seed..self.seed + self.count {
            groups.entry(self.mode(seed).name).or_default().push(seed);
        }
        groups.values().flat_map(|seeds| seeds.chunks(BATCH)).map(<[u64]>::to_vec).collect()
    }
}

/// A graph whose code is wrong.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// Whether the optimiser had run.
    pub stage: Stage,
    /// Name of the target.
    pub target: String,
    /// What is wrong.
    pub message: String,
    /// The graph, made small.
    pub graph: String,
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Failure { seed, stage, target, message, graph } = self;
        write!(f, "seed {seed}, {stage:?}, target {target}: {message}\n\n{graph}")
    }
}

/// What came out of a run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How many graphs.
    pub graphs: usize,
    /// How many operators were in them.
    pub operators: usize,
    /// What was compared.
    pub compared: Compared,
    /// What is wrong, by seed.
    pub failures: Vec<Failure>,
}

/// The data types that generated code can compute with.
pub fn computable_dtypes() -> Vec<DType> {
    let computes = |dtype: &DType| {
        let mut graph = Graph::new("probe");
        let x = graph.add_input("x", TensorType::new(*dtype, [2]));
        let function = if *dtype == DType::Bool { BinaryFunction::And } else { BinaryFunction::Add };
        let Ok(sum) = graph.add(Binary { function }, &[x, x], "sum") else { return false };
        graph.add_output("y", sum.into());
        generate(
            &graph,
            &Options {
                model_name: "probe".into(),
                target: Target::generic(),
                execution: Execution::default(),
                schedules: ScheduleOptions::default(),
            },
        )
        .is_ok()
    };
    DType::ALL.into_iter().filter(computes).collect()
}

/// Runs a plan's graphs; each failure is also told when it is found.
pub fn run(plan: &Plan, tell: &(dyn Fn(&Failure) + Sync)) -> Report {
    let dtypes = computable_dtypes();
    let batches = plan.batches();
    let mut report = Report::default();
    for part in parallel::map(&batches, plan.threads, |seeds| run_batch(plan, seeds, &dtypes, tell)) {
        report.add(part);
    }
    report.failures.sort_by_key(|failure| failure.seed);
    report
}

impl Report {
    fn add(&mut self, other: Report) {
        self.graphs += other.graphs;
        self.operators += other.operators;
        self.compared.add(other.compared);
        self.failures.extend(other.failures);
    }
}

fn run_batch(plan: &Plan, seeds: &[u64], dtypes: &[DType], tell: &(dyn Fn(&Failure) + Sync)) -> Report {
    let mode = plan.mode(seeds[0]);
    let samples: Vec<Sample> = seeds.iter().map(|&seed| random_graph(seed, dtypes)).collect();
    let mut report = Report { graphs: samples.len(), ..Report::default() };
    report.operators = samples.iter().map(|sample| sample.graph.len()).sum();
    for (number, outcomes) in check(&samples, &plan.stages, &mode).into_iter().enumerate() {
        for (&stage, outcome) in plan.stages.iter().zip(outcomes) {
            match outcome {
                Ok(compared) => report.compared.add(compared),
                Err(message) => {
                    let failure = failure(plan, seeds[number], stage, &samples[number], message);
                    tell(&failure);
                    report.failures.push(failure);
                }
            }
        }
    }
    report
}

/// A failure with its graph made small.
fn failure(plan: &Plan, seed: u64, stage: Stage, sample: &Sample, message: String) -> Failure {
    let mode = plan.mode(seed);
    let outcomes = |samples: &[Sample]| check(samples, &[stage], &mode).into_iter().flatten().collect::<Vec<_>>();
    let failing = |samples: &[Sample]| outcomes(samples).iter().position(Result::is_err);
    let sample = if plan.shrink { shrunk(sample, &failing) } else { sample.clone() };
    let message = outcomes(slice::from_ref(&sample)).into_iter().find_map(Result::err).unwrap_or(message);
    Failure { seed, stage, target: mode.name, message, graph: text_with_seeds(&sample) }
}

/// Takes samples the whole way, in one program; gives for each sample and each stage what agrees, or what is wrong.
pub fn check(samples: &[Sample], stages: &[Stage], mode: &Mode) -> Vec<Vec<Result<Compared, String>>> {
    let compile = |(number, sample): (usize, &Sample)| -> Vec<Result<Compiled, String>> {
        let one = |&stage| compiled(&sample.graph, stage, &format!("g{number}{}", suffix(stage)), &mode.target);
        stages.iter().map(one).collect()
    };
    let code: Vec<Vec<Result<Compiled, String>>> = samples.iter().enumerate().map(compile).collect();
    let mut jobs = Vec::new();
    for (sample, code) in samples.iter().zip(&code) {
        jobs.extend(code.iter().flatten().map(|code| Job { module: &code.module, inputs: &sample.inputs }));
    }
    let mut outputs = batch::run_each(&jobs, mode).into_iter();
    let mut outcomes = Vec::new();
    for (sample, code) in samples.iter().zip(code) {
        let bounds = Bounds::of(&sample.graph, &sample.inputs).map_err(|error| error.to_string());
        let outcome = |code: Result<Compiled, String>| {
            code?;
            let outputs = outputs.next().unwrap_or_else(|| Err("the program gives nothing".into()))?;
            judge(&sample.graph, &sample.inputs, bounds.as_ref().map_err(String::clone)?, &outputs)
        };
        outcomes.push(code.into_iter().map(outcome).collect());
    }
    outcomes
}

fn suffix(stage: Stage) -> &'static str {
    match stage {
        Stage::Plain => "_plain",
        Stage::Optimised => "_optimised",
    }
}

/// The code of a graph. A panic is an error.
fn compiled(graph: &Graph, stage: Stage, name: &str, target: &Target) -> Result<Compiled, String> {
    let result = catch_unwind(AssertUnwindSafe(|| match stage {
        Stage::Plain => compile_kernels(graph, name, target),
        Stage::Optimised => compile_graph(graph, name, target),
    }));
    let list = |findings: Vec<Diagnostic>| findings.iter().map(Diagnostic::to_string).collect::<Vec<_>>().join("; ");
    result.map_err(|_| "the compiler panics".to_owned())?.map_err(list)
}
