//! `mlc compile`

use super::arguments::Compile;
use super::bindings::Output;
use super::console::Console;
use super::model::Model;
use super::modes::Emit;
use super::options::CodeOptions;
use super::ranks::description::description;
use super::ranks::select::{self, are_ranks, rank_name};
use super::schedules::schedules_text;
use super::subject::{compile_options, in_model, load_for};
use super::summary::{large_weights, summary};
use super::texts;
use super::words::{STANDARD_OUTPUT, folder, is_standard_output, mismatch};
use crate::files;
use crate::pipeline::{self, CompileOptions, Compiled, Failure, Loaded};
use crate::render::Sources;
use crate::toolchain::{Toolchain, temporary};
use crate::weights::{self, Weights};
use indexmap::IndexMap;
use mlc_codegen::quantized::floating_point_kernels;
use mlc_codegen::{Execution, KernelSummary, Module};
use mlc_ir::{Code, Diagnostic, Graph, Location};
use mlc_passes::NarrowedWeights;
use mlc_passes::integers::{Reason, reasons};
use std::path::{Path, PathBuf};

pub(super) fn compile(arguments: &Compile, console: &Console) -> Result<(), Failure> {
    let mut loaded = Vec::new();
    for model in models(arguments)? {
        loaded.push(load_for(&model, &arguments.code, &[], console)?);
    }
    if are_ranks(&arguments.code, &loaded)? {
        return compile_ranks(arguments, loaded, console);
    }
    let names = names(arguments)?;
    let mut compiled = Vec::new();
    for ((path, name), loaded) in paths(arguments).zip(names).zip(loaded) {
        let code = CodeOptions { model_names: vec![name], ..arguments.code.clone() };
        let model = Model { path: path.clone(), ..arguments.model.clone() };
        compiled.push(compile_loaded(arguments, &model, loaded, &options(arguments, &code, console)?, console)?);
    }
    let modules: Vec<&Module> = compiled.iter().map(|compiled| &compiled.module).collect();
    arguments.code.memory.limits().check(&modules)?;
    let written = emit(arguments, &compiled, console)?;
    if let Some(path) = written {
        for compiled in &compiled {
            console.status(&summary(&path, compiled));
            if let Some(advice) = large_weights(arguments, compiled) {
                console.status(&advice);
            }
        }
    }
    Ok(())
}

/// What the options say of the code of a model.
fn options(arguments: &Compile, code: &CodeOptions, console: &Console) -> Result<CompileOptions, Failure> {
    Ok(CompileOptions {
        explain: arguments.explain,
        execution: arguments.packaging.execution(code.threads.into())?,
        pools: arguments.packaging.pools.clone(),
        fetched_bytes: arguments.packaging.fetch_weights,
        version: arguments.packaging.version(),
        source_model: !arguments.packaging.no_source_model,
        ..compile_options(code, "generic", console)?
    })
}

/// Each model with its options; weights that are given for ranks are their own.
fn models(arguments: &Compile) -> Result<Vec<Model>, Diagnostic> {
    let Model { weights, .. } = &arguments.model;
    if arguments.further_models.is_empty() || weights.is_empty() {
        let model = |path: &PathBuf| Model { path: path.clone(), ..arguments.model.clone() };
        return Ok(paths(arguments).map(model).collect());
    }
    select::models(&arguments.model, &arguments.further_models)
}

/// Writes an archive for each of several ranks, and what they have to do with each other.
fn compile_ranks(arguments: &Compile, loaded: Vec<Loaded>, console: &Console) -> Result<(), Failure> {
    if arguments.emit != Emit::Tar {
        return Err(mismatch("of several ranks, archives are written".into()).with_help("leave '--emit' out").into());
    }
    let graphs: Vec<Graph> = loaded.iter().map(|loaded| loaded.graph.clone()).collect();
    let graphs: Vec<&Graph> = graphs.iter().collect();
    let models = models(arguments)?;
    select::check(&graphs, &models.iter().map(|model| model.path.as_path()).collect::<Vec<_>>())?;
    let stem = stem(&arguments.model.path);
    let name = arguments.code.model_names.first().unwrap_or(&stem);
    let folder = Output::file(&arguments.output).map_or_else(|| PathBuf::from(&stem), Path::to_path_buf);
    let options = options(arguments, &arguments.code, console)?;
    std::fs::create_dir_all(&folder).map_err(|error| files::unwritable(&folder, &error))?;
    let mut archives = Vec::new();
    for (rank, (model, loaded)) in models.iter().zip(loaded).enumerate() {
        let options = CompileOptions { model_name: rank_name(&pipeline::model_name(name), rank), ..options.clone() };
        let compiled = compile_loaded(arguments, model, loaded, &options, console)?;
        let file = format!("{}.rank{rank}.tar", files::safe_file_name(name));
        write_archive(arguments, std::slice::from_ref(&compiled), &folder.join(&file))?;
        archives.push((file, compiled));
    }
    let modules: Vec<&Module> = archives.iter().map(|(_, compiled)| &compiled.module).collect();
    modules.into_iter().try_for_each(|module| arguments.code.memory.limits().check(&[module]))?;
    files::write_atomically(&folder.join("dist.json"), description(&graphs, &archives).as_bytes())?;
    console.status(&format!("wrote {} archives and dist.json to {}", graphs.len(), folder.display()));
    Ok(())
}

