//! Layers of bytes in vectors, four products of a lane at once, or two of 16 bits, bit for bit: by the instructions for that, and by the C for
//! machines that have neither. Needs a C compiler.

use crate::common::{check, targets, text_of};
use crate::integers::{constant, convolution, layer, layer_with, layers, least, numbers, product};
use mlc_codegen::{ByteDots, Target};
use mlc_ir::ops::{Convolution, Kernel, Map, Reshape};
use mlc_ir::scalar::{BinaryFunction, Expression, ExpressionBuilder, Rounding, ScalarId};
use mlc_ir::{Attribute, DType, Generator, Graph, Literal, Op, Tensor, TensorType, Value};

/// Machines with such vectors: this one, whatever it has, as x86 and as Arm would compute; and, where this one can run their code, those
/// that only have pairs, and one whose C compiler knows neither.
pub fn machines() -> Vec<Target> {
    let mut machines: Vec<Target> =
        [(64, ByteDots::Quads), (32, ByteDots::Quads), (16, ByteDots::SignedQuads), (16, ByteDots::SwappedQuads)]
            .map(|(bytes, dots)| Target::host(bytes).with_byte_dots(dots))
            .into();
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let v3 = has!("avx2") && has!("fma") && has!("bmi2") && has!("f16c");
        let v4 = v3 && has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
        for (name, is_there) in [("x86-64-v2", has!("sse4.2")), ("x86-64-v3", v3), ("x86-64-v4", v4)] {
            match Target::computers().into_iter().find(|target| target.name == name) {
                Some(target) if is_there => machines.push(target),
                _ => eprintln!("skipped: this processor is no {name}"),
            }
        }
        let plain = Target::host(32).with_byte_dots(ByteDots::Pairs);
        machines.push(Target { c_flags: vec!["-march=x86-64".into()], ..plain });
    }
    machines
}

/// Whole vectors and rests of outputs, of channels, of pixels and of words.
fn wider_layers() -> Vec<(Op, [Vec<usize>; 2])> {
    vec![
        convolution([5, 9, 16], [3, 3], 16, 1, 1),
        convolution([6, 5, 64], [1, 1], 40, 1, 1),
        convolution([7, 7, 20], [3, 3], 33, 2, 1),
        convolution([9, 8, 5], [2, 5], 17, 2, 1),
        convolution([8, 12, 16], [3, 3], 16, 1, 16),
        convolution([9, 9, 24], [3, 3], 24, 2, 24),
        convolution([6, 7, 43], [5, 4], 43, 1, 43),
        convolution([4, 5, 64], [1, 1], 64, 1, 64),
        convolution([7, 6, 9], [2, 7], 9, 2, 9),
        product(1, 3, 8),
        product(1, 640, 40),
        product(7, 65, 33),
    ]
}

/// A layer whose border is a number of x's type.
pub fn of_type(op: Op, taken: DType) -> Op {
    match op {
        Op::Convolution(own) if taken == DType::U8 => Convolution { border: 9, ..own }.into(),
        other => other,
    }
}

#[test]
fn layers_in_vectors_agree_with_the_evaluator_in_every_bit() {
    let mut graphs = Vec::new();
    for (number, (op, [x, weights])) in wider_layers().into_iter().chain(layers()).enumerate() {
        let (taken, stored) = [(DType::I8, DType::I8), (DType::U8, DType::I8), (DType::I8, DType::U8)][number % 3];
        let op = of_type(op, taken);
        let (x, weights) = (TensorType::new(taken, &x), TensorType::new(DType::I8, &weights));
        let low = if number % 2 == 0 { least(stored) } else { 3 };
        // Products of the least number of all can't be added in pairs of 16 bits.
        let weight = if number % 5 == 0 { -128 } else { -127 };
        graphs.push(layer_with(&format!("{op:?} {x} {stored}"), op, &x, &weights, (weight, (stored, low))));
    }
    for (number, target) in machines().into_iter().enumerate() {
        // One machine computes all, others as many as have whole vectors and rests.
        let own = if number == 0 { graphs.len() } else { wider_layers().len() };
        check(&graphs[..own], &target, 0.0);
    }
}

