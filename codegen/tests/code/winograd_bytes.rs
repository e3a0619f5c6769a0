//! Winograd's convolutions of bytes, which are exact: against the evaluator bit for bit at every kind of edge, and with the largest sums
//! that there are. Needs a C compiler.

use crate::byte_dots::{machines, of_type};
use crate::common::{check_by, text_of};
use crate::integers::{constant, convolution, layer_with};
use mlc_codegen::{ByteDots, Execution, Module, Options, ScheduleOptions, Target, generate};
use mlc_ir::ops::{Convolution, Map};
use mlc_ir::scalar::{BinaryFunction, Expression};
use mlc_ir::{DType, Diagnostic, Graph, Literal, Objective, Op, TensorType};
use std::collections::BTreeMap;

/// An operator, and the shapes of its elements and weights.
type Layer = (Op, [Vec<usize>; 2]);

fn by(schedule: &str) -> ScheduleOptions {
    ScheduleOptions { forced: BTreeMap::from([("y".into(), schedule.into())]), ..ScheduleOptions::default() }
}

/// Machines to which products of two numbers of 16 bits are worth it.
fn of_words() -> Vec<Target> {
    machines().into_iter().filter(|target| target.byte_dots.has_quick_words()).collect()
}

/// A convolution without a border whose window moves by `strides`.
fn moving(strides: [usize; 2], x: [usize; 3], window: [usize; 2], outputs: usize) -> Layer {
    let (op, shapes) = convolution(x, window, outputs, 1, 1);
    match op {
        Op::Convolution(own) => {
            (Convolution { strides: strides.to_vec(), pads: vec![(0, 0); 2], ..own }.into(), shapes)
        }
        other => (other, shapes),
    }
}

/// Results of a tile, and layers that such tiles fit: last tiles that are moved back along either axis and along both, several turns with
/// fewer tiles in the last one, half a vector of channels behind whole ones, outputs that no vector divides, windows of one row or
/// column, windows that move by two along one axis or both.
fn layers() -> Vec<(usize, Layer)> {
    vec![
        (2, convolution([8, 8, 16], [3, 3], 16, 1, 1)),
        (2, convolution([7, 9, 24], [3, 3], 19, 1, 1)),
        (2, convolution([47, 45, 8], [3, 3], 33, 1, 1)),
        (2, moving([1, 1], [4, 4, 8], [3, 3], 1)),
        (2, moving([1, 1], [9, 10, 40], [1, 3], 20)),
        (2, moving([1, 1], [9, 7, 16], [3, 1], 9)),
        (3, moving([1, 1], [8, 9, 32], [2, 2], 17)),
        (3, moving([2, 2], [17, 16, 16], [3, 3], 24)),
        (3, moving([2, 2], [9, 16, 24], [3, 3], 33)),
        (3, moving([2, 1], [9, 8, 8], [3, 2], 16)),
        (3, moving([2, 2], [9, 15, 16], [1, 3], 10)),
    ]
}

#[test]
fn tiles_of_every_edge_agree_with_the_evaluator_in_every_bit() {
    for target in of_words() {
        for size in [2, 3] {
            let own = layers().into_iter().filter(|layer| layer.0 == size).enumerate();
            let graphs: Vec<Graph> = own
                .map(|(number, (_, (op, [x, weights])))| {
                    let (taken, stored) = [(DType::I8, DType::I8), (DType::U8, DType::U8)][number % 2];
                    let op = of_type(op, taken);
                    let (x, weights) = (TensorType::new(taken, &x), TensorType::new(DType::I8, &weights));
                    layer_with(&format!("{op:?} {x}"), op, &x, &weights, (-128, (stored, 3)))
                })
                .collect();
            let modules = check_by(&graphs, &target, &by(&format!("winograd:outputs={size}")), 0.0);
            assert!(modules.iter().all(is_transformed));
        }
    }
}

fn generated(graph: &Graph, target: &Target, schedules: ScheduleOptions) -> Result<Module, Vec<Diagnostic>> {
    let execution = Execution::default();
    generate(graph, &Options { model_name: "m".into(), target: target.clone(), execution, schedules })
}

