//! Compiled models at work: an archive is unpacked, built with the C compiler, and run as a program of its own, on this machine
//! or on an emulated board.
//!
//! The program is the archive's code with a generated `main`, which reads and writes raw tensors. It checks what the code
//! promises: that it writes neither beyond its outputs nor into its inputs.

mod board;
mod call;
mod firmware;
mod footprint;
mod harness;
mod objects;
mod platform;
mod program;
mod recipe;

pub use board::{Board, boards};
pub use footprint::Footprint;
pub use program::{Cost, Program};

use crate::bundle::Bundle;
use crate::files;
use mlc_codegen::{FloatingPoint, Target};
use mlc_ir::{Code, Diagnostic, Location};
use recipe::{Recipe, Unit};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// How a program is built and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The C compiler, with options of its own if it has any.
    pub compiler: Vec<String>,
    /// The emulated board that programs run on; `None` for this machine.
    pub board: Option<&'static Board>,
    /// How long a board may run; firmware that hangs never ends by itself.
    pub patience: Duration,
}

/// Time enough for a thousand million instructions on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

impl Default for Toolchain {
    fn default() -> Self {
        Toolchain { compiler: vec!["cc".into()], board: None, patience: PATIENCE }
    }
}

impl Toolchain {
    /// The compiler of a `CC` variable such as `ccache gcc`; the system's `cc` when it is empty. A path counts from the
    /// present folder.
    pub fn from_variable(variable: Option<&str>) -> Toolchain {
        let mut compiler: Vec<String> = variable.unwrap_or_default().split_whitespace().map(String::from).collect();
        if let Some(program) = compiler.first_mut().filter(|program| program.contains('/')) {
            // The compiler runs in another folder.
            if let Some(path) = std::path::absolute(&*program).ok().and_then(|path| path.to_str().map(String::from)) {
                *program = path;
            }
        }
        if compiler.is_empty() { Toolchain::default() } else { Toolchain { compiler, ..Toolchain::default() } }
    }

    /// The cross compiler and the emulated board of a microcontroller, by the name of its target.
    pub fn emulated(target: &str) -> Option<Toolchain> {
        let board = boards().find(|board| board.target == target)?;
        let prefix = board.target()?.tool_prefix.unwrap_or_default();
        Some(Toolchain { compiler: vec![format!("{prefix}gcc")], board: Some(board), ..Toolchain::default() })
    }

    fn command(&self) -> Command {
        let mut words = self.compiler.iter();
        let mut command = Command::new(words.next().map_or("cc", String::as_str));
        command.args(words);
        command
    }

    /// Builds the program of an archive, with the options of its target. The sources are compiled side by side.
    ///
    /// # Errors
    /// `MLC0004` when the code is for another machine, `MLC0005` when there is no C compiler, or it refuses the code, `MLC0402` when
    /// the program doesn't fit the board.
    pub fn build(&self, bundle: &Bundle) -> Result<Program, Diagnostic> {
        self.build_with(bundle, false)
    }

    /// Builds a program that can also tell the time of each kernel ([`Program::bench_kernels`]): the compiler adds a call at
    /// every kernel's begin and end, which costs a few nanoseconds.
    ///
    /// # Errors
    /// As [`Toolchain::build`].
    pub fn build_to_profile(&self, bundle: &Bundle) -> Result<Program, Diagnostic> {
        self.build_with(bundle, true)
    }

