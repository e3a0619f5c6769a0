//! Emission: a lowered program as C files and a [`Module`].

mod loops;

use crate::Options;
use crate::constants::{declaration, values};
use crate::loops::spelling::{c_type, harmless};
use crate::loops::{Intrinsics, print};
use crate::lower::homes::BufferKind;
use crate::lower::steps::{Binding, Routine, Step};
use crate::lower::{Program, lower};
use crate::module::{KeptState, KernelSummary, Module, PackedConstant, Port, SourceFile};
use crate::names::{Names, fields};
use mlc_ir::{Attribute, Diagnostic, Graph, Op, State, TensorType};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Generates C for a verified graph.
///
/// # Errors
/// When the target can't run an operator or a data type of the graph; all of them are reported.
pub fn generate(graph: &Graph, options: &Options) -> Result<Module, Vec<Diagnostic>> {
    let mut names = Names::new(&options.model_name);
    let program = lower(graph, &options.target, &mut names)?;
    let states = kept_states(graph, &mut names);
    let (constants, symbols) = (Vec::new(), BTreeMap::new());
    let intrinsics = Intrinsics::new(options.target.floating_point);
    let mut emitter = Emitter { names, intrinsics, states, constants, symbols };
    let kernels = emitter.functions(&program);
    let main = emitter.main(&program, &options.model_name);
    let states = emitter.state_memory(&options.model_name);
    let mut text =
        format!("/* The kernels of model {}, made by mlc for target {}. */\n", options.model_name, options.target.name);
    text += "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n";
    let includes = emitter.intrinsics.includes();
    if kernels.contains("(void)memcpy(") && !includes.contains("<string.h>") {
        text += "#include <string.h>
";
    }
    text += &includes;
    text += &emitter.declarations();
    text += &emitter.intrinsics.prelude();
    text += &states;
    text += &kernels;
    text += &main;
    let summaries = program.steps.iter().map(|step| summary(&program, step)).collect();
    let model = &options.model_name;
    Ok(Module {
        model_name: model.clone(),
        inputs: ports(graph.open_inputs().into_iter().map(|number| {
            let node = graph.node(graph.inputs()[number]);
            (&*node.name, &node.results[0])
        })),
        outputs: ports(graph.open_outputs().into_iter().map(|number| {
            let output = &graph.outputs()[number];
            (&*output.name, graph.ty(output.value))
        })),
        kernels: summaries,
        plan: program.plan.clone(),
        constants: emitter.constants,
        states: emitter.states,
        sources: vec![SourceFile { name: format!("{model}_lib1.c"), text }],
    })
}

/// Statements that tell the C compiler which variables aren't used, of those that arguments of calls may mention.
fn unused(names: &[String], arguments: &[String], indent: &str) -> String {
    let mut text = String::new();
    for name in names {
        let mentions = |text: &String| text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name);
        if !arguments.iter().any(mentions) {
            let _ = writeln!(text, "{indent}(void){name};");
        }
    }
    text
}

fn kept_states(graph: &Graph, names: &mut Names) -> Vec<KeptState> {
    let state = |state: &State| KeptState {
        symbol: names.symbol(&format!("state_{}", state.name)),
        name: state.name.to_string(),
        initial: state.initial.clone(),
    };
    graph.states.iter().map(state).collect()
}

fn ports<'a>(list: impl Iterator<Item = (&'a str, &'a TensorType)> + Clone) -> Vec<Port> {
    let fields = fields(list.clone().map(|(name, _)| name));
    list.zip(fields).map(|((name, ty), field)| Port { name: name.to_owned(), field, ty: ty.clone() }).collect()
}

fn summary(program: &Program, step: &Step) -> KernelSummary {
    let node = program.graph.node(step.node);
    let bytes = |binding: &Binding| if let Binding::Scratch { bytes, .. } = binding { *bytes as u64 } else { 0 };
    KernelSummary {
        function: step.routine.name().to_owned(),
        node: node.name.to_string(),
        operator: step.operator.clone(),
        origins: node.origins.iter().map(ToString::to_string).collect(),
        macs: step.macs,
        workspace_bytes: step.bindings.iter().map(bytes).sum(),
    }
}

struct Emitter {
    names: Names,
    intrinsics: Intrinsics,
    states: Vec<KeptState>,
    constants: Vec<PackedConstant>,
    symbols: BTreeMap<u64, Vec<usize>>,
}