fn paths(arguments: &Compile) -> impl Iterator<Item = &PathBuf> {
    std::iter::once(&arguments.model.path).chain(&arguments.further_models)
}

/// A name for each model.
fn names(arguments: &Compile) -> Result<Vec<String>, Diagnostic> {
    let given = &arguments.code.model_names;
    let count = paths(arguments).count();
    if given.is_empty() && count == 1 {
        return Ok(vec!["default".into()]);
    }
    if given.is_empty() {
        return Ok(paths(arguments).map(|path| pipeline::model_name(&stem(path))).collect());
    }
    if given.len() != count {
        return Err(mismatch(format!("{} names are given for {count} models", given.len()))
            .with_help("repeat --model-name, once for each model in order"));
    }
    Ok(given.clone())
}

fn compile_loaded(
    arguments: &Compile,
    model: &Model,
    loaded: Loaded,
    options: &CompileOptions,
    console: &Console,
) -> Result<Compiled, Failure> {
    let feed = arguments.packaging.fed_input(&loaded.graph, &loaded.aliases)?;
    let options = &CompileOptions { execution: Execution { feed, ..options.execution }, ..options.clone() };
    let mut dump = Dump::default();
    if arguments.dump_ir.is_some() {
        dump.add("import", &loaded.graph);
    }
    let progress = console.progress("compiling");
    let compiled = pipeline::compile(&loaded.graph, options, &mut |stage, graph| {
        if arguments.dump_ir.is_some() {
            dump.add(stage, graph);
        }
    });
    drop(progress);
    if let Some(path) = &arguments.dump_ir {
        // Several models get a folder each.
        let own = path.join(&options.model_name);
        // Even when the compilation failed: the stages before are what one wants to see then.
        dump.write(if arguments.further_models.is_empty() { path } else { &own })?;
    }
    let compiled = compiled.map_err(|diagnostics| in_model(diagnostics, model, loaded.sources))?;
    console.report(&floating_point_integers(&loaded.graph, &compiled, model), &Sources::new());
    narrowed_weights(&compiled, options).iter().for_each(|text| console.status(text));
    let rewrites = compiled.report.explanations.iter().map(|explanation| format!("{explanation}\n"));
    let schedules = options.explain.then(|| schedules_text(&compiled.module, &options.target));
    for text in rewrites.chain(schedules) {
        // What is explained must not get into what is written.
        if Output::file(&arguments.output).is_some_and(is_standard_output) {
            console.remark(&text);
        } else {
            console.print(&text);
        }
    }
    Ok(compiled)
}

/// Most kernels in floating point that are told one by one.
const MOST_TOLD: usize = 20;

/// What to say of operators on 8-bit integers that are computed in floating point: which kernels do, and why.
fn floating_point_integers(graph: &Graph, compiled: &Compiled, model: &Model) -> Vec<Diagnostic> {
    let kernels = floating_point_kernels(&compiled.graph, &compiled.module);
    if kernels.is_empty() {
        return Vec::new();
    }
    // A verified graph has reasons; without one there is still the kernel to be told.
    let reasons = reasons(graph).unwrap_or_default();
    let message = "operators on 8-bit integers are computed in floating point, which takes more time and memory";
    let location = Location::default().in_file(model.path.display().to_string());
    let mut warning = Diagnostic::warning(Code::FloatingPointIntegers, location, message);
    for kernel in kernels.iter().take(MOST_TOLD) {
        let reason = reason(&reasons, kernel);
        warning = warning.with_note(format!("in the kernel {}: {reason}", kernel.function));
    }
    if kernels.len() > MOST_TOLD {
        warning = warning.with_note(format!("and in {} more", kernels.len() - MOST_TOLD));
    }
    vec![warning]
}

/// Why a kernel multiplies real numbers: by its name, or by what it stands for.
fn reason<'r>(reasons: &'r [Reason], kernel: &KernelSummary) -> &'r str {
    let of_name = reasons.iter().find(|reason| *reason.node == *kernel.node);
    let stands_for = |reason: &&Reason| kernel.origins.iter().any(|origin| reason.origins.contains(origin.as_str()));
    let found = of_name.or_else(|| reasons.iter().find(stands_for));
    found.map_or("sums of integers would be rounded otherwise than the model says", |reason| &reason.text)
}

/// What to say of weights that were to be in half precision.
fn narrowed_weights(compiled: &Compiled, options: &CompileOptions) -> Vec<String> {
    let Some(half) = options.weights_type else { return Vec::new() };
    let NarrowedWeights { narrowed, kept, furthest } = &compiled.narrowed;
    let furthest = furthest.as_ref().map_or(String::new(), |(name, distance)| {
        format!("; rounding moves them by {distance:.2e} at most, in '{name}'")
    });
    let noun = if narrowed.len() == 1 { "constant is" } else { "constants are" };
    let mut texts = vec![format!("the weights in {} {noun} {half}{furthest}", narrowed.len())];
    texts.extend(
        kept.iter().map(|(name, number)| format!("the weights '{name}' stay f32: {half} doesn't reach {number}")),
    );
    texts
}

