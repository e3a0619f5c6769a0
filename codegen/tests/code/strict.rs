//! Strict code: sums in the order of their elements, functions of the C library, every step rounded. Needs a C compiler.

use crate::common::targets;
use mlc_codegen::{Execution, FloatingPoint, Options, ScheduleOptions, Target, generate};
use mlc_ir::ops::{Convolution, Map, Matmul, Reduce, ReduceFunction, Softmax, Unary};
use mlc_ir::scalar::{BinaryFunction, Expression, UnaryFunction};
use mlc_ir::{Attribute, DType, Generator, Graph, Op, Tensor, TensorType};

fn strict_targets() -> Vec<Target> {
    targets().into_iter().map(|target| target.with_floating_point(FloatingPoint::Strict)).collect()
}

/// The bytes of the outputs of one operator on x and constant further operands.
fn outputs(op: impl Into<Op>, x: &Tensor, constants: &[&Tensor], target: &Target) -> Option<(Vec<u8>, String)> {
    let mut graph = Graph::new("strict");
    let mut operands = vec![graph.add_input("x", x.ty().clone())];
    operands.extend(constants.iter().map(|constant| graph.add_constant("w", Attribute::from_tensor(constant))));
    let node = graph.add(op.into(), &operands, "y").unwrap();
    graph.add_output("y", node.into());
    let module = generate(
        &graph,
        &Options {
            model_name: "m".into(),
            target: target.clone(),
            execution: Execution::default(),
            schedules: ScheduleOptions::default(),
        },
    )
    .unwrap();
    let text = module.sources[0].text.clone();
    crate::common::run(&[module], target, &x.to_le_bytes()).map(|bytes| (bytes, text))
}

fn random(shape: &[usize], seed: u64) -> Tensor {
    Generator::new(seed).tensor(&TensorType::new(DType::F32, shape))
}

/// Singles whose sum depends on the order.
fn singles(tensor: &Tensor) -> Vec<f32> {
    tensor.to_floats().into_iter().map(|value| value as f32).collect()
}

fn assert_bits(found: &[u8], expected: &[f32]) {
    let expected: Vec<u8> = expected.iter().flat_map(|value| value.to_le_bytes()).collect();
    assert!(found == expected, "{found:?}\n{expected:?}");
}

#[test]
fn sums_keep_the_order_of_their_elements() {
    let x = random(&[5, 77], 1);
    let sums: Vec<f32> = singles(&x).chunks(77).map(|row| row.iter().fold(0.0, |sum, value| sum + value)).collect();
    let means: Vec<f32> = sums.iter().map(|sum| sum / 77.0).collect();
    for target in strict_targets() {
        for (function, expected) in [(ReduceFunction::Sum, &sums), (ReduceFunction::Mean, &means)] {
            let reduce = Reduce { function, axes: vec![1], keep_axes: false };
            let Some((found, _)) = outputs(reduce, &x, &[], &target) else { return };
            assert_bits(&found, expected);
        }
    }
}

#[test]
fn products_are_added_in_order_without_multiply_adds() {
    let (x, w) = (random(&[3, 50], 2), random(&[50, 21], 3));
    let (a, b) = (singles(&x), singles(&w));
    let element = |row: usize, column: usize| {
        (0..50).fold(0.0f32, |sum, k| sum + std::hint::black_box(a[row * 50 + k] * b[k * 21 + column]))
    };
    let expected: Vec<f32> =
        (0..3).flat_map(|row| (0..21).map(move |column| (row, column))).map(|(r, c)| element(r, c)).collect();
    for target in strict_targets() {
        let matmul = Matmul { transpose_left: false, transpose_right: false, sums: None };
        let Some((found, _)) = outputs(matmul, &x, &[&w], &target) else { return };
        assert_bits(&found, &expected);
    }
}

#[test]
fn convolutions_add_taps_and_channels_in_order() {
    let (x, w) = (random(&[1, 9, 6], 4), random(&[3, 6, 10], 5));
    let (a, b) = (singles(&x), singles(&w));
    let mut expected = Vec::new();
    for (place, output) in (0..7).flat_map(|place| (0..10).map(move |output| (place, output))) {
        let steps = (0..3).flat_map(|tap| (0..6).map(move |channel| (tap, channel)));
        expected.push(steps.fold(0.0f32, |sum, (tap, channel)| {
            sum + std::hint::black_box(a[(place + tap) * 6 + channel] * b[(tap * 6 + channel) * 10 + output])
        }));
    }
    for target in strict_targets() {
        let convolution =
            Convolution { strides: vec![1], dilations: vec![1], pads: vec![(0, 0)], groups: 1, border: 0, sums: None };
        let Some((found, _)) = outputs(convolution, &x, &[&w], &target) else { return };
        assert_bits(&found, &expected);
    }
}

#[test]
fn transcendental_functions_are_those_of_the_library() {
    let x = random(&[64], 6);
    for target in strict_targets() {
        for (function, call) in [
            (UnaryFunction::Exp, "expf("),
            (UnaryFunction::Tanh, "tanhf("),
            (UnaryFunction::Exp2, "exp2f("),
            (UnaryFunction::Log10, "log10f("),
        ] {
            let Some((_, text)) = outputs(Unary { function }, &x, &[], &target) else { return };
            assert!(text.contains(call), "{} isn't {call}: {text}", function.name());
        }
        let Some((_, text)) = outputs(Softmax { axis: 0, logarithm: false }, &x, &[], &target) else { return };
        assert!(text.contains("expf("), "{text}");
    }
}

#[test]
fn every_step_in_half_precision_is_rounded() {
    let ty = TensorType::new(DType::F16, [64]);
    let x = Generator::new(7).tensor(&ty);
    let expression = Expression::build(|b| {
        let x = b.operand(0);
        let large = b.number(DType::F16, 100.0);
        let shifted = b.binary(BinaryFunction::Add, x, large);
        b.binary(BinaryFunction::Subtract, shifted, large)
    });
    let op = Op::from(Map { expression });
    let expected = op.evaluate(&[&x], std::slice::from_ref(&ty)).unwrap().remove(0);
    for target in strict_targets() {
        let Some((found, _)) = outputs(op.clone(), &x, &[], &target) else { return };
        assert_eq!(Tensor::from_le_bytes(ty.clone(), &found), expected);
    }
    for target in targets() {
        let Some((found, _)) = outputs(op.clone(), &x, &[], &target) else { return };
        let found = Tensor::from_le_bytes(ty.clone(), &found);
        assert_ne!(found, expected, "fast code rounds at the end");
        let close = |(x, y): (f64, f64)| (x - y).abs() < 1e-4;
        assert!(found.to_floats().into_iter().zip(x.to_floats()).all(close));
    }
}
