//! Kernels over several threads: a kernel becomes *phases* one after the other, each of which is cut into as many *shares* as there are
//! threads. A share is a part of the kernel's loops that is known at compile time, by price, so that what is computed doesn't depend on
//! who computes it: sums aren't cut, and results are the same bit by bit whatever the number of threads.
//!
//! [`level`](crate::loops::level) cuts a block of statements into units that can be computed anywhere, [`share`] says which of them, or which turns of
//! them, are whose, [`region`] makes phases of units that don't touch each other's results.

mod region;
mod share;
mod team;

use crate::execution::{Execution, Interface, refused};
use crate::lower::{Entry, Part, Program, Routine};
use crate::names::Names;
use crate::target::Target;
use mlc_ir::Diagnostic;
use std::collections::BTreeMap;
use team::Team;
pub use team::{Phase, Split};

/// Most threads that code is made for.
pub const MOST_THREADS: usize = 64;

/// The kernels of a program that so many threads compute, by position: none where threads would cost more than they win in all.
pub fn split(program: &Program, target: &Target, threads: usize, names: &mut Names) -> BTreeMap<usize, Split> {
    let Some(cost) = target.machine.threads.filter(|_| threads > 1) else { return BTreeMap::new() };
    let working_set = crate::emit::program_bytes(program);
    let one = |entry: &Entry<'_>| {
        let Part::Step(step) = entry.part else { return None };
        let Routine::Kernel(function) = &step.routine else { return None };
        region::split(function, &Team { target, cost, threads, working_set })
    };
    let entries = program.entries();
    let found: Vec<(&Entry<'_>, Split)> = entries.iter().filter_map(|entry| Some((entry, one(entry)?))).collect();
    let gain: f64 = found.iter().map(|(entry, split)| split.gain * entry.turns() as f64).sum();
    if gain < cost.wake {
        return BTreeMap::new();
    }
    let named = |(entry, mut split): (&Entry<'_>, Split)| {
        for (number, phase) in split.phases.iter_mut().enumerate() {
            phase.function.name = names.phase(&split.function.name, number);
        }
        (entry.first, split)
    };
    found.into_iter().map(named).collect()
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
