//! Layers of bytes as quantised networks have them, bit for bit: on plain C, on vectors, and by the routines of machines with two
//! products of 16 bits at once, whose C for other machines runs here. Needs a C compiler.

use crate::common::{check, check_by_turns, embedded, text_of};
use mlc_codegen::Target;
use mlc_ir::ops::{Convolution, Kernel, Matmul};
use mlc_ir::scalar::{BinaryFunction, Expression, Rounding};
use mlc_ir::{Attribute, DType, Generator, Graph, Literal, Objective, Op, Tensor, TensorType, Value};

pub fn constant(graph: &mut Graph, name: &str, dtype: DType, shape: &[usize], values: Vec<i64>) -> Value {
    let tensor = Tensor::from_integers(TensorType::new(dtype, shape), values);
    graph.add_constant(name, Attribute::from_tensor(&tensor))
}

pub fn numbers(generator: &mut Generator, count: usize, low: i64, high: i64) -> Vec<i64> {
    (0..count).map(|_| low + generator.range(0, (high - low) as usize) as i64).collect()
}

/// A layer with constant weights, whose sums get a bias and are rescaled by factors of the outputs, stored as bytes from `low` on.
pub fn layer(name: &str, op: Op, x: &TensorType, weights: &TensorType, results: (DType, i64)) -> Graph {
    layer_with(name, op, x, weights, (i8::MIN.into(), results))
}

/// The same with weights from a number on.
pub fn layer_with(
    name: &str,
    op: Op,
    x: &TensorType,
    weights: &TensorType,
    (least_weight, (stored, low)): (i64, (DType, i64)),
) -> Graph {
    let mut generator = Generator::new(5);
    let mut graph = Graph::new(name);
    let input = graph.add_input("x", x.clone());
    let result = op.infer(&[x.clone(), weights.clone()]).unwrap().remove(0);
    let outputs = *result.shape.last().unwrap();
    let (least, most) = weights.dtype.integer_range(8);
    let values = numbers(&mut generator, weights.elements(), (least as i64).max(least_weight), (most as i64).min(127));
    let weights = constant(&mut graph, "weights", weights.dtype, &weights.shape, values);
    let list = numbers(&mut generator, outputs, -5000, 5000);
    let bias = constant(&mut graph, "bias", DType::I32, &[outputs], list);
    let list = numbers(&mut generator, outputs, 1 << 30, i32::MAX.into());
    let multipliers = constant(&mut graph, "multipliers", DType::I32, &[outputs], list);
    let list = numbers(&mut generator, outputs, 36, 41);
    let shifts = constant(&mut graph, "shifts", DType::I32, &[outputs], list);
    let high = stored.integer_range(8).1 as i64;
    let expression = Expression::build(|b| {
        let [sums, bias, multiplier, shift] = [0, 1, 2, 3].map(|operand| b.operand(operand));
        let sums = b.binary(BinaryFunction::Add, sums, bias);
        let value = b.rescale(Rounding::Twice, sums, multiplier, shift);
        let [zero, low, high] = [3, low, high].map(|number| b.literal(Literal::integer(DType::I32, number)));
        let value = b.binary(BinaryFunction::Add, value, zero);
        let value = b.binary(BinaryFunction::Maximum, value, low);
        let value = b.binary(BinaryFunction::Minimum, value, high);
        b.cast(stored, value)
    });
    let op = Kernel { anchor: Box::new(op), anchor_operands: 2, expression };
    let y = graph.add(op, &[input, weights, bias, multipliers, shifts], "y").unwrap();
    graph.add_output("y", y.into());
    graph
}

pub fn convolution(
    x: [usize; 3],
    window: [usize; 2],
    outputs: usize,
    stride: usize,
    groups: usize,
) -> (Op, [Vec<usize>; 2]) {
    let pads = window.iter().map(|taps| ((taps - 1) / 2, taps / 2)).collect();
    let (strides, dilations) = (vec![stride; 2], vec![1; 2]);
    let op = Convolution { strides, dilations, pads, groups, border: -7, sums: Some(DType::I32) };
    (op.into(), [vec![1, x[0], x[1], x[2]], vec![window[0], window[1], x[2] / groups, outputs]])
}

/// A row of depthwise windows over three rows of so many columns and channels, with a border left and right of them.
fn row([columns, channels]: [usize; 2], stride: usize, pads: (usize, usize)) -> (Op, [Vec<usize>; 2]) {
    let (op, shapes) = convolution([3, columns, channels], [3, 3], channels, stride, channels);
    match op {
        Op::Convolution(own) => (Convolution { pads: vec![(0, 0), pads], ..own }.into(), shapes),
        other => (other, shapes),
    }
}

pub fn product(rows: usize, inner: usize, outputs: usize) -> (Op, [Vec<usize>; 2]) {
    let op = Matmul { transpose_left: false, transpose_right: true, sums: Some(DType::I32) };
    (op.into(), [vec![rows, inner], vec![outputs, inner]])
}

