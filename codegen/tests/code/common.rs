//! Builds and runs generated C: many models in one program, so that the C compiler runs once.

pub use crate::sanitizers::{SANITIZERS, c_compiler, sanitizing_compiler};

use crate::unit::merged;
use mlc_codegen::{Execution, Module, Options, ScheduleOptions, Target, VectorSpelling, generate};
use mlc_ir::{DType, Generator, Graph, Tensor, Values};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The targets that every test runs on.
pub fn targets() -> Vec<Target> {
    vec![Target::generic(), Target::host(16), Target::host(32), Target::host(64)]
}

/// The text of all of a module's sources.
pub fn text_of(module: &Module) -> String {
    module.sources.iter().map(|source| source.text.as_str()).collect()
}

/// A microcontroller by its name.
pub fn embedded(name: &str) -> Target {
    Target::embedded().into_iter().find(|target| target.name == name).unwrap_or_else(|| panic!("no target {name}"))
}

/// A machine that runs Linux, by its name.
pub fn computer(name: &str) -> Target {
    Target::computers().into_iter().find(|target| target.name == name).unwrap_or_else(|| panic!("no target {name}"))
}

/// Generates all graphs, runs them on seeded inputs, compares with the evaluator within a relative tolerance; results in half
/// precision within two units in their last place.
pub fn check(graphs: &[Graph], target: &Target, tolerance: f64) -> Vec<Module> {
    check_by(graphs, target, &ScheduleOptions::default(), tolerance)
}

/// The same on several targets, each graph on every other one: every target computes graphs of all kinds.
pub fn check_by_turns(graphs: &[Graph], targets: &[Target], tolerance: f64) {
    for (turn, target) in targets.iter().enumerate() {
        let is_met = |number: usize| (number + number / 7 + turn).is_multiple_of(2);
        let met = graphs.iter().enumerate().filter(|(number, _)| is_met(*number));
        let graphs: Vec<Graph> = met.map(|(_, graph)| graph.clone()).collect();
        check(&graphs, target, tolerance);
    }
}

/// The same where the schedules of some nodes are chosen.
pub fn check_by(graphs: &[Graph], target: &Target, schedules: &ScheduleOptions, tolerance: f64) -> Vec<Module> {
    let mut modules = Vec::new();
    let mut expected = Vec::new();
    let mut input_bytes = Vec::new();
    for (number, graph) in graphs.iter().enumerate() {
        let options = Options {
            model_name: format!("m{number}"),
            target: target.clone(),
            execution: Execution::default(),
            schedules: schedules.clone(),
        };
        modules.push(generate(graph, &options).unwrap_or_else(|errors| panic!("{}: {errors:?}", graph.name)));
        let mut generator = Generator::new(number as u64 + 100);
        let inputs: Vec<Tensor> =
            graph.inputs().iter().map(|&id| generator.tensor(&graph.node(id).results[0])).collect();
        inputs.iter().for_each(|tensor| input_bytes.extend(tensor.to_le_bytes()));
        expected.push(mlc_ir::evaluator::evaluate(graph, &inputs).unwrap());
    }
    let Some(output) = run(&modules, target, &input_bytes) else { return modules };
    let mut rest = &output[..];
    for (graph, results) in graphs.iter().zip(&expected) {
        for (port, tensor) in graph.outputs().iter().zip(results) {
            let (own, behind) = rest.split_at(tensor.ty().bytes());
            rest = behind;
            let found = Tensor::from_le_bytes(tensor.ty().clone(), own);
            compare(
                &format!("{} output {} on {} {}", graph.name, port.name, target.name, target.vector_bytes),
                tensor,
                &found,
                tolerance,
            );
        }
    }
    assert!(rest.is_empty());
    modules
}

fn compare(what: &str, expected: &Tensor, found: &Tensor, tolerance: f64) {
    match (expected.values(), found.values()) {
        (Values::Integer(expected), Values::Integer(found)) => assert_eq!(expected, found, "{what}"),
        _ => {
            let tolerance = match expected.ty().dtype {
                DType::F16 => 2.0 / 1024.0,
                DType::Bf16 => 2.0 / 128.0,
                _ => tolerance,
            };
            for (index, (e, f)) in expected.to_floats().into_iter().zip(found.to_floats()).enumerate() {
                let close = e == f || (e.is_nan() && f.is_nan()) || (e - f).abs() <= tolerance * (1.0 + e.abs());
                assert!(close, "{what}, element {index}: expected {e}, found {f}");
            }
        }
    }
}

/// What turns C into a program, and what runs it.
struct Machine {
    compiler: &'static str,
    flags: Vec<String>,
    /// The emulator's command line, which the program's name ends; empty when the program runs by itself.
    emulator: Vec<&'static str>,
}

impl Machine {
    /// This machine, or an emulated one for vectors that it hasn't.
    fn of(target: &Target) -> Machine {
        if target.vectors == VectorSpelling::Mve {
            return Machine::emulated(target);
        }
        let has_vectors = target.lanes(1) > 1;
        let strict = if has_vectors { "-std=gnu99" } else { "-std=c99 -pedantic -Wconversion" };
        let own = |flag: &&String| flag.starts_with("-ffp-contract=") || has_vectors && flag.starts_with("-m");
        let own = target.c_flags.iter().filter(own).map(String::as_str);
        let (compiler, option) = sanitizing_compiler();
        let flags = strict.split(' ').chain(SANITIZERS).chain(option).chain(own);
        Machine { compiler, flags: flags.map(String::from).collect(), emulator: Vec::new() }
    }

