//! Large networks stay within the budgets, and come out the same each time.
#![allow(clippy::unwrap_used)]

mod common;

use common::deep::residual;
use common::{kernels, report_of};
use mlc_ir::ops::{CallConvention, Extern, Unary};
use mlc_ir::scalar::UnaryFunction;
use mlc_ir::{DType, Graph, TensorType};
use mlc_passes::egraph::saturate::StopReason;
use mlc_passes::{OptimizeOptions, optimize};

#[test]
fn a_deep_residual_network_is_one_kernel_per_convolution() {
    let graph = residual(16);
    let (result, report) = optimize(graph.clone(), &OptimizeOptions::default(), &mut |_, _| {}).unwrap();
    let list = kernels(&result);
    assert_eq!(list.iter().filter(|kernel| *kernel == "kernel(convolution)").count(), 32);
    assert_eq!(list.len(), 34, "the rim's transposes are left\n{}", report_of(&graph, &result, &report));
    for stage in &report.stages {
        let Some(saturation) = &stage.saturation else { continue };
        assert_eq!(saturation.stop, [StopReason::Saturated], "{}", stage.name);
        assert!(saturation.nodes < 3500, "{}: {} nodes", stage.name, saturation.nodes);
        assert!(saturation.cost_after <= saturation.cost_before, "{}: {saturation:?}", stage.name);
    }
}

#[test]
fn the_result_is_the_same_each_time() {
    let graph = residual(3);
    let run = || {
        let mut stages = Vec::new();
        let options = OptimizeOptions { explain: true, ..OptimizeOptions::default() };
        let (result, report) = optimize(graph.clone(), &options, &mut |name, _| stages.push(name.to_owned())).unwrap();
        (format!("{result:?}"), format!("{report:?}"), stages)
    };
    let first = run();
    assert_eq!(first.2, ["canonicalise", "fusion"]);
    assert_eq!(first, run());
}

#[test]
fn a_graph_in_regions_computes_the_same() {
    let graph = residual(6);
    let options = OptimizeOptions { region: 20, explain: true, ..OptimizeOptions::default() };
    let (result, report) = optimize(graph.clone(), &options, &mut |_, _| {}).unwrap();
    assert!(report.stages[1].saturation.as_ref().unwrap().stop.len() > 3);
    let values = common::inputs(&graph, 5);
    let expected = mlc_ir::evaluator::evaluate(&graph, &values).unwrap();
    let found = mlc_ir::evaluator::evaluate(&result, &values).unwrap();
    assert!(common::difference(&expected, &found) < 1e-4);
    let list = kernels(&result);
    let convolutions = list.iter().filter(|kernel| *kernel == "kernel(convolution)").count();
    assert!(convolutions >= 10, "borders cost little: {convolutions} of 12 carry their epilogue");
    let transposes = list.iter().filter(|kernel| *kernel == "transpose").count();
    assert_eq!(transposes, 2, "those of the rim: borders stop none\n{list:?}");
    assert!(!report.explanations.is_empty());
}

#[test]
fn calls_with_effects_outlive_every_region() {
    let ty = TensorType::new(DType::F32, [4]);
    let mut graph = Graph::new("g");
    let mut x = graph.add_input("x", ty.clone());
    for effect in 1..=9 {
        let types = vec![ty.clone()];
        let mut op = Extern::new("log_it", CallConvention::Unpacked, types.clone(), types, Vec::new());
        op.effect = effect;
        let call = graph.add(op, &[x], "call").unwrap();
        // Nobody uses every second one.
        let next = if effect % 2 == 0 { x } else { call.into() };
        x = graph.add(Unary { function: UnaryFunction::Tanh }, &[next], "tanh").unwrap().into();
    }
    graph.add_output("y", x);
    for region in [3, 1200] {
        let options = OptimizeOptions { region, ..OptimizeOptions::default() };
        let (result, _) = optimize(graph.clone(), &options, &mut |_, _| {}).unwrap();
        let effects = result.topological_order().into_iter().filter_map(|id| result.node(id).op.effects());
        let mut effects: Vec<usize> = effects.map(|(first, _)| first).collect();
        effects.sort_unstable();
        assert_eq!(effects, Vec::from_iter(1..=9));
    }
}
