//! [`Layer`]: what is quantised as one. Sums of products take the bias and the limits of an activation behind them along, a sum of two
//! tensors takes the limits, everything else is a layer by itself.

use mlc_ir::scalar::{BinaryFunction as B, Expression, ScalarNode, UnaryFunction as U};
use mlc_ir::{DType, Graph, IntegerForm, NodeId, Op, TensorType, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Operators that are computed with integers as one.
#[derive(Debug, Clone)]
pub struct Layer {
    /// Name of the first of its nodes.
    pub name: Arc<str>,
    /// Its nodes, in the order of computation.
    pub nodes: Vec<NodeId>,
    /// How it computes with integers.
    pub form: IntegerForm,
    /// What it reads, each once, but for weights, bias and numbers that are a part of its function.
    pub operands: Vec<Value>,
    /// Weights that are known.
    pub weights: Option<Value>,
    /// What is added to its sums along the last axis: a constant.
    pub bias: Option<Value>,
    /// What its results are limited to.
    pub limits: (f64, f64),
    /// What it computes of each element of its operands, of an elementwise operator.
    pub function: Option<Expression>,
    /// Its result.
    pub result: Value,
}

/// Operators that are computed with real numbers, and why.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The operator.
    pub node: NodeId,
    /// The reason.
    pub reason: String,
}

/// No limits.
const UNLIMITED: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);

/// Most products in a sum of 32 bits: each is of 8 bits without a sign and 7 with one.
const MOST_PRODUCTS: usize = 1 << 16;

/// All layers of a graph, in the order of computation, and what is none of them. Constants, inputs, and operators on anything but
/// singles are neither.
pub fn find(graph: &Graph) -> (Vec<Layer>, Vec<Refused>) {
    let (mut layers, mut refused): (Vec<Layer>, Vec<Refused>) = (Vec::new(), Vec::new());
    let mut taken = BTreeSet::new();
    for node in graph.topological_order() {
        let is_source = graph.operands(node).is_empty();
        let is_single = graph.node(node).results.iter().any(|ty| ty.dtype == DType::F32);
        if is_source || !is_single || taken.contains(&node) {
            continue;
        }
        match layer_of(graph, node) {
            Ok(mut layer) => {
                absorb(graph, &mut layer);
                taken.extend(layer.nodes.iter().copied());
                layers.push(layer);
            }
            Err(reason) => refused.push(Refused { node, reason }),
        }
    }
    (layers, refused)
}

/// The layer of a node alone.
fn layer_of(graph: &Graph, node: NodeId) -> Result<Layer, String> {
    let op = &graph.node(node).op;
    let form = op.integer_form();
    let operands = graph.operands(node);
    let is_single = |value: &Value| graph.ty(*value).dtype == DType::F32;
    if form == IntegerForm::None {
        return Err(format!("{} has no form of integers", op.name()));
    }
    if graph.node(node).results.len() != 1 || !operands.iter().any(is_single) {
        return Err(format!("{} reads or gives something else than singles", op.name()));
    }
    let mut layer = Layer {
        name: graph.node(node).name.clone(),
        nodes: vec![node],
        form,
        operands: Vec::new(),
        weights: None,
        bias: None,
        limits: UNLIMITED,
        function: None,
        result: node.into(),
    };
    match form {
        IntegerForm::Function => {
            let (function, values) = function_of(graph, node).ok_or("its operands aren't all singles")?;
            layer.operands = values;
            check_function(graph, &layer, &function)?;
            layer.function = Some(function);
        }
        IntegerForm::Products => {
            let weights = operands.get(1).copied().filter(|&weights| graph.constant(weights).is_some());
            layer.operands = operands.iter().copied().filter(|value| Some(*value) != weights).collect();
            layer.weights = weights;
            check_products(graph, &layer)?;
        }
        _ => {
            for operand in operands {
                if !layer.operands.contains(&operand) {
                    layer.operands.push(operand);
                }
            }
        }
    }
    if layer.operands.iter().all(|&operand| graph.constant(operand).is_some()) {
        return Err("all its operands are constants".into());
    }
    Ok(layer)
}

fn check_products(graph: &Graph, layer: &Layer) -> Result<(), String> {
    if layer.operands.iter().any(|&operand| graph.constant(operand).is_some()) {
        return Err("its first operand is a constant".into());
    }
    let op = &graph.node(layer.nodes[0]).op;
    if !matches!(op, Op::Matmul(_)) && layer.weights.is_none() {
        return Err("its weights aren't constants".into());
    }
    let types: Vec<TensorType> = graph.operand_types(layer.nodes[0]);
    let results = &graph.node(layer.nodes[0]).results;
    let products = op.work(&types, results).macs / (results[0].elements().max(1) as u64);
    if products >= MOST_PRODUCTS as u64 {
        return Err(format!("its sums of {products} products don't fit 32 bits"));
    }
    Ok(())
}

