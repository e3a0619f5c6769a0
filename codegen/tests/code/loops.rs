//! Loops in generated C against the evaluator: how slices, carried and captured values are found, and loops inside of loops.

use crate::common::{check, targets};
use mlc_codegen::{PlannedBuffer, Target};
use mlc_ir::ops::*;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{Attribute, DType, Generator, Graph, Literal, Subgraph, TensorType, Value};

fn f32(shape: &[usize]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

fn apply(graph: &mut Graph, function: BinaryFunction, x: Value, y: Value) -> Value {
    graph.add(Binary { function }, &[x, y], "binary").unwrap().into()
}

fn way(axis: usize, reverse: bool) -> SliceAxis {
    SliceAxis { axis, reverse }
}

/// `h' = tanh((h + x) W)`, which is also stacked; W is a constant of the body.
fn cell(width: usize, random: &mut Generator) -> Graph {
    let mut body = Graph::new("cell");
    body.add_input("turn", TensorType::new(DType::I64, []));
    let h = body.add_input("h", f32(&[1, width]));
    let x = body.add_input("x", f32(&[1, width]));
    let w = body.add_constant("w", Attribute::from_tensor(&random.tensor(&f32(&[width, width]))));
    let sum = apply(&mut body, BinaryFunction::Add, h, x);
    let product =
        body.add(Matmul { transpose_left: false, transpose_right: false, sums: None }, &[sum, w], "product").unwrap();
    let next = body.add(Unary { function: UnaryFunction::Tanh }, &[product.into()], "next").unwrap();
    body.add_output("h", next.into());
    body.add_output("y", next.into());
    body
}

/// A loop over `cell` along an axis of a view, between other users of its operands and results.
fn scan(axis: usize, reverse: bool, trip_count: usize) -> Graph {
    let mut random = Generator::new(axis as u64 * 10 + trip_count as u64);
    let width = 5;
    let mut graph = Graph::new(format!("scan {axis} {reverse} {trip_count}"));
    let mut shape = vec![1, width];
    shape.insert(axis, trip_count);
    let whole: Vec<usize> = shape.iter().rev().map(|&extent| extent + 1).collect();
    let x = graph.add_input("x", f32(&whole));
    let flipped = graph.add(Transpose { permutation: vec![2, 1, 0] }, &[x], "flipped").unwrap();
    let slice = Slice { starts: vec![1, 0, 1], sizes: shape.clone(), steps: vec![1; 3] };
    let view = graph.add(slice, &[flipped.into()], "view").unwrap();
    let one = graph.add_input("h", f32(&[1, 1]));
    let h = graph.add(Broadcast { shape: vec![1, width].into() }, &[one], "wide").unwrap();
    let (scanned, stacked) = (vec![way(axis, reverse)], vec![way(axis, !reverse)]);
    let body = Subgraph::new(cell(width, &mut random));
    let op = Loop { body, trip_count: Some(trip_count), carried: 1, scanned, stacked, conditional: false };
    let node = graph.add(op, &[h.into(), view.into()], "scan").unwrap();
    let (last, all) = (Value { node, slot: 0 }, Value { node, slot: 1 });
    let joined = graph.add(Concat { axis: 2 }, &[all, view.into()], "joined").unwrap();
    graph.add_output("last", last);
    graph.add_output("joined", joined.into());
    graph
}

#[test]
fn slices_lie_along_every_axis() {
    let mut graphs = Vec::new();
    for axis in 0..3 {
        for (reverse, trip_count) in [(false, 4), (true, 3), (false, 1), (true, 0)] {
            graphs.push(scan(axis, reverse, trip_count));
        }
    }
    for target in targets() {
        check(&graphs, &target, 1e-4);
    }
}

/// An outer loop whose turns run an inner one over what the outer one captured; both carry two values, which they swap.
fn nested() -> Graph {
    let mut inner = Graph::new("inner");
    let turn = inner.add_input("turn", TensorType::new(DType::I64, []));
    let a = inner.add_input("a", f32(&[3]));
    let b = inner.add_input("b", f32(&[3]));
    let scale = inner.add_input("scale", f32(&[]));
    let number = inner.add(Cast { dtype: DType::F32 }, &[turn], "number").unwrap();
    let scaled = apply(&mut inner, BinaryFunction::Multiply, a, scale);
    let next = apply(&mut inner, BinaryFunction::Add, scaled, number.into());
    inner.add_output("a", b);
    inner.add_output("b", next);
    let mut outer = Graph::new("outer");
    outer.add_input("turn", TensorType::new(DType::I64, []));
    let a = outer.add_input("a", f32(&[3]));
    let b = outer.add_input("b", f32(&[3]));
    let scale = outer.add_input("scale", f32(&[]));
    let op = Loop {
        body: Subgraph::new(inner),
        trip_count: Some(3),
        carried: 2,
        scanned: vec![],
        stacked: vec![],
        conditional: false,
    };
    let node = outer.add(op.clone(), &[b, a, scale], "inner loop").unwrap();
    outer.add_output("a", Value { node, slot: 1 });
    outer.add_output("b", Value { node, slot: 0 });
    outer.add_output("seen", b);
    let mut graph = Graph::new("nested");
    let a = graph.add_input("a", f32(&[3]));
    let scale = graph.add_constant("scale", Literal::float(DType::F32, 0.5).to_attribute());
    let op = Loop { body: Subgraph::new(outer), trip_count: Some(4), stacked: vec![way(1, false)], ..op };
    let node = graph.add(op, &[a, a, scale], "outer loop").unwrap();
    for slot in 0..3 {
        graph.add_output(&format!("y{slot}"), Value { node, slot });
    }
    graph
}

/// Doubles until the sum exceeds a limit, `from` on or never, at most `trip_count` times if that is given.
fn conditional(limit: f64, going: bool, trip_count: Option<usize>) -> Graph {
    let mut body = Graph::new("doubling");
    body.add_input("turn", TensorType::new(DType::I64, []));
    body.add_input("go", TensorType::new(DType::Bool, [1]));
    let x = body.add_input("x", f32(&[4]));
    let untouched = body.add_input("k", f32(&[2]));
    let double = apply(&mut body, BinaryFunction::Add, x, x);
    let squares = apply(&mut body, BinaryFunction::Multiply, double, double);
    let sum = Reduce { function: ReduceFunction::Sum, axes: vec![0], keep_axes: true };
    let sum = body.add(sum, &[squares], "sum").unwrap();
    let limit = body.add_constant("limit", Literal::float(DType::F32, limit).to_attribute());
    let go = apply(&mut body, BinaryFunction::Less, sum.into(), limit);
    body.add_output("go", go);
    body.add_output("x", double);
    body.add_output("k", untouched);
    let mut graph = Graph::new(format!("conditional {going} {trip_count:?}"));
    let x = graph.add_input("x", f32(&[4]));
    let k = graph.add_input("k", f32(&[2]));
    let start = Attribute::from_tensor(&mlc_ir::Tensor::splat(
        TensorType::new(DType::Bool, [1]),
        Literal::integer(DType::Bool, i64::from(going)),
    ));
    let start = graph.add_constant("start", start);
    let op =
        Loop { body: Subgraph::new(body), trip_count, carried: 3, scanned: vec![], stacked: vec![], conditional: true };
    let node = graph.add(op, &[start, x, k], "while").unwrap();
    for slot in 0..3 {
        graph.add_output(&format!("y{slot}"), Value { node, slot });
    }
    graph
}

#[test]
fn loops_nest_and_end_early() {
    let mut graphs = vec![nested()];
    for (limit, going, trip_count) in
        [(1e4, true, 50), (1e4, false, 50), (1e30, true, 7), (1e30, true, 8), (5e2, true, 8), (0.0, true, 0)]
    {
        graphs.push(conditional(limit, going, Some(trip_count)));
    }
    for (limit, going) in [(1e4, true), (4e4, true), (1e30, true), (0.0, true), (0.0, false)] {
        graphs.push(conditional(limit, going, None));
    }
    for target in targets() {
        let modules = check(&graphs, &target, 1e-5);
        let operators: Vec<&str> = modules[0].kernels.iter().map(|kernel| &*kernel.operator).collect();
        assert_eq!(
            operators,
            ["loop", "loop", "map", "map", "map", "copy", "copy", "copy"],
            "kernels follow their loop"
        );
        let inside: Vec<usize> = modules[0].kernels.iter().map(|kernel| kernel.inside).collect();
        assert_eq!(inside, [6, 4, 0, 0, 0, 0, 0, 0], "the last one moves the stacked axis");
        assert_eq!(modules[0].outermost_kernels().count(), 2);
    }
}

#[test]
fn equal_constants_of_bodies_are_one() {
    let mut random = Generator::new(3);
    let body = cell(4, &mut random);
    let mut graph = Graph::new("twice");
    let x = graph.add_input("x", f32(&[6, 1, 4]));
    let h = graph.add_input("h", f32(&[1, 4]));
    let op = |reverse| Loop {
        body: Subgraph::new(body.clone()),
        trip_count: Some(6),
        carried: 1,
        scanned: vec![way(0, reverse)],
        stacked: vec![way(0, reverse)],
        conditional: false,
    };
    for reverse in [false, true] {
        let node = graph.add(op(reverse), &[h, x], "scan").unwrap();
        graph.add_output(&format!("y{reverse}"), Value { node, slot: 1 });
    }
    for target in targets() {
        let modules = check(std::slice::from_ref(&graph), &target, 1e-4);
        assert_eq!(modules[0].constants.len(), 1);
    }
}

/// What isn't computed element by element, so that it can't overwrite its operand: the elements of a slice backwards, mapped.
fn backwards(graph: &mut Graph, x: Value, count: usize) -> Value {
    let slice = Slice { starts: vec![count - 1], sizes: vec![count], steps: vec![-1] };
    let x = graph.add(slice, &[x], "reversed").unwrap();
    graph.add(Unary { function: UnaryFunction::Tanh }, &[x.into()], "map").unwrap().into()
}

/// A value of four times the width, then a loop whose turns have two values of the width beside those that they hand on and capture.
fn around(trip_count: usize, width: usize) -> Graph {
    let mut body = Graph::new("body");
    body.add_input("turn", TensorType::new(DType::I64, []));
    let h = body.add_input("h", f32(&[width]));
    let shift = body.add_input("shift", f32(&[width]));
    let a = backwards(&mut body, h, width);
    let b = backwards(&mut body, a, width);
    let b = apply(&mut body, BinaryFunction::Add, b, shift);
    let c = backwards(&mut body, b, width);
    body.add_output("h", c);
    let mut graph = Graph::new(format!("around {trip_count}"));
    let x = graph.add_input("x", f32(&[4 * width]));
    let dead = backwards(&mut graph, x, 4 * width);
    let first = backwards(&mut graph, dead, width);
    let shift = backwards(&mut graph, first, width);
    let op = Loop {
        body: Subgraph::new(body),
        trip_count: Some(trip_count),
        carried: 1,
        scanned: vec![],
        stacked: vec![],
        conditional: false,
    };
    let node = graph.add(op, &[first, shift], "repeat").unwrap();
    let last = backwards(&mut graph, node.into(), width);
    graph.add_output("y", last);
    graph
}

#[test]
fn values_inside_of_a_loop_are_local_to_it_and_lie_where_dead_ones_were() {
    let width = 64;
    let trip_counts = [0, 1, 2, 3, 4, 9];
    let modules = check(&trip_counts.map(|trip_count| around(trip_count, width)), &Target::generic(), 1e-5);
    for (module, trip_count) in modules.iter().zip(trip_counts) {
        let (plan, kernels) = (&module.plan, &module.kernels);
        let place = kernels.iter().position(|kernel| kernel.operator == "loop").unwrap();
        let turns = place + 1..=place + kernels[place].inside;
        let (inside, outside): (Vec<_>, Vec<_>) = plan.buffers.iter().partition(|buffer| turns.contains(&buffer.first));
        assert!(inside.len() == 2 && inside.iter().all(|buffer| turns.contains(&buffer.last)), "{plan:?}");
        let meets = |left: &PlannedBuffer, right: &PlannedBuffer| {
            left.offset < right.offset + right.bytes && right.offset < left.offset + left.bytes
        };
        let dead = outside.iter().find(|buffer| buffer.last < place && buffer.bytes == 16 * width).unwrap();
        assert!(inside.iter().all(|local| meets(local, dead)), "{plan:?}");
        // What a loop reads or hands on lives in all of its turns: the captured value, and two places, if there is a turn.
        let through = outside.iter().filter(|buffer| buffer.first < *turns.start() && buffer.last >= *turns.end());
        assert_eq!(through.count(), if trip_count == 0 { 2 } else { 3 }, "{trip_count} turns: {plan:?}");
        for (number, left) in plan.buffers.iter().enumerate() {
            for right in &plan.buffers[..number] {
                let together = left.first <= right.last && right.first <= left.last;
                assert!(!together || !meets(left, right), "{left:?} {right:?}");
            }
        }
        assert_eq!((plan.arena_bytes, plan.liveness_bound_bytes), (20 * width, 20 * width), "{trip_count} turns");
    }
}

#[test]
fn what_turns_hand_on_may_lie_where_its_first_value_was_unless_that_is_needed() {
    // The first value is read after the loop, by its body too, or carried twice.
    let mut graphs = Vec::new();
    for (kind, trip_count) in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 2), (2, 3), (3, 4), (3, 5)] {
        let mut body = Graph::new("body");
        body.add_input("turn", TensorType::new(DType::I64, []));
        let h = body.add_input("h", f32(&[6]));
        let other = body.add_input("other", f32(&[6]));
        let sum = apply(&mut body, BinaryFunction::Add, h, other);
        body.add_output("h", sum);
        let mut graph = Graph::new(format!("first value {kind} {trip_count}"));
        let x = graph.add_input("x", f32(&[6]));
        let first = apply(&mut graph, BinaryFunction::Multiply, x, x);
        let mut operands = vec![first, if kind == 1 { first } else { x }];
        let mut carried = 1;
        if kind == 2 {
            carried = 2;
            body.add_output("other", h);
            operands[1] = first;
        }
        let op = Loop {
            body: Subgraph::new(body),
            trip_count: Some(trip_count),
            carried,
            scanned: vec![],
            stacked: vec![],
            conditional: false,
        };
        let node = graph.add(op, &operands, "repeat").unwrap();
        let y = apply(&mut graph, BinaryFunction::Add, node.into(), if kind == 0 { first } else { x });
        graph.add_output("y", y);
        graphs.push(graph);
    }
    for target in targets() {
        let modules = check(&graphs, &target, 1e-5);
        let buffers = |number: usize| modules[number].plan.buffers.len();
        assert!(buffers(6) < buffers(0) && buffers(7) < buffers(1), "{:?}", modules[6].plan);
    }
}

