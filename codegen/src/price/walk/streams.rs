//! What loops do with the places that are read and written in them: which pointers they move, and what is the same in all their turns.

use super::Walker;
use crate::loops::{Var, VarKind};
use std::collections::BTreeSet;

/// Most elements that C compilers keep in registers while a loop turns.
const MOST_KEPT: f64 = 24.0;

impl Walker<'_> {
    /// Pointers of the streams from `first` on that a loop moves.
    pub(super) fn moved_by(&self, number: usize, first: usize) -> usize {
        let moved = self.streams[first..].iter().filter(|stream| stream.moved_by.contains(&number));
        moved.map(|stream| stream.pointer).collect::<BTreeSet<Var>>().len()
    }

    /// Loads of a loop's turn that are the same in all turns, which C compilers do before the first one: if they know that nothing is
    /// written there, and there are registers for all.
    pub(super) fn kept_in(&self, number: usize, first: usize) -> f64 {
        if self.counter.target.machine.written_out == 0.0 {
            return 0.0;
        }
        let kept = self.streams[first..].iter().filter(|stream| !stream.depends_on.contains(&number));
        let kept = kept.filter(|stream| self.is_constant(stream.pointer)).filter_map(|stream| stream.loads).sum();
        if kept <= MOST_KEPT { kept } else { 0.0 }
    }

    /// Whether a pointer's memory is only read, and written through no other one.
    fn is_constant(&self, pointer: Var) -> bool {
        let root = self.pointers.get(&pointer).map_or(pointer, |(root, _)| *root);
        let is_read_only = matches!(self.function.vars[root as usize].kind, VarKind::Pointer { constant: true, .. });
        let mut parameters = self.function.parameters.iter();
        is_read_only && parameters.any(|parameter| parameter.var == root && parameter.restrict)
    }
}
