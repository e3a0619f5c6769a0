//! Retiming ([Leiserson and Saxe](https://doi.org/10.1007/BF01759032)) of a stripe: who computes what is needed only later, such as a shortcut beside
//! a chain of windows, runs later than it could, and has fewer rows in its ring then. In a turn of both, who reads older rows alone runs before
//! who appends new ones, so that these take their place.

use super::workers::{Worker, WorkerTurns, are_in_step, behind, earliest, latest, readers};
use mlc_ir::RowWindow;

/// How often all workers are looked at.
const PASSES: usize = 4;

/// What rings count that are needed in a turn alone, when others may take their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Local {
    /// Nothing.
    Free,
    /// As much as those that last.
    Counted,
}

/// First turns that are tried for a worker, at most.
const MOST_TURNS: usize = 64;

/// Has workers begin later, where that takes less memory, or no more.
pub(super) fn move_back(workers: &[Worker], turns: &mut [WorkerTurns], step: usize, local: Local) {
    for _ in 0..PASSES {
        let before: Vec<usize> = turns.iter().map(|own| own.first).collect();
        for number in (0..workers.len().saturating_sub(1)).rev() {
            move_one(workers, turns, number, step, local);
        }
        if turns.iter().map(|own| own.first).eq(before) {
            break;
        }
    }
    let first = turns.iter().map(|own| own.first).min().unwrap_or(0);
    turns.iter_mut().for_each(|own| own.first -= first);
}

/// Has a worker begin when its ring and those that it reads take least.
fn move_one(workers: &[Worker], turns: &mut [WorkerTurns], number: usize, step: usize, local: Local) {
    let earliest = earliest(&workers[number], turns, step).unwrap_or(turns[number].first);
    let Some(latest) = latest(workers, turns, number, step).filter(|&latest| latest >= earliest) else { return };
    let rings: Vec<usize> = workers[number].reads.iter().map(|(other, _)| *other).chain([number]).collect();
    let mut best: Option<(usize, usize)> = None;
    let before = turns[number].first;
    for first in (earliest..=latest).rev().take(MOST_TURNS) {
        turns[number].first = first;
        if !are_in_step(workers, turns) {
            continue;
        }
        let bytes = rings.iter().map(|&ring| least_bytes(workers, turns, ring, step, local)).sum();
        if best.is_none_or(|(least, _)| bytes < least) {
            best = Some((bytes, first));
        }
    }
    turns[number].first = best.map_or(before, |(_, first)| first);
}

/// Rows of a ring if all that read older rows alone run before who appends them.
fn least_rows(workers: &[Worker], turns: &[WorkerTurns], number: usize, step: usize) -> usize {
    let own = &turns[number];
    let rows = readers(workers, number).map(|(reader, window)| {
        let is_before = can_be_before(&turns[reader], (own, window), step);
        behind(&turns[reader], (own, window), is_before, step)
    });
    rows.fold(step, usize::max)
}

/// Bytes of such a ring.
fn least_bytes(workers: &[Worker], turns: &[WorkerTurns], number: usize, step: usize, local: Local) -> usize {
    let own = &turns[number];
    let rows = least_rows(workers, turns, number, step);
    let is_at_once = readers(workers, number).all(|(reader, _)| turns[reader].first == own.first);
    let is_local = is_at_once && rows == step && !workers[number].has_border;
    if is_local && local == Local::Free { 0 } else { rows * workers[number].bytes }
}

/// Whether one runs in turns in which another one appends what it reads.
fn meets(reader: &WorkerTurns, (own, window): (&WorkerTurns, &RowWindow)) -> bool {
    window.repeat > 1 || (reader.first - own.first).is_multiple_of(own.period)
}

/// Whether it may run before the other one in them: it needs no rows that are appended there, nor reads any several times.
fn can_be_before(reader: &WorkerTurns, ring: (&WorkerTurns, &RowWindow), step: usize) -> bool {
    let (own, window) = ring;
    meets(reader, ring) && window.repeat == 1 && reader.first > own.ready(window, step)
}

/// The order in which workers run in a turn: each behind those whose newest rows it needs; and before those whose rings hold less then, the
/// largest first, where that can be.
pub(super) fn order(workers: &[Worker], turns: &[WorkerTurns], step: usize) -> Vec<usize> {
    let last = workers.len() - 1;
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); workers.len()];
    let mut wanted: Vec<(usize, usize, usize)> = Vec::new();
    for (number, own) in turns.iter().enumerate().take(last) {
        before[last].push(number);
        let least = least_rows(workers, turns, number, step);
        for (reader, window) in readers(workers, number) {
            let ring = (own, window);
            if !can_be_before(&turns[reader], ring, step) {
                if meets(&turns[reader], ring) {
                    before[reader].push(number);
                }
            } else if behind(&turns[reader], ring, false, step) > least {
                wanted.push((workers[number].bytes, reader, number));
            }
        }
    }
    wanted.sort_by_key(|&(bytes, reader, number)| (std::cmp::Reverse(bytes), number, reader));
    for (_, reader, number) in wanted {
        before[number].push(reader);
        if sorted(&before).is_none() {
            before[number].pop();
        }
    }
    sorted(&before).unwrap_or_else(|| (0..workers.len()).collect())
}

/// Numbers, each behind those that are to be before it, and else in their order; `None` where that can't be.
fn sorted(before: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut order = Vec::with_capacity(before.len());
    let mut is_there = vec![false; before.len()];
    while order.len() < before.len() {
        let can = |number: &usize| !is_there[*number] && before[*number].iter().all(|&other| is_there[other]);
        let next = (0..before.len()).find(can)?;
        is_there[next] = true;
        order.push(next);
    }
    Some(order)
}
