//! The command line: arguments, commands, exit status.
//!
//! Exit status: 0 done; 1 the model or the data is at fault; 2 the command line is. Every failure is explained on standard
//! error. A panic is a defect of mlc: it is said to be one, and ends with 1.

mod arguments;
mod bindings;
mod catalogue;
mod comparison;
mod compile;
mod console;
mod convert;
mod execute;
mod explore;
mod hardware;
mod inspect;
mod interface;
mod layers;
mod model;
mod modes;
mod operators;
mod opgen;
mod options;
mod packaging;
mod per_layer;
mod project;
mod quantize;
mod ranks;
mod report;
mod results;
mod schedules;
mod shell;
mod simulate;
mod subject;
mod summary;
mod texts;
mod tune;
mod values;
mod verify;
mod version;
mod words;

use crate::pipeline::Failure;
use arguments::{Arguments, Command};
use clap::{CommandFactory, FromArgMatches};
use console::{Console, Record};
use mlc_ir::{Code, Diagnostic, Location};
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

pub use console::Finding;

/// Stack of the thread that does the work. Memory is used as far as it is needed only; models nest deeply.
const STACK_BYTES: usize = 256 << 20;

/// Parses the process's arguments and runs the command; the commit is the one that the program is built from.
pub fn main(commit: &str) -> ExitCode {
    let status = run_process(std::env::args_os(), commit);
    u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Runs the command that arguments ask for, of which the first is the program's name, as that of a process: it prints, and a panic is
/// reported as a defect. `--version` says that it is built from the commit. Gives the exit status.
pub fn run_process(arguments: impl IntoIterator<Item = OsString>, commit: &str) -> i32 {
    let arguments = match parse(arguments, commit) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version go to standard output with status 0, mistakes to standard error with status 2.
            let _ = error.print();
            return error.exit_code();
        }
    };
    let console = Console::new(&arguments.common);
    std::panic::set_hook(Box::new(|panic| {
        Console::defect(&panic.to_string());
    }));
    match start(arguments.command, console).map(JoinHandle::join) {
        Ok(Ok(code)) => code,
        // The hook has said what there is to say of a panic.
        Ok(Err(_)) => 1,
        Err(error) => {
            Console::defect(&error.message);
            1
        }
    }
}

/// What a command has given to the program that asked for it.
#[derive(Debug)]
pub struct Answer {
    /// The exit status that it would have had.
    pub status: i32,
    /// What the command `mlc` prints to standard output.
    pub output: Vec<u8>,
    /// Errors and warnings in order.
    pub findings: Vec<Finding>,
    /// What the command `mlc` prints to standard error besides.
    pub remarks: String,
}

/// Runs a command within a program that has this library: nothing is printed. The arguments are those of the command `mlc`, without
/// its name.
///
/// # Panics
/// Where mlc has a defect.
pub fn answer<A: Into<OsString>>(arguments: impl IntoIterator<Item = A>) -> Answer {
    let program = OsString::from("mlc");
    let record = Arc::new(Mutex::new(Record::default()));
    let status = match parse(std::iter::once(program).chain(arguments.into_iter().map(Into::into)), "unknown") {
        Ok(arguments) => {
            let console = Console::recording(&arguments.common, &record);
            match start(arguments.command, console.clone()) {
                Ok(worker) => worker.join().unwrap_or_else(|defect| std::panic::resume_unwind(defect)),
                Err(error) => fail(&error.into(), &console),
            }
        }
        Err(error) => mistaken(&error, &record),
    };
    let Record { output, findings, remarks } =
        std::mem::take(&mut *record.lock().unwrap_or_else(PoisonError::into_inner));
    Answer { status, output, findings, remarks }
}

fn parse(arguments: impl IntoIterator<Item = OsString>, commit: &str) -> Result<Arguments, clap::Error> {
    let matches = Arguments::command().long_version(version::text(commit)).try_get_matches_from(arguments)?;
    let mut arguments = Arguments::from_arg_matches(&matches)?;
    arguments.command.settle();
    Ok(arguments)
}

/// Records what the parser of the command line says; gives the exit status.
fn mistaken(error: &clap::Error, record: &Arc<Mutex<Record>>) -> i32 {
    let text = error.render().to_string();
    let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
    if error.use_stderr() {
        let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
        let diagnostic = Diagnostic::option_mismatch(message);
        record.findings.push(Finding { diagnostic, text });
    } else {
        record.output.extend_from_slice(text.as_bytes());
    }
    error.exit_code()
}

/// Runs a command in a thread of its own.
fn start(command: Command, console: Console) -> Result<JoinHandle<i32>, Diagnostic> {
    let worker = std::thread::Builder::new().name("mlc".into()).stack_size(STACK_BYTES);
    worker.spawn(move || run(command, &console)).map_err(|error| {
        Diagnostic::error(Code::ToolFailed, Location::default(), format!("can't start a thread: {error}"))
    })
}

fn run(mut command: Command, console: &Console) -> i32 {
    // Descriptions are checked before any model is read.
    let read = command.operators().map_or(Ok(()), |operators| operators.read(console));
    let outcome = read.and_then(|()| match &command {
        Command::Compile(options) => compile::compile(options, console),
        Command::Run(options) if !options.further_models.is_empty() => ranks::run::run(options, console),
        Command::Run(options) => execute::run(options, console),
        Command::Bench(options) => execute::bench(options, console),
        Command::Verify(options) => verify::verify(options, console),
        Command::Simulate(options) => simulate::simulate(options, console),
        Command::Inspect(options) => inspect::inspect(options, console),
        Command::Explore(options) => explore::explore(options, console),
        Command::Tune(options) => tune::tune(options, console),
        Command::Report(options) => report::report(options, console),
        Command::Project(options) => project::project(options, console),
        Command::Quantize(options) => quantize::quantize(options, console),
        Command::Convert(options) => convert::convert(options, console),
        Command::Opgen(options) => opgen::opgen(options, console),
        Command::Explain(options) => catalogue::explain(options, console),
        Command::Passes(options) => catalogue::passes(options, console),
        Command::Ops(options) => catalogue::ops(options, console),
        Command::Targets(options) => catalogue::targets(options, console),
        Command::Completions(options) => shell::completions(options, console),
        Command::Man(options) => shell::manual(options, console),
    });
    match outcome {
        Ok(()) => 0,
        Err(failure) => fail(&failure, console),
    }
}

/// Reports a failure; gives the exit status.
fn fail(failure: &Failure, console: &Console) -> i32 {
    console.report(&failure.diagnostics, &failure.sources);
    console.conclude(&failure.diagnostics);
    exit_code(failure)
}

/// 2 when only the command line is at fault, 1 otherwise.
fn exit_code(failure: &Failure) -> i32 {
    let mut errors = failure.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).peekable();
    if errors.peek().is_some() && errors.all(|diagnostic| diagnostic.code == Code::OptionMismatch) { 2 } else { 1 }
}