    /// A Cortex-M55 whose files are those of the folder it runs in.
    fn emulated(target: &Target) -> Machine {
        let flags = "--specs=picolibc.specs --crt0=semihost --oslib=semihost -Wl,--gc-sections -Wl,--defsym=__flash=0 \
                     -Wl,--defsym=__flash_size=0x80000 -Wl,--defsym=__ram=0x21000000 -Wl,--defsym=__ram_size=0x400000 \
                     -Wl,--defsym=__stack_size=0x8000 -O1";
        let emulator = "qemu-system-arm -M mps3-an547 -nographic -monitor none -serial none -semihosting-config \
                        enable=on,target=native -kernel";
        Machine {
            compiler: "arm-none-eabi-gcc",
            flags: target.c_flags.iter().cloned().chain(flags.split_whitespace().map(String::from)).collect(),
            emulator: emulator.split_whitespace().collect(),
        }
    }

    /// Whether its tools are there; says which isn't.
    fn is_there(&self) -> bool {
        let tools = [Some(&self.compiler), self.emulator.first()];
        let missing = tools.into_iter().flatten().find(|tool| Command::new(tool).arg("--version").output().is_err());
        if let Some(tool) = missing {
            eprintln!("skipped: there is no `{tool}`");
        }
        missing.is_none()
    }

    /// The command that runs a program. An emulated one that hangs is ended.
    fn command(&self, program: &Path) -> Command {
        if self.emulator.is_empty() {
            return Command::new(program);
        }
        let mut command = Command::new("timeout");
        command.arg("300").args(&self.emulator).arg(program);
        command
    }
}

/// The bytes of all outputs of all models, in order; `None` without a C compiler.
pub fn run(modules: &[Module], target: &Target, inputs: &[u8]) -> Option<Vec<u8>> {
    let machine = Machine::of(target);
    if !machine.is_there() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let (kernels, constants) = merged(modules.iter()).unwrap();
    let files = ["main.c", "kernels.c", "constants.c"];
    for (name, text) in files.iter().zip([harness(modules), kernels, constants]) {
        write(folder.path(), name, text.as_bytes());
    }
    write(folder.path(), "input.bin", inputs);
    let build = Command::new(machine.compiler)
        .current_dir(folder.path())
        .args(&machine.flags)
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-psabi", "-o", "program"])
        .args(files)
        .arg("-lm")
        .output()
        .unwrap();
    if !build.status.success() {
        let kept = folder.keep();
        panic!("{}: {}", kept.display(), String::from_utf8_lossy(&build.stderr).chars().take(3000).collect::<String>());
    }
    let run = machine.command(&folder.path().join("program")).current_dir(folder.path()).output().unwrap();
    if !run.status.success() {
        let kept = folder.keep();
        panic!("{}: {}", kept.display(), String::from_utf8_lossy(&run.stderr));
    }
    Some(std::fs::read(folder.path().join("output.bin")).unwrap())
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    std::fs::write(folder.join(name), bytes).unwrap();
}

/// A program that feeds each model from one file and appends its outputs to another. Buffers are allocated exactly, so that the
/// address sanitizer sees every element out of bounds.
fn harness(modules: &[Module]) -> String {
    let mut text = String::from("#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
    text += "static void *filled(size_t bytes) {\n  void *block = malloc(bytes);\n  memset(block, 0x5a, bytes);\n";
    text += "  return block;\n}\n";
    let mut body = String::new();
    for module in modules {
        let name = &module.model_name;
        let mut parameters = vec!["const void *".to_owned(); module.inputs.len()];
        parameters.extend(vec!["void *".to_owned(); module.outputs.len()]);
        let _ = writeln!(text, "int32_t tvmgen_{name}___tvm_main__({}, uint8_t *);", parameters.join(", "));
        body += "  {\n";
        let mut arguments = Vec::new();
        for (number, port) in module.inputs.iter().enumerate() {
            let _ = writeln!(
                body,
                "    void *in{number} = malloc({0}); if (fread(in{number}, 1, {0}, in) != {0}) return 1;",
                port.ty.bytes()
            );
            arguments.push(format!("in{number}"));
        }
        for (number, port) in module.outputs.iter().enumerate() {
            let _ = writeln!(body, "    void *out{number} = filled({});", port.ty.bytes());
            arguments.push(format!("out{number}"));
        }
        let bytes = module.plan.arena_bytes;
        let _ = writeln!(body, "    uint8_t *arena = filled({});", bytes.max(1));
        let _ = writeln!(body, "    if (tvmgen_{name}___tvm_main__({}, arena) != 0) return 2;", arguments.join(", "));
        for (number, port) in module.outputs.iter().enumerate() {
            let _ = writeln!(body, "    fwrite(out{number}, 1, {}, out); free(out{number});", port.ty.bytes());
        }
        for number in 0..module.inputs.len() {
            let _ = writeln!(body, "    free(in{number});");
        }
        body += "    free(arena);\n  }\n";
    }
    text +=
        "int main(void) {\n  FILE *in = fopen(\"input.bin\", \"rb\");\n  FILE *out = fopen(\"output.bin\", \"wb\");\n";
    text += "  if (!in || !out) return 1;\n";
    text += &body;
    text += "  fclose(in);\n  fclose(out);\n  return 0;\n}\n";
    text
}
