//! Typical building blocks come out as the kernels that a person would write.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Network, inputs, kernels, optimized};
use mlc_ir::evaluator::evaluate;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_passes::rewrite::Rule;
use mlc_passes::{OptimizeOptions, OptimizeReport, optimize};

#[test]
fn a_residual_block_is_one_kernel_per_convolution() {
    let mut n = Network::new();
    let x = n.input(&[1, 6, 6, 8]);
    let c1 = n.convolution("conv1", x, 8, 3, 1, 1);
    let b1 = n.batch_norm("bn1", c1, 3);
    let r1 = n.unary("relu1", U::Relu, b1);
    let c2 = n.convolution("conv2", r1, 8, 3, 1, 1);
    let b2 = n.batch_norm("bn2", c2, 3);
    let sum = n.binary("add", B::Add, b2, x);
    let y = n.unary("relu2", U::Relu, sum);
    let result = optimized(n.finish(&[y]));
    result.expect_kernels(&["kernel(convolution)", "kernel(convolution)"]);
    let graph = &result.graph;
    let first = graph.node(graph.find("conv1").unwrap());
    let origins: Vec<&str> = first.origins.iter().map(AsRef::as_ref).collect();
    assert_eq!(origins, ["bn1", "bn1.mul", "conv1", "relu1"]);
    let second = graph.node(graph.find("conv2").unwrap());
    assert_eq!(second.origins.len(), 5);
    let steps: Vec<&str> = result.report.explanations[0].steps.iter().map(|step| step.rule).collect();
    assert_eq!(steps, ["fold-scale-into-convolution", "fuse-epilogue"]);
}

#[test]
fn an_exact_pipeline_applies_exact_rules_only() {
    let mut n = Network::new();
    let x = n.input(&[1, 6, 6, 8]);
    let c = n.convolution("conv", x, 8, 3, 1, 1);
    let b = n.batch_norm("bn", c, 3);
    let gate = n.unary("gate", U::Sigmoid, b);
    let y = n.binary("swish", B::Multiply, b, gate);
    let graph = n.finish(&[y]);
    let run = |exact| {
        let options = OptimizeOptions { exact, ..OptimizeOptions::default() };
        optimize(graph.clone(), &options, &mut |_, _| {}).unwrap()
    };
    let inexact = |report: &OptimizeReport| {
        let fired: Vec<&str> = report.stages.iter().flat_map(|stage| stage.fired.keys().copied()).collect();
        let rounds = |rule: &Rule| !rule.exactness.rounds_alike() && fired.contains(&rule.name);
        mlc_passes::pipeline::all_rules().into_iter().filter(rounds).count()
    };
    assert!(inexact(&run(false).1) > 1);
    let (exact, report) = run(true);
    assert_eq!(inexact(&report), 0);
    let values = inputs(&graph, 1);
    assert_eq!(evaluate(&graph, &values).unwrap(), evaluate(&exact, &values).unwrap());
}

#[test]
fn a_downsampling_block_shares_its_input() {
    let mut n = Network::new();
    let x = n.input(&[1, 8, 8, 4]);
    let c1 = n.convolution("conv1", x, 8, 3, 2, 1);
    let b1 = n.batch_norm("bn1", c1, 3);
    let r1 = n.unary("relu1", U::Relu, b1);
    let c2 = n.convolution("conv2", r1, 8, 3, 1, 1);
    let b2 = n.batch_norm("bn2", c2, 3);
    let c3 = n.convolution("shortcut", x, 8, 1, 2, 1);
    let b3 = n.batch_norm("bn3", c3, 3);
    let sum = n.binary("add", B::Add, b2, b3);
    let y = n.unary("relu2", U::Relu, sum);
    let result = optimized(n.finish(&[y]));
    // Both shifts become one.
    result.expect_kernels(&["kernel(convolution)", "convolution", "kernel(convolution)"]);
}

