//! Which memory results share with operands that die: exactly, or at a distance that the loop program which computes them leaves.

use super::entries::entries;
use super::homes::{BufferId, BufferKind, Home, Homes};
use super::maker::Maker;
use super::overlay::{Distance, Overlay};
use super::part::{Binding, Part, Routine, Step, Stripe};
use super::plan::multiple_from;
use super::rings::RowWalk;
use crate::choice::{Choice, Chooser};
use crate::loops::{self, Direction, Function, Lead, Overlaps, Parameter, Question, Var, downwards};
use mlc_ir::{DType, Objective, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Where the result of a step may lie.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    /// See [`Part::in_place`].
    pub in_place: Vec<(BufferId, BufferId)>,
    /// Pairs to find the distance of.
    pub candidates: Vec<Candidate>,
}

/// A result and an operand that it may lie over at some distance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    result: BufferId,
    operand: BufferId,
    /// Bytes of the result and of the operand: from this distance on both are apart, upwards and downwards.
    bytes: [i64; 2],
    /// Bytes of a pixel, if both have as many.
    pixel: usize,
}

impl Maker<'_> {
    /// Operands that a result may lie over at some distance: where memory counts, and C knows that bytes or elements of one type are what is
    /// read and written.
    pub(super) fn candidates(
        &self,
        homes: &Homes,
        operands: &[(Home, Option<Value>)],
        (result, own): &Home,
    ) -> Vec<Candidate> {
        if self.target.objective != Objective::Ram {
            return Vec::new();
        }
        let is_arena = |buffer: BufferId| homes.buffers[buffer].kind == BufferKind::Arena;
        let buffers = || operands.iter().map(|((buffer, _), _)| *buffer);
        let once = |buffer: BufferId| buffers().filter(|&other| other == buffer).count() == 1 && buffer != *result;
        let found = operands.iter().filter(|((buffer, view), _)| {
            is_arena(*result) && is_arena(*buffer) && once(*buffer) && is_visible(view.dtype, own.dtype)
        });
        let candidate = |((operand, view), _): &(Home, Option<Value>)| Candidate {
            result: *result,
            operand: *operand,
            bytes: [*result, *operand].map(|buffer| homes.buffers[buffer].bytes as i64),
            pixel: pixel(view).filter(|bytes| Some(*bytes) == pixel(own)).unwrap_or(1),
        };
        found.map(candidate).collect()
    }

    /// The overlays of a step, by what its function does.
    pub(super) fn overlays(
        &mut self,
        function: &Function,
        bindings: &[Binding],
        choice: &Choice,
        candidates: &[Candidate],
    ) -> Vec<Overlay> {
        let mut overlays = Vec::new();
        for &candidate in candidates {
            let Candidate { result, operand, .. } = candidate;
            let (written, read) = (pointers(function, bindings, result), pointers(function, bindings, operand));
            let ([written], [read]) = (&written[..], &read[..]) else { continue };
            if written.constant || !read.constant {
                continue;
            }
            let up = self.distance(function, choice, (read, written), candidate, Direction::Upwards);
            let down = self.distance(function, choice, (read, written), candidate, Direction::Downwards);
            if up.is_some() || down.is_some() {
                overlays.push(Overlay { result, operand, up, down, part: (0, 1) });
            }
        }
        overlays
    }

    /// How far a function must have what it writes ahead of what it reads if it goes some way; `None` where that isn't known, or both are apart then.
    fn distance(
        &mut self,
        function: &Function,
        choice: &Choice,
        (read, written): (&Pointer, &Pointer),
        Candidate { bytes: [result, operand], pixel, .. }: Candidate,
        direction: Direction,
    ) -> Option<Distance> {
        let beside = written.offset - read.offset;
        let (beside, behind, apart) = match direction {
            Direction::Upwards => (beside, -operand, result),
            Direction::Downwards => (-beside, -result, operand),
        };
        let found = BTreeSet::from([1, pixel]).into_iter().filter_map(|modulus| {
            let question = Question { read: read.var, written: written.var, modulus, direction };
            let lead = self.chooser.lead(choice, function, question)?;
            let own = lead.distance.map_or(behind, |lead| lead + beside);
            Some((multiple_from(own.max(behind), modulus as i64), modulus))
        });
        let (least, modulus) = found.min().filter(|(least, _)| *least < apart)?;
        Some(Distance { least, modulus })
    }
}

