//! Networks as firmware: built by cross compilers, run on emulated boards, measured. [`page`] is `docs/footprint.md`.

use crate::case::Case;
use crate::compare::compare;
use crate::compile::load;
use crate::{halved, paths};
use mlc::pipeline::{self, CompileOptions, Compiled};
use mlc::toolchain::{Cost, Footprint, Guest, Program, Toolchain};
use mlc_codegen::Target;
use mlc_ir::{Diagnostic, Graph, Objective, Tensor};
use std::fmt::Write as _;
use std::process::Command;

/// The networks of the page: a name for people and the case.
pub const NETWORKS: [(&str, &str); 4] = [
    ("LeNet-5", "net_lenet5"),
    ("DS-CNN", "net_mlperftiny_dscnn_kws"),
    ("ResNet-8", "net_mlperftiny_resnet8"),
    ("autoencoder", "net_mlperftiny_ad_autoencoder"),
];

/// Those of them that the page has in half precision, too.
pub const NETWORKS_IN_HALVES: [(&str, &str); 1] = [("DS-CNN in half precision", "net_mlperftiny_dscnn_kws")];

/// The machines of the page. Those without floating-point instructions would take minutes.
pub const MACHINES: [&str; 4] = ["cortex-m4", "cortex-m7", "cortex-m55", "riscv32"];

/// A network on a machine.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The machine's name.
    pub machine: String,
    /// What a run took.
    pub cost: Cost,
    /// Static memory.
    pub footprint: Footprint,
    /// Bytes of the arena, which are most of the static memory.
    pub arena_bytes: usize,
    /// Multiply-accumulate operations.
    pub macs: u64,
}

impl Measured {
    /// Bytes of code, with the library functions that it calls.
    pub fn code_bytes(&self) -> usize {
        self.footprint.flash_bytes.saturating_sub(self.footprint.constants_bytes)
    }
}

/// A case of the repository or of the collection beside it; `None` where neither has it.
pub fn find(name: &str) -> Option<Case> {
    let folders = [Some(paths::data()), paths::conformance()].into_iter().flatten();
    folders
        .map(|folder| folder.join("pnnx").join(name))
        .find(|folder| folder.is_dir())
        .and_then(|f| Case::read(&f).ok())
}

/// Why nothing can be built for a machine here, if so: what is missing.
pub fn missing(machine: &str) -> Option<String> {
    let tools = Toolchain::emulated(machine)?.tools();
    let tool = tools.iter().find(|tool| Command::new(tool).arg("--version").output().is_err());
    tool.map(|tool| format!("there is no {tool}"))
}

/// Why nothing runs on a guest here, if so.
pub fn lacking(guest: &Guest) -> Option<String> {
    let has_runtime =
        || Command::new("python3").args(["-c", "import wasmtime"]).output().is_ok_and(|output| output.status.success());
    let beyond = guest.is_beyond_emulator().then(|| "the emulator has no AVX-512".to_owned());
    let lacks_runtime = || guest.target.starts_with("wasm") && !has_runtime();
    beyond.or_else(|| missing(guest.target)).or_else(|| lacks_runtime().then(|| "there is no wasmtime".to_owned()))
}

/// The cross compiler of a machine.
fn compiler(machine: &str) -> String {
    Toolchain::emulated(machine).map_or_else(String::new, |toolchain| toolchain.compiler.join(" "))
}

