//! Multi-head attention as frameworks export it, with three linear layers: one matrix product, and why.
#![allow(clippy::unwrap_used)]

use mlc_ir::text;
use mlc_passes::{OptimizeOptions, optimize};
use std::fmt::Write;

const ATTENTION: &str = include_str!("attention.mlc");

#[test]
fn queries_keys_and_values_are_one_matrix_product() {
    let graph = text::parse(ATTENTION, &()).unwrap();
    let options = OptimizeOptions { explain: true, ..OptimizeOptions::default() };
    let (optimized, report) = optimize(graph, &options, &mut |_, _| {}).unwrap();
    let mut snapshot = text::print(&optimized);
    snapshot.push_str("\nproof\n");
    for explanation in &report.explanations {
        writeln!(snapshot, "{explanation}").unwrap();
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots/passes");
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!("attention", snapshot));
    let products = snapshot.lines().filter(|line| line.contains("matmul {") && line.contains("%x,")).count();
    assert_eq!(products, 1, "one product reads the input");
    assert!(snapshot.contains("merge-sibling-matmul"));
}
