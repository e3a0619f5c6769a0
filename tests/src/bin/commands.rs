//! `commands [--only PAGE]`
//!
//! Runs the commands that are in the README and the documentation, with the programs that are beside this one. The exit status is 1
//! when one doesn't do what its page says. `--only docs/firmware.md` runs those of one page.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test runner talks to its user")]

use mlc_ir::parallel;
use mlc_tests::book::{self, Outcome, Page};
use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

/// Pages that are run at a time: most commands take one processor.
const THREADS: usize = 2;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("commands: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, Box<dyn Error>> {
    let mut pages = book::pages()?;
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.as_slice() {
        [] => {}
        [option, name] if option == "--only" => pages.retain(|page| page.name == *name),
        _ => return Err("usage: commands [--only PAGE]".into()),
    }
    let program = std::env::current_exe()?;
    let programs = program.parent().ok_or("this program is nowhere")?;
    let outcomes = parallel::map(&pages, THREADS, |page| {
        let start = Instant::now();
        let outcome = tempfile::tempdir().map(|folder| book::run(page, folder.path(), programs));
        (outcome, start.elapsed().as_secs_f64())
    });
    let mut faults = 0;
    for (page, (outcome, seconds)) in pages.iter().zip(outcomes) {
        faults += usize::from(tell(page, &outcome?, seconds));
    }
    Ok(faults == 0)
}

/// Prints how a page went; gives whether something is wrong.
fn tell(page: &Page, outcome: &Outcome, seconds: f64) -> bool {
    let Outcome { ran, left_out, fault } = outcome;
    if *ran + left_out.len() == 0 && fault.is_none() {
        return false;
    }
    println!("{}: {ran} blocks of commands ran in {seconds:.1} s, {} didn't", page.name, left_out.len());
    for reason in left_out {
        println!("  {reason}");
    }
    if let Some(fault) = fault {
        println!("  WRONG {fault}");
    }
    fault.is_some()
}
