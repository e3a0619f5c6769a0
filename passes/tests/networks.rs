//! Typical building blocks come out as the kernels that a person would write.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Network, kernels, optimized};
use mlc_ir::Op;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};

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
    let (graph, report) = optimized(&n.finish(&[y]));
    assert_eq!(kernels(&graph), ["kernel(convolution)", "kernel(convolution)"]);
    let first = graph.node(graph.find("conv1").unwrap());
    let origins: Vec<&str> = first.origins.iter().map(AsRef::as_ref).collect();
    assert_eq!(origins, ["bn1", "bn1.mul", "conv1", "relu1"]);
    let second = graph.node(graph.find("conv2").unwrap());
    assert_eq!(second.origins.len(), 5);
    let steps: Vec<&str> = report.explanations[0].steps.iter().map(|step| step.rule).collect();
    assert_eq!(steps, ["fold-scale-into-convolution", "fuse-epilogue"]);
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
    let (graph, _) = optimized(&n.finish(&[y]));
    assert_eq!(
        kernels(&graph),
        ["kernel(convolution)", "convolution", "kernel(convolution)"],
        "both shifts become one"
    );
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
    let (graph, _) = optimized(&n.finish(&[y]));
    assert_eq!(kernels(&graph), ["kernel(convolution)", "kernel(convolution)"]);
    assert!(graph.find("depthwise").is_some() && graph.find("pointwise").is_some());
}

#[test]
fn a_shared_value_is_computed_once() {
    let mut n = Network::new();
    let x = n.input(&[1, 6, 6, 8]);
    let c1 = n.convolution("conv1", x, 8, 3, 1, 1);
    let r1 = n.unary("relu", U::Relu, c1);
    let s1 = n.unary("sigmoid", U::Sigmoid, c1);
    let (graph, _) = optimized(&n.finish(&[r1, s1]));
    let convolutions = graph.node_ids().filter(|&id| match &graph.node(id).op {
        Op::Convolution(_) => true,
        Op::Kernel(kernel) => matches!(*kernel.anchor, Op::Convolution(_)),
        _ => false,
    });
    assert_eq!(convolutions.count(), 1);
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
    let (graph, _) = optimized(&n.finish(&[y]));
    assert_eq!(kernels(&graph), ["convolution", "reduce", "kernel(convolution)", "kernel(convolution)", "binary"]);
}
