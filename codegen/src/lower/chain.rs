//! [`Chain`]: the nodes of a graph in order, and what neighbours of them need if they are computed together.

use super::block::Block;
use super::considered::CutReason;
use super::homes::is_constant;
use super::membership::has_rows;
use super::outline::Outline;
use super::patch::{Halo, Patch, Patches, height, operations};
use super::roles::is_view;
use super::transposed::Transposed;
use crate::target::Target;
use mlc_ir::{Graph, NodeId, Objective, Op, Value};
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

/// Nodes of one block at most.
const MOST_NODES: usize = 64;

/// How many patches are looked at.
const PATCHES: [usize; 16] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48];

/// What patches of one block compute twice is no more than all there is, divided by this.
const LEAST_ONCE: u64 = 4;

/// Bytes that are moved in the time of an operation.
const BYTES_PER_OPERATION: u64 = 2;

/// Rows that are computed at a time: one where a caller gives them so. Kernels of wide machines take longer for fewer, and rings are moved up
/// less often by more, for which they are larger.
fn rows_at_a_time(target: &Target, is_fed: bool) -> &'static [usize] {
    if is_fed || target.machine.caches.is_empty() { &[1] } else { &[4, 2, 1] }
}

/// Neighbours from one node on that are computed together.
#[derive(Clone)]
pub struct Choice {
    count: usize,
    /// How many rows at a time; none of a node that is computed as a whole.
    rows: usize,
    /// In how many patches.
    patches: usize,
    /// What becomes of rows that two of them read.
    halo: Halo,
    /// Operations that patches do beyond those of the whole.
    twice: u64,
    /// What lives meanwhile.
    bytes: usize,
    /// Bytes that are moved, and what rows that are computed twice take.
    work: u64,
}

/// A choice that is taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Number of its first node.
    pub first: usize,
    /// How many nodes it has.
    pub count: usize,
    /// How many rows are computed at a time; none of a node that is computed as a whole.
    pub rows: usize,
    /// In how many patches.
    pub patches: usize,
    /// What becomes of rows that two of them read.
    pub halo: Halo,
    /// Operations that patches do beyond those of the whole.
    pub twice: u64,
}

/// The nodes of a graph that compute or move something, in order, and the tensors between them.
pub struct Chain<'a> {
    /// The graph.
    pub graph: &'a Graph,
    target: &'a Target,
    /// The nodes.
    pub nodes: Vec<NodeId>,
    /// Operations of each, once they were asked for.
    operations: OnceCell<BTreeMap<NodeId, u64>>,
    tensors: Vec<Tensor>,
    fed: Option<Fed>,
    /// Whether each is computed row by row.
    has_rows: Vec<bool>,
    /// The stripes that were asked for, each by its first node, the count of its nodes and its rows.
    stripes: RefCell<BTreeMap<(usize, usize, usize), Option<Choice>>>,
}

/// An input whose rows are given one after the other.
struct Fed {
    input: NodeId,
    /// The first and the last node that reads it.
    readers: (usize, usize),
}

/// A tensor of the arena.
struct Tensor {
    /// The value, all others that lie in its memory are parts or views of it.
    value: Value,
    bytes: usize,
    /// The first node that writes it, and the last one that reads it.
    life: (usize, usize),
}

impl<'a> Chain<'a> {
    /// The chain of a graph; `fed` is an input whose rows are given one after the other.
    pub fn new(graph: &'a Graph, target: &'a Target, fed: Option<NodeId>) -> Self {
        let order = graph.topological_order();
        let is_work = |id: &NodeId| {
            let op = &graph.node(*id).op;
            !is_view(op) && !matches!(op, Op::Input(_) | Op::Constant(_)) && !is_constant(graph, (*id).into())
        };
        let nodes: Vec<NodeId> = order.iter().copied().filter(is_work).collect();
        let numbers: BTreeMap<NodeId, usize> = nodes.iter().enumerate().map(|(number, &id)| (id, number)).collect();
        let wholes = wholes(graph, &order);
        let outputs: BTreeSet<Value> = graph.outputs().iter().map(|output| wholes[&output.value]).collect();
        let mut lives: BTreeMap<Value, Tensor> = BTreeMap::new();
        for (&id, &number) in &numbers {
            let results = (0..graph.node(id).results.len() as u32).map(|slot| Value { node: id, slot });
            for value in results.chain(graph.operands(id)).map(|value| wholes[&value]) {
                if !numbers.contains_key(&value.node) || outputs.contains(&value) {
                    continue;
                }
                let bytes = graph.ty(value).bytes().next_multiple_of(target.alignment);
                let tensor = lives.entry(value).or_insert(Tensor { value, bytes, life: (number, number) });
                tensor.life = (tensor.life.0.min(number), tensor.life.1.max(number));
            }
        }
        let fed = fed.and_then(|input| {
            let reads = |id: &NodeId| graph.operands(*id).iter().any(|operand| wholes[operand].node == input);
            let readers = || (0..nodes.len()).filter(|&number| reads(&nodes[number]));
            Some(Fed { input, readers: (readers().next()?, readers().next_back()?) })
        });
        let tensors = lives.into_values().collect();
        let has_rows = nodes.iter().map(|&id| has_rows(graph, id)).collect();
        let (operations, stripes) = (OnceCell::new(), RefCell::default());
        Chain { graph, target, nodes, operations, tensors, fed, has_rows, stripes }
    }

