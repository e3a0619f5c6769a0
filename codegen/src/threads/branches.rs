//! Branches of a model that don't depend on each other, which threads compute at the same time: neighbours in a program's order, of which
//! each thread computes some from beginning to end.
//!
//! A window of the outermost parts falls into branches: no part of one writes what a part of another one reads or writes. Branches are dealt
//! out by price, the longest first. Windows are taken where that wins more than splitting their kernels does.

use super::team::{LEAST_GAIN, Split, Team};
use crate::lower::homes::BufferId;
use crate::lower::view::View;
use crate::lower::{Binding, Part, Program, Routine, time};
use crate::names::Names;
use std::collections::BTreeMap;
use std::ops::Range;

/// Parts of one window at most.
const MOST_PARTS: usize = 64;

/// Branches that threads compute at the same time.
#[derive(Debug, Clone)]
pub struct Branches {
    /// How the C symbols of the launch begin.
    pub name: String,
    /// The positions of all, those of the parts inside of them too.
    pub positions: Range<usize>,
    /// The numbers of the outermost parts that each thread computes, in order, with the positions of each.
    pub shares: Vec<Vec<(usize, Range<usize>)>>,
    /// Time that this is thought to win each time beyond what splitting the kernels would, in the unit of prices.
    pub gain: f64,
}

/// The branches of a program whose kernels could be split, each by its position.
pub fn branches(
    program: &Program,
    splits: &BTreeMap<usize, Split>,
    team: &Team<'_>,
    names: &mut Names,
) -> Vec<Branches> {
    let mut end = 0;
    let all = program.parts.iter().map(|part| {
        let first = end;
        end += part.positions();
        let gain = splits.range(first..end).map(|(_, split)| split.gain).sum();
        let time = time([part], team.target) as f64;
        Piece { positions: first..end, time, gain, touched: touched(part) }
    });
    let pieces: Vec<Piece> = all.collect();
    let place = |part: usize| (part, pieces[part].positions.clone());
    windows(&pieces, team.threads, team.cost.launch)
        .into_iter()
        .map(|window| Branches {
            name: names.branches(),
            positions: pieces[window.parts.start].positions.start..pieces[window.parts.end - 1].positions.end,
            shares: window.shares.into_iter().map(|share| share.into_iter().map(place).collect()).collect(),
            gain: window.gain,
        })
        .collect()
}

/// An outermost part.
struct Piece {
    positions: Range<usize>,
    time: f64,
    /// What splitting its kernels wins.
    gain: f64,
    /// What it touches; none where it can't be beside others.
    touched: Option<Vec<Touch>>,
}

/// A buffer that a part touches.
struct Touch {
    buffer: BufferId,
    is_read: bool,
    /// The elements that are written, if they are known.
    written: Option<View>,
}

/// What a kernel touches; nothing else can be beside others: loops tell of their kernels by hooks in each turn.
fn touched(part: &Part) -> Option<Vec<Touch>> {
    let Part::Step(step) = part else { return None };
    let of = |(number, binding): (usize, &Binding)| match *binding {
        Binding::Buffer { buffer, offset, constant, .. } => {
            let mut places = step.results.iter().filter(|result| result.binding == number && !constant);
            let written = match (places.next(), places.next()) {
                (Some(place), None) => Some(View { offset: place.view.offset + offset, ..place.view.clone() }),
                _ => None,
            };
            Some(Touch { buffer, is_read: constant, written })
        }
        _ => None,
    };
    let is_own = matches!(step.routine, Routine::Kernel(_));
    is_own.then(|| step.bindings.iter().enumerate().filter_map(of).collect())
}

/// Whether one of two parts writes what the other one touches.
fn depend(left: &[Touch], right: &[Touch]) -> bool {
    let is_apart = |(own, other): (&Touch, &Touch)| {
        own.buffer != other.buffer
            || (own.is_read && other.is_read)
            || own.written.as_ref().zip(other.written.as_ref()).is_some_and(|(own, other)| are_apart(own, other))
    };
    !left.iter().flat_map(|own| right.iter().map(move |other| (own, other))).all(is_apart)
}