/// The version of a machine's cross compiler.
fn compiler_version(machine: &str) -> String {
    let output = Command::new(compiler(machine)).arg("-dumpfullversion").output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The target of a name.
pub fn target(machine: &str) -> Option<Target> {
    mlc::targets::find(machine)
}

/// A case compiled for a target and built for an emulated machine.
pub struct Built {
    /// What the compiler made.
    pub compiled: Compiled,
    /// The program.
    pub program: Program,
}

/// Compiles a case for a target, and builds it for a machine, which may be another than the target's if the code has no vectors.
///
/// # Errors
/// What any step found.
pub fn build(case: &Case, target_name: &str, machine: &str) -> Result<Built, String> {
    let target = target(target_name).ok_or_else(|| no_such("target", case, machine))?;
    build_for(case, target, machine)
}

fn no_such(what: &str, case: &Case, machine: &str) -> String {
    format!("{} on {machine}: no such {what}", case.name)
}

fn build_for(case: &Case, target: Target, machine: &str) -> Result<Built, String> {
    let all = |findings: Vec<Diagnostic>| faults(case, machine, &findings);
    let loaded = load(case).map_err(all)?;
    build_graph(case, &loaded.graph, target, machine)
}

fn build_graph(case: &Case, graph: &Graph, target: Target, machine: &str) -> Result<Built, String> {
    let all = |findings: Vec<Diagnostic>| faults(case, machine, &findings);
    let one = |finding: Diagnostic| all(vec![finding]);
    let options = CompileOptions { target, ..CompileOptions::default() };
    let compiled = pipeline::compile(graph, &options, &mut |_, _| {}).map_err(all)?;
    let toolchain = Toolchain::emulated(machine).ok_or_else(|| no_such("machine", case, machine))?;
    let program = toolchain.build(&compiled.bundle().map_err(one)?).map_err(one)?;
    Ok(Built { compiled, program })
}

fn faults(case: &Case, machine: &str, findings: &[Diagnostic]) -> String {
    let texts: Vec<String> = findings.iter().map(|finding| format!("{finding} {:?}", finding.notes)).collect();
    format!("{} on {machine}: {}", case.name, texts.join("; "))
}

/// Runs a case's program, holds its outputs to the golden ones, and gives what the emulator counted, if it counts.
///
/// # Errors
/// What the program says, or the first output that is wrong.
pub fn run(case: &Case, machine: &str, program: &Program) -> Result<Option<Cost>, String> {
    let inputs: Vec<Tensor> = case.inputs.iter().map(|input| input.value.clone()).collect();
    let (outputs, cost) = program.run_counted(&inputs).map_err(|finding| faults(case, machine, &[finding]))?;
    for (output, golden) in outputs.iter().zip(&case.outputs) {
        compare(output, &golden.value, case.tolerance_of(&golden.value))
            .map_err(|error| format!("{} on {machine}: output {}: {error}", case.name, golden.name))?;
    }
    Ok(cost)
}

/// Compiles a case for a machine, runs it on the machine's board, and holds its outputs to the golden ones.
///
/// # Errors
/// What any step found.
pub fn measure(case: &Case, machine: &str) -> Result<Measured, String> {
    measured(case, machine, build(case, machine, machine)?)
}

/// The same where the code is made for an objective.
///
/// # Errors
/// What any step found.
pub fn measure_for(case: &Case, machine: &str, objective: Objective) -> Result<Measured, String> {
    let target = target(machine).ok_or_else(|| no_such("target", case, machine))?;
    measured(case, machine, build_for(case, target.with_objective(objective), machine)?)
}

/// The same of the network in half precision, made for an objective, whose outputs are held to the golden ones within what halves allow.
///
/// # Errors
/// What any step found.
pub fn measure_in_halves(case: &Case, machine: &str, objective: Objective) -> Result<Measured, String> {
    let target = target(machine).ok_or_else(|| no_such("target", case, machine))?.with_objective(objective);
    let loaded = load(case).map_err(|findings| faults(case, machine, &findings))?;
    let graph = halved::graph(&loaded.graph)?;
    let case = halved::case(case);
    measured(&case, machine, build_graph(&case, &graph, target, machine)?)
}

fn measured(case: &Case, machine: &str, built: Built) -> Result<Measured, String> {
    let Built { compiled, program } = built;
    let cost = run(case, machine, &program)?;
    let figures = cost.zip(program.footprint);
    let (cost, footprint) = figures.ok_or_else(|| format!("{} on {machine}: the board counted nothing", case.name))?;
    Ok(Measured {
        machine: machine.to_owned(),
        cost,
        footprint,
        arena_bytes: compiled.module.plan.arena_bytes,
        macs: compiled.module.kernels.iter().map(|kernel| kernel.macs).sum(),
    })
}

const HEAD: &str = "# Footprint on microcontrollers

What networks take on emulated boards, as `mlc run --on MACHINE` prints it. Executed instructions are exact and no cycles: there
is no pipeline, cache or flash wait state in them. Flash is code with constants, of the model and of the library functions that
it calls. RAM is the static memory, nearly all of which is the arena; inputs and outputs are the caller's. The stack was measured
by painting it. Everything is float32 unless its title says else, and built with the flags of the tarball's Makefile.

`MLC_BLESS=1 cargo test -p mlc-tests firmware::` writes this page; the same test fails when a figure has moved by more than a
twentieth, or, with another compiler than the one named here, by more than a quarter.
";

/// The page that lists what was measured: per network its rows, by machine; then another section.
pub fn page(networks: &[(&str, Vec<Measured>)], section: &str) -> String {
    let mut text = HEAD.to_owned();
    let versions: Vec<String> = ["cortex-m4", "riscv32"]
        .into_iter()
        .map(|machine| format!("{} {}", compiler(machine), compiler_version(machine)))
        .collect();
    // No formatting of a String fails.
    let _ = writeln!(text, "\nCompilers: {}.", versions.join(", "));
    for (name, rows) in networks {
        let macs = rows.first().map_or(0, |row| row.macs);
        let _ = write!(
            text,
            "\n## {name}\n\n{macs} multiply-accumulates.\n\n\
             | machine | instructions | per MAC | flash | code | RAM | arena | stack |\n|---|---:|---:|---:|---:|---:|---:|---:|\n"
        );
        for row in rows {
            let Measured { machine, cost, footprint, arena_bytes, macs } = row;
            let _ = writeln!(
                text,
                "| {machine} | {} | {:.2} | {} | {} | {} | {arena_bytes} | {} |",
                cost.instructions,
                cost.instructions as f64 / (*macs).max(1) as f64,
                footprint.flash_bytes,
                row.code_bytes(),
                footprint.ram_bytes,
                cost.stack_bytes,
            );
        }
    }
    text + section
}

/// Where a page differs from another by more than it may: every line must be there, and its numbers be close. Sections of networks
/// that weren't measured here aren't compared.
pub fn stale(present: &str, measured: &str) -> Vec<String> {
    let compilers = |page: &str| page.lines().find(|line| line.starts_with("Compilers:")).map(str::to_owned);
    let tolerance = if compilers(present) == compilers(measured) { 0.05 } else { 0.25 };
    let mut faults = Vec::new();
    for (section, rows) in sections(measured) {
        let known = sections(present).into_iter().find(|(name, _)| *name == section).map(|(_, rows)| rows);
        for row in rows {
            let machine = row[0].clone();
            let old = known.iter().flatten().find(|old| old[0] == machine);
            let close = |old: &Vec<String>| {
                let pairs = old.iter().zip(&row).skip(1);
                pairs.into_iter().all(|(old, new)| match (old.parse::<f64>(), new.parse::<f64>()) {
                    // A few bytes of stack or a hundredth are no change.
                    (Ok(old), Ok(new)) => {
                        (old - new).abs() <= (tolerance * old).max(0.02).max(if old >= 16.0 { 32.0 } else { 0.0 })
                    }
                    _ => false,
                })
            };
            if !old.is_some_and(close) {
                faults.push(format!(
                    "{section} on {machine}: {} instead of {}",
                    row.join(" "),
                    old.map_or("nothing".into(), |old| old.join(" "))
                ));
            }
        }
    }
    faults
}

type Section<'a> = (&'a str, Vec<Vec<String>>);

