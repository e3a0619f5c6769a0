//! Generated convolutions and matrix products against the evaluator: random ones with and without an epilogue, and the tiles
//! of chosen layers. Needs a C compiler.

use crate::common::{check, check_by_turns, embedded, text_of};
use mlc_codegen::target::{Borders, Target};
use mlc_ir::ops::{Convolution, Kernel, Matmul};
use mlc_ir::scalar::{BinaryFunction, Expression, UnaryFunction};
use mlc_ir::{Attribute, DType, Generator, Graph, Op, OpKind, TensorType, Value};

/// The usual targets and a small one, whose tiles are others.
fn targets() -> Vec<Target> {
    crate::common::targets().into_iter().chain([embedded("cortex-m4")]).collect()
}

/// A graph of one operator; its second operand is a constant, or an input.
pub fn graph_of(
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
    check_samples(OpKind::Convolution, 6);
}

#[test]
fn random_transposed_convolutions_agree_with_the_evaluator() {
    check_samples(OpKind::TransposedConvolution, 4);
}

#[test]
fn random_matrix_products_agree_with_the_evaluator() {
    check_samples(OpKind::Matmul, 6);
}

#[test]
fn products_of_every_data_type_agree_with_the_evaluator() {
    for target in [Target::generic(), Target::host(32), embedded("cortex-m4")] {
        let mut graphs = Vec::new();
        for kind in [OpKind::Convolution, OpKind::TransposedConvolution, OpKind::Matmul] {
            let mut generator = Generator::new(kind as u64 + 23);
            for dtype in DType::ALL {
                let (op, mut types) = kind.sample(&mut generator);
                types.iter_mut().for_each(|ty| ty.dtype = dtype);
                let (constant, epilogue) = (generator.one_in(2), generator.one_in(2));
                if op.infer(&types).is_ok() {
                    let name = format!("{op:?} {types:?}");
                    graphs.push(graph_of(&name, op, &types, constant, epilogue, &mut generator));
                }
            }
        }
        assert!(graphs.len() > 30, "{}", graphs.len());
        check(&graphs, &target, 2e-5);
    }
}

pub fn convolution(
    x: [usize; 3],
    window: [usize; 2],
    outputs: usize,
    stride: usize,
    groups: usize,
) -> (Op, Vec<TensorType>) {
    let pads = window.iter().map(|taps| ((taps - 1) / 2, taps / 2)).collect();
    let op = Convolution { strides: vec![stride; 2], dilations: vec![1; 2], pads, groups, border: 0, sums: None };
    let x_type = TensorType::new(DType::F32, [1, x[0], x[1], x[2]]);
    let weights = TensorType::new(DType::F32, [window[0], window[1], x[2] / groups, outputs]);
    (op.into(), vec![x_type, weights])
}

pub fn product(batch: usize, m: usize, k: usize, n: usize, transpose_right: bool) -> (Op, Vec<TensorType>) {
    let right = if transpose_right { [batch, n, k] } else { [batch, k, n] };
    let types = vec![TensorType::new(DType::F32, [batch, m, k]), TensorType::new(DType::F32, right)];
    (Matmul { transpose_left: false, transpose_right, sums: None }.into(), types)
}

type Layer = (Op, Vec<TensorType>);

/// Layers whose sizes reach every kind of tile: long and short rows, wide, narrow and partial vectors, one pixel.
fn layers() -> Vec<Layer> {
    vec![
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
    ]
}

/// Graphs of layers with constant weights and an epilogue; of every other layer without either, too.
fn graphs_of(layers: &[Layer]) -> Vec<Graph> {
    let mut generator = Generator::new(3);
    let mut graphs = Vec::new();
    for (number, (op, types)) in layers.iter().enumerate() {
        for (constant, epilogue) in [(true, true), (false, false)].into_iter().take(1 + number % 2) {
            let name = format!("{op:?} {types:?} constant {constant} epilogue {epilogue}");
            graphs.push(graph_of(&name, op.clone(), types, constant, epilogue, &mut generator));
        }
    }
    graphs
}

#[test]
fn layers_of_every_tile_agree_with_the_evaluator() {
    check_by_turns(&graphs_of(&layers()), &targets(), 1e-4);
}

