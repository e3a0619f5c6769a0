//! The order of steps: the graph's own, or a greedy one that frees memory early; whichever needs less.

use super::homes::{Buffer, BufferId, BufferKind};
use super::steps::{Binding, Step};
use std::collections::BTreeMap;

/// Orders steps so that the largest sum of live buffers is small; never worse than the order given.
pub fn order(steps: Vec<Step>, buffers: &[Buffer]) -> Vec<Step> {
    let identity: Vec<usize> = (0..steps.len()).collect();
    let greedy = greedy(&steps, buffers);
    let best = if peak(&steps, buffers, &greedy) < peak(&steps, buffers, &identity) { greedy } else { identity };
    let mut slots: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    best.into_iter().filter_map(|index| slots[index].take()).collect()
}

/// Earlier steps whose results a step reads.
fn dependencies(steps: &[Step]) -> Vec<Vec<usize>> {
    let mut writers: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
    let mut result = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        result.push(step.reads().flat_map(|buffer| writers.get(&buffer).cloned().unwrap_or_default()).collect());
        for buffer in step.writes() {
            writers.entry(buffer).or_default().push(index);
        }
    }
    result
}

fn touched(step: &Step, buffers: &[Buffer]) -> Vec<BufferId> {
    let mut ids: Vec<BufferId> =
        step.reads().chain(step.writes()).filter(|&id| buffers[id].kind == BufferKind::Arena).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn scratch(step: &Step) -> i64 {
    let bytes = |binding: &Binding| if let Binding::Scratch { bytes, .. } = binding { *bytes as i64 } else { 0 };
    step.bindings.iter().map(bytes).sum()
}

/// How many steps touch each arena buffer.
fn touch_counts(steps: &[Step], buffers: &[Buffer]) -> BTreeMap<BufferId, usize> {
    let mut counts = BTreeMap::new();
    for id in steps.iter().flat_map(|step| touched(step, buffers)) {
        *counts.entry(id).or_insert(0) += 1;
    }
    counts
}

fn peak(steps: &[Step], buffers: &[Buffer], order: &[usize]) -> i64 {
    let mut left = touch_counts(steps, buffers);
    let totals = left.clone();
    let (mut live, mut peak) = (0i64, 0i64);
    for &index in order {
        let ids = touched(&steps[index], buffers);
        let fresh = ids.iter().filter(|id| left[id] == totals[id]);
        live += fresh.map(|&id| buffers[id].bytes as i64).sum::<i64>();
        peak = peak.max(live + scratch(&steps[index]));
        for id in ids {
            if let Some(count) = left.get_mut(&id) {
                *count -= 1;
                if *count == 0 {
                    live -= buffers[id].bytes as i64;
                }
            }
        }
    }
    peak
}

fn greedy(steps: &[Step], buffers: &[Buffer]) -> Vec<usize> {
    let mut left = touch_counts(steps, buffers);
    let totals = left.clone();
    let dependencies = dependencies(steps);
    let mut missing: Vec<usize> = dependencies.iter().map(Vec::len).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (index, list) in dependencies.iter().enumerate() {
        list.iter().for_each(|&producer| users[producer].push(index));
    }
    let mut ready: std::collections::BTreeSet<usize> = (0..steps.len()).filter(|&index| missing[index] == 0).collect();
    let mut result = Vec::new();
    while !ready.is_empty() {
        let growth = |index: usize| {
            let change = |&id: &BufferId| {
                let bytes = buffers[id].bytes as i64;
                let fresh = if left[&id] == totals[&id] { bytes } else { 0 };
                fresh - if left[&id] == 1 { bytes } else { 0 }
            };
            touched(&steps[index], buffers).iter().map(change).sum::<i64>()
        };
        let Some(next) = ready.iter().copied().min_by_key(|&index| (growth(index), index)) else { break };
        ready.remove(&next);
        result.push(next);
        for id in touched(&steps[next], buffers) {
            if let Some(count) = left.get_mut(&id) {
                *count -= 1;
            }
        }
        for &user in &users[next] {
            missing[user] -= 1;
            if missing[user] == 0 {
                ready.insert(user);
            }
        }
    }
    result
}
