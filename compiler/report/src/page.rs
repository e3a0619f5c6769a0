//! The page: one HTML file with everything in it, for one model or two beside each other.

use crate::comparison::Comparison;
use crate::report::{KernelReport, Report};
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
    imported: String,
    optimized: String,
    memory: String,
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
    took: u64,
    share: f64,
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
    let total = report.kernels.iter().map(|kernel| report.time_of(kernel)).sum::<u64>().max(1) as f64;
    let row = |kernel| Row { kernel, took: report.time_of(kernel), share: report.time_of(kernel) as f64 / total };
    ModelPart {
        report,
        facts: facts(report),
        largest: largest(report),
        rows: report.kernels.iter().map(row).collect(),
        imported: svg::graph(&report.imported, &format!("imported-{number}")),
        optimized: svg::graph(&report.optimized, &format!("optimized-{number}")),
        memory: svg::memory(report),
        roofline: svg::roofline(report),
    }
}

/// What people ask first.
fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let totals = &report.totals;
    let took = match (totals.measured, &report.measured) {
        (Some(took), Some((unit, machine))) => ("time", format!("{} {unit} on {machine}", grouped(took))),
        _ => ("predicted time", format!("{} {}", grouped(totals.time), report.unit)),
    };
    let bound =
        format!("{} ({} live at once)", bytes(totals.arena_bytes as u64), bytes(totals.liveness_bound_bytes as u64));
    let mut facts = vec![
        ("working memory", bound),
        ("constants", bytes(totals.constants_bytes as u64)),
        ("code, predicted", bytes(totals.code_bytes)),
        took,
        ("multiply-adds", grouped(totals.macs)),
        ("kernels", totals.kernels.to_string()),
        ("inputs and outputs", bytes(totals.io_bytes as u64)),
    ];
    if totals.state_bytes > 0 {
        facts.push(("kept between runs", bytes(totals.state_bytes as u64)));
    }
    facts
}

fn largest(report: &Report) -> Vec<Largest<'_>> {
    let kernels = |amount: &dyn Fn(&KernelReport) -> u64| {
        report.kernels.iter().map(|kernel| (kernel.node.as_str(), amount(kernel))).collect()
    };
    let buffers = report.memory.buffers.iter();
    let buffers = buffers.map(|buffer| (buffer.values.first().map_or("", String::as_str), buffer.bytes as u64));
    let time = |amount: u64| format!("{} {}", grouped(amount), report.time_unit());
    vec![
        Largest::new("time", kernels(&|kernel| report.time_of(kernel)), &time),
        Largest::new("flash", kernels(&|kernel| kernel.code_bytes + kernel.constant_bytes), &bytes),
        Largest::new("memory", buffers.collect(), &bytes),
    ]
}

impl<'a> Largest<'a> {
    fn new(of: &'static str, mut all: Vec<(&'a str, u64)>, text: &dyn Fn(u64) -> String) -> Largest<'a> {
        all.retain(|(_, amount)| *amount > 0);
        let total = all.iter().map(|(_, amount)| *amount).sum::<u64>().max(1) as f64;
        all.sort_by_key(|(_, amount)| std::cmp::Reverse(*amount));
        all.truncate(LARGEST);
        let entry = |(name, amount)| (name, text(amount), amount as f64 / total);
        Largest { of, entries: all.into_iter().map(entry).collect() }
    }
}
