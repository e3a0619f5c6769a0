//! Sequences of parts as C: calls of functions one after the other, for the function that runs the whole model or one of the graph
//! executor.
//!
//! A loop is a C function of its own, which gets those variables of its caller that it needs, under their names.

use super::arguments::CallArgument;
use super::emitter::{Emitter, Scope};
use crate::lower::homes::BufferId;
use crate::lower::{Loop, Part, Walk};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The C text of calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Statements.
    pub text: String,
    /// Variables of the calling function that they use.
    pub used: BTreeSet<String>,
    /// Functions that they call, beside those of steps.
    pub functions: String,
}

impl Calls {
    /// Calls a function; one that can fail returns a status, at which the calling function ends if `returns`.
    fn call(&mut self, name: &str, arguments: &[String], can_fail: bool, returns: bool) {
        let (before, after) = match (can_fail, returns) {
            (true, true) => ("status = ", ";\n  if (status != 0) {\n    return status;\n  }"),
            (true, false) => ("status = ", ";"),
            (false, _) => ("", ";"),
        };
        let call = format!("  {before}{name}({}){after}", arguments.join(", "));
        let broken = || format!("  {before}{name}(\n      {}){after}", arguments.join(",\n      "));
        let _ = writeln!(self.text, "{}", if call.len() > 100 { broken() } else { call });
    }
}

/// The variables of functions: how their names begin, and how they are declared as parameters.
const VARIABLES: [(&str, &str); 10] = [
    ("constants", "const uint8_t *"),
    ("input", "const void *"),
    ("next", "void *"),
    ("output", "void *"),
    ("row", "void *"),
    ("slice", "const void *"),
    ("state", "const void *"),
    ("tensor", "void *"),
    ("turn", "int64_t "),
    ("workspace", "uint8_t *"),
];

/// The declaration of a variable as a parameter.
fn parameter(name: &str) -> String {
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_');
    let ty = VARIABLES.iter().find(|(known, _)| *known == kind).map_or("", |(_, ty)| *ty);
    format!("{ty}{name}")
}

impl Emitter {
    /// Calls of parts, of which the first has the position `first`, inside of so many loops.
    pub(super) fn sequence(&mut self, scope: Scope<'_>, parts: &[Part], first: usize, depth: usize) -> Calls {
        let mut calls = Calls::default();
        let mut position = first;
        // The function of a call has memory to free, whatever happens.
        let returns = scope.call.is_none() || depth > 0;
        for part in parts {
            match part {
                Part::Exchange(exchange) => self.exchange(scope, *exchange, &mut calls),
                Part::Step(step) => {
                    let bindings = step.bindings.iter().enumerate();
                    let arguments: Vec<CallArgument> =
                        bindings.map(|(number, binding)| self.argument(scope, (position, number), binding)).collect();
                    let texts: Vec<String> = arguments.iter().map(|argument| argument.text.clone()).collect();
                    calls.used.extend(arguments.into_iter().filter_map(|argument| argument.variable));
                    calls.call(step.routine.name(), &texts, part.can_fail(), returns);
                }
                Part::Loop(code) => {
                    let name = match (scope.call, self.execution.aot) {
                        // The main function's is another one, over other memory.
                        (Some(_), Some(_)) => self.names.packed(&code.name),
                        _ => code.name.clone(),
                    };
                    let suffix = if depth == 0 { String::new() } else { format!("_{depth}") };
                    let writer = LoopWriter { emitter: self, scope, code, position, suffix, used: BTreeSet::new() };
                    let (text, used) = writer.function(&name, depth);
                    calls.functions += &text;
                    let names: Vec<String> = used.iter().cloned().collect();
                    calls.used.extend(used);
                    calls.call(&name, &names, part.can_fail(), returns);
                }
            }
            position += part.positions();
        }
        calls
    }
}

/// A loop while its function is written.
struct LoopWriter<'a, 'p> {
    emitter: &'a mut Emitter,
    scope: Scope<'p>,
    code: &'p Loop,
    position: usize,
    /// What names of variables end with, so that those of loops inside of each other differ.
    suffix: String,
    /// Variables of the calling function.
    used: BTreeSet<String>,
}

/// What is written around the calls of a turn for the values that turns hand on.
#[derive(Default)]
struct HandedOn {
    /// Before the first turn.
    before: String,
    /// At the end of each turn.
    turn: String,
    /// After the last turn.
    after: String,
    /// Behind the bound of the turns: the value that ends the loop, if one does.
    condition: String,
}

