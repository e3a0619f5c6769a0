//! Compiled models on this machine: an archive is unpacked, built with the C compiler, and run as a program of its own.
//!
//! The program is the archive's code with a generated `main`, which reads and writes raw tensors. It checks what the code
//! promises: that it writes neither beyond its outputs nor into its inputs.

mod harness;

use crate::bundle::{Bundle, Port};
use crate::{files, targets};
use mlc_ir::{Code, Diagnostic, Location, Tensor};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// How a program is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolchain {
    /// The C compiler, with options of its own if it has any.
    pub compiler: Vec<String>,
}

impl Default for Toolchain {
    fn default() -> Self {
        Toolchain { compiler: vec!["cc".into()] }
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
        if compiler.is_empty() { Toolchain::default() } else { Toolchain { compiler } }
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
    /// `MLC0005` when there is no C compiler, or it refuses the code.
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
        std::fs::write(&main, harness::main(bundle, profile)).map_err(|error| temporary(&error))?;

        let target = targets::find(&bundle.target).unwrap_or_else(mlc_codegen::Target::generic);
        let target = target.with_floating_point(bundle.floating_point);
        let mut compilations = Vec::new();
        let mut objects = Vec::new();
        for (index, source) in bundle.sources().into_iter().chain(["main.c"]).enumerate() {
            let object = folder.path().join(format!("{index}.o"));
            let mut command = self.command();
            if source == "main.c" {
                command.args(["-std=c99", "-O1"]);
            } else {
                command.args(&target.c_flags);
            }
            if profile && source.ends_with("_lib1.c") {
                // The small functions inside the kernels would cost more to watch than they take.
                command.args(["-finstrument-functions", "-finstrument-functions-exclude-function-list=mlc_"]);
            }
            command.args(["-Icodegen/host/include", "-Iruntime/include", "-c", source, "-o"]).arg(&object);
            compilations.push(self.start(command, folder.path())?);
            objects.push(object);
        }
        // All are waited for before a failure is reported, so that none outlives the folder.
        let outputs: Vec<_> = compilations.into_iter().map(Child::wait_with_output).collect();
        for output in outputs {
            self.expect_success(output)?;
        }
        let executable = folder.path().join("program");
        let mut command = self.command();
        command.args(&objects).arg("-o").arg(&executable).arg("-lm");
        self.expect_success(self.start(command, folder.path())?.wait_with_output())?;
        let (inputs, outputs) = (bundle.inputs.clone(), bundle.outputs.clone());
        Ok(Program { folder, executable, inputs, outputs })
    }

    fn start(&self, mut command: Command, folder: &Path) -> Result<Child, Diagnostic> {
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| {
            let name = self.compiler.first().map_or("cc", String::as_str);
            let message = format!("can't start the C compiler '{name}': {}", files::describe(&error));
            Diagnostic::error(Code::ToolFailed, Location::default(), message)
                .with_help("install a C compiler such as gcc or clang, or name one in the variable CC")
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
        Err(Diagnostic::error(Code::ToolFailed, Location::default(), message).with_note(start_of(&said)))
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

/// A compiled model as a program of this machine. Its files vanish with it.
#[derive(Debug)]
pub struct Program {
    folder: TempDir,
    executable: PathBuf,
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
}

impl Program {
    /// Runs the model once.
    ///
    /// # Errors
    /// `MLC0004` when the inputs don't fit, `MLC0005` when the program fails or breaks a promise.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Diagnostic> {
        self.run_after(inputs, 0)
    }

    /// Runs the model once, after some earlier runs on the same inputs, which matter to a model that has states.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_after(&self, inputs: &[Tensor], earlier: u32) -> Result<Vec<Tensor>, Diagnostic> {
        let output_files = self.execute("run", earlier, inputs)?.1;
        let mut outputs = Vec::new();
        for (port, file) in self.outputs.iter().zip(output_files) {
            let bytes = std::fs::read(&file).map_err(|error| temporary(&error))?;
            if bytes.len() != port.ty.bytes() {
                return Err(failed(format!("the program wrote {} bytes of output '{}'", bytes.len(), port.name)));
            }
            outputs.push(Tensor::from_le_bytes(port.ty.clone(), &bytes));
        }
        Ok(outputs)
    }

    /// Runs the model several times after a warm-up and returns the nanoseconds of every run. 0 runs: as many as take about
    /// a second, but at least 5 and at most 1000.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn bench(&self, inputs: &[Tensor], runs: u32) -> Result<Vec<u64>, Diagnostic> {
        let (output, _) = self.execute("bench", runs, inputs)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let times: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        match times {
            Ok(times) if !times.is_empty() => Ok(times),
            _ => Err(failed("the program didn't report its times")),
        }
    }