#[test]
fn two_pixels_in_a_register_agree_with_the_evaluator_in_every_bit() {
    let of_two = Target::computers().into_iter().find(|target| target.wide_registers).unwrap();
    let of_two = Target { c_flags: Vec::new(), ..of_two };
    let mut graphs = Vec::new();
    for (number, (op, [x, weights])) in wider_layers().into_iter().chain(layers()).enumerate() {
        let taken = if number % 2 == 0 { DType::I8 } else { DType::U8 };
        let op = of_type(op, taken);
        let (x, weights) = (TensorType::new(taken, &x), TensorType::new(DType::I8, &weights));
        let name = format!("{op:?} {x}");
        graphs.push(layer_with(&name, op, &x, &weights, (-128, (DType::I8, least(DType::I8)))));
    }
    let modules = check(&graphs, &of_two, 0.0);
    let with_twins = modules.iter().filter(|module| text_of(module).contains("second_sum")).count();
    assert!(with_twins > wider_layers().len() / 2, "{with_twins} of {}", graphs.len());
}

/// A number limited to bytes.
fn limited(b: &mut ExpressionBuilder, value: ScalarId) -> ScalarId {
    let [low, high] = [-128, 127].map(|number| b.literal(Literal::integer(DType::I32, number)));
    let value = b.binary(BinaryFunction::Maximum, value, low);
    let value = b.binary(BinaryFunction::Minimum, value, high);
    b.cast(DType::I8, value)
}

/// A product whose sums get a bias of `size` at most, are rescaled by multipliers from `least` on and added to a residual.
/// The last of the results' zero points is the least number of their type, below which it doesn't matter what they are.
fn add_rescaled(graph: &mut Graph, rounding: Rounding, (size, least): (i64, i64), shifts: (i64, i64)) {
    let mut generator = Generator::new(size.unsigned_abs() + 3);
    let (rows, inner, outputs) = (3, 12, 24);
    let x = graph.inputs()[0];
    let residual = graph.inputs()[1];
    let (anchor, [_, weights]) = product(rows, inner, outputs);
    let values = numbers(&mut generator, inner * outputs, -128, 127);
    let mut operands: Vec<Value> = vec![x.into(), constant(graph, "weights", DType::I8, &weights, values)];
    for (name, (low, high)) in
        [("bias", (-size, size - 1)), ("multipliers", (least, i32::MAX.into())), ("shifts", shifts)]
    {
        let values = numbers(&mut generator, outputs, low, high);
        operands.push(constant(graph, name, DType::I32, &[outputs], values));
    }
    operands.push(residual.into());
    let expression = Expression::build(|b| {
        let [sums, bias, multiplier, shift, residual] = [0, 1, 2, 3, 4].map(|operand| b.operand(operand));
        let sums = b.binary(BinaryFunction::Add, sums, bias);
        let value = b.rescale(rounding, sums, multiplier, shift);
        let [zero, last] =
            [if shifts.0 % 2 == 0 { -128 } else { 5 }, -128].map(|zero| b.literal(Literal::integer(DType::I32, zero)));
        let value = b.binary(BinaryFunction::Add, value, zero);
        let value = limited(b, value);
        let values = [value, residual].map(|value| {
            let [bits, half, middle] = [20, 1 << 30, 31].map(|number| b.literal(Literal::integer(DType::I32, number)));
            let wide = b.cast(DType::I32, value);
            let shifted = b.binary(BinaryFunction::ShiftLeft, wide, bits);
            b.rescale(rounding, shifted, half, middle)
        });
        let sum = b.binary(BinaryFunction::Add, values[0], values[1]);
        let [multiplier, shift] = [1_518_500_250, 49].map(|number| b.literal(Literal::integer(DType::I32, number)));
        let value = b.rescale(rounding, sum, multiplier, shift);
        let value = b.binary(BinaryFunction::Add, value, last);
        limited(b, value)
    });
    let op = Kernel { anchor: Box::new(anchor), anchor_operands: 2, expression };
    let name = format!("y_{}_{size}_{least}_{}", rounding.name(), shifts.0).replace('-', "m");
    let y = graph.add(op, &operands, &name).unwrap();
    graph.add_output(&name, y.into());
}

