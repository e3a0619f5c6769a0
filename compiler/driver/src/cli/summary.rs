//! What `mlc compile` closes with: what the code takes of its machine, and what takes the most.

use super::arguments::Compile;
use super::modes::Emit;
use super::words::{bytes, count, short};
use crate::pipeline::Compiled;
use mlc_codegen::{
    ConstantForm, Contributor, KernelSummary, Module, PackedConstant, WeightsAs, ram_bytes, ram_contributors,
};
use std::path::Path;

/// How many contributors of each kind are told.
const TOLD: usize = 3;

/// Bytes of numbers in C text from which on C compilers take long to read them.
const LARGE_BYTES: usize = 10_000_000;
/// Bytes of strings that C compilers read while they read one of numbers.
const STRING_BYTES: usize = 10;

/// What was written, RAM, flash, time, and the largest contributors to each.
pub(super) fn summary(path: &Path, compiled: &Compiled) -> String {
    let (module, target) = (&compiled.module, compiled.target());
    let total =
        |figure: fn(&KernelSummary) -> u64| module.kernels_of_run().iter().map(figure).fold(0, u64::saturating_add);
    let macs = total(|kernel| kernel.macs);
    let (time, code) = (total(|kernel| kernel.price.time), module.code_bytes());
    let constants = module.constants_bytes() as u64;
    let states = match module.state_bytes() {
        0 => String::new(),
        count => format!(", {} of states", bytes(count as u64)),
    };
    let pools = module.plan.pools.iter().map(|pool| format!("{} in {}", bytes(pool.bytes as u64), pool.name));
    let pools = pools.collect::<Vec<String>>().join(", ");
    let pools = if pools.is_empty() { pools } else { format!(" ({pools})") };
    let blocks = match module.workspace_bytes().checked_sub(module.plan.arena_bytes) {
        // The graph executor has no place for distances between a result and an operand.
        Some(1..) => format!(" in blocks ({} with --executor aot)", bytes(module.plan.arena_bytes as u64)),
        _ => String::new(),
    };
    let rings = match (module.considered.time_beside_whole(), module.considered.whole()) {
        (Some(time), Some(whole)) => {
            let patches = match module.considered.twice() {
                0 => String::new(),
                twice => format!("; patches compute {} operations twice", count(twice)),
            };
            format!(
                "\n{:>22}rows in rings: {} with whole results, {time}{patches}",
                "",
                bytes(whole.arena_bytes as u64)
            )
        }
        _ => String::new(),
    };
    let ram = format!(
        "{} of working memory{blocks}{pools}{states}, {} of inputs and outputs",
        bytes(module.workspace_bytes() as u64),
        bytes(module.io_bytes() as u64),
    );
    let flash = format!("{} of constants, about {} of code", bytes(constants), bytes(code));
    let rows = [
        ("RAM", bytes(ram_bytes(module) as u64), format!("{ram}; the stack comes on top{rings}"), ram_list(module)),
        ("flash", bytes(constants + code), flash, flash_list(module)),
        ("time", count(time), format!("{}, as predicted", target.machine.unit()), time_list(module, time)),
    ];
    let threads = match module.execution.threads {
        1 => String::new(),
        threads => format!(", {threads} threads"),
    };
    let levels = match module.levels.len() {
        0 => String::new(),
        count => format!(" of the last of {count} levels"),
    };
    let mut text = format!(
        "wrote {}: {} kernels{levels}, {macs} MACs, for {}, {}{threads}",
        path.display(),
        module.kernels_of_run().len(),
        target.name,
        target.objective.name(),
    );
    for (what, figure, parts, largest) in rows {
        text += &format!("\n  {what:<5} {figure:>12}  {parts}");
        if !largest.is_empty() {
            text += &format!("\n{:>22}most: {}", "", largest.join(", "));
        }
    }
    text
}

/// The largest of some figures that have names, but for those of nothing.
fn largest(mut figures: Vec<(u64, String)>) -> Vec<(u64, String)> {
    figures.retain(|(figure, _)| *figure > 0);
    // A stable sort, so that equal ones stay in order.
    figures.sort_by_key(|(figure, _)| std::cmp::Reverse(*figure));
    figures.truncate(TOLD);
    figures.into_iter().map(|(figure, what)| (figure, short(&what))).collect()
}

fn in_bytes(figures: Vec<(u64, String)>) -> Vec<String> {
    largest(figures).into_iter().map(|(figure, what)| format!("{what} {}", bytes(figure))).collect()
}

fn ram_list(module: &Module) -> Vec<String> {
    let contributor = |Contributor { bytes, what }: Contributor| (bytes as u64, what);
    in_bytes(ram_contributors(module).into_iter().map(contributor).collect())
}

fn flash_list(module: &Module) -> Vec<String> {
    let of_kernel = |kernel: &KernelSummary| {
        (kernel.price.code_bytes.saturating_add(kernel.price.constant_bytes), kernel.node.clone())
    };
    in_bytes(module.kernels.iter().map(of_kernel).collect())
}

fn time_list(module: &Module, whole: u64) -> Vec<String> {
    let of_kernel = |kernel: &KernelSummary| (kernel.price.time, kernel.node.clone());
    let share = |(time, node): (u64, String)| format!("{node} {:.0} %", 100.0 * time as f64 / whole.max(1) as f64);
    largest(module.kernels_of_run().iter().map(of_kernel).collect()).into_iter().map(share).collect()
}

/// What to say where constants are text that takes a C compiler long.
pub(super) fn large_weights(arguments: &Compile, compiled: &Compiled) -> Option<String> {
    let numbers = |constant: &PackedConstant| match constant.form {
        ConstantForm::Numbers => constant.value.ty().bytes(),
        ConstantForm::String => constant.value.ty().bytes() / STRING_BYTES,
    };
    let work: usize = compiled.module.linked_constants().map(numbers).sum();
    let is_text = compiled.module.execution.weights == WeightsAs::C && !arguments.packaging.emit_lib;
    if work <= LARGE_BYTES || !is_text || arguments.emit == Emit::Ir {
        return None;
    }
    let object = if compiled.target().object_format().is_some() { " or 'object'" } else { "" };
    let size = bytes(compiled.module.constants_bytes() as u64);
    Some(format!(
        "{size} of constants are C text, which C compilers read slowly: '--weights-as incbin'{object} builds in seconds"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contributors_come_largest_first_and_nothing_is_none() {
        let figures = [0, 5, 9, 5, 1].into_iter().zip(["none", "a", "b", "c", "d"].map(str::to_owned)).collect();
        let names: Vec<String> = largest(figures).into_iter().map(|(_, name)| name).collect();
        assert_eq!(names, ["b", "a", "c"]);
        assert_eq!(
            (count(99_999), count(3_337_000), count(11_806_560)),
            ("99999".into(), "3.34 million".into(), "11.8 million".into())
        );
    }
}
