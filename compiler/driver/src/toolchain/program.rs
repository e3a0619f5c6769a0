//! [`Program`]: a built model that runs, on this machine or under an emulator of another.

use super::board::Board;
use super::faults::{start_of, temporary};
use super::footprint::Footprint;
use super::guest::Guest;
use super::watch::{self, WatchedResult};
use crate::bundle::Port;
use crate::files;
use mlc_ir::{Code, Diagnostic, Location, Tensor};
use serde::Serialize;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A compiled model as a program. Its files vanish with it.
#[derive(Debug)]
pub struct Program {
    pub(super) folder: TempDir,
    pub(super) executable: PathBuf,
    pub(super) board: Option<&'static Board>,
    pub(super) guest: Option<&'static Guest>,
    /// How long it may run, if not for ever.
    pub(super) limit: Option<Duration>,
    /// Inputs in order.
    pub inputs: Vec<Port>,
    /// Outputs in order.
    pub outputs: Vec<Port>,
    /// Results of kernels that it tells.
    pub results: Vec<WatchedResult>,
    /// How much memory it takes; of programs for boards only, unless they watch kernels.
    pub footprint: Option<Footprint>,
}

/// What one run of a model costs, as an emulated board has counted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Cost {
    /// Executed instructions; on Arm, up to a tick of the timer, which is 40 instructions.
    pub instructions: u64,
    /// Bytes of stack below the caller's.
    pub stack_bytes: u64,
}

/// How a run is told to the program.
enum Mode {
    Run,
    Row,
    Each,
    Bench,
    Profile,
}

impl Mode {
    fn name(&self) -> &'static str {
        match self {
            Mode::Run => "run",
            Mode::Row => "row",
            Mode::Each => "each",
            Mode::Bench => "bench",
            Mode::Profile => "profile",
        }
    }
}