/// A number of 32 bits that isn't a sum, rescaled by one of few extreme multipliers.
fn extremes(rounding: Rounding) -> Graph {
    let mut graph = Graph::new(format!("extremes {rounding:?}"));
    let list = [i32::MIN, i32::MIN + 1, -(1 << 30), -1, 0, 1, 1 << 30, i32::MAX - 1, i32::MAX].map(i64::from);
    let pairs: Vec<(i64, i64)> = list.iter().flat_map(|&x| list.iter().map(move |&y| (x, y))).collect();
    let count = pairs.len() * 32;
    let of = |values: Vec<i64>| values.into_iter().cycle().take(count).collect::<Vec<i64>>();
    let x = of(pairs.iter().map(|pair| pair.0).collect());
    let multipliers = of(pairs.iter().map(|pair| pair.1).collect());
    let shifts = (0..count).map(|place| 31 + (place / pairs.len()) as i64).collect();
    let moved = graph.add_input("moved", TensorType::new(DType::I8, [count]));
    let mut operands: Vec<Value> = vec![moved];
    for (name, values) in [("x", x), ("multipliers", multipliers), ("shifts", shifts)] {
        operands.push(constant(&mut graph, name, DType::I32, &[count], values));
    }
    let expression = Expression::build(|b| {
        let [moved, x, multiplier, shift] = [0, 1, 2, 3].map(|operand| b.operand(operand));
        let zero = b.literal(Literal::integer(DType::I32, 0));
        let moved = b.cast(DType::I32, moved);
        let nothing = b.binary(BinaryFunction::Multiply, moved, zero);
        let value = b.binary(BinaryFunction::Add, x, nothing);
        b.rescale(rounding, value, multiplier, shift)
    });
    let y = graph.add(Map { expression }, &operands, "y").unwrap();
    graph.add_output("y", y.into());
    graph
}

#[test]
fn every_rescaling_of_vectors_agrees_with_the_evaluator_in_every_bit() {
    let mut graph = Graph::new("rescaled");
    for (name, width) in [("x", 12), ("residual", 24)] {
        graph.add_input(name, TensorType::new(DType::I8, [3, width]));
    }
    for rounding in [Rounding::Twice, Rounding::Once] {
        let factors = i64::from(i32::MIN) + 1;
        for (size, least) in [(5000, 1 << 30), (1 << 29, 1 << 30), (1 << 31, 1 << 30), (1 << 31, factors)] {
            for shifts in [(31, 31), (32, 36), (33, 62), (20, 62)] {
                add_rescaled(&mut graph, rounding, (size, least), shifts);
            }
        }
    }
    let graphs = [graph, extremes(Rounding::Twice), extremes(Rounding::Once)];
    for (number, target) in machines().into_iter().enumerate() {
        let text = text_of(&check(&graphs, &target, 0.0)[0]);
        // What is left of an epilogue behind a line works on what that gives.
        let has_lines = number == 0 || target.name == "x86-64-v4";
        assert_eq!(text.contains(" = mlc_line_i32x16("), has_lines, "{}: {text}", target.name);
    }
}

/// Sums of products, and bytes beside them, that are scaled by singles, rounded and stored as bytes; and singles that are rounded.
fn rounded() -> Graph {
    let mut graph = Graph::new("rounded");
    let (rows, inner, outputs) = (3, 12, 24);
    let x = graph.add_input("x", TensorType::new(DType::I8, [rows, inner]));
    let residual = graph.add_input("residual", TensorType::new(DType::I8, [rows, outputs]));
    let mut generator = Generator::new(8);
    let (anchor, [_, weights]) = product(rows, inner, outputs);
    let values = numbers(&mut generator, inner * outputs, -128, 127);
    let weights = constant(&mut graph, "weights", DType::I8, &weights, values);
    let values = numbers(&mut generator, outputs, -5000, 5000);
    let bias = constant(&mut graph, "bias", DType::I32, &[outputs], values);
    let list = [0.5, 0.015625, 0.25, 0.0017, -0.125, 1e30, f64::INFINITY, f64::NAN, 1.0, 0.37, 1e-30, 257.0];
    let scales = singles(&mut graph, "scales", &list, outputs);
    let expression = "t0 = cast_i8(minimum(maximum(add(round_to_integer(multiply(cast_f32(add(x0, x1)), x2)), 3_i32), -128_i32), 127_i32)); \
        t1 = multiply(subtract(cast_f32(x3), 5.0_f32), 0.3_f32); t2 = maximum(multiply(cast_f32(t0), 0.25_f32), t1); \
        cast_i8(minimum(maximum(add(round_to_integer(relu(divide(t2, 0.7_f32))), -7_i32), -128_i32), 127_i32))";
    let expression = Expression::parse(expression).unwrap();
    let kernel = Kernel { anchor: Box::new(anchor), anchor_operands: 2, expression };
    let y = graph.add(kernel, &[x, weights, bias, scales, residual], "y").unwrap();
    graph.add_output("y", y.into());
    let limits = [4194302.5, 4194303.0, 4194303.5, 4194304.0, 8388609.0, 3e9, 1e38, f64::INFINITY, 4194301.75];
    let small = [0.0, 0.5, 1.5, 2.5, 0.49999997, 0.50000006, 3.75, 127.5, 1e-40];
    let list: Vec<f64> = limits.iter().chain(&small).flat_map(|&x| [x, -x]).chain([f64::NAN]).collect();
    let extremes = singles(&mut graph, "extremes", &list, rows * inner);
    let shape = [rows, inner];
    let extremes = graph.add(Reshape { shape: shape[..].into() }, &[extremes], "shaped").unwrap();
    // What depends on an input isn't computed at once.
    let expression =
        "round_to_integer(add(x0, multiply(cast_f32(minimum(maximum(cast_i32(x1), 0_i32), 0_i32)), 1.0_f32)))";
    let map = Map { expression: Expression::parse(expression).unwrap() };
    let y = graph.add(map, &[extremes.into(), x], "whole").unwrap();
    graph.add_output("whole", y.into());
    graph
}