    fn operations(&self) -> &BTreeMap<NodeId, u64> {
        let all = || self.nodes.iter().map(|&id| (id, operations(self.graph, id))).collect();
        self.operations.get_or_init(all)
    }

    /// What a node takes alone.
    fn alone(&self, node: usize) -> Choice {
        let alive = self.tensors.iter().filter(|tensor| tensor.life.0 <= node && node <= tensor.life.1);
        let dies = |tensor: &&Tensor| tensor.life.1 == node && tensor.life.0 < node;
        let mut bytes: usize = alive.clone().map(|tensor| tensor.bytes).sum();
        // An elementwise result lies over an operand.
        if self.graph.node(self.nodes[node]).op.category() == mlc_ir::Category::Elementwise {
            bytes -= alive.filter(dies).map(|tensor| tensor.bytes).min().unwrap_or(0);
        }
        Choice { count: 1, rows: 0, patches: 1, halo: Halo::Computed, twice: 0, bytes, work: 0 }
    }

    /// Bytes of whole tensors that live while nodes are computed together.
    fn whole(&self, nodes: Range<usize>) -> usize {
        let is_inner = |tensor: &Tensor| tensor.life.0 >= nodes.start && tensor.life.1 < nodes.end;
        let alive = |tensor: &&Tensor| tensor.life.0 < nodes.end && tensor.life.1 >= nodes.start && !is_inner(tensor);
        self.tensors.iter().filter(alive).map(|tensor| tensor.bytes).sum()
    }

    /// Bytes that a result of nodes which are computed together has in common with a tensor that dies with them, at most. `lead` says how far
    /// it has to begin before a tensor, whose rows and its own have so many bytes.
    fn overlaid(&self, nodes: Range<usize>, lead: impl Fn((Value, usize), usize) -> Option<i64>) -> usize {
        let last = Value::from(self.nodes[nodes.end - 1]);
        let Some(result) = self.tensors.iter().find(|tensor| tensor.value == last) else { return 0 };
        if self.target.objective != Objective::Ram || result.life.0 < nodes.start {
            return 0;
        }
        let row = |tensor: &Tensor| {
            let ty = self.graph.ty(tensor.value);
            ty.bytes() / ty.shape.get(1).map_or(1, |&rows| rows.max(1))
        };
        let dies = |tensor: &&Tensor| tensor.life.0 < nodes.start && nodes.contains(&tensor.life.1);
        let saved = |tensor: &Tensor| {
            let lead = lead((tensor.value, row(tensor)), row(result))?;
            let ahead = usize::try_from(lead).unwrap_or(0);
            Some((tensor.bytes + result.bytes).saturating_sub(result.bytes.max(tensor.bytes + ahead)))
        };
        self.tensors.iter().filter(dies).filter_map(saved).max().unwrap_or(0)
    }

    /// What lives at most if no nodes are computed together.
    pub fn plain(&self) -> usize {
        (0..self.nodes.len()).map(|node| self.alone(node).bytes).max().unwrap_or(0)
    }

    /// The lowest limit that there is a path under.
    pub fn least(&self, choices: &[Vec<Choice>]) -> Option<usize> {
        let mut limits: Vec<usize> = choices.iter().flatten().map(|choice| choice.bytes).collect();
        limits.sort_unstable();
        limits.dedup();
        // Higher limits allow all that lower ones do.
        let least = limits.partition_point(|&limit| self.path(choices, limit).is_none());
        limits.get(least).copied()
    }

    /// For each node, what can be computed from it on.
    pub fn choices(&self) -> Vec<Vec<Choice>> {
        self.choices_of(&|_| true)
    }

