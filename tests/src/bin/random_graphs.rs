//! `random_graphs [--count N] [--seed N] [--target host|generic|cortex-m4|riscv32] [--sanitize] [--plain-only] [--optimised-only] [--no-shrink] [--threads N]`
//!
//! Compiles the random graphs of the seeds N, N + 1, …, before and after optimisation, and compares what they compute with the
//! evaluator. One failing seed again: `--seed <it> --count 1`. The exit status is 1 when a graph's code is wrong.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test runner talks to its user")]

use mlc_tests::random::{Plan, Stage, computable_dtypes, random_graph, run, targets, text_with_seeds};
use std::process::ExitCode;
use std::time::Instant;

fn plan() -> Result<(Plan, bool), String> {
    let mut plan = Plan::default();
    let mut print = false;
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|_| format!("{text} isn't a number"));
        match word.as_str() {
            "--count" => plan.count = number(value()?)?,
            "--seed" => plan.seed = number(value()?)?,
            "--threads" => plan.threads = number(value()?)? as usize,
            "--target" => {
                let name = value()?;
                if !targets().any(|target| target == name) {
                    return Err(format!("there is no target {name}"));
                }
                plan.target = Some(name);
            }
            "--sanitize" => plan.sanitize = true,
            "--plain-only" => plan.stages = vec![Stage::Plain],
            "--optimised-only" => plan.stages = vec![Stage::Optimised],
            "--shrink" => plan.shrink = true,
            "--no-shrink" => plan.shrink = false,
            "--print" => print = true,
            option => return Err(format!("there is no option {option}")),
        }
    }
    Ok((plan, print))
}

fn main() -> ExitCode {
    let (plan, print) = match plan() {
        Ok(plan) => plan,
        Err(message) => {
            eprintln!("random_graphs: {message}");
            return ExitCode::from(2);
        }
    };
    if print {
        let dtypes = computable_dtypes();
        for seed in plan.seed..plan.seed + plan.count {
            print!("{}", text_with_seeds(&random_graph(seed, &dtypes)));
        }
        return ExitCode::SUCCESS;
    }
    let start = Instant::now();
    let report = run(&plan, &|failure| println!("{failure}"));
    println!(
        "{} graphs of {} nodes in all in {:.0} s: {} elements agree, {} are badly conditioned and left out, {} failures",
        report.graphs,
        report.operators,
        start.elapsed().as_secs_f64(),
        report.compared.agreeing,
        report.compared.loose,
        report.failures.len()
    );
    if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
