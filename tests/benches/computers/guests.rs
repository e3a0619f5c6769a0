//! The machines that are looked at, and how instructions are counted there.

use mlc::toolchain::{Guest, guests};
use mlc_tests::firmware::target;
use std::path::Path;

/// Runs whose cost is taken: the difference of two numbers of runs, so that the start of the program doesn't count.
const RUNS: u32 = 2;

/// The machines that are looked at. What has several levels takes what the level takes that is picked.
pub fn machines(only: Option<&str>) -> impl Iterator<Item = &'static Guest> + use<'_> {
    let is_one = |guest: &&Guest| target(guest.target).is_some_and(|target| target.levels.is_empty());
    guests().filter(is_one).filter(move |guest| only.is_none_or(|only| only == guest.target))
}

/// Whether a machine's emulator counts instructions.
pub fn counts(guest: &Guest) -> bool {
    guest.runner().first().is_some_and(|runner| runner.starts_with("qemu-"))
}

/// Executed instructions of a run, of a program that is run with so many runs before the last.
pub fn instructions(figures: &Path, run: impl Fn(u32)) -> f64 {
    let [few, many] = [0, RUNS].map(|earlier| {
        std::fs::write(figures, "").unwrap();
        run(earlier);
        std::fs::read_to_string(figures).unwrap().trim().parse::<u64>().unwrap()
    });
    (many - few) as f64 / f64::from(RUNS)
}