/// Whether two views of a buffer have no element in common, as far as the distance between neighbours along one axis says: both lie in
/// different parts of each such stretch, as parts of what a concatenation joins do.
fn are_apart(left: &View, right: &View) -> bool {
    let strides = left.strides.iter().copied().filter(|&stride| stride > 1);
    strides.chain([i64::MAX]).any(|stretch| {
        let (own, other) = (part_of(left, stretch), part_of(right, stretch));
        own.zip(other).is_some_and(|(own, other)| own.end <= other.start || other.end <= own.start)
    })
}

/// The elements of each stretch of so many that a view has some of, if they are the same everywhere.
fn part_of(view: &View, stretch: i64) -> Option<Range<i64>> {
    let start = view.offset.checked_rem_euclid(stretch)?;
    let mut end = start + 1;
    for (&extent, &stride) in view.shape.iter().zip(&view.strides).filter(|(extent, _)| **extent > 1) {
        if stride < 0 {
            return None;
        }
        if stride < stretch {
            end = end.checked_add(stride.checked_mul(extent as i64 - 1)?)?;
        } else if stride % stretch != 0 {
            return None;
        }
    }
    (end <= stretch).then_some(start..end)
}

/// Neighbours that threads compute at the same time.
struct Window {
    parts: Range<usize>,
    shares: Vec<Vec<usize>>,
    gain: f64,
}

/// The windows that win most in all, none of which has a part of another one.
fn windows(pieces: &[Piece], threads: usize, launch: f64) -> Vec<Window> {
    // What the first so many pieces win at most, and the window that ends there.
    let mut best: Vec<(f64, Option<Window>)> = vec![(0.0, None)];
    for end in 1..=pieces.len() {
        let mut own = (best[end - 1].0, None);
        let mut branches: Vec<Vec<usize>> = Vec::new();
        for first in (end.saturating_sub(MOST_PARTS)..end).rev() {
            let Some(touched) = &pieces[first].touched else { break };
            join(&mut branches, first, |other| {
                pieces[other].touched.as_ref().is_none_or(|other| depend(touched, other))
            });
            let Some(window) = window(pieces, first..end, &branches, threads, launch) else { continue };
            if best[first].0 + window.gain > own.0 {
                own = (best[first].0 + window.gain, Some(window));
            }
        }
        best.push(own);
    }
    let mut list = Vec::new();
    let mut end = pieces.len();
    while end > 0 {
        match best[end].1.take() {
            Some(window) => {
                end = window.parts.start;
                list.push(window);
            }
            None => end -= 1,
        }
    }
    list.reverse();
    list
}

/// Adds a part to the branches of those behind it: those that depend on it become one.
fn join(branches: &mut Vec<Vec<usize>>, part: usize, depends: impl Fn(usize) -> bool) {
    let (joined, apart): (Vec<Vec<usize>>, Vec<Vec<usize>>) =
        std::mem::take(branches).into_iter().partition(|branch| branch.iter().any(|&other| depends(other)));
    let mut own: Vec<usize> = [part].into_iter().chain(joined.into_iter().flatten()).collect();
    own.sort_unstable();
    *branches = apart;
    branches.push(own);
}

