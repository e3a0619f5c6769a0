//! Numbers that pass through a narrow integer type and come back, and those that are rounded to integers, are in every bit what
//! the evaluator says, in vectors too.

use mlc_codegen::{Execution, Module, Options, ScheduleOptions, Target, generate};
use mlc_ir::ops::Map;
use mlc_ir::scalar::{BinaryFunction, Expression, ExpressionBuilder, ScalarId, UnaryFunction};
use mlc_ir::{DType, Generator, Graph, Literal, Tensor, TensorType, evaluate};

/// Numbers around the ends of ranges, around integers and halves of them, of every exponent, infinities and NaN.
fn inputs(dtype: DType) -> Tensor {
    let mut values = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, -1e-40, 1e-40, -0.3, 0.3];
    for centre in [0.0, 127.0, 128.0, 255.0, 256.0, 32767.0, 65535.0, 4_194_304.0, 8_388_608.0, 16_777_216.0, 2e9] {
        for distance in [-1.5, -1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5] {
            let value: f64 = centre + distance;
            values.extend([value, -value, value.next_up(), value.next_down()]);
            values.extend([f64::from((value as f32).next_up()), f64::from((-value as f32).next_down())]);
        }
    }
    let mut generator = Generator::new(4);
    values.extend((0..3000).map(|_| f64::from(f32::from_bits(generator.bits() as u32))));
    values.extend((0..1000).map(|_| generator.unit() * 300.0));
    values.resize(values.len().next_multiple_of(16), 0.5);
    Tensor::from_floats(TensorType::new(dtype, [values.len()]), values)
}

/// The kernels of one expression each, of the input.
fn module(expressions: &[Expression], input: &Tensor, target: &Target) -> (Module, Graph) {
    let mut graph = Graph::new("trips");
    let x = graph.add_input("x", input.ty().clone());
    for (number, expression) in expressions.iter().enumerate() {
        let node = graph.add(Map { expression: expression.clone() }, &[x], &format!("map{number}")).unwrap();
        graph.add_output(&format!("y{number}"), node.into());
    }
    let options = Options {
        model_name: "m".into(),
        target: target.clone(),
        execution: Execution::default(),
        schedules: ScheduleOptions::default(),
    };
    (generate(&graph, &options).unwrap(), graph)
}

/// Runs the expressions on every target and compares with the evaluator, bit by bit; gives the targets' texts.
fn check(expressions: &[Expression], dtype: DType) -> Vec<String> {
    let input = inputs(dtype);
    let mut texts = Vec::new();
    for target in crate::common::targets() {
        let (module, graph) = module(expressions, &input, &target);
        texts.push(module.sources.iter().map(|source| source.text.as_str()).collect());
        let Some(bytes) = crate::common::run(&[module], &target, &input.to_le_bytes()) else { continue };
        let expected = evaluate(&graph, std::slice::from_ref(&input)).unwrap();
        for ((expected, expression), found) in expected.iter().zip(expressions).zip(bytes.chunks(input.ty().bytes())) {
            let found = Tensor::from_le_bytes(expected.ty().clone(), found).to_floats();
            for ((x, e), f) in input.to_floats().into_iter().zip(expected.to_floats()).zip(found) {
                let same = e.to_bits() == f.to_bits() || (e.is_nan() && f.is_nan());
                assert!(same, "{expression} of {x:e} is {f:e}, not {e:e}, on {} {}", target.name, target.vector_bytes);
            }
        }
    }
    texts
}

type Step = fn(&mut ExpressionBuilder, DType, ScalarId) -> ScalarId;

/// What comes before a round trip.
const BEFORE: [Step; 7] = [
    |_, _, x| x,
    |b, _, x| b.unary(UnaryFunction::Round, x),
    |b, _, x| b.unary(UnaryFunction::Relu, x),
    |b, dtype, x| {
        // As a model quantises: the zero point is an integer.
        let rounded = b.unary(UnaryFunction::Round, x);
        let point = b.literal(Literal::integer(DType::I8, -3));
        let point = b.cast(dtype, point);
        let shifted = b.binary(BinaryFunction::Add, rounded, point);
        let (low, high) = (b.number(dtype, -128.0), b.number(dtype, 127.0));
        let bounded = b.binary(BinaryFunction::Maximum, shifted, low);
        b.binary(BinaryFunction::Minimum, bounded, high)
    },
    |b, dtype, x| {
        let (low, high) = (b.number(dtype, 0.5), b.number(dtype, 90.0));
        let bounded = b.binary(BinaryFunction::Maximum, x, low);
        b.binary(BinaryFunction::Minimum, bounded, high)
    },
    |b, dtype, x| {
        let negative_zero = b.number(dtype, -0.0);
        let ceiling = b.unary(UnaryFunction::Ceil, x);
        b.binary(BinaryFunction::Add, ceiling, negative_zero)
    },
    |b, dtype, x| {
        let narrow = b.cast(DType::I8, x);
        let back = b.cast(dtype, narrow);
        let tenth = b.number(dtype, 10.0);
        b.binary(BinaryFunction::Subtract, back, tenth)
    },
];

