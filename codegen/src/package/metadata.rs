//! `metadata.json`. Every figure comes from the module.

use super::input::{FormatVersion, Package};
use crate::graph::ExecutorGraph;
use crate::module::{FedRows, KernelSummary, Level, MessageSummary, Module, PlannedPool, Port, RankSummary};
use crate::target::Target;
use mlc_ir::{Objective, Quantization};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The device type of a CPU.
const CPU: u32 = 1;

// The fields of these structures are in alphabetical order, which is the order of the keys in the file.

#[derive(Serialize)]
struct ModuleEntry {
    executors: Vec<&'static str>,
    export_datetime: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    external_dependencies: Vec<Dependency>,
    /// Beyond the format; only for modules with kernels for several levels of a machine, in whose memory the figures of all are together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    levels: Vec<LevelEntry>,
    memory: Memory,
    model_name: String,
    /// Beyond the format; only for modules that are one of several ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<Ranks>,
    style: &'static str,
    target: serde_json::Value,
    /// Beyond the format; only for modules that several threads compute.
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<usize>,
}

/// A level of a machine.
#[derive(Serialize)]
struct LevelEntry {
    constants_size_bytes: usize,
    /// Names of the kernels' functions start with it.
    function_prefix: String,
    kernels: usize,
    target: String,
    workspace_size_bytes: usize,
}

impl LevelEntry {
    fn of(level: &Level) -> LevelEntry {
        LevelEntry {
            constants_size_bytes: level.constants_bytes,
            function_prefix: format!("tvmgen_{}_", level.model_name),
            kernels: level.kernels,
            target: level.target.clone(),
            workspace_size_bytes: level.arena_bytes,
        }
    }
}

#[derive(Serialize)]
struct Ranks {
    channels: Vec<Channel>,
    count: usize,
    rank: usize,
}

/// Messages of one tag between two ranks.
#[derive(Serialize)]
struct Channel {
    channel: usize,
    destination: usize,
    messages: usize,
    source: usize,
    tag: i32,
}

#[derive(Serialize)]
struct Dependency {
    short_name: &'static str,
    url: &'static str,
    url_type: &'static str,
    version_spec: &'static str,
}

#[derive(Serialize)]
struct Memory {
    functions: Functions,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sids: Vec<StorageEntry>,
}

#[derive(Serialize)]
struct StorageEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    input_binding: Option<String>,
    size_bytes: usize,
    storage_id: usize,
}

#[derive(Serialize)]
struct Functions {
    main: [Main; 1],
    operator_functions: Vec<OperatorFunction>,
}

#[derive(Serialize)]
struct Main {
    constants_size_bytes: usize,
    device: u32,
    /// Beyond the format; only for modules that take an input row by row, of which `io_size_bytes` has one row then.
    #[serde(skip_serializing_if = "Option::is_none")]
    feed: Option<Feed>,
    inputs: BTreeMap<String, PortEntry>,
    io_size_bytes: usize,
    outputs: BTreeMap<String, PortEntry>,
    /// Beyond the format; only for modules that work in several pieces of memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pools: Vec<PoolEntry>,
    /// Beyond the format; only for modules that have states.
    #[serde(skip_serializing_if = "Option::is_none")]
    state_size_bytes: Option<usize>,
    workspace_size_bytes: usize,
}

/// A piece of memory that intermediate results lie in.
#[derive(Serialize)]
struct PoolEntry {
    name: String,
    size_bytes: usize,
    slow: bool,
}

impl PoolEntry {
    fn of(PlannedPool { name, bytes, is_slow, .. }: &PlannedPool) -> PoolEntry {
        PoolEntry { name: name.clone(), size_bytes: *bytes, slow: *is_slow }
    }
}

/// The rows of an input that are given one after the other.
#[derive(Serialize)]
struct Feed {
    input: String,
    row_size_bytes: usize,
    rows: usize,
    saved_size_bytes: usize,
}

impl Feed {
    fn of(rows: &FedRows<'_>) -> Feed {
        Feed {
            input: rows.port.name.clone(),
            row_size_bytes: rows.row_bytes,
            rows: rows.count,
            saved_size_bytes: rows.saved_bytes(),
        }
    }
}

#[derive(Serialize)]
struct PortEntry {
    dtype: &'static str,
    /// Beyond the format; only where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    quantization: Option<Quantization>,
    size: usize,
}

impl PortEntry {
    fn of(port: &Port) -> PortEntry {
        PortEntry { dtype: port.ty.dtype.long_name(), quantization: port.quantization, size: port.ty.bytes() }
    }
}

#[derive(Serialize)]
struct OperatorFunction {
    function_name: String,
    workspace: [Workspace; 1],
}

#[derive(Serialize)]
struct Workspace {
    device: u32,
    workspace_size_bytes: u64,
}

/// The text of `metadata.json`. Versions before 7 hold one module, without a wrapper.
pub(super) fn metadata(package: &Package) -> String {
    let entries = package.models.iter().map(|model| (model.module.model_name.clone(), entry(model.module, package)));
    if package.version == FormatVersion::Seven {
        let modules: BTreeMap<String, ModuleEntry> = entries.collect();
        return to_json(&serde_json::json!({ "modules": modules, "version": 7 }));
    }
    let mut text = serde_json::json!(entries.map(|(_, entry)| entry).next());
    if let Some(object) = text.as_object_mut() {
        object.insert("version".into(), package.version.number().into());
    }
    to_json(&text)
}

