//! Kernels over several threads: a kernel becomes *phases* one after the other, each of which is cut into as many *shares* as there are
//! threads. A share is a part of the kernel's loops that is known at compile time, by price, so that what is computed doesn't depend on
//! who computes it: sums aren't cut, and results are the same bit by bit whatever the number of threads. [`branches`] of a model that don't
//! depend on each other are computed beside each other where that wins more.
//!
//! [`level`](crate::loops::level) cuts a block of statements into units that can be computed anywhere, [`share`] says which of them, or which turns of
//! them, are whose, [`region`] makes phases of units that don't touch each other's results.

mod branches;
mod region;
mod share;
mod team;

use crate::execution::{Execution, Interface, refused};
use crate::lower::{Entry, Part, Program, Routine};
use crate::module::BranchSummary;
use crate::names::Names;
use crate::target::Target;
pub use branches::Branches;
use mlc_ir::Diagnostic;
use std::collections::BTreeMap;
use team::Team;
pub use team::{Phase, Split};

/// Most threads that code is made for.
pub const MOST_THREADS: usize = 64;

/// What threads compute of a program.
#[derive(Debug, Clone, Default)]
pub struct Shared {
    /// Kernels that all compute together, by position.
    pub splits: BTreeMap<usize, Split>,
    /// Branches of which each computes some.
    pub branches: Vec<Branches>,
}

impl Shared {
    /// Whether one thread computes all.
    pub fn is_empty(&self) -> bool {
        self.splits.is_empty() && self.branches.is_empty()
    }

    /// Which thread computes what is at a position, where that is in a branch.
    pub fn branch(&self, position: usize) -> Option<BranchSummary> {
        let launch = self.branches.iter().position(|own| own.positions.contains(&position))?;
        let share = self.branches[launch]
            .shares
            .iter()
            .position(|share| share.iter().any(|part| part.1.contains(&position)))?;
        Some(BranchSummary { launch, share })
    }
}

/// What so many threads compute of a program, beside each other where branches may be: nothing where threads would cost more than they win in
/// all.
pub fn share(program: &Program, target: &Target, threads: usize, may_branch: bool, names: &mut Names) -> Shared {
    let Some(cost) = target.machine.threads.filter(|_| threads > 1) else { return Shared::default() };
    let team = Team { target, cost, threads, working_set: crate::emit::program_bytes(program).into() };
    let one = |entry: &Entry<'_>| {
        let Part::Step(step) = entry.part else { return None };
        let Routine::Kernel(function) = &step.routine else { return None };
        let split = region::split(function, &team)?;
        let gain = split.gain * entry.turns() as f64;
        Some((entry.first, Split { gain, ..split }))
    };
    let splits = program.entries().iter().filter_map(one).collect();
    let branches = if may_branch { branches::branches(program, &splits, &team, names) } else { Vec::new() };
    let mut shared = Shared { splits, branches };
    let gain: f64 = shared.splits.values().map(|split| split.gain).sum();
    let beyond: f64 = shared.branches.iter().map(|branches| branches.gain).sum();
    if gain + beyond < cost.wake {
        return Shared::default();
    }
    let Shared { splits, branches } = &mut shared;
    splits.retain(|position, _| !branches.iter().any(|own| own.positions.contains(position)));
    for split in splits.values_mut() {
        for (number, phase) in split.phases.iter_mut().enumerate() {
            phase.function.name = names.phase(&split.function.name, number);
        }
    }
    shared
}

/// Refuses threads where nothing could start them.
///
/// # Errors
/// `MLC0004` when the interface or the machine has no place for them.
pub fn check(execution: Execution, target: &Target) -> Result<(), Diagnostic> {
    let threads = execution.threads;
    if threads <= 1 {
        return Ok(());
    }
    if execution.graph || execution.aot != Some(Interface::C) {
        return refused(
            format!("only code with the C interface is computed by {threads} threads"),
            "give '--executor aot --interface-api c', or leave '--threads' out",
        );
    }
    if target.machine.threads.is_none() {
        return refused(
            format!("code for '{}' is computed by one thread", target.name),
            "leave '--threads' out, or compile for a machine with an operating system that has threads, or for 'generic'",
        );
    }
    if threads > MOST_THREADS {
        return refused(format!("code is made for {MOST_THREADS} threads at most"), "ask for fewer threads");
    }
    Ok(())
}
