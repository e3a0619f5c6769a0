//! The C compiler: how it is found, started, and listened to.

use super::board::{Board, boards};
use super::faults::{start_of, temporary};
use super::guest::{Guest, guests};
use crate::files;
use mlc_ir::{Code, Diagnostic, Location};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// How a program is built and run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The C compiler, with options of its own if it has any.
    pub compiler: Vec<String>,
    /// Options behind those of the target, which they take the place of where they say otherwise.
    pub options: Vec<String>,
    /// The emulated board that programs run on; `None` for this machine.
    pub board: Option<&'static Board>,
    /// The kind of computer whose programs run under an emulator; `None` for this machine's own.
    pub guest: Option<&'static Guest>,
    /// How long a board may run; firmware that hangs never ends by itself.
    pub patience: Duration,
    /// How long a program may run on this machine, if not for ever.
    pub limit: Option<Duration>,
}

/// Time enough for a thousand million instructions on a slow machine.
const PATIENCE: Duration = Duration::from_secs(300);

impl Default for Toolchain {
    fn default() -> Self {
        let compiler = vec!["cc".into()];
        Toolchain { compiler, options: Vec::new(), board: None, guest: None, patience: PATIENCE, limit: None }
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

    /// The cross compiler and the emulator of a machine, by the name of its target.
    pub fn emulated(target: &str) -> Option<Toolchain> {
        if let Some(guest) = guests().find(|guest| guest.target == target) {
            return Some(Toolchain { compiler: vec![guest.compiler()], guest: Some(guest), ..Toolchain::default() });
        }
        let board = boards().find(|board| board.target == target)?;
        let tools = board.target()?.tools?;
        Some(Toolchain { compiler: vec![tools.compiler], board: Some(board), ..Toolchain::default() })
    }

    /// Names of the machines that there is an emulator for.
    pub fn emulated_machines() -> impl Iterator<Item = &'static str> {
        boards().map(|board| board.target).chain(guests().map(|guest| guest.target))
    }

    /// Names of the programs that building and running take.
    pub fn tools(&self) -> Vec<String> {
        let emulator = self.board.map(Board::emulator).or_else(|| self.guest?.runner().first().copied());
        self.compiler.first().cloned().into_iter().chain(emulator.map(String::from)).collect()
    }

    /// What a user can install when a tool of an emulated machine is missing.
    fn help(&self) -> Option<String> {
        self.board.map(Board::help).or_else(|| self.guest.map(Guest::help))
    }

    /// The compiler with its own options.
    pub(super) fn command(&self) -> Command {
        let mut words = self.compiler.iter();
        let mut command = Command::new(words.next().map_or("cc", String::as_str));
        command.args(words);
        command
    }

    /// Whether C code can have the assembler include a file: with a GNU compiler for an ELF machine of little-endian order.
    pub fn includes_files(&self) -> bool {
        let mut command = self.command();
        command.args(["-dM", "-E", "-x", "c", "-"]).stdin(Stdio::null()).stderr(Stdio::null());
        // A compiler that can't be started, or fails, is reported where it is to build something.
        let Ok(output) = command.output() else { return false };
        let said = String::from_utf8_lossy(&output.stdout);
        let defines = |line: &str| {
            said.lines().any(|defined| defined.trim_end() == line || defined.starts_with(&format!("{line} ")))
        };
        let little_endian = "#define __BYTE_ORDER__ __ORDER_LITTLE_ENDIAN__";
        defines("#define __GNUC__") && defines("#define __ELF__") && defines(little_endian)
    }

    /// Starts a tool in a folder; what it prints is kept.
    ///
    /// # Errors
    /// `MLC0005` when there is no such tool.
    pub(super) fn start(&self, mut command: Command, folder: &Path) -> Result<Child, Diagnostic> {
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| {
            let name = self.compiler.first().map_or("cc", String::as_str);
            let message = format!("can't start the C compiler '{name}': {}", files::describe(&error));
            let usual = || "install a C compiler such as gcc or clang, or name one in the variable CC".to_owned();
            let help = self.help().unwrap_or_else(usual);
            Diagnostic::error(Code::ToolFailed, Location::default(), message).with_help(help)
        })
    }

    /// Takes the end of a tool.
    ///
    /// # Errors
    /// `MLC0005` with the tool's own words when it failed.
    pub(super) fn expect_success(&self, output: std::io::Result<Output>) -> Result<(), Diagnostic> {
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
