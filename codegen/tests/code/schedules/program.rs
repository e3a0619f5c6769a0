//! The C program of a batch: it reads the contents of all buffers, runs the kernels, and writes the buffers out again.

use super::case::{Build, Built, Case, Role, Which, addresses, build, overwritable, schedules};
use crate::common::{c_compiler, sanitizing_compiler};
use mlc_codegen::kernels::{Schedule, is_by_pixels};
use mlc_codegen::loops::spelling::c_type;
use mlc_codegen::loops::{Intrinsics, print};
use mlc_ir::{DType, Tensor};
use std::fmt::Write as _;
use std::process::Command;

/// Whether there is a C compiler; says so when there isn't.
pub fn compiler_is_there() -> bool {
    let there = Command::new(c_compiler()).arg("--version").output().is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("skipped: no C compiler");
    }
    there
}

const HEAD: &str =
    "#include <math.h>\n#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n";

const MAIN_HEAD: &str = "
static void *take(FILE *file, size_t bytes) {
  void *memory = malloc(bytes > 0 ? bytes : 1);
  if (memory == NULL || fread(memory, 1, bytes, file) != bytes) {
    exit(2);
  }
  return memory;
}

static void give(FILE *file, void *memory, size_t bytes) {
  if (fwrite(memory, 1, bytes, file) != bytes) {
    exit(3);
  }
  free(memory);
}
";

/// Compiles and runs all cases, by each of their schedules that lets the first result lie where it does, in one program; says
/// which fail.
pub fn run(cases: &[Case], how: &Build) -> Vec<String> {
    let mut intrinsics = Intrinsics::default();
    let (mut kernels, mut calls, mut input) = (String::new(), String::new(), Vec::new());
    let (mut failures, mut builts): (Vec<String>, Vec<(&Case, Built)>) = (Vec::new(), Vec::new());
    for case in cases {
        let built = schedules(case, &how.target).and_then(|schedules| {
            let first = builts.len();
            let allowed = |schedule: &Schedule| {
                (how.which != Which::ByPixels || is_by_pixels(schedule))
                    && case.overwritten.is_none_or(|own| overwritable(case, schedule, &how.target).contains(&own))
            };
            let schedules: Vec<Schedule> = schedules.into_iter().filter(allowed).collect();
            let by = |schedule| build(case, schedule, &how.target);
            let built = schedules.iter().map(by).collect::<Result<Vec<Built>, String>>()?;
            let mut built: Vec<Built> = match how.which {
                Which::Downwards => built.into_iter().filter_map(Built::downwards).collect(),
                Which::All | Which::ByPixels => built,
            };
            for (number, own) in built.iter_mut().enumerate() {
                own.function.name = format!("kernel_{}", first + number);
            }
            Ok(built)
        });
        match built {
            Ok(built) => builts.extend(built.into_iter().map(|built| (case, built))),
            Err(message) => failures.push(message),
        }
    }
    for (_, built) in &builts {
        kernels += "\n";
        kernels += &print::function(&built.function, false, &mut intrinsics);
        calls += &call(built);
        for (memory, ..) in built.own_memory() {
            input.extend(memory.elements.to_le_bytes());
        }
    }
    let main = format!(
        "\nint main(int count, char **names) {{\n  if (count != 3) {{\n    return 1;\n  }}\n  \
         FILE *in = fopen(names[1], \"rb\");\n  FILE *out = fopen(names[2], \"wb\");\n  \
         if (in == NULL || out == NULL) {{\n    return 1;\n  }}\n{calls}  fclose(in);\n  return fclose(out);\n}}\n"
    );
    let text = format!("{HEAD}{}\n{}{kernels}{MAIN_HEAD}{main}", intrinsics.includes(), intrinsics.prelude());
    let output = execute(&text, &input, how);
    let mut rest = &output[..];
    for (case, built) in &builts {
        let mut checked = Ok(());
        for (memory, _, role) in built.own_memory() {
            let (bytes, after) = rest.split_at(memory.elements.ty().bytes());
            rest = after;
            let found = Tensor::from_le_bytes(memory.elements.ty().clone(), bytes);
            checked = checked.and_then(|()| check(case, &memory.elements, &found, *role));
        }
        if let Err(message) = checked {
            failures.push(format!("{message}: {} on {}", built.function.comment.concat(), how.target.name));
        }
    }
    failures
}

