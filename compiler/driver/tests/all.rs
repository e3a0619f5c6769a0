//! All tests of the command line in one program, so that they share the machine's cores until the last one ends, and the compiler is
//! linked once: `cargo test -p mlc memory::` runs those of a file.
#![allow(clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used, missing_docs)]

mod archives;
mod ark;
mod builds;
mod cli;
mod common;
mod decisions;
mod determinism;
mod faults;
mod firmware_projects;
mod forms;
mod functions;
mod interface;
mod layers;
mod levels;
mod lightnet;
mod malformed;
mod memory;
mod operators;
mod opgen;
mod quantize;
mod quantized;
mod reference_archives;
mod report;
mod schedules;
mod tennis;
mod terminal;
mod threads;
