//! How long the optimiser takes on deep networks: `cargo bench -p mlc-passes --bench depth`. Numbers as arguments are how many
//! operators to build, 1,000 and 10,000 without; names are the networks to take.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::deep;
use mlc_ir::Graph;
use mlc_passes::{OptimizeOptions, optimize};
use std::time::Instant;

/// A network of so many blocks.
type Network = fn(usize) -> Graph;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let sizes: Vec<usize> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let are_named = arguments.len() > sizes.len();
    let sizes = if sizes.is_empty() { vec![1_000, 10_000] } else { sizes };
    let networks: [(&str, Network); 4] = [
        ("residual", deep::residual),
        ("elementwise", deep::elementwise),
        ("sums", deep::sums),
        ("attention", deep::attention),
    ];
    println!("{:12} {:>10} {:>8} {:>9}   seconds of each stage", "network", "operators", "after", "seconds");
    for (name, network) in networks {
        if are_named && !arguments.iter().any(|argument| argument == name) {
            continue;
        }
        let per_block = deep::operators(&network(2)) - deep::operators(&network(1));
        for size in &sizes {
            let graph = network(size.div_ceil(per_block));
            let operators = deep::operators(&graph);
            let mut stages = Vec::new();
            let start = Instant::now();
            let mut last = start;
            let observer = &mut |stage: &str, _: &Graph| {
                stages.push(format!("{stage} {:.2}", last.elapsed().as_secs_f64()));
                last = Instant::now();
            };
            let (result, _) = optimize(graph, &OptimizeOptions::default(), observer).unwrap();
            let seconds = start.elapsed().as_secs_f64();
            let after = deep::operators(&result);
            println!("{name:12} {operators:>10} {after:>8} {seconds:>9.2}   {}", stages.join(", "));
        }
    }
}
