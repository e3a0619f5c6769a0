//! `mlc inspect` of archives.

use crate::bundle::{Bundle, Call, Port};
use crate::cli::console::Console;
use crate::cli::words::bytes;
use crate::format::Format;
use crate::pipeline::Failure;
use crate::render::Sources;
use bytes::Bytes;
use indexmap::IndexMap;
use mlc_archive::{Archive, Executor, Graph, MainMemory, Metadata, Model, OperatorMemory, Storage, Style};
use mlc_ir::Diagnostic;
use serde::Serialize;
use std::path::Path;

/// What `mlc inspect --json` prints of an archive.
#[derive(Serialize)]
struct Report<'a> {
    format: String,
    version: usize,
    models: Vec<ModelReport<'a>>,
    /// Sizes by path.
    files: IndexMap<&'a str, usize>,
}

#[derive(Serialize)]
struct ModelReport<'a> {
    model_name: &'a str,
    style: Style,
    executors: &'a [Executor],
    target: &'a [String],
    export_datetime: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    external_dependencies: &'a [String],
    /// `c`, `packed` or `graph`; nothing where the archive says too little to call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    interface: Option<&'static str>,
    inputs: Vec<PortEntry>,
    outputs: Vec<PortEntry>,
    memory: &'a [MainMemory],
    /// Blocks of the graph executor, as they follow from the graph.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    storage: Vec<Storage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pools: Vec<Pool>,
    operator_functions: &'a [OperatorMemory],
    /// What mlc says of the kernels that it generated.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernels: Option<usize>,
}

#[derive(Serialize)]
struct PortEntry {
    name: String,
    dtype: &'static str,
    /// Nothing where the archive says the size only.
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<usize>>,
    size_bytes: usize,
}

/// Memory that the caller provides.
#[derive(Serialize)]
struct Pool {
    name: String,
    size_bytes: Option<u64>,
}

pub(super) fn inspect(path: &Path, file: &Bytes, json: bool, console: &Console) -> Result<(), Failure> {
    let name = path.display().to_string();
    let named = |error: Diagnostic| error.in_file(&name);
    let archive = Archive::read(file).map_err(named)?;
    let metadata = Metadata::read(&archive).map_err(named)?;
    let mut warnings = Vec::new();
    let models =
        metadata.models.iter().map(|model| model_report(file, &archive, &metadata, model, &mut warnings)).collect();
    let report = Report {
        format: Format::Mlf.to_string(),
        version: metadata.version,
        models,
        files: archive.files().map(|(path, contents)| (path, contents.len())).collect(),
    };
    if json {
        console.print_json(&report);
    } else {
        console.print(&text(&report));
    }
    let warnings: Vec<Diagnostic> = warnings.into_iter().map(named).collect();
    console.report(&warnings, &Sources::new());
    Ok(())
}

fn model_report<'a>(
    file: &Bytes,
    archive: &Archive,
    metadata: &Metadata,
    model: &'a Model,
    warnings: &mut Vec<Diagnostic>,
) -> ModelReport<'a> {
    let mut report = ModelReport {
        model_name: &model.name,
        style: model.style,
        executors: &model.executors,
        target: &model.targets,
        export_datetime: &model.export_datetime,
        external_dependencies: &model.dependencies,
        interface: None,
        inputs: Vec::new(),
        outputs: Vec::new(),
        memory: &model.memory.main,
        storage: Vec::new(),
        pools: Vec::new(),
        operator_functions: &model.memory.operators,
        kernels: None,
    };
    if model.style == Style::Operator {
        return report;
    }
    let mut warn = |mut fault: Diagnostic| {
        fault.severity = mlc_ir::Severity::Warning;
        warnings.push(fault);
    };
    if model.executors.contains(&Executor::Graph) {
        match Graph::read(archive, &metadata.graph_path(&model.name)) {
            Ok(graph) => {
                report.storage = mlc_archive::storage(&graph);
                mlc_archive::check_storage(&model.memory.sids, &report.storage).into_iter().for_each(&mut warn);
            }
            Err(fault) => warn(fault),
        }
    }
    match Bundle::parse_model(file, &model.name) {
        Ok(bundle) => {
            report.interface = Some(match &bundle.call {
                Call::CInterface(_) => "c",
                Call::Packed => "packed",
                Call::Graph { .. } => "graph",
            });
            if let Call::CInterface(header) = &bundle.call {
                let pool = |name: &String| Pool { name: name.clone(), size_bytes: header.pool_bytes(name) };
                report.pools = header.pools.iter().map(pool).collect();
            }
            report.inputs = bundle.inputs.iter().map(PortEntry::of).collect();
            report.outputs = bundle.outputs.iter().map(PortEntry::of).collect();
            report.kernels = bundle.origin.map(|origin| origin.kernels.len());
        }
        Err(fault) => warn(fault),
    }
    report
}