/// The branches of a window dealt out to threads; none where that isn't worth a launch.
fn window(
    pieces: &[Piece],
    parts: Range<usize>,
    branches: &[Vec<usize>],
    threads: usize,
    launch: f64,
) -> Option<Window> {
    if branches.len() < 2 {
        return None;
    }
    let time = |branch: &Vec<usize>| branch.iter().map(|&part| pieces[part].time).sum::<f64>();
    let mut timed: Vec<(f64, &Vec<usize>)> = branches.iter().map(|branch| (time(branch), branch)).collect();
    timed.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(right.1)));
    let mut shares: Vec<(f64, Vec<usize>)> = vec![(0.0, Vec::new()); threads];
    for (time, branch) in timed {
        if let Some(share) = shares.iter_mut().min_by(|left, right| left.0.total_cmp(&right.0)) {
            share.0 += time;
            share.1.extend(branch);
        }
    }
    let longest = shares.iter().map(|share| share.0).fold(0.0, f64::max);
    let own = &pieces[parts.clone()];
    let won = own.iter().map(|piece| piece.time).sum::<f64>() - longest;
    let gain = won - launch - own.iter().map(|piece| piece.gain).sum::<f64>();
    if won < LEAST_GAIN * launch || gain <= 0.0 {
        return None;
    }
    let shares = shares.into_iter().map(|(_, mut share)| {
        share.sort_unstable();
        share
    });
    Some(Window { parts, shares: shares.collect(), gain })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mlc_ir::DType;

    fn piece(time: f64, reads: &[BufferId], writes: &[BufferId]) -> Piece {
        let touch = |is_read: bool| move |&buffer: &BufferId| Touch { buffer, is_read, written: None };
        let touched = reads.iter().map(touch(true)).chain(writes.iter().map(touch(false))).collect();
        Piece { positions: 0..1, time, gain: 0.0, touched: Some(touched) }
    }

    /// A stem, two branches of two parts and one of one part, and what joins them.
    fn branching() -> Vec<Piece> {
        vec![
            piece(50.0, &[0], &[1]),
            piece(30.0, &[1], &[2]),
            piece(40.0, &[2], &[3]),
            piece(45.0, &[1], &[4]),
            piece(10.0, &[4], &[5]),
            piece(20.0, &[1], &[6]),
            piece(50.0, &[3, 5, 6], &[7]),
        ]
    }

    fn shares(pieces: &[Piece], threads: usize) -> Vec<(Range<usize>, Vec<Vec<usize>>)> {
        windows(pieces, threads, 5.0).into_iter().map(|window| (window.parts, window.shares)).collect()
    }

    #[test]
    fn branches_are_dealt_out_by_price() {
        let pieces = branching();
        assert_eq!(shares(&pieces, 2), [(1..6, vec![vec![1, 2], vec![3, 4, 5]])]);
        assert_eq!(shares(&pieces, 3), [(1..6, vec![vec![1, 2], vec![3, 4], vec![5]])]);
    }

    #[test]
    fn what_depends_or_wins_little_stays_in_order() {
        // A chain.
        assert!(shares(&[piece(50.0, &[0], &[1]), piece(50.0, &[1], &[2])], 2).is_empty());
        // Two that write one buffer, or that one overwrites what the other reads.
        assert!(shares(&[piece(50.0, &[0], &[2]), piece(50.0, &[1], &[2])], 2).is_empty());
        assert!(shares(&[piece(50.0, &[0], &[2]), piece(50.0, &[1], &[0])], 2).is_empty());
        // A launch that isn't won, and kernels that are better split.
        assert!(shares(&[piece(7.0, &[0], &[1]), piece(7.0, &[0], &[2])], 2).is_empty());
        let mut split = [piece(50.0, &[0], &[1]), piece(50.0, &[0], &[2])];
        assert_eq!(shares(&split, 2).len(), 1);
        split.iter_mut().for_each(|piece| piece.gain = 23.0);
        assert!(shares(&split, 2).is_empty());
        // What can't be beside others ends a window.
        let mut pieces = branching();
        pieces[3].touched = None;
        assert_eq!(shares(&pieces, 2), [(4..6, vec![vec![5], vec![4]])]);
    }

    #[test]
    fn parts_of_a_concatenation_are_apart() {
        let whole = View::dense(DType::F32, &[1, 4, 5, 24]);
        let part = |axis: usize, start: usize, size: usize| {
            let (mut starts, mut sizes) = (vec![0; 4], whole.shape.to_vec());
            (starts[axis], sizes[axis]) = (start, size);
            whole.slice(&starts, &sizes, &[1; 4])
        };
        for (axis, middle) in [(3, 10), (2, 2), (1, 3)] {
            let rest = whole.shape[axis] - middle;
            let (before, behind) = (part(axis, 0, middle), part(axis, middle, rest));
            assert!(are_apart(&before, &behind) && are_apart(&behind, &before), "axis {axis}");
            assert!(!are_apart(&before, &part(axis, middle - 1, rest)), "axis {axis}");
        }
        assert!(!are_apart(&whole, &whole));
        assert!(!are_apart(&part(3, 0, 10), &part(2, 3, 2)));
    }
}
