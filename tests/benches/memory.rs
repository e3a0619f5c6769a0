//! How much memory networks take for how much work: `memory FOLDER…`. `docs/memory.md` is what it prints of the collection's float networks of
//! MLPerf Tiny and MobileNetV2, followed by the models in the folders.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use mlc::pipeline::{self, CompileOptions, LoadOptions};
use mlc_codegen::Target;
use mlc_ir::{Diagnostic, Graph, Objective};
use mlc_tests::paths;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HEAD: &str = "# Memory and work

Bytes of the arena for cortex-m4, inputs and outputs apart, and in brackets the time that is predicted, in parts of that of `--optimize speed`:
what nothing but speed counts for; `--optimize ram`, by which nothing is computed twice; and the smallest programs of `mlc explore` that take a tenth more
time, or compute a tenth of all products (multiply–accumulates) twice, at most, for which rows are computed in [patches](schedules.md#patches).

`cargo bench -p mlc-tests --bench memory -- FOLDER…` writes this page, of networks of the collection and of all models in the folders: here
those that `python tests/benches/peers/networks.py FOLDER squeezenet mobilenet_v2 mobilenet_v2_035_144 unet` makes, and the int8 models of MLPerf Tiny.

| network | speed | ram | + 10 % time | + 10 % products |
|---|---:|---:|---:|---:|
";

/// Networks of the collection.
const NETWORKS: [&str; 4] = [
    "net_mlperftiny_dscnn_kws",
    "net_mlperftiny_resnet8",
    "net_mlperftiny_mobilenetv1_025_vww",
    "net_mobilenet_v2_035",
];

/// The target, for an objective.
fn options(objective: Objective) -> CompileOptions {
    let cortex_m4 = Target::embedded().into_iter().find(|target| target.name == "cortex-m4");
    let target = cortex_m4.unwrap_or_else(Target::generic).with_objective(objective);
    CompileOptions { target, ..CompileOptions::default() }
}

/// Bytes of the arena, and predicted time.
fn figures(graph: &Graph, objective: Objective) -> Result<(usize, u64), Vec<Diagnostic>> {
    let module = pipeline::compile(graph, &options(objective), &mut |_, _| {})?.module;
    Ok((module.plan.arena_bytes, module.kernels.iter().map(|kernel| kernel.price.time).sum()))
}

/// Multiply–accumulates of all nodes.
fn macs(graph: &Graph) -> u64 {
    let of = |id| graph.node(id).op.work(&graph.operand_types(id), &graph.node(id).results).macs;
    graph.node_ids().map(of).sum()
}

fn row(name: &str, model: &Path) -> Result<String, String> {
    let told = |faults: Vec<Diagnostic>| faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let loaded = pipeline::load(model, &LoadOptions::default()).map_err(|failure| told(failure.diagnostics))?;
    let fastest = figures(&loaded.graph, Objective::Speed).map_err(told)?;
    let smallest = figures(&loaded.graph, Objective::Ram).map_err(told)?;
    let front = pipeline::explore(&loaded.graph, &options(Objective::Ram)).map_err(told)?;
    let all = macs(&loaded.graph);
    let in_time = front.iter().find(|point| point.time <= fastest.1 + fastest.1 / 10);
    let in_work = front.iter().find(|point| point.twice <= all / 10);
    let points = [in_time, in_work].map(|point| point.map_or(smallest, |point| (point.arena_bytes, point.time)));
    let cells = [fastest, smallest].into_iter().chain(points);
    let cell = |(bytes, time): (usize, u64)| format!("{bytes} ({:.2})", time as f64 / fastest.1.max(1) as f64);
    Ok(format!("| {name} | {} |\n", cells.map(cell).collect::<Vec<_>>().join(" | ")))
}

/// The model files of a folder by their names.
fn models(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "onnx" || extension == "tflite"));
    files.sort();
    Ok(files)
}

fn run() -> Result<(), String> {
    let collection = paths::conformance().unwrap_or_else(paths::data).join("pnnx");
    let own = NETWORKS
        .iter()
        .map(|name| (name.trim_start_matches("net_").to_owned(), collection.join(name).join("model.pnnx.param")));
    let mut networks: Vec<(String, PathBuf)> = own.filter(|(_, model)| model.exists()).collect();
    let folders: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    for folder in &folders {
        let name = |file: PathBuf| Some((file.file_stem()?.to_string_lossy().into_owned(), file));
        networks.extend(models(Path::new(folder))?.into_iter().filter_map(name));
    }
    let mut page = HEAD.to_owned();
    for (name, model) in networks {
        let row = row(&name, &model)?;
        print!("{row}");
        page += &row;
    }
    if !folders.is_empty() {
        std::fs::write(paths::repository().join("docs/memory.md"), page).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