#[test]
fn a_separable_block_is_two_kernels() {
    let mut n = Network::new();
    let x = n.input(&[1, 6, 6, 8]);
    let c1 = n.convolution("depthwise", x, 8, 3, 1, 8);
    let b1 = n.batch_norm("bn1", c1, 3);
    let r1 = n.unary("relu1", U::Relu6, b1);
    let c2 = n.convolution("pointwise", r1, 16, 1, 1, 1);
    let b2 = n.batch_norm("bn2", c2, 3);
    let y = n.unary("relu2", U::HardSwish, b2);
    let result = optimized(n.finish(&[y]));
    result.expect_kernels(&["kernel(convolution)", "kernel(convolution)"]);
    assert!(result.graph.find("depthwise").is_some() && result.graph.find("pointwise").is_some());
}

#[test]
fn a_shared_value_is_computed_once() {
    let mut n = Network::new();
    let x = n.input(&[1, 6, 6, 8]);
    let c1 = n.convolution("conv1", x, 8, 3, 1, 1);
    let r1 = n.unary("relu", U::Relu, c1);
    let s1 = n.unary("sigmoid", U::Sigmoid, c1);
    let result = optimized(n.finish(&[r1, s1]));
    let list = kernels(&result.graph);
    let convolutions = list.iter().filter(|kernel| kernel.contains("convolution")).count();
    assert_eq!(convolutions, 1, "{}", result.shown());
}

#[test]
fn a_gate_of_one_pixel_is_not_computed_for_every_pixel() {
    let mut n = Network::new();
    let x = n.input(&[1, 6, 6, 8]);
    let c1 = n.convolution("conv1", x, 8, 3, 1, 8);
    let pooled = n.apply(
        "pool",
        mlc_ir::ops::Reduce { function: mlc_ir::ops::ReduceFunction::Mean, axes: vec![1, 2], keep_axes: true },
        &[c1],
    );
    let squeezed = n.convolution("squeeze", pooled, 2, 1, 1, 1);
    let squeezed = n.unary("relu", U::Relu, squeezed);
    let gate = n.convolution("excite", squeezed, 8, 1, 1, 1);
    let gate = n.unary("sigmoid", U::Sigmoid, gate);
    let y = n.binary("mul", B::Multiply, c1, gate);
    let result = optimized(n.finish(&[y]));
    result.expect_kernels(&["convolution", "reduce", "kernel(convolution)", "kernel(convolution)", "binary"]);
}

/// Attention with a linear layer each for queries, keys and values.
fn attention(n: &mut Network, x: mlc_ir::Value, heads: usize) -> mlc_ir::Value {
    use mlc_ir::ops::{Matmul, Softmax};
    let [batch, time, width] = n.shape(x)[..] else { panic!("three axes expected") };
    let mut parts = Vec::new();
    for name in ["q_proj", "k_proj", "v_proj"] {
        let projected = n.linear(name, x, width);
        let split = n.reshape(&format!("{name}.split"), &[batch, time, heads, width / heads], projected);
        parts.push(n.transpose(&format!("{name}.heads"), &[0, 2, 1, 3], split));
    }
    let scores =
        n.apply("scores", Matmul { transpose_left: false, transpose_right: true, sums: None }, &[parts[0], parts[1]]);
    let scale = n.constant("scale", &[]);
    let scores = n.binary("scaled", B::Multiply, scores, scale);
    let weights = n.apply("softmax", Softmax { axis: 3, logarithm: false }, &[scores]);
    let mixed =
        n.apply("mixed", Matmul { transpose_left: false, transpose_right: false, sums: None }, &[weights, parts[2]]);
    let joined = n.transpose("joined", &[0, 2, 1, 3], mixed);
    let joined = n.reshape("flat", &[batch, time, width], joined);
    n.linear("out_proj", joined, width)
}

#[test]
fn queries_keys_and_values_are_one_product() {
    let mut n = Network::new();
    let x = n.input(&[1, 5, 8]);
    let y = attention(&mut n, x, 2);
    let result = optimized(n.finish(&[y]));
    let list = kernels(&result.graph);
    let products = list.iter().filter(|kernel| kernel.contains("matmul")).count();
    assert_eq!(products, 4, "one for q, k and v, two for attention, one behind it\n{}", result.shown());
    assert_eq!(list.iter().filter(|kernel| *kernel == "slice").count(), 3);
    let graph = &result.graph;
    let merged = graph.node(graph.find("q_proj").unwrap());
    let origins: Vec<&str> = merged.origins.iter().map(AsRef::as_ref).collect();
    assert_eq!(origins, ["k_proj", "k_proj.add", "q_proj", "q_proj.add", "v_proj", "v_proj.add"]);
    assert_eq!(merged.results[0].shape[..], [1, 5, 24]);
    let proven = result.report.explanations.iter().any(|explanation| {
        explanation.operator == "slice" && explanation.steps.iter().any(|step| step.rule.starts_with("merge-sibling"))
    });
    assert!(proven, "{}", result.shown());
}

