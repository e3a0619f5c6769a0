//! Emission: a lowered program as C files and a [`Module`].

mod accesses;
mod arguments;
mod branches;
mod constants;
mod emitter;
mod external;
mod fetch;
mod hooks;
mod main;
mod messages;
mod operators;
mod prices;
mod sequence;
mod states;
mod stripes;

use crate::Options;
use crate::choice::{Choice, Chooser};
use crate::constants::declaration;
use crate::graph::ExecutorGraph;
use crate::loops::parallel::most_turns;
use crate::loops::{Direction, Intrinsics, print};
use crate::lower::{self, Binding, Entry, Layout, Overlay, Part, Point, Program, ResultPlace, Routine, lower};
use crate::module::{KernelResult, KernelSummary, LaidOver, Module, Port, SourceFile};
use crate::names::{Names, fields};
use crate::price::Price;
use crate::threads::{self, Phase};
use constants::Constants;
use emitter::Emitter;
use mlc_ir::{Diagnostic, Graph, Objective, Quantization, TensorType};
pub use prices::{in_all_turns, prices, program_bytes, working_set};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// Generates C for a verified graph.
///
/// # Errors
/// When the target can't run an operator or a data type of the graph; all of them are reported.
pub fn generate(graph: &Graph, options: &Options) -> Result<Module, Vec<Diagnostic>> {
    messages::check(graph, options.execution).map_err(|error| vec![error])?;
    main::check(graph, options.execution).map_err(|error| vec![error])?;
    if options.schedules.fetched_bytes.is_some() {
        fetch::check(options.execution).map_err(|error| vec![error])?;
    }
    threads::check(options.execution, &options.target).map_err(|error| vec![error])?;
    let mut names = Names::new(&options.model_name);
    let chooser = Chooser::new(&options.target, working_set(graph), &options.schedules);
    let mut chooser = chooser.for_threads(options.execution.threads);
    let mut program = lower(graph, options.execution.feed, &mut chooser, &mut names)?;
    chooser.finish()?;
    let pools = &options.schedules.pools;
    if !pools.is_empty() {
        main::check_pools(graph, options.execution).map_err(|error| vec![error])?;
        let accessed = accesses::accessed(&program, &options.target);
        let layout = Layout::in_pools(&program.parts, &program.buffers, options.target.alignment, pools, &accessed);
        program.layout = layout.map_err(|error| vec![error])?;
    }
    let states = states::kept_states(graph, options.execution, &mut names);
    let may_branch = pools.is_empty() && options.target.objective != Objective::Ram;
    let shared = threads::share(&program, &options.target, options.execution.threads, may_branch, &mut names);
    if !shared.branches.is_empty() {
        let together: Vec<Range<usize>> = shared.branches.iter().map(|own| own.positions.clone()).collect();
        program.layout = Layout::beside(&program.parts, &program.buffers, options.target.alignment, &together);
    }
    let mut emitter = Emitter {
        names,
        intrinsics: Intrinsics::new(&options.target),
        execution: options.execution,
        alignment: program.layout.plan.alignment,
        is_rank: graph.distribution.is_some(),
        states,
        variables: BTreeMap::new(),
        constants: Constants::for_target(&options.target),
        in_code_only: false,
        keeps_kernels_apart: options.target.keeps_kernels_apart(),
        shared,
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
    let prices = prices(&program, &options.target);
    let entries = program.entries().into_iter().zip(prices);
    let shared = &emitter.shared;
    let alignment = options.target.alignment;
    let summary = |(entry, price): (Entry<'_>, Price)| KernelSummary {
        split: shared.splits.get(&entry.first).map(|split| split.summary),
        branch: shared.branch(entry.first),
        ..summary(&program, &entry, price, alignment)
    };
    let kernels = entries.map(summary).collect();
    let model = &options.model_name;
    Ok(Module {
        model_name: model.clone(),
        execution: options.execution,
        inputs,
        outputs,
        kernels,
        plan: program.layout.plan,
        considered: program.considered,
        constants: emitter.constants.list,
        states: emitter.states,
        kept,
        levels: Vec::new(),
        ranks,
        graph,
        sources: [SourceFile { name: format!("{model}_lib1.c"), text }].into_iter().chain(foreign).collect(),
    })
}

/// What C for a verified graph could take of memory and time: the programs of which none has less of both than another one, those of
/// least memory first.
///
/// # Errors
/// As [`generate`].
pub fn explore(graph: &Graph, options: &Options) -> Result<Vec<Point>, Vec<Diagnostic>> {
    let mut chooser = Chooser::new(&options.target, working_set(graph), &options.schedules);
    lower::explore(graph, &mut chooser, &Names::new(&options.model_name))
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

fn summary(program: &Program, entry: &Entry<'_>, price: Price, alignment: usize) -> KernelSummary {
    let part = entry.part;
    let label = part.label().cloned().unwrap_or_default();
    let bytes = |binding: &Binding| if let Binding::Scratch { bytes, .. } = binding { *bytes as u64 } else { 0 };
    let parallel_turns = match part {
        Part::Step(step) => match &step.routine {
            Routine::Kernel(function) => most_turns(&function.body),
            Routine::Extern(_) => 1,
        },
        _ => 1,
    };
    let (workspace_bytes, choice) = match part {
        Part::Step(step) => (step.bindings.iter().map(bytes).sum(), step.choice.clone()),
        _ => {
            let own = Layout::within(part, entry.first, &program.buffers, alignment);
            (own.plan.arena_bytes as u64, Choice::default())
        }
    };
    KernelSummary {
        function: part.name().to_owned(),
        node: label.node,
        operator: label.operator,
        origins: label.origins,
        inside: entry.last - entry.first,
        macs: label.macs.saturating_mul(entry.turns()),
        bytes: label.bytes.saturating_mul(entry.turns()),
        workspace_bytes,
        results: if entry.around.is_empty() { part.results().iter().map(result).collect() } else { Vec::new() },
        laid_over: part.overlays().iter().filter_map(|overlay| laid_over(program, overlay)).collect(),
        parallel_turns,
        split: None,
        branch: None,
        price,
        choice,
    }
}

fn laid_over(program: &Program, overlay: &Overlay) -> Option<LaidOver> {
    let offset = |buffer| program.layout.offsets.get(&buffer).map(|&offset: &usize| offset as i64);
    let name = |buffer: usize| program.buffers[buffer].values.first().cloned().unwrap_or_default();
    let distance_bytes = offset(overlay.operand)? - offset(overlay.result)?;
    let direction = overlay.direction(distance_bytes)?;
    Some(LaidOver {
        result: name(overlay.result),
        operand: name(overlay.operand),
        distance_bytes,
        direction: if direction == Direction::Upwards { "upwards" } else { "downwards" },
        least_bytes: overlay.distance(direction)?.least,
    })
}

fn result(ResultPlace { node, slot, view, .. }: &ResultPlace) -> KernelResult {
    KernelResult {
        node: node.clone(),
        slot: *slot,
        dtype: view.dtype.name(),
        shape: view.shape.to_vec(),
        strides: if view.is_dense() { Vec::new() } else { view.strides.to_vec() },
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
        let kernels = self.functions(program);
        let main = match (execution.aot, program.feeding) {
            (Some(_), Some(feeding)) => self.feed(program, model, feeding, inputs.len(), outputs.len()),
            (Some(_), None) => self.main(program, model, inputs.len(), outputs.len()),
            (None, _) => String::new(),
        };
        let (graph, operators) = match execution.graph {
            true => self.operators(program, model, inputs, outputs).map(|(graph, text)| (Some(graph), text))?,
            false => (None, String::new()),
        };
        let states = self.state_memory(model);
        let mut text = format!("/* The kernels of model {model}, made by mlc for target {}. */\n", options.target.name);
        text += "#include <math.h>\n#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n";
        let includes = self.intrinsics.includes();
        let copies = |text: &&String| ["(void)memcpy(", "(void)memset("].iter().any(|call| text.contains(call));
        let fetch = fetch::prelude(program, model);
        if [&main, &operators, &fetch].iter().any(copies) && !includes.contains("<string.h>") {
            text += "#include <string.h>\n";
        }
        if !self.shared.is_empty() {
            text += "#include \"tvm/runtime/c_backend_api.h\"\n";
        }
        if execution.graph {
            text += "#include \"tvm/runtime/c_runtime_api.h\"\n#include \"tvm/runtime/c_backend_api.h\"\n";
        }
        if self.is_rank {
            text += "#include \"mlc/transport.h\"\n";
        }
        text += &includes;
        text += &self.declarations();
        text += &self.intrinsics.prelude();
        if execution.aot.is_some() {
            text += &hooks::prelude(model);
            text += &fetch;
        }
        text += &external::prelude(program, execution);
        text += &states;
        text += &kernels;
        text += &self.message_table(program, model);
        text += &main;
        text += &self.end(program, model);
        text += &operators;
        Ok((text, graph))
    }

    /// The functions of all steps.
    fn functions(&mut self, program: &Program) -> String {
        let mut text = String::new();
        for entry in program.entries() {
            let Part::Step(step) = entry.part else { continue };
            text += "\n";
            text += &match &step.routine {
                Routine::Kernel(_) if self.shared.splits.contains_key(&entry.first) => self.split_function(entry.first),
                Routine::Kernel(function) => print::function(function, self.keeps_kernels_apart, &mut self.intrinsics),
                Routine::Extern(code) => external::function(program, code, &step.bindings, self.execution),
            };
        }
        text
    }

    /// The functions of a step that threads compute, the kernel's own last.
    fn split_function(&mut self, position: usize) -> String {
        let Some(split) = self.shared.splits.get(&position) else { return String::new() };
        let (shares, apart, mut text) = (self.execution.threads, self.keeps_kernels_apart, String::new());
        for Phase { function } in &split.phases {
            text += &print::function(function, apart, &mut self.intrinsics);
            text += &print::launches::task(function, shares);
            text.push('\n');
        }
        let launched = |phase: &'_ Phase| print::Launched { name: phase.function.name.clone(), shares };
        let launched: Vec<print::Launched> = split.phases.iter().map(launched).collect();
        text + &print::launching(&split.function, apart, &launched, &mut self.intrinsics)
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
