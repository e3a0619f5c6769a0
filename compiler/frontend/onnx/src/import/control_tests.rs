//! What becomes of graphs that operators hold: what leaves no trace, what becomes a loop, what is refused.

use super::tests::{import_with, input, model, node, output};
use super::*;
use crate::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};
use mlc_ir::{Code, Graph, Op, Tensor, TensorType, evaluate, verify};

fn held(name: &str, graph: GraphProto) -> AttributeProto {
    AttributeProto { name: name.into(), g: Some(graph), r#type: 5, ..AttributeProto::default() }
}

fn with(mut node: NodeProto, attributes: Vec<AttributeProto>) -> NodeProto {
    node.attribute.extend(attributes);
    node
}

/// A node that gives a number, or with `dtype` 9 a bool.
fn number(name: &str, dtype: i32, value: i64) -> NodeProto {
    let bytes = if dtype == 9 { vec![u8::from(value != 0)] } else { value.to_le_bytes().to_vec() };
    let tensor = TensorProto { data_type: dtype, raw_data: Some(bytes.into()), ..TensorProto::default() };
    let attribute = AttributeProto { name: "value".into(), t: Some(tensor), r#type: 4, ..AttributeProto::default() };
    with(node("Constant", &[], &[name]), vec![attribute])
}

fn graph(inputs: &[&str], node: Vec<NodeProto>, outputs: &[&str]) -> GraphProto {
    let input = inputs.iter().map(|name| output(name)).collect();
    GraphProto { node, input, output: outputs.iter().map(|name| output(name)).collect(), ..GraphProto::default() }
}

fn imported(nodes: Vec<NodeProto>, outputs: &[&str]) -> Graph {
    let model = model(vec![input("x", &["2", "2"]), input("w", &["2", "2"])], nodes, outputs);
    let graph = import_with(&model, &ImportOptions::default()).unwrap().graph;
    verify(&graph).unwrap();
    graph
}

fn errors(nodes: Vec<NodeProto>, outputs: &[&str]) -> Vec<String> {
    let model = model(vec![input("x", &["2", "2"]), input("w", &["2", "3"])], nodes, outputs);
    let errors = import_with(&model, &ImportOptions::default()).unwrap_err();
    errors.iter().map(ToString::to_string).collect()
}

fn loops(graph: &Graph) -> usize {
    graph.node_ids().filter(|&id| matches!(graph.node(id).op, Op::Loop(_))).count()
}

fn outputs(graph: &Graph) -> Vec<Vec<f64>> {
    let square = |values: [f64; 4]| Tensor::from_floats(TensorType::new(mlc_ir::DType::F32, [2, 2]), values.to_vec());
    let inputs = [square([1.0, 2.0, 3.0, 4.0]), square([0.0, 1.0, 1.0, 0.0])];
    evaluate(graph, &inputs).unwrap().iter().map(Tensor::to_floats).collect()
}

/// `h' = h W`, with W of the graph around, stacked.
fn product() -> GraphProto {
    let nodes = vec![node("MatMul", &["h", "w"], &["next"]), node("Identity", &["next"], &["seen"])];
    graph(&["i", "go", "h"], nodes, &["go", "next", "seen"])
}

fn repeated(turns: i64, body: GraphProto) -> Vec<NodeProto> {
    vec![number("m", 7, turns), with(node("Loop", &["m", "", "x"], &["y", "all"]), vec![held("body", body)])]
}

#[test]
fn short_loops_are_written_out_and_long_ones_are_not() {
    let short = imported(repeated(3, product()), &["y", "all"]);
    assert_eq!(loops(&short), 0);
    assert_eq!(outputs(&short)[0], [2.0, 1.0, 4.0, 3.0]);
    let long = imported(repeated(101, product()), &["y", "all"]);
    assert_eq!(loops(&long), 1);
    let found = outputs(&long);
    assert_eq!(found[0], [2.0, 1.0, 4.0, 3.0]);
    assert_eq!(found[1].len(), 101 * 4);
    assert_eq!(found[1][4..8], [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn loops_hold_loops() {
    let inner = vec![
        number("n", 7, 99),
        with(
            node("Loop", &["n", "", "h"], &["last", "all"]),
            vec![held("body", {
                let mut body = product();
                body.input[2].name = "v".into();
                body.node[0].input[0] = "v".into();
                body
            })],
        ),
    ];
    let outer = graph(&["j", "on", "h"], inner, &["on", "last", "h"]);
    let graph = imported(repeated(33, outer), &["y", "all"]);
    assert_eq!(loops(&graph), 1);
    assert_eq!(outputs(&graph)[0], [2.0, 1.0, 4.0, 3.0]);
}

#[test]
fn a_constant_condition_chooses_a_branch_and_the_other_is_not_looked_at() {
    let choice = |value: i64| {
        let taken = graph(&[], vec![node("MatMul", &["x", "w"], &["a"])], &["a"]);
        let other = graph(&[], vec![node("NoSuchOperator", &["x"], &["b"])], &["b"]);
        let (then, otherwise) = if value == 0 { (other, taken) } else { (taken, other) };
        let branches = vec![held("then_branch", then), held("else_branch", otherwise)];
        vec![number("c", 9, value), with(node("If", &["c"], &["y"]), branches)]
    };
    for value in [0, 1] {
        assert_eq!(outputs(&imported(choice(value), &["y"]))[0], [2.0, 1.0, 4.0, 3.0]);
    }
}

/// A model with a bool `c` among its inputs.
fn decided(nodes: Vec<NodeProto>, outputs: &[&str]) -> Result<Graph, Diagnostic> {
    let inputs = vec![input("x", &["2", "2"]), input("w", &["2", "3"]), input("c", &["1"])];
    let mut model = model(inputs, nodes, outputs);
    let condition = model.graph.as_mut().and_then(|graph| graph.input[2].r#type.as_mut()).unwrap();
    condition.tensor_type.as_mut().unwrap().elem_type = 9;
    let imported = import_with(&model, &ImportOptions::default());
    imported.map(|imported| imported.graph).map_err(|mut errors| errors.remove(0))
}

#[test]
fn data_may_end_a_loop_that_stacks_nothing() {
    let nodes = |bounded: bool, outputs: &[&str]| {
        let body = graph(&["i", "go", "h"], vec![node("MatMul", &["h", "x"], &["n"])], outputs);
        let limit = if bounded { "m" } else { "" };
        let results = if outputs.len() > 2 { vec!["y", "all"] } else { vec!["y"] };
        vec![number("m", 7, 9), with(node("Loop", &[limit, "", "x"], &results), vec![held("body", body)])]
    };
    for (bounded, trip_count) in [(true, Some(9)), (false, None)] {
        let graph = decided(nodes(bounded, &["c", "n"]), &["y"]).unwrap();
        verify(&graph).unwrap();
        let conditional =
            |id| matches!(&graph.node(id).op, Op::Loop(op) if op.conditional && op.trip_count == trip_count);
        assert_eq!(graph.node_ids().filter(|&id| conditional(id)).count(), 1);
        let error = decided(nodes(bounded, &["c", "n", "n"]), &["y"]).unwrap_err();
        assert_eq!(error.code, Code::DataDependentShape);
        assert!(error.message.starts_with("Loop `y`: data decide how many turns the loop takes"), "{error}");
        assert!(error.message.ends_with("their size isn't known"), "{error}");
    }
    let error = decided(nodes(false, &["go", "n"]), &["y"]).unwrap_err();
    assert!(error.message.starts_with("Loop `y`: the loop never ends"), "{error}");
}

fn whole(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: name.into(), i: Some(value), r#type: 2, ..AttributeProto::default() }
}

/// A number of turns from a tensor of one element.
fn turns_of(name: &str) -> NodeProto {
    with(node("Cast", &[name], &["turns"]), vec![whole("to", 7)])
}

/// `h' = h X` as often as data say.
fn counted_by_data() -> NodeProto {
    let body = graph(&["i", "go", "h"], vec![node("MatMul", &["h", "x"], &["n"])], &["go", "n"]);
    with(node("Loop", &["turns", "", "x"], &["z"]), vec![held("body", body)])
}

#[test]
fn data_may_be_the_number_of_turns() {
    let sum = with(node("ReduceSum", &["w"], &["sum"]), vec![whole("keepdims", 0)]);
    let graph = imported(vec![sum, turns_of("sum"), counted_by_data()], &["z"]);
    assert_eq!(loops(&graph), 1);
    let square = |values: [f64; 4]| Tensor::from_floats(TensorType::new(mlc_ir::DType::F32, [2, 2]), values.to_vec());
    for (turns, expected) in [(-1.0, 2.0), (0.0, 2.0), (1.0, 4.0), (7.0, 256.0)] {
        let inputs = [square([2.0, 0.0, 0.0, 2.0]), square([turns, 0.0, 0.0, 0.0])];
        assert_eq!(evaluate(&graph, &inputs).unwrap()[0].to_floats(), [expected, 0.0, 0.0, expected], "{turns}");
    }
}

#[test]
fn a_loop_that_may_have_no_end_is_not_run_for_a_branch_that_is_not_taken() {
    let then = graph(&[], vec![turns_of("c"), counted_by_data()], &["z"]);
    let otherwise = graph(&[], vec![node("Identity", &["x"], &["b"])], &["b"]);
    let branches = vec![held("then_branch", then), held("else_branch", otherwise)];
    let error = decided(vec![with(node("If", &["c"], &["y"]), branches)], &["y"]).unwrap_err();
    assert!(
        error.message.ends_with("data decide how many turns the loop takes, and whether it is run at all"),
        "{error}"
    );
}

#[test]
fn branches_of_one_type_are_both_computed() {
    let nodes = |other: &str| {
        let then = graph(&[], vec![node("MatMul", &["x", "x"], &["a"])], &["a"]);
        let otherwise = graph(&[], vec![node("Identity", &[other], &["b"])], &["b"]);
        let branches = vec![held("then_branch", then), held("else_branch", otherwise)];
        vec![with(node("If", &["c"], &["y"]), branches)]
    };
    let graph = decided(nodes("x"), &["y"]).unwrap();
    assert!(graph.node_ids().any(|id| matches!(graph.node(id).op, Op::Select(_))));
    let error = decided(nodes("w"), &["y"]).unwrap_err();
    assert_eq!(error.code, Code::DataDependentShape);
    assert_eq!(error.message, "If `y`: data decide whether result 0 is f32[2, 2] or f32[2, 3]");
}

#[test]
fn a_fault_of_a_body_is_reported_once() {
    for turns in [2, 200] {
        let body = graph(&["i", "go", "h"], vec![node("NoSuchOperator", &["h"], &["n"])], &["go", "n", "n"]);
        let found = errors(repeated(turns, body), &["y"]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("NoSuchOperator (opset 17), used once"), "{found:?}");
        let wrong = graph(&["i", "go", "h"], vec![node("MatMul", &["w", "h", "h"], &["n"])], &["go", "n", "n"]);
        let found = errors(repeated(turns, wrong), &["y"]);
        assert_eq!(found.len(), 1, "{found:?}");
    }
    let idle = || graph(&["i", "go", "h"], Vec::new(), &["go", "h"]);
    let nodes = |turns| vec![turns, with(node("Loop", &["m", "", "x"], &["y"]), vec![held("body", idle())])];
    assert_eq!(imported(nodes(number("m", 7, i64::from(i32::MAX))), &["y"]).outputs().len(), 1);
    let few = graph(&["i", "go", "h"], Vec::new(), &["go"]);
    assert!(errors(repeated(9, few), &["y"])[0].contains("the body gives 1 results for 1 carried values"));
}

#[test]
fn a_shape_that_no_turn_keeps_is_refused() {
    let body = graph(&["i", "go", "h"], vec![node("MatMul", &["h", "w"], &["n"])], &["go", "n"]);
    // The first product is [2, 3], the next one has no shape at all.
    let looping = with(node("Loop", &["m", "", "x"], &["y"]), vec![held("body", body)]);
    let found = errors(vec![number("m", 7, 100), looping], &["y"]);
    assert_eq!(found.len(), 1, "{found:?}");
}
