//! [`Patch`]: neighbouring rows of a result, computed with all that lies before it.
//!
//! What is between the first and the last of some nodes is then as high as a patch, and its halo: rows beyond it that windows read. Either
//! they are computed for both neighbours, so that a patch trades multiplications for memory (as do the patches of MCUNetV2, arXiv
//! 2110.15352), or the next patch finds them where the one before has kept them, which takes some rows of memory and no work (as do the lines
//! of StreamNet, NeurIPS 2023).

use mlc_ir::ops::Transpose;
use mlc_ir::{Graph, NodeId, Op, PatchRead, Value};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// What becomes of rows that two patches read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Halo {
    /// Both compute them.
    #[default]
    Computed,
    /// The first one computes them, and they are kept for the next one.
    Kept,
}

/// Nodes, in order, whose last one's result is computed in so many patches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patches {
    /// The nodes.
    pub nodes: Vec<NodeId>,
    /// How many patches.
    pub count: usize,
    /// What becomes of rows that two of them read.
    pub halo: Halo,
}

/// The axis of rows.
pub const ROWS: usize = 1;

/// Where it is when they are transposed.
pub const TRANSPOSED_ROWS: usize = 2;

impl Patches {
    /// What each patch computes, of about as many rows of the last result; `None` where they can't.
    pub fn all(&self, graph: &Graph) -> Option<Vec<Patch>> {
        let height = self.nodes.last().and_then(|&last| height(graph, last))?;
        let border = |number: usize| height * number / self.count;
        let mut all: Vec<Patch> = Vec::with_capacity(self.count);
        // How many rows of each node have been computed.
        let mut done: BTreeMap<NodeId, usize> = BTreeMap::new();
        for number in 0..self.count {
            let patch = Patch::new(graph, &self.nodes, border(number)..border(number + 1), &done)?;
            if self.halo == Halo::Kept {
                let ends = patch.rows.iter().map(|(&id, rows)| (id, rows.end));
                ends.for_each(|(id, end)| _ = done.entry(id).and_modify(|own| *own = end.max(*own)).or_insert(end));
                if let Some(before) = all.last_mut() {
                    before.keep_for(&patch)?;
                }
            }
            all.push(patch);
        }
        Some(all)
    }
}

/// Rows of a node's result.
pub fn height(graph: &Graph, node: NodeId) -> Option<usize> {
    graph.node(node).results.first()?.shape.get(ROWS).copied()
}

/// One patch: which rows of the nodes' results there are for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// Those of the last node's result.
    pub result: Range<usize>,
    /// The rows, by node.
    pub rows: BTreeMap<NodeId, Range<usize>>,
    /// How many of the first of them the patch before has kept.
    pub taken: BTreeMap<NodeId, usize>,
    /// Which of them are kept for the next patch.
    pub kept: BTreeMap<NodeId, Range<usize>>,
    /// What is read of values that the nodes don't compute.
    pub outside: BTreeMap<Value, Range<usize>>,
}

impl Patch {
    /// What some rows of the last of some nodes take, of each of which `done` have been computed; `None` where nodes have no rows, or read all
    /// of another's.
    fn new(graph: &Graph, nodes: &[NodeId], rows: Range<usize>, done: &BTreeMap<NodeId, usize>) -> Option<Patch> {
        let all: BTreeSet<NodeId> = nodes.iter().copied().collect();
        let &last = nodes.last()?;
        let (taken, kept, outside) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut patch = Patch { result: rows.clone(), rows: BTreeMap::from([(last, rows)]), taken, kept, outside };
        for &id in nodes.iter().rev() {
            // Of what readers compute nothing of, nothing is read.
            let Some(own) = patch.rows.get(&id).cloned() else { continue };
            let taken = done.get(&id).map_or(0, |&done| done.min(own.end).saturating_sub(own.start));
            patch.taken.insert(id, taken);
            if taken == own.len() {
                continue;
            }
            let (_, reads) = of_node(graph, id, own.start + taken..own.end)?;
            for (operand, read) in graph.operands(id).into_iter().zip(reads) {
                match (read, all.contains(&operand.node)) {
                    (PatchRead::Rows(read), true) => {
                        widen(patch.rows.entry(operand.node).or_insert(read.clone()), &read);
                    }
                    (PatchRead::Rows(read), false) => {
                        widen(patch.outside.entry(operand).or_insert(read.clone()), &read);
                    }
                    (_, true) => return None,
                    (_, false) => {}
                }
            }
        }
        Some(patch)
    }

    /// Keeps what the next patch takes; `None` where it isn't all there.
    fn keep_for(&mut self, next: &Patch) -> Option<()> {
        for (&id, &taken) in next.taken.iter().filter(|(_, taken)| **taken > 0) {
            let first = next.rows[&id].start;
            let own = self.rows.get(&id).filter(|own| own.start <= first && first + taken == own.end)?;
            // Rows are kept of those that are computed.
            if self.taken[&id] == own.len() {
                return None;
            }
            self.kept.insert(id, first..own.end);
        }
        Some(())
    }