    /// Runs the model several times, as [`Program::bench`] does, and returns the shortest time of each kernel in nanoseconds,
    /// in the order in which they run. For programs of [`Toolchain::build_to_profile`].
    ///
    /// # Errors
    /// As [`Program::run`], and when the program saw other kernels than the archive describes.
    pub fn bench_kernels(&self, inputs: &[Tensor], runs: u32) -> Result<Vec<u64>, Diagnostic> {
        let (output, _) = self.execute("profile", runs, inputs)?;
        let text = String::from_utf8_lossy(&output.stdout);
        text.split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map_err(|_| failed("the program reported no times"))
    }

    /// Runs the program; returns what it printed and the files of its outputs.
    fn execute(&self, mode: &str, runs: u32, inputs: &[Tensor]) -> Result<(Output, Vec<PathBuf>), Diagnostic> {
        self.check_inputs(inputs)?;
        let run = tempfile::Builder::new().prefix("run-").tempdir_in(self.folder.path());
        // The files are read by the caller, so the folder lives as long as the program's.
        let run = run.map_err(|error| temporary(&error))?.keep();
        let mut arguments = Vec::new();
        for (index, input) in inputs.iter().enumerate() {
            let file = run.join(format!("input{index}"));
            std::fs::write(&file, native_endian(input)).map_err(|error| temporary(&error))?;
            arguments.push(file);
        }
        let output_files: Vec<PathBuf> =
            (0..self.outputs.len()).map(|index| run.join(format!("output{index}"))).collect();
        let mut command = Command::new(&self.executable);
        command.arg(mode).arg(runs.to_string()).args(&arguments).args(&output_files).stdin(Stdio::null());
        let output = command.output().map_err(|error| failed(format!("can't start the program: {error}")))?;
        match output.status.code() {
            Some(0) => Ok((output, output_files)),
            Some(_) => Err(failed(start_of(&String::from_utf8_lossy(&output.stderr)))),
            None => Err(failed(format!("the program crashed ({})", output.status))),
        }
    }

    fn check_inputs(&self, inputs: &[Tensor]) -> Result<(), Diagnostic> {
        let mismatch = |message| Diagnostic::error(Code::OptionMismatch, Location::default(), message);
        if inputs.len() != self.inputs.len() {
            return Err(mismatch(format!("{} inputs given, the model has {}", inputs.len(), self.inputs.len())));
        }
        for (port, input) in self.inputs.iter().zip(inputs) {
            if (input.ty().dtype, &input.ty().shape) != (port.ty.dtype, &port.ty.shape) {
                return Err(mismatch(format!("input '{}' is {}, {} given", port.name, port.ty, input.ty())));
            }
        }
        Ok(())
    }
}

fn failed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::ToolFailed, Location::default(), message)
}

/// The tensor's bytes as the program, which runs on this machine, wants them.
fn native_endian(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = tensor.to_le_bytes();
    if cfg!(target_endian = "big") {
        for element in bytes.chunks_exact_mut(tensor.ty().dtype.size()) {
            element.reverse();
        }
    }
    bytes
}

#[cfg(test)]
mod tests;
