//! Sequences of parts as C: calls of functions one after the other, for the function that runs the whole model or one of the graph
//! executor.
//!
//! A loop or a stripe is a C function of its own, which gets those variables of its caller that it needs, under their names.

use super::arguments::{CallArgument, parameter};
use super::emitter::{Emitter, Scope};
use super::hooks;
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

impl Emitter {
    /// Calls of parts, of which the first has the position `first`, inside of so many loops.
    pub(super) fn sequence(&mut self, scope: Scope<'_>, parts: &[Part], first: usize, depth: usize) -> Calls {
        let mut calls = Calls::default();
        let mut position = first;
        for part in parts {
            // What takes no position has that of the part behind it.
            let is_outermost = depth == 0 && part.positions() > 0;
            let branches = self.shared.branches.iter().find(|own| is_outermost && own.positions.contains(&position));
            match branches.cloned() {
                Some(branches) if branches.positions.start == position => {
                    self.branches(scope, parts, &branches, &mut calls);
                }
                Some(_) => {}
                None => {
                    let hooks = self.part(scope, part, position, depth, &mut calls);
                    calls.text += &hooks;
                }
            }
            position += part.positions();
        }
        calls
    }

    /// The call of a part, and the hooks behind it.
    pub(super) fn part(
        &mut self,
        scope: Scope<'_>,
        part: &Part,
        position: usize,
        depth: usize,
        calls: &mut Calls,
    ) -> String {
        // The function of a call has memory to free, whatever happens.
        let returns = scope.call.is_none() || depth > 0;
        match part {
            Part::Exchange(exchange) => self.exchange(scope, *exchange, calls),
            Part::Fetch(fetch) => self.fetch(scope, fetch, calls),
            Part::Step(step) => {
                let bindings = step.bindings.iter().enumerate();
                let arguments: Vec<CallArgument> =
                    bindings.map(|(number, binding)| self.argument(scope, (position, number), binding)).collect();
                let texts: Vec<String> = arguments.iter().map(|argument| argument.text.clone()).collect();
                calls.used.extend(arguments.into_iter().filter_map(|argument| argument.variable));
                calls.call(step.routine.name(), &texts, part.can_fail(), returns);
                let results = step.results.iter().map(|result| texts[result.binding].as_str()).collect::<Vec<_>>();
                return hooks::calls(scope, position, &results);
            }
            Part::Stripe(code) => {
                let name = self.function_of(scope, &code.name);
                let (text, used) = self.stripe(scope, code, position, &name);
                calls.functions += &text;
                let names: Vec<String> = used.iter().cloned().collect();
                calls.used.extend(used);
                calls.call(&name, &names, part.can_fail(), returns);
            }
            Part::Loop(code) => {
                let name = self.function_of(scope, &code.name);
                let suffix = if depth == 0 { String::new() } else { format!("_{depth}") };
                let writer = LoopWriter { emitter: self, scope, code, position, suffix, used: BTreeSet::new() };
                let (text, used) = writer.function(&name, depth);
                calls.functions += &text;
                let names: Vec<String> = used.iter().cloned().collect();
                calls.used.extend(used);
                calls.call(&name, &names, part.can_fail(), returns);
                // What an inner loop's results lie in isn't known where an outer one ends.
                let results = if depth == 0 { self.results(scope, position, code) } else { Vec::new() };
                return hooks::calls(scope, position, &results.iter().map(String::as_str).collect::<Vec<_>>());
            }
        }
        String::new()
    }

    /// Addresses of the results of a loop that is at this position.
    fn results(&mut self, scope: Scope<'_>, position: usize, code: &Loop) -> Vec<String> {
        let numbers = code.results.iter().map(|result| result.binding);
        numbers.map(|number| self.argument(scope, (position, number), &code.bindings[number]).text).collect()
    }

    /// C symbol of a part's function.
    fn function_of(&mut self, scope: Scope<'_>, name: &str) -> String {
        match (scope.call, self.execution.aot) {
            // The main function's is another one, over other memory.
            (Some(_), Some(_)) => self.names.packed(name),
            _ => name.to_owned(),
        }
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
        let HandedOn { before, turn: end_of_turn, after } = self.handed_on(&states, &next, &inside);
        let bound = code.trip_count.map(|turns| format!("{turn} < {turns}"));
        let going = states.first().filter(|_| code.conditional);
        let going = going.map(|state| format!("*(const uint8_t *){state} != 0"));
        let condition = bound.into_iter().chain(going).collect::<Vec<String>>().join(" && ");
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
             for ({turn} = 0; {condition}; ++{turn}) {{\n{places}{calls}{end_of_turn}  }}\n{after}{end}}}\n",
            code.comment,
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
        self.used.extend(argument.variable.clone());
        argument.as_operand()
    }

    /// `states` and `next` name where a turn reads and writes the values; `inside` are the variables that turns use.
    fn handed_on(&mut self, states: &[String], next: &[String], inside: &BTreeSet<String>) -> HandedOn {
        let code = self.code;
        let mut text = HandedOn::default();
        for (number, (carried, (state, next))) in code.carried.iter().zip(states.iter().zip(next)).enumerate() {
            let [spare, written] = ["spare", "written"].map(|what| format!("{what}{number}{}", self.suffix));
            let [initial, last, other] =
                [carried.initial, carried.last, carried.spare].map(|binding| self.address(binding));
            let _ = writeln!(text.before, "  const void *{state} = {initial};");
            if carried.stays() {
                let _ = writeln!(text.before, "  void *const {next} = {last};");
                let _ = writeln!(text.turn, "    {state} = {next};");
            } else {
                // The last turn of a loop without a condition writes the result.
                let is_even = code.trip_count.is_none_or(|turns| turns.is_multiple_of(2));
                let (first, second) = if is_even { (&other, &last) } else { (&last, &other) };
                let _ = writeln!(text.before, "  void *{next} = {first};\n  void *{spare} = {second};");
                let _ = writeln!(
                    text.turn,
                    "    void *const {written} = {next};\n    {next} = {spare};\n    {spare} = {written};\n    {state} = {written};"
                );
            }
            // Other turns, or none, have left it elsewhere.
            if code.conditional || code.trip_count == Some(0) {
                let copy = format!("(void)memcpy({last}, {state}, {});", carried.bytes);
                let _ = writeln!(text.after, "  if ({state} != (const void *){last}) {{\n    {copy}\n  }}");
            } else if !inside.contains(state) {
                let _ = writeln!(text.after, "  (void){state};");
            }
        }
        text
    }

    /// The address of a turn's slice, in bytes behind a cast.
    fn slice(&mut self, walk: &Walk, turn: &str) -> String {
        let place = match walk.reverse {
            true => format!("({} - {turn})", self.code.trip_count.unwrap_or(0).max(1) - 1),
            false => turn.to_owned(),
        };
        format!("{} + (size_t){place} * {}", self.address(walk.whole), walk.stride)
    }
}
