//! Orders of steps: the graph's own, and a greedy one that frees memory early. The caller plans both and keeps the better.

use super::homes::{Buffer, BufferId, BufferKind};
use super::program::Step;
use std::collections::{BTreeMap, BTreeSet};

/// Candidate orders, as numbers of steps; the first is the one given.
pub fn candidates(steps: &[Step], buffers: &[Buffer]) -> Vec<Vec<usize>> {
    vec![(0..steps.len()).collect(), greedy(steps, buffers)]
}

/// Earlier steps that a step must follow: writers of what it reads, and earlier writers of what it writes (so that a value is
/// computed before its border is drawn, and can overwrite an operand). A state is read before it is overwritten.
fn dependencies(steps: &[Step], buffers: &[Buffer]) -> Vec<BTreeSet<usize>> {
    let mut writers: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
    let mut readers: BTreeMap<BufferId, Vec<usize>> = BTreeMap::new();
    let mut result = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        let before = step.reads().chain(step.writes()).flat_map(|buffer| writers.get(&buffer).into_iter().flatten());
        let overwritten = step.writes().flat_map(|buffer| readers.get(&buffer).into_iter().flatten());
        result.push(before.chain(overwritten).copied().collect());
        for buffer in step.reads().filter(|&id| matches!(buffers[id].kind, BufferKind::State(_))) {
            readers.entry(buffer).or_default().push(index);
        }
        for buffer in step.writes() {
            writers.entry(buffer).or_default().push(index);
        }
    }
    result
}

fn arena_buffers(step: &Step, buffers: &[Buffer]) -> BTreeSet<BufferId> {
    step.reads().chain(step.writes()).filter(|&id| buffers[id].kind == BufferKind::Arena).collect()
}

fn greedy(steps: &[Step], buffers: &[Buffer]) -> Vec<usize> {
    let touched: Vec<BTreeSet<BufferId>> = steps.iter().map(|step| arena_buffers(step, buffers)).collect();
    let mut totals: BTreeMap<BufferId, usize> = BTreeMap::new();
    touched.iter().flatten().for_each(|&id| *totals.entry(id).or_insert(0) += 1);
    let mut left = totals.clone();
    let dependencies = dependencies(steps, buffers);
    let mut missing: Vec<usize> = dependencies.iter().map(BTreeSet::len).collect();
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (index, list) in dependencies.iter().enumerate() {
        list.iter().for_each(|&earlier| users[earlier].push(index));
    }
    let mut ready: BTreeSet<usize> = (0..steps.len()).filter(|&index| missing[index] == 0).collect();
    let mut result = Vec::new();
    while !ready.is_empty() {
        let growth = |index: usize| {
            let change = |id: &BufferId| {
                let bytes = buffers[*id].bytes as i64;
                let fresh = if left[id] == totals[id] { bytes } else { 0 };
                fresh - if left[id] == 1 { bytes } else { 0 }
            };
            touched[index].iter().map(change).sum::<i64>()
        };
        let Some(next) = ready.iter().copied().min_by_key(|&index| (growth(index), index)) else { break };
        ready.remove(&next);
        result.push(next);
        for id in &touched[next] {
            left.entry(*id).and_modify(|count| *count -= 1);
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
