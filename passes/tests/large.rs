//! Large networks stay within the budgets, and come out the same each time.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Network, kernels, report_of};
use mlc_ir::Graph;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_passes::egraph::saturate::StopReason;
use mlc_passes::{OptimizeOptions, optimize};

/// A channels-first residual network of `blocks` blocks, transposes around each convolution.
fn residual_network(blocks: usize) -> Graph {
    let mut n = Network::new();
    let mut value = n.input(&[1, 8, 8, 8]);
    for block in 0..blocks {
        let shortcut = value;
        for layer in 0..2 {
            let name = format!("b{block}l{layer}");
            let last = n.transpose(&format!("{name}.in"), &[0, 2, 3, 1], value);
            let c = n.convolution(&name, last, 8, 3, 1, 1);
            let first = n.transpose(&format!("{name}.out"), &[0, 3, 1, 2], c);
            value = n.batch_norm(&format!("{name}.bn"), first, 1);
            if layer == 0 {
                value = n.unary(&format!("{name}.relu"), U::Relu, value);
            }
        }
        let sum = n.binary(&format!("b{block}.add"), B::Add, value, shortcut);
        value = n.unary(&format!("b{block}.relu"), U::Relu, sum);
    }
    n.finish(&[value])
}

#[test]
fn a_deep_residual_network_is_one_kernel_per_convolution() {
    let graph = residual_network(16);
    let (result, report) = optimize(graph.clone(), &OptimizeOptions::default(), &mut |_, _| {}).unwrap();
    let list = kernels(&result);
    assert_eq!(list.iter().filter(|kernel| *kernel == "kernel(convolution)").count(), 32);
    assert_eq!(list.len(), 34, "the rim's transposes are left\n{}", report_of(&graph, &result, &report));
    for stage in &report.stages {
        let Some(saturation) = &stage.saturation else { continue };
        assert_eq!(saturation.stop, [StopReason::Saturated], "{}", stage.name);
        assert!(saturation.nodes < 3000 && saturation.cost_after <= saturation.cost_before, "{}", stage.name);
    }
}

#[test]
fn the_result_is_the_same_each_time() {
    let graph = residual_network(3);
    let run = || {
        let mut stages = Vec::new();
        let options = OptimizeOptions { explain: true, ..OptimizeOptions::default() };
        let (result, report) = optimize(graph.clone(), &options, &mut |name, _| stages.push(name.to_owned())).unwrap();
        (format!("{result:?}"), format!("{report:?}"), stages)
    };
    let first = run();
    assert_eq!(first.2, ["canonicalise", "layout", "fold", "merge", "fusion"]);
    assert_eq!(first, run());
}

#[test]
fn a_graph_in_regions_computes_the_same() {
    let graph = residual_network(6);
    let options = OptimizeOptions { region: 20, explain: true, ..OptimizeOptions::default() };
    let (result, report) = optimize(graph.clone(), &options, &mut |_, _| {}).unwrap();
    assert!(report.stages[1].saturation.as_ref().unwrap().stop.len() > 3);
    let values = common::inputs(&graph, 5);
    let expected = mlc_ir::evaluator::evaluate(&graph, &values).unwrap();
    let found = mlc_ir::evaluator::evaluate(&result, &values).unwrap();
    assert!(common::difference(&expected, &found) < 1e-4);
    let convolutions = kernels(&result).iter().filter(|kernel| *kernel == "kernel(convolution)").count();
    assert!(convolutions >= 10, "borders cost little: {convolutions} of 12 carry their epilogue");
    assert!(!report.explanations.is_empty());
}
