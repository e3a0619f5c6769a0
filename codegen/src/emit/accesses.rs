//! How much a run reads and writes where.

use crate::lower::homes::BufferId;
use crate::lower::{Accessed, Binding, Fetch, Part, Program, Routine};
use crate::price::accessed_bytes;
use crate::target::Target;
use std::collections::BTreeMap;

/// The bytes that a run of a program reads and writes in each buffer and in scratch memory, by the loop programs of its kernels.
pub(super) fn accessed(program: &Program, target: &Target) -> Accessed {
    let mut accessed = Accessed::default();
    let entries = program.entries();
    let wholes: BTreeMap<BufferId, BufferId> = entries.iter().flat_map(|entry| wholes(entry.part)).collect();
    for entry in &entries {
        for (number, bytes) in of_part(entry.part, target).into_iter().enumerate() {
            let bytes = bytes * entry.turns() as f64;
            match &entry.part.bindings()[number] {
                Binding::Buffer { buffer, .. } => {
                    // A slice may be of what is itself a slice.
                    let mut whole = *buffer;
                    while let Some(&around) = wholes.get(&whole) {
                        whole = around;
                    }
                    *accessed.buffers.entry(whole).or_default() += bytes;
                }
                Binding::Scratch { .. } => {
                    accessed.scratch.insert((entry.first, number), bytes);
                }
                Binding::Packed { .. } => {}
            }
        }
    }
    for part in &program.parts {
        if let Part::Fetch(Fetch::Begin(list)) = part {
            for fetched in list {
                *accessed.buffers.entry(fetched.buffer).or_default() += fetched.value.ty().bytes() as f64;
            }
        }
    }
    accessed
}

/// Bytes for each binding of a part, one time; nothing for those of parts inside of it.
fn of_part(part: &Part, target: &Target) -> Vec<f64> {
    let mut bytes = vec![0.0; part.bindings().len()];
    match part {
        Part::Step(step) => match &step.routine {
            Routine::Kernel(function) => {
                let all = accessed_bytes(function, target);
                for (own, parameter) in bytes.iter_mut().zip(&function.parameters) {
                    *own = all.get(&parameter.var).copied().unwrap_or(0.0);
                }
            }
            Routine::Extern(code) => {
                let types = code.op.operands.iter().chain(&code.op.results);
                bytes.iter_mut().zip(types).for_each(|(own, ty)| *own = ty.bytes() as f64);
            }
        },
        Part::Stripe(code) => {
            for (ring, turns) in code.acts.iter().filter_map(|act| Some((act.ring.as_ref()?, &act.turns))) {
                bytes[ring.binding] += (2 * ring.kept() * ring.moves(turns.appended)) as f64;
            }
        }
        Part::Loop(_) | Part::Exchange(_) | Part::Fetch(_) => {}
    }
    bytes
}

/// Buffers of a part that are slices, or places of a value that turns hand on, each with the one that it is in.
fn wholes(part: &Part) -> Vec<(BufferId, BufferId)> {
    let whole = |slice: BufferId, binding: usize| Some((slice, part.bindings()[binding].buffer()?));
    match part {
        Part::Loop(code) => {
            let slices = code.scanned.iter().chain(&code.stacked).map(|walk| (walk.slice, walk.whole));
            let read = code.carried.iter().map(|carried| (carried.read, carried.last));
            let written = code.carried.iter().map(|carried| (carried.written, carried.spare));
            slices.chain(read).chain(written).filter_map(|(slice, binding)| whole(slice, binding)).collect()
        }
        Part::Stripe(code) => {
            let walks = code.acts.iter().flat_map(|act| &act.walks);
            walks.filter_map(|walk| whole(walk.rows, walk.whole)).collect()
        }
        Part::Step(_) | Part::Exchange(_) | Part::Fetch(_) => Vec::new(),
    }
}
