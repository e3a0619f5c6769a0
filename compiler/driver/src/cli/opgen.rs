//! `mlc opgen`

use super::console::Console;
use super::words::{folder, mismatch};
use crate::pipeline::Failure;
use crate::render::Sources;
use crate::{descriptions, files};
use clap::Args;
use mlc_descriptions::{Arch, CFile, Description, Library, template};
use mlc_ir::{Code, Diagnostic};
use std::path::{Path, PathBuf};

/// `mlc opgen`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc opgen --new hardswish > hardswish.json       start a description
  mlc opgen --check hardswish.json                 is it right? all problems at once
  mlc opgen --check operators/                     all .json and .op files of a folder
  mlc opgen hardswish.json -o hardswish            its C, with the header that it needs

A description says an operator's tensors, parameters, checks and shapes, and has its C.
JSON, JSON with comments and text blocks, and the .op grammar are told apart by content.")]
pub struct Opgen {
    /// Descriptions: files, or folders of .json and .op files
    #[arg(value_name = "DESC", required_unless_present = "new")]
    pub descriptions: Vec<PathBuf>,
    /// Only check the descriptions, and list their operators
    #[arg(long, conflicts_with = "new")]
    pub check: bool,
    /// Print a new description of an operator with this name, with comments
    #[arg(long, value_name = "NAME", conflicts_with = "descriptions")]
    pub new: Option<String>,
    /// The folder for the operators' C; with --new the file of the description, which mustn't exist yet [default: standard
    /// output]
    #[arg(short, long, value_name = "OUT", conflicts_with = "check")]
    pub output: Option<PathBuf>,
}

pub(super) fn opgen(arguments: &Opgen, console: &Console) -> Result<(), Failure> {
    if let Some(name) = &arguments.new {
        return Ok(start(name, arguments, console)?);
    }
    let (library, sources) = descriptions::read(&arguments.descriptions)?;
    console.report(&library.warnings, &sources);
    match &arguments.output {
        _ if arguments.check => console.print(&listing(&library)),
        Some(output) => define(&library, output, &sources, console)?,
        None => {
            let message = "say what to do with the descriptions: --check, or -o and a folder for their C";
            return Err(mismatch(message.into()).into());
        }
    }
    Ok(())
}

/// Writes the C of all operators that run on a processor into a folder.
fn define(library: &Library, output: &Path, sources: &Sources, console: &Console) -> Result<(), Failure> {
    let output = folder(output.to_owned())?;
    let (mut made, mut support, mut left) = (Vec::new(), Vec::<CFile>::new(), Vec::new());
    for description in library.iter() {
        let place = || library.location(description);
        match description.definition() {
            Ok(files) if files.is_empty() => {
                let Description { optype, arch, .. } = description;
                let message = format!("no C is written for '{optype}', whose architecture is {}", arch.name());
                left.push(Diagnostic::note(Code::VariantUnsupported, place(), message));
            }
            Ok(files) => {
                made.extend(files);
                support.extend(description.support());
            }
            Err(message) => left.push(Diagnostic::error(Code::VariantUnsupported, place(), message)),
        }
    }
    if left.iter().any(Diagnostic::is_error) {
        return Err(Failure { diagnostics: left, sources: sources.clone() });
    }
    console.report(&left, sources);
    if made.is_empty() {
        return Err(mismatch("none of the operators runs on a processor: there is no C to write".into()).into());
    }
    support.sort_by(|left, right| left.name.cmp(&right.name));
    support.dedup();
    made.extend(support);
    files::write_folder(&output, made.iter().map(|file| (&*file.name, file.text.as_bytes())))?;
    console.status(&format!("wrote {} files to {}", made.len(), output.display()));
    Ok(())
}

/// Writes a new description.
fn start(name: &str, arguments: &Opgen, console: &Console) -> Result<(), Diagnostic> {
    let text = template(name).map_err(|message| mismatch(format!("--new: {message}")))?;
    match &arguments.output {
        None => console.print(&text),
        Some(path) if path.exists() => {
            let message =
                format!("'{}' exists already: a description is edited, and never overwritten", path.display());
            return Err(mismatch(message));
        }
        Some(path) => {
            files::write_atomically(path, text.as_bytes())?;
            console.status(&format!("wrote {}", path.display()));
        }
    }
    Ok(())
}

/// A line for each operator.
fn listing(library: &Library) -> String {
    library.iter().map(line).collect()
}

fn line(description: &Description) -> String {
    let Description { optype, arch, inputs, outputs, parameters, run, .. } = description;
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let use_ = match (arch, run) {
        (Arch::None, _) => "checks and shapes",
        (Arch::Cpu, Some(body)) if body.text.is_empty() => "no code yet: its `run` is empty",
        (Arch::Cpu, Some(_)) => "checks, shapes and code",
        (Arch::Cpu, None) => "checks and shapes, nothing to run",
        (Arch::Device(_), _) => "read only: no code is generated for this architecture",
    };
    format!(
        "{optype} ({}): {}, {}, {}; {use_}\n",
        arch.name(),
        count(inputs.len(), "input"),
        count(outputs.len(), "output"),
        count(parameters.len(), "parameter")
    )
}
