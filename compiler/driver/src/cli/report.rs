//! `mlc report`

use super::arguments::Report;
use super::bindings::Output;
use super::compile::stem;
use super::console::Console;
use super::model::Model;
use super::modes::Picture;
use super::options::CodeOptions;
use super::subject::{archive_bundle, in_model, load_for, program_options};
use super::texts;
use super::words::{is_standard_output, mismatch};
use crate::bundle::Bundle;
use crate::files;
use crate::pipeline::{self, CompileOptions, Failure};
use crate::render::Sources;
use crate::report::report_archive;
use clap::Parser;
use mlc_codegen::levels::expect_one;
use mlc_ir::Diagnostic;
use mlc_report::{Comparison, Measured, Report as Findings, page, svg};
use std::path::{Path, PathBuf};

/// What `--versus` takes.
#[derive(Debug, Parser)]
#[command(name = "--versus", no_binary_name = true, disable_help_flag = true)]
struct Versus {
    #[command(flatten)]
    code: CodeOptions,
}

pub(super) fn report(arguments: &Report, console: &Console) -> Result<(), Failure> {
    let mut reports = vec![findings(arguments, &arguments.model, &arguments.code, console)?];
    if let Some(path) = &arguments.other {
        let model = Model { path: path.clone(), ..arguments.model.clone() };
        reports.push(findings(arguments, &model, &arguments.code, console)?);
    }
    if let Some(options) = &arguments.versus {
        reports.push(findings(arguments, &arguments.model, &versus(options)?, console)?);
    }
    let (text, extension) = match (arguments.svg, arguments.json, reports.as_slice()) {
        (Some(_), _, [_, _, ..]) => {
            return Err(mismatch("a picture alone is of one model".into()).into());
        }
        (Some(picture), _, [report, ..]) => (draw(picture, report)?, "svg"),
        (None, true, [one, other]) => (Comparison::new(one, other).json(), "json"),
        (None, true, [report, ..]) => (report.json(), "json"),
        (None, ..) => (page::page(&reports), "html"),
        // There is always a first one.
        (Some(_), _, []) => (String::new(), "svg"),
    };
    write(arguments, &text, extension, console)
}

/// The options of the code that `--versus` names.
fn versus(options: &str) -> Result<CodeOptions, Diagnostic> {
    let parsed = Versus::try_parse_from(options.split_whitespace()).map_err(|error| {
        let message = error.to_string();
        let first = message.lines().next().unwrap_or_default();
        mismatch(format!("--versus '{options}': {}", first.trim_start_matches("error: ")))
            .with_help("it takes the options of the code, such as '--target cortex-m4 --optimize size'")
    })?;
    Ok(parsed.code)
}

/// What is told of a page, where a machine has several levels.
const ONE_LEVEL: &str = "a page is about code for";

fn findings(arguments: &Report, model: &Model, code: &CodeOptions, console: &Console) -> Result<Findings, Failure> {
    match archive_bundle(model, code, &arguments.machine, &[])? {
        Some(bundle) => archive_findings(arguments, model, &bundle, console),
        None => model_findings(arguments, model, code, console),
    }
}

fn archive_findings(
    arguments: &Report,
    model: &Model,
    bundle: &Bundle,
    console: &Console,
) -> Result<Findings, Failure> {
    if arguments.versus.is_some() {
        let message = "the archive is compiled: --versus compares what options make of a model";
        return Err(mismatch(message.into()).with_help("give two archives, or an archive and its model").into());
    }
    let file = model.path.display().to_string();
    let named = |fault: Diagnostic| fault.in_file(&file);
    if let Some(target) = bundle.target() {
        expect_one(&target, ONE_LEVEL).map_err(named)?;
    }
    let measured = measured(arguments, bundle, console)?;
    let (report, warnings) = report_archive(&stem(&model.path), bundle, measured.as_ref()).map_err(named)?;
    console.report(&warnings.into_iter().map(named).collect::<Vec<_>>(), &Sources::new());
    Ok(report)
}

/// What each kernel took, if the options ask for it.
fn measured(arguments: &Report, bundle: &Bundle, console: &Console) -> Result<Option<Measured>, Failure> {
    if !arguments.measure {
        return Ok(None);
    }
    let _progress = console.progress("measuring");
    Ok(Some(crate::report::measure(bundle, &arguments.machine.toolchain()?, 0)?))
}

fn model_findings(
    arguments: &Report,
    model: &Model,
    code: &CodeOptions,
    console: &Console,
) -> Result<Findings, Failure> {
    let loaded = load_for(model, code, &[], console)?;
    let options = CompileOptions { explain: true, ..program_options(code, &arguments.machine, console)? };
    expect_one(&options.target, ONE_LEVEL)?;
    let progress = console.progress("compiling");
    let compiled = pipeline::compile(&loaded.graph, &options, &mut |_, _| {});
    drop(progress);
    let compiled = match compiled {
        Ok(compiled) => compiled,
        Err(diagnostics) => return Err(in_model(diagnostics, model, loaded.sources)),
    };
    let measured = match arguments.measure {
        true => measured(arguments, &compiled.bundle()?, console)?,
        false => None,
    };
    Ok(crate::report::report(&stem(&model.path), &loaded, &compiled, measured.as_ref()))
}

fn draw(picture: Picture, report: &Findings) -> Result<String, Diagnostic> {
    let picture = match picture {
        Picture::Graph if report.optimized.nodes.is_empty() => return Err(mismatch("the archive has no graph".into())),
        Picture::Graph => svg::graph(&report.optimized, "optimized"),
        Picture::Memory if report.totals.liveness_bound_bytes.is_none() => {
            return Err(mismatch("the archive doesn't say where its values are in memory".into()));
        }
        Picture::Memory => svg::memory(report),
        Picture::Roofline => {
            svg::roofline(report).ok_or_else(|| mismatch("no kernel of the model multiplies".into()))?
        }
    };
    Ok(svg::alone(&picture))
}

fn write(arguments: &Report, text: &str, extension: &str, console: &Console) -> Result<(), Failure> {
    let default = || PathBuf::from(format!("{}.{extension}", stem(&arguments.model.path)));
    let path = Output::file(&arguments.output).map_or_else(default, Path::to_owned);
    if is_standard_output(&path) {
        return Ok(console.write(text.as_bytes())?);
    }
    let models = std::iter::once(&arguments.model.path).chain(&arguments.other);
    texts::refuse_inputs(&path, models.chain(&arguments.model.weights).map(PathBuf::as_path))?;
    files::write_atomically(&path, text.as_bytes())?;
    console.status(&format!("wrote {}", path.display()));
    Ok(())
}
