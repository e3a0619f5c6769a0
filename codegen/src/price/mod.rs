//! What a kernel costs on a machine, read off its loop program: trip counts are constants, so instructions can be counted, and
//! with them the bytes that have to come from each level of cache.
//!
//! [`price`] walks a function. [`samples`] knows how often a statement runs, [`count`] the instructions of a block of statements,
//! [`traffic`] the memory. Everything is computed in a fixed order, so that a price is the same on every machine.

mod ceilings;
mod count;
mod samples;
mod traffic;
mod walk;
mod working_set;

pub use ceilings::Ceilings;
pub use working_set::{StripeTurns, WorkingSet};

use crate::loops::{Function, Var};
use crate::target::{Cache, Overlap, Target};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Add;
use traffic::Traffic;

/// What a kernel costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Price {
    /// Cycles where instructions overlap, executed instructions elsewhere.
    pub time: u64,
    /// Bytes that come from behind the nearest cache; 0 without caches.
    pub traffic_bytes: u64,
    /// Bytes of code.
    pub code_bytes: u64,
    /// Bytes of memory that live while it runs.
    pub scratch_bytes: u64,
    /// Bytes of constants, in the layouts in which it reads them.
    pub constant_bytes: u64,
    /// Bytes of the first result that may lie over an operand of the same layout that is read nowhere else: all or none.
    pub overlap_bytes: u64,
}

/// One after the other.
impl Add for Price {
    type Output = Price;

    fn add(self, other: Price) -> Price {
        Price {
            time: self.time.saturating_add(other.time),
            traffic_bytes: self.traffic_bytes.saturating_add(other.traffic_bytes),
            code_bytes: self.code_bytes.saturating_add(other.code_bytes),
            scratch_bytes: self.scratch_bytes.max(other.scratch_bytes),
            constant_bytes: self.constant_bytes.saturating_add(other.constant_bytes),
            // What one may overwrite the other may still read.
            overlap_bytes: 0,
        }
    }
}

/// What a kernel costs on a target, run again and again amid what else is touched: what doesn't fit a cache has to come anew each
/// time. Of memory, only code is counted.
pub fn price(function: &Function, target: &Target, working_set: &WorkingSet) -> Price {
    let walked = walk::walk(function, target);
    let machine = &target.machine;
    let each = &machine.instructions;
    let code_bytes = walked.instructions() * machine.code_bytes;
    let (time, traffic) = match machine.overlap {
        Overlap::None => {
            let time =
                walked.blocks.iter().map(|block| block.weight * block.share * block.counts.one_by_one(each)).sum();
            (time, 0.0)
        }
        Overlap::Ports { width, latency, .. } => {
            let computing = computing(&walked, target, width, latency);
            let touched = Traffic::of(&walked, function);
            let bytes = |cache: &Cache| touched.through(cache.bytes, working_set);
            let traffic: Vec<f64> = machine.caches.iter().map(bytes).collect();
            let moving =
                machine.caches.iter().zip(&traffic).map(|(cache, bytes)| bytes / cache.fill).fold(0.0, f64::max);
            let time = computing.max(moving) + BESIDE_MEMORY * computing.min(moving);
            (time, traffic.first().copied().unwrap_or_default())
        }
    };
    let whole = |number: f64| number.round() as u64;
    Price {
        time: whole(time + each.call),
        traffic_bytes: whole(traffic),
        code_bytes: whole(code_bytes),
        ..Price::default()
    }
}

/// What a cycle of a unit adds that isn't the busiest one, in cycles.
const BESIDE: f64 = 0.15;

/// What a cycle adds that memory brings while units compute, or units compute while it brings, if that takes less of them.
const BESIDE_MEMORY: f64 = 0.075;

/// Cycles of what units do, `width` instructions a cycle at most. A machine that looks ahead does what blocks of statements need beside each
/// other, so that the unit which has most to do in all counts, the others little; sums that wait for each other add what they leave idle.
fn computing(walked: &walk::Walked, target: &Target, width: f64, latency: f64) -> f64 {
    let each = &target.machine.instructions;
    let times = |block: &walk::Block| block.weight * block.share;
    let mut all = [0.0; 5];
    let mut idle = 0.0;
    for block in &walked.blocks {
        let units = block.counts.at_once(each, width);
        let busiest = units.iter().copied().fold(0.0, f64::max);
        idle += times(block) * (block.counts.chain * latency - busiest).max(0.0);
        for (sum, unit) in all.iter_mut().zip(units) {
            *sum += times(block) * unit;
        }
        if !target.machine.looks_ahead() {
            idle += times(block) * busiest;
        }
    }
    if !target.machine.looks_ahead() {
        return idle;
    }
    let busiest = all.iter().copied().fold(0.0, f64::max);
    busiest + BESIDE * (all[..4].iter().sum::<f64>() - busiest).max(0.0) + idle
}

/// Bytes that a function reads and writes through each of its parameters, each time that it runs.
pub fn accessed_bytes(function: &Function, target: &Target) -> BTreeMap<Var, f64> {
    let walked = walk::walk(function, target);
    let mut bytes = BTreeMap::new();
    for access in &walked.accesses {
        let times: f64 = access.loops.iter().map(|&number| walked.loops[number]).product();
        *bytes.entry(access.root).or_insert(0.0) += times * access.bytes;
    }
    bytes
}

#[cfg(test)]
mod tests;
