//! Nodes of the operator `loop` as C functions: a `for` around the calls of the body's kernels, over addresses of slices.

use super::arguments::unused;
use crate::lower::{LoopRoutine, Walk};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The C function of a loop. `calls` are the body's kernels, which name the body's inputs, outputs and arena as the main
/// function of a model does; `used` are those that they need.
pub(super) fn function(code: &LoopRoutine, calls: &str, used: &BTreeSet<String>) -> String {
    let (carried, scanned) = (code.carried.len(), code.scanned.len());
    let captured = 1 + carried + scanned..1 + carried + scanned + code.captured;
    let parameters = names("const void *initial", 0..carried)
        .chain(names("const void *scanned", 0..scanned))
        .chain(names("const void *input", captured))
        .chain(names("void *final", 0..carried))
        .chain(names("void *stacked", 0..code.stacked.len()))
        .chain(["uint8_t *scratch".to_owned()]);
    let parameters: Vec<String> = parameters.collect();
    let result = if code.body.can_fail() { "int32_t" } else { "void" };
    let mut text = format!("{}static {result} {}(\n    {}) {{\n", code.comment, code.name, parameters.join(",\n    "));
    text += &before(code);
    let going = if code.conditional { " && *(const uint8_t *)input1 != 0" } else { "" };
    let _ = writeln!(text, "  for (turn = 0; turn < {}{going}; ++turn) {{", code.trip_count);
    let mut inside = Vec::new();
    for (number, walk) in code.scanned.iter().enumerate() {
        let input = format!("input{}", 1 + carried + number);
        let slice = slice(code, walk, &format!("(const uint8_t *)scanned{number}"));
        let _ = writeln!(text, "    const void *const {input} = {slice};");
        inside.push(input);
    }
    for (number, walk) in code.stacked.iter().enumerate() {
        let output = format!("output{}", carried + number);
        let slice = slice(code, walk, &format!("(uint8_t *)stacked{number}"));
        let _ = writeln!(text, "    void *const {output} = {slice};");
        inside.push(output);
    }
    for line in calls.lines() {
        let _ = writeln!(text, "  {line}");
    }
    text += &unused(&inside, used, "    ");
    for number in 0..carried {
        let _ = writeln!(
            text,
            "    void *const written{number} = output{number};\n    output{number} = spare{number};\n    \
             spare{number} = written{number};\n    input{} = written{number};",
            number + 1
        );
    }
    text += "  }\n";
    text += &after(code, used);
    text + if code.body.can_fail() { "  return 0;\n}\n" } else { "}\n" }
}

fn names(what: &str, numbers: std::ops::Range<usize>) -> impl Iterator<Item = String> + '_ {
    numbers.map(move |number| format!("{what}{number}"))
}

/// Definitions: the number of the turn, the arena, and for each carried value where a turn reads and writes it. The last turn
/// of a loop without a condition writes the result.
fn before(code: &LoopRoutine) -> String {
    let arena = if code.arena == 0 { "scratch".to_owned() } else { format!("scratch + {}", code.arena) };
    let mut text = format!("  uint8_t *const workspace = {arena};\n  const void *const input0 = &turn;\n");
    for (number, carried) in code.carried.iter().enumerate() {
        let place = if carried.spare == 0 { "scratch".to_owned() } else { format!("scratch + {}", carried.spare) };
        let (first, second) = match code.trip_count % 2 {
            0 => (place, format!("final{number}")),
            _ => (format!("final{number}"), place),
        };
        let input = number + 1;
        let _ = writeln!(text, "  const void *input{input} = initial{number};");
        let _ = writeln!(text, "  void *output{number} = {first};\n  void *spare{number} = {second};");
    }
    let status = if code.body.can_fail() { "  int32_t status;\n" } else { "" };
    format!("  int64_t turn = 0;\n{status}{text}")
}

/// The address of a turn's slice.
fn slice(code: &LoopRoutine, walk: &Walk, base: &str) -> String {
    let turn = if walk.reverse { format!("({} - turn)", code.trip_count.max(1) - 1) } else { "turn".to_owned() };
    format!("{base} + (size_t){turn} * {}", walk.stride)
}

/// Copies carried values that the last turn, or no turn, left elsewhere.
fn after(code: &LoopRoutine, used: &BTreeSet<String>) -> String {
    let mut text = String::new();
    if code.conditional || code.trip_count == 0 {
        for (number, carried) in code.carried.iter().enumerate() {
            let input = number + 1;
            let copy = format!("(void)memcpy(final{number}, input{input}, {});", carried.bytes);
            let _ = writeln!(text, "  if (input{input} != final{number}) {{\n    {copy}\n  }}");
        }
    }
    let (carried, scanned) = (code.carried.len(), code.scanned.len());
    let captured = 1 + carried + scanned..1 + carried + scanned + code.captured;
    let defined: Vec<String> = names("input", 0..1 + carried).chain(names("input", captured)).collect();
    text + &unused(&defined, used, "  ") + &unused(&["workspace".to_owned()], used, "  ")
}
