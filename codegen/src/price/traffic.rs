//! How many bytes come through a cache. What a loop touches in all stays in the cache if it fits; otherwise each turn brings
//! it anew, except for what the turn before it has left.

use super::WorkingSet;
use super::walk::{Access, Walked};
use crate::loops::{Function, Holds, VarKind};
use crate::target::LINE_BYTES;
use std::collections::BTreeMap;

/// Bytes of a line of cache.
const LINE: f64 = LINE_BYTES as f64;

/// Bytes after which addresses compete for the same places of a cache: those of a way of the nearest one, and of a page, as pages lie
/// anywhere in memory.
const PAGE: u64 = 4096;

/// Accesses through one parameter that move alike.
struct Group {
    root: u32,
    loops: Vec<usize>,
    strides: Vec<f64>,
    /// First byte and length of each run of bytes that one time touches, sorted, gaps of less than a line closed.
    runs: Vec<(f64, f64)>,
}

impl Group {
    /// What the loops from number `level` of the path on touch, those runs of bytes together that reach each other's places.
    fn patterns(&self, level: usize, turns: &dyn Fn(usize) -> f64) -> Vec<Pattern> {
        let moves = (level..self.loops.len())
            .map(|place| (self.strides[place].abs(), turns(self.loops[place])))
            .filter(|(stride, turns)| *stride > 0.0 && *turns > 1.0);
        let moves = together(moves.collect());
        let mut places: BTreeMap<u64, Places> = BTreeMap::new();
        let origin = self.runs.first().map_or(0.0, |run| run.0);
        for &(first, length) in &self.runs {
            let (steps, rest) = steps(first - origin, &moves);
            let own = places.entry(rest.to_bits()).or_insert_with(|| Places::new(&steps));
            own.add(length, &steps);
        }
        places.values().map(|places| places.pattern(&moves)).collect()
    }

    /// Bytes that the loops from number `level` of the path on touch in all.
    fn footprint(&self, level: usize, turns: &dyn Fn(usize) -> f64) -> f64 {
        self.patterns(level, turns).iter().map(|pattern| pattern.count * pattern.line()).sum()
    }

    /// Bytes of a cache that they take.
    fn room(&self, level: usize, turns: &dyn Fn(usize) -> f64) -> f64 {
        self.patterns(level, turns).iter().map(|pattern| pattern.count * pattern.room()).sum()
    }

    /// First byte and end of all that the loops from number `level` on touch.
    fn span(&self, level: usize, turns: &dyn Fn(usize) -> f64) -> (f64, f64) {
        let mut first = self.runs.first().map_or(0.0, |run| run.0);
        let mut end = self.runs.last().map_or(0.0, |run| run.0 + run.1);
        for place in level..self.loops.len() {
            let moved = self.strides[place] * (turns(self.loops[place]) - 1.0).max(0.0);
            first += moved.min(0.0);
            end += moved.max(0.0);
        }
        (first, end)
    }
}

/// Bytes that a turn of each of several loops moves, and how many turns there are, smallest first. What moves from place to place of
/// another loop, as the rows of images and those of a window do, moves with it: `a` turns beside `b` reach `a + b - 1` places.
fn together(mut moves: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    moves.sort_by(|left, right| left.0.total_cmp(&right.0));
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for (stride, turns) in moves {
        let meets = |own: &&mut (f64, f64)| (stride / own.0).fract() == 0.0 && stride / own.0 <= own.1;
        match joined.iter_mut().find(meets) {
            Some(own) => own.1 += (turns - 1.0) * (stride / own.0),
            None => joined.push((stride, turns)),
        }
    }
    joined
}

/// A distance as turns of loops, given by how many bytes each turn moves and how many turns there are, and what is left of it.
fn steps(distance: f64, moves: &[(f64, f64)]) -> (Vec<f64>, f64) {
    let mut rest = distance;
    let mut steps = vec![0.0; moves.len()];
    for (step, &(stride, turns)) in steps.iter_mut().zip(moves).rev() {
        let whole = (rest / stride).floor();
        if whole <= turns {
            *step = whole;
            rest -= whole * stride;
        }
    }
    (steps, rest)
}

/// Runs of bytes whose distances are turns of the loops that move them, as the taps of a window are.
struct Places {
    /// Bytes of the longest one.
    length: f64,
    /// Fewest and most turns of each loop that one is away.
    between: Vec<(f64, f64)>,
}

impl Places {
    fn new(steps: &[f64]) -> Places {
        Places { length: 0.0, between: steps.iter().map(|&step| (step, step)).collect() }
    }

    fn add(&mut self, length: f64, steps: &[f64]) {
        self.length = self.length.max(length);
        for (between, &step) in self.between.iter_mut().zip(steps) {
            *between = (between.0.min(step), between.1.max(step));
        }
    }