    /// Of these choices, all that the cheapest path under a limit can have: nodes that keep to it one by one aren't computed together, as
    /// that moves more, nor are any beside which too many whole tensors live.
    pub fn choices_within(&self, limit: usize) -> Vec<Vec<Choice>> {
        let is_large: Vec<bool> = (0..self.nodes.len()).map(|node| self.alone(node).bytes > limit).collect();
        self.choices_of(&|nodes| is_large[nodes.clone()].contains(&true) && self.least_of(nodes) <= limit)
    }

    /// Nodes by themselves, and of those neighbours that `is_wanted` all that can be computed together.
    fn choices_of(&self, is_wanted: &dyn Fn(Range<usize>) -> bool) -> Vec<Vec<Choice>> {
        let from = |first: usize| {
            let wanted = self.counts(first).filter(|count| is_wanted(first..first + count));
            let stripes = wanted.flat_map(|count| self.stripes(first, count));
            let alone = (!self.is_fed(first, 1)).then(|| self.alone(first));
            alone.into_iter().chain(stripes).collect()
        };
        (0..self.nodes.len()).map(from).collect()
    }

    /// How many nodes from one on can be a stripe.
    fn counts(&self, first: usize) -> RangeInclusive<usize> {
        let together = self.has_rows[first..].iter().take(MOST_NODES).take_while(|&&has_rows| has_rows).count();
        // One more may add up rows.
        let together = if together == 0 { 0 } else { (together + 1).min(self.nodes.len() - first) };
        let least = if self.is_fed(first, 1) { 1 } else { 2 };
        least..=together
    }

    /// The lowest limit, `floor` or more, that there is a path under without rows that are given. Only stripes that could be on it are asked for.
    pub fn least_from(&self, floor: usize) -> usize {
        let mut least = vec![floor; self.nodes.len() + 1];
        for first in (0..self.nodes.len()).rev() {
            let mut own = self.alone(first).bytes.max(least[first + 1]);
            for count in self.counts(first) {
                let rest = least[first + count];
                if rest.max(self.least_of(first..first + count)) < own {
                    own = self.stripes(first, count).map(|stripe| stripe.bytes.max(rest)).min().unwrap_or(own).min(own);
                }
            }
            least[first] = own;
        }
        least[0]
    }

    /// Bytes that nodes take at least if they are computed together.
    fn least_of(&self, nodes: Range<usize>) -> usize {
        if self.target.objective == Objective::Ram { 0 } else { self.whole(nodes) }
    }

    /// Whether one of some neighbours may read what is given row by row.
    fn is_fed(&self, first: usize, count: usize) -> bool {
        self.fed.as_ref().is_some_and(|fed| first <= fed.readers.1 && fed.readers.0 < first + count)
    }

    /// The input of which some neighbours take rows that are given one after the other.
    pub fn fed(&self, first: usize, count: usize) -> Option<NodeId> {
        self.fed.as_ref().filter(|_| self.is_fed(first, count)).map(|fed| fed.input)
    }

    /// Some neighbours as stripes of one number of rows at a time and another.
    fn stripes(&self, first: usize, count: usize) -> impl Iterator<Item = Choice> {
        let all = rows_at_a_time(self.target, self.fed.is_some()).iter();
        all.filter_map(move |&rows| self.stripe(first, count, rows))
    }

    fn stripe(&self, first: usize, count: usize, rows: usize) -> Option<Choice> {
        let key = (first, count, rows);
        if let Some(known) = self.stripes.borrow().get(&key) {
            return known.clone();
        }
        let found = self.outlined(first, count, rows);
        self.stripes.borrow_mut().insert(key, found.clone());
        found
    }

    fn outlined(&self, first: usize, count: usize, rows: usize) -> Option<Choice> {
        let fed = self.fed.as_ref().filter(|_| self.is_fed(first, count));
        if fed.is_some_and(|fed| fed.readers.0 < first || first + count <= fed.readers.1) {
            return None;
        }
        let nodes = &self.nodes[first..first + count];
        let outline = Outline::new(self.graph, nodes, rows, fed.map(|fed| fed.input), self.target)?;
        let lead = |operand, result| outline.lead(rows, operand, result);
        let whole = self.whole(first..first + count) - self.overlaid(first..first + count, lead);
        let bytes = whole + outline.bytes(self.target.alignment, |_| None);
        Some(Choice { count, rows, patches: 1, halo: Halo::Computed, twice: 0, bytes, work: work(&outline, rows) })
    }

    /// Multiply–accumulates of all nodes.
    pub fn products(&self) -> u64 {
        let of = |&id: &NodeId| {
            let node = self.graph.node(id);
            node.op.work(&self.graph.operand_types(id), &node.results).macs
        };
        self.nodes.iter().map(of).sum()
    }