impl Emitter {
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
                    let (calls, used) = self.calls(&code.body);
                    text += "\n";
                    text += &loops::function(code, &calls, &used);
                }
            }
        }
        text
    }

    /// The symbol of a constant; equal ones share it.
    fn constant(&mut self, name: &str, value: &Attribute) -> String {
        let hash = value.content_hash();
        let known = self.symbols.get(&hash).into_iter().flatten();
        if let Some(index) = known.copied().find(|&index| self.constants[index].value == *value) {
            return self.constants[index].symbol.clone();
        }
        let symbol = self.names.symbol(&format!("constant_{name}"));
        self.symbols.entry(hash).or_default().push(self.constants.len());
        self.constants.push(PackedConstant { symbol: symbol.clone(), name: name.to_owned(), value: value.clone() });
        symbol
    }

    fn argument(&mut self, program: &Program, step: usize, number: usize, binding: &Binding) -> String {
        match binding {
            Binding::Packed { name, value } => self.constant(name, value),
            Binding::Scratch { dtype, .. } => {
                let offset = program.scratch[&(step, number)];
                format!("({} *)(workspace + {offset})", c_type(*dtype))
            }
            Binding::Buffer { buffer, offset, dtype, constant } => {
                let element = c_type(*dtype);
                let qualifier = if *constant { "const " } else { "" };
                let moved = |base: String| if *offset == 0 { base } else { format!("{base} + {offset}") };
                match &program.buffers[*buffer].kind {
                    BufferKind::Input(k) => moved(format!("(const {element} *)input{k}")),
                    BufferKind::State(k) => moved(self.states[*k].symbol.clone()),
                    BufferKind::Output(k) => moved(format!("({qualifier}{element} *)output{k}")),
                    BufferKind::Constant(node) => {
                        let node = program.graph.node(*node);
                        let Op::Constant(constant) = &node.op else { return String::new() };
                        let symbol = self.constant(&node.name, &constant.value);
                        moved(symbol)
                    }
                    BufferKind::Arena => {
                        let start = program.offsets[buffer];
                        let bytes = start as i64 + offset * dtype.size() as i64;
                        let address = if bytes == 0 { "workspace".into() } else { format!("(workspace + {bytes})") };
                        format!("({qualifier}{element} *){address}")
                    }
                }
            }
        }
    }

    /// The calls of all steps, and their arguments.
    fn calls(&mut self, program: &Program) -> (String, Vec<String>) {
        let mut body = String::new();
        let mut used: Vec<String> = Vec::new();
        for (index, step) in program.steps.iter().enumerate() {
            let arguments: Vec<String> = step
                .bindings
                .iter()
                .enumerate()
                .map(|(number, binding)| self.argument(program, index, number, binding))
                .collect();
            let name = step.routine.name();
            let call = format!("  {name}({});", arguments.join(", "));
            let broken = || format!("  {name}(\n      {});", arguments.join(",\n      "));
            let _ = writeln!(body, "{}", if call.len() > 100 { broken() } else { call });
            used.extend(arguments);
        }
        (body, used)
    }

    fn main(&mut self, program: &Program, model: &str) -> String {
        let (inputs, outputs) = (program.graph.open_inputs().len(), program.graph.open_outputs().len());
        let mut parameters: Vec<String> = (0..inputs).map(|k| format!("const void *input{k}")).collect();
        parameters.extend((0..outputs).map(|k| format!("void *output{k}")));
        parameters.push("uint8_t *workspace".into());
        let head = format!("int32_t tvmgen_{model}___tvm_main__(\n    {})", parameters.join(",\n    "));
        let (mut body, used) = self.calls(program);
        let names = (0..inputs).map(|k| format!("input{k}"));
        let names = names.chain((0..outputs).map(|k| format!("output{k}"))).chain(["workspace".to_owned()]);
        body += &unused(&names.collect::<Vec<_>>(), &used, "  ");
        format!("\n{head};\n\n/* Runs all kernels. Returns 0. */\n{head} {{\n{body}  return 0;\n}}\n")
    }

    /// The memory of the states, right before the first run, and the function that makes it so again.
    fn state_memory(&mut self, model: &str) -> String {
        if self.states.is_empty() {
            return String::new();
        }
        let (mut memory, mut body) = (String::new(), String::new());
        for state in self.states.clone() {
            let (ty, symbol) = (state.initial.ty(), &state.symbol);
            let (element, elements) = (c_type(ty.dtype), ty.elements());
            let _ = write!(
                memory,
                "\n/* {} {ty} */\nstatic {element} {symbol}[{}]",
                harmless(&state.name),
                elements.max(1)
            );
            let mut value = "0".to_owned();
            if state.initial.bytes().iter().any(|&byte| byte != 0) {
                // Both are numbers of the program: a first run needs no call before it.
                memory += " = {\n";
                memory += &values(&state.initial);
                memory += "}";
                value = format!("{}[k]", self.constant(&state.name, &state.initial));
            }
            memory += ";\n";
            if elements > 0 {
                let _ =
                    writeln!(body, "  for (size_t k = 0; k < {elements}; ++k) {{\n    {symbol}[k] = {value};\n  }}");
            }
        }
        let head = format!("int32_t tvmgen_{model}_reset(void)");
        format!(
            "{memory}\n{head};\n\n/* Makes all states what they were before the first run. Returns 0. */\n{head} {{\n{body}  return 0;\n}}\n"
        )
    }

    fn declarations(&self) -> String {
        let mut text = String::new();
        for constant in &self.constants {
            let _ = writeln!(text, "{};", declaration(constant));
        }
        if !text.is_empty() {
            text.insert(0, '\n');
        }
        text
    }
}