/// Layers that every routine takes part in: whole tiles and rests of pixels, of outputs and of groups of four.
pub fn layers() -> Vec<(Op, [Vec<usize>; 2])> {
    vec![
        convolution([5, 5, 16], [1, 1], 16, 1, 1),
        convolution([4, 5, 6], [1, 1], 7, 1, 1),
        convolution([6, 5, 16], [3, 3], 18, 1, 1),
        convolution([9, 7, 3], [3, 3], 8, 2, 1),
        convolution([12, 6, 1], [10, 4], 16, 2, 1),
        convolution([6, 4, 4], [3, 3], 6, 1, 2),
        convolution([6, 5, 8], [3, 3], 8, 1, 8),
        convolution([9, 8, 5], [3, 3], 5, 2, 5),
        convolution([7, 13, 3], [5, 4], 3, 1, 3),
        convolution([6, 5, 4], [3, 3], 8, 1, 4),
        row([9, 19], 1, (1, 1)),
        row([8, 5], 2, (0, 1)),
        row([5, 7], 2, (0, 0)),
        product(1, 64, 12),
        product(1, 36, 10),
        product(1, 37, 128),
        product(19, 20, 9),
        convolution([7, 6, 19], [3, 3], 19, 1, 19),
        convolution([2, 9, 32], [3, 3], 32, 1, 32),
        convolution([8, 6, 7], [2, 4], 7, 2, 7),
        convolution([1, 8, 17], [3, 3], 17, 1, 17),
        convolution([5, 6, 2], [7, 9], 5, 1, 1),
    ]
}

#[test]
fn layers_of_bytes_agree_with_the_evaluator_in_every_bit() {
    let types = [(DType::I8, DType::I8, -128), (DType::U8, DType::I8, -128), (DType::I8, DType::U8, 3)];
    let mut graphs = Vec::new();
    for (number, (op, [x, weights])) in layers().into_iter().enumerate() {
        for (taken, stored, low) in types.into_iter().take(if number % 3 == 0 { 3 } else { 1 }) {
            let (op, taken) = match op.clone() {
                Op::Convolution(own) if taken == DType::U8 => (Op::from(Convolution { border: 9, ..own }), taken),
                other => (other, taken),
            };
            let (x, weights) = (TensorType::new(taken, &x), TensorType::new(DType::I8, &weights));
            graphs.push(layer(&format!("{op:?} {x} {stored}"), op, &x, &weights, (stored, low.max(least(stored)))));
        }
    }
    let boards = ["cortex-m4", "cortex-m55", "cortex-m0plus"].map(embedded);
    let targets = [Target::generic(), Target::host(32)].into_iter().chain(boards);
    check_by_turns(&graphs, &targets.collect::<Vec<_>>(), 0.0);
}

/// Windows whose borders can be in bands: pixels that tiles don't divide, rows that are left out, gaps between taps, several items.
fn windows() -> Vec<(Op, [Vec<usize>; 2])> {
    let window =
        |x: [usize; 4], taps: [usize; 2], strides: [usize; 2], dilations: [usize; 2], pads: [(usize, usize); 2]| {
            let (strides, dilations, pads) = (strides.to_vec(), dilations.to_vec(), pads.to_vec());
            let op = Convolution { strides, dilations, pads, groups: 1, border: -7, sums: Some(DType::I32) };
            (op.into(), [x.to_vec(), vec![taps[0], taps[1], x[3], 6]])
        };
    vec![
        convolution([6, 6, 16], [3, 3], 18, 1, 1),
        convolution([9, 8, 3], [3, 3], 8, 2, 1),
        convolution([12, 8, 1], [10, 4], 16, 2, 1),
        window([2, 5, 4, 5], [3, 3], [1, 1], [1, 1], [(1, 1), (1, 1)]),
        window([2, 9, 4, 3], [2, 1], [4, 1], [1, 1], [(1, 1), (1, 1)]),
        window([1, 7, 9, 2], [3, 2], [1, 1], [2, 3], [(3, 2), (0, 2)]),
        window([1, 1, 6, 3], [1, 3], [1, 1], [1, 1], [(0, 0), (1, 1)]),
        window([1, 6, 1, 4], [3, 1], [1, 1], [1, 1], [(2, 0), (1, 2)]),
    ]
}

/// A microcontroller whose programs have borders in bands.
fn banded(name: &str) -> Target {
    Target { bands: true, ..embedded(name) }
}

#[test]
fn borders_in_bands_agree_with_the_evaluator_in_every_bit() {
    for (machine, taken) in
        [("cortex-m4", DType::I8), ("cortex-m4", DType::U8), ("cortex-m55", DType::I8), ("cortex-m0plus", DType::I8)]
    {
        let graph = |(op, [x, weights]): (Op, [Vec<usize>; 2])| {
            let op = match op {
                Op::Convolution(own) if taken == DType::U8 => Op::from(Convolution { border: 9, ..own }),
                other => other,
            };
            let (x, weights) = (TensorType::new(taken, &x), TensorType::new(DType::I8, &weights));
            layer(&format!("{op:?} {x}"), op, &x, &weights, (DType::I8, -128))
        };
        let graphs: Vec<Graph> = windows().into_iter().map(graph).collect();
        for (module, graph) in check(&graphs, &banded(machine), 0.0).iter().zip(&graphs) {
            let text = text_of(module);
            // Pixels that one word holds must be in one row, and weights above the least byte.
            let is_banded = text.contains("band") && !text.contains("_padded");
            assert!(is_banded || machine == "cortex-m0plus", "{machine} {}: {text}", graph.name);
        }
    }
}