    /// Which rows of a value it computes, takes or reads.
    pub fn rows_of(&self, value: Value) -> Option<Range<usize>> {
        self.rows.get(&value.node).or_else(|| self.outside.get(&value)).cloned()
    }

    /// Which rows of a node it computes.
    pub fn computed(&self, id: NodeId) -> Range<usize> {
        let taken = self.taken.get(&id).copied().unwrap_or(0);
        self.rows.get(&id).map_or(0..0, |rows| rows.start + taken..rows.end)
    }

    /// Operations that it takes; `all` says how many all rows of a node take.
    pub fn operations(&self, graph: &Graph, all: impl Fn(NodeId) -> u64) -> u64 {
        let share = |&id: &NodeId| {
            let rows = height(graph, id).unwrap_or(1).max(1);
            all(id) / rows as u64 * self.computed(id).len() as u64
        };
        self.rows.keys().map(share).sum()
    }
}

/// What computes a patch of a node's only result, and reads what.
pub fn of_node(graph: &Graph, id: NodeId, rows: Range<usize>) -> Option<(Op, Vec<PatchRead>)> {
    let node = graph.node(id);
    if node.results.len() != 1 {
        return None;
    }
    node.op.patch(&graph.operand_types(id), rows)
}

fn widen(known: &mut Range<usize>, other: &Range<usize>) {
    *known = known.start.min(other.start)..known.end.max(other.end);
}

/// Multiply–accumulates of a node, or its other operations if it has none: an epilogue is little beside them.
pub fn operations(graph: &Graph, id: NodeId) -> u64 {
    let node = graph.node(id);
    let work = node.op.work(&graph.operand_types(id), &node.results);
    if work.macs > 0 { work.macs } else { work.scalar_operations }
}

/// How the axes of an operand change places.
pub fn transposition(read: &PatchRead, rank: usize) -> Option<Transpose> {
    let mut permutation: Vec<usize> = (0..rank).collect();
    match read {
        PatchRead::Whole => return None,
        PatchRead::Rows(_) => permutation.swap(ROWS, TRANSPOSED_ROWS),
        PatchRead::Taps => permutation.swap(0, 1),
    }
    Some(Transpose { permutation })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::text;

    /// Two windows of three rows each, and a sum that adds the rows that the first one read.
    const RESIDUAL: &str = "mlc 1
graph @residual(%x: f32[1, 12, 8, 4]) -> (\"y\": f32[1, 12, 8, 4]) {
  %w = constant f32[3, 3, 4, 4] random(seed = 1)
  %a = map %x {expression = relu(x0)}
  %b = convolution %a, %w {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %c = convolution %b, %w {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1}
  %y = map %c, %a {expression = add(x0, x1)}
  return %y
}
";

    fn patches(halo: Halo) -> (Graph, Vec<Patch>) {
        let graph = text::parse(RESIDUAL, &()).unwrap();
        let nodes = ["a", "b", "c", "y"].iter().map(|name| graph.find(name).unwrap()).collect();
        let all = Patches { nodes, count: 3, halo }.all(&graph).unwrap();
        (graph, all)
    }

    /// Rows of `a` and of `b` in each patch, and those that are computed.
    fn rows(halo: Halo, name: &str) -> Vec<(Range<usize>, Range<usize>)> {
        let (graph, all) = patches(halo);
        let id = graph.find(name).unwrap();
        all.iter().map(|patch| (patch.rows[&id].clone(), patch.computed(id))).collect()
    }

    #[test]
    fn rows_that_two_patches_read_are_computed_by_both() {
        assert_eq!(rows(Halo::Computed, "b"), [(0..5, 0..5), (3..9, 3..9), (7..12, 7..12)]);
        assert_eq!(rows(Halo::Computed, "a"), [(0..6, 0..6), (2..10, 2..10), (6..12, 6..12)]);
    }

    #[test]
    fn rows_that_are_kept_are_computed_once_and_so_is_what_they_are_made_of() {
        assert_eq!(rows(Halo::Kept, "b"), [(0..5, 0..5), (3..9, 5..9), (7..12, 9..12)]);
        // The sum of rows 4 to 7 needs row 4, the window of row 5 needs it, too.
        assert_eq!(rows(Halo::Kept, "a"), [(0..6, 0..6), (4..10, 6..10), (8..12, 10..12)]);
        let (graph, all) = patches(Halo::Kept);
        let [a, b] = ["a", "b"].map(|name| graph.find(name).unwrap());
        assert_eq!(all[0].kept, BTreeMap::from([(a, 4..6), (b, 3..5)]));
        assert_eq!(all[1].kept, BTreeMap::from([(a, 8..10), (b, 7..9)]));
        assert_eq!(all[2].kept, BTreeMap::new());
        let once: u64 = ["a", "b", "c", "y"].iter().map(|name| operations(&graph, graph.find(name).unwrap())).sum();
        let of = |patch: &Patch| patch.operations(&graph, |id| operations(&graph, id));
        assert_eq!(all.iter().map(of).sum::<u64>(), once);
    }
}
