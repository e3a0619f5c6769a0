//! Prices of a program's steps.

use crate::lower::{Binding, Program, Routine, Step};
use crate::price::{Price, price};
use crate::target::Target;
use mlc_ir::ops::Extern;
use mlc_ir::{Graph, Op, TensorType};
use std::ops::Add;

/// Bytes that a graph's kernels touch in all, about: all constants, and the operands and results of its largest node.
pub fn working_set(graph: &Graph) -> usize {
    let bytes = |types: &[TensorType]| types.iter().map(TensorType::bytes).sum::<usize>();
    let constants = graph.node_ids().filter(|&id| matches!(graph.node(id).op, Op::Constant(_)));
    let constants: usize = constants.map(|id| bytes(&graph.node(id).results)).sum();
    let largest = graph.node_ids().map(|id| bytes(&graph.node(id).results) + bytes(&graph.operand_types(id))).max();
    constants + largest.unwrap_or(0)
}

/// What a program costs, step by step: loops as often as they turn at most, functions that aren't mlc's own what they say, or else as
/// much as to copy their operands and results.
pub fn prices(program: &Program, target: &Target) -> Vec<Price> {
    let constants = program.steps.iter().flat_map(|step| &step.bindings);
    let constants = constants.map(|binding| match binding {
        Binding::Packed { value, .. } => value.ty().bytes(),
        _ => 0,
    });
    let working_set = program.plan.arena_bytes + constants.sum::<usize>();
    program.steps.iter().map(|step| of_step(step, target, working_set)).collect()
}

fn of_step(step: &Step, target: &Target, working_set: usize) -> Price {
    match &step.routine {
        Routine::Kernel(function) => {
            let taken = step.choice.taken().map(|taken| taken.price).unwrap_or_default();
            let Price { time, traffic_bytes, code_bytes, .. } = price(function, target, working_set);
            Price { time, traffic_bytes, code_bytes, ..taken }
        }
        Routine::Loop(routine) => {
            let turn = prices(&routine.body, target).into_iter().fold(Price::default(), Add::add);
            let turns = routine.trip_count as u64;
            Price {
                time: turn.time.saturating_mul(turns),
                traffic_bytes: turn.traffic_bytes.saturating_mul(turns),
                ..turn
            }
        }
        Routine::Extern(code) => of_call(&code.op, target, working_set),
    }
}

fn of_call(op: &Extern, target: &Target, working_set: usize) -> Price {
    let each = &target.machine.instructions;
    let bytes: usize = op.operands.iter().chain(&op.results).map(TensorType::bytes).sum();
    let time = match op.operations {
        0 => bytes as f64 * each.copied_byte,
        operations => operations as f64 * each.float,
    };
    let is_far = target.machine.caches.first().is_some_and(|nearest| working_set > nearest.bytes);
    Price {
        time: (each.call + time).round() as u64,
        traffic_bytes: if is_far { bytes as u64 } else { 0 },
        scratch_bytes: op.workspace as u64,
        ..Price::default()
    }
}
