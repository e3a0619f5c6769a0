//! [`Report`]: what is known of a compiled model, as data.

use crate::diagram::Diagram;
use mlc_codegen::price::Ceilings;
use mlc_codegen::{KernelSummary, MemoryPlan, Module, Target};
use mlc_ir::{DType, Graph};
use mlc_passes::OptimizeReport;
use mlc_passes::report::StageReport;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of a report's form as JSON. A field that changes its meaning or goes makes it a new one.
pub const VERSION: u32 = 1;

/// What a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Name of the model, for people.
    pub name: &'a str,
    /// Format of its file.
    pub format: &'a str,
    /// The graph as it was imported.
    pub imported: &'a Graph,
    /// The graph as it was optimised.
    pub optimized: &'a Graph,
    /// The code.
    pub module: &'a Module,
    /// What the optimiser did, with explanations.
    pub rules: &'a OptimizeReport,
    /// The machine.
    pub target: &'a Target,
    /// What was measured, if anything was.
    pub measured: Option<&'a Measured>,
}

/// What kernels took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// What was counted: `ns` or `instructions`.
    pub unit: &'static str,
    /// Where: this machine or an emulated board.
    pub machine: String,
    /// For each kernel, in their order; loops without their kernels.
    pub kernels: Vec<u64>,
}

/// What a model became. What an archive doesn't say is `None`, or empty.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u32,
    /// Name of the model.
    pub model: String,
    /// Format of its file.
    pub format: String,
    /// The machine that the code is for.
    pub target: String,
    /// What the code was made for: `speed`, `size`, `ram` or `balanced`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// Unit of predicted times: `cycles` or `instructions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Sums over the whole model.
    pub totals: Totals,
    /// Inputs and outputs: name and type.
    pub inputs: Vec<(String, String)>,
    /// See [`Report::inputs`].
    pub outputs: Vec<(String, String)>,
    /// The model as it was imported; archives don't have it.
    pub imported: Diagram,
    /// The model as it was optimised.
    pub optimized: Diagram,
    /// The kernels in the order in which they run.
    pub kernels: Vec<KernelReport>,
    /// What was measured: the unit, and where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<(String, String)>,
    /// Where values live.
    pub memory: MemoryPlan,
    /// What the machine can do at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceilings: Option<Ceilings>,
    /// The stages of the optimiser; archives don't tell of them.
    pub stages: Vec<StageReport>,
}

/// Sums over a whole model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Kernels, without loops.
    pub kernels: usize,
    /// Multiply-accumulate operations of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub macs: Option<u64>,
    /// What a run is predicted to take, in [`Report::unit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// What a run took, if it was measured: the sum of its kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<u64>,
    /// Bytes of memory beside constants, inputs and outputs.
    pub arena_bytes: usize,
    /// Bytes of what is live at once at most: without kernels that overlap their operands the arena can't be smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness_bound_bytes: Option<usize>,
    /// Bytes of values that are kept between runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_bytes: Option<usize>,
    /// Bytes of inputs and outputs, which are the caller's.
    pub io_bytes: usize,
    /// Bytes of constants.
    pub constants_bytes: usize,
    /// Predicted bytes of the kernels' code; kernels that do the same have it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<u64>,
}

/// A kernel of a [`Report`].
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KernelReport {
    /// C symbol.
    pub function: String,
    /// The node that it computes.
    pub node: String,
    /// What it computes, such as `convolution with epilogue`.
    pub operator: String,
    /// The source operators that it stands for.
    pub origins: Vec<String>,
    /// How many of the kernels behind it are inside of it; only loops and stripes have any.
    pub inside: usize,
    /// The schedule that it took, if there are schedules of its operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// Schedules that it could have taken, with their predicted times.
    pub others: Vec<(String, u64)>,
    /// Multiply-accumulate operations in all turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub macs: Option<u64>,
    /// Predicted time in all turns, in [`Report::unit`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// Measured time in all turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<u64>,
    /// Bytes of its operands and results, constants included: what has to be moved at least, in all turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_bytes: Option<u64>,
    /// Predicted bytes of its code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_bytes: Option<u64>,
    /// Bytes of its constants as they are packed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constant_bytes: Option<u64>,
    /// Bytes of memory that only it uses.
    pub workspace_bytes: u64,
    /// Its C.
    pub source: String,
}

impl Report {
    /// Gathers what is known of a compiled model.
    pub fn new(subject: &Subject<'_>) -> Report {
        let Subject { module, target, .. } = subject;
        let kernels = kernels(subject);
        let mut optimized = Diagram::of(subject.optimized);
        let mut imported = Diagram::of(subject.imported);
        link(&mut optimized, &kernels);
        for node in &mut optimized.nodes {
            let rules = subject.rules.explanations.iter().filter(|explanation| explanation.value == node.name);
            node.rules = rules.flat_map(|own| own.steps.iter().map(|step| step.rule.to_owned())).collect();
        }
        for node in &mut imported.nodes {
            node.kernels = numbers(&kernels, |kernel| kernel.origins.iter().any(|own| node.origins.contains(own)));
        }
        let port = |port: &mlc_codegen::Port| (port.name.clone(), port.ty.to_string());
        Report {
            version: VERSION,
            model: subject.name.to_owned(),
            format: subject.format.to_owned(),
            target: target.name.clone(),
            objective: Some(target.objective.name().to_owned()),
            unit: Some(target.machine.unit().to_owned()),
            totals: totals(module, &kernels, subject.measured),
            inputs: module.inputs.iter().map(port).collect(),
            outputs: module.outputs.iter().map(port).collect(),
            imported,
            optimized,
            kernels,
            measured: subject.measured.map(|measured| (measured.unit.to_owned(), measured.machine.clone())),
            memory: module.plan.clone(),
            ceilings: Some(ceilings(target, subject.optimized)),
            stages: subject.rules.stages.clone(),
        }
    }