/// Bytes of the last axis of a view in which pixels follow each other without gaps, wherever the buffer is.
pub(super) fn pixel(view: &super::view::View) -> Option<usize> {
    let size = view.dtype.size();
    let bytes = view.shape.last()? * size;
    let rank = view.rank();
    let whole = |elements: i64| (elements * size as i64) % bytes.max(1) as i64 == 0;
    let is_apart = view.strides[..rank - 1].iter().all(|&stride| whole(stride)) && whole(view.offset);
    (view.strides[rank - 1] == 1 && is_apart && bytes > size).then_some(bytes)
}

/// A pointer of a function to a buffer.
struct Pointer {
    var: Var,
    constant: bool,
    /// Bytes from the buffer's first one.
    offset: i64,
}

fn pointers(function: &Function, bindings: &[Binding], wanted: BufferId) -> Vec<Pointer> {
    let all = function.parameters.iter().zip(bindings);
    let pointer = |(parameter, binding): (&Parameter, &Binding)| match *binding {
        Binding::Buffer { buffer, offset, dtype, constant } if buffer == wanted => {
            Some(Pointer { var: parameter.var, constant, offset: offset * dtype.size() as i64 })
        }
        _ => None,
    };
    all.filter_map(pointer).collect()
}

/// Tells C, and what [proves loops independent](mark), which pointers of a function may point to the same memory.
pub(super) fn share(
    function: &mut Function,
    bindings: &[Binding],
    in_place: &[(BufferId, BufferId)],
    overlays: &[Overlay],
) {
    for (parameter, binding) in function.parameters.iter_mut().zip(bindings) {
        let is_alike = |id| in_place.iter().any(|&(over, under)| id == over || id == under);
        let is_astray = |id| overlays.iter().any(|overlay| id == overlay.result || id == overlay.operand);
        parameter.restrict = in_place.is_empty() && overlays.is_empty();
        parameter.overlaps = match binding.buffer() {
            Some(id) if is_astray(id) => Overlaps::Anyhow,
            Some(id) if is_alike(id) => Overlaps::Alike,
            _ => Overlaps::Never,
        };
    }
}

/// Marks the loops of a part whose turns are independent: behind [`settle`], and not in programs that are only tried out.
pub(super) fn mark(part: &mut Part) {
    match part {
        Part::Step(step) => {
            if let Routine::Kernel(function) = &mut step.routine {
                loops::parallel::mark(function);
            }
        }
        Part::Loop(code) => code.body.iter_mut().for_each(mark),
        Part::Stripe(code) => code.acts.iter_mut().flat_map(|act| &mut act.body).for_each(mark),
        Part::Exchange(_) | Part::Fetch(_) => {}
    }
}

/// Leaves a part those overlays that the plan of the memory makes use of, and has its loops go the way that each needs: `used` says which.
pub(super) fn settle(part: &mut Part, used: &dyn Fn(&Overlay) -> Option<Direction>) {
    match part {
        Part::Step(step) => keep(step, used),
        Part::Loop(code) => code.body.iter_mut().for_each(|part| settle(part, used)),
        Part::Stripe(code) => {
            code.overlays.retain(|overlay| used(overlay).is_some());
            let rows = (!code.overlays.is_empty()).then_some(Direction::Upwards);
            for part in code.acts.iter_mut().flat_map(|act| &mut act.body) {
                settle(part, &|_| rows);
            }
        }
        Part::Exchange(_) | Part::Fetch(_) => {}
    }
}

fn keep(step: &mut Step, used: &dyn Fn(&Overlay) -> Option<Direction>) {
    if step.overlays.is_empty() {
        return;
    }
    // All of them go the way of those that can't go the other one.
    step.overlays.retain(|overlay| used(overlay).is_some());
    let goes_down = step.overlays.iter().any(|overlay| used(overlay) == Some(Direction::Downwards));
    let direction = if goes_down { Direction::Downwards } else { Direction::Upwards };
    step.overlays.iter_mut().for_each(|overlay| *overlay = overlay.towards(direction));
    let Routine::Kernel(function) = &mut step.routine else { return };
    share(function, &step.bindings, &step.in_place, &[]);
    for overlay in step.overlays.iter().filter(|overlay| overlay.up.is_none()) {
        for written in pointers(function, &step.bindings, overlay.result) {
            if let Some(turned) = downwards(function, written.var) {
                *function = turned;
            }
        }
    }
    share(function, &step.bindings, &step.in_place, &step.overlays);
}

