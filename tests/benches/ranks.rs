//! Simulated runs of several ranks against real ones: `ranks [--transport threads|mpi] [--runs N]`.
//!
//! A *pipeline* of 2, 4 and 8 ranks hands a matrix on, which each multiplies, and back to the first: however few cores there
//! are, one rank works at a time.
//! Two ranks *side by side* multiply and exchange their results, and multiply again. The unit of prices is taken from the first
//! pipeline's kernels; the link's latency and rate are given, not fitted.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use mlc::pipeline::{self, CompileOptions};
use mlc::simulation::{Link, simulate};
use mlc::toolchain::{Event, RanksRun, Timeline, Toolchain, Transport};
use mlc_codegen::Module;
use mlc_ir::{Diagnostic, Graph};
use mlc_tests::mode::host_target;
use mlc_tests::ranks::inputs;
use std::process::ExitCode;
use std::time::Duration;

const LINK: Link = Link { rate: 8.0, latency: 20_000.0 };

/// A rank of a pipeline: multiplies what it gets by its weights and hands it on; the first one gets the result.
fn stage(rank: usize, count: usize) -> String {
    let (before, next) = ((rank + count - 1) % count, (rank + 1) % count);
    let (input, result) = if rank == 0 { (", %back: f32[64, 512]", "%back") } else { ("", "") };
    let output = if rank == 0 { ", \"result\": f32[64, 512]" } else { "" };
    let messages = if rank == 0 {
        format!("  send \"y\" to {next} tag 0\n  receive %back from {before} tag 0\n")
    } else {
        format!("  receive %x from {before} tag 0\n  send \"y\" to {next} tag 0\n")
    };
    let results = if result.is_empty() { "%y".to_owned() } else { format!("%y, {result}") };
    format!(
        "mlc 1
graph @stage{rank}(%x: f32[64, 512], %w: f32[512, 512]{input}) -> (\"y\": f32[64, 512]{output}) {{
  %y = matmul %x, %w {{transpose_left = false, transpose_right = false}} : f32[64, 512]
  rank {rank} of {count}
{messages}  return {results}
}}
"
    )
}

/// One of two ranks that work at the same time.
fn side(rank: usize) -> String {
    let peer = 1 - rank;
    format!(
        "mlc 1
graph @side{rank}(%x: f32[64, 512], %w: f32[512, 512], %other: f32[64, 512]) -> (\"own\": f32[64, 512], \"y\": f32[64, 512]) {{
  %own = matmul %x, %w {{transpose_left = false, transpose_right = false}} : f32[64, 512]
  %sum = binary %own, %other {{function = add}} : f32[64, 512]
  %y = matmul %sum, %w {{transpose_left = false, transpose_right = false}} : f32[64, 512]
  rank {rank} of 2
  send \"own\" to {peer} tag 0
  receive %other from {peer} tag 0
  return %own, %y
}}
"
    )
}

/// What was measured in the shortest of some runs, in nanoseconds: all of it, and the kernels of each rank.
struct Measured {
    total: u64,
    kernels: Vec<u64>,
}

fn computing(timeline: &Timeline) -> Vec<u64> {
    let of = |event: &Event| match event {
        Event::Kernel { begin, end, .. } => end - begin,
        Event::Message { .. } => 0,
    };
    timeline.ranks.iter().map(|(_, events)| events.iter().map(of).sum()).collect()
}

fn measure(texts: &[String], transport: Transport, runs: u32) -> Result<(Vec<Module>, Measured), String> {
    let one = |error: Diagnostic| error.to_string();
    let all = |errors: Vec<Diagnostic>| errors.into_iter().map(one).collect::<Vec<_>>().join("; ");
    let parse = |text: &String| mlc_ir::text::parse(text, &()).map_err(all);
    let graphs: Vec<Graph> = texts.iter().map(parse).collect::<Result<_, _>>()?;
    let (mut modules, mut bundles) = (Vec::new(), Vec::new());
    for (rank, graph) in graphs.iter().enumerate() {
        let model_name = format!("bench_rank{rank}");
        let options = CompileOptions { model_name, target: host_target(), ..CompileOptions::default() };
        let compiled = pipeline::compile(graph, &options, &mut |_, _| {}).map_err(all)?;
        bundles.push(compiled.bundle().map_err(one)?);
        modules.push(compiled.module);
    }
    let program = Toolchain::default().build_ranks(&bundles, transport, true).map_err(one)?;
    let inputs = inputs(&graphs, 1);
    let mut best: Option<Measured> = None;
    for _ in 0..runs {
        // The last of three on the same inputs is what the timeline tells.
        let run = RanksRun { runs: 3, patience: Duration::from_secs(60) };
        let timeline = program.run(&inputs, run).map_err(one)?.1.ok_or("there is no timeline")?;
        let measured = Measured { total: timeline.duration(), kernels: computing(&timeline) };
        if best.as_ref().is_none_or(|best| measured.total < best.total) {
            best = Some(measured);
        }
    }
    best.map(|best| (modules, best)).ok_or_else(|| "no run was asked for".into())
}

fn bench(transport: Transport, runs: u32) -> Result<(), String> {
    let pipeline = |count: usize| (0..count).map(|rank| stage(rank, count)).collect::<Vec<_>>();
    let models = [
        ("pipeline of 2", pipeline(2)),
        ("pipeline of 4", pipeline(4)),
        ("pipeline of 8", pipeline(8)),
        ("2 side by side", vec![side(0), side(1)]),
    ];
    let mut cycle = 0.0;
    println!("| model | kernels, measured us | kernels, simulated us | all, measured us | all, simulated us | ratio |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (name, texts) in models {
        let (modules, measured) = measure(&texts, transport, runs)?;
        let kernels: u64 = measured.kernels.iter().sum();
        if cycle == 0.0 {
            let prices: u64 = modules.iter().flat_map(|module| &module.kernels).map(|kernel| kernel.price.time).sum();
            cycle = kernels as f64 / prices as f64;
        }
        let modules: Vec<&Module> = modules.iter().collect();
        let reports = simulate(&modules, LINK, cycle).ok_or("the ranks wait for each other")?;
        let total = reports.iter().map(|report| report.time).fold(0.0, f64::max);
        let simulated: f64 = reports.iter().map(|report| report.computing).sum();
        println!(
            "| {name} | {:.0} | {:.0} | {:.0} | {:.0} | {:.2} |",
            kernels as f64 / 1e3,
            simulated / 1e3,
            measured.total as f64 / 1e3,
            total / 1e3,
            total / measured.total as f64
        );
    }
    println!("a unit of price is {cycle:.3} ns");
    Ok(())
}

fn run() -> Result<(), String> {
    let (mut transport, mut runs) = (Transport::Threads, 20);
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--transport" => match words.next().as_deref() {
                Some("threads") => transport = Transport::Threads,
                Some("mpi") => transport = Transport::Mpi,
                _ => return Err("--transport is threads or mpi".into()),
            },
            "--runs" => runs = words.next().and_then(|text| text.parse().ok()).ok_or("--runs needs a number")?,
            "--bench" => {}
            option => return Err(format!("there is no option {option}")),
        }
    }
    bench(transport, runs)
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
