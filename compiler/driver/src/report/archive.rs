//! Reports of archives: what those of mlc say of themselves, and what can be said of others.

use crate::bundle::{Bundle, Call, Port};
use crate::format::Format;
use crate::kernel::Kernel;
use mlc_archive::{Graph as Description, Node};
use mlc_ir::text::{self, Placeholders};
use mlc_ir::{Diagnostic, Graph, Severity};
use mlc_report::report::{VERSION, ceilings, link, sum};
use mlc_report::{Diagram, DiagramEdge, DiagramNode, KernelReport, Measured, Report, Totals};
use std::collections::BTreeMap;

/// Gathers what an archive says. Of archives of mlc that is what the compiler knew of the model, but for the model as it was imported, the
/// optimiser's rules and the schedules that weren't taken; of others the memory, the functions, their C, and the graph where the runtime's
/// graph executor has one. What can't be read is left out and told of by warnings.
///
/// # Errors
/// `MLC0202` when some of the code isn't C, and when the graph of the runtime's graph executor is damaged.
pub fn report_archive(
    name: &str,
    bundle: &Bundle,
    measured: Option<&Measured>,
) -> Result<(Report, Vec<Diagnostic>), Diagnostic> {
    let (graph, faults) = match graph(bundle) {
        Ok(graph) => (graph, Vec::new()),
        Err(faults) => (None, faults),
    };
    let warnings = faults.into_iter().map(|fault| Diagnostic { severity: Severity::Warning, ..fault }).collect();
    let description = match &bundle.call {
        Call::Graph { graph, .. } => Some(Description::read(bundle.archive(), graph)?),
        Call::CInterface(_) | Call::Packed => None,
    };
    let mut kernels = kernels(bundle, description.as_ref())?;
    for (number, kernel) in kernels.iter_mut().enumerate() {
        kernel.measured = measured.and_then(|measured| measured.kernels.get(number).copied());
    }
    let mut optimized = match (&graph, &description) {
        (Some(graph), _) => Diagram::of(graph),
        (None, Some(description)) => executed(description, bundle),
        (None, None) => Diagram::default(),
    };
    link(&mut optimized, &kernels);
    let origin = bundle.origin.as_ref();
    let target = bundle.target();
    let port = |port: &Port| (port.name.clone(), port.ty.to_string());
    let report = Report {
        version: VERSION,
        model: name.to_owned(),
        format: format!("{}, version {}", Format::Mlf, bundle.metadata.version),
        target: origin.map_or_else(|| bundle.model.targets.join("; "), |origin| origin.target.clone()),
        objective: origin.and_then(|origin| origin.objective).map(|objective| objective.name().to_owned()),
        unit: origin.and_then(|origin| origin.predicted.as_ref()).map(|predicted| predicted.unit.clone()),
        totals: totals(bundle, &kernels, measured),
        inputs: bundle.inputs.iter().map(port).collect(),
        outputs: bundle.outputs.iter().map(port).collect(),
        imported: Diagram::default(),
        optimized,
        kernels,
        measured: measured.map(|measured| (measured.unit.to_owned(), measured.machine.clone())),
        memory: origin.and_then(|origin| origin.plan.clone()).unwrap_or_default(),
        ceilings: target.as_ref().zip(graph.as_ref()).map(|(target, graph)| ceilings(target, graph)),
        stages: Vec::new(),
    };
    Ok((report, warnings))
}

/// The optimised graph of an archive of mlc, without its constants' values.
///
/// # Errors
/// When the graph's text is damaged.
fn graph(bundle: &Bundle) -> Result<Option<Graph>, Vec<Diagnostic>> {
    let path = format!("src/{}.mlc", bundle.model.name);
    let archive = bundle.archive();
    if archive.get(&path).is_none() {
        return Ok(None);
    }
    let text = archive.text(&path).map_err(|fault| vec![fault])?;
    text::parse(text, &Placeholders::default()).map(Some)
}

