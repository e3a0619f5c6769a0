//! [`Layout`]: how long each buffer lives in the walk of a tree of parts, which may share memory, and where in the arena they are.

use super::entries::{Entry, entries};
use super::fetching;
use super::homes::{Buffer, BufferId, BufferKind};
use super::overlay::Overlay;
use super::part::{Binding, Part};
use super::plan::{self, Lap, Request};
use super::pools;
use crate::execution::MemoryPool;
use crate::loops::Direction;
use crate::module::MemoryPlan;
use mlc_ir::Diagnostic;
use std::collections::BTreeMap;
use std::ops::Range;

/// Where everything is in an arena.
#[derive(Debug, Default)]
pub struct Layout {
    /// Offset of each arena buffer, in bytes.
    pub offsets: BTreeMap<BufferId, usize>,
    /// Offset of each step's scratch memory, by (position, number of the binding).
    pub scratch: BTreeMap<(usize, usize), usize>,
    /// Arena buffers that share memory.
    pub groups: Vec<Group>,
    /// The memory plan. Kernels in it are positions.
    pub plan: MemoryPlan,
}

/// Arena buffers that share memory: results that overwrite operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The buffers.
    pub members: Vec<BufferId>,
    /// Size of the memory in bytes.
    pub bytes: usize,
    /// Position of the first part that touches it.
    pub first: usize,
    /// Position of the last part that touches it.
    pub last: usize,
}

impl Layout {
    /// Places all buffers of a sequence. `uses` are positions before which messages or constants are in buffers.
    pub fn new<'a>(
        parts: impl IntoIterator<Item = &'a Part>,
        uses: &[(usize, BufferId)],
        buffers: &[Buffer],
        alignment: usize,
    ) -> Layout {
        let walk = entries(parts, 0);
        let own = all_lives(&walk, uses, buffers);
        Layout::of(&walk, &own, buffers, alignment, |_| true)
    }

    /// Places all buffers of a program without messages in several pieces of memory; `accessed` says how many bytes a run reads and writes in
    /// a buffer, or in the scratch memory of a step, as in [`Layout::scratch`].
    ///
    /// # Errors
    /// `MLC0402` when they don't fit.
    pub fn in_pools(
        parts: &[Part],
        buffers: &[Buffer],
        alignment: usize,
        pools: &[MemoryPool],
        accessed: &Accessed,
    ) -> Result<Layout, Diagnostic> {
        let walk = entries(parts, 0);
        let lives = merge_in_place(&walk, &all_lives(&walk, &fetching::uses(parts), buffers));
        let (requests, owners) = requests(&walk, buffers, &lives, |_| true);
        let bytes = |owner: &Owner| match *owner {
            Owner::Buffer(root) => lives.members(root).filter_map(|id| accessed.buffers.get(&id)).sum(),
            Owner::Scratch(position, number) => accessed.scratch.get(&(position, number)).copied().unwrap_or(0.0),
        };
        let accessed: Vec<f64> = owners.iter().map(bytes).collect();
        let laps = laps(&walk, &lives, &owners);
        let wanted = pools::Wanted { requests: &requests, laps: &laps, pools, alignment };
        let plan = pools::plan(&wanted, &accessed)?;
        Ok(Layout::placed(&lives, &owners, plan, buffers))
    }

    /// Places all buffers of a program without messages where the parts of some ranges of positions run at the same time: what one of
    /// them needs has a place of its own while any of them runs.
    pub fn beside(parts: &[Part], buffers: &[Buffer], alignment: usize, together: &[Range<usize>]) -> Layout {
        let walk = entries(parts, 0);
        let mut own = all_lives(&walk, &fetching::uses(parts), buffers);
        own.values_mut().for_each(|life| *life = widened(*life, together));
        let lives = merge_in_place(&walk, &own);
        let (mut requests, owners) = requests(&walk, buffers, &lives, |_| true);
        for request in &mut requests {
            (request.first, request.last) = widened((request.first, request.last), together);
        }
        let laps = laps(&walk, &lives, &owners);
        Layout::placed(&lives, &owners, plan::plan(&requests, &laps, alignment), buffers)
    }

    /// Places what nothing but a part needs, in a piece of memory of its own: the locals of a loop or a stripe, and scratch memory but for what
    /// functions of the packed convention take from a runtime. `first` is the part's position.
    pub fn within(part: &Part, first: usize, buffers: &[Buffer], alignment: usize) -> Layout {
        let walk = entries([part], first);
        let mut own = own_lives(&walk, buffers);
        own.retain(|id, _| part.locals().is_some_and(|locals| locals.contains(id)));
        Layout::of(
            &walk,
            &own,
            buffers,
            alignment,
            |part| !matches!(part, Part::Step(step) if step.routine.is_packed()),
        )
    }

    fn of(
        walk: &[Entry<'_>],
        own: &BTreeMap<BufferId, Life>,
        buffers: &[Buffer],
        alignment: usize,
        has_scratch: impl Fn(&Part) -> bool,
    ) -> Layout {
        let lives = merge_in_place(walk, own);
        let (requests, owners) = requests(walk, buffers, &lives, has_scratch);
        let laps = laps(walk, &lives, &owners);
        Layout::placed(&lives, &owners, plan::plan(&requests, &laps, alignment), buffers)
    }

    /// A plan as offsets of those who asked for it.
    fn placed(lives: &Lives, owners: &[Owner], mut plan: MemoryPlan, buffers: &[Buffer]) -> Layout {
        let (mut offsets, mut scratch) = (BTreeMap::new(), BTreeMap::new());
        for (owner, planned) in owners.iter().zip(&plan.buffers) {
            match *owner {
                Owner::Buffer(root) => offsets.extend(lives.members(root).map(|id| (id, planned.offset))),
                Owner::Scratch(position, number) => {
                    scratch.insert((position, number), planned.offset);
                }
            }
        }
        plan.buffers.sort_by_key(|buffer| (buffer.first, buffer.offset));
        Layout { offsets, scratch, groups: lives.groups(buffers), plan }
    }
}

