//! Generated convolutions and matrix products against the evaluator: random ones with and without an epilogue, and the tiles
//! of chosen layers. Needs a C compiler.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use common::{check, targets};
use mlc_ir::ops::{Convolution, Kernel, Matmul};
use mlc_ir::scalar::{BinaryFunction, Expression, UnaryFunction};
use mlc_ir::{Attribute, DType, Generator, Graph, Op, OpKind, TensorType, Value};

/// A graph of one operator; its second operand is a constant, or an input.
fn graph_of(
    name: &str,
    op: Op,
    types: &[TensorType],
    constant: bool,
    epilogue: bool,
    generator: &mut Generator,
) -> Graph {
    let mut graph = Graph::new(name);
    let mut operands: Vec<Value> = Vec::new();
    for (number, ty) in types.iter().enumerate() {
        operands.push(if number == 1 && constant {
            let value = Attribute::from_tensor(&generator.tensor(ty));
            graph.add_constant("weights", value)
        } else {
            graph.add_input(&format!("x{number}"), ty.clone())
        });
    }
    let result = op.infer(types).unwrap().remove(0);
    let op = if epilogue {
        let channels = TensorType::new(result.dtype, [result.shape[result.rank() - 1]]);
        let bias = Attribute::from_tensor(&generator.tensor(&channels));
        operands.push(graph.add_constant("bias", bias));
        operands.push(graph.add_input("residual", result.clone()));
        let expression = Expression::build(|b| {
            let (x, bias, residual) = (b.operand(0), b.operand(1), b.operand(2));
            let sum = b.binary(BinaryFunction::Add, x, bias);
            let sum = b.binary(BinaryFunction::Add, sum, residual);
            b.unary(UnaryFunction::Relu, sum)
        });
        Kernel { anchor: Box::new(op), anchor_operands: types.len(), expression }.into()
    } else {
        op
    };
    let node = graph.add(op, &operands, "result").unwrap();
    graph.add_output("y", node.into());
    graph
}

/// Random instances of an operator on every target.
fn check_samples(kind: OpKind, count: usize) {
    for target in targets() {
        let mut generator = Generator::new(7);
        let graphs: Vec<Graph> = (0..count)
            .map(|number| {
                let (op, types) = kind.sample(&mut generator);
                let (constant, epilogue) = (generator.one_in(2), generator.one_in(2));
                let name = format!("{number} {op:?} {types:?}");
                graph_of(&name, op, &types, constant, epilogue, &mut generator)
            })
            .collect();
        check(&graphs, &target, 2e-5);
    }
}

#[test]
fn random_convolutions_agree_with_the_evaluator() {
    check_samples(OpKind::Convolution, 24);
}

#[test]
fn random_transposed_convolutions_agree_with_the_evaluator() {
    check_samples(OpKind::TransposedConvolution, 12);
}

#[test]
fn random_matrix_products_agree_with_the_evaluator() {
    check_samples(OpKind::Matmul, 24);
}

#[test]
fn products_of_every_data_type_agree_with_the_evaluator() {
    for target in targets() {
        let mut graphs = Vec::new();
        for kind in [OpKind::Convolution, OpKind::TransposedConvolution, OpKind::Matmul] {
            let mut generator = Generator::new(kind as u64 + 23);
            for dtype in DType::ALL {
                for number in 0..3 {
                    let (op, mut types) = kind.sample(&mut generator);
                    types.iter_mut().for_each(|ty| ty.dtype = dtype);
                    let (constant, epilogue) = (generator.one_in(2), generator.one_in(2));
                    if op.infer(&types).is_ok() {
                        let name = format!("{number} {op:?} {types:?}");
                        graphs.push(graph_of(&name, op, &types, constant, epilogue, &mut generator));
                    }
                }
            }
        }
        assert!(graphs.len() > 100);
        check(&graphs, &target, 2e-5);
    }
}

fn convolution(
    x: [usize; 3],
    window: [usize; 2],
    outputs: usize,
    stride: usize,
    groups: usize,
) -> (Op, Vec<TensorType>) {
    let pads = window.iter().map(|taps| ((taps - 1) / 2, taps / 2)).collect();
    let op = Convolution { strides: vec![stride; 2], dilations: vec![1; 2], pads, groups };
    let x_type = TensorType::new(DType::F32, [1, x[0], x[1], x[2]]);
    let weights = TensorType::new(DType::F32, [window[0], window[1], x[2] / groups, outputs]);
    (op.into(), vec![x_type, weights])
}

fn product(batch: usize, m: usize, k: usize, n: usize, transpose_right: bool) -> (Op, Vec<TensorType>) {
    let right = if transpose_right { [batch, n, k] } else { [batch, k, n] };
    let types = vec![TensorType::new(DType::F32, [batch, m, k]), TensorType::new(DType::F32, right)];
    (Matmul { transpose_left: false, transpose_right }.into(), types)
}

/// Layers whose sizes reach every kind of tile: long and short rows, wide, narrow and partial vectors, one pixel.
#[test]
fn layers_of_every_tile_agree_with_the_evaluator() {
    let layers = [
        convolution([9, 21, 3], [3, 3], 16, 1, 1),
        convolution([6, 10, 16], [3, 3], 64, 1, 1),
        convolution([7, 7, 8], [1, 1], 72, 1, 1),
        convolution([5, 3, 20], [3, 3], 100, 2, 1),
        convolution([4, 4, 6], [3, 3], 10, 1, 1),
        convolution([12, 5, 1], [10, 4], 64, 2, 1),
        convolution([6, 6, 24], [3, 3], 48, 1, 3),
        convolution([9, 9, 44], [3, 3], 44, 1, 44),
        convolution([9, 9, 20], [5, 5], 40, 2, 20),
        product(1, 1, 64, 10, false),
        product(1, 1, 640, 128, true),
        product(1, 1, 37, 300, false),
        product(3, 19, 32, 33, true),
        product(2, 16, 24, 1, false),
    ];
    for target in targets() {
        let mut generator = Generator::new(3);
        let mut graphs = Vec::new();
        for (op, types) in &layers {
            for (constant, epilogue) in [(true, true), (false, false)] {
                let name = format!("{op:?} {types:?} constant {constant} epilogue {epilogue}");
                graphs.push(graph_of(&name, op.clone(), types, constant, epilogue, &mut generator));
            }
        }
        check(&graphs, &target, 1e-4);
    }
}