/// Turns that hand on `h`, of `width` elements, and stack its sum before. What comes of it is made element by element where `kind` is 0;
/// backwards (1); with `h` read behind it (2); of another value that is handed on, which comes of `h` (3).
fn rewriting(kind: usize, trip_count: usize, width: usize) -> Graph {
    let mut body = Graph::new("body");
    body.add_input("turn", TensorType::new(DType::I64, []));
    let h = body.add_input("h", f32(&[width]));
    let other = body.add_input("other", f32(&[width]));
    let sum = Reduce { function: ReduceFunction::Sum, axes: vec![0], keep_axes: false };
    let sum = body.add(sum, &[h], "sum").unwrap();
    let next = match kind {
        1 => backwards(&mut body, h, width),
        3 => apply(&mut body, BinaryFunction::Multiply, other, other),
        _ => apply(&mut body, BinaryFunction::Add, h, other),
    };
    body.add_output("h", next);
    match kind {
        2 => {
            let both = apply(&mut body, BinaryFunction::Multiply, h, next);
            body.add_output("both", both);
        }
        3 => {
            let other = apply(&mut body, BinaryFunction::Add, h, h);
            body.add_output("other", other);
        }
        _ => {}
    }
    body.add_output("sum", sum.into());
    let mut graph = Graph::new(format!("rewriting {kind} {trip_count}"));
    let x = graph.add_input("x", f32(&[width]));
    let first = backwards(&mut graph, x, width);
    let (carried, stacked) = match kind {
        2 => (1, vec![way(0, false); 2]),
        3 => (2, vec![way(0, false)]),
        _ => (1, vec![way(0, false)]),
    };
    let results = carried + stacked.len();
    let (scanned, body) = (vec![], Subgraph::new(body));
    let op = Loop { body, trip_count: Some(trip_count), carried, scanned, stacked, conditional: false };
    let node = graph.add(op, &[first, x], "repeat").unwrap();
    let last = backwards(&mut graph, node.into(), width);
    graph.add_output("y", last);
    for slot in 1..results {
        graph.add_output(&format!("y{slot}"), Value { node, slot: slot as u32 });
    }
    graph
}

#[test]
fn values_that_turns_write_where_they_have_read_them_have_one_place() {
    let width = 64;
    let cases = [(0, 1), (0, 2), (0, 5), (1, 5), (2, 5), (3, 5)];
    let graphs = cases.map(|(kind, trip_count)| rewriting(kind, trip_count, width));
    for target in targets() {
        let modules = check(&graphs, &target, 1e-4);
        let places = modules.iter().map(|module| module.plan.arena_bytes / (4 * width));
        // The last one's other value begins with the caller and ends there, and has a place to alternate with.
        assert_eq!(places.collect::<Vec<_>>(), [1, 1, 1, 2, 2, 3], "{}", target.name);
    }
}
