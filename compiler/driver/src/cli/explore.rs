//! `mlc explore`

use super::console::Console;
use super::model::Model;
use super::options::CodeOptions;
use super::subject::{compile_options, in_model, load_for};
use super::words::{bytes, count};
use crate::files;
use crate::pipeline::{self, CompileOptions, Failure};
use clap::Args;
use mlc_codegen::Point;
use mlc_report::svg;
use serde::Serialize;
use std::path::PathBuf;

/// `mlc explore`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc explore model.onnx --target cortex-m4
  mlc explore model.onnx --target cortex-m4 --json
  mlc explore model.onnx --target cortex-m4 --svg front.svg

Each line is a program that mlc could make, and none has both less working memory and
less time than another one. 'mlc compile --ram N' makes the fastest that needs no more
than N bytes with states, inputs and outputs. What patches of rows compute twice is
in operations. Times are predicted: cycles on machines
that do several things at once, else executed instructions.")]
pub struct Explore {
    /// The model.
    #[command(flatten)]
    pub model: Model,
    /// What the code is for.
    #[command(flatten)]
    pub code: CodeOptions,
    /// Print the list as JSON
    #[arg(long)]
    pub json: bool,
    /// Also write a picture of it
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// What `mlc explore --json` prints.
#[derive(Serialize)]
struct Front<'a> {
    target: &'a str,
    unit: &'a str,
    programs: &'a [Point],
}

pub(super) fn explore(arguments: &Explore, console: &Console) -> Result<(), Failure> {
    let loaded = load_for(&arguments.model, &arguments.code, &[], console)?;
    let options = compile_options(&arguments.code, "generic", console)?;
    let progress = console.progress("looking for programs");
    let points = pipeline::explore(&loaded.graph, &options);
    drop(progress);
    let points = points.map_err(|diagnostics| in_model(diagnostics, &arguments.model, loaded.sources))?;
    let unit = options.target.machine.unit();
    if let Some(path) = &arguments.svg {
        let dots: Vec<(u64, u64)> = points.iter().map(|point| (point.arena_bytes as u64, point.time)).collect();
        files::write_atomically(path, svg::alone(&svg::front(&dots, unit)).as_bytes())?;
        console.status(&format!("wrote {}", path.display()));
    }
    if arguments.json {
        console.print_json(&Front { target: &options.target.name, unit, programs: &points });
    } else {
        console.print(&table(&points, &options));
    }
    Ok(())
}

fn table(points: &[Point], options: &CompileOptions) -> String {
    let fastest = points.last().map_or(1, |point| point.time.max(1));
    let mut text = format!("working memory    time in {:<14} more time  computed twice", options.target.machine.unit());
    for point in points {
        let more = 100.0 * (point.time as f64 / fastest as f64 - 1.0);
        let (memory, twice) = (bytes(point.arena_bytes as u64), count(point.twice));
        text += &format!("\n{memory:>14}  {:>22}  {more:>7.1} %  {twice:>14}", point.time);
    }
    text
}