/// What the runtime's graph executor runs.
fn executed(description: &Description, bundle: &Bundle) -> Diagram {
    let mut diagram = Diagram::default();
    let is_parameter = |node: &Node| node.call.is_none() && bundle.inputs.iter().all(|port| port.name != node.name);
    let mut places: Vec<Option<usize>> = vec![None; description.entries.len()];
    let ty = |entry: usize| description.entries[entry].ty.to_string();
    for node in &description.nodes {
        if is_parameter(node) {
            continue;
        }
        let number = diagram.nodes.len();
        let edge = |&entry: &usize| Some(DiagramEdge { from: places[entry]?, to: number, r#type: ty(entry) });
        diagram.edges.extend(node.inputs.iter().filter_map(edge));
        let constants = node.inputs.iter().filter(|&&entry| places[entry].is_none());
        let results = node.first..node.first + node.results;
        let (operator, kind) = match &node.call {
            None => ("input", "source"),
            Some(call) if call.is_view() => ("reshape", "view"),
            Some(_) => ("function", "anchor"),
        };
        diagram.nodes.push(DiagramNode {
            name: node.name.clone(),
            operator: operator.to_owned(),
            kind,
            results: results.clone().map(ty).collect(),
            text: node.call.as_ref().map_or(String::new(), |call| call.function.clone()),
            constants: constants.map(|&entry| ty(entry)).collect(),
            ..DiagramNode::default()
        });
        places[results].fill(Some(number));
    }
    for (port, &head) in bundle.outputs.iter().zip(&description.heads) {
        let number = diagram.nodes.len();
        diagram.edges.extend(places[head].map(|from| DiagramEdge { from, to: number, r#type: ty(head) }));
        diagram.nodes.push(DiagramNode::output(&port.name, ty(head)));
    }
    diagram
}

fn totals(bundle: &Bundle, kernels: &[KernelReport], measured: Option<&Measured>) -> Totals {
    let memory = &bundle.model.memory;
    let main = |of: fn(&mlc_archive::MainMemory) -> u64| {
        let bytes = memory.main.iter().map(of).fold(0, u64::saturating_add);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    };
    let ports = bundle.inputs.iter().chain(&bundle.outputs);
    let origin = bundle.origin.as_ref();
    // Of an input that is given row by row, one row is the caller's at a time.
    let fed = origin.and_then(|origin| bundle.inputs.get(origin.feed?));
    let saved = fed.map_or(0, |port| port.ty.bytes() - port.ty.bytes() / port.ty.shape[1].max(1));
    Totals {
        kernels: kernels.iter().filter(|kernel| kernel.inside == 0).count(),
        macs: sum(kernels.iter().filter(|kernel| kernel.inside == 0), |kernel| kernel.macs),
        time: sum(kernels, |kernel| kernel.time),
        measured: measured.map(|measured| measured.kernels.iter().copied().fold(0, u64::saturating_add)),
        arena_bytes: main(|main| main.workspace_size_bytes),
        liveness_bound_bytes: origin.and_then(|origin| origin.plan.as_ref()).map(|plan| plan.liveness_bound_bytes),
        state_bytes: origin.and_then(|origin| origin.state_bytes),
        io_bytes: ports.map(|port| port.ty.bytes()).fold(0, usize::saturating_add) - saved,
        constants_bytes: main(|main| main.constants_size_bytes),
        code_bytes: origin.and_then(|origin| origin.predicted.as_ref()).map(|predicted| predicted.code_bytes),
    }
}

/// The kernels of an archive, or the functions that it has in their place, with their C.
fn kernels(bundle: &Bundle, description: Option<&Description>) -> Result<Vec<KernelReport>, Diagnostic> {
    let archive = bundle.archive();
    let texts = bundle.sources()?.into_iter().filter_map(|path| archive.text(path).ok()).collect::<Vec<_>>();
    let source = |symbol: &str| texts.iter().find_map(|text| mlc_codegen::function(text, symbol)).unwrap_or_default();
    if let Some(origin) = &bundle.origin {
        return Ok(origin.kernels.iter().map(|kernel| own_kernel(kernel, source(&kernel.function))).collect());
    }
    let operators = &bundle.model.memory.operators;
    let workspaces: BTreeMap<&str, u64> =
        operators.iter().map(|operator| (operator.function_name.as_str(), operator.workspace_size_bytes)).collect();
    let other = |node: &str, symbol: &str| KernelReport {
        function: symbol.to_owned(),
        node: node.to_owned(),
        operator: "function".to_owned(),
        workspace_bytes: workspaces.get(symbol).copied().unwrap_or(0),
        source: source(symbol).to_owned(),
        ..KernelReport::default()
    };
    let prefix = format!("tvmgen_{}_", bundle.model.name);
    Ok(match description {
        Some(description) => {
            let called = |node: &Node| {
                node.call.as_ref().filter(|call| !call.is_view()).map(|call| other(&node.name, &call.function))
            };
            description.nodes.iter().filter_map(called).collect()
        }
        None => {
            let symbols = operators.iter().map(|operator| operator.function_name.as_str());
            symbols.map(|symbol| other(symbol.strip_prefix(&prefix).unwrap_or(symbol), symbol)).collect()
        }
    })
}

fn own_kernel(kernel: &Kernel, source: &str) -> KernelReport {
    let predicted = kernel.predicted;
    KernelReport {
        function: kernel.function.clone(),
        node: kernel.node.clone(),
        operator: kernel.operator.clone(),
        origins: kernel.origins.clone(),
        inside: kernel.inside,
        schedule: kernel.schedule.clone(),
        macs: Some(kernel.macs),
        time: predicted.map(|predicted| predicted.time),
        moved_bytes: Some(kernel.bytes),
        code_bytes: predicted.map(|predicted| predicted.code_bytes),
        constant_bytes: predicted.map(|predicted| predicted.constant_bytes),
        workspace_bytes: kernel.workspace_bytes,
        source: source.to_owned(),
        ..KernelReport::default()
    }
}