    /// What a kernel took, as far as it is known: measured, else predicted.
    pub fn time_of(&self, kernel: &KernelReport) -> Option<u64> {
        kernel.measured.or(kernel.time)
    }

    /// The unit of [`Report::time_of`].
    pub fn time_unit(&self) -> &str {
        self.measured.as_ref().map(|(unit, _)| unit).or(self.unit.as_ref()).map_or("", String::as_str)
    }

    /// As JSON text.
    pub fn json(&self) -> String {
        // Structures of strings, numbers and lists: writing them to memory can't fail.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// Says of each node of a diagram which kernels compute it.
pub fn link(diagram: &mut Diagram, kernels: &[KernelReport]) {
    for node in &mut diagram.nodes {
        node.kernels = numbers(kernels, |kernel| kernel.node == node.name);
    }
}

/// Numbers of the kernels that something holds for.
fn numbers(kernels: &[KernelReport], holds: impl Fn(&KernelReport) -> bool) -> Vec<usize> {
    kernels.iter().enumerate().filter(|(_, kernel)| holds(kernel)).map(|(number, _)| number).collect()
}

/// The sum of what is known of kernels; `None` where nothing is known of any.
pub fn sum<'a>(
    kernels: impl IntoIterator<Item = &'a KernelReport>,
    of: impl Fn(&KernelReport) -> Option<u64>,
) -> Option<u64> {
    kernels.into_iter().filter_map(of).reduce(u64::saturating_add)
}

/// What a machine can do at most with the products that most of a graph's multiply-adds are.
pub fn ceilings(target: &Target, graph: &Graph) -> Ceilings {
    Ceilings::of(target, widest_products(graph))
}

/// The type of the products that most of a graph's multiply-adds are.
fn widest_products(graph: &Graph) -> DType {
    let mut macs: BTreeMap<&'static str, (u64, DType)> = BTreeMap::new();
    for id in graph.node_ids() {
        let operands = graph.operand_types(id);
        if let Some(first) = operands.first() {
            let own = macs.entry(first.dtype.name()).or_insert((0, first.dtype));
            own.0 = own.0.saturating_add(graph.node(id).op.work(&operands, &graph.node(id).results).macs);
        }
    }
    macs.into_values().max_by_key(|(count, _)| *count).map_or(DType::F32, |(_, dtype)| dtype)
}

fn kernels(subject: &Subject<'_>) -> Vec<KernelReport> {
    let module = subject.module;
    let report = |(number, kernel): (usize, &KernelSummary)| {
        let taken = kernel.choice.taken().map(|offer| offer.schedule.to_string());
        let offers = kernel.choice.offers.iter().enumerate();
        let others = offers.filter(|(number, _)| *number != kernel.choice.taken);
        KernelReport {
            function: kernel.function.clone(),
            node: kernel.node.clone(),
            operator: kernel.operator.clone(),
            origins: kernel.origins.clone(),
            inside: kernel.inside,
            schedule: taken,
            others: others.map(|(_, offer)| (offer.schedule.to_string(), offer.price.time)).collect(),
            macs: Some(kernel.macs),
            time: Some(kernel.price.time),
            measured: subject.measured.and_then(|measured| measured.kernels.get(number).copied()),
            moved_bytes: Some(kernel.bytes),
            code_bytes: Some(kernel.price.code_bytes),
            constant_bytes: Some(kernel.price.constant_bytes),
            workspace_bytes: kernel.workspace_bytes,
            source: module.function(&kernel.function).unwrap_or_default().to_owned(),
        }
    };
    module.kernels.iter().enumerate().map(report).collect()
}

fn totals(module: &Module, kernels: &[KernelReport], measured: Option<&Measured>) -> Totals {
    Totals {
        kernels: kernels.iter().filter(|kernel| kernel.inside == 0).count(),
        // Loops have those of the kernels inside of them.
        macs: Some(sum(kernels.iter().filter(|kernel| kernel.inside == 0), |kernel| kernel.macs).unwrap_or(0)),
        time: Some(sum(kernels, |kernel| kernel.time).unwrap_or(0)),
        measured: measured.map(|measured| measured.kernels.iter().sum()),
        arena_bytes: module.workspace_bytes(),
        liveness_bound_bytes: Some(module.plan.liveness_bound_bytes),
        state_bytes: Some(module.state_bytes()),
        io_bytes: module.io_bytes(),
        constants_bytes: module.constants_bytes(),
        code_bytes: Some(module.code_bytes()),
    }
}
