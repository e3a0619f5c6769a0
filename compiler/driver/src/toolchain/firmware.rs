//! What a cross compiler makes for an emulated board: options, the link against a C library whose files go through the
//! emulator, and the image that tells how much memory the model takes.

use super::board::{Board, MEMORY_SCRIPT, START_UP, VECTORS_ONLY};
use super::compiler::Toolchain;
use super::faults::temporary;
use super::footprint::Footprint;
use crate::bundle::Bundle;
use mlc_codegen::{Target, VectorSpelling};
use mlc_ir::{Code, Diagnostic, Location};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C library whose headers are used.
const LIBRARY: &str = "--specs=picolibc.specs";

impl Toolchain {
    /// Options for the code of a target on what this toolchain builds for.
    ///
    /// # Errors
    /// `MLC0004` when the code is for another machine.
    pub(super) fn flags(&self, target: &Target) -> Result<Vec<String>, Diagnostic> {
        let mismatch = |message| Diagnostic::option_mismatch(message);
        let own = match (self.board, self.guest) {
            (Some(board), _) => board.target(),
            (None, Some(guest)) => guest.target(),
            (None, None) => {
                if target.tools.is_some() {
                    let name = &target.name;
                    let message = format!("the code is for '{name}', which isn't this machine");
                    return Err(mismatch(message).with_help(format!("'--on {name}' runs it under an emulator")));
                }
                return Ok([target.c_flags.as_slice(), &self.options].concat());
            }
        };
        let own = own.unwrap_or_else(Target::generic).with_floating_point(target.floating_point);
        let own = own.with_objective(target.objective);
        let is_for_any = matches!(target.vectors, VectorSpelling::None | VectorSpelling::Either);
        if !is_for_any && target.name != own.name {
            let message = format!("the code is for '{}', which isn't '{}'", target.name, own.name);
            return Err(mismatch(message).with_help(format!("compile the model with '--target {}'", own.name)));
        }
        let library = self.board.map(|_| LIBRARY.to_owned());
        Ok(own.c_flags.into_iter().chain(library).chain(self.options.iter().cloned()).collect())
    }

    /// Links objects to a program for a board.
    pub(super) fn link_firmware(
        &self,
        board: &Board,
        flags: &[String],
        objects: &[PathBuf],
        executable: &Path,
    ) -> Result<(), Diagnostic> {
        self.link(board, flags, &START_UP, objects, executable)?;
        if board.moves_vectors() {
            let mut command = Command::new(self.binary_tool("objcopy"));
            command.args(VECTORS_ONLY).arg(executable).arg(executable.with_file_name("vectors"));
            self.tool(board, command, executable)?;
        }
        Ok(())
    }

    /// Measures the model's own objects together with the library functions that they need, and nothing else.
    pub(super) fn measure(
        &self,
        board: &Board,
        bundle: &Bundle,
        flags: &[String],
        objects: &[PathBuf],
        image: &Path,
    ) -> Result<Footprint, Diagnostic> {
        let entry = format!("-Wl,-e,tvmgen_{}_run", bundle.model.name);
        self.link(board, flags, &["-nostartfiles", "-Wl,--gc-sections", &entry], objects, image)?;
        let main = bundle.model.memory.main.first();
        let constants = main.and_then(|main| usize::try_from(main.constants_size_bytes).ok());
        let size = |files: &[PathBuf]| {
            let mut command = Command::new(self.binary_tool("size"));
            command.arg("-A").args(files);
            self.tool(board, command, image)
        };
        let whole = Footprint::parse(&size(&[image.to_owned()])?, constants.unwrap_or_default());
        let data_bytes = Footprint::parse(&size(objects)?, 0).data_bytes;
        Ok(Footprint { data_bytes, pool_bytes: bundle.workspace_pool_bytes(), ..whole })
    }

    fn link(
        &self,
        board: &Board,
        flags: &[String],
        options: &[&str],
        objects: &[PathBuf],
        image: &Path,
    ) -> Result<(), Diagnostic> {
        let script = image.with_file_name(MEMORY_SCRIPT);
        std::fs::write(&script, board.memory_script()).map_err(|error| temporary(&error))?;
        let mut command = self.command();
        command.args(flags).arg("-T").arg(script).args(options).args(objects).arg("-o").arg(image).arg("-lm");
        self.tool(board, command, image).map(|_| ())
    }

    /// Another tool of the compiler's family.
    fn binary_tool(&self, tool: &str) -> String {
        let compiler = self.compiler.first().map_or("gcc", String::as_str);
        format!("{}{tool}", compiler.strip_suffix("gcc").unwrap_or_default())
    }

    /// Runs a tool; returns what it printed.
    fn tool(&self, board: &Board, command: Command, file: &Path) -> Result<String, Diagnostic> {
        let folder = file.parent().unwrap_or(file);
        let output = self.start(command, folder)?.wait_with_output();
        if let Ok(output) = &output
            && let Some(excess) = overflow(&String::from_utf8_lossy(&output.stderr))
        {
            let message = format!("the model doesn't fit the emulated board '{}': {excess}", board.machine);
            return Err(Diagnostic::error(Code::MemoryExceeded, Location::default(), message));
        }
        let printed = output.as_ref().map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
        let printed = printed.unwrap_or_default();
        self.expect_success(output).map(|()| printed)
    }
}

/// What the linker says of a memory that is too small.
fn overflow(said: &str) -> Option<String> {
    let line = said.lines().find(|line| line.contains("overflowed by"))?;
    let start = line.find("region")?;
    Some(line[start..].replace(['`', '\''], "\"").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflows_are_found() {
        let said =
            "ld: program section `.text' will not fit in region `flash'\nld: region `flash' overflowed by 100 bytes\n";
        assert_eq!(overflow(said).unwrap(), "region \"flash\" overflowed by 100 bytes");
        assert_eq!(overflow("undefined reference"), None);
    }
}
