//! `mlc run` with the models of several ranks.

use super::options::TransportKind;
use super::select::{check, models, of_rank, rank_name};
use crate::bundle::Bundle;
use crate::cli::arguments::Run;
use crate::cli::bindings::Inputs;
use crate::cli::console::Console;
use crate::cli::execute::describe;
use crate::cli::model::Model;
use crate::cli::results::write_outputs;
use crate::cli::subject::{archive_bundle, in_model, input_ports, load_for, program_options, read_inputs, renamed};
use crate::cli::words::mismatch;
use crate::files;
use crate::pipeline::{self, CompileOptions, Failure, Loaded};
use crate::toolchain::{RanksProgram, RanksRun, Transport};
use mlc_ir::{Diagnostic, Graph, Tensor};
use std::path::Path;

/// `mlc run` with several models.
///
/// # Errors
/// When the command line is at fault, a model is, or a rank fails.
pub fn run(arguments: &Run, console: &Console) -> Result<(), Failure> {
    let options = &arguments.ranks;
    if arguments.machine.on.is_some() {
        return Err(mismatch("several ranks don't run under an emulator".into()).into());
    }
    let models = models(&arguments.model, &arguments.further_models)?;
    let mut input_files: Vec<Vec<String>> = vec![Vec::new(); models.len()];
    for input in &arguments.inputs.files {
        let (rank, file) = of_rank(input, "--input", models.len())?;
        input_files[rank].push(file);
    }
    let bundles = bundles(arguments, &models, &mut input_files, console)?;
    let transport = match options.transport {
        TransportKind::Mpi => Transport::Mpi,
        TransportKind::Threads => Transport::Threads,
    };
    let progress = console.progress("building");
    let toolchain = arguments.machine.toolchain()?;
    let program = toolchain.build_ranks(&bundles, transport, options.timeline.is_some())?;
    drop(progress);
    let mut inputs = Vec::new();
    for (number, (rank, own)) in program.ranks.iter().zip(input_files).enumerate() {
        let seed = arguments.inputs.seed.wrapping_add(number as u64);
        let own = Inputs { files: own, seed, ..arguments.inputs.clone() };
        let tensors = read_inputs(&own, &input_ports(&rank.inputs), console);
        let of_rank =
            |fault: Diagnostic| fault.with_note(format!("of rank {number}, whose inputs are given as {number}:…"));
        inputs.push(tensors.map_err(|Failure { diagnostics, sources }| Failure {
            diagnostics: diagnostics.into_iter().map(of_rank).collect(),
            sources,
        })?);
    }
    let (outputs, timeline) = program.run(&inputs, RanksRun { runs: 1, patience: options.timeout })?;
    if let (Some(file), Some(timeline)) = (&options.timeline, timeline) {
        let text = serde_json::to_string_pretty(&timeline.to_chrome(&program.ranks)).unwrap_or_default();
        files::write_atomically(file, text.as_bytes())?;
        console.status(&format!("wrote the timeline to {}", file.display()));
    }
    show(arguments.results.output_dir.as_deref(), &program, &outputs, console)
}

fn show(
    folder: Option<&Path>,
    program: &RanksProgram,
    outputs: &[Vec<Tensor>],
    console: &Console,
) -> Result<(), Failure> {
    for (number, (rank, outputs)) in program.ranks.iter().zip(outputs).enumerate() {
        match folder {
            Some(folder) => write_outputs(&folder.join(format!("rank{number}")), &rank.outputs, outputs)?,
            None => {
                for (port, output) in rank.outputs.iter().zip(outputs) {
                    console.print(&format!("rank {number}, {}", describe(&port.name, output)));
                }
            }
        }
    }
    if let Some(folder) = folder {
        let count: usize = outputs.iter().map(Vec::len).sum();
        console.status(&format!("wrote {count} outputs of {} ranks to {}", outputs.len(), folder.display()));
    }
    Ok(())
}

/// The archives of all ranks: compiled, or as they are given. Input files come to be under the names of the models' inputs.
fn bundles(
    arguments: &Run,
    models: &[Model],
    input_files: &mut [Vec<String>],
    console: &Console,
) -> Result<Vec<Bundle>, Failure> {
    let base = program_options(&arguments.code, &arguments.machine, console)?;
    let mut given = Vec::new();
    let mut loaded: Vec<(usize, Loaded)> = Vec::new();
    for (rank, model) in models.iter().enumerate() {
        let archive = archive_bundle(model, &arguments.code, &arguments.machine, &input_files[rank])?;
        if archive.is_none() {
            let found = load_for(model, &arguments.code, &input_files[rank], console)?;
            let files = std::mem::take(&mut input_files[rank]);
            input_files[rank] = renamed(&Inputs { files, ..arguments.inputs.clone() }, model, &found.aliases).files;
            loaded.push((rank, found));
        }
        given.push(archive);
    }
    // Archives are known by what they exchange only; the transport finds out whether they fit.
    if loaded.len() == models.len() {
        let graphs: Vec<&Graph> = loaded.iter().map(|(_, loaded)| &loaded.graph).collect();
        check(&graphs, &models.iter().map(|model| model.path.as_path()).collect::<Vec<_>>())?;
    }
    let _progress = console.progress("compiling");
    for (rank, loaded) in loaded {
        let options = CompileOptions { model_name: rank_name(&base.model_name, rank), ..base.clone() };
        let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {})
            .map_err(|diagnostics| in_model(diagnostics, &models[rank], loaded.sources))?;
        given[rank] = Some(compiled.bundle()?);
    }
    Ok(given.into_iter().flatten().collect())
}
