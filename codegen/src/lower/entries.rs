//! The walk of a tree of parts: [`entries`].

use super::homes::BufferId;
use super::part::{Binding, ExternRoutine, Part, Routine, Step};
use crate::target::Target;

/// A part around another one.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// The part.
    pub part: &'a Part,
    /// How often what is inside of it runs each time.
    pub turns: u64,
    /// Its first position.
    pub first: usize,
    /// Its last position.
    pub last: usize,
}

/// A step, a loop or a stripe in the walk of a tree: every part comes before the parts inside of it, and those before the next part.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The step, loop or stripe.
    pub part: &'a Part,
    /// Its position.
    pub first: usize,
    /// The last position of what is inside of it.
    pub last: usize,
    /// The parts around it, outermost first.
    pub around: Vec<Around<'a>>,
}

impl Entry<'_> {
    /// How often it runs, as [`Loop::counted_turns`] counts.
    pub fn turns(&self) -> u64 {
        self.around.iter().fold(1, |turns: u64, around| turns.saturating_mul(around.turns))
    }
}

/// The walk of a sequence, by positions from `first` on.
pub fn entries<'a>(parts: impl IntoIterator<Item = &'a Part>, first: usize) -> Vec<Entry<'a>> {
    fn walk<'a>(part: &'a Part, around: &[Around<'a>], next: usize, result: &mut Vec<Entry<'a>>) -> usize {
        let end = next + part.positions();
        if end == next {
            return next;
        }
        result.push(Entry { part, first: next, last: end - 1, around: around.to_vec() });
        part.inner().fold(next + 1, |position, (inner, turns)| {
            let around = [around, &[Around { part, turns, first: next, last: end - 1 }]].concat();
            walk(inner, &around, position, result)
        });
        end
    }
    let mut result = Vec::new();
    parts.into_iter().fold(first, |next, part| walk(part, &[], next, &mut result));
    result
}

/// The time of what schedules were chosen for in a sequence, and of stripes, in the unit of prices.
pub fn time<'a>(parts: impl IntoIterator<Item = &'a Part>, target: &Target) -> u64 {
    let own = |entry: Entry<'_>| match entry.part {
        Part::Step(step) => step.choice.taken().map_or(0, |taken| taken.price.time.saturating_mul(entry.turns())),
        Part::Stripe(code) => code.time(target),
        _ => 0,
    };
    entries(parts, 0).into_iter().map(own).sum()
}

/// The calls of functions that aren't mlc's own in a sequence whose first part has the position `first`, each with its own.
pub fn calls<'a>(parts: impl IntoIterator<Item = &'a Part>, first: usize) -> Vec<(usize, &'a Step, &'a ExternRoutine)> {
    let call = |entry: Entry<'a>| match entry.part {
        Part::Step(step) => match &step.routine {
            Routine::Extern(code) => Some((entry.first, &**step, &**code)),
            Routine::Kernel(_) => None,
        },
        _ => None,
    };
    entries(parts, first).into_iter().filter_map(call).collect()
}

impl Part {
    /// The buffers that it touches, the parts inside of it too, but for those that nothing else knows: each with whether it is read.
    pub fn touched(&self) -> Vec<(BufferId, bool)> {
        let hidden = |buffer: BufferId| self.hides(buffer);
        let all = entries([self], 0).into_iter().flat_map(|entry| entry.part.bindings());
        let touched = all.filter_map(|binding| match binding {
            Binding::Buffer { buffer, constant, .. } if !hidden(*buffer) => Some((*buffer, *constant)),
            _ => None,
        });
        touched.collect()
    }

    /// Whether a buffer is nothing but its own, or of a part inside of it.
    fn hides(&self, buffer: BufferId) -> bool {
        let own = match self {
            Part::Loop(code) => code.moves(buffer) || code.locals.contains(&buffer),
            Part::Stripe(code) => code.moves(buffer) || code.locals.contains(&buffer),
            Part::Step(_) | Part::Exchange(_) | Part::Fetch(_) => false,
        };
        own || self.inner().any(|(part, _)| part.hides(buffer))
    }
}
