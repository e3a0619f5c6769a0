//! Prices of a program's parts.

use crate::lower::{Binding, Entry, Part, Program, Routine};
use crate::price::{Price, StripeTurns, WorkingSet, price};
use crate::target::Target;
use mlc_ir::ops::Extern;
use mlc_ir::{Graph, Op, TensorType};

/// Bytes that a graph's kernels touch in all, about: all constants, and the operands and results of its largest node.
pub fn working_set(graph: &Graph) -> usize {
    let bytes = |types: &[TensorType]| types.iter().map(TensorType::bytes).sum::<usize>();
    let constants = graph.node_ids().filter(|&id| matches!(graph.node(id).op, Op::Constant(_)));
    let constants: usize = constants.map(|id| bytes(&graph.node(id).results)).sum();
    let largest = graph.node_ids().map(|id| bytes(&graph.node(id).results) + bytes(&graph.operand_types(id))).max();
    constants + largest.unwrap_or(0)
}

/// Bytes that a program touches in all: its arena and its packed constants.
pub fn program_bytes(program: &Program) -> usize {
    let entries = program.entries();
    let constants = entries.iter().flat_map(|entry| entry.part.bindings());
    let constants = constants.map(|binding| match binding {
        Binding::Packed { value, .. } => value.ty().bytes(),
        _ => 0,
    });
    program.layout.plan.arena_bytes + constants.sum::<usize>()
}

/// What a program costs, kernel by kernel in all turns of the loops around it, and loops and stripes without their kernels. Loops turn as often as
/// they can, functions that aren't mlc's own cost what they say, or else as much as to copy their operands and results.
pub fn prices(program: &Program, target: &Target) -> Vec<Price> {
    let whole = WorkingSet::from(program_bytes(program));
    program.entries().iter().map(|entry| in_all_turns(entry, &whole, target)).collect()
}

/// What a part costs in all turns around it, in a program that touches so much.
pub fn in_all_turns(entry: &Entry<'_>, whole: &WorkingSet, target: &Target) -> Price {
    let stripe = entry.around.last().and_then(|around| match around.part {
        Part::Stripe(code) => Some(StripeTurns { count: code.turns, bytes: code.turn_bytes }),
        _ => None,
    });
    let working_set = whole.in_turns(stripe, &target.machine.caches);
    let one = of_part(entry.part, target, &working_set);
    let (time, traffic_bytes) =
        (one.time.saturating_mul(entry.turns()), one.traffic_bytes.saturating_mul(entry.turns()));
    Price { time, traffic_bytes, ..one }
}

/// What one time of a part costs.
fn of_part(part: &Part, target: &Target, working_set: &WorkingSet) -> Price {
    match part {
        Part::Step(step) => match &step.routine {
            Routine::Kernel(function) => {
                let taken = step.choice.taken().map(|taken| taken.price).unwrap_or_default();
                let Price { time, traffic_bytes, code_bytes, .. } = price(function, target, working_set);
                Price { time, traffic_bytes, code_bytes, ..taken }
            }
            Routine::Extern(code) => of_call(&code.op, target, working_set.bytes),
        },
        Part::Loop(code) => {
            let each = &target.machine.instructions;
            let time = each.call + each.turn * code.counted_turns as f64;
            Price { time: time.round() as u64, ..Price::default() }
        }
        Part::Stripe(code) => Price { time: code.time(target), ..Price::default() },
        Part::Exchange(_) | Part::Fetch(_) => Price::default(),
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