impl PortEntry {
    fn of(port: &Port) -> PortEntry {
        PortEntry {
            name: port.name.clone(),
            dtype: port.ty.dtype.name(),
            shape: port.shape_known.then(|| port.ty.shape.to_vec()),
            size_bytes: port.ty.bytes(),
        }
    }

    fn text(&self) -> String {
        let Self { name, dtype, shape, size_bytes } = self;
        match shape {
            Some(shape) => format!("  {name}: {dtype}{shape:?}\n"),
            None => format!("  {name}: {dtype}, {size_bytes} bytes\n"),
        }
    }
}

fn text(report: &Report) -> String {
    let mut text = format!("format:  {}, version {}\n", report.format, report.version);
    for model in &report.models {
        text += &model_text(model);
    }
    text += "files:\n";
    for (path, length) in &report.files {
        text += &format!("  {length:>9}  {path}\n");
    }
    text
}

fn model_text(model: &ModelReport) -> String {
    let executor = |executor: &Executor| match executor {
        Executor::Aot => "aot",
        Executor::Graph => "graph",
    };
    let executors: Vec<&str> = model.executors.iter().map(executor).collect();
    let mut text = format!("model:   {}\n", model.model_name);
    if model.style == Style::Operator {
        text += "style:   single operators\n";
    } else {
        let interface = model.interface.map_or(String::new(), |name| format!(", interface {name}"));
        text += &format!("runs by: {}{interface}\n", executors.join(", "));
    }
    text += &format!("target:  {}\n", model.target.join("; ").trim_end());
    if !model.export_datetime.is_empty() {
        text += &format!("written: {}\n", model.export_datetime);
    }
    for (title, ports) in [("inputs", &model.inputs), ("outputs", &model.outputs)] {
        text += &format!("{title}:\n");
        text.extend(ports.iter().map(PortEntry::text));
    }
    if let Some(kernels) = model.kernels {
        text += &format!("kernels: {kernels}\n");
    }
    for main in model.memory {
        text += &format!(
            "memory:  {} of constants, {} of working memory, {} of inputs and outputs\n",
            bytes(main.constants_size_bytes),
            bytes(main.workspace_size_bytes),
            bytes(main.io_size_bytes),
        );
    }
    for pool in &model.pools {
        let size = pool.size_bytes.map_or("of unknown size".into(), bytes);
        text += &format!("pool:    {} ({size}), given by the caller\n", pool.name);
    }
    if !model.storage.is_empty() {
        text += "blocks of the graph executor:\n";
        for Storage { storage_id, size_bytes, input_binding, holds_result } in &model.storage {
            let holds = input_binding.as_ref().map_or(String::new(), |name| format!("  {name}"));
            let result = if *holds_result { "  (result)" } else { "" };
            text += &format!("  {size_bytes:>9}  block {storage_id}{holds}{result}\n");
        }
    }
    if !model.operator_functions.is_empty() {
        text += "working memory of operator functions:\n";
        for OperatorMemory { function_name, workspace_size_bytes } in model.operator_functions {
            text += &format!("  {workspace_size_bytes:>9}  {function_name}\n");
        }
    }
    text
}
