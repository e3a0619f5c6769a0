//! The page: one HTML file with everything in it, for one model or two beside each other.

use crate::comparison::Comparison;
use crate::diagram::Diagram;
use crate::report::{KernelReport, Report, sum};
use crate::svg;
use crate::template::{bytes, fill, grouped};
use serde::Serialize;

/// Rows of the list of the largest contributors.
const LARGEST: usize = 5;

#[derive(Serialize)]
struct Page<'a> {
    title: String,
    style: &'static str,
    picture_style: &'static str,
    script: &'static str,
    data: String,
    models: Vec<ModelPart<'a>>,
    comparison: Option<Comparison>,
}

/// What the page has of one model.
#[derive(Serialize)]
struct ModelPart<'a> {
    report: &'a Report,
    facts: Vec<(&'static str, String)>,
    largest: Vec<Largest<'a>>,
    rows: Vec<Row<'a>>,
    imported: Option<String>,
    optimized: Option<String>,
    memory: Option<String>,
    roofline: Option<String>,
}

/// What takes most of something.
#[derive(Serialize)]
struct Largest<'a> {
    of: &'static str,
    entries: Vec<(&'a str, String, f64)>,
}

/// A kernel's row.
#[derive(Serialize)]
struct Row<'a> {
    kernel: &'a KernelReport,
    took: Figure,
    share: Option<f64>,
    figures: [Figure; 4],
}

/// A number in a table, if it is known.
#[derive(Serialize)]
struct Figure {
    value: Option<u64>,
    text: String,
}

impl Figure {
    fn new(value: Option<u64>, text: fn(u64) -> String) -> Figure {
        Figure { value, text: value.map_or("–".into(), text) }
    }
}

/// The page of one report, or of several beside each other; of two, what differs comes first.
pub fn page(reports: &[Report]) -> String {
    let comparison = match reports {
        [one, other] => Some(Comparison::new(one, other)),
        _ => None,
    };
    let mut names: Vec<&str> = reports.iter().map(|report| report.model.as_str()).collect();
    names.dedup();
    fill(
        "page.html",
        Page {
            title: names.join(" and "),
            style: include_str!("templates/style.css"),
            picture_style: include_str!("templates/picture.css"),
            script: include_str!("templates/script.js"),
            data: data(reports),
            models: reports.iter().enumerate().map(model_part).collect(),
            comparison,
        },
    )
}

/// The reports as JSON that can't end the element it is in.
fn data(reports: &[Report]) -> String {
    serde_json::to_string(reports).unwrap_or_default().replace('<', "\\u003c")
}

fn model_part((number, report): (usize, &Report)) -> ModelPart<'_> {
    let total = sum(&report.kernels, |kernel| report.time_of(kernel)).unwrap_or(0).max(1) as f64;
    let row = |kernel| {
        let took = report.time_of(kernel);
        let figures = [
            Figure::new(kernel.macs, grouped),
            Figure::new(kernel.code_bytes, bytes),
            Figure::new(kernel.constant_bytes, bytes),
            Figure::new(Some(kernel.workspace_bytes), bytes),
        ];
        Row { kernel, took: Figure::new(took, grouped), share: took.map(|took| took as f64 / total), figures }
    };
    let graph = |diagram: &Diagram, id: &str| {
        (!diagram.nodes.is_empty()).then(|| svg::graph(diagram, &format!("{id}-{number}")))
    };
    ModelPart {
        report,
        facts: facts(report),
        largest: largest(report),
        rows: report.kernels.iter().map(row).collect(),
        imported: graph(&report.imported, "imported"),
        optimized: graph(&report.optimized, "optimized"),
        memory: report.totals.liveness_bound_bytes.map(|_| svg::memory(report)),
        roofline: svg::roofline(report),
    }
}

/// What people ask first.
fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let totals = &report.totals;
    let took = match (totals.measured, &report.measured) {
        (Some(took), Some((unit, machine))) => Some(("time", format!("{} {unit} on {machine}", grouped(took)))),
        _ => totals.time.map(|time| ("predicted time", format!("{} {}", grouped(time), report.time_unit()))),
    };
    let live = totals.liveness_bound_bytes.map(|live| format!(" ({} live at once)", bytes(live as u64)));
    let pools = report.memory.pools.iter().map(|pool| format!(", {} in {}", bytes(pool.bytes as u64), pool.name));
    let working = bytes(totals.arena_bytes as u64) + &live.unwrap_or_default() + &pools.collect::<String>();
    let kept = totals.state_bytes.filter(|&kept| kept > 0);
    let facts = [
        Some(("working memory", working)),
        Some(("constants", bytes(totals.constants_bytes as u64))),
        totals.code_bytes.map(|code| ("code, predicted", bytes(code))),
        took,
        totals.macs.map(|macs| ("multiply-adds", grouped(macs))),
        Some(("kernels", totals.kernels.to_string())),
        Some(("inputs and outputs", bytes(totals.io_bytes as u64))),
        kept.map(|kept| ("kept between runs", bytes(kept as u64))),
    ];
    facts.into_iter().flatten().collect()
}

fn largest(report: &Report) -> Vec<Largest<'_>> {
    let kernels = |amount: &dyn Fn(&KernelReport) -> Option<u64>| {
        report.kernels.iter().map(|kernel| (kernel.node.as_str(), amount(kernel).unwrap_or(0))).collect()
    };
    let buffers = report.memory.buffers.iter();
    let buffers = buffers.map(|buffer| (buffer.values.first().map_or("", String::as_str), buffer.bytes as u64));
    let time = |amount: u64| format!("{} {}", grouped(amount), report.time_unit());
    vec![
        Largest::new("time", kernels(&|kernel| report.time_of(kernel)), &time),
        Largest::new(
            "flash",
            kernels(&|kernel| Some(kernel.code_bytes?.saturating_add(kernel.constant_bytes?))),
            &bytes,
        ),
        Largest::new("memory", buffers.collect(), &bytes),
    ]
}

impl<'a> Largest<'a> {
    fn new(of: &'static str, mut all: Vec<(&'a str, u64)>, text: &dyn Fn(u64) -> String) -> Largest<'a> {
        all.retain(|(_, amount)| *amount > 0);
        let total = all.iter().map(|(_, amount)| *amount as f64).sum::<f64>();
        all.sort_by_key(|(_, amount)| std::cmp::Reverse(*amount));
        all.truncate(LARGEST);
        let entry = |(name, amount)| (name, text(amount), amount as f64 / total);
        Largest { of, entries: all.into_iter().map(entry).collect() }
    }
}
