//! A stage is rules, or a function from graph to graph.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Network, kernels};
use mlc_ir::ops::Loop;
use mlc_ir::scalar::UnaryFunction as U;
use mlc_ir::{Code, Graph, Op, OpKind, OperatorError, Subgraph, Value};
use mlc_passes::stages::{Stage, Work};
use mlc_passes::{OptimizeOptions, Pipeline};

/// Makes every relu an absolute value, which isn't the same but easily seen.
fn relus_as_absolutes(graph: &Graph) -> Result<Graph, OperatorError> {
    let mut result = graph.clone();
    for id in graph.node_ids() {
        if matches!(&graph.node(id).op, Op::Unary(unary) if unary.function == U::Relu) {
            result.replace_op(id, mlc_ir::ops::Unary { function: U::Absolute })?;
        }
    }
    Ok(result)
}

/// Breaks the graph: two outputs of one name.
fn outputs_doubled(graph: &Graph) -> Result<Graph, OperatorError> {
    let mut result = graph.clone();
    let output = result.outputs()[0].clone();
    result.add_output(&output.name, output.value);
    Ok(result)
}

fn pipeline(name: &'static str, transform: fn(&Graph) -> Result<Graph, OperatorError>) -> Pipeline {
    let mut pipeline = Pipeline::default();
    pipeline.stages.insert(1, Stage { name, summary: "for a test", work: Work::Transform(transform) });
    pipeline
}

fn functions(graph: &Graph) -> Vec<U> {
    let functions = graph.node_ids().filter_map(|id| match &graph.node(id).op {
        Op::Unary(unary) => Some(unary.function),
        _ => None,
    });
    functions.collect()
}

fn chain() -> Graph {
    let mut n = Network::new();
    let x = n.input(&[2, 3]);
    let a = n.unary("a", U::Relu, x);
    let b = n.unary("b", U::Relu, a);
    n.finish(&[b])
}

#[test]
fn a_function_is_a_stage_in_its_place() {
    let mut seen = Vec::new();
    let options = OptimizeOptions { stop_after: Some("absolutes".into()), explain: true, ..OptimizeOptions::default() };
    let observer = &mut |stage: &str, graph: &Graph| seen.push((stage.to_owned(), functions(graph)));
    let (result, report) = pipeline("absolutes", relus_as_absolutes).run(chain(), &options, observer).unwrap();
    assert_eq!(seen, [("canonicalise".into(), vec![U::Relu]), ("absolutes".into(), vec![U::Absolute])]);
    assert_eq!(kernels(&result), ["unary"]);
    assert_eq!(report.stages.len(), 2);
    assert_eq!(report.stages[1].name, "absolutes");
}

#[test]
fn what_a_function_leaves_is_made_canonical() {
    let twice = |graph: &Graph| {
        let mut result = graph.clone();
        let last: Value = result.outputs()[0].value;
        let more = result.add(mlc_ir::ops::Unary { function: U::Relu }, &[last], "more")?;
        result.replace_value(last, more.into());
        Ok(result)
    };
    let options = OptimizeOptions { stop_after: Some("twice".into()), ..OptimizeOptions::default() };
    let (result, _) = pipeline("twice", twice).run(chain(), &options, &mut |_, _| {}).unwrap();
    assert_eq!(kernels(&result), ["unary"]);
}

#[test]
fn bodies_of_loops_pass_through_functions() {
    let (op, types) = OpKind::Loop.sample(&mut mlc_ir::Generator::new(1));
    let Op::Loop(op) = op else { unreachable!() };
    let mut body = op.body.graph().clone();
    let floats = body.outputs().iter().position(|output| body.ty(output.value).dtype.is_float()).unwrap();
    let value = body.outputs()[floats].value;
    let relu = body.add(mlc_ir::ops::Unary { function: U::Relu }, &[value], "relu").unwrap();
    body.replace_value(value, relu.into());
    let op = Loop { body: Subgraph::new(body), ..op };
    let mut graph = Graph::new("g");
    let operands: Vec<Value> = types.iter().map(|ty| graph.add_input("x", ty.clone())).collect();
    let node = graph.add(op, &operands, "loop").unwrap();
    graph.add_output("y", node.into());
    let options = OptimizeOptions { stop_after: Some("absolutes".into()), ..OptimizeOptions::default() };
    let (result, _) = pipeline("absolutes", relus_as_absolutes).run(graph, &options, &mut |_, _| {}).unwrap();
    let body = result.node_ids().find_map(|id| match &result.node(id).op {
        Op::Loop(op) => Some(op.body.graph().clone()),
        _ => None,
    });
    assert!(!functions(&body.unwrap()).contains(&U::Relu));
}

#[test]
fn a_function_that_breaks_the_graph_is_named() {
    let options = OptimizeOptions::default();
    let error = pipeline("doubling", outputs_doubled).run(chain(), &options, &mut |_, _| {}).unwrap_err();
    assert_eq!(error.code, Code::InvalidGraph);
    assert!(error.notes.iter().any(|note| note.contains("doubling")), "{error:?}");
}