/// A function of one tensor is a table; of two, a sum, a difference or a product.
fn check_function(graph: &Graph, layer: &Layer, function: &Expression) -> Result<(), String> {
    let result = &graph.ty(layer.result).shape;
    match layer.operands[..] {
        [x] if graph.ty(x).shape == *result => Ok(()),
        [_] => Err("its result has another shape than its operand".into()),
        [_, _] if pair_function(function).is_some() => Ok(()),
        _ => Err("a function of several tensors is none but a sum, a difference or a product of two".into()),
    }
}

/// The function of a sum, a difference or a product of two operands, and whether they are the other way round.
pub fn pair_function(function: &Expression) -> Option<(B, bool)> {
    match *function.nodes() {
        [ScalarNode::Operand(first), ScalarNode::Operand(second), ScalarNode::Binary(function, x, _)] => {
            let is_known = matches!(function, B::Add | B::Subtract | B::Multiply);
            let left = if x == 0 { first } else { second };
            is_known.then_some((function, left == 1))
        }
        _ => None,
    }
}

/// What an elementwise operator computes of its operands, numbers among which are a part of the function, and these operands, each once.
/// `None` unless all of them are singles.
pub fn function_of(graph: &Graph, node: NodeId) -> Option<(Expression, Vec<Value>)> {
    let types = graph.operand_types(node);
    let expression = graph.node(node).op.expression(&types)?;
    if types.iter().any(|ty| ty.dtype != DType::F32) {
        return None;
    }
    let mut values: Vec<Value> = Vec::new();
    let operands: Vec<Expression> = graph
        .operands(node)
        .into_iter()
        .map(|operand| match graph.constant(operand).and_then(mlc_ir::Attribute::splat) {
            Some(number) => Expression::build(|b| b.literal(number)),
            None => {
                let place = values.iter().position(|value| *value == operand).unwrap_or_else(|| {
                    values.push(operand);
                    values.len() - 1
                });
                Expression::operand(place as u32)
            }
        })
        .collect();
    Some((expression.substitute(&operands), values))
}

/// Lets a layer take along what follows it and is of use to nobody else.
fn absorb(graph: &Graph, layer: &mut Layer) {
    let is_pair = layer.form == IntegerForm::Function && layer.operands.len() == 2;
    if layer.form != IntegerForm::Products && !is_pair {
        return;
    }
    while let Some(next) = only_user(graph, layer.result) {
        let takes_bias = layer.form == IntegerForm::Products && layer.bias.is_none() && layer.limits == UNLIMITED;
        if let Some(bias) = bias_of(graph, next, layer.result).filter(|_| takes_bias) {
            layer.bias = Some(bias);
            layer.nodes.push(next);
            layer.result = next.into();
            continue;
        }
        let limits = function_of(graph, next)
            .filter(|(_, values)| values[..] == [layer.result])
            .filter(|_| graph.node(next).results[0] == *graph.ty(layer.result))
            .and_then(|(function, _)| limits_of(&function));
        let Some((low, high)) = limits else { return };
        let (low_before, high_before) = layer.limits;
        layer.limits = (low_before.clamp(low, high), high_before.clamp(low, high));
        layer.nodes.push(next);
        layer.result = next.into();
    }
}

/// The only user of a value, if it is no output.
pub fn only_user(graph: &Graph, value: Value) -> Option<NodeId> {
    let is_output = graph.outputs().iter().any(|output| output.value == value);
    match graph.uses(value)[..] {
        [(user, _)] if !is_output => Some(user),
        _ => None,
    }
}

/// The constant that a node adds to sums along their last axis.
pub fn bias_of(graph: &Graph, node: NodeId, sums: Value) -> Option<Value> {
    let types = graph.operand_types(node);
    let op = &graph.node(node).op;
    if op.integer_form() != IntegerForm::Function || op.expression(&types)? != Expression::binary(B::Add) {
        return None;
    }
    let operands = graph.operands(node);
    let bias = operands.iter().copied().find(|&operand| operand != sums)?;
    let (last, ty) = (graph.ty(sums).shape.last().copied()?, graph.ty(bias));
    let along_last = ty.elements() == 1 || (ty.elements() == last && ty.shape.last() == Some(&last));
    let fits = graph.constant(bias).is_some() && along_last && graph.node(node).results[0] == *graph.ty(sums);
    (fits && operands.contains(&sums)).then_some(bias)
}

