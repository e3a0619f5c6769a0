//! The schedules of kernels as text: what there was to choose from, and why one was taken.

use super::words::{bytes, count, short};
use mlc_codegen::lower::{Candidate, Considered, Cut, CutReason, Halo, Span};
use mlc_codegen::{Choice, KernelSummary, LaidOver, Module, Offer, Reason, SplitSummary, Target};
use mlc_ir::Objective;

/// A head with what the code is made for, and a paragraph for each kernel that is scheduled, computed by several threads or of several parts.
pub(super) fn schedules_text(module: &Module, target: &Target) -> String {
    let is_told = |kernel: &&KernelSummary| {
        !kernel.choice.offers.is_empty() || kernel.split.is_some() || kernel.branch.is_some() || kernel.inside > 0
    };
    let told = module.kernels.iter().filter(is_told);
    let paragraphs = told.map(|kernel| {
        let facts = [
            (!kernel.choice.offers.is_empty()).then(|| reason(&kernel.choice, target.objective)),
            (kernel.inside > 0).then(|| {
                let memory = bytes(kernel.workspace_bytes);
                format!("{} kernels inside of it, {memory} that nothing else needs", kernel.inside)
            }),
            (!kernel.laid_over.is_empty()).then(|| laid_over(&kernel.laid_over)),
            (kernel.parallel_turns > 1).then(|| {
                format!("{} turns of its outermost loop don't touch each other's results", kernel.parallel_turns)
            }),
            (module.execution.threads > 1).then(|| threads(kernel, module.execution.threads)),
            (kernel.choice.offers.len() > 1).then(|| format!("kind '{}'", kernel.choice.key)),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        let head = format!("{} ({}): {}\n", kernel.node, kernel.operator, facts.join("; "));
        kernel
            .choice
            .offers
            .iter()
            .enumerate()
            .fold(head, |text, (number, offer)| text + &line(offer, number == kernel.choice.taken))
    });
    let head = format!("schedules for {}, {}:\n", target.name, target.objective.name());
    [rows(&module.considered), head].into_iter().chain(paragraphs).collect()
}

/// The programs with stripes and without, and why stripes end where they do.
fn rows(considered: &Considered) -> String {
    let Considered { asks_for_rows, programs, taken, cuts } = considered;
    if !asks_for_rows || programs.is_empty() {
        return String::new();
    }
    let program = |(number, program): (usize, &Candidate)| {
        let Candidate { arena_bytes, time, stripes } = program;
        let stripe = |Span { first, last, nodes, patches, halo, twice }: &Span| match (nodes, patches) {
            (1, 1) => format!("'{}' alone", short(first)),
            (_, 1) => format!("'{}' to '{}' ({nodes})", short(first), short(last)),
            _ => {
                let halo = match halo {
                    Halo::Computed => format!("compute {} operations twice", count(*twice)),
                    Halo::Kept => "keep rows for each other".to_owned(),
                };
                format!("'{}' to '{}' ({nodes}, in {patches} patches that {halo})", short(first), short(last))
            }
        };
        let stripes: Vec<String> = stripes.iter().map(stripe).collect();
        let stripes = if stripes.is_empty() { "whole results".into() } else { stripes.join(", ") };
        let mark = if number == *taken { '*' } else { ' ' };
        format!("  {mark} {stripes}: {} of working memory, time {time}\n", bytes(*arena_bytes as u64))
    };
    let cut = |Cut { before, behind, reason }: &Cut| {
        let reason = match reason {
            CutReason::Operator(operator) => format!("{operator} isn't computed row by row there"),
            CutReason::MostNodes => "a stripe has no more nodes".to_owned(),
            CutReason::Turns => "their rows don't fit into the same turns".to_owned(),
            CutReason::Bytes { together, limit } if together > limit => {
                format!(
                    "together they would need about {}, of {} for all",
                    bytes(*together as u64),
                    bytes(*limit as u64)
                )
            }
            CutReason::Bytes { .. } => "together they would move more rows, and need no less memory for all".to_owned(),
        };
        format!("  cut between '{}' and '{}': {reason}\n", short(before), short(behind))
    };
    let head = match programs.len() {
        1 => "nodes that are computed row by row, none of which need less memory than whole results:\n",
        _ => "nodes that are computed row by row, in the smallest program of each plan:\n",
    };
    let programs = programs.iter().enumerate().map(program);
    std::iter::once(head.to_owned()).chain(programs).chain(cuts.iter().map(cut)).collect()
}

/// Where results lie over operands.
fn laid_over(all: &[LaidOver]) -> String {
    let text = |own: &LaidOver| {
        let LaidOver { operand, distance_bytes, direction, least_bytes, .. } = own;
        let place = match distance_bytes {
            0 => format!("where '{operand}' is read"),
            1.. => format!("{distance_bytes} bytes before '{operand}', which is still read"),
            _ => format!("{} bytes behind the start of '{operand}', which is still read", -distance_bytes),
        };
        format!("its result begins {place}, and is written {direction} ({least_bytes} would do)")
    };
    all.iter().map(text).collect::<Vec<String>>().join("; ")
}

/// What several threads do of a kernel.
fn threads(kernel: &KernelSummary, count: usize) -> String {
    let launches = |split: &SplitSummary| match split.launches {
        1 => "one launch".to_owned(),
        launches => format!("{launches} launches"),
    };
    match (&kernel.split, &kernel.branch) {
        (Some(split), _) => format!("{count} threads compute {} % of it in {}", split.percent, launches(split)),
        (None, Some(branch)) => {
            let (share, launch) = (branch.share + 1, branch.launch + 1);
            format!("thread {share} of {count} computes it, beside other branches (launch {launch})")
        }
        (None, None) => "one thread computes it".into(),
    }
}

fn reason(choice: &Choice, objective: Objective) -> String {
    let first = || choice.offers.first().map_or(1, |first| first.price.time.max(1));
    match choice.reason {
        Reason::Only => "there is one schedule".into(),
        Reason::First => "no price is so much lower than the first one's that it is to be trusted".into(),
        Reason::Cheapest => {
            let time = choice.taken().map_or(0, |taken| taken.price.time);
            let saved = 100.0 * (1.0 - time as f64 / first() as f64);
            format!("the cheapest, {saved:.0} % cheaper than the first")
        }
        Reason::Fits => "the fastest whose scratch memory fits where nothing else is".to_owned(),
        Reason::Weighed => format!("the cheapest for {}", objective.name()),
        Reason::ByPixels => "its result can lie over more of its operand".into(),
        Reason::Measured => "measured to be the fastest".into(),
        Reason::Forced => "the one that was asked for".into(),
    }
}

fn line(offer: &Offer, is_taken: bool) -> String {
    let price = &offer.price;
    let mut facts = vec![format!("time {}", price.time), format!("{} of code", bytes(price.code_bytes))];
    let optional = [
        ("from behind the nearest cache", price.traffic_bytes),
        ("of constants", price.constant_bytes),
        ("of scratch memory", price.scratch_bytes),
        ("in place", price.overlap_bytes),
    ];
    facts.extend(
        optional.iter().filter(|(_, count)| *count > 0).map(|(what, count)| format!("{} {what}", bytes(*count))),
    );
    let mark = if is_taken { '*' } else { ' ' };
    format!("  {mark} {}: {}\n", offer.schedule, facts.join(", "))
}
