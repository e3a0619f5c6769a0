//! Places of largest and smallest elements, of which several are equal or aren't numbers, against the evaluator.

use crate::common::{check, targets};
use mlc_codegen::Module;
use mlc_ir::ops::{ArgFunction, ArgReduce, Binary, Cast, Unary};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Graph, Literal, TensorType, Value};

/// What the elements are: few whole numbers, so that many are equal; those with some that aren't numbers; integers.
#[derive(Debug, Clone, Copy)]
enum Elements {
    Few,
    WithNone,
    Integers,
}

/// The place of the extreme elements along an axis.
fn places(function: ArgFunction, shape: &[usize], axis: usize, elements: Elements) -> Graph {
    let mut graph = Graph::new(format!("{function:?} {shape:?} {axis} {elements:?}"));
    let x = graph.add_input("x", TensorType::new(DType::F32, shape));
    let binary = |graph: &mut Graph, function, x: Value, y: Value| -> Value {
        graph.add(Binary { function }, &[x, y], "binary").unwrap().into()
    };
    // Of 0.25 an eighth of all are the whole number 0.
    let width = graph.add_constant("width", Literal::float(DType::F32, 0.25).to_attribute());
    let wide = binary(&mut graph, BinaryFunction::Divide, x, width);
    let mut y = graph.add(Unary { function: UnaryFunction::Floor }, &[wide], "whole").unwrap().into();
    match elements {
        Elements::Few => {}
        // The square divided by the number: 0 becomes none.
        Elements::WithNone => {
            let square = binary(&mut graph, BinaryFunction::Multiply, y, y);
            y = binary(&mut graph, BinaryFunction::Divide, square, y);
        }
        Elements::Integers => y = graph.add(Cast { dtype: DType::I32 }, &[y], "integers").unwrap().into(),
    }
    let place = ArgReduce { function, axis, keep_axis: false, last: false };
    let place = graph.add(place, &[y], "place").unwrap();
    graph.add_output("place", place.into());
    graph
}

fn has_lanes(module: &Module) -> bool {
    module.kernels.iter().any(|kernel| kernel.choice.taken().is_some_and(|taken| taken.schedule.kind == "lanes"))
}

#[test]
fn the_first_of_equal_elements_and_of_those_that_are_no_numbers_is_found() {
    // Along the axis: with and without a rest, longer than all lanes of a vector and not; beside it, with rests of all widths.
    let shapes: [(&[usize], usize); 7] = [
        (&[3, 70], 1),
        (&[128], 0),
        (&[2, 9], 1),
        (&[21, 47], 0),
        (&[2, 7, 16], 1),
        (&[5, 3, 2, 33], 0),
        (&[1917, 1], 0),
    ];
    let mut graphs = Vec::new();
    for (number, (shape, axis)) in shapes.into_iter().enumerate() {
        for elements in [Elements::Few, Elements::WithNone, Elements::Integers] {
            let function = if number % 2 == 0 { ArgFunction::Maximum } else { ArgFunction::Minimum };
            graphs.push(places(function, shape, axis, elements));
        }
    }
    for target in targets() {
        let modules = check(&graphs, &target, 0.0);
        let in_lanes = modules.iter().filter(|module| has_lanes(module)).count();
        // All but the shortest axis, on vectors of 32 bytes.
        match target.vector_bytes {
            32 => assert!(in_lanes >= 18, "{in_lanes} of {}", modules.len()),
            _ if target.name == "generic" => assert_eq!(in_lanes, 0),
            _ => {}
        }
    }
}