    /// What a path takes at most.
    pub fn bytes(&self, choices: &[Vec<Choice>], path: &[Taken]) -> usize {
        let is = |choice: &&Choice, taken: &Taken| {
            let own = (choice.count, choice.rows, choice.patches, choice.halo);
            own == (taken.count, taken.rows, taken.patches, taken.halo)
        };
        let own = path.iter().map(|taken| choices[taken.first].iter().find(|choice| is(choice, taken)));
        own.flatten().map(|choice| choice.bytes).max().unwrap_or(0)
    }

    /// Adds choices of patches of a kind that take less than so many bytes.
    pub fn add_patches(&self, transposed: &Transposed, choices: &mut [Vec<Choice>], most: usize, halo: Halo) {
        let all: u64 = self.operations().values().sum();
        for (first, own) in choices.iter_mut().enumerate() {
            // One row at a time takes least, which is what patches are for.
            let counts: Vec<usize> = own.iter().filter(|choice| choice.rows == 1).map(|choice| choice.count).collect();
            for count in counts {
                let patches = self.patches(transposed, first..first + count, &PATCHES, halo);
                own.extend(patches.filter(|choice| choice.bytes < most && choice.twice <= all / LEAST_ONCE));
            }
        }
    }

    /// Some neighbours in each of these numbers of patches, a column at a time.
    fn patches(
        &self,
        transposed: &Transposed,
        range: Range<usize>,
        counts: &[usize],
        halo: Halo,
    ) -> impl Iterator<Item = Choice> {
        let nodes = &self.nodes[range.clone()];
        let outline = transposed.nodes(nodes);
        let outline = outline.and_then(|nodes| Outline::new(&transposed.graph, &nodes, 1, None, self.target));
        let rows = nodes.last().and_then(|&last| height(self.graph, last)).unwrap_or(0);
        let once: u64 = nodes.iter().map(|id| self.operations()[id]).sum();
        let counts = counts.iter().copied().filter(move |&patches| patches <= rows);
        counts.filter_map(move |patches| {
            let outline = outline.as_ref()?;
            let all = Patches { nodes: nodes.to_vec(), count: patches, halo }.all(self.graph)?;
            let twice = all.iter().map(|patch| patch.operations(self.graph, |id| self.operations()[&id])).sum::<u64>();
            let twice = twice.saturating_sub(once);
            let rings = |patch: &Patch| {
                outline.bytes(self.target.alignment, |value| patch.rows_of(transposed.original(value)?))
            };
            let overlaid = self.overlaid(range.clone(), |operand, result| lead(&all, operand, result));
            let kept = self.kept(&all);
            let bytes = self.whole(range.clone()) - overlaid + all.iter().map(rings).max()? + kept;
            // What is kept is copied there and back.
            let copied = 2 * (kept * patches) as u64;
            let work = work(outline, 1) + copied + twice.saturating_mul(BYTES_PER_OPERATION);
            Some(Choice { count: range.len(), rows: 1, patches, halo, twice, bytes, work })
        })
    }

    /// Bytes of the rows that patches keep for each other.
    fn kept(&self, patches: &[Patch]) -> usize {
        let mut rows: BTreeMap<NodeId, usize> = BTreeMap::new();
        for (&id, kept) in patches.iter().flat_map(|patch| &patch.kept) {
            rows.entry(id).and_modify(|most| *most = kept.len().max(*most)).or_insert(kept.len());
        }
        let bytes = |(&id, &rows): (&NodeId, &usize)| {
            let row = self.graph.ty(id.into()).bytes() / height(self.graph, id).unwrap_or(1).max(1);
            (rows * row).next_multiple_of(self.target.alignment)
        };
        rows.iter().map(bytes).sum()
    }

    /// Why two neighbours aren't in one of some blocks.
    pub fn reason(&self, blocks: &[Block], before: usize, behind: usize) -> CutReason {
        let around = |node: usize| {
            let name = &*self.graph.node(self.nodes[node]).name;
            blocks.iter().find(|block| block.has(name)).map_or(1, |block| block.nodes.len())
        };
        let (own, other) = (around(before), around(behind));
        let first = before + 1 - own;
        // The last node of a stripe may add up rows without having any.
        if let Some(node) = (first..behind + other - 1).find(|&node| !self.has_rows[node]) {
            return self.operator(node);
        }
        if own + other > MOST_NODES {
            return CutReason::MostNodes;
        }
        match self.stripe(first, own + other, 1) {
            Some(stripe) => CutReason::Bytes { together: stripe.bytes, limit: self.peak(blocks) },
            None if !self.has_rows[behind] => self.operator(behind),
            None => CutReason::Turns,
        }
    }

