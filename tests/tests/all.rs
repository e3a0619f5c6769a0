//! All tests of this package in one program, so that they share the machine's cores until the last one ends, and the compiler is
//! linked once: `cargo test -p mlc-tests stripes::` runs those of a file.
#![allow(clippy::panic, clippy::print_stderr, clippy::unwrap_used)]

mod archive;
mod ark;
mod ark_networks;
mod ark_options;
mod book;
mod computers;
mod conformance;
mod custom_operators;
mod damaged;
mod descriptions;
mod documents;
mod executors;
mod feed;
mod fetch;
mod filetests;
mod firmware;
mod halves;
mod helium;
mod integer_kernels;
mod levels;
mod lightnet;
mod models;
mod overlays;
mod pools;
mod random_graphs;
mod ranks;
mod ranks_all_reduce;
mod relay;
mod stateful;
mod stripes;
mod structure;
mod tennis;
mod threads;
