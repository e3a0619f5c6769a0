//! Random graphs: what generated C computes, before and after optimisation, against the evaluator.
//!
//! [`random_graph`] grows a graph from a seed; [`Bounds`] says what its outputs may be; [`batch`] compiles and runs many at
//! once; [`shrink`] makes a failing one small. Graphs of even seeds run on the generic target, the others on the host.

mod adapt;
pub mod batch;
mod draft;
mod grow;
mod layers;
mod noise;
mod shrink;

pub use draft::Sample;
pub use grow::random_graph;
pub use noise::{Bounds, Compared, judge};
pub use shrink::{shrunk, text_with_seeds};

use crate::compile::{Compiled, compile_graph, compile_kernels};
use crate::mode::Mode;
use batch::Job;
use mlc_codegen::{Execution, Module, Options, Target, generate};
use mlc_ir::ops::Binary;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Diagnostic, Graph, TensorType};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Graphs in one program.
const BATCH: usize = 20;

/// Whether the optimiser has run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The graph as it was grown.
    Plain,
    /// The optimised graph.
    Optimised,
}

/// What is run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The first seed.
    pub seed: u64,
    /// How many seeds.
    pub count: u64,
    /// The only target, `host` or `generic`; without it, both.
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
        match self.target.as_deref() {
            Some("host") => Mode::host(self.sanitize),
            Some(_) => Mode::generic(self.sanitize),
            None if seed.is_multiple_of(2) => Mode::generic(self.sanitize),
            None => Mode::host(self.sanitize),
        }
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
            &Options { model_name: "probe".into(), target: Target::generic(), execution: Execution::default() },
        )
        .is_ok()
    };
    DType::ALL.into_iter().filter(computes).collect()
}

/// Runs a plan's graphs.
pub fn run(plan: &Plan) -> Report {
    let dtypes = computable_dtypes();
    let seeds: Vec<u64> = (plan.seed..plan.seed + plan.count).collect();
    // The seeds of a batch have one target.
    let sorted = |parity: u64| seeds.iter().copied().filter(move |seed| seed % 2 == parity).collect::<Vec<_>>();
    let (even, odd) = (sorted(0), sorted(1));
    let batches: Vec<&[u64]> = even.chunks(BATCH).chain(odd.chunks(BATCH)).collect();
    let (next, report) = (AtomicUsize::new(0), Mutex::new(Report::default()));
    std::thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            scope.spawn(|| {
                while let Some(seeds) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let part = run_batch(plan, seeds, &dtypes);
                    if let Ok(mut report) = report.lock() {
                        report.add(part);
                    }
                }
            });
        }
    });
    let mut report = report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    report.failures.sort_by_key(|failure| failure.seed);
    report
}

impl Report {
    fn add(&mut self, other: Report) {
        self.graphs += other.graphs;
        self.operators += other.operators;
        self.compared.agreeing += other.compared.agreeing;
        self.compared.loose += other.compared.loose;
        self.failures.extend(other.failures);
    }
}

/// A sample of a batch with its code.
struct Ready {
    seed: u64,
    stage: Stage,
    sample: usize,
    module: Module,
}

fn run_batch(plan: &Plan, seeds: &[u64], dtypes: &[DType]) -> Report {
    let mode = plan.mode(seeds[0]);
    let samples: Vec<Sample> = seeds.iter().map(|&seed| random_graph(seed, dtypes)).collect();
    let mut report = Report { graphs: samples.len(), ..Report::default() };
    let mut fail = |seed: u64, stage: Stage, sample: &Sample, message: String| {
        let graph =
            if plan.shrink { shrunk(sample, &|sample| check(sample, stage, &mode).is_err()) } else { sample.clone() };
        let message = check(&graph, stage, &mode).err().unwrap_or(message);
        let graph = text_with_seeds(&graph);
        report.failures.push(Failure { seed, stage, target: mode.name.clone(), message, graph });
    };
    let mut ready = Vec::new();
    for (number, (&seed, sample)) in seeds.iter().zip(&samples).enumerate() {
        for &stage in &plan.stages {
            match compiled(&sample.graph, stage, &format!("g{seed}{}", suffix(stage)), &mode.target) {
                Ok(compiled) => ready.push(Ready { seed, stage, sample: number, module: compiled.module }),
                Err(message) => fail(seed, stage, sample, message),
            }
        }
    }
    let jobs: Vec<Job<'_>> =
        ready.iter().map(|ready| Job { module: &ready.module, inputs: &samples[ready.sample].inputs }).collect();
    let bounds: Vec<Result<Bounds, String>> = samples.iter().map(Bounds::of).collect();
    let outputs = batch::run(&jobs, &mode);
    let mut compared = Compared::default();
    for (number, ready) in ready.iter().enumerate() {
        let sample = &samples[ready.sample];
        // Where the program of all fails, each is tried by itself.
        let outcome = match (&outputs, &bounds[ready.sample]) {
            (Ok(outputs), Ok(bounds)) => judge(sample, bounds, &outputs[number]),
            (_, Err(message)) => Err(message.clone()),
            (Err(_), _) => check(sample, ready.stage, &mode),
        };
        match outcome {
            Ok(own) => {
                compared.agreeing += own.agreeing;
                compared.loose += own.loose;
            }
            Err(message) => fail(ready.seed, ready.stage, sample, message),
        }
    }
    report.operators = samples.iter().map(|sample| sample.graph.len()).sum();
    report.compared = compared;
    report
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

/// Takes one sample the whole way.
///
/// # Errors
/// What is wrong with its code.
pub fn check(sample: &Sample, stage: Stage, mode: &Mode) -> Result<Compared, String> {
    let bounds = Bounds::of(sample)?;
    let compiled = compiled(&sample.graph, stage, "one", &mode.target)?;
    let jobs = [Job { module: &compiled.module, inputs: &sample.inputs }];
    let outputs = batch::run(&jobs, mode)?;
    judge(sample, &bounds, &outputs[0])
}