/// A constant of so many singles, from a list that begins again behind its end.
fn singles(graph: &mut Graph, name: &str, list: &[f64], count: usize) -> Value {
    let values = list.iter().copied().cycle().take(count).collect();
    let tensor = Tensor::from_floats(TensorType::new(DType::F32, [count]), values);
    graph.add_constant(name, Attribute::from_tensor(&tensor))
}

#[test]
fn every_rounding_of_vectors_agrees_with_the_evaluator_in_every_bit() {
    let graph = rounded();
    for target in machines() {
        let module = check(std::slice::from_ref(&graph), &target, 0.0).remove(0);
        let text = text_of(&module);
        assert!(text.contains("mlc_round_to_integer_f32x"), "{}: {text}", target.name);
    }
}

#[test]
fn numbers_limited_beyond_a_byte_wrap_in_vectors_too() {
    let mut graphs = Vec::new();
    for (dtype, low, high) in [(DType::U8, -5, 255), (DType::U8, 3, 255), (DType::I8, -200, 127), (DType::I8, -9, 127)]
    {
        let mut graph = Graph::new("limited");
        let x = graph.add_input("x", TensorType::new(DType::I8, [67]));
        let expression =
            format!("cast_{dtype}(minimum(maximum(multiply(cast_i32(x0), 3_i32), {low}_i32), {high}_i32))");
        let map = Map { expression: Expression::parse(&expression).unwrap() };
        let y = graph.add(map, &[x], "y").unwrap();
        graph.add_output("y", y.into());
        graphs.push(graph);
    }
    for target in machines() {
        check(&graphs, &target, 0.0);
    }
}

/// Sums of two bytes of other scales, and bytes of another scale, rounded twice, once and as singles.
fn sums_of_bytes() -> Graph {
    let mut graph = Graph::new("sums");
    let shape = [3, 67];
    let x = graph.add_input("x", TensorType::new(DType::I8, shape));
    let y = graph.add_input("y", TensorType::new(DType::U8, shape));
    let rescaled = |x: &str, multiplier: u32, shift: u32| {
        format!("rescale_twice(shift_left({x}, 20_i32), {multiplier}_i32, {shift}_i32)")
    };
    let first = rescaled("subtract(cast_i32(x0), 4_i32)", 1_623_821_475, 33);
    let last = rescaled("cast_i32(x1)", 1 << 30, 31);
    let limited = |dtype: &str, value: &str, low: i32, high: i32| {
        format!("cast_{dtype}(minimum(maximum({value}, {low}_i32), {high}_i32))")
    };
    let sum = format!("add(rescale_twice(add({first}, {last}), 1098017566_i32, 48_i32), -128_i32)");
    let list = [
        ("sum", limited("i8", &sum, -128, 127), vec![x, y]),
        ("cut", limited("i8", &sum, -100, 90), vec![x, y]),
        ("bytes", limited("u8", &sum, 0, 255), vec![y, x]),
        ("again", limited("i8", "rescale_twice(cast_i32(x0), 1500000000_i32, 31_i32)", -128, 127), vec![x]),
        ("once", limited("u8", "rescale_once(cast_i32(x0), 1500000000_i32, 30_i32)", 0, 255), vec![y]),
        (
            "real",
            limited("i8", "round_to_integer(divide(multiply(cast_f32(x0), 0.3_f32), 0.7_f32))", -128, 127),
            vec![x],
        ),
    ];
    for (name, expression, operands) in list {
        let map = Map { expression: Expression::parse(&expression).unwrap() };
        let value = graph.add(map, &operands, name).unwrap();
        graph.add_output(name, value.into());
    }
    graph
}

