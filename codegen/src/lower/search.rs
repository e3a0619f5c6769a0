//! [`best`]: which of the programs that a graph could be lowered to is taken, and [`explore`]: which there are.
//!
//! A program is made by a chooser of schedules, of a plan of blocks that are computed row by row. The smallest arena is one that kernels
//! with little scratch memory have. Then kernels whose scratch memory fits where nothing else is at that time take faster schedules.

use super::block::Block;
use super::blocks::{self, Plan, Wanted};
use super::considered::{Candidate, Considered};
use super::entries::entries;
use super::legalize;
use super::part::{Binding, Part};
use super::point::Point;
use super::sequence::{OF_MODELS, Sequence, sequence};
use crate::choice::{ByPixels, Chooser, Goal, is_better};
use crate::names::Names;
use crate::target::VectorSpelling;
use mlc_ir::{Diagnostic, Graph, NodeId, Objective};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// A program that was tried.
struct Found {
    sequence: Sequence,
    names: Names,
    /// Numbers of the plan and the chooser that it was made by.
    by: (usize, usize),
}

/// The programs that a graph could be lowered to.
struct Search<'a> {
    /// The graph as it was given.
    graph: Rc<Graph>,
    /// Who chooses schedules.
    choosers: Vec<&'a mut Chooser>,
    /// What is computed row by row.
    plans: Vec<Plan>,
    /// Symbols that are taken.
    names: Names,
    /// Whether plans of stripes were looked for.
    asks_for_rows: bool,
    /// The smallest program of each plan, as bytes of its arena and time.
    least: BTreeMap<usize, (usize, u64)>,
}

/// Which plans of blocks are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// None.
    Whole,
    /// That by which results stay in a cache.
    InCache,
    /// Those of less memory.
    Any,
    /// Those of less memory, and patches.
    AnyInPatches,
}

impl Rows {
    /// Threads share kernels, and there is little to share of a few rows. What stays in a cache is known of whole programs.
    fn of(chooser: &Chooser, is_fed: bool) -> Rows {
        let target = &chooser.target;
        let has_caches = target.machine.looks_ahead() && !chooser.is_for_threads() && !chooser.is_quick();
        match target.objective {
            _ if is_fed => Rows::Any,
            Objective::Ram => Rows::AnyInPatches,
            Objective::Speed | Objective::Balanced if has_caches => Rows::InCache,
            // Whole tensors and rings take about the same time there. With vectors, rows can take more than prices know.
            Objective::Balanced if target.machine.caches.is_empty() && target.vectors == VectorSpelling::None => {
                Rows::Any
            }
            _ => Rows::Whole,
        }
    }
}