/// The limits that a function keeps its operand within, if that is all it does.
fn limits_of(function: &Expression) -> Option<(f64, f64)> {
    /// A step is the operand within limits, or a number.
    #[derive(Clone, Copy)]
    enum Step {
        Limited(f64, f64),
        Number(f64),
    }
    let mut steps: Vec<Step> = Vec::new();
    for node in function.nodes() {
        let step = |id: u32| steps[id as usize];
        let step = match *node {
            ScalarNode::Operand(0) => Step::Limited(f64::NEG_INFINITY, f64::INFINITY),
            ScalarNode::Literal(number) => Step::Number(number.to_f64()),
            ScalarNode::Unary(U::Relu, x) => match step(x) {
                Step::Limited(low, high) => Step::Limited(low.max(0.0), high.max(0.0)),
                Step::Number(_) => return None,
            },
            ScalarNode::Unary(U::Relu6, x) => match step(x) {
                Step::Limited(low, high) => Step::Limited(low.clamp(0.0, 6.0), high.clamp(0.0, 6.0)),
                Step::Number(_) => return None,
            },
            ScalarNode::Binary(function @ (B::Maximum | B::Minimum), x, y) => {
                let (low, high, number) = match (step(x), step(y)) {
                    (Step::Limited(low, high), Step::Number(number))
                    | (Step::Number(number), Step::Limited(low, high)) => (low, high, number),
                    _ => return None,
                };
                match function {
                    B::Maximum => Step::Limited(low.max(number), high.max(number)),
                    _ => Step::Limited(low.min(number), high.min(number)),
                }
            }
            _ => return None,
        };
        steps.push(step);
    }
    match steps.last() {
        Some(&Step::Limited(low, high)) if (low, high) != UNLIMITED => Some((low, high)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(body: &str) -> Graph {
        mlc_ir::text::parse(body, &()).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    const NETWORK: &str = "mlc 1
        graph @g(%x: f32[1, 4]) -> (\"y\") {
          %w = constant f32[4, 2] splat(0.5)
          %b = constant f32[2] [1.0, 2.0]
          %m = matmul %x, %w {transpose_left = false, transpose_right = false}
          %a = binary %m, %b {function = add}
          %r = clamp %a {low = -1.0, high = 3.0}
          %q = unary %r {function = relu}
          %s = binary %q, %q {function = multiply}
          %t = unary %s {function = sin}
          %u = cumulative %t {function = sum, axis = 1, exclusive = false, reverse = false}
          return %u
        }";

    #[test]
    fn products_take_bias_and_limits_along() {
        let graph = graph(NETWORK);
        let (layers, refused) = find(&graph);
        let names: Vec<&str> = layers.iter().map(|layer| &*layer.name).collect();
        assert_eq!(names, ["m", "s", "t"]);
        assert_eq!((layers[0].nodes.len(), layers[0].limits), (4, (0.0, 3.0)));
        assert!(layers[0].bias.is_some() && layers[0].weights.is_some());
        // A square is a function of one tensor.
        assert_eq!(layers[1].operands, [layers[0].result]);
        assert_eq!(refused.len(), 1);
        assert!(refused[0].reason.contains("cumulative has no form"), "{}", refused[0].reason);
    }

    #[test]
    fn what_others_use_is_not_taken_along() {
        let text = NETWORK.replace("(\"y\")", "(\"y\", \"z\")").replace("return %u", "return %u, %a");
        let (layers, _) = find(&graph(&text));
        assert_eq!((layers[0].nodes.len(), layers[0].limits), (2, UNLIMITED));
        assert_eq!(&*layers[1].name, "r");
    }

    #[test]
    fn pairs_know_their_order() {
        let pair = |text: &str| {
            let graph = graph(&format!(
                "mlc 1 graph @g(%x: f32[2], %y: f32[2]) -> (\"z\") {{ %z = map %x, %y {{expression = {text}}} return %z }}"
            ));
            let (layers, _) = find(&graph);
            layers.first().and_then(|layer| pair_function(layer.function.as_ref().unwrap()))
        };
        assert_eq!(pair("add(x0, x1)"), Some((B::Add, false)));
        assert_eq!(pair("subtract(x1, x0)"), Some((B::Subtract, true)));
        assert_eq!(pair("maximum(x1, x0)"), None);
    }
}
