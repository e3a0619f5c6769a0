//! Deep networks of equal blocks.

use super::Network;
use mlc_ir::Graph;
use mlc_ir::ops::{Matmul, Softmax};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};

/// A channels-first residual network of `blocks` blocks, transposes around each convolution.
pub fn residual(blocks: usize) -> Graph {
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

/// Residual blocks without weights: x + tanh(relu(x) * 0.5).
pub fn elementwise(blocks: usize) -> Graph {
    let mut n = Network::new();
    let mut value = n.input(&[1, 64]);
    let half = n.constant("half", &[]);
    for block in 0..blocks {
        let positive = n.unary(&format!("b{block}.relu"), U::Relu, value);
        let scaled = n.binary(&format!("b{block}.scale"), B::Multiply, positive, half);
        let bent = n.unary(&format!("b{block}.tanh"), U::Tanh, scaled);
        value = n.binary(&format!("b{block}.add"), B::Add, value, bent);
    }
    n.finish(&[value])
}

/// Residual blocks of one operator: x + relu(x).
pub fn sums(blocks: usize) -> Graph {
    let mut n = Network::new();
    let mut value = n.input(&[1, 64]);
    for block in 0..blocks {
        let positive = n.unary(&format!("b{block}.relu"), U::Relu, value);
        value = n.binary(&format!("b{block}.add"), B::Add, value, positive);
    }
    n.finish(&[value])
}

/// Residual blocks of multi-head attention, with three linear layers on their input.
pub fn attention(blocks: usize) -> Graph {
    let mut n = Network::new();
    let mut value = n.input(&[1, 6, 16]);
    let scale = n.constant("scale", &[]);
    for block in 0..blocks {
        let [q, k, v] = ["q", "k", "v"].map(|part| {
            let name = format!("b{block}.{part}");
            let linear = n.linear(&name, value, 16);
            let heads = n.reshape(&format!("{name}.heads"), &[1, 6, 4, 4], linear);
            n.transpose(&format!("{name}.first"), &[0, 2, 1, 3], heads)
        });
        let matmul = |transpose_right| Matmul { transpose_left: false, transpose_right, sums: None };
        let scores = n.apply(&format!("b{block}.scores"), matmul(true), &[q, k]);
        let scaled = n.binary(&format!("b{block}.scaled"), B::Multiply, scores, scale);
        let weights = n.apply(&format!("b{block}.softmax"), Softmax { axis: 3, logarithm: false }, &[scaled]);
        let mixed = n.apply(&format!("b{block}.heads"), matmul(false), &[weights, v]);
        let merged = n.transpose(&format!("b{block}.merged"), &[0, 2, 1, 3], mixed);
        let flat = n.reshape(&format!("b{block}.flat"), &[1, 6, 16], merged);
        let projected = n.linear(&format!("b{block}.out"), flat, 16);
        value = n.binary(&format!("b{block}.add"), B::Add, value, projected);
    }
    n.finish(&[value])
}

/// The operators of a graph that compute.
pub fn operators(graph: &Graph) -> usize {
    graph.node_ids().filter(|&id| graph.node(id).op.category() != mlc_ir::Category::Source).count()
}
