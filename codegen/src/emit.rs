//! Emission: a lowered program as C files and a [`Module`].

mod arguments;
mod constants;
mod emitter;
mod external;
mod loop_operator;
mod messages;
mod operators;
mod prices;
mod states;

use crate::Options;
use crate::choice::Chooser;
use crate::constants::declaration;
use crate::execution::WeightsAs;
use crate::graph::ExecutorGraph;
use crate::loops::{Intrinsics, print};
use crate::lower::{Binding, Program, Routine, Step, lower};
use crate::module::{KeptState, KernelSummary, Module, Port, SourceFile};
use crate::names::{Names, fields};
use crate::price::Price;
use arguments::{CallArgument, unused};
use constants::Constants;
use emitter::Emitter;
use mlc_ir::{Diagnostic, Graph, Quantization, State, TensorType};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Generates C for a verified graph.
///
/// # Errors
/// When the target can't run an operator or a data type of the graph; all of them are reported.
pub fn generate(graph: &Graph, options: &Options) -> Result<Module, Vec<Diagnostic>> {
    messages::check(graph, options.execution).map_err(|error| vec![error])?;
    let mut names = Names::new(&options.model_name);
    let mut chooser = Chooser::new(&options.target, prices::working_set(graph), &options.schedules);
    let program = lower(graph, &mut chooser, &mut names)?;
    chooser.finish()?;
    let states = kept_states(graph, &mut names);
    let mut emitter = Emitter {
        names,
        intrinsics: Intrinsics::new(&options.target),
        execution: options.execution,
        alignment: program.plan.alignment,
        states,
        constants: Constants::default(),
        in_code_only: false,
    };
    let inputs = ports(graph.open_inputs().into_iter().map(|number| {
        let node = graph.node(graph.inputs()[number]);
        (&*node.name, &node.results[0], graph.quantization.inputs.get(&number).copied())
    }));
    let outputs = ports(graph.open_outputs().into_iter().map(|number| {
        let output = &graph.outputs()[number];
        (&*output.name, graph.ty(output.value), graph.quantization.outputs.get(&number).copied())
    }));
    external::check(&program, options.execution).map_err(|error| vec![error])?;
    let ranks = messages::summary(graph, &program);
    let (text, graph) = emitter.text(&program, options, &inputs, &outputs).map_err(|error| vec![error])?;
    let kept = external::kept(&program);
    let foreign = external::sources(&program, &options.model_name)?;
    let prices = prices::prices(&program, &options.target);
    let summaries = program.steps.iter().zip(prices).map(|(step, price)| summary(&program, step, price)).collect();
    let model = &options.model_name;
    Ok(Module {
        model_name: model.clone(),
        execution: options.execution,
        inputs,
        outputs,
        kernels: summaries,
        plan: program.plan.clone(),
        constants: emitter.constants.list,
        states: emitter.states,
        kept,
        ranks,
        graph,
        sources: [SourceFile { name: format!("{model}_lib1.c"), text }].into_iter().chain(foreign).collect(),
    })
}

fn kept_states(graph: &Graph, names: &mut Names) -> Vec<KeptState> {
    let state = |state: &State| KeptState {
        symbol: names.symbol(&format!("state_{}", state.name)),
        name: state.name.to_string(),
        initial: state.initial.clone(),
    };
    graph.states.iter().map(state).collect()
}

fn ports<'a>(list: impl Iterator<Item = (&'a str, &'a TensorType, Option<Quantization>)> + Clone) -> Vec<Port> {
    let fields = fields(list.clone().map(|(name, ..)| name));
    let port = |((name, ty, quantization), field): ((&str, &TensorType, _), _)| Port {
        name: name.to_owned(),
        field,
        ty: ty.clone(),
        quantization,
    };
    list.zip(fields).map(port).collect()
}

fn summary(program: &Program, step: &Step, price: Price) -> KernelSummary {
    let node = program.graph.node(step.node);
    let bytes = |binding: &Binding| if let Binding::Scratch { bytes, .. } = binding { *bytes as u64 } else { 0 };
    KernelSummary {
        function: step.routine.name().to_owned(),
        node: node.name.to_string(),
        operator: step.operator.clone(),
        origins: node.origins.iter().map(ToString::to_string).collect(),
        macs: step.macs,
        workspace_bytes: step.bindings.iter().map(bytes).sum(),
        price,
        choice: step.choice.clone(),
    }
}

