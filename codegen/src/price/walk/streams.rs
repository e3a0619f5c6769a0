//! What loops do with the places that are read and written in them: which pointers they move, and what is the same in all their turns.

use super::Walker;
use crate::loops::{Var, VarKind};
use crate::target::VectorSpelling;
use std::collections::BTreeSet;

/// Most elements that C compilers keep in registers while a loop turns.
const MOST_KEPT: f64 = 24.0;

/// Most of Arm's vectors that are left for them.
const MOST_KEPT_VECTORS: f64 = 5.0;

/// Where loads are that are the same in all turns of a loop.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Kept {
    /// Those that needn't be done.
    pub in_registers: f64,
    /// Those of others.
    pub on_stack: f64,
}

/// Most pointers that vector instructions move along.
const MOST_MOVED: usize = 2;

impl Walker<'_> {
    /// Pointers of the streams from `first` on that a loop moves.
    pub(super) fn moved_by(&self, number: usize, first: usize) -> usize {
        let moved = self.streams[first..].iter().filter(|stream| stream.moved_by.contains_key(&number));
        moved.map(|stream| stream.pointer).collect::<BTreeSet<Var>>().len()
    }

    /// Additions in a turn of a loop for the addresses of what it reads and writes, of the streams from `first` on, where there are Arm's vectors.
    /// Their instructions add no two registers: they move one or two pointers along, beyond that C compilers count one number and add it to
    /// each pointer. Those of single floats move a pointer by one element only.
    pub(super) fn sums_of_addresses(&self, number: usize, first: usize) -> f64 {
        if self.counter.target.vectors != VectorSpelling::Mve {
            return 0.0;
        }
        let moved = |is_vector: bool| {
            let streams = self.streams[first..].iter().filter(move |stream| stream.is_vector == is_vector);
            streams.filter_map(|stream| Some((stream.pointer, *stream.moved_by.get(&number)?)))
        };
        let vectors = moved(true).map(|(pointer, _)| pointer).collect::<BTreeSet<Var>>().len();
        let apart = moved(false).filter(|(_, elements)| *elements != 1.0).map(|(pointer, _)| pointer);
        let singles = apart.collect::<BTreeSet<Var>>().len();
        (singles + if vectors > MOST_MOVED { vectors + 1 } else { 0 }) as f64
    }

    /// Loads of a loop's turn that are the same in all turns, which C compilers do before the first one if they know that nothing is
    /// written there: in registers, as far as there are any. Where vectors fill these, others are on the stack, at addresses to be computed.
    pub(super) fn kept_in(&self, number: usize, first: usize) -> Kept {
        if self.counter.target.machine.written_out == 0.0 {
            return Kept::default();
        }
        let kept = self.streams[first..].iter().filter(|stream| !stream.depends_on.contains(&number));
        let kept = kept.filter(|stream| self.is_constant(stream.pointer));
        let is_vector =
            self.counter.target.vectors == VectorSpelling::Mve && kept.clone().any(|stream| stream.is_vector);
        let loads: f64 = kept.filter_map(|stream| stream.loads).sum();
        match loads {
            _ if loads > MOST_KEPT => Kept::default(),
            _ if is_vector && loads > MOST_KEPT_VECTORS => {
                Kept { in_registers: MOST_KEPT_VECTORS, on_stack: loads - MOST_KEPT_VECTORS }
            }
            _ => Kept { in_registers: loads, on_stack: 0.0 },
        }
    }

    /// Whether a pointer's memory is only read, and written through no other one.
    fn is_constant(&self, pointer: Var) -> bool {
        let root = self.pointers.get(&pointer).map_or(pointer, |(root, _)| *root);
        let kind = self.function.vars[root as usize].kind;
        let is_read_only = !matches!(kind, VarKind::Pointer { holds, .. } if holds.is_written());
        let mut parameters = self.function.parameters.iter();
        is_read_only && parameters.any(|parameter| parameter.var == root && parameter.restrict)
    }
}