/// What a program has left behind.
struct Remains {
    /// What it counted, one number per line.
    figures: Vec<u64>,
    outputs: Vec<PathBuf>,
    results: Vec<PathBuf>,
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
        Ok(self.execute(&Mode::Run, earlier, &[inputs]).and_then(|remains| self.read_outputs(&remains))?.0)
    }

    /// Runs the model several times in a row, on these inputs each time; gives the last outputs.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_in_a_row(&self, runs: &[&[Tensor]]) -> Result<Vec<Tensor>, Diagnostic> {
        let earlier = u32::try_from(runs.len()).unwrap_or(u32::MAX).saturating_sub(1);
        Ok(self.execute(&Mode::Row, earlier, runs).and_then(|remains| self.read_outputs(&remains))?.0)
    }

    /// Runs the model several times in a row, on these inputs each time; gives the outputs of all runs as tensors with an axis of runs in
    /// front, which [`Program::outputs`] has from then on. An emulated board also says what the last run took.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_each(&mut self, runs: &[&[Tensor]]) -> Result<(Vec<Tensor>, Option<Cost>), Diagnostic> {
        let earlier = u32::try_from(runs.len()).unwrap_or(u32::MAX).saturating_sub(1);
        let remains = self.execute(&Mode::Each, earlier, runs)?;
        for port in &mut self.outputs {
            port.ty.shape.insert(0, runs.len());
        }
        self.read_outputs(&remains)
    }

    /// Runs the model once; an emulated board also says what that took.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn run_counted(&self, inputs: &[Tensor]) -> Result<(Vec<Tensor>, Option<Cost>), Diagnostic> {
        self.execute(&Mode::Run, 0, &[inputs]).and_then(|remains| self.read_outputs(&remains))
    }

    /// Runs the model once, and gives what each kernel has computed beside the outputs, in the order of [`Program::results`]. For programs
    /// of `Toolchain::build_to_watch`.
    ///
    /// # Errors
    /// As [`Program::run`], and when the code shows other results than the archive describes.
    pub fn run_watched(&self, inputs: &[Tensor]) -> Result<(Vec<Tensor>, Vec<Tensor>), Diagnostic> {
        let remains = self.execute(&Mode::Run, 0, &[inputs])?;
        let (outputs, _) = self.read_outputs(&remains)?;
        let results = self.results.iter().zip(&remains.results).map(|(WatchedResult { result, .. }, file)| {
            let bytes = std::fs::read(file).ok().filter(|bytes| bytes.len() == result.span);
            let missing = || failed(format!("the program doesn't show the result '{}' of a kernel", result.node));
            bytes.map(|bytes| result.tensor(&bytes)).ok_or_else(missing)
        });
        Ok((outputs, results.collect::<Result<_, _>>()?))
    }

    fn read_outputs(&self, remains: &Remains) -> Result<(Vec<Tensor>, Option<Cost>), Diagnostic> {
        let mut outputs = Vec::new();
        for (port, file) in self.outputs.iter().zip(&remains.outputs) {
            let bytes = std::fs::read(file).map_err(|error| temporary(&error))?;
            if bytes.len() != port.ty.bytes() {
                return Err(failed(format!("the program wrote {} bytes of output '{}'", bytes.len(), port.name)));
            }
            outputs.push(Tensor::from_le_bytes(port.ty.clone(), &bytes));
        }
        let cost = match (self.board, remains.figures.as_slice()) {
            (None, _) => None,
            (Some(_), &[instructions, stack_bytes]) => Some(Cost { instructions, stack_bytes }),
            (Some(_), _) => return Err(failed("the firmware didn't report its figures")),
        };
        Ok((outputs, cost))
    }

    /// Runs the model several times after a warm-up and returns the nanoseconds of every run, or its executed instructions on an
    /// emulated board. 0 runs: as many as take about a second, but at least 5 and at most 1000; one on a board.
    ///
    /// # Errors
    /// As [`Program::run`].
    pub fn bench(&self, inputs: &[Tensor], runs: u32) -> Result<Vec<u64>, Diagnostic> {
        let times = self.execute(&Mode::Bench, self.runs(runs), &[inputs])?.figures;
        if times.is_empty() { Err(failed("the program didn't report its times")) } else { Ok(times) }
    }

    /// Runs the model several times, as [`Program::bench`] does, and returns the shortest time of each kernel in nanoseconds, or
    /// its executed instructions, in the order in which they run. For programs of `Toolchain::build_to_profile`.
    ///
    /// # Errors
    /// As [`Program::run`], and when the program saw other kernels than the archive describes.
    pub fn bench_kernels(&self, inputs: &[Tensor], runs: u32) -> Result<Vec<u64>, Diagnostic> {
        Ok(self.execute(&Mode::Profile, self.runs(runs), &[inputs])?.figures)
    }

    /// The number of measured runs: what a board counts is the same every time.
    fn runs(&self, runs: u32) -> u32 {
        if self.board.is_some() { runs.max(1) } else { runs }
    }

    /// Runs the program in a folder of its own, on the inputs of one or several runs.
    fn execute(&self, mode: &Mode, runs: u32, rows: &[&[Tensor]]) -> Result<Remains, Diagnostic> {
        rows.iter().try_for_each(|inputs| check_inputs(&self.inputs, inputs))?;
        let run = tempfile::Builder::new().prefix("run-").tempdir_in(self.folder.path());
        // The files are read by the caller, so the folder lives as long as the program's.
        let run = run.map_err(|error| temporary(&error))?.keep();
        for index in 0..self.inputs.len() {
            let file = run.join(format!("input{index}"));
            let bytes = |input: &Tensor| if self.board.is_some() { input.to_le_bytes() } else { native_endian(input) };
            let bytes: Vec<u8> = rows.iter().flat_map(|inputs| bytes(&inputs[index])).collect();
            std::fs::write(file, bytes).map_err(|error| temporary(&error))?;
        }
        let runs = runs.to_string();
        let names = |kind: &'static str, count: usize| (0..count).map(move |index| format!("{kind}{index}"));
        let files: Vec<String> = names("input", self.inputs.len()).chain(names("output", self.outputs.len())).collect();
        let arguments: Vec<&str> = [mode.name(), &runs].into_iter().chain(files.iter().map(String::as_str)).collect();
        let mut command = match (self.board, self.guest) {
            (None, None) => {
                let mut command = Command::new(&self.executable);
                command.args(&arguments);
                command
            }
            (None, Some(guest)) => guest.command(&self.executable, &arguments),
            (Some(board), _) => board.command(&self.executable, &self.folder.path().join("vectors"), &arguments),
        };
        // An emulated board's console is the emulator's standard error, whatever the firmware writes to.
        let (printed, console) = (run.join("printed"), run.join("console"));
        let create = |path: &Path| File::create(path).map_err(|error| temporary(&error));
        command.current_dir(&run).stdin(Stdio::null()).stdout(create(&printed)?).stderr(create(&console)?);
        let child = command.spawn().map_err(|error| self.not_started(&error))?;
        let status = self.wait(child)?;
        let read = |path: &Path| std::fs::read(path).map_err(|error| temporary(&error));
        let said = read(&console)?;
        let said = String::from_utf8_lossy(&said);
        if !status.success() {
            return Err(self.fault(status, &start_of(&said)));
        }
        let printed = read(&printed)?;
        let printed = String::from_utf8_lossy(&printed);
        let figures = if self.board.is_some() { &said } else { &printed };
        let figures = figures.lines().filter_map(|line| line.trim().parse().ok()).collect();
        let outputs = (0..self.outputs.len()).map(|index| run.join(format!("output{index}"))).collect();
        let results = (0..self.results.len()).map(|number| run.join(watch::file_name(number))).collect();
        Ok(Remains { figures, outputs, results })
    }

    fn not_started(&self, error: &std::io::Error) -> Diagnostic {
        let emulator = self.board.map(|board| (board.emulator(), board.help())).or_else(|| {
            let guest = self.guest?;
            Some((*guest.runner().first()?, guest.help()))
        });
        match emulator {
            None => failed(format!("can't start the program: {error}")),
            Some((name, help)) => {
                failed(format!("can't start the emulator '{name}': {}", files::describe(error))).with_help(help)
            }
        }
    }

    /// Waits for the program's end; what may hang is stopped at some time.
    fn wait(&self, mut child: Child) -> Result<ExitStatus, Diagnostic> {
        let Some(limit) = self.limit else { return child.wait().map_err(|error| temporary(&error)) };
        let began = Instant::now();
        loop {
            if let Some(status) = child.try_wait().map_err(|error| temporary(&error))? {
                return Ok(status);
            }
            if began.elapsed() > limit {
                let _ = child.kill();
                let _ = child.wait();
                let seconds = limit.as_secs();
                let Some(board) = self.board else {
                    return Err(failed(format!("the program didn't end within {seconds} seconds")));
                };
                let message = format!("the firmware on '{}' didn't end within {seconds} seconds", board.machine);
                return Err(failed(message).with_note("it hangs, or the model is large for an emulated board"));
            }
            std::thread::sleep(Duration::from_millis(if self.board.is_some() { 5 } else { 1 }));
        }
    }

    /// What to say of a program that failed, which may have said something itself.
    fn fault(&self, status: ExitStatus, said: &str) -> Diagnostic {
        let crashed = || failed(format!("the program crashed ({status})"));
        match self.board {
            None if status.code().is_some() => failed(said),
            None => crashed(),
            Some(board) if said.contains("fault") || said.contains("Lockup") || status.code().is_none() => {
                failed(format!("the firmware on '{}' faulted", board.machine)).with_note(said)
            }
            Some(_) if said.is_empty() => crashed(),
            Some(_) => failed(said),
        }
    }
}

/// Whether there is a tensor of the right type for each input.
///
/// # Errors
/// `MLC0004` when there isn't.
pub(super) fn check_inputs(ports: &[Port], inputs: &[Tensor]) -> Result<(), Diagnostic> {
    let mismatch = |message| Diagnostic::option_mismatch(message);
    if inputs.len() != ports.len() {
        return Err(mismatch(format!("{} inputs given, the model has {}", inputs.len(), ports.len())));
    }
    for (port, input) in ports.iter().zip(inputs) {
        if (input.ty().dtype, &input.ty().shape) != (port.ty.dtype, &port.ty.shape) {
            return Err(mismatch(format!("input '{}' is {}, {} given", port.name, port.ty, input.ty())));
        }
    }
    Ok(())
}

fn failed(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(Code::ToolFailed, Location::default(), message)
}

/// The tensor's bytes as a program that runs on this machine wants them.
pub(super) fn native_endian(tensor: &Tensor) -> Vec<u8> {
    let mut bytes = tensor.to_le_bytes();
    if cfg!(target_endian = "big") {
        for element in bytes.chunks_exact_mut(tensor.ty().dtype.size()) {
            element.reverse();
        }
    }
    bytes
}
