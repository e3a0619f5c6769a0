//! Which graph is taken depends on the target, and layout, siblings and fusion are weighed against each other.
#![allow(clippy::unwrap_used)]

use mlc::pipeline::{CompileOptions, compile};
use mlc_ir::text;

/// Two convolutions on one input, and the gate that multiplies them, as WaveNet has it.
const GATE: &str = "mlc 1
graph @gate(%x: f32[1, 64, 16]) -> (\"y\": f32[1, 64, 16]) {
  %a = constant f32[2, 16, 16] random(seed = 1)
  %b = constant f32[2, 16, 16] random(seed = 2)
  %f = convolution %x, %a {strides = [1], dilations = [1], pads = [[1, 0]], groups = 1} : f32[1, 64, 16]
  %g = convolution %x, %b {strides = [1], dilations = [1], pads = [[1, 0]], groups = 1} : f32[1, 64, 16]
  %t = unary %f {function = tanh} : f32[1, 64, 16]
  %s = unary %g {function = sigmoid} : f32[1, 64, 16]
  %y = binary %t, %s {function = multiply} : f32[1, 64, 16]
  return %y
}
";

/// The types of what the convolutions of the chosen graph compute.
fn convolutions(target: &str) -> Vec<String> {
    let graph = text::parse(GATE, &()).unwrap();
    let target = mlc::targets::find(target).unwrap();
    let options = CompileOptions { target, ..CompileOptions::default() };
    let compiled = compile(&graph, &options, &mut |_, _| {}).unwrap();
    let graph = &compiled.graph;
    let nodes = graph.topological_order().into_iter().map(|id| graph.node(id));
    let anchored = nodes.filter(|node| match &node.op {
        mlc_ir::Op::Kernel(kernel) => matches!(*kernel.anchor, mlc_ir::Op::Convolution(_)),
        op => matches!(op, mlc_ir::Op::Convolution(_)),
    });
    anchored.map(|node| node.results[0].to_string()).collect()
}

/// On a microcontroller a merged product saves nothing that the gate's epilogue doesn't save too, and takes twice the memory; in vectors
/// of 16 lanes functions such as `tanh` in every place of a tile take the registers that its sums have.
#[test]
fn gated_siblings_merge_on_one_target_and_fuse_with_their_gate_on_another() {
    assert_eq!(convolutions("cortex-m4"), ["f32[1, 64, 16]", "f32[1, 64, 16]"]);
    assert_eq!(convolutions("x86-64-v4"), ["f32[1, 64, 32]"]);
}