    fn build_with(&self, bundle: &Bundle, profile: bool) -> Result<Program, Diagnostic> {
        let folder = tempfile::Builder::new().prefix("mlc-").tempdir().map_err(|error| temporary(&error))?;
        bundle.unpack(folder.path()).map_err(|error| temporary(&error))?;
        let main = folder.path().join("main.c");
        let text = harness::main(bundle, profile, self.board, folder.path());
        std::fs::write(&main, text).map_err(|error| temporary(&error))?;
        let generic = || Target::generic().with_floating_point(FloatingPoint::default());
        let flags = self.flags(&bundle.target().unwrap_or_else(generic))?;
        let recipe = Recipe::new(bundle, folder.path(), &flags, self.board.is_some())?;
        let mut compilations = Vec::new();
        let mut objects: Vec<PathBuf> = bundle.objects().into_iter().map(PathBuf::from).collect();
        for (index, Unit { source, flags }) in recipe.units.iter().enumerate() {
            let object = folder.path().join(format!("{index}.o"));
            let mut command = self.command();
            command.args(flags);
            if profile && source.ends_with("_lib1.c") {
                // The small functions inside the kernels would cost more to watch than they take.
                command.args(["-finstrument-functions", "-finstrument-functions-exclude-function-list=mlc_"]);
            }
            command.args(&recipe.includes).args(["-c", source, "-o"]).arg(&object);
            compilations.push(self.start(command, folder.path())?);
            objects.push(object);
        }
        // All are waited for before a failure is reported, so that none outlives the folder.
        let outputs: Vec<_> = compilations.into_iter().map(Child::wait_with_output).collect();
        for output in outputs {
            self.expect_success(output)?;
        }
        let executable = folder.path().join("program");
        let footprint = match self.board {
            None => {
                let mut command = self.command();
                command.args(&objects).arg("-o").arg(&executable).arg("-lm");
                self.expect_success(self.start(command, folder.path())?.wait_with_output())?;
                None
            }
            Some(board) => {
                self.link_firmware(board, &flags, &objects, &executable)?;
                // The last object is that of `main.c`; what watches the kernels is there, too.
                let own = objects.split_last().map_or(&*objects, |(_, own)| own);
                match profile {
                    true => None,
                    false => Some(self.measure(board, bundle, &flags, own, &folder.path().join("model"))?),
                }
            }
        };
        let (inputs, outputs) = (bundle.inputs.clone(), bundle.outputs.clone());
        Ok(Program { folder, executable, board: self.board, patience: self.patience, inputs, outputs, footprint })
    }

    fn start(&self, mut command: Command, folder: &Path) -> Result<Child, Diagnostic> {
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| {
            let name = self.compiler.first().map_or("cc", String::as_str);
            let message = format!("can't start the C compiler '{name}': {}", files::describe(&error));
            let help = self.board.map_or_else(
                || "install a C compiler such as gcc or clang, or name one in the variable CC".to_owned(),
                Board::help,
            );
            Diagnostic::error(Code::ToolFailed, Location::default(), message).with_help(help)
        })
    }

    fn expect_success(&self, output: std::io::Result<Output>) -> Result<(), Diagnostic> {
        let output = output.map_err(|error| temporary(&error))?;
        if output.status.success() {
            return Ok(());
        }
        let name = self.compiler.join(" ");
        let said = String::from_utf8_lossy(&output.stderr);
        let message = format!("the C compiler '{name}' failed on the generated code ({})", output.status);
        let fault = Diagnostic::error(Code::ToolFailed, Location::default(), message).with_note(start_of(&said));
        let without_library = self.board.filter(|_| said.contains("picolibc.specs"));
        Err(without_library.map_or(fault.clone(), |board| fault.with_help(board.help())))
    }
}

/// The first lines of a tool's message.
fn start_of(text: &str) -> String {
    const LINES: usize = 20;
    let mut lines: Vec<&str> = text.lines().take(LINES + 1).collect();
    if lines.len() > LINES {
        lines[LINES] = "...";
    }
    lines.join("\n")
}

fn temporary(error: &std::io::Error) -> Diagnostic {
    let message = format!("can't use a temporary folder: {}", files::describe(error));
    Diagnostic::error(Code::FileUnwritable, Location::default(), message)
        .with_help("check the space in the folder for temporary files, or set TMPDIR")
}

#[cfg(test)]
mod tests;
