//! What code takes that is made for each objective: `objectives [--machine NAME] [--network PART]`. `docs/objectives.md` is what it
//! prints without options.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

use mlc_ir::Objective;
use mlc_tests::case::Case;
use mlc_tests::firmware::{Measured, measure_for};
use mlc_tests::paths;
use std::process::ExitCode;

const HEAD: &str = "# What code is made for

`--optimize speed|size|ram|balanced` on an emulated cortex-m4: executed instructions, bytes of code with the library functions that it
calls, and bytes of the arena, for all networks of the collection. Outputs are held to the golden ones.
`cargo bench -p mlc-tests --bench objectives` writes this page; `tests/tests/firmware.rs` holds that `size` makes the code of the networks of
[footprint.md](footprint.md) at least 40 % smaller than `speed` at no more than 1.6 times the instructions, that `ram` takes the smallest
arena, and that `balanced` takes at most 8 % more instructions than `speed`.

| network | | speed | balanced | size | ram |
|---|---|---:|---:|---:|---:|
";

/// The objectives in the order of the page's columns.
const COLUMNS: [Objective; 4] = [Objective::Speed, Objective::Balanced, Objective::Size, Objective::Ram];

fn networks(part: &str) -> Result<Vec<Case>, String> {
    let folder = paths::conformance().unwrap_or_else(paths::data).join("pnnx");
    let mut folders = paths::subfolders(&folder).map_err(|error| error.to_string())?;
    folders.sort();
    let name = |folder: &std::path::Path| folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let is_network = |name: String| name.starts_with("net_") && name.contains(part);
    folders.iter().filter(|folder| name(folder).is_some_and(is_network)).map(|folder| Case::read(folder)).collect()
}

/// The rows of a network.
fn rows(case: &Case, machine: &str) -> Result<String, String> {
    let all = COLUMNS.into_iter().map(|objective| measure_for(case, machine, objective));
    let all = all.collect::<Result<Vec<Measured>, String>>()?;
    let name = case.name.trim_start_matches("net_");
    let row = |head: &str, what: &str, figure: fn(&Measured) -> u64| {
        let figures: Vec<String> = all.iter().map(|measured| figure(measured).to_string()).collect();
        format!("| {head} | {what} | {} |\n", figures.join(" | "))
    };
    Ok(row(name, "instructions", |own| own.cost.instructions)
        + &row("", "code", |own| own.code_bytes() as u64)
        + &row("", "arena", |own| own.arena_bytes as u64))
}

fn run() -> Result<(), String> {
    let (mut machine, mut part) = ("cortex-m4".to_owned(), String::new());
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--machine" => machine = value()?,
            "--network" => part = value()?,
            "--bench" => {}
            option => return Err(format!("there is no option {option}")),
        }
    }
    let is_page = part.is_empty() && machine == "cortex-m4";
    let mut page = HEAD.to_owned();
    for case in networks(&part)? {
        let rows = rows(&case, &machine)?;
        print!("{rows}");
        page += &rows;
    }
    if is_page {
        std::fs::write(paths::repository().join("docs/objectives.md"), page).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