/// Windows at borders of every kind: none in a row, several tiles wide, wider than the window, of gaps between taps, of one, two
/// and three axes, with groups and without.
fn bordered_layers() -> Vec<Layer> {
    let layer =
        |x: &[usize], window: &[usize], outputs: usize, groups: usize, (stride, dilation), pads: &[(usize, usize)]| {
            let rank = window.len();
            let op = Convolution {
                strides: vec![stride; rank],
                dilations: vec![dilation; rank],
                pads: pads.to_vec(),
                groups,
                border: 0,
                sums: None,
            };
            let channels = x[rank + 1] / groups;
            let weights: Vec<usize> = window.iter().copied().chain([channels, outputs]).collect();
            (Op::from(op), vec![TensorType::new(DType::F32, x), TensorType::new(DType::F32, weights)])
        };
    vec![
        layer(&[2, 9, 11, 5], &[3, 3], 7, 1, (1, 1), &[(1, 1), (1, 1)]),
        layer(&[1, 6, 13, 4], &[5, 7], 8, 1, (1, 1), &[(2, 2), (3, 3)]),
        layer(&[1, 7, 5, 3], &[3, 3], 4, 1, (1, 1), &[(4, 0), (0, 5)]),
        layer(&[1, 10, 17, 2], &[3, 3], 6, 1, (1, 4), &[(4, 4), (4, 4)]),
        layer(&[1, 11, 9, 6], &[4, 3], 9, 3, (2, 1), &[(0, 3), (2, 1)]),
        layer(&[2, 23, 5], &[6], 11, 1, (3, 2), &[(7, 4)]),
        layer(&[1, 5, 4, 6, 3], &[3, 2, 3], 5, 1, (1, 1), &[(1, 1), (0, 1), (1, 2)]),
        layer(&[1, 3, 40, 1], &[3, 20], 4, 1, (1, 1), &[(1, 1), (10, 9)]),
        layer(&[2, 9, 11, 6], &[3, 3], 6, 6, (1, 1), &[(1, 1), (1, 1)]),
        layer(&[1, 8, 9, 4], &[3, 5], 8, 4, (2, 1), &[(2, 1), (4, 3)]),
        layer(&[1, 12, 14, 5], &[7, 7], 5, 5, (1, 1), &[(3, 3), (3, 3)]),
        layer(&[1, 4, 40, 3], &[2, 19], 3, 3, (1, 1), &[(1, 0), (9, 9)]),
        layer(&[1, 15, 8], &[3], 16, 8, (1, 3), &[(3, 6)]),
        layer(&[1, 4, 5, 6, 4], &[3, 3, 3], 4, 4, (1, 1), &[(1, 1), (1, 1), (1, 1)]),
    ]
}

#[test]
fn borders_of_every_kind_agree_with_the_evaluator() {
    for target in targets().into_iter().filter(|target| target.borders == Borders::Clipped) {
        for module in check(&graphs_of(&bordered_layers()), &target, 1e-4) {
            assert_eq!(module.plan.arena_bytes, 0, "{}", target.name);
        }
    }
}

#[test]
fn layers_agree_with_the_evaluator_on_an_emulated_machine_with_vectors() {
    // The machine's memory for programs holds some at a time.
    for layers in [layers(), bordered_layers()].concat().chunks(7) {
        check(&graphs_of(layers), &embedded("cortex-m55"), 1e-4);
    }
}

/// Where the reduction has one axis, and where it has two. Results are sums of 96 and 200 products.
#[test]
fn weights_of_the_next_block_are_fetched_where_there_are_many() {
    let mut generator = Generator::new(11);
    let mut layer = |size: usize, window: usize, channels: usize, outputs: usize| {
        let op = Convolution {
            strides: vec![1; 2],
            dilations: vec![1; 2],
            pads: vec![(0, 0); 2],
            groups: 1,
            border: 0,
            sums: None,
        };
        let types = [[1, size, size, channels], [window, window, channels, outputs]];
        let types = types.map(|shape| TensorType::new(DType::F32, shape));
        graph_of(&format!("{size} {window}"), op.into(), &types, true, true, &mut generator)
    };
    let (many, few) = (vec![layer(9, 1, 96, 128), layer(9, 5, 8, 168)], vec![layer(9, 1, 64, 64)]);
    let fetches = |graphs: &[Graph], target: &Target| -> Vec<bool> {
        let modules = check(graphs, target, 1e-4);
        modules.iter().map(|module| text_of(module).contains("mlc_fetch_ahead(wp")).collect()
    };
    for bytes in [16, 32, 64] {
        assert_eq!(fetches(&many, &Target::host(bytes)), [true, true], "{bytes}");
        assert_eq!(fetches(&few, &Target::host(bytes)), [false], "{bytes}");
    }
    for target in [Target::generic(), embedded("cortex-m4")] {
        assert_eq!(fetches(&many, &target), [false, false], "{}", target.name);
    }
}

/// Two steps of 3 x 3 sums are more than gcc has 16 registers for, whatever it could do; two of 4 x 3 aren't.
#[test]
fn sums_that_gcc_would_spill_are_added_to_one_step_at_a_time() {
    let mut generator = Generator::new(12);
    let mut product = |rows: usize| {
        let op = Matmul { transpose_left: false, transpose_right: false, sums: None };
        let types = [[rows, 64], [64, 24]].map(|shape| TensorType::new(DType::F32, shape));
        graph_of(&format!("{rows} rows"), op.into(), &types, true, false, &mut generator)
    };
    let graphs = [product(3), product(4)];
    let steps = |target: &Target| -> Vec<&str> {
        let of = |text: String| if text.contains("k += 2)") { "two" } else { "one" };
        check(&graphs, target, 1e-4).iter().map(|module| of(text_of(module))).collect()
    };
    assert_eq!(steps(&Target::host(32)), ["one", "two"]);
}
