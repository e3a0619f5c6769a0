//! `mlc completions` and `mlc man`: what shells and manuals know of the command line.

use super::arguments::Arguments;
use super::catalogue::{Completions, Manual};
use super::console::Console;
use super::words::folder;
use crate::files;
use crate::pipeline::Failure;
use clap::CommandFactory;
use clap_mangen::Man;
use mlc_ir::{Code, Diagnostic, Location};

/// Prints the completions for a shell.
pub(super) fn completions(arguments: &Completions, console: &Console) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "mlc", &mut text);
    Ok(console.write(&text)?)
}

/// Writes a page for the command and one for each of its commands.
pub(super) fn manual(arguments: &Manual, console: &Console) -> Result<(), Failure> {
    let output = folder(arguments.output.clone())?;
    let mut command = Arguments::command();
    // It is built before its parts are taken, so that these know what all of them have in common.
    command.build();
    let parts: Vec<clap::Command> =
        command.get_subcommands().filter(|part| part.get_name() != "help").cloned().collect();
    let mut pages = Vec::new();
    for page in std::iter::once(command).chain(parts).map(Man::new) {
        let mut text = Vec::new();
        page.render(&mut text).map_err(|error| {
            Diagnostic::error(Code::FileUnwritable, Location::default(), format!("can't write a page: {error}"))
        })?;
        pages.push((page.get_filename(), text));
    }
    files::write_folder(&output, pages.iter().map(|(name, text)| (name.as_str(), text.as_slice())))?;
    console.status(&format!("wrote {} pages to {}", pages.len(), output.display()));
    Ok(())
}
