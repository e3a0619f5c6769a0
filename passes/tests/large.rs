//! Large networks stay within the budgets, and come out the same each time.
#![allow(clippy::unwrap_used)]

mod common;

use common::deep::residual;
use common::{kernels, report_of};
use mlc_ir::ops::{CallConvention, Extern, Unary};
use mlc_ir::scalar::UnaryFunction;
use mlc_ir::{Cost, DType, Graph, Op, PricedOperand, Prices, TensorType, text};
use mlc_passes::egraph::saturate::StopReason;
use mlc_passes::{OptimizeOptions, WorkPrices, optimize};
use std::cell::Cell;
use std::rc::Rc;

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

/// Prices that count how often they are asked what an operand's views cost.
#[derive(Debug, Default)]
struct Counting {
    questions: Cell<usize>,
}

impl Prices for Counting {
    fn application(&self, op: &Op, operands: &[PricedOperand], results: &[TensorType]) -> Cost {
        WorkPrices.application(op, operands, results)
    }

    fn operand(
        &self,
        op: &Op,
        operands: &[PricedOperand],
        results: &[TensorType],
        number: usize,
        source: &[(&Op, &TensorType)],
    ) -> Cost {
        self.questions.set(self.questions.get() + 1);
        WorkPrices.operand(op, operands, results, number, source)
    }
}

/// Transposes of transposes that elementwise operators read: each value is a view of the others in many orders of its axes.
const ORBIT: &str = "mlc 1
graph @orbit(%x0: f32[1, 6, 7, 3]) -> (\"y0\": f32[7, 3, 6, 3], \"y1\": bool[7, 6, 3, 1], \"y2\": i64[1, 1, 1, 2]) {
  %transpose = transpose %x0 {permutation = [2, 1, 3, 0]} : f32[7, 6, 3, 1]
  %transpose.2 = transpose %transpose {permutation = [0, 1, 2, 3]} : f32[7, 6, 3, 1]
  %transpose.3 = transpose %transpose.2 {permutation = [0, 2, 1, 3]} : f32[7, 3, 6, 1]
  %broadcast = broadcast %transpose.3 {shape = [7, 3, 6, 3]} : f32[7, 3, 6, 3]
  %unary = unary %broadcast {function = relu} : f32[7, 3, 6, 3]
  %unary.2 = unary %transpose.2 {function = softplus} : f32[7, 6, 3, 1]
  %unary.3 = unary %unary.2 {function = gelu_tanh} : f32[7, 6, 3, 1]
  %binary = binary %transpose.2, %unary.3 {function = maximum} : f32[7, 6, 3, 1]
  %binary.2 = binary %binary, %unary.2 {function = greater} : bool[7, 6, 3, 1]
  %binary.3 = binary %binary.2, %binary.2 {function = greater} : bool[7, 6, 3, 1]
  %slice = slice %binary {starts = [0, 0, 0, 0], sizes = [1, 6, 3, 1], steps = [1, 1, 1, 1]} : f32[1, 6, 3, 1]
  %slice.2 = slice %slice {starts = [0, 1, 0, 0], sizes = [1, 4, 3, 1], steps = [1, 1, 1, 1]} : f32[1, 4, 3, 1]
  %slice.3 = slice %slice.2 {starts = [0, 0, 2, 0], sizes = [1, 4, 1, 1], steps = [1, 1, 1, 1]} : f32[1, 4, 1, 1]
  %pad = pad %slice.3 {pads = [[0, 0], [0, 0], [0, 0], [0, 1]], mode = replicate, value = 1.0_f32} : f32[1, 4, 1, 2]
  %splat = constant f32[] [3.5]
  %binary.4 = binary %pad, %splat {function = multiply} : f32[1, 4, 1, 2]
  %cast = cast %binary.4 {dtype = i64} : i64[1, 4, 1, 2]
  %max_pool = max_pool %cast {window = [4, 1], strides = [1, 1], dilations = [1, 2], pads = [[0, 0], [0, 0]]} : i64[1, 1, 1, 2]
  return %unary, %binary.3, %max_pool
}
";

#[test]
fn prices_are_asked_about_views_of_views_only_where_these_are_few() {
    let counting = Rc::new(Counting::default());
    let options = OptimizeOptions { prices: counting.clone(), ..OptimizeOptions::default() };
    optimize(text::parse(ORBIT, &()).unwrap(), &options, &mut |_, _| {}).unwrap();
    let questions = counting.questions.get();
    assert!((10_000..200_000).contains(&questions), "{questions} questions");
}