fn sections(page: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section> = Vec::new();
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            sections.push((name, Vec::new()));
        } else if let (Some((_, rows)), Some(row)) = (sections.last_mut(), line.strip_prefix("| "))
            && !row.starts_with("machine |")
            && !row.starts_with("network |")
        {
            rows.push(row.trim_end_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect());
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(instructions: u64) -> Vec<(&'static str, Vec<Measured>)> {
        let footprint =
            Footprint { flash_bytes: 1000, constants_bytes: 800, ram_bytes: 640, data_bytes: 0, pool_bytes: 0 };
        let cost = Cost { instructions, stack_bytes: 100 };
        let machine = "cortex-m4".to_owned();
        vec![("net", vec![Measured { machine, cost, footprint, arena_bytes: 640, macs: 50_000 }])]
    }

    #[test]
    fn small_changes_keep_a_page_and_large_ones_do_not() {
        let page_of = |instructions| page(&measured(instructions), "");
        assert!(stale(&page_of(100_000), &page_of(103_000)).is_empty());
        assert_eq!(stale(&page_of(100_000), &page_of(107_000)).len(), 1);
        assert_eq!(stale(&page_of(100_000), &page_of(93_000)).len(), 1);
        assert!(stale("", &page_of(1))[0].contains("instead of nothing"));
        assert!(stale(&page_of(1), "").is_empty());
        let other = page_of(100_000).replace("Compilers: ", "Compilers: another ");
        assert!(stale(&other, &page_of(107_000)).is_empty());
    }
}