fn is_transformed(module: &Module) -> bool {
    text_of(module).contains("transformed")
}

#[test]
fn layers_of_bytes_are_computed_so_where_that_is_faster() {
    let of_objective = |objective| Target { objective, ..Target::host(32).with_byte_dots(ByteDots::Pairs) };
    let is_so = |target: &Target, (op, [x, weights]): Layer| {
        let (x, weights) = (TensorType::new(DType::I8, &x), TensorType::new(DType::I8, &weights));
        let graph = layer_with("layer", op, &x, &weights, (-128, (DType::I8, -128)));
        is_transformed(&generated(&graph, target, ScheduleOptions::default()).unwrap())
    };
    let square = || convolution([16, 16, 32], [3, 3], 32, 1, 1);
    for (objective, expected) in
        [(Objective::Speed, true), (Objective::Balanced, true), (Objective::Size, false), (Objective::Ram, false)]
    {
        assert_eq!(is_so(&of_objective(objective), square()), expected, "{objective:?}");
    }
    let host = of_objective(Objective::Speed);
    assert!(!is_so(&host, convolution([16, 16, 32], [1, 1], 32, 1, 1)), "windows of one tap");
    assert!(!is_so(&host, convolution([16, 16, 20], [3, 3], 32, 1, 1)), "half of a vector's half of channels");
    for (bytes, dots, expected) in
        [(32, ByteDots::Quads, false), (16, ByteDots::SignedQuads, false), (16, ByteDots::SwappedQuads, true)]
    {
        assert_eq!(is_so(&Target::host(bytes).with_byte_dots(dots), square()), expected, "{dots:?}");
    }
}

/// A window over bytes that are all the least one, or at either end of their range, by weights that are all the least one.
fn of_extremes(name: &str, channels: usize, are_least: bool) -> Graph {
    let mut graph = Graph::new(name);
    let (op, [x, weights]) = moving([1, 1], [4, 6, channels], [3, 3], 8);
    let input = graph.add_input("x", TensorType::new(DType::I8, &x));
    let expression = Expression::build(|b| {
        let [most, bits, low, high] = [-1, 9, -128, 127].map(|number| b.literal(Literal::integer(DType::I32, number)));
        let x = b.operand(0);
        let mut value = b.cast(DType::I32, x);
        if are_least {
            value = b.binary(BinaryFunction::Minimum, value, most);
        }
        let value = b.binary(BinaryFunction::ShiftLeft, value, bits);
        let value = b.binary(BinaryFunction::Maximum, value, low);
        let value = b.binary(BinaryFunction::Minimum, value, high);
        b.cast(DType::I8, value)
    });
    let extremes = graph.add(Map { expression }, &[input], "extremes").unwrap();
    let values = vec![-128; weights.iter().product()];
    let weights = constant(&mut graph, "weights", DType::I8, &weights, values);
    let y = graph.add(op, &[extremes.into(), weights], "y").unwrap();
    graph.add_output("y", y.into());
    graph
}

#[test]
fn the_largest_sums_are_exact() {
    let graphs: Vec<Graph> = [(1816, true), (1816, false), (16, true), (16, false)]
        .map(|(channels, are_least)| of_extremes(&format!("{channels} {are_least}"), channels, are_least))
        .into();
    for target in of_words() {
        let modules = check_by(&graphs, &target, &by("winograd:outputs=2"), 0.0);
        assert!(modules.iter().all(is_transformed));
    }
}

#[test]
fn sums_that_32_bits_may_not_hold_four_times_are_computed_as_they_are() {
    let target = Target::host(32).with_byte_dots(ByteDots::Pairs);
    let graph = of_extremes("many", 1824, true);
    assert!(!is_transformed(&generated(&graph, &target, ScheduleOptions::default()).unwrap()));
    let refused = generated(&graph, &target, by("winograd:outputs=2")).unwrap_err();
    assert!(format!("{refused:?}").contains("there are word-pairs"), "{refused:?}");
}
