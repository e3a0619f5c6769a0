//! Random graphs compute the same before and after the whole pipeline.
#![allow(clippy::unwrap_used)]

mod common;

use common::random::{network, sampled};
use common::{difference, inputs, report_of};
use mlc_ir::evaluator::evaluate;
use mlc_ir::text::print;
use mlc_ir::{Graph, OpKind};
use mlc_passes::egraph::saturate::Budget;
use mlc_passes::{OptimizeOptions, optimize};

fn check(graph: &Graph, what: &str) {
    let (result, report) = optimize(graph.clone(), &OptimizeOptions::default(), &mut |_, _| {}).unwrap();
    let values = inputs(graph, 3);
    let Ok(expected) = evaluate(graph, &values) else { return };
    let found = evaluate(&result, &values).unwrap();
    let error = difference(&expected, &found);
    assert!(error < 1e-3, "{what} differs by {error}\n{}", report_of(graph, &result, &report));
}

#[test]
fn every_operator_survives_the_pipeline() {
    for &kind in OpKind::OWN {
        for seed in 0..40 {
            let graph = sampled(kind, seed);
            if !graph.outputs().is_empty() {
                check(&graph, &format!("{} of seed {seed}", kind.name()));
            }
        }
    }
}

#[test]
fn random_networks_survive_the_pipeline() {
    for seed in 0..400 {
        check(&network(seed), &format!("network {seed}"));
    }
}

/// What the optimiser makes of a graph, how large its spaces were and how often each rule fired.
fn outcome(graph: &Graph, budget: Budget, explain: bool) -> (String, Vec<(usize, usize)>, Vec<String>) {
    let options = OptimizeOptions { explain, budget, ..OptimizeOptions::default() };
    let (result, report) = optimize(graph.clone(), &options, &mut |_, _| {}).unwrap();
    let spaces = report.stages.iter().filter_map(|stage| stage.saturation.as_ref());
    let sizes = spaces.map(|space| (space.nodes, space.iterations)).collect();
    (print(&result), sizes, report.stages.iter().map(|stage| format!("{:?}", stage.fired)).collect())
}

#[test]
fn explaining_changes_nothing() {
    for seed in 0..60 {
        let graph = network(seed);
        for (nodes, matches) in [(20_000, 2_000), (100, 2_000), (200, 3), (20_000, 1)] {
            let budget = Budget { nodes, matches, ..Budget::default() };
            let what = format!("network {seed} with {nodes} nodes and {matches} matches");
            assert_eq!(outcome(&graph, budget, false), outcome(&graph, budget, true), "{what}");
        }
    }
}
