//! `mlc project`

use super::console::Console;
use super::words::{folder, mismatch};
use crate::bundle::Bundle;
use crate::pipeline::Failure;
use crate::project::Template;
use crate::{files, project};
use clap::Args;
use std::path::PathBuf;

/// `mlc project`
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  mlc project model.tar --template cmake -o demo
  mlc project model.tar --template cargo -o model-crate
  mlc project cortex-m4.tar --template bare-metal -o firmware

The archive is put into the project as it is, in the folder model/; of Arduino, which
compiles no other folder, its sources are in src/.")]
pub struct Project {
    /// The archive: of mlc or of another compiler, with the C interface
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// The build system
    #[arg(long, value_enum)]
    pub template: Template,
    /// Folder of the project, a new one
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Which of the archive's models, if there are several
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub model_name: String,
}

pub(super) fn project(arguments: &Project, console: &Console) -> Result<(), Failure> {
    let bytes = files::read(&arguments.archive)?;
    let file = arguments.archive.display().to_string();
    let bundle = Bundle::parse_model(&bytes, &arguments.model_name).map_err(|error| error.in_file(&file))?;
    if arguments.output.is_dir() && std::fs::read_dir(&arguments.output).is_ok_and(|mut files| files.next().is_some()) {
        let message = format!("the folder '{}' isn't empty", arguments.output.display());
        return Err(mismatch(message)
            .with_help("name a new folder: a project is edited, and nothing of it is overwritten")
            .into());
    }
    let output = folder(arguments.output.clone())?;
    let made = project::project(&bundle, arguments.template).map_err(|error| error.in_file(&file))?;
    files::write_folder(&output, made.iter().map(|(path, bytes)| (path.as_str(), bytes.as_slice())))?;
    console.status(&format!("wrote {} files to {}; what to do next:", made.len(), arguments.output.display()));
    for command in project::next_commands(&bundle, arguments.template, &arguments.output) {
        console.status(&format!("  {command}"));
    }
    Ok(())
}
