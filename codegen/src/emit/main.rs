//! The functions that run all kernels: one on whole inputs, or one for some rows of an input and one for what is done behind the last row.

use super::arguments::{FED, GIVEN, WORKSPACE, unused};
use super::emitter::{Emitter, Scope};
use super::sequence::Calls;
use super::stripes::indented;
use crate::execution::{Execution, Interface, Pools, WeightsAs, refused};
use crate::lower::{Feeding, Part, Program};
use crate::module::StatePlace;
use mlc_ir::{Diagnostic, Graph};

/// Checks that rows of an input can be given one after the other in the way that is asked for.
///
/// # Errors
/// `MLC0004` when the interface has no place for them.
pub(super) fn check(graph: &Graph, execution: Execution) -> Result<(), Diagnostic> {
    if execution.feed.is_none() {
        return Ok(());
    }
    if execution.aot != Some(Interface::C) || execution.graph {
        let message = "only the C interface takes an input row by row";
        return refused(message, "give '--executor aot --interface-api c', or leave '--feed' out");
    }
    if execution.threads > 1 {
        return refused("rows that come one by one are computed by one thread", "leave '--threads' or '--feed' out");
    }
    if graph.distribution.is_some() {
        return refused("a model that is one of several ranks takes whole inputs", "leave '--feed' out");
    }
    Ok(())
}

/// Checks that the arena can be divided among pieces of memory in the way that is asked for.
///
/// # Errors
/// `MLC0004` when the interface has no place for them.
pub(super) fn check_pools(graph: &Graph, execution: Execution) -> Result<(), Diagnostic> {
    let is_plain = execution.aot == Some(Interface::C) && !execution.graph && execution.pools == Pools::External;
    if is_plain && graph.distribution.is_none() {
        return Ok(());
    }
    let message = "only the C interface of a model that is one takes several memories from its caller";
    refused(message, "give '--executor aot --interface-api c', or leave '--pool' out")
}

/// Parameters of a function: their declarations and names.
#[derive(Default)]
struct Parameters {
    declared: Vec<String>,
    names: Vec<String>,
}

impl Parameters {
    fn add(&mut self, ty: &str, name: &str) {
        self.declared.push(format!("{ty}{name}"));
        self.names.push(name.to_owned());
    }

    fn head(&self, symbol: &str) -> String {
        format!("int32_t {symbol}(\n    {})", self.declared.join(",\n    "))
    }
}

impl Emitter {
    /// What a function that runs kernels takes.
    fn parameters(&self, program: &Program, inputs: usize, outputs: usize) -> Parameters {
        let mut parameters = Parameters::default();
        (0..inputs).for_each(|k| parameters.add("const void *", &format!("input{k}")));
        (0..outputs).for_each(|k| parameters.add("void *", &format!("output{k}")));
        match program.layout.plan.pools.len() {
            0 => parameters.add("uint8_t *", WORKSPACE),
            pools => (0..pools).for_each(|k| parameters.add("uint8_t *", &format!("{WORKSPACE}{k}"))),
        }
        if self.execution.weights == WeightsAs::Binary {
            parameters.add("const uint8_t *", "constants");
        }
        if self.states.iter().any(|state| matches!(state.place, StatePlace::Offset(_))) {
            parameters.add("uint8_t *", "state_pool");
        }
        if self.is_rank {
            parameters.add("const mlc_transport *", "transport");
        }
        parameters
    }

    /// Runs some parts, the first of which has a position: the body of a function with these parameters, and the functions that it calls.
    fn body(&mut self, scope: Scope<'_>, parts: &[Part], start: usize, parameters: &Parameters) -> (String, String) {
        let Calls { text: calls, mut used, functions } = self.sequence(scope, parts, start, 0);
        let begins = self.begins(scope, parts, start, &mut used);
        (status(parts).to_owned() + &begins + &calls + &unused(&parameters.names, &used, "  "), functions)
    }

    /// The main function, behind those of loops.
    pub(super) fn main(&mut self, program: &Program, model: &str, inputs: usize, outputs: usize) -> String {
        let parameters = self.parameters(program, inputs, outputs);
        let head = parameters.head(&self.execution.main_symbol(model));
        let scope = Scope { program, model, call: None };
        let (body, functions) = self.body(scope, &program.parts, 0, &parameters);
        let exchanges = program.parts.iter().any(|part| matches!(part, Part::Exchange(_)));
        let error = match (exchanges, program.calls().is_empty()) {
            (false, true) => "",
            (false, false) => ", or the error of a function",
            (true, true) => ", or the transport's error",
            (true, false) => ", or the error of a function or the transport",
        };
        format!("{functions}\n{head};\n\n/* Runs all kernels. Returns 0{error}. */\n{head} {{\n{body}  return 0;\n}}\n")
    }

    /// The functions that take some rows of an input and that compute the rest, behind those of loops.
    pub(super) fn feed(
        &mut self,
        program: &Program,
        model: &str,
        feeding: Feeding,
        inputs: usize,
        outputs: usize,
    ) -> String {
        let scope = Scope { program, model, call: None };
        let (before, rest) = program.parts.split_at(feeding.part);
        let (stripe, after) = rest.split_at(1);
        let positions = |parts: &[Part]| parts.iter().map(Part::positions).sum::<usize>();
        let [feed, finish] = ["feed", "finish"].map(|what| format!("tvmgen_{model}___tvm_{what}__"));

        let mut parameters = self.parameters(program, inputs, outputs);
        [FED, GIVEN].into_iter().for_each(|name| parameters.add("int32_t ", name));
        let mut first = self.sequence(scope, before, 0, 0);
        if !before.is_empty() {
            let begins = self.begins(scope, before, 0, &mut first.used);
            first.used.insert(FED.to_owned());
            first.text = format!("  if ({FED} == 0) {{\n{}  }}\n", indented(&(begins + &first.text)));
        }
        let rows = self.sequence(scope, stripe, positions(before), 0);
        first.used.extend(rows.used);
        let body = status(before).to_owned() + &first.text + &rows.text + &unused(&parameters.names, &first.used, "  ");
        let head = parameters.head(&feed);
        let mut text = first.functions + &rows.functions;
        text += &format!(
            "\n{head};\n\n/* Runs the turns that the rows from number {FED} to {GIVEN} allow, the first of which input{} points at. \
             Returns 0. */\n{head} {{\n{body}  return 0;\n}}\n",
            self.execution.feed.unwrap_or(0),
        );

        let parameters = self.parameters(program, inputs, outputs);
        let (body, functions) = self.body(scope, after, positions(before) + positions(stripe), &parameters);
        let head = parameters.head(&finish);
        let error = if after.iter().any(Part::can_fail) { ", or the error of a function" } else { "" };
        text += &functions;
        text + &format!(
            "\n{head};\n\n/* Runs all other kernels. Returns 0{error}. */\n{head} {{\n{body}  return 0;\n}}\n"
        )
    }
}

/// The declaration of what parts return, if any of them returns something.
fn status(parts: &[Part]) -> &'static str {
    if parts.iter().any(Part::can_fail) { "  int32_t status;\n" } else { "" }
}
