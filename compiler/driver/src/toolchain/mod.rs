//! Compiled models at work: an archive is unpacked, built with the C compiler, and run as a program of its own, on this machine
//! or under an emulator of another.
//!
//! The program is the archive's code with a generated `main`, which reads and writes raw tensors. It checks what the code
//! promises: that it writes neither beyond its outputs nor into its inputs.

mod board;
mod call;
mod compiler;
mod faults;
mod firmware;
mod footprint;
mod guest;
mod harness;
mod library;
mod objects;
mod peak;
mod platform;
mod program;
mod ranks;
mod recipe;
mod watch;

pub use board::{Board, boards};
pub(crate) use board::{MEMORY_SCRIPT, START_UP, VECTORS_ONLY};
pub use compiler::Toolchain;
pub use footprint::Footprint;
pub use guest::{Guest, guests};
pub(crate) use library::source as library_source;
pub use program::{Cost, Program};
pub use ranks::{Event, Rank, RanksProgram, RanksRun, Timeline, Transport};
pub use watch::WatchedResult;

use crate::bundle::{Bundle, Call};
pub(crate) use faults::temporary;
use mlc_codegen::{FloatingPoint, Target, levels};
use mlc_ir::Diagnostic;
use recipe::{Recipe, Unit};
use std::path::{Path, PathBuf};
use std::process::Child;
use watch::Watch;

impl Toolchain {
    /// Builds the program of an archive, with the options of its target. The sources are compiled side by side.
    ///
    /// # Errors
    /// `MLC0004` when the code is for another machine, `MLC0005` when there is no C compiler, or it refuses the code, `MLC0402` when
    /// the program doesn't fit the board.
    pub fn build(&self, bundle: &Bundle) -> Result<Program, Diagnostic> {
        self.build_with(bundle, Watch::Nothing)
    }

    /// Builds a program that can also tell the time of each kernel ([`Program::bench_kernels`]), by the hooks of the generated code: to ask for
    /// the time costs some ten nanoseconds a kernel.
    ///
    /// # Errors
    /// As [`Toolchain::build`], and `MLC0004` when the archive's code has no hooks.
    pub fn build_to_profile(&self, bundle: &Bundle) -> Result<Program, Diagnostic> {
        expect_hooks(bundle, "the times of kernels can't be taken")?;
        self.build_with(bundle, Watch::Times)
    }

    /// Builds a program that also tells what each kernel has computed ([`Program::run_watched`]), by the hooks of the generated code.
    ///
    /// # Errors
    /// As [`Toolchain::build`], and `MLC0004` when the archive doesn't say where its kernels' results are.
    pub fn build_to_watch(&self, bundle: &Bundle) -> Result<Program, Diagnostic> {
        expect_hooks(bundle, "the results of kernels can't be seen")?;
        self.build_with(bundle, Watch::Results)
    }

    fn build_with(&self, bundle: &Bundle, watch: Watch) -> Result<Program, Diagnostic> {
        library::refuse_ranks(bundle)?;
        let folder = tempfile::Builder::new().prefix("mlc-").tempdir().map_err(|error| temporary(&error))?;
        bundle.unpack(folder.path()).map_err(|error| temporary(&error))?;
        let text = harness::main(bundle, watch, self.board, folder.path());
        let generic = || Target::generic().with_floating_point(FloatingPoint::default());
        let flags = self.flags(&bundle.target().unwrap_or_else(generic))?;
        let objects = self.compile_model(bundle, folder.path(), &text, &flags, watch)?;
        let executable = folder.path().join("program");
        let footprint = match self.board {
            None => {
                let mut command = self.command();
                if let Some(guest) = self.guest {
                    command.args(&flags).args(guest.link_flags());
                }
                command.args(&objects).arg("-o").arg(&executable).args(recipe::libraries(bundle));
                self.expect_success(self.start(command, folder.path())?.wait_with_output())?;
                None
            }
            Some(board) => {
                self.link_firmware(board, &flags, &objects, &executable)?;
                // The last object is that of `main.c`; what watches the kernels is there, too.
                let own = objects.split_last().map_or(&*objects, |(_, own)| own);
                match watch {
                    Watch::Times | Watch::Calls | Watch::Results => None,
                    Watch::Nothing => Some(self.measure(board, bundle, &flags, own, &folder.path().join("model"))?),
                }
            }
        };
        let (inputs, outputs) = (bundle.inputs.clone(), bundle.outputs.clone());
        let limit = if self.board.is_some() { Some(self.patience) } else { self.limit };
        let (board, guest) = (self.board, self.guest);
        let results = if watch == Watch::Results { watch::watched_results(bundle) } else { Vec::new() };
        Ok(Program { folder, executable, board, guest, limit, inputs, outputs, results, footprint })
    }

    /// Compiles an archive that is unpacked in a folder, and `main` as its `main.c`; gives the objects, that of `main.c` last.
    fn compile_model(
        &self,
        bundle: &Bundle,
        folder: &Path,
        main: &str,
        flags: &[String],
        watch: Watch,
    ) -> Result<Vec<PathBuf>, Diagnostic> {
        std::fs::write(folder.join("main.c"), main).map_err(|error| temporary(&error))?;
        let recipe = Recipe::new(bundle, folder, flags, self)?;
        let mut compilations = Vec::new();
        let mut objects: Vec<PathBuf> = bundle.objects().into_iter().map(|path| folder.join(path)).collect();
        for (index, Unit { source, flags }) in recipe.units.iter().enumerate() {
            let object = folder.join(format!("{index}.o"));
            let mut command = self.command();
            command.args(flags);
            if source.ends_with("_lib1.c") {
                command.args(watch.flags(&bundle.model.name));
            }
            command.args(&recipe.includes).args(["-c", source, "-o"]).arg(&object);
            compilations.push(self.start(command, folder)?);
            objects.push(object);
        }
        // All are waited for before a failure is reported, so that none outlives the folder.
        let outputs: Vec<_> = compilations.into_iter().map(Child::wait_with_output).collect();
        for output in outputs {
            self.expect_success(output)?;
        }
        Ok(objects)
    }
}

/// Refuses an archive whose code has no hooks, or doesn't say what they tell of.
fn expect_hooks(bundle: &Bundle, what: &str) -> Result<(), Diagnostic> {
    if let Some(target) = bundle.target() {
        levels::expect_one(&target, "kernels are seen one by one in code for")?;
    }
    if !watch::watched_results(bundle).is_empty() && !matches!(bundle.call, Call::Graph { .. }) {
        return Ok(());
    }
    Err(Diagnostic::option_mismatch(format!("{what} in this archive"))
        .with_help("it takes a model, or an archive with the AOT executor that this version of mlc has made"))
}

#[cfg(test)]
mod tests;
