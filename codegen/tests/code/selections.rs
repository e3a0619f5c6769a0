//! Selections and truth values in kernels: masks in vectors, and both arms first where there are none.

use crate::common::{check, check_by_turns, targets, text_of};
use mlc_codegen::{Execution, Options, ScheduleOptions, Target, generate};
use mlc_ir::ops::{Kernel, Map, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction, Expression};
use mlc_ir::{Attribute, DType, Generator, Graph, TensorType, Value};

/// Types of numbers, of every size.
const NUMBERS: [DType; 9] =
    [DType::F32, DType::F64, DType::I8, DType::U8, DType::I16, DType::I32, DType::U32, DType::I64, DType::F16];

/// Expressions of a bool and two numbers.
const EXPRESSIONS: [&str; 8] = [
    "select(x0, x1, x2)",
    "less(x1, x2)",
    "select(and(x0, greater_equal(x1, x2)), x1, x2)",
    "or(not(x0), equal(x1, x2))",
    "select(x0, divide(x1, x2), x2)",
    "select(less(x0, not_equal(x1, x2)), x2, multiply(x1, x2))",
    "xor(x0, select(x0, less(x1, x2), greater(x1, x2)))",
    "select(select(x0, true, less(x1, x2)), x1, x2)",
];

/// Expressions of a bool and two floating-point numbers.
const OF_FLOATS: [&str; 2] =
    ["or(is_nan(x1), is_infinite(divide(x2, subtract(x1, x1))))", "select(x0, x1, divide(x2, subtract(x1, x1)))"];

/// One expression of a bool and two values; the bool may be a constant.
fn map(text: &str, bools: &[usize], dtype: DType, shape: &[usize], constant: bool) -> Graph {
    let mut graph = Graph::new(format!("{text} of {dtype} {shape:?}, bools {bools:?}"));
    let ty = TensorType::new(DType::Bool, bools);
    let condition: Value = if constant {
        graph.add_constant("c", Attribute::from_tensor(&Generator::new(5).tensor(&ty)))
    } else {
        graph.add_input("c", ty)
    };
    let x = graph.add_input("x", TensorType::new(dtype, shape));
    let y = graph.add_input("y", TensorType::new(dtype, shape));
    let expression = Expression::parse(text).unwrap();
    let node = graph.add(Map { expression }, &[condition, x, y], "map").unwrap();
    graph.add_output("z", node.into());
    graph
}

fn text(graph: &Graph, target: &Target) -> String {
    let options = Options {
        model_name: "m".into(),
        target: target.clone(),
        execution: Execution::default(),
        schedules: ScheduleOptions::default(),
    };
    text_of(&generate(graph, &options).unwrap())
}

#[test]
fn selections_and_truth_values_agree_with_the_evaluator() {
    let mut graphs = Vec::new();
    for (number, dtype) in NUMBERS.into_iter().enumerate() {
        let of_floats = if dtype.is_float() { &OF_FLOATS[..] } else { &[] };
        for (place, text) in EXPRESSIONS.iter().chain(of_floats).enumerate() {
            let columns = [80, 17, 9, 3][(number + place) % 4];
            let bools = [vec![3, columns], vec![3, 1], vec![columns], vec![1, 1]][(number + place / 2) % 4].clone();
            graphs.push(map(text, &bools, dtype, &[3, columns], (number + place) % 3 == 0));
        }
    }
    for columns in [3, 9, 17, 130] {
        for text in ["and(x0, xor(x1, x2))", "select(x0, x1, not(x2))", "greater_equal(x1, x2)"] {
            graphs.push(map(text, &[columns], DType::Bool, &[2, columns], false));
        }
    }
    check_by_turns(&graphs, &targets(), 1e-5);
}

#[test]
fn truth_values_are_computed_in_vectors() {
    for dtype in NUMBERS {
        for text_of in EXPRESSIONS {
            let graph = map(text_of, &[1, 640], dtype, &[2, 640], false);
            let code = text(&graph, &Target::host(32));
            assert!(!code.contains("i < 640; ++i"), "{}:\n{code}", graph.name);
        }
    }
    let code = text(&map("and(x0, xor(x1, x2))", &[64], DType::Bool, &[64], false), &Target::host(64));
    assert!(code.contains("*(u8x64_unaligned *)"), "{code}");
}

#[test]
fn comparisons_of_whole_vectors_choose_by_masks() {
    let target = Target::host(64);
    for function in
        BinaryFunction::ALL.iter().filter(|function| function.is_comparison()).map(|function| function.name())
    {
        // Roots of negative numbers are none, with which only `not_equal` holds; halves of numbers and truth values meet often.
        let of_singles = format!("select({function}(sqrt(x1), cast_f32(x0)), x1, x2)");
        let of_integers = format!("select({function}(divide(x1, 2_i32), cast_i32(x0)), x2, x1)");
        let graphs = [
            map(&of_singles, &[3, 80], DType::F32, &[3, 80], false),
            map(&of_integers, &[3, 80], DType::I32, &[3, 80], false),
        ];
        check(&graphs, &target, 0.0);
        for (graph, compared) in graphs.iter().zip(["f32x16", "i32x16"]) {
            let code = text(graph, &target);
            assert!(code.contains(&format!(" mlc_select_{function}_{compared}_{compared}(")), "{function}:\n{code}");
            assert!(code.contains("_mm512_mask_blend_"), "{function}:\n{code}");
        }
    }
}

#[test]
fn arms_that_load_or_divide_are_computed_first() {
    for (expression, arms) in [
        ("select(x0, x1, x2)", 2),
        ("select(x0, divide(x1, x2), x2)", 1),
        ("select(x0, add(x1, x1), 2.0_f32)", 0),
        ("add(x1, select(x0, multiply(x1, x2), 2.0_f32))", 1),
    ] {
        let code = text(&map(expression, &[64], DType::F32, &[64], false), &Target::generic());
        assert_eq!(code.matches("const float arm_").count(), arms, "{expression}\n{code}");
        let chosen = code.split_once(" ? ").unwrap().1.split(';').next().unwrap();
        assert!(!chosen.contains(['[', '/']), "{expression}\n{code}");
    }
}

#[test]
fn all_and_any_agree_with_the_evaluator() {
    let mut graphs = Vec::new();
    for function in [ReduceFunction::All, ReduceFunction::Any] {
        for (shape, axes) in
            [([3, 200, 1], vec![1]), ([2, 3, 70], vec![1]), ([5, 4, 33], vec![0, 2]), ([1, 9, 3], vec![1])]
        {
            let mut graph = Graph::new(format!("{function:?} of {shape:?} along {axes:?}"));
            let x = graph.add_input("x", TensorType::new(DType::F32, shape));
            let positive = Expression::parse("less(x0, 1.5_f32)").unwrap();
            let positive = graph.add(Map { expression: positive }, &[x], "positive").unwrap();
            let reduce = Reduce { function, axes, keep_axes: false };
            let node = graph.add(reduce.clone(), &[positive.into()], "reduced").unwrap();
            graph.add_output("y", node.into());
            let expression = Expression::parse("not(x0)").unwrap();
            let op = Kernel { anchor: Box::new(reduce.into()), anchor_operands: 1, expression };
            let opposite = graph.add(op, &[positive.into()], "opposite").unwrap();
            graph.add_output("z", opposite.into());
            graphs.push(graph);
        }
    }
    for target in targets() {
        check(&graphs, &target, 0.0);
    }
}
