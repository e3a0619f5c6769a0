//! Random graphs: single operators between elementwise ones, and networks of layers.

use super::Network;
use mlc_ir::ops::{Concat, MaxPool, Pad, PadMode, Reduce, ReduceFunction, Slice, Softmax};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, Category, DType, Generator, Graph, Literal, OpKind, Value};

/// An application of a sampled operator to random inputs and constants, between elementwise operators.
pub fn sampled(kind: OpKind, seed: u64) -> Graph {
    let mut random = Generator::new(seed);
    let (op, types) = kind.sample(&mut random);
    let mut graph = Graph::new("sampled");
    let mut operands: Vec<Value> = Vec::new();
    for ty in &types {
        let constant = random.one_in(3);
        let value = random.tensor(ty);
        let mut operand = if constant && !operands.is_empty() {
            graph.add_constant("c", Attribute::from_tensor(&value))
        } else {
            graph.add_input("x", ty.clone())
        };
        if ty.dtype == DType::F32 && random.one_in(2) {
            let function = random.choose(&[U::Relu, U::Tanh, U::Negate]);
            operand = graph.add(mlc_ir::ops::Unary { function }, &[operand], "before").unwrap().into();
        }
        operands.push(operand);
    }
    if op.category() == Category::Source {
        return graph;
    }
    let node = graph.add(op, &operands, "sample").unwrap();
    for slot in 0..graph.node(node).results.len() as u32 {
        let mut value = Value { node, slot };
        let ty = graph.ty(value).clone();
        if ty.dtype == DType::F32 {
            let mut vector = vec![1; ty.rank()];
            vector
                .iter_mut()
                .zip(&ty.shape)
                .skip(random.range(0, ty.rank()))
                .for_each(|(slot, &extent)| *slot = extent);
            let constant = random.tensor(&mlc_ir::TensorType::new(DType::F32, &vector));
            let constant = graph.add_constant("c", Attribute::from_tensor(&constant));
            let function = random.choose(&[B::Add, B::Multiply, B::Subtract]);
            value = graph.add(mlc_ir::ops::Binary { function }, &[value, constant], "after").unwrap().into();
        }
        graph.add_output(&format!("y{slot}"), value);
    }
    graph
}

/// One random layer on top of a random earlier value.
fn layer(n: &mut Network, values: &mut Vec<Value>, number: usize) {
    let x = n.random.choose(values);
    let shape = n.shape(x);
    let name = format!("n{number}");
    let rank = shape.len();
    let value = match n.random.range(0, 13) {
        0 | 1 if rank == 4 => {
            let groups = if n.random.one_in(3) { shape[3] } else { 1 };
            let outputs = groups * n.random.range(1, 3);
            n.convolution(&name, x, outputs, 3, 1, groups)
        }
        2 => {
            let axis = n.random.range(0, rank - 1);
            n.batch_norm(&name, x, axis)
        }
        3 => {
            let function = n.random.choose(&[U::Relu, U::Sigmoid, U::Relu6, U::Negate, U::Tanh]);
            n.unary(&name, function, x)
        }
        4 | 5 => {
            let same: Vec<Value> = values.iter().copied().filter(|&other| n.shape(other) == shape).collect();
            let other = n.random.choose(&same);
            let function = n.random.choose(&[B::Add, B::Multiply, B::Subtract, B::Maximum]);
            n.binary(&name, function, x, other)
        }
        6 | 7 => {
            let swap = n.random.range(0, 1);
            let permutation = if rank != 4 {
                (0..rank).rev().collect()
            } else if swap == 0 {
                vec![0, 3, 1, 2]
            } else {
                vec![0, 2, 3, 1]
            };
            n.transpose(&name, &permutation, x)
        }
        8 => n.reshape(&name, &[shape[0], shape[1..].iter().product()], x),
        9 if rank >= 2 => {
            let outputs = n.random.range(1, 4);
            n.linear(&name, x, outputs)
        }
        10 => {
            let axis = n.random.range(0, rank - 1);
            let other = n.random.choose(values);
            let fits = n.shape(other).len() == rank && (0..rank).all(|a| a == axis || n.shape(other)[a] == shape[a]);
            n.apply(&name, Concat { axis }, &[x, if fits { other } else { x }])
        }
        11 => {
            let axis = n.random.range(0, rank - 1);
            let (mut starts, mut sizes) = (vec![0; rank], shape.clone());
            starts[axis] = n.random.range(0, shape[axis] - 1);
            sizes[axis] -= starts[axis];
            n.apply(&name, Slice { starts, sizes, steps: vec![1; rank] }, &[x])
        }
        12 if rank == 4 => {
            let mut pads = vec![(0, 0); 4];
            pads[1] = (n.random.range(0, 1), n.random.range(0, 1));
            let value = Literal::of(DType::F32, 0.0);
            n.apply(&name, Pad { pads, mode: PadMode::Constant, value }, &[x])
        }
        12 if rank == 3 => n.apply(&name, Softmax { axis: 2, logarithm: false }, &[x]),
        13 if rank == 4 && shape[1] > 1 && shape[2] > 1 => {
            let op = MaxPool { window: vec![2; 2], strides: vec![1; 2], dilations: vec![1; 2], pads: vec![(0, 0); 2] };
            n.apply(&name, op, &[x])
        }
        _ => {
            let axes = vec![n.random.range(0, rank - 1)];
            let keep_axes = n.random.one_in(2) || rank < 3;
            n.apply(&name, Reduce { function: ReduceFunction::Mean, axes, keep_axes }, &[x])
        }
    };
    if n.graph.ty(value).elements() <= 2000 {
        values.push(value);
    }
}

/// A random network of a few layers.
pub fn network(seed: u64) -> Graph {
    let mut n = Network::new();
    n.random = Generator::new(seed);
    let shape: Vec<usize> = (0..4).map(|_| n.random.range(1, 4)).collect();
    let mut values = vec![n.input(&shape)];
    for number in 0..n.random.range(3, 14) {
        layer(&mut n, &mut values, number);
    }
    let outputs = [values[values.len() - 1], values[values.len() / 2]];
    n.finish(&outputs)
}
