//! `mlc compile`

use super::arguments::{Compile, Emit};
use super::console::Console;
use super::subject::{compile_options, in_model, load_for, mismatch};
use crate::files;
use crate::pipeline::{self, CompileOptions, Compiled, Failure};
use mlc_ir::Diagnostic;
use std::path::{Path, PathBuf};

pub(super) fn compile(arguments: &Compile, console: &Console) -> Result<(), Failure> {
    let options =
        CompileOptions { explain: arguments.explain, ..compile_options(&arguments.code, "generic", console)? };
    let loaded = load_for(&arguments.model, &arguments.code, &[], console)?;
    let mut dump = Vec::new();
    if arguments.dump_ir.is_some() {
        dump.push(("00-import.mlc".to_owned(), mlc_ir::text::print(&loaded.graph)));
    }
    let progress = console.progress("compiling");
    let compiled = pipeline::compile(&loaded.graph, &options, &mut |stage, graph| {
        if arguments.dump_ir.is_some() {
            dump.push((format!("{}0-{stage}.mlc", dump.len()), mlc_ir::text::print(graph)));
        }
    });
    drop(progress);
    if let Some(folder) = &arguments.dump_ir {
        // Even when the compilation failed: the stages before are what one wants to see then.
        files::write_folder(folder, dump.iter().map(|(name, text)| (name.as_str(), text.as_bytes())))?;
    }
    let compiled = compiled.map_err(|diagnostics| in_model(diagnostics, &arguments.model, loaded.sources))?;
    if arguments.explain {
        for explanation in &compiled.report.explanations {
            console.print(&format!("{explanation}\n"));
        }
    }
    let written = emit(arguments, &compiled, console)?;
    if let Some(path) = written {
        console.status(&summary(&path, &compiled));
    }
    Ok(())
}

/// Writes what the user wants; returns where it is, unless it went to standard output.
fn emit(arguments: &Compile, compiled: &Compiled, console: &Console) -> Result<Option<PathBuf>, Failure> {
    let stem = stem(&arguments.model.path);
    let output = |default: String| arguments.output.clone().unwrap_or_else(|| PathBuf::from(default));
    match arguments.emit {
        Emit::Tar => {
            let path = output(format!("{stem}.tar"));
            refuse_input(&path, arguments)?;
            compiled.write_archive(&path)?;
            Ok(Some(path))
        }
        Emit::Ir => {
            let Some(path) = &arguments.output else {
                console.print(compiled.graph_text());
                return Ok(None);
            };
            refuse_input(path, arguments)?;
            files::write_atomically(path, compiled.graph_text().as_bytes())?;
            Ok(Some(path.clone()))
        }
        Emit::Dir => {
            let path = output(stem);
            let archive = compiled.files();
            files::write_folder(&path, archive.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())))?;
            Ok(Some(path))
        }
        Emit::C => {
            let path = output(stem);
            let archive = compiled.files();
            let sources = archive.iter().filter_map(|(name, bytes)| {
                let source = name.strip_prefix("codegen/host/include/").or(name.strip_prefix("codegen/host/src/"))?;
                Some((source, bytes.as_slice()))
            });
            files::write_folder(&path, sources)?;
            Ok(Some(path))
        }
    }
}

/// The output must not replace the model.
fn refuse_input(output: &Path, arguments: &Compile) -> Result<(), Diagnostic> {
    let same = |input: &Path| matches!((output.canonicalize(), input.canonicalize()), (Ok(output), Ok(input)) if output == input);
    let weights = arguments.model.weights.clone().unwrap_or_else(|| arguments.model.path.with_extension("bin"));
    if same(&arguments.model.path) || same(&weights) {
        return Err(mismatch(format!("the output '{}' would replace the model", output.display())));
    }
    Ok(())
}

/// The model's file name without what says its format.
pub(super) fn stem(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut stem = name.as_str();
    for extension in [".param", ".pnnx", ".onnx", ".tflite", ".tsm", ".json", ".mlc", ".tar"] {
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
        bytes(module.plan.arena_bytes as u64),
    )
}

/// A number of bytes for people.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / (1024.0 * 1024.0)),
    }
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
