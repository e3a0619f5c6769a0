//! The command line: arguments, commands, exit status.
//!
//! Exit status: 0 done; 1 the model or the data is at fault; 2 the command line is. Every failure is explained on standard
//! error. A panic is a defect of mlc: it is said to be one, and ends with 1.

mod arguments;
mod bindings;
mod catalogue;
mod compile;
mod console;
mod convert;
mod execute;
mod hardware;
mod inspect;
mod modes;
mod operators;
mod opgen;
mod packaging;
mod project;
mod quantize;
mod ranks;
mod schedules;
mod simulate;
mod subject;
mod texts;
mod values;
mod verify;
mod words;

use crate::pipeline::Failure;
use arguments::{Arguments, Command};
use clap::Parser;
use console::Console;
use mlc_ir::Code;
use std::process::ExitCode;

/// Stack of the thread that does the work. Memory is used as far as it is needed only; models nest deeply.
const STACK_BYTES: usize = 256 << 20;

/// Parses the process's arguments and runs the command.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(mut arguments) => {
            arguments.command.settle();
            arguments
        }
        Err(error) => {
            // Help and version go to standard output with status 0, mistakes to standard error with status 2.
            let _ = error.print();
            return status(error.exit_code());
        }
    };
    let console = Console::new(&arguments.common);
    std::panic::set_hook(Box::new(|panic| {
        Console::defect(&panic.to_string());
    }));
    let worker = std::thread::Builder::new().name("mlc".into()).stack_size(STACK_BYTES);
    match worker.spawn(move || run(arguments.command, &console)).map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => status(code),
        // The hook has said what there is to say of a panic.
        Ok(Err(_)) => status(1),
        Err(error) => {
            Console::defect(&format!("can't start a thread: {error}"));
            status(1)
        }
    }
}

fn status(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
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
        Command::Project(options) => project::project(options, console),
        Command::Quantize(options) => quantize::quantize(options, console),
        Command::Convert(options) => convert::convert(options, console),
        Command::Opgen(options) => opgen::opgen(options, console),
        Command::Explain(options) => catalogue::explain(options, console),
        Command::Passes(options) => catalogue::passes(options, console),
        Command::Ops(options) => catalogue::ops(options, console),
        Command::Targets(options) => catalogue::targets(options, console),
    });
    match outcome {
        Ok(()) => 0,
        Err(failure) => {
            console.report(&failure.diagnostics, &failure.sources);
            console.conclude(&failure.diagnostics);
            exit_code(&failure)
        }
    }
}

/// 2 when only the command line is at fault, 1 otherwise.
fn exit_code(failure: &Failure) -> i32 {
    let mut errors = failure.diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).peekable();
    if errors.peek().is_some() && errors.all(|diagnostic| diagnostic.code == Code::OptionMismatch) { 2 } else { 1 }
}
