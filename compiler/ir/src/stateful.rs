//! States: makes a model keep values from one run to the next, for data that comes as a stream. It changes the interface, so
//! it is done on request, before the optimiser runs.

use crate::attribute::Attribute;
use crate::diagnostics::{Code, Diagnostic, Location};
use crate::distribution::Transfer;
use crate::folding;
use crate::graph::{Graph, NodeId, State, Value};
use crate::literal::Literal;
use crate::ops::{Op, Recurrent};
use crate::tensor::Tensor;
use crate::types::TensorType;
use indexmap::IndexMap;
use std::collections::BTreeSet;

/// States of more bytes aren't made: generated code holds them in static memory.
const LARGEST: usize = 1 << 28;
/// Most operators that an initial state is computed with.
const LONGEST: usize = 64;

/// Ties an input to an output by name: at the first run the input gets zeros, later on what the output gave at the run before.
///
/// # Errors
/// `MLC0004` when there is no such input or output, or they can't be tied.
pub fn tie(graph: &mut Graph, input: &str, output: &str) -> Result<(), Diagnostic> {
    tie_from(graph, input, output, None)
}

/// Ties an input to an output by name: at the first run the input gets this value, or zeros, later on what the output gave at the
/// run before.
///
/// # Errors
/// `MLC0004` when there is no such input or output, or they can't be tied.
pub fn tie_from(graph: &mut Graph, input: &str, output: &str, initial: Option<Attribute>) -> Result<(), Diagnostic> {
    let inputs: Vec<&str> = graph.inputs().iter().map(|&id| &*graph.node(id).name).collect();
    let outputs: Vec<&str> = graph.outputs().iter().map(|output| &*output.name).collect();
    let find = |kind: &str, names: &[&str], name: &str| {
        names.iter().position(|own| *own == name).ok_or_else(|| {
            mismatch(format!("the model has no {kind} '{name}'"))
                .with_note(format!("its {kind}s are: {}", names.join(", ")))
        })
    };
    let (from, to) = (find("output", &outputs, output)?, find("input", &inputs, input)?);
    if graph.states.iter().any(|state| state.input == to || state.output == from) {
        return Err(mismatch(format!("the input '{input}' or the output '{output}' is tied already")));
    }
    if graph
        .messages()
        .iter()
        .any(|message| [Transfer::Send { output: from }, Transfer::Receive { input: to }].contains(&message.transfer))
    {
        return Err(mismatch(format!("the input '{input}' or the output '{output}' is a message of another rank's")));
    }
    let ty = graph.ty(graph.inputs()[to].into()).clone();
    let given = graph.ty(graph.outputs()[from].value);
    if ty != *given {
        return Err(mismatch(format!("the input '{input}' is {ty}, the output '{output}' is {given}")));
    }
    let initial = match initial {
        Some(initial) => initial,
        None => zeros(&ty)?,
    };
    let state = State { name: input.into(), input: to, output: from, initial };
    graph.states.push(state);
    Ok(())
}

/// Turns the constant initial states of recurrent operators into states that their last ones feed. A layer that runs backwards
/// keeps its own: its last state is that of the beginning, and the next run doesn't follow it.
///
/// # Errors
/// `MLC0004` when there is nothing to keep, or it is too large; warnings otherwise.
pub fn keep_recurrent_states(graph: &mut Graph) -> Result<Vec<Diagnostic>, Diagnostic> {
    let order = graph.topological_order();
    let mut warnings = Vec::new();
    let mut kept = false;
    for &id in &order {
        let Op::Recurrent(op) = &graph.node(id).op else { continue };
        if op.reverse {
            let place = Location::default().at_operator("recurrent", graph.node(id).name.to_string());
            let message = "the layer runs backwards over each piece of the stream, and keeps no state between them";
            warnings.push(Diagnostic::warning(Code::VariantUnsupported, place, message));
            continue;
        }
        for (operand, result, what) in states_of(op) {
            let Some(initial) = constant_value(graph, &order, graph.operands(id)[operand]) else { continue };
            keep(graph, id, (operand, result), what, initial?);
            kept = true;
        }
    }
    if !kept {
        return Err(mismatch("the model has no forward recurrent operator with a constant initial state".into())
            .with_help(
                "tie an input to an output with --state INPUT=OUTPUT where the model takes its state as an input",
            ));
    }
    graph.remove_dead();
    Ok(warnings)
}

/// Operand, result and name of each state of an operator.
fn states_of(op: &Recurrent) -> Vec<(usize, u32, &'static str)> {
    let mut list = vec![(3, 1, "hidden")];
    if op.cell.has_cell_state() {
        list.push((4, 2, "cell"));
    }
    list
}

fn keep(graph: &mut Graph, id: NodeId, (operand, result): (usize, u32), what: &str, initial: Attribute) {
    let name = format!("{}.{what}", graph.node(id).name);
    let input = graph.add_input(&name, initial.ty().clone());
    graph.replace_operand(id, operand as u32, input);
    let taken: BTreeSet<String> = graph.outputs().iter().map(|output| output.name.to_string()).collect();
    let mut output = format!("{name}.next");
    while taken.contains(&output) {
        output.push('_');
    }
    graph.add_output(&output, Value { node: id, slot: result });
    // The name of a node, hence unique, and not the name of a tied input.
    let name = graph.node(input.node).name.clone();
    let (input, output) = (graph.inputs().len() - 1, graph.outputs().len() - 1);
    graph.states.push(State { name, input, output, initial });
}

/// The value of what depends on constants only; `None` when it depends on an input.
fn constant_value(graph: &Graph, order: &[NodeId], value: Value) -> Option<Result<Attribute, Diagnostic>> {
    let mut needed: BTreeSet<NodeId> = BTreeSet::new();
    let mut stack = vec![value.node];
    while let Some(id) = stack.pop() {
        if matches!(graph.node(id).op, Op::Input(_)) || needed.len() > LONGEST {
            return None;
        }
        if needed.insert(id) {
            stack.extend(graph.operands(id).iter().map(|operand| operand.node));
        }
    }
    let results = needed.iter().flat_map(|&id| &graph.node(id).results);
    if let Some(large) = results.clone().find(|ty| ty.bytes() > LARGEST) {
        return Some(Err(mismatch(format!("an initial state is made of {large}, which is too large to be kept"))));
    }
    let mut values: IndexMap<NodeId, Vec<Attribute>> = IndexMap::new();
    for id in order.iter().filter(|id| needed.contains(*id)) {
        let results = match &graph.node(*id).op {
            Op::Constant(constant) => vec![constant.value.clone()],
            op => {
                let operands = graph.operands(*id);
                let operands: Vec<&Attribute> =
                    operands.iter().map(|operand| &values[&operand.node][operand.slot as usize]).collect();
                folding::compute(op, &operands).ok()?
            }
        };
        values.insert(*id, results);
    }
    values.get(&value.node)?.get(value.slot as usize).cloned().map(Ok)
}

fn zeros(ty: &TensorType) -> Result<Attribute, Diagnostic> {
    if ty.bytes() > LARGEST {
        return Err(mismatch(format!("a state {ty} is too large to be kept")));
    }
    Ok(Attribute::from_tensor(&Tensor::splat(ty.clone(), Literal::of(ty.dtype, 0.0))))
}

fn mismatch(message: String) -> Diagnostic {
    Diagnostic::option_mismatch(message)
}