fn entry(module: &Module, package: &Package) -> ModuleEntry {
    let runtime = Dependency {
        short_name: "tvm_standalone_crt",
        url: "./runtime",
        url_type: "mlf_path",
        version_spec: env!("CARGO_PKG_VERSION"),
    };
    let target = target_text(package.target);
    ModuleEntry {
        executors: module.execution.executors(),
        export_datetime: date_time(package.modified),
        external_dependencies: vec![runtime],
        levels: module.levels.iter().map(LevelEntry::of).collect(),
        memory: Memory {
            functions: Functions {
                main: [Main {
                    constants_size_bytes: module.constants_bytes(),
                    device: CPU,
                    feed: module.fed_rows().as_ref().map(Feed::of),
                    inputs: port_entries(&module.inputs),
                    io_size_bytes: module.io_bytes(),
                    outputs: port_entries(&module.outputs),
                    pools: module.plan.pools.iter().map(PoolEntry::of).collect(),
                    state_size_bytes: (!module.states.is_empty()).then(|| module.state_bytes()),
                    workspace_size_bytes: module.workspace_bytes(),
                }],
                operator_functions: operator_functions(module),
            },
            sids: module.graph.as_ref().map(storage_entries).unwrap_or_default(),
        },
        model_name: module.model_name.clone(),
        ranks: module.ranks.as_ref().map(ranks),
        style: "full-model",
        target: match package.version {
            FormatVersion::Five => serde_json::json!({ CPU.to_string(): target }),
            _ => serde_json::json!([target]),
        },
        threads: Some(module.execution.threads).filter(|&threads| threads > 1),
    }
}

fn ranks(summary: &RankSummary) -> Ranks {
    let &RankSummary { rank, count, .. } = summary;
    let mut channels: BTreeMap<(usize, usize, usize), Channel> = BTreeMap::new();
    for &MessageSummary { sent, peer, channel, tag, .. } in &summary.messages {
        let (source, destination) = if sent { (rank, peer) } else { (peer, rank) };
        let new = Channel { channel, destination, messages: 0, source, tag };
        channels.entry((source, destination, channel)).or_insert(new).messages += 1;
    }
    Ranks { channels: channels.into_values().collect(), count, rank }
}

/// The blocks of memory of the graph executor, in the order in which the graph's entries use them first.
fn storage_entries(graph: &ExecutorGraph) -> Vec<StorageEntry> {
    let sizes = graph.storage_bytes();
    let mut seen = BTreeSet::new();
    let mut entries = Vec::new();
    for node in &graph.nodes {
        for output in node.outputs.iter().filter(|output| seen.insert(output.storage)) {
            let input_binding = (!node.calls).then(|| node.name.clone());
            entries.push(StorageEntry { input_binding, size_bytes: sizes[output.storage], storage_id: output.storage });
        }
    }
    entries
}

/// The target as microTVM spells it; strict code says so, and code that is made for something else than speed.
fn target_text(target: &Target) -> String {
    let strict = if target.is_strict() { " -fp=strict" } else { "" };
    let objective = match target.objective {
        Objective::Speed => String::new(),
        other => format!(" -optimize={}", other.name()),
    };
    format!("c -keys=cpu -model={}{strict}{objective}", target.name)
}

pub(super) fn to_json(value: &impl Serialize) -> String {
    // Structures of strings, numbers and lists: writing them to memory can't fail.
    serde_json::to_string_pretty(value).map(|text| text + "\n").unwrap_or_default()
}

/// By name; two ports of one name go by their C identifiers.
fn port_entries(ports: &[Port]) -> BTreeMap<String, PortEntry> {
    let mut entries = BTreeMap::new();
    for port in ports {
        let key = if entries.contains_key(&port.name) { port.field.clone() } else { port.name.clone() };
        entries.insert(key, PortEntry::of(port));
    }
    entries
}

/// With a graph, the functions that it calls, which are one for each kernel or loop that isn't inside of another; else the kernels.
fn operator_functions(module: &Module) -> Vec<OperatorFunction> {
    let calls = module.graph.iter().flat_map(|graph| &graph.nodes).filter(|node| node.calls);
    let mut calls = calls.map(|node| node.name.clone());
    let function = |kernel: &KernelSummary| OperatorFunction {
        function_name: calls.next().unwrap_or_else(|| kernel.function.clone()),
        workspace: [Workspace { device: CPU, workspace_size_bytes: kernel.workspace_bytes }],
    };
    match module.graph {
        Some(_) => module.outermost_kernels().map(function).collect(),
        None => module.kernels.iter().map(function).collect(),
    }
}

/// `2023-10-18 09:30:00Z` of seconds since 1970, in UTC.
fn date_time(seconds: u64) -> String {
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    // 400 years always have 146097 days, so that the loops below are short.
    let mut year = 1970 + days / 146_097 * 400;
    days %= 146_097;
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year:04}-{month:02}-{:02} {hour:02}:{minute:02}:{:02}Z", days + 1, second % 60)
}

#[cfg(test)]
mod tests {
    use super::date_time;

    #[test]
    fn dates_follow_the_gregorian_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_399, "2000-02-28 23:59:59Z"),
            (951_868_799, "2000-02-29 23:59:59Z"),
            (1_709_251_199, "2024-02-29 23:59:59Z"),
            (1_697_621_400, "2023-10-18 09:30:00Z"),
            (4_107_542_400, "2100-03-01 00:00:00Z"),
        ] {
            assert_eq!(date_time(seconds), expected);
        }
    }
}