impl Layout {
    /// Which way the loops have to go that write a result, where it lies over an operand here other than exactly.
    pub fn direction(&self, overlay: &Overlay, buffers: &[Buffer]) -> Option<Direction> {
        let place = |id: BufferId| Some((*self.offsets.get(&id)?, buffers[id].bytes));
        let is_one =
            |group: &Group| group.members.contains(&overlay.result) && group.members.contains(&overlay.operand);
        let (result, operand) = place(overlay.result).zip(place(overlay.operand))?;
        let meet = result.0 < operand.0 + operand.1 && operand.0 < result.0 + result.1;
        (meet && !self.groups.iter().any(is_one)).then_some(())?;
        overlay.direction(operand.0 as i64 - result.0 as i64)
    }
}

/// Bytes that a run reads and writes.
#[derive(Debug, Default)]
pub struct Accessed {
    /// In each buffer.
    pub buffers: BTreeMap<BufferId, f64>,
    /// In each step's scratch memory, by (position, number of the binding).
    pub scratch: BTreeMap<(usize, usize), f64>,
}

/// The first and the last position at which something is needed.
type Life = (usize, usize);

/// A life that has all of those ranges that it begins or ends in.
fn widened((first, last): Life, together: &[Range<usize>]) -> Life {
    let around = |position: usize| together.iter().find(|range| range.contains(&position));
    (around(first).map_or(first, |range| range.start), around(last).map_or(last, |range| range.end - 1))
}