    fn pattern(&self, moves: &[(f64, f64)]) -> Pattern {
        let mut pattern = Pattern { run: self.length, count: 1.0, apart: 0 };
        for (&(stride, turns), &(fewest, most)) in moves.iter().zip(&self.between) {
            let turns = turns + most - fewest;
            if stride <= pattern.run.max(LINE) && pattern.count == 1.0 {
                pattern.run += stride * (turns - 1.0);
            } else {
                pattern.count *= turns;
                // Fractions are means of what moves by no power of two.
                pattern.apart |= if stride.fract() == 0.0 { stride as u64 } else { 1 };
            }
        }
        pattern
    }
}

/// Runs of bytes that are apart from each other.
struct Pattern {
    /// Bytes of one.
    run: f64,
    /// How many there are.
    count: f64,
    /// Their distances in bytes, in one number that has as many low zeros as all of them.
    apart: u64,
}

impl Pattern {
    /// Bytes that come for a run: whole lines where it stands alone.
    fn line(&self) -> f64 {
        if self.count > 1.0 { self.run.max(LINE) } else { self.run }
    }

    /// Bytes of a cache that a run takes: where all of them lie at multiples of a power of two, what is between them goes to waste.
    fn room(&self) -> f64 {
        let alike = 1u64 << self.apart.trailing_zeros().min(PAGE.trailing_zeros());
        if self.count > 1.0 { self.line().max(alike as f64) } else { self.line() }
    }
}

fn groups(accesses: &[Access]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: BTreeMap<(u32, Vec<usize>, Vec<u64>), usize> = BTreeMap::new();
    for access in accesses {
        let bits: Vec<u64> = access.strides.iter().map(|stride| stride.to_bits()).collect();
        let number = *known.entry((access.root, access.loops.clone(), bits)).or_insert(groups.len());
        if number == groups.len() {
            let (loops, strides) = (access.loops.clone(), access.strides.clone());
            groups.push(Group { root: access.root, loops, strides, runs: Vec::new() });
        }
        groups[number].runs.push((access.offset, access.bytes));
    }
    for group in &mut groups {
        group.runs.sort_by(|left, right| left.0.total_cmp(&right.0));
        let mut merged: Vec<(f64, f64)> = Vec::new();
        for &(first, length) in &group.runs {
            match merged.last_mut() {
                Some((start, known)) if first <= *start + *known + LINE => {
                    *known = known.max(first + length - *start);
                }
                _ => merged.push((first, length)),
            }
        }
        group.runs = merged;
    }
    groups
}

/// What a walked function touches, by loop.
pub struct Traffic<'a> {
    walked: &'a Walked,
    function: &'a Function,
    groups: Vec<Group>,
    /// Bytes of a cache that all it touches takes.
    all: f64,
    /// Those that what each loop touches in all its turns takes.
    inside: Vec<f64>,
}

impl<'a> Traffic<'a> {
    /// That of a function.
    pub fn of(walked: &'a Walked, function: &'a Function) -> Self {
        let groups = groups(&walked.accesses);
        let turns = |number: usize| walked.loops[number];
        let all = touched(&groups, |_| Some(0), &turns);
        let inside = (0..walked.loops.len())
            .map(|number| touched(&groups, |group| group.loops.iter().position(|&own| own == number), &turns))
            .collect();
        Traffic { walked, function, groups, all, inside }
    }

    /// Bytes that come through a cache of `capacity` bytes. Operands were written not long before, constants are read once in a run of the
    /// whole program, or in all turns of a stripe.
    pub fn through(&self, capacity: usize, working_set: &WorkingSet) -> f64 {
        let constants_come = working_set.constants_come(capacity);
        let capacity = capacity as f64;
        let turns = |number: usize| self.walked.loops[number];
        let traffic = |group: &Group| {
            if self.all <= capacity {
                return if self.is_constant(group) { constants_come * group.footprint(0, &turns) } else { 0.0 };
            }
            let fits = group.loops.iter().position(|&number| self.inside[number] <= capacity);
            // The loop around what fits finds again what its last turn has touched.
            let level = fits.unwrap_or(group.loops.len()).saturating_sub(1);
            let anew: f64 = group.loops[..level].iter().map(|&number| turns(number)).product();
            anew * group.footprint(level, &turns)
        };
        self.groups.iter().map(traffic).sum()
    }

    fn is_constant(&self, group: &Group) -> bool {
        let kind = self.function.vars.get(group.root as usize).map(|var| var.kind);
        matches!(kind, Some(VarKind::Pointer { holds: Holds::Constants, .. }))
    }
}

/// Bytes of a cache that is taken by what groups touch from a level of their path on; overlapping groups count once.
fn touched(groups: &[Group], level: impl Fn(&Group) -> Option<usize>, turns: &dyn Fn(usize) -> f64) -> f64 {
    let mut roots: BTreeMap<u32, (f64, f64, f64)> = BTreeMap::new();
    for group in groups {
        let Some(level) = level(group) else { continue };
        let (first, end) = group.span(level, turns);
        let root = roots.entry(group.root).or_insert((first, end, 0.0));
        *root = (root.0.min(first), root.1.max(end), root.2 + group.room(level, turns));
    }
    roots.values().map(|(first, end, sum)| sum.min(end - first)).sum()
}