#[test]
fn a_round_trip_in_floats_gives_what_the_integers_give() {
    for (dtype, narrow) in [
        (DType::F32, &[DType::I8, DType::U8, DType::I16, DType::U16][..]),
        (DType::F64, &[DType::I8, DType::U16, DType::I32, DType::U32][..]),
    ] {
        let mut expressions = Vec::new();
        for through in narrow {
            for before in BEFORE {
                expressions.push(Expression::build(|b| {
                    let x = b.operand(0);
                    let x = before(b, dtype, x);
                    let narrow = b.cast(*through, x);
                    b.cast(dtype, narrow)
                }));
            }
        }
        for text in check(&expressions, dtype) {
            for through in narrow {
                assert!(!text.contains(&format!("mlc_cast_{dtype}_{through}")), "{dtype} by way of {through}:\n{text}");
            }
        }
    }
}

#[test]
fn wide_integers_and_other_types_stay() {
    let trip = |through: DType| {
        Expression::build(|b| {
            let x = b.operand(0);
            let narrow = b.cast(through, x);
            b.cast(DType::F32, narrow)
        })
    };
    let texts = check(&[trip(DType::I32), trip(DType::U64), trip(DType::Bool)], DType::F32);
    assert!(texts[0].contains("mlc_cast_f32_i32") && texts[0].contains("mlc_cast_f32_u64"), "{}", texts[0]);
}

#[test]
fn quantised_steps_are_vectors() {
    let expression = Expression::build(|b| {
        let x = b.operand(0);
        let scaled = BEFORE[3](b, DType::F32, x);
        let narrow = b.cast(DType::I8, scaled);
        let back = b.cast(DType::F32, narrow);
        let scale = b.number(DType::F32, 0.25);
        b.binary(BinaryFunction::Multiply, back, scale)
    });
    let texts = check(&[expression], DType::F32);
    assert!(texts[1].contains("mlc_round_f32x4") && !texts[1].contains("rintf"), "{}", texts[1]);
    // What is bounded already isn't bounded again, and what is rounded has no fraction to lose.
    assert_eq!(texts[0].matches("-128.0f").count(), 1, "{}", texts[0]);
    assert!(!texts[0].contains("truncf"), "{}", texts[0]);
}

#[test]
fn vectors_are_rounded_as_single_numbers_are() {
    for dtype in [DType::F32, DType::F64] {
        let functions = [UnaryFunction::Round, UnaryFunction::Truncate, UnaryFunction::Floor, UnaryFunction::Ceil];
        check(&functions.map(Expression::unary), dtype);
    }
}

#[test]
fn the_lesser_and_the_greater_keep_what_is_not_a_number() {
    let texts = [
        "relu(x0)",
        "minimum(relu(x0), 6_FLOAT)",
        "minimum(x0, -2.5_FLOAT)",
        "maximum(x0, -127.5_FLOAT)",
        "maximum(x0, 3_FLOAT)",
        "maximum(minimum(x0, 1e30_FLOAT), -1e30_FLOAT)",
        // NaN is in one operand, in the other one, or in both.
        "maximum(x0, sqrt(x0))",
        "minimum(sqrt(x0), x0)",
        "minimum(multiply(x0, x0), subtract(x0, x0))",
    ];
    for dtype in [DType::F32, DType::F64] {
        let parsed = |text: &&str| Expression::parse(&text.replace("FLOAT", dtype.name())).unwrap();
        let texts = check(&texts.iter().map(parsed).collect::<Vec<_>>(), dtype);
        for (target, text) in crate::common::targets().iter().zip(&texts) {
            // Those of a number are of two instructions at most, without a look at what isn't one.
            assert!(text.contains("_bound_"), "{} {dtype}:\n{text}", target.name);
            // Vectors of a portable target are in kernels of sums.
            let is_found = target.name == "host" && target.vector_bytes < 64;
            assert_eq!(text.contains("__builtin_ia32_max"), is_found, "{} {dtype}:\n{text}", target.name);
        }
    }
}

#[test]
fn code_for_other_machines_names_no_instruction_of_x86() {
    let expression = Expression::parse("maximum(minimum(relu(x0), 6_f32), sqrt(x0))").unwrap();
    for name in ["aarch64", "riscv64", "wasm32-simd128", "armv7-neon"] {
        let (module, _) =
            module(std::slice::from_ref(&expression), &inputs(DType::F32), &crate::common::computer(name));
        let text = crate::common::text_of(&module);
        assert!(text.contains("mlc_minimum_bound_") && !text.contains("ia32"), "{name}:\n{text}");
    }
}