#[test]
fn sums_of_bytes_are_sums_of_multiples_everywhere() {
    let graph = sums_of_bytes();
    for target in machines().into_iter().chain(targets()) {
        let module = check(std::slice::from_ref(&graph), &target, 0.0).remove(0);
        let text = text_of(&module);
        assert!(!text.contains("rescale_") && text.contains("multiply(cast_i32(x0)"), "{}: {text}", target.name);
    }
}

#[test]
fn machines_with_four_products_at_once_use_them() {
    let text = |(op, [x, weights]): (Op, [Vec<usize>; 2]), (bytes, low): (usize, i64), dots: ByteDots| {
        let (x, weights) = (TensorType::new(DType::I8, &x), TensorType::new(DType::I8, &weights));
        let graph = layer("t", op, &x, &weights, (DType::I8, low));
        let module = check(&[graph], &Target::host(bytes).with_byte_dots(dots), 0.0).remove(0);
        text_of(&module)
    };
    let square = || convolution([5, 5, 16], [3, 3], 16, 1, 1);
    let dense = text(square(), (64, -128), ByteDots::Quads);
    for part in
        ["mlc_quad_dot_i32x16(sum_0_0, ", "_mm512_dpbusd_epi32(", "mlc_line_i32x16(", "mlc_select_less_i32x16_f32x16("]
    {
        assert!(dense.contains(part), "{part}: {dense}");
    }
    // Without results of negative sums there is one line.
    let limited = text(square(), (64, 3), ByteDots::Quads);
    assert!(limited.contains("mlc_line_i32x16(") && !limited.contains("mlc_select_"), "{limited}");
    // Where vectors only round to the nearest number, sums of few products have lines, and most of many have none.
    let few = text(product(4, 3, 16), (32, -128), ByteDots::Quads);
    assert!(few.contains("mlc_nearest_line_i32x8(") && !few.contains("mlc_rescale_"), "{few}");
    let narrow = text(square(), (32, -128), ByteDots::Quads);
    assert!(narrow.contains("mlc_rescale_twice_near_i32x8(") && !narrow.contains("_line_"), "{narrow}");
    // Signed bytes are copied once for all outputs, as unsigned ones.
    assert!(dense.contains("^ mlc_splat_i8x64(-128)"), "{dense}");
    let depthwise = text(convolution([6, 5, 32], [3, 3], 32, 1, 32), (64, -128), ByteDots::Quads);
    assert!(depthwise.contains("mlc_quad_dot_i32x16(") && depthwise.contains("mlc_saturate_i8x16("), "{depthwise}");
    // Pairs are loaded as they are multiplied: what is copied once is wider, weights are bytes until then, and no sum waits for another's products.
    let pairs = text(convolution([5, 5, 12], [3, 3], 16, 1, 1), (32, -128), ByteDots::Pairs);
    for part in [
        "const int8_t *restrict packed,",
        "= __builtin_convertvector(*(const i8x16_unaligned *)(x + i), i16x16);",
        "_mm256_cvtepi8_epi16(",
        "= mlc_pair_dot_i32x8(sum_0_0, mlc_splat_i32x8(v), w);",
        "_mm256_madd_epi16(",
        "__asm__(\"\" : \"+v\"(y));",
    ] {
        assert!(pairs.contains(part), "{part}: {pairs}");
    }
    assert!(!pairs.contains("mlc_quad") && !pairs.contains("^ mlc_splat_i8"), "{pairs}");
    // Arm's multiply signed bytes, so that these are copied as they are.
    let signed = text(square(), (16, -128), ByteDots::SignedQuads);
    assert!(signed.contains("mlc_quad_dot_i32x4(") && signed.contains("vdotq_s32("), "{signed}");
    assert!(signed.contains("vqrdmulhq_s32(") && !signed.contains("^ mlc_splat_i8"), "{signed}");
    // Where products are added as 16 bits first, the least of all weights has them computed in words.
    let machine = Target::host(16).with_byte_dots(ByteDots::SwappedQuads);
    let [any, some] = [-128, -127].map(|least| {
        let (op, [x, weights]) = square();
        let (x, weights) = (TensorType::new(DType::I8, &x), TensorType::new(DType::I8, &weights));
        let graph = layer_with("t", op, &x, &weights, (least, (DType::I8, -128)));
        text_of(&check(&[graph], &machine, 0.0).remove(0))
    });
    assert!(!any.contains("mlc_quad_dot") && some.contains("vpadalq_s16("), "{any}{some}");
    let plain = text(square(), (64, -128), ByteDots::None);
    assert!(!plain.contains("mlc_quad") && !plain.contains("immintrin"), "{plain}");
}
