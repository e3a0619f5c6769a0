//! What threads are given, and what is made of a kernel for them.

use crate::loops::Function;
use crate::module::SplitSummary;
use crate::price::WorkingSet;
use crate::target::{Target, ThreadCost};

/// How many times a launch must be won by it.
pub const LEAST_GAIN: f64 = 1.5;

/// A phase of a kernel: what threads compute at the same time.
#[derive(Debug, Clone)]
pub struct Phase {
    /// Computes one share, whose number is its last parameter.
    pub function: Function,
}

/// A kernel that threads compute.
#[derive(Debug, Clone)]
pub struct Split {
    /// The kernel: what one thread does, with the launches of phases.
    pub function: Function,
    /// Its phases, by number.
    pub phases: Vec<Phase>,
    /// What threads do in all.
    pub summary: SplitSummary,
    /// Time that it is thought to win, in the unit of prices.
    pub gain: f64,
}

/// The threads that compute a program.
#[derive(Debug, Clone, Copy)]
pub struct Team<'a> {
    /// What they run on.
    pub target: &'a Target,
    /// What it costs to have them begin.
    pub cost: ThreadCost,
    /// How many there are.
    pub threads: usize,
    /// What the program touches.
    pub working_set: WorkingSet,
}
