//! Singles in Arm's vectors for microcontrollers, on an emulated Cortex-M55.

use mlc::pipeline::{self, CompileOptions};
use mlc::toolchain::Toolchain;
use mlc_ir::{DType, Generator, Graph, Tensor, TensorType, text};
use mlc_tests::firmware::{missing, target};
use mlc_tests::random::{Bounds, judge};

const MACHINE: &str = "cortex-m55";

/// A function of real numbers.
type Exact = fn(f64) -> f64;

fn available() -> bool {
    let missing = missing(MACHINE);
    if let Some(reason) = &missing {
        eprintln!("skipped: {reason}");
    }
    missing.is_none()
}

fn graph(input: &str, output: &str, body: &str) -> Graph {
    let text = format!("mlc 1\ngraph @g(%x: {input}) -> (\"y\": {output}) {{\n{body}\n  return %y\n}}\n");
    text::parse(&text, &()).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// What a graph computes there, and the C of its kernels.
fn outputs(graph: &Graph, inputs: &[Tensor]) -> (Vec<Tensor>, String) {
    let options = CompileOptions { target: target(MACHINE).unwrap(), ..CompileOptions::default() };
    let compiled = pipeline::compile(graph, &options, &mut |_, _| {}).unwrap();
    let program = Toolchain::emulated(MACHINE).unwrap().build(&compiled.bundle().unwrap());
    let outputs = program.and_then(|program| program.run(inputs)).unwrap_or_else(|fault| panic!("{fault}"));
    (outputs, compiled.module.sources.iter().map(|source| source.text.as_str()).collect())
}

fn vector(values: &[f64]) -> Tensor {
    Tensor::from_floats(TensorType::new(DType::F32, [values.len()]), values.to_vec())
}

/// Every order of numbers that are not whole, and of those that are none: bounds with both signs, some of them by bits.
#[test]
fn extremes_are_those_of_the_evaluator() {
    if !available() {
        return;
    }
    let special = [0.0, -0.0, 1.0, -1.0, 1e-30, -1e-30, 3e38, -3e38, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
    let mut x: Vec<f64> = special.to_vec();
    x.extend([5.999_999, 6.000_000_5, 6.0, -0.5, 0.5, 7.0, -7.0]);
    x.resize(20, 0.25);
    let mut x = vector(&x);
    // What is not a number with a set sign, as processors of hosts make it.
    let mut bytes = x.to_le_bytes();
    bytes[76..].copy_from_slice(&0xffc0_0001u32.to_le_bytes());
    x = Tensor::from_le_bytes(x.ty().clone(), &bytes);
    let mut steps = vec!["unary %x {function = relu}".to_owned()];
    for bound in ["6.0", "0.0", "-0.5", "0.5", "-1.0"] {
        for function in ["minimum", "maximum"] {
            steps.push(format!("binary %x, %b {{function = {function}}} // {bound}"));
        }
    }
    for step in &steps {
        let (step, bound) = step.split_once(" // ").unwrap_or((step, "0.0"));
        let body = format!("  %b = constant f32[] [{bound}]\n  %y = {step}");
        let graph = graph("f32[20]", "f32[20]", &body);
        let expected = mlc_ir::evaluate(&graph, std::slice::from_ref(&x)).unwrap();
        let (found, code) = outputs(&graph, std::slice::from_ref(&x));
        assert!(code.contains("f32x4"), "{step}: {code}");
        for (place, (x, y)) in found[0].to_floats().into_iter().zip(expected[0].to_floats()).enumerate() {
            assert!(x == y || x.is_nan() && y.is_nan(), "{step} {bound}: element {place} is {x:e}, not {y:e}");
        }
    }
}

/// Functions over all that they change with, beside the exact ones. Numbers below the normal ones are 0 there.
#[test]
fn functions_are_within_four_units_in_the_last_place() {
    if !available() {
        return;
    }
    let mut generator = Generator::new(7);
    let mut x: Vec<f64> = (0..3000).map(|_| f64::from((generator.unit() * 95.0) as f32)).collect();
    x.extend((0..2000).map(|_| f64::from((generator.unit() * 4.0) as f32)));
    x.extend((0..500).map(|_| f64::from(f32::from_bits(generator.bits() as u32))));
    x.extend([0.0, -0.0, 88.72, -87.3, -103.9, 89.1, 1e30, -1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    x.resize(x.len().next_multiple_of(4) + 4, 0.5);
    // Nothing that is not normal comes in.
    x.iter_mut().filter(|x| x.is_subnormal() || x.abs() < f64::from(f32::MIN_POSITIVE)).for_each(|x| *x = 0.0);
    let x = vector(&x);
    let exact: [(&str, Exact); 3] = [("exp", f64::exp), ("tanh", f64::tanh), ("erf", libm::erf)];
    for (function, exact) in exact {
        let ty = format!("f32[{}]", x.shape()[0]);
        let graph = graph(&ty, &ty, &format!("  %y = unary %x {{function = {function}}}"));
        let (found, code) = outputs(&graph, std::slice::from_ref(&x));
        assert!(code.contains(&format!("mlc_{function}_f32x4(")), "{code}");
        for (x, found) in x.to_floats().into_iter().zip(found[0].to_floats()) {
            let expected = exact(x);
            let rounded = f64::from(expected as f32);
            if rounded.is_nan() || rounded.is_infinite() {
                assert!(found == rounded || found.is_nan() && rounded.is_nan(), "{function}({x:e}) is {found:e}");
                continue;
            }
            let unit = f64::from(f32::EPSILON) * rounded.abs().max(f64::from(f32::MIN_POSITIVE));
            let is_flushed = rounded.abs() < 2.0 * f64::from(f32::MIN_POSITIVE) && found == 0.0;
            let is_near = (found - expected).abs() <= 4.0 * unit;
            assert!(is_near || is_flushed, "{function}({x:e}) is {found:e}, not {expected:e}");
        }
    }
}

/// What dynamic quantisation makes of singles, and of sums of products of unsigned bytes: quotients that are rounded, numbers of no use among
/// them, singles and bytes that are made of the sums. Outputs and terms that fill no vector.
#[test]
fn bytes_and_singles_beside_sums_have_the_bits_of_the_evaluator() {
    if !available() {
        return;
    }
    let mut generator = Generator::new(9);
    let mut list = |count: usize, most: usize| {
        let number = |generator: &mut Generator| generator.range(0, 2 * most) as i64 - most as i64;
        let numbers: Vec<String> = (0..count).map(|_| number(&mut generator).to_string()).collect();
        numbers.join(", ")
    };
    let kernel = |weights: &str, expression: &str, result: &str| {
        format!(
            "kernel %q, {weights}, %c, %s {{anchor = matmul {{transpose_left = false, transpose_right = false, sums = i32}}, \
             anchor_operands = 2, expression = {expression}}} : {result}"
        )
    };
    let text = format!(
        "mlc 1\ngraph @g(%x: f32[5, 37], %s: f32[], %z: u8[]) -> (\"q\": u8[5, 37], \"y\": f32[5, 18], \"r\": i8[5, 18]) {{\n  \
         %q = map %x, %s, %z {{expression = cast_u8(minimum(maximum(add(round_to_integer(divide(x0, x1)), cast_i32(x2)), 0_i32), \
         255_i32))}} : u8[5, 37]\n  \
         %w = constant i8[37, 18] [{}]\n  %v = constant i8[37, 18] [{}]\n  %c = constant i32[18] [{}]\n  \
         %y = {}\n  %r = {}\n  return %q, %y, %r\n}}\n",
        list(37 * 18, 127),
        list(37 * 18, 127),
        list(18, 9000),
        kernel("%w", "multiply(cast_f32(add(x0, x1)), x2)", "f32[5, 18]"),
        kernel(
            "%v",
            "cast_i8(minimum(maximum(round_to_integer(multiply(cast_f32(add(x0, x1)), x2)), -128_i32), 127_i32))",
            "i8[5, 18]"
        ),
    );
    let graph = text::parse(&text, &()).unwrap_or_else(|faults| panic!("{faults:?}"));
    let mut x: Vec<f64> = (0..5 * 37).map(|_| f64::from((generator.unit() * 6.0) as f32)).collect();
    x[..6].copy_from_slice(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3e38, -3e38, -0.0]);
    // Halves of a step.
    x[6..9].copy_from_slice(&[0.03125, 0.09375, -0.15625]);
    let scalar = |dtype| TensorType::new(dtype, []);
    let inputs = [
        Tensor::from_floats(TensorType::new(DType::F32, [5, 37]), x),
        Tensor::from_floats(scalar(DType::F32), vec![0.0625]),
        Tensor::from_integers(scalar(DType::U8), vec![131]),
    ];
    let expected = mlc_ir::evaluate(&graph, &inputs).unwrap();
    let (found, code) = outputs(&graph, &inputs);
    for used in ["mlc_window_u8(", "vdiv.f32 s3", "vcvtnq_s32_f32(", "vcvtq_f32_s32(", "vstrbq_u32("] {
        assert!(code.contains(used), "{used}: {code}");
    }
    assert_eq!(found, expected);
}

/// Operators whose own steps are in vectors there; rests of vectors, sums over the last axis and over others, elements that are apart.
const GRAPHS: [(&str, [&str; 2], &str); 6] = [
    (
        "rows",
        ["f32[3, 22]", "f32[3, 22]"],
        "  %n = normalize %x {axes = [1], epsilon = 1e-5, center = true}\n  %y = softmax %n {axis = 1, logarithm = false}",
    ),
    (
        "columns",
        ["f32[9, 13]", "f32[9, 13]"],
        "  %n = normalize %x {axes = [0], epsilon = 1e-5, center = true}\n  %y = softmax %n {axis = 0, logarithm = false}",
    ),
    ("logarithms", ["f32[5, 12]", "f32[5, 12]"], "  %y = softmax %x {axis = 1, logarithm = true}"),
    (
        "attention",
        ["f32[2, 11, 12]", "f32[2, 11, 11]"],
        "  %m = matmul %x, %x {transpose_left = false, transpose_right = true}\n  %y = softmax %m {axis = 2, logarithm = false}",
    ),
    (
        "gates",
        ["f32[1, 6, 6, 12]", "f32[1, 6, 6, 12]"],
        "  %w = constant f32[1, 1, 12, 12] random(seed = 1)
  %p = convolution %x, %w {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %s = unary %p {function = sigmoid}
  %t = unary %x {function = tanh}
  %y = binary %s, %t {function = multiply}",
    ),
    (
        "bounds",
        ["f32[1, 5, 5, 8]", "f32[1, 5, 5, 10]"],
        "  %w = constant f32[1, 1, 8, 10] random(seed = 1)
  %p = convolution %x, %w {strides = [1, 1], dilations = [1, 1], pads = [[0, 0], [0, 0]], groups = 1}
  %r = unary %p {function = relu6}
  %h = unary %r {function = hard_swish}
  %y = unary %h {function = gelu}",
    ),
];

#[test]
fn operators_compute_what_the_evaluator_says() {
    if !available() {
        return;
    }
    for (name, [input, output], body) in GRAPHS {
        let graph = graph(input, output, body);
        let inputs = [Generator::new(5).tensor(&graph.node(graph.inputs()[0]).results[0])];
        let bounds = Bounds::of(&graph, &inputs).unwrap();
        let (found, code) = outputs(&graph, &inputs);
        let compared = judge(&graph, &inputs, &bounds, &found).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        assert!(compared.agreeing > 0, "{name}: nothing is compared");
        assert!(code.contains("f32x4"), "{name} is not in vectors: {code}");
    }
}
