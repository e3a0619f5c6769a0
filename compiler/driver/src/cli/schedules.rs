//! The schedules of kernels as text: what there was to choose from, and why one was taken.

use super::words::bytes;
use mlc_codegen::{Choice, KernelSummary, LaidOver, Module, Offer, Reason, SplitSummary, Target};
use mlc_ir::Objective;

/// A head with what the code is made for, and a paragraph for each kernel that is scheduled, computed by several threads or of several parts.
pub(super) fn schedules_text(module: &Module, target: &Target) -> String {
    let is_told =
        |kernel: &&KernelSummary| !kernel.choice.offers.is_empty() || kernel.split.is_some() || kernel.inside > 0;
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
    std::iter::once(format!("schedules for {}, {}:\n", target.name, target.objective.name()))
        .chain(paragraphs)
        .collect()
}

/// Where results lie over operands.
fn laid_over(all: &[LaidOver]) -> String {
    let text = |own: &LaidOver| {
        let LaidOver { operand, distance_bytes, least_bytes, .. } = own;
        let place = match distance_bytes {
            0 => format!("where '{operand}' is read"),
            1.. => format!("{distance_bytes} bytes before '{operand}', which is still read"),
            _ => format!("{} bytes behind the start of '{operand}', which is still read", -distance_bytes),
        };
        format!("its result begins {place} ({least_bytes} would do)")
    };
    all.iter().map(text).collect::<Vec<String>>().join("; ")
}

/// What several threads do of a kernel.
fn threads(kernel: &KernelSummary, count: usize) -> String {
    let launches = |split: &SplitSummary| match split.launches {
        1 => "one launch".to_owned(),
        launches => format!("{launches} launches"),
    };
    kernel.split.as_ref().map_or("one thread computes it".into(), |split| {
        format!("{count} threads compute {} % of it in {}", split.percent, launches(split))
    })
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