impl LoopWriter<'_, '_> {
    /// The function with those that it calls, and the variables of its caller that it takes.
    fn function(mut self, name: &str, depth: usize) -> (String, BTreeSet<String>) {
        let code = self.code;
        let turn = format!("turn{}", self.suffix);
        self.emitter.variables.insert(code.turn, (format!("&{turn}"), turn.clone()));
        let slices = self.variables("slice", code.scanned.iter().map(|walk| walk.slice));
        let rows = self.variables("row", code.stacked.iter().map(|walk| walk.slice));
        let states = self.variables("state", code.carried.iter().map(|carried| carried.read));
        let next = self.variables("next", code.carried.iter().map(|carried| carried.written));
        let Calls { text, used: inside, functions } =
            self.emitter.sequence(self.scope, &code.body, self.position + 1, depth + 1);
        let own: BTreeSet<&String> = [&slices, &rows, &states, &next].into_iter().flatten().chain([&turn]).collect();
        self.used.extend(inside.iter().filter(|name| !own.contains(name)).cloned());
        let HandedOn { before, turn: end_of_turn, after, condition } = self.handed_on(&states, &next, &inside);
        let mut places = String::new();
        for (walk, name) in code.scanned.iter().zip(&slices).filter(|(_, name)| inside.contains(*name)) {
            places += &format!("    const void *const {name} = (const uint8_t *){};\n", self.slice(walk, &turn));
        }
        for (walk, name) in code.stacked.iter().zip(&rows).filter(|(_, name)| inside.contains(*name)) {
            places += &format!("    void *const {name} = (uint8_t *){};\n", self.slice(walk, &turn));
        }
        let calls: String = text.lines().map(|line| format!("  {line}\n")).collect();
        let (result, status, end) = match code.body.iter().any(Part::can_fail) {
            true => ("int32_t", "  int32_t status;\n", "  return 0;\n"),
            false => ("void", "", ""),
        };
        let parameters: Vec<String> = self.used.iter().map(|name| parameter(name)).collect();
        let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
        let text = format!(
            "{functions}\n{}static {result} {name}({parameters}) {{\n  int64_t {turn} = 0;\n{status}{before}  \
             for ({turn} = 0; {turn} < {}{condition}; ++{turn}) {{\n{places}{calls}{end_of_turn}  }}\n{after}{end}}}\n",
            code.comment, code.trip_count,
        );
        (text, self.used)
    }

    /// Names the variables of buffers that the loop moves.
    fn variables(&mut self, what: &str, buffers: impl Iterator<Item = BufferId>) -> Vec<String> {
        let mut names = Vec::new();
        for (number, buffer) in buffers.enumerate() {
            let name = format!("{what}{number}{}", self.suffix);
            self.emitter.variables.insert(buffer, (name.clone(), name.clone()));
            names.push(name);
        }
        names
    }

    /// The address that one of the loop's own bindings names.
    fn address(&mut self, number: usize) -> String {
        let argument = self.emitter.argument(self.scope, (self.position, number), &self.code.bindings[number]);
        self.used.extend(argument.variable);
        // Casts bind tighter than sums.
        match argument.text.contains(" + ") && !argument.text.ends_with(')') {
            true => format!("({})", argument.text),
            false => argument.text,
        }
    }

    /// `states` and `next` name where a turn reads and writes the values; `inside` are the variables that turns use.
    fn handed_on(&mut self, states: &[String], next: &[String], inside: &BTreeSet<String>) -> HandedOn {
        let code = self.code;
        let mut text = HandedOn::default();
        for (number, (carried, (state, next))) in code.carried.iter().zip(states.iter().zip(next)).enumerate() {
            let [spare, written] = ["spare", "written"].map(|what| format!("{what}{number}{}", self.suffix));
            let [initial, last, other] =
                [carried.initial, carried.last, carried.spare].map(|binding| self.address(binding));
            // The last turn of a loop without a condition writes the result.
            let (first, second) = if code.trip_count.is_multiple_of(2) { (&other, &last) } else { (&last, &other) };
            let _ = writeln!(text.before, "  const void *{state} = {initial};");
            let _ = writeln!(text.before, "  void *{next} = {first};\n  void *{spare} = {second};");
            let _ = writeln!(
                text.turn,
                "    void *const {written} = {next};\n    {next} = {spare};\n    {spare} = {written};\n    {state} = {written};"
            );
            // Other turns, or none, have left it elsewhere.
            if code.conditional || code.trip_count == 0 {
                let copy = format!("(void)memcpy({last}, {state}, {});", carried.bytes);
                let _ = writeln!(text.after, "  if ({state} != (const void *){last}) {{\n    {copy}\n  }}");
            } else if !inside.contains(state) {
                let _ = writeln!(text.after, "  (void){state};");
            }
        }
        if let (Some(state), true) = (states.first(), code.conditional) {
            text.condition = format!(" && *(const uint8_t *){state} != 0");
        }
        text
    }

    /// The address of a turn's slice, in bytes behind a cast.
    fn slice(&mut self, walk: &Walk, turn: &str) -> String {
        let place = match walk.reverse {
            true => format!("({} - {turn})", self.code.trip_count.max(1) - 1),
            false => turn.to_owned(),
        };
        format!("{} + (size_t){place} * {}", self.address(walk.whole), walk.stride)
    }
}
