//! Generated code at work: built with a C compiler and run, against the evaluator. One program, so that its tests share the
//! machine's cores until the last one ends.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr)]

mod anchors;
mod byte_dots;
mod common;
mod dense;
mod executors;
mod externs;
mod extremes;
mod generate;
mod halves;
mod integers;
mod loops;
mod mathematics;
mod recurrent;
mod round_trips;
#[path = "../../../tests/src/sanitizers.rs"]
mod sanitizers;
mod schedules;
mod selections;
mod shared_vectors;
mod strict;
mod transposes;
#[path = "../../../tests/src/batch/unit.rs"]
mod unit;
mod winograd;
mod winograd_bytes;
