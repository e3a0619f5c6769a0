//! Prices of a program's steps.

use crate::lower::{Binding, Program, Routine};
use crate::price::{Price, price};
use crate::target::Target;
use mlc_ir::TensorType;
use mlc_ir::ops::Extern;
use std::ops::Add;

/// What a program costs, step by step: loops as often as they turn at most, functions that aren't mlc's own what they say, or else as
/// much as to copy their operands and results.
pub fn prices(program: &Program, target: &Target) -> Vec<Price> {
    let constants = program.steps.iter().flat_map(|step| &step.bindings);
    let constants = constants.map(|binding| match binding {
        Binding::Packed { value, .. } => value.ty().bytes(),
        _ => 0,
    });
    let working_set = program.plan.arena_bytes + constants.sum::<usize>();
    program.steps.iter().map(|step| of_routine(&step.routine, target, working_set)).collect()
}

fn of_routine(routine: &Routine, target: &Target, working_set: usize) -> Price {
    match routine {
        Routine::Kernel(function) => price(function, target, working_set),
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
        code_bytes: 0,
    }
}