/// Whether C knows that what is written as elements of one type may be what is read as those of another one.
fn is_visible(one: DType, other: DType) -> bool {
    one == other || one.is_byte() || other.is_byte()
}

/// Finds the overlays of stripes that write one result together, one after the other, and tells their steps.
pub(super) fn overlay_stripes(codes: &mut [&mut Stripe], homes: &Homes, chooser: &mut Chooser) {
    let all: Vec<&Stripe> = codes.iter().map(|code| &**code).collect();
    let (overlays, count) = (of_stripes(&all, homes, chooser), codes.len());
    for (number, code) in codes.iter_mut().enumerate() {
        code.overlays = overlays.iter().map(|overlay| Overlay { part: (number, count), ..*overlay }).collect();
        tell_steps(code);
    }
}

/// Tells the steps of a stripe what its result may lie over.
fn tell_steps(code: &mut Stripe) {
    let walks = code.acts.iter().flat_map(|act| &act.walks);
    let whole = |walk: &RowWalk| Some((walk.rows, code.bindings[walk.whole].buffer()?));
    let wholes: BTreeMap<BufferId, BufferId> = walks.filter_map(whole).collect();
    for part in code.acts.iter_mut().flat_map(|act| &mut act.body) {
        let Part::Step(step) = part else { continue };
        let rows = |tensor: BufferId| -> Vec<BufferId> {
            let touched = step.bindings.iter().filter_map(Binding::buffer);
            touched.filter(|id| wholes.get(id) == Some(&tensor)).collect()
        };
        let mut pairs = Vec::new();
        for overlay in &code.overlays {
            for operand in rows(overlay.operand) {
                pairs.extend(rows(overlay.result).into_iter().map(|result| Overlay { result, operand, ..*overlay }));
            }
        }
        step.overlays = pairs;
        if let (Routine::Kernel(function), false) = (&mut step.routine, step.overlays.is_empty()) {
            share(function, &step.bindings, &step.in_place, &step.overlays);
        }
    }
}

/// The overlays of stripes: their result's, over each tensor that only kernels of them walk, row by row, as their turns and loop programs say.
fn of_stripes(codes: &[&Stripe], homes: &Homes, chooser: &mut Chooser) -> Vec<Overlay> {
    let is_arena = |buffer: &BufferId| homes.buffers[*buffer].kind == BufferKind::Arena;
    let walked = |constant: bool| {
        let walks = codes
            .iter()
            .flat_map(|code| code.acts.iter().flat_map(move |act| act.walks.iter().map(move |walk| (code, walk))));
        let mut tensors: BTreeMap<BufferId, (DType, usize)> = BTreeMap::new();
        for (code, walk) in walks.filter(|(_, walk)| walk.constant == constant) {
            let Binding::Buffer { buffer, dtype, .. } = code.bindings[walk.whole] else { continue };
            if is_arena(&buffer) {
                let (_, pixel) = tensors.entry(buffer).or_insert((dtype, walk.pixel));
                *pixel = if *pixel == walk.pixel { *pixel } else { 1 };
            }
        }
        tensors
    };
    // What patches keep for each other is both read and written.
    let (read, written) = (walked(true), walked(false));
    let result = written.into_iter().find(|(buffer, _)| !read.contains_key(buffer));
    let Some((result, (written, own_pixel))) = result else { return Vec::new() };
    let inner = || codes.iter().flat_map(|code| &code.acts).flat_map(|act| entries(&act.body, 0));
    let is_named =
        |buffer: BufferId| inner().any(|entry| entry.part.bindings().iter().any(|own| own.buffer() == Some(buffer)));
    let kept = walked(false);
    let operands = read
        .into_iter()
        .filter(|(operand, _)| !kept.contains_key(operand) && !is_named(*operand))
        .filter(|(_, (read, _))| is_visible(*read, written));
    let overlays = operands.filter_map(|(operand, (_, pixel))| {
        let bytes = homes.buffers[operand].bytes as i64;
        let pixel = if pixel == own_pixel { pixel } else { 1 };
        let found = BTreeSet::from([1, pixel]).into_iter().filter_map(|modulus| {
            let mut so_far = SoFar { lead: None, end: None };
            let both = [operand, result];
            codes.iter().try_for_each(|code| so_far.follow(code, both, modulus, chooser))?;
            Some((multiple_from(so_far.lead.unwrap_or(-bytes).max(-bytes), modulus as i64), modulus))
        });
        let apart = homes.buffers[result].bytes as i64;
        let (least, modulus) = found.min().filter(|(least, _)| *least < apart)?;
        let up = Some(Distance { least, modulus });
        Some(Overlay { result, operand, up, down: None, part: (0, 1) })
    });
    overlays.collect()
}

