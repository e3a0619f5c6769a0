//! Generated C against the evaluator: random graphs of movement and elementwise operators, and the placements that lowering
//! decides (views, parts of a whole, borders, overwritten operands). Needs a C compiler.

use crate::common::{check, targets};
use mlc_ir::ops::*;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Generator, Graph, Literal, TensorType, Value};

fn unary(function: UnaryFunction) -> Unary {
    Unary { function }
}

fn binary(function: BinaryFunction) -> Binary {
    Binary { function }
}

/// A graph of movement and elementwise operators over one or two inputs.
fn random_graph(generator: &mut Generator, name: &str) -> Graph {
    let mut graph = Graph::new(name);
    let mut values: Vec<Value> = Vec::new();
    for number in 0..generator.range(1, 2) {
        let shape = generator.shape(1, 4);
        values.push(graph.add_input(&format!("input {number}"), TensorType::new(DType::F32, shape)));
    }
    for _ in 0..generator.range(3, 14) {
        let x = generator.choose(&values);
        let shape = graph.ty(x).shape.clone();
        let rank = shape.len();
        let added = match generator.range(0, 8) {
            0 => {
                let mut permutation: Vec<usize> = (0..rank).collect();
                for axis in 0..rank {
                    permutation.swap(axis, generator.range(0, rank - 1));
                }
                graph.add(Transpose { permutation }, &[x], "transpose")
            }
            1 => {
                let mut flat = vec![shape.iter().product()];
                if generator.one_in(2) {
                    flat.insert(0, 1);
                }
                graph.add(Reshape { shape: flat.into() }, &[x], "reshape")
            }
            2 => {
                let starts: Vec<usize> = shape.iter().map(|&extent| generator.range(0, (extent - 1) / 2)).collect();
                let steps: Vec<i64> = shape.iter().map(|_| generator.choose(&[1, 1, 2])).collect();
                let room = |axis: usize| (shape[axis] - starts[axis]).div_ceil(steps[axis] as usize);
                let sizes = (0..rank).map(room).collect();
                graph.add(Slice { starts, sizes, steps }, &[x], "slice")
            }
            3 => {
                let pads = (0..rank).map(|_| (generator.range(0, 2), generator.range(0, 1))).collect();
                let value = Literal::float(DType::F32, 0.25);
                graph.add(Pad { pads, mode: PadMode::Constant, value }, &[x], "pad")
            }
            4 => {
                let axis = generator.range(0, rank - 1);
                let y = generator.choose(&values);
                graph.add(Concat { axis }, &[x, y, x], "concat")
            }
            5 => graph.add(unary(UnaryFunction::Relu), &[x], "relu"),
            6 => graph.add(unary(UnaryFunction::Silu), &[x], "silu"),
            7 => {
                let mut wide = shape.clone();
                wide.insert(0, 2);
                graph.add(Broadcast { shape: wide }, &[x], "broadcast")
            }
            _ => {
                let y = generator.choose(&values);
                graph.add(binary(BinaryFunction::Add), &[x, y], "add")
            }
        };
        if let Ok(node) = added
            && graph.node(node).results[0].elements() < 20_000
        {
            values.push(node.into());
        }
    }
    let last = *values.last().unwrap();
    graph.add_output("last", last);
    let another = generator.choose(&values);
    graph.add_output("another", another);
    graph
}

#[test]
fn movement_and_elementwise_operators_agree_with_the_evaluator() {
    for target in targets() {
        let mut generator = Generator::new(11);
        let graphs: Vec<Graph> = (0..24).map(|number| random_graph(&mut generator, &format!("g{number}"))).collect();
        check(&graphs, &target, 1e-5);
    }
}

fn add_binary(graph: &mut Graph, function: BinaryFunction, x: Value, y: Value) -> Value {
    graph.add(binary(function), &[x, y], function.name()).unwrap().into()
}

#[test]
fn joined_values_are_computed_in_place() {
    let mut graph = Graph::new("joined");
    let x = graph.add_input("x", TensorType::new(DType::F32, [2, 8]));
    let left: Value = graph.add(unary(UnaryFunction::Exp), &[x], "left").unwrap().into();
    let right: Value = graph.add(unary(UnaryFunction::Sin), &[x], "right").unwrap().into();
    let joined: Value = graph.add(Concat { axis: 1 }, &[left, right], "joined").unwrap().into();
    let sum = add_binary(&mut graph, BinaryFunction::Add, joined, joined);
    graph.add_output("y", sum);
    for target in targets() {
        let modules = check(std::slice::from_ref(&graph), &target, 1e-6);
        assert_eq!(modules[0].kernels.len(), 3, "no copies: {:?}", modules[0].kernels);
        assert_eq!(modules[0].plan.buffers.len(), 1);
    }
}

#[test]
fn results_overwrite_operands_that_die() {
    let mut graph = Graph::new("chain");
    let x = graph.add_input("x", TensorType::new(DType::F32, [64]));
    let a: Value = graph.add(unary(UnaryFunction::Exp), &[x], "a").unwrap().into();
    let b: Value = graph.add(unary(UnaryFunction::Sin), &[a], "b").unwrap().into();
    let c: Value = graph.add(unary(UnaryFunction::Cos), &[b], "c").unwrap().into();
    let y = add_binary(&mut graph, BinaryFunction::Add, c, x);
    graph.add_output("y", y);
    for target in targets() {
        let modules = check(std::slice::from_ref(&graph), &target, 1e-6);
        assert_eq!(modules[0].plan.arena_bytes, 256);
    }
}

#[test]
fn every_scalar_function_agrees_with_the_evaluator() {
    let mut graphs = Vec::new();
    let mut generator = Generator::new(5);
    for dtype in DType::ALL {
        let mut graph = Graph::new(format!("functions_{dtype}"));
        let shape = generator.choose(&[37usize, 64]);
        let x = graph.add_input("x", TensorType::new(dtype, [shape]));
        let y = graph.add_input("y", TensorType::new(dtype, [shape]));
        for &function in UnaryFunction::ALL {
            if function.result_dtype(dtype).is_some() {
                let node = graph.add(unary(function), &[x], function.name()).unwrap();
                graph.add_output(function.name(), node.into());
            }
        }
        for &function in BinaryFunction::ALL {
            if function.result_dtype(dtype).is_some() {
                let value = add_binary(&mut graph, function, x, y);
                graph.add_output(function.name(), value);
            }
        }
        for to in DType::ALL {
            let node = graph.add(Cast { dtype: to }, &[x], "cast").unwrap();
            graph.add_output(&format!("to_{to}"), node.into());
        }
        graphs.push(graph);
    }
    for target in targets() {
        check(&graphs, &target, 3e-6);
    }
}