    fn operator(&self, node: usize) -> CutReason {
        let op = &self.graph.node(self.nodes[node]).op;
        let anchor = if let Op::Kernel(kernel) = op { &kernel.anchor } else { op };
        CutReason::Operator(anchor.kind().name().to_owned())
    }

    /// What some blocks and the nodes between them take at most.
    fn peak(&self, blocks: &[Block]) -> usize {
        let (mut node, mut peak) = (0, 0);
        while node < self.nodes.len() {
            let name = &*self.graph.node(self.nodes[node]).name;
            let block = blocks.iter().find(|block| block.has(name)).filter(|block| block.nodes.len() > 1);
            let choice = block.and_then(|block| self.together(node, block));
            peak = peak.max(choice.map_or_else(|| self.alone(node).bytes, |choice| choice.bytes));
            node += block.map_or(1, |block| block.nodes.len());
        }
        peak
    }

    /// A block whose nodes begin with one.
    fn together(&self, first: usize, block: &Block) -> Option<Choice> {
        let count = block.nodes.len();
        match block.patches {
            1 => self.stripe(first, count, block.rows),
            patches => {
                let transposed = Transposed::new(self.graph).ok()?;
                self.patches(&transposed, first..first + count, &[patches], block.halo).next()
            }
        }
    }

    /// The cheapest path that takes at most so many bytes.
    pub fn path(&self, choices: &[Vec<Choice>], limit: usize) -> Option<Vec<Taken>> {
        let mut best: Vec<Option<(u64, &Choice)>> = vec![None; choices.len()];
        for first in (0..choices.len()).rev() {
            let allowed = choices[first].iter().filter(|choice| choice.bytes <= limit);
            let total = |choice: &Choice| match best.get(first + choice.count) {
                Some(rest) => rest.map(|(rest, _)| choice.work.saturating_add(rest)),
                None => Some(choice.work),
            };
            best[first] = allowed.filter_map(|choice| Some((total(choice)?, choice))).min_by_key(|(work, _)| *work);
        }
        let (mut first, mut path) = (0, Vec::new());
        while let Some(found) = best.get(first) {
            let (_, &Choice { count, rows, patches, halo, twice, .. }) = (*found)?;
            path.push(Taken { first, count, rows, patches, halo, twice });
            first += count;
        }
        Some(path)
    }
}

/// How far a result of patches has to begin before a tensor outside that they read, in bytes: patches are taken to read a row until they
/// have written all of theirs. `None` where it isn't read by rows.
fn lead(patches: &[Patch], (operand, bytes): (Value, usize), result_bytes: usize) -> Option<i64> {
    let mut lead = None;
    // The first row that a patch or one behind it reads.
    let mut first = usize::MAX;
    for patch in patches.iter().rev() {
        first = patch.outside.get(&operand).map_or(first, |rows| first.min(rows.start));
        if first < usize::MAX {
            lead = lead.max(Some((patch.result.end * result_bytes) as i64 - (first * bytes) as i64));
        }
    }
    lead
}

/// Bytes that are moved in rings, and what it takes to ask whose turn it is.
fn work(outline: &Outline, rows: usize) -> u64 {
    let asked = outline.turns.count * outline.members.len();
    (outline.moved_bytes(rows) + asked) as u64
}

/// For each value, the one whose memory it lies in: views in their operand's, parts in the whole that they are joined to.
fn wholes(graph: &Graph, order: &[NodeId]) -> BTreeMap<Value, Value> {
    let mut hosts: BTreeMap<Value, Value> = BTreeMap::new();
    for &id in order {
        let op = &graph.node(id).op;
        if is_view(op) {
            hosts.insert(id.into(), graph.operands(id)[0]);
        }
        if op.category() == mlc_ir::Category::Movement {
            for operand in graph.operands(id).into_iter().filter(|&operand| graph.uses(operand).len() == 1) {
                hosts.entry(operand).or_insert(id.into());
            }
        }
    }
    let values = order.iter().flat_map(|&id| {
        let slots = 0..graph.node(id).results.len() as u32;
        slots.map(move |slot| Value { node: id, slot })
    });
    let whole = |value: Value| {
        let mut whole = value;
        while let Some(&host) = hosts.get(&whole) {
            whole = host;
        }
        (value, whole)
    };
    values.map(whole).collect()
}
