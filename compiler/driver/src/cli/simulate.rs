//! `mlc simulate`

use super::arguments::Simulate;
use super::console::Console;
use super::ranks::select::{check, models, rank_name};
use super::subject::{compile_options, in_model, load_for};
use super::words::bytes;
use crate::pipeline::{self, CompileOptions, Failure};
use crate::simulation::{RankReport, simulate as replay};
use mlc_codegen::Module;
use mlc_ir::{Code, Diagnostic, Graph, Location};
use serde::Serialize;

pub(super) fn simulate(arguments: &Simulate, console: &Console) -> Result<(), Failure> {
    let models = models(&arguments.model, &arguments.further_models)?;
    let mut loaded = Vec::new();
    for model in &models {
        loaded.push(load_for(model, &arguments.code, &[], console)?);
    }
    let graphs: Vec<&Graph> = loaded.iter().map(|loaded| &loaded.graph).collect();
    check(&graphs, &models.iter().map(|model| model.path.as_path()).collect::<Vec<_>>())?;
    let options = compile_options(&arguments.code, "host", console)?;
    let mut modules = Vec::new();
    for (rank, (model, loaded)) in models.iter().zip(loaded).enumerate() {
        let options = CompileOptions { model_name: rank_name(&options.model_name, rank), ..options.clone() };
        let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {})
            .map_err(|diagnostics| in_model(diagnostics, model, loaded.sources))?;
        modules.push(compiled.module);
    }
    let modules: Vec<&Module> = modules.iter().collect();
    let reports = replay(&modules, arguments.link, 1.0 / arguments.clock).ok_or_else(|| {
        let message = "the ranks wait for each other, though they fit";
        Diagnostic::error(Code::RanksMismatch, Location::default(), message)
    })?;
    if arguments.json {
        console.print_json(&described(&modules, &reports));
    } else {
        console.print(&text(&modules, &reports));
    }
    Ok(())
}

#[derive(Serialize)]
struct Figures {
    ranks: Vec<RankFigures>,
    sent_bytes: usize,
    time_ns: f64,
}

#[derive(Serialize)]
struct RankFigures {
    computing_ns: f64,
    sent_bytes: usize,
    time_ns: f64,
    waits: Vec<WaitFigures>,
}

#[derive(Serialize)]
struct WaitFigures {
    begin_ns: f64,
    duration_ns: f64,
    peer: usize,
    sent: bool,
    tensor: String,
}

fn described(modules: &[&Module], reports: &[RankReport]) -> Figures {
    let rank = |(module, report): (&&Module, &RankReport)| {
        let messages = module.ranks.as_ref().map_or(&[][..], |ranks| &ranks.messages);
        let waits = report.waits.iter().map(|wait| WaitFigures {
            begin_ns: wait.begin,
            duration_ns: wait.duration,
            peer: messages[wait.message].peer,
            sent: messages[wait.message].sent,
            tensor: messages[wait.message].tensor.clone(),
        });
        RankFigures {
            computing_ns: report.computing,
            sent_bytes: report.sent_bytes,
            time_ns: report.time,
            waits: waits.collect(),
        }
    };
    Figures {
        ranks: modules.iter().zip(reports).map(rank).collect(),
        sent_bytes: reports.iter().map(|report| report.sent_bytes).sum(),
        time_ns: reports.iter().map(|report| report.time).fold(0.0, f64::max),
    }
}

/// A line for each rank, and one for each of its waits.
fn text(modules: &[&Module], reports: &[RankReport]) -> String {
    let figures = described(modules, reports);
    let micros = |nanos: f64| nanos / 1000.0;
    let mut text = String::new();
    for (number, rank) in figures.ranks.iter().enumerate() {
        text += &format!(
            "rank {number}: {:.3} us, {:.3} us of them in kernels, sent {}\n",
            micros(rank.time_ns),
            micros(rank.computing_ns),
            bytes(rank.sent_bytes as u64),
        );
        for wait in &rank.waits {
            let way = if wait.sent { "until it is with" } else { "from" };
            let (begin, took) = (micros(wait.begin_ns), micros(wait.duration_ns));
            text += &format!("  at {begin:.3} us waits {took:.3} us for '{}' {way} rank {}\n", wait.tensor, wait.peer);
        }
    }
    text + &format!("in all: {:.3} us, {} sent\n", micros(figures.time_ns), bytes(figures.sent_bytes as u64))
}