#[test]
fn sibling_convolutions_are_one() {
    let mut n = Network::new();
    let x = n.input(&[1, 6, 6, 8]);
    let mut outputs = Vec::new();
    for (name, channels) in [("a", 4), ("b", 8), ("c", 2)] {
        let c = n.convolution(name, x, channels, 1, 1, 1);
        let b = n.batch_norm(&format!("{name}.bn"), c, 3);
        outputs.push(n.unary(&format!("{name}.relu"), U::Relu, b));
    }
    let result = optimized(n.finish(&outputs));
    result.expect_kernels(&["kernel(convolution)", "slice", "slice", "slice"]);
}

#[test]
fn transposes_between_convolutions_vanish() {
    let mut n = Network::new();
    let image = n.input(&[1, 3, 8, 8]);
    let mut value = image;
    for (layer, channels) in [4, 4, 8].into_iter().enumerate() {
        let last = n.transpose(&format!("in{layer}"), &[0, 2, 3, 1], value);
        let c = n.convolution(&format!("conv{layer}"), last, channels, 3, 1, 1);
        let first = n.transpose(&format!("out{layer}"), &[0, 3, 1, 2], c);
        let normed = n.batch_norm(&format!("bn{layer}"), first, 1);
        let active = n.unary(&format!("relu{layer}"), U::Relu, normed);
        value = if layer == 1 { n.binary("add", B::Add, active, value) } else { active };
    }
    let flat = n.reshape("flat", &[1, 8 * 64], value);
    let y = n.linear("classifier", flat, 10);
    let result = optimized(n.finish(&[y]));
    let expected =
        ["transpose", "kernel(convolution)", "kernel(convolution)", "kernel(convolution)", "reshape", "kernel(matmul)"];
    result.expect_kernels(&expected);
}

#[test]
fn a_linear_layer_folds_its_normalisation() {
    let mut n = Network::new();
    let x = n.input(&[4, 6]);
    let normed = n.batch_norm("bn0", x, 1);
    let hidden = n.linear("fc1", normed, 8);
    let normed = n.batch_norm("bn1", hidden, 1);
    let active = n.unary("gelu", U::Gelu, normed);
    let y = n.linear("fc2", active, 3);
    let result = optimized(n.finish(&[y]));
    result.expect_kernels(&["kernel(matmul)", "kernel(matmul)"]);
}

#[test]
fn a_pad_before_the_first_layer_folds() {
    use mlc_ir::ops::{Pad, PadMode};
    for channels in [1, 3] {
        let mut n = Network::new();
        let x = n.input(&[1, channels, 7, 5]);
        let pads = vec![(0, 0), (0, 0), (1, 2), (0, 1)];
        let value = mlc_ir::Literal::of(mlc_ir::DType::F32, 0.0);
        let padded = n.apply("pad", Pad { pads, mode: PadMode::Constant, value }, &[x]);
        let last = n.transpose("in", &[0, 2, 3, 1], padded);
        let y = n.convolution("conv", last, 4, 3, 2, 1);
        let result = optimized(n.finish(&[y]));
        let first = if channels == 1 { "reshape" } else { "transpose" };
        result.expect_kernels(&[first, "convolution"]);
    }
}

#[test]
fn a_multi_branch_block_is_one_convolution() {
    let mut n = Network::new();
    let x = n.input(&[1, 6, 6, 4]);
    let wide = n.convolution("wide", x, 4, 3, 1, 1);
    let wide = n.batch_norm("bn1", wide, 3);
    let narrow = n.convolution("narrow", x, 4, 1, 1, 1);
    let narrow = n.batch_norm("bn2", narrow, 3);
    let sum = n.binary("add", B::Add, wide, narrow);
    let y = n.unary("relu", U::Relu, sum);
    let result = optimized(n.finish(&[y]));
    result.expect_kernels(&["kernel(convolution)"]);
}