impl Search<'_> {
    /// `fed` is an input whose rows are given one after the other; `computes_twice` says whether some rows may be computed twice.
    ///
    /// # Errors
    /// When what computes a patch doesn't fit: a defect of mlc.
    fn new<'a>(
        graph: &Graph,
        fed: Option<NodeId>,
        chooser: &'a mut Chooser,
        alternatives: &'a mut [Chooser],
        names: &Names,
        computes_twice: bool,
    ) -> Result<Search<'a>, Vec<Diagnostic>> {
        let target = Rc::clone(&chooser.target);
        let rows = Rows::of(chooser, fed.is_some());
        let has_rows = rows != Rows::Whole && graph.messages().is_empty();
        let wanted = match chooser.goal() {
            Goal::Arena(limit) => Wanted::Arena(limit),
            Goal::Time(share) => Wanted::Twice(share),
            Goal::Objective(_) if computes_twice => Wanted::All,
            Goal::Objective(_) => Wanted::Once,
        };
        let by_rows = match rows {
            _ if !has_rows => Vec::new(),
            Rows::Whole => Vec::new(),
            Rows::InCache => blocks::in_cache(graph, &target).into_iter().collect(),
            Rows::Any | Rows::AnyInPatches => blocks::plans(graph, &target, fed),
        };
        let in_patches = match rows {
            Rows::AnyInPatches if has_rows => blocks::in_patches(graph, &target, wanted),
            _ => Ok(Vec::new()),
        };
        let in_patches = in_patches.map_err(|error| vec![error])?;
        let graph = Rc::new(graph.clone());
        let whole = fed.is_none().then(Vec::new);
        let of_rows = whole.into_iter().chain(by_rows).map(|blocks| Plan::of_rows(&graph, blocks));
        let plans = of_rows.chain(in_patches).collect();
        let choosers = [chooser].into_iter().chain(alternatives).collect();
        Ok(Search { graph, choosers, plans, names: names.clone(), asks_for_rows: has_rows, least: BTreeMap::new() })
    }

    fn try_out(&mut self, by: (usize, usize)) -> Result<Found, Vec<Diagnostic>> {
        let (plan, chooser) = by;
        let mut names = self.names.clone();
        let Plan { graph, blocks, .. } = &self.plans[plan];
        let chooser = &mut *self.choosers[chooser];
        let fetched = chooser.fetched();
        let mut sequence = sequence(graph, blocks, OF_MODELS, fetched, chooser, &mut names)?;
        if chooser.is_by_pixels() {
            // Where a result lies over no operand in the end, there is nothing to be paid for.
            let all = chooser.take_by_pixels(ByPixels::Nodes(overlaid(&sequence)));
            let mut own = self.names.clone();
            let other = self::sequence(graph, blocks, OF_MODELS, fetched, chooser, &mut own);
            chooser.take_by_pixels(all);
            let other = other?;
            if other.cost() < sequence.cost() {
                (sequence, names) = (other, own);
            }
        }
        let cost = sequence.cost();
        self.least.entry(plan).and_modify(|least| *least = cost.min(*least)).or_insert(cost);
        Ok(Found { sequence, names, by })
    }

    /// What a program was chosen from.
    fn considered(&self, found: &Found, fed: Option<NodeId>) -> Considered {
        let taken = found.by.0;
        let chooser = &self.choosers[found.by.1];
        // Nobody asks why stripes end in what is only priced.
        let cuts = if chooser.is_quick() {
            Vec::new()
        } else {
            blocks::cuts(&self.graph, &chooser.target, fed, &self.plans[taken].given)
        };
        let candidate = |(&plan, &least): (&usize, &(usize, u64))| {
            let (arena_bytes, time) = if plan == taken { found.sequence.cost() } else { least };
            Candidate { arena_bytes, time, stripes: self.plans[plan].given.iter().map(Block::span).collect() }
        };
        Considered {
            asks_for_rows: self.asks_for_rows,
            programs: self.least.iter().map(candidate).collect(),
            taken: self.least.range(..taken).count(),
            cuts,
        }
    }

    fn all(&self) -> Vec<(usize, usize)> {
        // Little memory is what patches are for.
        let suits = |&(plan, chooser): &(usize, usize)| {
            let (plan, chooser) = (&self.plans[plan], &self.choosers[chooser]);
            let is_by_rows = !plan.blocks.is_empty();
            // Rows in rings leave little that whole results could lie over.
            !(is_by_rows && chooser.is_by_pixels())
                && (!plan.has_patches() || chooser.target.objective == Objective::Ram)
        };
        let choosers = 0..self.choosers.len();
        let all = (0..self.plans.len()).flat_map(|plan| choosers.clone().map(move |chooser| (plan, chooser)));
        all.filter(suits).collect()
    }

    /// The same program with the fastest schedules whose scratch memory fits into an arena of so many bytes; `None` where that is no
    /// faster.
    fn with_room(&mut self, found: &Found, arena_bytes: usize) -> Result<Option<Found>, Vec<Diagnostic>> {
        let (arena, time) = found.sequence.cost();
        let limit = arena_bytes.max(arena);
        // How buffers fit together is known when they are planned, so that there may be less room than bytes.
        for share in [100, 60, 30] {
            let room = room(&found.sequence, arena + (limit - arena) * share / 100);
            let room = room.into_iter().map(|(node, bytes)| (node, bytes * share / 100)).collect();
            self.choosers[found.by.1].give_room(room);
            let other = self.try_out(found.by);
            self.choosers[found.by.1].give_room(BTreeMap::new());
            let other = other?;
            let (other_arena, other_time) = other.sequence.cost();
            if other_arena <= limit && other_time < time {
                return Ok(Some(other));
            }
            // Where all that there is room for changes nothing, less doesn't either.
            if (other_arena, other_time) == (arena, time) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn best_for(&mut self, objective: Objective) -> Result<Option<Found>, Vec<Diagnostic>> {
        let mut best: Option<Found> = None;
        let mut usual = None;
        for by in self.all() {
            let found = self.try_out(by)?;
            let cost = found.sequence.cost();
            let usual = *usual.get_or_insert(cost);
            let is_better = |other: &Found| is_better(objective, cost, other.sequence.cost(), usual);
            if best.as_ref().is_none_or(is_better) {
                best = Some(found);
            }
        }
        Ok(best)
    }

    /// The smallest program. In patches are the nodes of the smallest one that takes little more time than the fastest one there is.
    fn smallest(&mut self) -> Result<Option<Found>, Vec<Diagnostic>> {
        let (in_patches, others): (Vec<_>, Vec<_>) =
            self.all().into_iter().partition(|(plan, _)| self.plans[*plan].has_patches());
        let mut programs: Vec<Found> = Vec::new();
        let mut least = u64::MAX;
        for same_plan in others.chunk_by(|own, other| own.0 == other.0) {
            let [first, others @ ..] = same_plan else { continue };
            let first = self.try_out(*first)?;
            let smallest = programs.iter().map(|found| found.sequence.cost().0).min().unwrap_or(usize::MAX);
            let most = smallest.saturating_add(smallest / FAR);
            // Plans behind it take more.
            if first.sequence.cost().0 > most {
                break;
            }
            let mut own = self.try_all(others)?;
            own.push(first);
            least = own.iter().map(|found| found.sequence.cost().1).fold(least, u64::min);
            programs.extend(own.into_iter().min_by_key(|found| (found.sequence.cost(), found.by)));
        }
        let most = least.saturating_add(least / LITTLE_TIME);
        // Larger ones take less time, so that halves are left of those that may be it.
        let mut in_patches: Vec<&[(usize, usize)]> = in_patches.chunk_by(|own, other| own.0 == other.0).collect();
        while !in_patches.is_empty() {
            let middle = in_patches.len() / 2;
            let Some(mut found) = self.try_all(in_patches[middle])?.into_iter().next() else { break };
            let (arena, time) = found.sequence.cost();
            if time > most {
                found = self.with_room(&found, arena)?.unwrap_or(found);
            }
            if found.sequence.cost().1 <= most {
                programs.push(found);
                in_patches.truncate(middle);
            } else {
                in_patches.drain(..=middle);
            }
        }
        programs.sort_by_key(|found| (found.sequence.cost(), found.by));
        if programs.is_empty() { Ok(None) } else { self.faster_of(programs.remove(0), programs).map(Some) }
    }

    /// The programs of some plans and choosers, the smallest one first.
    fn try_all(&mut self, all: &[(usize, usize)]) -> Result<Vec<Found>, Vec<Diagnostic>> {
        let mut programs = all.iter().map(|&by| self.try_out(by)).collect::<Result<Vec<Found>, _>>()?;
        programs.sort_by_key(|found| (found.sequence.cost(), found.by));
        Ok(programs)
    }

    /// The smallest program with faster schedules, or one of another plan that takes much less time and little more memory.
    fn faster_of(&mut self, smallest: Found, mut others: Vec<Found>) -> Result<Found, Vec<Diagnostic>> {
        let (least, plan) = (smallest.sequence.cost(), smallest.by.0);
        let limit = least.0 + least.0 / LITTLE_MORE;
        others.retain(|other| other.by.0 != plan && other.sequence.cost().0 <= limit);
        let mut best = self.faster(&smallest)?.unwrap_or(smallest);
        for other in others {
            let (arena, _) = other.sequence.cost();
            let faster = self.with_room(&other, limit.max(arena))?.unwrap_or(other);
            if is_much_faster(faster.sequence.cost().1, best.sequence.cost().1) {
                best = faster;
            }
        }
        Ok(best)
    }

    /// The same program with faster schedules, in the same arena or, where that takes much less time, in a little more.
    fn faster(&mut self, found: &Found) -> Result<Option<Found>, Vec<Diagnostic>> {
        let (arena, time) = found.sequence.cost();
        let is_worth_it = |other: &Found| {
            let (other_arena, other_time) = other.sequence.cost();
            other_arena <= arena + arena / LITTLE_MORE && is_much_faster(other_time, time)
        };
        // What schedules are said to have room for isn't what the plan takes in the end.
        for part in [LITTLE_MORE / 3, LITTLE_MORE] {
            let faster = self.with_room(found, arena + arena / part)?.filter(is_worth_it);
            if faster.is_some() {
                return Ok(faster);
            }
        }
        self.with_room(found, arena)
    }

    /// The fastest program whose arena has no more than so many bytes; the smallest one where all have more.
    fn fastest_within(&mut self, limit: usize) -> Result<Option<Found>, Vec<Diagnostic>> {
        let mut best: Option<Found> = None;
        let mut far = None;
        for by in self.all() {
            // The first chooser takes the least memory, or little more.
            if far == Some(by.0) {
                continue;
            }
            let mut found = self.try_out(by)?;
            if found.sequence.cost().0 > limit + limit / FAR {
                far = Some(by.0);
            }
            if found.sequence.cost().0 <= limit
                && let Some(faster) = self.with_room(&found, limit)?
            {
                found = faster;
            }
            if best.as_ref().is_none_or(|best| fits_better(limit, found.sequence.cost(), best.sequence.cost())) {
                best = Some(found);
            }
        }
        Ok(best)
    }

    /// The smallest program that takes no more than such a share of time, in thousandths, beyond the fastest one's.
    fn smallest_within(&mut self, share: u64) -> Result<Option<Found>, Vec<Diagnostic>> {
        let mut programs = Vec::new();
        for by in self.all() {
            let found = self.try_out(by)?;
            let faster = if self.plans[by.0].blocks.is_empty() { self.fastest(&found)? } else { None };
            programs.push(found);
            programs.extend(faster);
        }
        let time = |found: &Found| u128::from(found.sequence.cost().1);
        let most = programs.iter().map(time).min().unwrap_or(0) * u128::from(1000 + share) / 1000;
        programs.sort_by_key(|found| found.sequence.cost());
        let mut best: Option<Found> = None;
        for mut found in programs {
            let (arena, _) = found.sequence.cost();
            // Those that take too much time may take less with more memory.
            let rooms = self.rooms(&found).map(|number| arena + arena * number / LIMITS);
            for room in rooms {
                let is_larger = best.as_ref().is_some_and(|best| best.sequence.cost().0 <= room);
                if time(&found) <= most || is_larger {
                    break;
                }
                found = self.with_room(&found, room)?.unwrap_or(found);
            }
            let cost = found.sequence.cost();
            if time(&found) <= most && best.as_ref().is_none_or(|best| cost < best.sequence.cost()) {
                best = Some(found);
            }
        }
        Ok(best)
    }

    /// How much more memory faster schedules are looked for in, in parts of [`LIMITS`]: more than patches take is what they are to do without,
    /// and schedules that weren't chosen for little memory leave little to look for.
    fn rooms(&self, found: &Found) -> Range<usize> {
        let is_for_ram = self.choosers[found.by.1].target.objective == Objective::Ram;
        0..if self.plans[found.by.0].has_patches() || !is_for_ram { 1 } else { LIMITS }
    }

    /// A program with the fastest schedules that are looked for.
    fn fastest(&mut self, found: &Found) -> Result<Option<Found>, Vec<Diagnostic>> {
        let (arena, _) = found.sequence.cost();
        self.with_room(found, arena + arena * (LIMITS - 1) / LIMITS)
    }

    /// The programs of which none has both a smaller arena and less time than another one, those of least memory first.
    fn front(&mut self) -> Result<Vec<Found>, Vec<Diagnostic>> {
        let mut front: Vec<Found> = Vec::new();
        for by in self.all() {
            let mut found = self.try_out(by)?;
            let (arena, _) = found.sequence.cost();
            // Scratch memory is a fraction of what there is.
            for number in self.rooms(&found) {
                if let Some(faster) = self.with_room(&found, arena + arena * number / LIMITS)? {
                    add(&mut front, std::mem::replace(&mut found, faster));
                }
            }
            add(&mut front, found);
        }
        front.sort_by_key(|found| found.sequence.cost());
        Ok(front)
    }
}

/// The part of the time of the fastest program that the smallest one may take more to be in patches.
const LITTLE_TIME: u64 = 24;

/// The part of the smallest arena that a tenth of the time is worth.
const LITTLE_MORE: usize = 25;

/// Whether a time is so much less than another one that it is worth that.
fn is_much_faster(own: u64, other: u64) -> bool {
    u128::from(own) * 10 <= u128::from(other) * 9
}

/// Programs whose arena has more than a limit and this part of it aren't made with other schedules.
const FAR: usize = 4;

/// Arenas between the least one of a plan and twice as many bytes that faster schedules are looked for.
const LIMITS: usize = 8;

/// Adds a program unless another one has no more of both, and takes out those that it has no more of both than.
fn add(front: &mut Vec<Found>, found: Found) {
    let covers = |own: (usize, u64), other: (usize, u64)| own.0 <= other.0 && own.1 <= other.1;
    let cost = found.sequence.cost();
    if !front.iter().any(|known| covers(known.sequence.cost(), cost)) {
        front.retain(|known| !covers(cost, known.sequence.cost()));
        front.push(found);
    }
}

/// The best program, and what it was chosen from; who chose its schedules takes the place of `chooser`. `None` where none takes the rows of the input `fed` one after the
/// other.
///
/// # Errors
/// All nodes that the target can't run.
pub(super) fn best(
    graph: &Graph,
    fed: Option<NodeId>,
    chooser: &mut Chooser,
    names: &mut Names,
) -> Result<Option<(Sequence, Considered)>, Vec<Diagnostic>> {
    let goal = chooser.goal();
    let mut alternatives =
        chooser.alternatives(legalize::has_bands(graph, &chooser.target), legalize::has_tiles(graph));
    let computes_twice = matches!(goal, Goal::Arena(_) | Goal::Time(_));
    let mut search = Search::new(graph, fed, chooser, &mut alternatives, names, computes_twice)?;
    let best = match goal {
        Goal::Objective(Objective::Ram) => search.smallest()?,
        Goal::Objective(objective) => search.best_for(objective)?,
        Goal::Arena(limit) => search.fastest_within(limit)?,
        Goal::Time(share) => search.smallest_within(share)?,
    };
    let Some(mut best) = best else { return Ok(None) };
    if !search.choosers[best.by.1].is_quick() {
        best.sequence.finish()?;
    }
    let considered = search.considered(&best, fed);
    *names = best.names;
    if let Some(number) = best.by.1.checked_sub(1) {
        *chooser = alternatives.swap_remove(number);
    }
    Ok(Some((best.sequence, considered)))
}

/// Whether a program is better than another one where the arena has a limit: the faster one of those that keep to it, otherwise the smaller one.
fn fits_better(limit: usize, own: (usize, u64), other: (usize, u64)) -> bool {
    match (own.0 <= limit, other.0 <= limit) {
        (true, true) => (own.1, own.0) < (other.1, other.0),
        (fits, other_fits) if fits != other_fits => fits,
        _ => own < other,
    }
}

/// Nodes that write results which lie over operands.
fn overlaid(sequence: &Sequence) -> BTreeSet<String> {
    let walk = entries(&sequence.parts, 0);
    let steps = walk.iter().filter_map(|entry| if let Part::Step(step) = entry.part { Some(step) } else { None });
    steps.filter(|step| !step.overlays.is_empty()).map(|step| step.label.node.clone()).collect()
}

/// Bytes of an arena of some size that nothing needs while a node is computed, but for its own scratch memory.
fn room(sequence: &Sequence, arena_bytes: usize) -> BTreeMap<String, usize> {
    let mut room: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries(&sequence.parts, 0) {
        let Part::Step(step) = entry.part else { continue };
        let is_alive = |first: usize, last: usize| first <= entry.first && entry.first <= last;
        let buffers = sequence.layout.plan.buffers.iter();
        let alive: usize = buffers.filter(|own| is_alive(own.first, own.last)).map(|own| own.bytes).sum();
        let scratch = step.bindings.iter().map(|own| if let Binding::Scratch { bytes, .. } = own { *bytes } else { 0 });
        let free = arena_bytes.saturating_sub(alive.saturating_sub(scratch.sum()));
        let known = room.entry(step.label.node.clone()).or_insert(free);
        *known = free.min(*known);
    }
    room
}

/// What there is to choose from, see [`Search::front`].
///
/// # Errors
/// All nodes that the target can't run.
pub(super) fn explore(graph: &Graph, chooser: &mut Chooser, names: &Names) -> Result<Vec<Point>, Vec<Diagnostic>> {
    let mut alternatives =
        chooser.alternatives(legalize::has_bands(graph, &chooser.target), legalize::has_tiles(graph));
    let mut search = Search::new(graph, None, chooser, &mut alternatives, names, true)?;
    let front = search.front()?;
    let point = |found: Found| {
        let (arena_bytes, time) = found.sequence.cost();
        Point { arena_bytes, time, twice: search.plans[found.by.0].twice() }
    };
    Ok(front.into_iter().map(point).collect())
}