/// What is known of some stripes, one after the other.
struct SoFar {
    /// How far before a tensor that their kernels read their result has to begin; `None` where nothing was read after something had been
    /// written.
    lead: Option<i64>,
    /// Where the bytes of the result end that are written.
    end: Option<i64>,
}

impl SoFar {
    /// Follows the turns of the next stripe; `None` where it isn't known what its kernels do, or rows aren't whole multiples of `modulus` bytes
    /// apart.
    fn follow(
        &mut self,
        code: &Stripe,
        [operand, result]: [BufferId; 2],
        modulus: usize,
        chooser: &mut Chooser,
    ) -> Option<()> {
        let is_whole =
            |touched: &Touched| [touched.offset, touched.stride].iter().all(|bytes| bytes % modulus as i64 == 0);
        // What each step does with both tensors: which walk it reads, which it writes, and how.
        let mut steps: Vec<Vec<(Touched, Touched, Lead)>> = Vec::new();
        for act in &code.acts {
            let mut own = Vec::new();
            for part in &act.body {
                let Part::Step(step) = part else { return None };
                let Routine::Kernel(function) = &step.routine else { return None };
                let of = |whole: BufferId| -> Vec<Touched> {
                    let walks = act.walks.iter().filter(|walk| code.bindings[walk.whole].buffer() == Some(whole));
                    let touched = walks.flat_map(|walk| {
                        let found = pointers(function, &step.bindings, walk.rows).into_iter();
                        found.map(|own| Touched {
                            var: own.var,
                            offset: own.offset,
                            stride: walk.stride,
                            repeat: walk.period / act.turns.period,
                        })
                    });
                    touched.collect()
                };
                let (mut reads, mut writes) = (of(operand), of(result));
                if !reads.iter().chain(&writes).all(is_whole) {
                    return None;
                }
                if reads.is_empty() && writes.is_empty() {
                    continue;
                }
                for touched in [&mut reads, &mut writes].into_iter().filter(|touched| touched.is_empty()) {
                    touched.push(Touched { var: Var::MAX, offset: 0, stride: 0, repeat: 1 });
                }
                for &read in &reads {
                    for &written in &writes {
                        let direction = Direction::Upwards;
                        let question = Question { read: read.var, written: written.var, modulus, direction };
                        let lead = chooser.lead(&step.choice, function, question)?;
                        own.push((read, written, lead));
                    }
                }
            }
            steps.push(own);
        }
        let SoFar { lead, end } = self;
        for turn in 0..code.turns {
            for (act, steps) in code.acts.iter().zip(&steps) {
                let Some(time) = act.turns.act(turn).filter(|&time| time < act.turns.computed) else { continue };
                for (read, written, own) in steps {
                    let (read, written) = (read.place(time), written.place(time));
                    let first_read = own.first_read.map(|first| read + first);
                    *lead = (*lead).max(own.distance.map(|distance| distance + written - read));
                    *lead = (*lead).max(end.zip(first_read).map(|(end, first)| end - first));
                    *end = (*end).max(own.end_written.map(|end| written + end));
                }
            }
        }
        Some(())
    }
}

/// Rows of a tensor behind a pointer of a step.
#[derive(Debug, Clone, Copy)]
struct Touched {
    var: Var,
    offset: i64,
    stride: i64,
    repeat: usize,
}

impl Touched {
    /// Bytes from the tensor's first one to where the pointer points the n-th time.
    fn place(&self, time: usize) -> i64 {
        self.offset + self.stride * (time / self.repeat) as i64
    }
}

#[cfg(test)]
mod tags;
#[cfg(test)]
mod tests;
