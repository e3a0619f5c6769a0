//! Every elementwise operator is treated as one: transposes and reshapes sink below it, and it becomes an epilogue.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Network, kernels, optimized};
use mlc_ir::ops::{Reduce, ReduceFunction};
use mlc_ir::{DType, Generator, Graph, Op, OpKind, TensorType, Value};

/// A random operator of this kind whose first operands have the rank of its result, at least 2.
fn drawn(kind: OpKind, random: &mut Generator) -> (Op, Vec<TensorType>, TensorType) {
    loop {
        let (op, types) = kind.sample(random);
        let result = op.infer(&types).unwrap().remove(0);
        if result.rank() >= 2 && types.iter().all(|ty| ty.shape == result.shape) && result.elements() > 1 {
            return (op, types, result);
        }
    }
}

/// The operator between an arrangement of its operands and its inverse.
fn arranged(
    op: Op,
    types: &[TensorType],
    before: impl Fn(&mut Network, &TensorType) -> Value,
    behind: impl Fn(&mut Network, Value) -> Value,
) -> Graph {
    let mut n = Network::new();
    let operands: Vec<Value> = types.iter().map(|ty| before(&mut n, ty)).collect();
    let y = n.apply("y", op, &operands);
    let y = behind(&mut n, y);
    n.finish(&[y])
}

#[test]
fn moves_sink_below_every_elementwise_operator() {
    for &kind in OpKind::ELEMENTWISE {
        let mut random = Generator::new(kind as u64);
        for _ in 0..10 {
            let (op, types, result) = drawn(kind, &mut random);
            let reversed: Vec<usize> = (0..result.rank()).rev().collect();
            let turned = arranged(
                op.clone(),
                &types,
                |n, ty| {
                    let shape: Vec<usize> = ty.shape.iter().rev().copied().collect();
                    let x = n.graph.add_input("x", TensorType::new(ty.dtype, &shape[..]));
                    n.transpose("turned", &reversed, x)
                },
                |n, y| n.transpose("back", &reversed, y),
            );
            let flat = arranged(
                op.clone(),
                &types,
                |n, ty| {
                    let x = n.graph.add_input("x", TensorType::new(ty.dtype, &[ty.elements()][..]));
                    n.reshape("folded", &ty.shape, x)
                },
                |n, y| n.reshape("flat", &[result.elements()], y),
            );
            for graph in [turned, flat] {
                let result = optimized(graph);
                let list = kernels(&result.graph);
                let moves = list.iter().filter(|name| ["transpose", "reshape"].contains(&name.as_str())).count();
                assert_eq!(moves, 0, "{}", result.shown());
            }
        }
    }
}

#[test]
fn every_elementwise_operator_becomes_an_epilogue() {
    for &kind in OpKind::ELEMENTWISE {
        let mut random = Generator::new(kind as u64);
        for _ in 0..10 {
            let (op, types, _) = drawn(kind, &mut random);
            let place = types.iter().rposition(|ty| ty.dtype != DType::Bool);
            let Some(place) = place else { continue };
            let mut n = Network::new();
            let mut operands: Vec<Value> = types.iter().map(|ty| n.graph.add_input("x", ty.clone())).collect();
            let shape: Vec<usize> = [3].iter().chain(types[place].shape.iter()).copied().collect();
            let stack = n.graph.add_input("stack", TensorType::new(types[place].dtype, &shape[..]));
            let reduce = Reduce { function: ReduceFunction::Maximum, axes: vec![0], keep_axes: false };
            operands[place] = n.apply("anchor", reduce, &[stack]);
            let y = n.apply("y", op.clone(), &operands);
            let result = optimized(n.finish(&[y]));
            let list = kernels(&result.graph);
            let single = list == ["kernel(reduce)"] || list == ["reduce"];
            assert!(single, "{list:?}\n{}", result.shown());
        }
    }
}