/// What needs a place in the arena, and for whom.
fn requests(
    walk: &[Entry<'_>],
    buffers: &[Buffer],
    lives: &Lives,
    has_scratch: impl Fn(&Part) -> bool,
) -> (Vec<Request>, Vec<Owner>) {
    let mut requests: Vec<Request> = Vec::new();
    let mut owners: Vec<Owner> = Vec::new();
    for (&root, &(first, last)) in &lives.roots {
        let mut values: Vec<String> = lives.members(root).flat_map(|id| buffers[id].values.clone()).collect();
        values.dedup();
        let alignment = lives.members(root).map(|id| buffers[id].alignment).fold(1, usize::max);
        requests.push(Request { values, bytes: buffers[root].bytes, alignment, first, last });
        owners.push(Owner::Buffer(root));
    }
    for entry in walk.iter().filter(|entry| has_scratch(entry.part)) {
        for (number, binding) in entry.part.bindings().iter().enumerate() {
            if let Binding::Scratch { bytes, alignment, .. } = binding {
                let values = vec![format!("scratch of {}", entry.part.name())];
                let (first, last) = (entry.first, entry.last);
                requests.push(Request { values, bytes: *bytes, alignment: *alignment, first, last });
                owners.push(Owner::Scratch(first, number));
            }
        }
    }
    (requests, owners)
}

/// Results that may lie over operands that die in their part, or in the last of those that write them together.
fn laps(walk: &[Entry<'_>], lives: &Lives, owners: &[Owner]) -> Vec<Lap> {
    let request = |root: BufferId| owners.iter().position(|owner| matches!(owner, Owner::Buffer(own) if *own == root));
    let lap = |entry: &Entry<'_>, overlay: &Overlay| {
        let last = together(walk, entry, overlay)?;
        let (&over, &under) = (lives.alias.get(&overlay.result)?, lives.alias.get(&overlay.operand)?);
        let is_born = over == overlay.result && lives.roots.get(&over)?.0 == entry.first;
        let dies = lives.roots.get(&under)?.1 == last;
        (is_born && dies && over != under).then_some(())?;
        Some(Lap { result: request(over)?, operand: request(under)?, up: overlay.up, down: overlay.down })
    };
    let overlays = walk.iter().flat_map(|entry| entry.part.overlays().iter().map(move |overlay| (entry, overlay)));
    overlays.filter_map(|(entry, overlay)| lap(entry, overlay)).collect()
}

/// The last position of the parts that write a result together, of which the entry is the first: if they follow each other in their order,
/// and nothing else between them has to do with the result or the operand.
fn together(walk: &[Entry<'_>], entry: &Entry<'_>, overlay: &Overlay) -> Option<usize> {
    let (_, count) = overlay.part;
    if count == 1 {
        return Some(entry.last);
    }
    let touches = |part: &Part| {
        let buffers = || part.bindings().iter().filter_map(Binding::buffer);
        buffers().any(|buffer| buffer == overlay.result || buffer == overlay.operand)
    };
    let mut last = None;
    let others = walk.iter().filter(|other| other.first >= entry.first && other.around.is_empty());
    for (number, other) in others.filter(|other| touches(other.part)).take(count).enumerate() {
        let own = Overlay { part: (number, count), ..*overlay };
        other.part.overlays().contains(&own).then_some(())?;
        last = (number + 1 == count).then_some(other.last);
    }
    last
}

#[derive(Clone, Copy)]
enum Owner {
    Buffer(BufferId),
    Scratch(usize, usize),
}

/// Arena buffers that share memory, and when each group lives.
struct Lives {
    alias: BTreeMap<BufferId, BufferId>,
    roots: BTreeMap<BufferId, Life>,
}

impl Lives {
    fn groups(&self, buffers: &[Buffer]) -> Vec<Group> {
        let group = |(&root, &(first, last)): (&BufferId, &Life)| Group {
            members: self.members(root).collect(),
            bytes: buffers[root].bytes,
            first,
            last,
        };
        self.roots.iter().map(group).collect()
    }

    fn members(&self, root: BufferId) -> impl Iterator<Item = BufferId> + '_ {
        self.alias.iter().filter(move |(_, own)| **own == root).map(|(&id, _)| id)
    }
}

fn extend(lives: &mut BTreeMap<BufferId, Life>, id: BufferId, (first, last): Life) {
    let life = lives.entry(id).or_insert((first, last));
    *life = (life.0.min(first), life.1.max(last));
}

/// When each arena buffer is touched, by parts and at positions before which it is used.
fn all_lives(walk: &[Entry<'_>], uses: &[(usize, BufferId)], buffers: &[Buffer]) -> BTreeMap<BufferId, Life> {
    let mut own = own_lives(walk, buffers);
    for &(position, id) in uses.iter().filter(|(_, id)| buffers[*id].kind == BufferKind::Arena) {
        extend(&mut own, id, (position, position));
    }
    own
}

/// When parts touch each arena buffer. What a loop touches of others' is needed by all of its turns; what is its own lives in each turn anew.
fn own_lives(walk: &[Entry<'_>], buffers: &[Buffer]) -> BTreeMap<BufferId, Life> {
    let mut own = BTreeMap::new();
    for entry in walk {
        for id in entry.part.bindings().iter().filter_map(Binding::buffer) {
            if buffers[id].kind == BufferKind::Arena {
                let is_local = |part: &Part| part.locals().is_some_and(|locals| locals.contains(&id));
                let outermost = entry.around.iter().find(|around| !is_local(around.part));
                let life = outermost.map_or((entry.first, entry.last), |around| (around.first, around.last));
                extend(&mut own, id, life);
            }
        }
    }
    own
}

/// Lets results overwrite operands that die in the part, where the part allows it.
fn merge_in_place(walk: &[Entry<'_>], own: &BTreeMap<BufferId, Life>) -> Lives {
    let mut alias: BTreeMap<BufferId, BufferId> = own.keys().map(|&id| (id, id)).collect();
    let mut roots = own.clone();
    for entry in walk {
        for (result, candidate) in entry.part.in_place() {
            let (Some(&root), Some(&life)) = (alias.get(candidate), own.get(result)) else { continue };
            let dies_here = roots.get(&root).is_some_and(|life| life.1 == entry.last);
            let born_here = alias[result] == *result && life.0 == entry.first;
            if dies_here && born_here && root != *result {
                alias.insert(*result, root);
                roots.remove(result);
                if let Some(joined) = roots.get_mut(&root) {
                    joined.1 = life.1;
                }
            }
        }
    }
    Lives { alias, roots }
}