fn call(built: &Built) -> String {
    let name = &built.function.name;
    let (mut takes, mut gives, mut arguments) = (String::new(), String::new(), Vec::new());
    for (index, (memory, offset, role)) in built.arguments.iter().enumerate() {
        let bytes = memory.elements.ty().bytes();
        let qualifier = if matches!(role, Role::Constant | Role::Overwritten) { "const " } else { "" };
        let element = c_type(memory.view.dtype);
        if *role == Role::Overwritten {
            let result = built.arguments.iter().position(|(_, _, role)| *role == Role::Result(0)).unwrap();
            arguments.push(format!("({qualifier}{element} *)m{result} + {offset}"));
            continue;
        }
        let _ = writeln!(takes, "    void *m{index} = take(in, {bytes});");
        let _ = writeln!(gives, "    give(out, m{index}, {bytes});");
        arguments.push(format!("({qualifier}{element} *)m{index} + {offset}"));
    }
    format!("  {{\n{takes}    {name}({});\n{gives}  }}\n", arguments.join(", "))
}

fn execute(text: &str, input: &[u8], how: &Build) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("kernels.c"), text).unwrap();
    std::fs::write(path("in.bin"), input).unwrap();
    let own = c_compiler();
    let (compiler, option) = if how.is_sanitized() { sanitizing_compiler() } else { (own.as_str(), None) };
    let mut command = Command::new(compiler);
    command.args(option).args(&how.flags).arg(path("kernels.c")).arg("-o").arg(path("program")).arg("-lm");
    let output = command.output().unwrap();
    if !output.status.success() {
        let kept = folder.keep();
        let message = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = message.lines().take(40).collect();
        panic!("{}: the C compiler refuses the code:\n{}", kept.display(), lines.join("\n"));
    }
    let output = Command::new(path("program")).arg(path("in.bin")).arg(path("out.bin")).output().unwrap();
    if !output.status.success() {
        let kept = folder.keep();
        panic!("{}: the program fails: {}", kept.display(), String::from_utf8_lossy(&output.stderr));
    }
    std::fs::read(path("out.bin")).unwrap()
}

fn check(case: &Case, before: &Tensor, after: &Tensor, role: Role) -> Result<(), String> {
    let number = match role {
        Role::Scratch | Role::Overwritten => return Ok(()),
        Role::Constant if before.to_le_bytes() == after.to_le_bytes() => return Ok(()),
        Role::Constant => return Err("an operand changed".into()),
        Role::Result(number) => number,
    };
    let places = addresses(&case.results[number].view);
    let (found, old) = (after.to_floats(), before.to_floats());
    let expected = case.expected[number].to_floats();
    let exact = case.expected[number].to_integers();
    let dtype = after.ty().dtype;
    let types = case.operands.iter().map(|operand| operand.view.dtype).chain([dtype]);
    let tolerance = types.map(precision).fold(0.0, f64::max);
    for (element, &place) in places.iter().enumerate() {
        let fits = if dtype.is_float() {
            close(tolerance, found[place], expected[element])
        } else {
            after.to_integers()[place] == exact[element]
        };
        if !fits {
            return Err(format!("result {number}[{element}] is {}, not {}", found[place], expected[element]));
        }
    }
    let outside = (0..found.len()).filter(|place| !places.contains(place));
    match outside.into_iter().find(|&place| found[place].to_bits() != old[place].to_bits()) {
        Some(place) => Err(format!("result {number} is written outside of its view, at {place}")),
        None => Ok(()),
    }
}

/// What other roundings on the way may change in a result, relative to it: two units in the last place of halves.
fn precision(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2.0 / 1024.0,
        DType::Bf16 => 2.0 / 128.0,
        DType::F32 => 2e-4,
        _ => 1e-9,
    }
}

fn close(tolerance: f64, found: f64, expected: f64) -> bool {
    found == expected
        || (found.is_nan() && expected.is_nan())
        || (found - expected).abs() <= tolerance * (1.0 + expected.abs())
}
