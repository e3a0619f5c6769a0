//! `mlc compile`

use super::arguments::{CodeOptions, Compile, Emit, Model};
use super::console::Console;
use super::subject::{compile_options, in_model, load_for};
use super::words::{bytes, mismatch};
use crate::files;
use crate::pipeline::{self, CompileOptions, Compiled, Failure};
use crate::toolchain::Toolchain;
use indexmap::IndexMap;
use mlc_codegen::Module;
use mlc_ir::Diagnostic;
use std::path::{Path, PathBuf};

pub(super) fn compile(arguments: &Compile, console: &Console) -> Result<(), Failure> {
    let names = names(arguments)?;
    let mut models = Vec::new();
    for (path, name) in paths(arguments).zip(names) {
        let code = CodeOptions { model_names: vec![name], ..arguments.code.clone() };
        let options = CompileOptions {
            explain: arguments.explain,
            execution: arguments.packaging.execution()?,
            version: arguments.packaging.version(),
            ..compile_options(&code, "generic", console)?
        };
        let model = Model { path: path.clone(), ..arguments.model.clone() };
        models.push(compile_model(arguments, &model, &options, console)?);
    }
    let modules: Vec<&Module> = models.iter().map(|compiled| &compiled.module).collect();
    arguments.code.memory.limits().check(&modules)?;
    let written = emit(arguments, &models, console)?;
    if let Some(path) = written {
        for compiled in &models {
            console.status(&summary(&path, compiled));
        }
    }
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

fn compile_model(
    arguments: &Compile,
    model: &Model,
    options: &CompileOptions,
    console: &Console,
) -> Result<Compiled, Failure> {
    let loaded = load_for(model, &arguments.code, &[], console)?;
    let mut dump = Vec::new();
    if arguments.dump_ir.is_some() {
        dump.push(("00-import.mlc".to_owned(), mlc_ir::text::print(&loaded.graph)));
    }
    let progress = console.progress("compiling");
    let compiled = pipeline::compile(&loaded.graph, options, &mut |stage, graph| {
        if arguments.dump_ir.is_some() {
            dump.push((format!("{}0-{stage}.mlc", dump.len()), mlc_ir::text::print(graph)));
        }
    });
    drop(progress);
    if let Some(folder) = &arguments.dump_ir {
        // Several models get a folder each.
        let own = folder.join(&options.model_name);
        let folder = if arguments.further_models.is_empty() { folder } else { &own };
        // Even when the compilation failed: the stages before are what one wants to see then.
        files::write_folder(folder, dump.iter().map(|(name, text)| (name.as_str(), text.as_bytes())))?;
    }
    let compiled = compiled.map_err(|diagnostics| in_model(diagnostics, model, loaded.sources))?;
    if arguments.explain {
        for explanation in &compiled.report.explanations {
            console.print(&format!("{explanation}\n"));
        }
    }
    Ok(compiled)
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
    let output = |default: String| arguments.output.clone().unwrap_or_else(|| PathBuf::from(default));
    match arguments.emit {
        Emit::Tar => {
            let path = output(format!("{stem}.tar"));
            refuse_input(&path, arguments)?;
            if arguments.packaging.emit_lib {
                pipeline::write_files(
                    archive_files(arguments, models)?,
                    models.first().map_or(0, Compiled::modified),
                    &path,
                )?;
            } else {
                pipeline::write_archive(models, &path)?;
            }
            Ok(Some(path))
        }
        Emit::Ir => {
            let text: String = models.iter().map(Compiled::graph_text).collect();
            let Some(path) = &arguments.output else {
                console.print(&text);
                return Ok(None);
            };
            refuse_input(path, arguments)?;
            files::write_atomically(path, text.as_bytes())?;
            Ok(Some(path.clone()))
        }
        Emit::Dir => {
            let path = output(stem);
            let archive = archive_files(arguments, models)?;
            files::write_folder(&path, archive.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))?;
            Ok(Some(path))
        }
        Emit::C => {
            let path = output(stem);
            let archive = pipeline::files_of(models)?;
            let sources = archive.iter().filter_map(|(name, bytes)| {
                let source = name.strip_prefix("codegen/host/include/").or(name.strip_prefix("codegen/host/src/"))?;
                Some((source, bytes.as_slice()))
            });
            files::write_folder(&path, sources)?;
            Ok(Some(path))
        }
    }
}

/// The output must not replace a model.
fn refuse_input(output: &Path, arguments: &Compile) -> Result<(), Diagnostic> {
    let same = |input: &Path| matches!((output.canonicalize(), input.canonicalize()), (Ok(output), Ok(input)) if output == input);
    let replaced = paths(arguments).any(|path| same(path) || same(&path.with_extension("bin")));
    if replaced || arguments.model.weights.as_deref().is_some_and(same) {
        return Err(mismatch(format!("the output '{}' would replace the model", output.display())));
    }
    Ok(())
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

fn summary(path: &Path, compiled: &Compiled) -> String {
    let module = &compiled.module;
    let macs: u64 = module.kernels.iter().map(|kernel| kernel.macs).sum();
    format!(
        "wrote {}: {} kernels, {macs} MACs, {} of constants, {} of working memory",
        path.display(),
        module.kernels.len(),
        bytes(module.constants_bytes() as u64),
        bytes(module.workspace_bytes() as u64),
    )
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