/// The graphs of all stages as texts, with one file of their large constants.
#[derive(Default)]
struct Dump {
    texts: Vec<(String, String)>,
    weights: Weights,
}

impl Dump {
    fn add(&mut self, stage: &str, graph: &Graph) {
        let (text, constants) = mlc_ir::text::print_with_constants(graph);
        self.texts.push((format!("{}0-{stage}.mlc", self.texts.len()), text));
        self.weights.add(&constants);
    }

    fn write(&self, folder: &Path) -> Result<(), Diagnostic> {
        let weights = if self.weights.is_empty() { None } else { Some(self.weights.to_bytes()?) };
        let texts = self.texts.iter().map(|(name, text)| (name.as_str(), text.as_bytes()));
        files::write_folder(folder, texts.chain(weights.as_deref().map(|bytes| (weights::SHARED_FILE, bytes))))
    }
}

/// The files of the archive, with object files in the place of sources if that is wanted.
fn archive_files(arguments: &Compile, models: &[Compiled]) -> Result<IndexMap<String, Vec<u8>>, Diagnostic> {
    let mut files = pipeline::files_of(models)?;
    if let Some(target) = models.first().map(Compiled::target).filter(|_| arguments.packaging.emit_lib) {
        let variable = std::env::var("CC").ok().filter(|variable| !variable.trim().is_empty());
        Toolchain::of_target(variable.as_deref(), target).replace_sources(&mut files, target)?;
    }
    Ok(files)
}

/// Writes what the user wants; returns where it is, unless it went to standard output.
fn emit(arguments: &Compile, models: &[Compiled], console: &Console) -> Result<Option<PathBuf>, Failure> {
    let stem = stem(&arguments.model.path);
    let output =
        |default: String| Output::file(&arguments.output).map_or_else(|| PathBuf::from(default), Path::to_owned);
    let path = match arguments.emit {
        Emit::Tar => output(format!("{stem}.tar")),
        Emit::Ir => output(STANDARD_OUTPUT.to_owned()),
        Emit::Dir | Emit::C => folder(output(stem))?,
    };
    let to_standard_output = is_standard_output(&path);
    if !to_standard_output {
        texts::refuse_inputs(&path, paths(arguments).chain(&arguments.model.weights).map(PathBuf::as_path))?;
    }
    match arguments.emit {
        Emit::Tar if to_standard_output => {
            // An archive isn't written from its start to its end.
            let spool = tempfile::tempdir().map_err(|error| temporary(&error))?;
            let file = spool.path().join("archive");
            write_archive(arguments, models, &file)?;
            console.write(&files::read(&file)?)?;
        }
        Emit::Tar => write_archive(arguments, models, &path)?,
        Emit::Ir => write_texts(models, (!to_standard_output).then_some(path.as_path()), console)?,
        Emit::Dir => {
            let archive = archive_files(arguments, models)?;
            files::write_folder(&path, archive.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))?;
        }
        Emit::C => {
            let archive = pipeline::files_of(models)?;
            let sources = archive.iter().filter_map(|(name, bytes)| {
                let source = name.strip_prefix("codegen/host/include/").or(name.strip_prefix("codegen/host/src/"))?;
                Some((source, bytes.as_slice()))
            });
            files::write_folder(&path, sources)?;
        }
    }
    Ok((!to_standard_output).then_some(path))
}

fn write_archive(arguments: &Compile, models: &[Compiled], path: &Path) -> Result<(), Diagnostic> {
    if arguments.packaging.emit_lib {
        let modified = models.first().map_or(0, Compiled::modified);
        return pipeline::write_files(archive_files(arguments, models)?, modified, path);
    }
    pipeline::write_archive(models, path)
}

/// Writes the optimised graphs as text; into a file with the large constants beside it.
fn write_texts(models: &[Compiled], path: Option<&Path>, console: &Console) -> Result<(), Diagnostic> {
    let text: String = models.iter().map(Compiled::graph_text).collect();
    let mut weights = Weights::default();
    models.iter().for_each(|compiled| weights.add(compiled.graph_constants()));
    texts::write(&text, &weights, path, console)
}

/// The model's file name without what says its format.
pub(super) fn stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut stem = name.as_str();
    for extension in [".param", ".pnnx", ".onnx", ".tflite", ".tsm", ".relay", ".json", ".mlc", ".tar"] {
        stem = stem.strip_suffix(extension).unwrap_or(stem);
    }
    if stem.is_empty() { "model".into() } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_lose_the_format() {
        for (path, expected) in [
            ("a/model.pnnx.param", "model"),
            ("net.onnx", "net"),
            ("net.v2.param", "net.v2"),
            (".param", "model"),
            ("plain", "plain"),
        ] {
            assert_eq!(stem(Path::new(path)), expected);
        }
    }
}
