//! Samples of scalar rules: an expression, as a `map`, as an epilogue or as operators of the graph.

use crate::sketch::{Sketch, binary, cast, unary};
use mlc_ir::ops::{BitCast, Kernel, Map, Reduce, ReduceFunction, Select};
use mlc_ir::scalar::{Expression, ExpressionBuilder, ScalarId, ScalarNode, UnaryFunction};
use mlc_ir::{DType, Generator, Graph, Value};

/// Types of numbers.
pub(super) const NUMBERS: &[DType] = &[DType::F32, DType::F32, DType::F16, DType::I32, DType::U8];
/// Types of floating-point numbers.
pub(super) const FLOATS: &[DType] = &[DType::F32, DType::F32, DType::F64, DType::F16];

/// Builds an expression of numbers of a type.
type Body = fn(&mut ExpressionBuilder, &mut Generator, DType) -> ScalarId;

/// A graph that computes an expression of numbers of one of the types, or its negation.
pub(in crate::canonicalise::rules) fn sample(g: &mut Generator, dtypes: &[DType], body: Body) -> Graph {
    let dtype = g.choose(dtypes);
    let negated = g.one_in(3);
    let expression = Expression::build(|b| {
        let root = body(b, g, dtype);
        if negated { b.unary(UnaryFunction::Negate, root) } else { root }
    });
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 3);
    let kernel = s.random.one_in(4);
    let mut operands: Vec<Value> = Vec::new();
    if kernel {
        let mut wide = shape.clone();
        wide.push(s.random.range(1, 3));
        operands.push(s.input_of(dtype, &wide));
    } else {
        operands.push(s.input_of(dtype, &shape));
    }
    for _ in 1..expression.operand_count() {
        let narrower = if s.random.one_in(2) { shape.clone() } else { s.random.broadcastable(&shape).to_vec() };
        operands.push(s.input_of(dtype, &narrower));
    }
    let y = if kernel {
        let anchor = Reduce { function: ReduceFunction::Maximum, axes: vec![shape.len()], keep_axes: false };
        s.apply(Kernel { anchor: Box::new(anchor.into()), anchor_operands: 1, expression }, &operands)
    } else if s.random.one_in(3) {
        s.apply(Map { expression }, &operands)
    } else {
        operators(&mut s, &expression, &operands)
    };
    s.finish(y)
}

/// The expression as operators of the graph.
fn operators(s: &mut Sketch<'_>, expression: &Expression, operands: &[Value]) -> Value {
    let mut values: Vec<Value> = Vec::new();
    for node in expression.nodes() {
        let at = |id: ScalarId| values[id as usize];
        let value = match *node {
            ScalarNode::Operand(k) => operands[k as usize],
            ScalarNode::Literal(literal) => s.splat(literal.dtype(), &[], literal.to_f64()),
            ScalarNode::Unary(function, x) => s.apply(unary(function), &[at(x)]),
            ScalarNode::Binary(function, x, y) => s.apply(binary(function), &[at(x), at(y)]),
            ScalarNode::Select(c, x, y) => s.apply(Select {}, &[at(c), at(x), at(y)]),
            ScalarNode::Cast(dtype, x) => s.apply(cast(dtype), &[at(x)]),
            ScalarNode::BitCast(dtype, x) => s.apply(BitCast { dtype }, &[at(x)]),
            ScalarNode::Rescale(rounding, children) => {
                s.apply(Map { expression: Expression::rescale(rounding) }, &children.map(at))
            }
        };
        values.push(value);
    }
    values.last().copied().unwrap_or(operands[0])
}
