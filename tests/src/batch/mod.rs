//! Many modules in one C program: one call of the C compiler and one process for all of them.

mod unit;

use crate::mode::Mode;
use crate::program::ending;
use mlc_codegen::Module;
use mlc_ir::Tensor;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};
use unit::merged;

/// A module and what it is fed.
pub struct Job<'a> {
    /// The code.
    pub module: &'a Module,
    /// Inputs in order.
    pub inputs: &'a [Tensor],
}

/// What the program does apart from the table of its models. Every buffer ends where an allocation ends, or before guard
/// bytes; arena and outputs hold different rubbish before the first and the second run, which must agree.
const HARNESS: &str = include_str!("harness.c");

/// Compiles all modules into one program and runs it; gives the outputs of each, or what the C compiler or the program says.
/// Where the program fails, its halves are tried until it is known which modules make it fail.
pub fn run_each(jobs: &[Job<'_>], mode: &Mode) -> Vec<Result<Vec<Tensor>, String>> {
    let message = match run(jobs, mode) {
        Ok(outputs) => return outputs.into_iter().map(Ok).collect(),
        Err(message) if jobs.len() < 2 => return jobs.iter().map(|_| Err(message.clone())).collect(),
        Err(message) => message,
    };
    let (one, other) = jobs.split_at(jobs.len() / 2);
    let mut results = run_each(one, mode);
    results.extend(run_each(other, mode));
    if results.iter().all(Result::is_ok) {
        results[0] = Err(format!("only together with the {} models behind it: {message}", jobs.len() - 1));
    }
    results
}

/// Compiles all modules into one program and runs it; gives the outputs of each.
///
/// # Errors
/// What the C compiler or the program says.
pub fn run(jobs: &[Job<'_>], mode: &Mode) -> Result<Vec<Vec<Tensor>>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (kernels, constants) = merged(jobs.iter().map(|job| job.module))?;
    write(folder.path(), "kernels.c", kernels.as_bytes())?;
    write(folder.path(), "constants.c", constants.as_bytes())?;
    write(folder.path(), "main.c", main_source(jobs, mode).as_bytes())?;
    let inputs: Vec<u8> = jobs.iter().flat_map(|job| job.inputs).flat_map(Tensor::to_le_bytes).collect();
    write(folder.path(), "inputs.bin", &inputs)?;
    let mut compiler = Command::new(&mode.build.compiler);
    compiler.current_dir(folder.path()).args(&mode.build.flags).args([
        "-pipe",
        "-o",
        "program",
        "main.c",
        "kernels.c",
        "constants.c",
        "-lm",
    ]);
    succeed(compiler, "the C compiler")?;
    let mut program = Command::new(folder.path().join("program"));
    program.current_dir(folder.path()).env("ASAN_OPTIONS", "detect_leaks=0");
    succeed(program, "the program")?;
    let outputs = std::fs::read(folder.path().join("outputs.bin")).map_err(|error| error.to_string())?;
    split(jobs, &outputs)
}

fn write(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(folder.join(name), bytes).map_err(|error| format!("{name}: {error}"))
}

fn succeed(mut command: Command, what: &str) -> Result<(), String> {
    let Output { status, stderr, .. } = command.output().map_err(|error| format!("{what}: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&stderr);
    let said: Vec<&str> = text.lines().filter(|line| line.to_lowercase().contains("error")).take(3).collect();
    let said = if said.is_empty() { text.lines().take(3).collect() } else { said };
    Err(format!("{what} ends with {}: {}", ending(status), said.join(" | ")))
}

fn split(jobs: &[Job<'_>], mut bytes: &[u8]) -> Result<Vec<Vec<Tensor>>, String> {
    let mut results = Vec::new();
    for job in jobs {
        let mut tensors = Vec::new();
        for port in &job.module.outputs {
            let (own, behind) = bytes.split_at_checked(port.ty.bytes()).ok_or("the program's output is too short")?;
            bytes = behind;
            tensors.push(Tensor::from_le_bytes(port.ty.clone(), own));
        }
        results.push(tensors);
    }
    if bytes.is_empty() { Ok(results) } else { Err("the program's output is too long".into()) }
}

/// The table of the models, each with a function that passes an array of pointers on, and the harness behind it.
fn main_source(jobs: &[Job<'_>], mode: &Mode) -> String {
    let guard = if mode.build.is_sanitized() { 0 } else { 64 };
    let mut text = format!("#define GUARD {guard}\n#include <stddef.h>\n#include <stdint.h>\n\n");
    let mut table = String::new();
    for job in jobs {
        let Module { model_name: name, inputs, outputs, plan, .. } = job.module;
        let parameters: Vec<&str> =
            inputs.iter().map(|_| "const void *").chain(outputs.iter().map(|_| "void *")).collect();
        let arguments: Vec<String> =
            (0..inputs.len() + outputs.len()).map(|index| format!("buffers[{index}]")).collect();
        let comma = if arguments.is_empty() { "" } else { ", " };
        let sizes: Vec<String> = inputs.iter().chain(outputs).map(|port| port.ty.bytes().to_string()).collect();
        let _ = write!(
            text,
            "int32_t tvmgen_{name}___tvm_main__({}{comma}uint8_t *);\n\
             static int32_t run_{name}(void **buffers, uint8_t *arena) {{\n  (void)buffers;\n  \
             return tvmgen_{name}___tvm_main__({}{comma}arena);\n}}\nstatic const size_t sizes_{name}[] = {{{}, 0}};\n",
            parameters.join(", "),
            arguments.join(", "),
            sizes.join(", "),
        );
        let _ = writeln!(
            table,
            "  {{\"{name}\", run_{name}, sizes_{name}, {}, {}, {}, {}}},",
            inputs.len(),
            outputs.len(),
            plan.arena_bytes,
            plan.alignment.max(1),
        );
    }
    let _ = write!(
        text,
        "\nstruct model {{\n  const char *name;\n  int32_t (*run)(void **, uint8_t *);\n  const size_t *sizes;\n  \
         size_t inputs, outputs, arena, alignment;\n}};\nstatic const struct model models[] = {{\n{table}}};\n\n{HARNESS}"
    );
    text
}