impl Emitter {
    /// The text of the file of the kernels and what calls them, and the executor's graph, if one is wanted.
    fn text(
        &mut self,
        program: &Program,
        options: &Options,
        inputs: &[Port],
        outputs: &[Port],
    ) -> Result<(String, Option<ExecutorGraph>), Diagnostic> {
        let (model, execution) = (&options.model_name, options.execution);
        // The function of a loop isn't given the pool of constants.
        self.in_code_only = true;
        let kernels = self.functions(program);
        self.in_code_only = false;
        let main = if execution.aot.is_some() { self.main(program, model) } else { String::new() };
        let (graph, operators) = match execution.graph {
            true => self.operators(program, inputs, outputs).map(|(graph, text)| (Some(graph), text))?,
            false => (None, String::new()),
        };
        let states = self.state_memory(model);
        let is_rank = program.graph.distribution.is_some();
        let mut text = format!("/* The kernels of model {model}, made by mlc for target {}. */\n", options.target.name);
        text += "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n";
        let includes = self.intrinsics.includes();
        if kernels.contains("(void)memcpy(") && !includes.contains("<string.h>") {
            text += "#include <string.h>\n";
        }
        if execution.graph {
            text += "#include \"tvm/runtime/c_runtime_api.h\"\n#include \"tvm/runtime/c_backend_api.h\"\n";
        }
        if is_rank {
            text += "#include \"mlc/transport.h\"\n";
        }
        text += &includes;
        text += &self.declarations();
        text += &self.intrinsics.prelude();
        text += &external::prelude(program, execution);
        text += &states;
        text += &kernels;
        text += &self.message_table(program, model);
        text += &main;
        text += &self.end(program, model);
        text += &operators;
        Ok((text, graph))
    }

    /// The functions of all steps; those of a loop's body come before the loop's.
    fn functions(&mut self, program: &Program) -> String {
        let mut text = String::new();
        for step in &program.steps {
            match &step.routine {
                Routine::Kernel(function) => {
                    text += "\n";
                    text += &print::function(function, &mut self.intrinsics);
                }
                Routine::Loop(code) => {
                    text += &self.functions(&code.body);
                    let (calls, used) = self.calls(&code.body, "");
                    text += "\n";
                    text += &loop_operator::function(code, &calls, &used);
                }
                Routine::Extern(code) => {
                    text += "\n";
                    text += &external::function(program, code, &step.bindings, self.execution);
                }
            }
        }
        text
    }

    /// The calls of all steps with what is done with messages between them, and the variables that they use.
    fn calls(&mut self, program: &Program, model: &str) -> (String, BTreeSet<String>) {
        let mut body = String::new();
        let mut used = BTreeSet::new();
        for (index, step) in program.steps.iter().enumerate() {
            body += &self.exchanges(program, index, model, &mut used);
            let mut arguments = Vec::new();
            for (number, binding) in step.bindings.iter().enumerate() {
                let CallArgument { text, variable } = self.argument(program, (index, number), binding, None);
                arguments.push(text);
                used.extend(variable);
            }
            let name = step.routine.name();
            let (before, after) = match step.routine.can_fail() {
                true => ("status = ", ";\n  if (status != 0) {\n    return status;\n  }"),
                false => ("", ";"),
            };
            let call = format!("  {before}{name}({}){after}", arguments.join(", "));
            let broken = || format!("  {before}{name}(\n      {}){after}", arguments.join(",\n      "));
            let _ = writeln!(body, "{}", if call.len() > 100 { broken() } else { call });
        }
        body += &self.exchanges(program, program.steps.len(), model, &mut used);
        (body, used)
    }

    fn main(&mut self, program: &Program, model: &str) -> String {
        let (inputs, outputs) = (program.graph.open_inputs().len(), program.graph.open_outputs().len());
        let mut parameters: Vec<String> = (0..inputs).map(|k| format!("const void *input{k}")).collect();
        parameters.extend((0..outputs).map(|k| format!("void *output{k}")));
        parameters.push("uint8_t *workspace".into());
        let mut names: Vec<String> = (0..inputs).map(|k| format!("input{k}")).collect();
        names.extend((0..outputs).map(|k| format!("output{k}")));
        names.push("workspace".to_owned());
        if self.execution.weights == WeightsAs::Binary {
            parameters.push("const uint8_t *constants".into());
            names.push("constants".to_owned());
        }
        if program.graph.distribution.is_some() {
            parameters.push("const mlc_transport *transport".into());
            names.push("transport".to_owned());
        }
        let symbol = self.execution.main_symbol(model);
        let head = format!("int32_t {symbol}(\n    {})", parameters.join(",\n    "));
        let (calls, mut used) = self.calls(program, model);
        let status = if program.exchanges.is_empty() && !program.can_fail() { "" } else { "  int32_t status;\n" };
        let mut body = status.to_owned();
        for step in 0..program.steps.len() {
            body += &self.begins(program, step, None, &mut used);
        }
        body += &calls;
        body += &unused(&names, &used, "  ");
        let error = match (program.exchanges.is_empty(), program.can_fail()) {
            (true, false) => "",
            (true, true) => ", or the error of a function",
            (false, false) => ", or the transport's error",
            (false, true) => ", or the error of a function or the transport",
        };
        format!("\n{head};\n\n/* Runs all kernels. Returns 0{error}. */\n{head} {{\n{body}  return 0;\n}}\n")
    }

    fn declarations(&self) -> String {
        let mut text = String::new();
        for constant in self.constants.list.iter().filter(|constant| constant.in_code) {
            let _ = writeln!(text, "{};", declaration(constant));
        }
        if !text.is_empty() {
            text.insert(0, '\n');
        }
        text
    }
}
