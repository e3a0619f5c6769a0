//! `mlc inspect`

mod archive;

use super::arguments::Inspect;
use super::console::Console;
use super::subject::load_options;
use super::words::bytes;
use crate::files;
use crate::format::Format;
use crate::pipeline::{self, Failure, RawPnnx};
use mlc_ir::{Graph, Op, TensorType};
use serde::Serialize;
use std::collections::BTreeMap;

/// An input or output.
#[derive(Serialize)]
struct PortEntry {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
}

impl PortEntry {
    fn new(name: &str, ty: &TensorType) -> PortEntry {
        PortEntry { name: name.to_owned(), dtype: ty.dtype.name(), shape: ty.shape.to_vec() }
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

/// What can be counted without knowing what the operators mean.
#[derive(Default, Serialize)]
struct Contents {
    /// Number of operators of each kind, in the file's own words.
    operators: BTreeMap<String, usize>,
    weights: usize,
    weight_bytes: u64,
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
        return archive::inspect(path, &file, arguments.json, console);
    }
    // What the file says is shown even when the model can't be compiled; why it can't is reported after that.
    let contents = match format {
        Format::Pnnx => {
            let RawPnnx { model, .. } = pipeline::read_pnnx(path, &file, arguments.model.weights.as_deref())?;
            Some(Contents::of_pnnx(&model))
        }
        Format::Onnx => Some(Contents::of_onnx(&pipeline::read_onnx(path, &file)?)),
        _ => None,
    };
    let options = load_options(&arguments.model, "default");
    let loaded = pipeline::load(path, &options);
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
    Ok(())
}

impl Contents {
    fn of_pnnx(model: &mlc_pnnx::Model) -> Contents {
        let mut contents = Contents::default();
        for operator in &model.operators {
            *contents.operators.entry(operator.kind.clone()).or_default() += 1;
            for attribute in operator.attributes.values() {
                contents.weights += 1;
                contents.weight_bytes += attribute.byte_size().unwrap_or_default();
            }
        }
        contents
    }

    fn of_onnx(model: &mlc_onnx::Model) -> Contents {
        let (weights, weight_bytes) = model.weights();
        Contents { operators: model.operators(), weights, weight_bytes }
    }

    fn of_graph(graph: &Graph) -> Contents {
        let mut contents = Contents::default();
        contents.add_graph(graph);
        contents
    }

    /// Counts a graph and the bodies of its loops.
    fn add_graph(&mut self, graph: &Graph) {
        for id in graph.node_ids() {
            let op = &graph.node(id).op;
            match op {
                Op::Input(_) => continue,
                Op::Constant(constant) => {
                    self.weights += 1;
                    self.weight_bytes += constant.value.ty().bytes() as u64;
                    continue;
                }
                Op::Loop(op) => self.add_graph(&op.body),
                _ => {}
            }
            *self.operators.entry(op.name().to_owned()).or_default() += 1;
        }
    }
}

fn graph_report(graph: &Graph) -> GraphReport {
    let macs = graph.node_ids().map(|id| {
        let node = graph.node(id);
        node.op.work(&graph.operand_types(id), &node.results).macs
    });
    GraphReport {
        inputs: graph.inputs().iter().map(|&id| PortEntry::new(&graph.node(id).name, graph.ty(id.into()))).collect(),
        outputs: graph.outputs().iter().map(|output| PortEntry::new(&output.name, graph.ty(output.value))).collect(),
        macs: macs.fold(0, u64::saturating_add),
    }
}

fn model_text(report: &ModelReport) -> String {
    let mut text = format!("format:  {}\n", report.format);
    if let Some(graph) = &report.graph {
        text += &ports_text("inputs", &graph.inputs);
        text += &ports_text("outputs", &graph.outputs);
    }
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
        text += &format!("  {}: {}{:?}\n", port.name, port.dtype, port.shape);
    }
    text
}