/// Convolutions of bytes over what is computed, each of the result of the one before it.
fn chain() -> Graph {
    let weights: Vec<i64> = (0..9 * 16 * 16).map(|element| element * 89 % 255 - 127).collect();
    let text = CHAIN.replace("WEIGHTS", &format!("{weights:?}"));
    mlc_ir::text::parse(&text, &()).unwrap()
}

const CHAIN: &str = "mlc 1
graph @chain(%x: i8[1, 8, 8, 16]) -> (\"y\": i8[1, 8, 8, 16]) {
  %w = constant i8[3, 3, 16, 16] WEIGHTS
  %a = map %x {expression = cast_i8(maximum(cast_i32(x0), -100_i32))} : i8[1, 8, 8, 16]
  %b = kernel %a, %w {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1, border = -7, \
sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(add(rescale_twice(x0, 1987654321_i32, 41_i32), 3_i32), \
-128_i32), 127_i32))} : i8[1, 8, 8, 16]
  %c = kernel %b, %w {anchor = convolution {strides = [1, 1], dilations = [1, 1], pads = [[1, 1], [1, 1]], groups = 1, border = 5, \
sums = i32}, anchor_operands = 2, expression = cast_i8(minimum(maximum(rescale_twice(x0, 1987654321_i32, 41_i32), -128_i32), \
127_i32))} : i8[1, 8, 8, 16]
  %y = map %c {expression = cast_i8(minimum(add(cast_i32(x0), 1_i32), 127_i32))} : i8[1, 8, 8, 16]
  return %y
}
";

#[test]
fn results_of_windows_over_bands_lie_over_their_operands() {
    let graph = chain();
    for machine in ["cortex-m4", "cortex-m55", "cortex-m0plus"] {
        let arena = |target: &Target| check(std::slice::from_ref(&graph), target, 0.0).remove(0).plan.arena_bytes;
        let fast = arena(&embedded(machine).with_objective(Objective::Speed));
        // One place of 1024 bytes, a band of 480, and what pixels read.
        let (banded, balanced) = (arena(&banded(machine)), arena(&embedded(machine)));
        assert!(fast >= 3200 && banded < 2600, "{machine}: {banded} of {fast}");
        assert!(balanced == banded || machine != "cortex-m4", "{machine}: {balanced}, though it takes next to no time");
    }
}

pub fn least(dtype: DType) -> i64 {
    dtype.integer_range(8).0 as i64
}

/// The C of a layer for a microcontroller, which agrees with the evaluator.
fn text_for(machine: &str, (op, [x, weights]): (Op, [Vec<usize>; 2])) -> String {
    let (x, weights) = (TensorType::new(DType::I8, &x), TensorType::new(DType::I8, &weights));
    let graph = layer("t", op, &x, &weights, (DType::I8, -128));
    let module = check(&[graph], &embedded(machine), 0.0).remove(0);
    text_of(&module)
}

#[test]
fn machines_with_vectors_of_bytes_use_them() {
    let text = |layer| text_for("cortex-m55", layer);
    let dense = text(convolution([5, 5, 16], [3, 3], 16, 1, 1));
    assert!(dense.contains("mlc_sums_rescaled_i8_2x4(") && dense.contains("mlc_window_i8("), "{dense}");
    let row = text(product(1, 64, 12));
    assert!(row.contains("mlc_sums_rescaled_i8_1x8(") && !row.contains("mlc_window_i8("), "{row}");
    let depthwise = text(convolution([6, 5, 8], [3, 3], 8, 1, 8));
    assert!(depthwise.contains("mlc_patches_i8_2x2(") && !depthwise.contains("_padded"), "{depthwise}");
    assert!(text(convolution([9, 8, 5], [3, 3], 5, 2, 5)).contains("mlc_patches_i8_by_2("));
}

#[test]
fn machines_with_two_products_at_once_use_them() {
    let text = |layer| text_for("cortex-m4", layer);
    let dense = text(convolution([5, 5, 16], [3, 3], 16, 1, 1));
    assert!(dense.contains("mlc_rescaled_dots_i8_3x2("), "{dense}");
    assert!(text(product(1, 64, 12)).contains("mlc_dots_i8_1x4("));
    let depthwise = text(convolution([6, 5, 8], [3, 3], 8, 1, 8));
    // No border but that of a channel is in memory.
    assert!(depthwise.contains("mlc_depthwise_3x3_1_i8(") && !depthwise.contains("_padded"), "{depthwise}");
    assert!(text(row([9, 19], 1, (1, 1))).contains("mlc_row_windows_1_i8_i8("));
}
