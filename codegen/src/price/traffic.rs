//! How many bytes come through a cache. What a loop touches in all stays in the cache if it fits; otherwise each turn brings
//! it anew, except for what the turn before it has left.

use super::walk::{Access, Walked};
use crate::loops::{Function, Holds, VarKind};
use std::collections::BTreeMap;

/// Bytes of a line of cache.
const LINE: f64 = 64.0;

/// Accesses through one parameter that move alike.
struct Group {
    root: u32,
    loops: Vec<usize>,
    strides: Vec<f64>,
    /// First byte and length of each run of bytes that one time touches, sorted, gaps of less than a line closed.
    runs: Vec<(f64, f64)>,
}

impl Group {
    /// Bytes that the loops from number `level` of the path on touch in all.
    fn footprint(&self, level: usize, turns: &dyn Fn(usize) -> f64) -> f64 {
        let mut moves: Vec<(f64, f64)> = (level..self.loops.len())
            .map(|place| (self.strides[place].abs(), turns(self.loops[place])))
            .filter(|(stride, turns)| *stride > 0.0 && *turns > 1.0)
            .collect();
        moves.sort_by(|left, right| left.0.total_cmp(&right.0));
        let covered = |&(_, length): &(f64, f64)| {
            let (mut run, mut count) = (length, 1.0);
            for &(stride, turns) in &moves {
                if stride <= run.max(LINE) && count == 1.0 {
                    run += stride * (turns - 1.0);
                } else {
                    count *= turns;
                }
            }
            count * run
        };
        self.runs.iter().map(covered).sum()
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
    /// What all of it touches.
    all: f64,
    /// What each loop touches in all its turns.
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

    /// Bytes that come through a cache of `capacity` bytes, in a program that touches `working_set` bytes. Operands were written not long
    /// before, constants are read once in a run of the whole program.
    pub fn through(&self, capacity: f64, working_set: f64) -> f64 {
        let turns = |number: usize| self.walked.loops[number];
        let traffic = |group: &Group| {
            if self.all.max(if self.is_constant(group) { working_set } else { 0.0 }) <= capacity {
                return 0.0;
            }
            let fits = group.loops.iter().position(|&number| self.inside[number] <= capacity);
            // The loop around what fits finds again what its last turn has touched.
            let level = if self.all <= capacity { 0 } else { fits.unwrap_or(group.loops.len()).saturating_sub(1) };
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

/// Bytes that groups touch from a level of their path on; overlapping groups count once.
fn touched(groups: &[Group], level: impl Fn(&Group) -> Option<usize>, turns: &dyn Fn(usize) -> f64) -> f64 {
    let mut roots: BTreeMap<u32, (f64, f64, f64)> = BTreeMap::new();
    for group in groups {
        let Some(level) = level(group) else { continue };
        let (first, end) = group.span(level, turns);
        let root = roots.entry(group.root).or_insert((first, end, 0.0));
        *root = (root.0.min(first), root.1.max(end), root.2 + group.footprint(level, turns));
    }
    roots.values().map(|(first, end, sum)| sum.min(end - first)).sum()
}
