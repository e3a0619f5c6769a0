//! `mlc inspect`

mod archive;

use super::arguments::Inspect;
use super::console::Console;
use super::model::Model;
use super::schedules::schedules_text;
use super::subject::{in_model, load_options, refuse_changes, target};
use super::words::bytes;
use crate::files;
use crate::format::Format;
use crate::pipeline::frontends::{self, Contents, Memory, ModelFile};
use crate::pipeline::{self, CompileOptions, Failure, Loaded};
use mlc_ir::{DType, Graph, Objective, Quantization, TensorType};
use mlc_report::{Diagram, dot};
use serde::Serialize;
use std::collections::BTreeMap;

/// An input or output.
#[derive(Serialize)]
struct PortEntry {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
    /// What its integers stand for, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    quantization: Option<Quantization>,
}

impl PortEntry {
    fn inputs(graph: &Graph) -> Vec<PortEntry> {
        let ports = graph.inputs().iter().map(|&id| (&*graph.node(id).name, graph.ty(id.into())));
        PortEntry::all(ports, &graph.quantization.inputs)
    }

    fn outputs(graph: &Graph) -> Vec<PortEntry> {
        let ports = graph.outputs().iter().map(|output| (&*output.name, graph.ty(output.value)));
        PortEntry::all(ports, &graph.quantization.outputs)
    }

    fn all<'a>(
        ports: impl Iterator<Item = (&'a str, &'a TensorType)>,
        known: &BTreeMap<usize, Quantization>,
    ) -> Vec<PortEntry> {
        let entry = |(number, (name, ty)): (usize, (&str, &TensorType))| PortEntry {
            name: name.to_owned(),
            dtype: ty.dtype.name(),
            shape: ty.shape.to_vec(),
            quantization: known.get(&number).copied(),
        };
        ports.enumerate().map(entry).collect()
    }
}

/// What `mlc inspect --json` prints of a model.
#[derive(Serialize)]
struct ModelReport {
    format: String,
    #[serde(flatten)]
    contents: Contents,
    /// What only a supported model has.
    #[serde(flatten)]
    graph: Option<GraphReport>,
}

#[derive(Serialize)]
struct GraphReport {
    inputs: Vec<PortEntry>,
    outputs: Vec<PortEntry>,
    macs: u64,
}

pub(super) fn inspect(arguments: &Inspect, console: &Console) -> Result<(), Failure> {
    let path = &arguments.model.path;
    let file = files::read(path)?;
    let format = pipeline::detect(path, &file, arguments.model.format)?;
    if format == Format::Mlf && arguments.model.from.is_none() {
        refuse_changes(&arguments.model)?;
        return archive::inspect(path, &file, arguments.json, console);
    }
    if arguments.dot {
        let loaded = load(&arguments.model)?;
        console.report(&loaded.warnings, &loaded.sources);
        console.print(&dot::dot(&loaded.graph.name, &Diagram::of(&loaded.graph)));
        return Ok(());
    }
    // What the file says is shown even when the model can't be compiled; why it can't is reported after that.
    let options = load_options(&arguments.model, "default", Vec::new());
    let told = frontends::find(format).and_then(|frontend| frontend.contents);
    let contents = told.map(|contents| contents(&ModelFile { path, bytes: &file, options: &options })).transpose()?;
    let loaded = load(&arguments.model);
    let contents = contents.or_else(|| loaded.as_ref().ok().map(|loaded| Contents::of_graph(&loaded.graph)));
    if let Some(contents) = contents {
        let graph = loaded.as_ref().ok().map(|loaded| graph_report(&loaded.graph));
        let report = ModelReport { format: format.to_string(), contents, graph };
        if arguments.json {
            console.print_json(&report);
        } else {
            console.print(&model_text(&report));
        }
    }
    let loaded = loaded?;
    console.report(&loaded.warnings, &loaded.sources);
    if arguments.schedules {
        let target = target(arguments.target.as_deref().unwrap_or("generic"))?;
        let objective = arguments.optimize.map_or(target.objective, Objective::from);
        let target = target.with_objective(objective);
        let weights_type = arguments.weights_type.map(DType::from);
        let options = CompileOptions { target, explain: true, weights_type, ..CompileOptions::default() };
        let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {});
        let compiled = compiled.map_err(|diagnostics| in_model(diagnostics, &arguments.model, loaded.sources))?;
        console.print(&schedules_text(&compiled.module, &options.target));
    }
    Ok(())
}

/// The model with the interface that the options say.
fn load(model: &Model) -> Result<Loaded, Failure> {
    let mut loaded = pipeline::load(&model.path, &load_options(model, "default", Vec::new()))?;
    model.interface.apply(&mut loaded)?;
    Ok(loaded)
}

fn graph_report(graph: &Graph) -> GraphReport {
    let macs = graph.node_ids().map(|id| {
        let node = graph.node(id);
        node.op.work(&graph.operand_types(id), &node.results).macs
    });
    GraphReport {
        inputs: PortEntry::inputs(graph),
        outputs: PortEntry::outputs(graph),
        macs: macs.fold(0, u64::saturating_add),
    }
}

fn model_text(report: &ModelReport) -> String {
    let mut text = format!("format:  {}\n", report.format);
    for (name, value) in &report.contents.facts {
        text += &format!("{:<9}{value}\n", format!("{name}:"));
    }
    if let Some(graph) = &report.graph {
        text += &ports_text("inputs", &graph.inputs);
        text += &ports_text("outputs", &graph.outputs);
    }
    text += &memory_text("memory that gets its content from outside", &report.contents.external);
    text += &memory_text("memory that is left over", &report.contents.left_over);
    text += &format!("weights: {} ({})\n", report.contents.weights, bytes(report.contents.weight_bytes));
    if let Some(graph) = &report.graph {
        text += &format!("MACs:    {}\n", graph.macs);
    }
    text += "operators:\n";
    for (kind, count) in &report.contents.operators {
        text += &format!("  {count:>5}  {kind}\n");
    }
    text
}

fn ports_text(title: &str, ports: &[PortEntry]) -> String {
    let mut text = format!("{title}:\n");
    for port in ports {
        let meaning = port.quantization.map_or(String::new(), |Quantization { scale, zero_point }| {
            let sign = if zero_point < 0 { '+' } else { '-' };
            format!(", {scale} * (integer {sign} {})", zero_point.unsigned_abs())
        });
        text += &format!("  {}: {}{:?}{meaning}\n", port.name, port.dtype, port.shape);
    }
    text
}

fn memory_text(title: &str, memory: &[Memory]) -> String {
    let mut text = if memory.is_empty() { String::new() } else { format!("{title}:\n") };
    for Memory { name, place, r#type, bytes: size, updated } in memory {
        let updated = if *updated { ", updated" } else { "" };
        text += &format!("  {name}: {} ({}, {place}{updated})\n", r#type, bytes(*size));
    }
    text
}
