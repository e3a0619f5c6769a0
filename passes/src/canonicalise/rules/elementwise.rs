//! Canonical rules of elementwise operators.

use crate::rewrite::{Match, Rule, Term};
use crate::sketch::{Sketch, binary, clamp, unary};
use mlc_ir::ops::{Binary, Clamp, Unary};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Float, Generator, Graph, Literal, Op, OpKind};

/// See the module.
pub(super) const RULES: &[Rule] = &[
    Rule::exact(
        "order-commutative-operands",
        "f(c, x) = f(x, c): constants stand right",
        &[OpKind::Binary],
        order_operands,
        constant_left,
    ),
    Rule::exact("subtract-constant-as-add", "x - c = x + (-c)", &[OpKind::Binary], subtract_as_add, |g| {
        constant_right(g, &[B::Subtract])
    }),
    Rule::exact(
        "merge-clamps",
        "an interval after an interval is an interval",
        &[OpKind::Clamp, OpKind::Unary],
        merge_clamps,
        sample_clamps,
    ),
    Rule::exact(
        "clamp-as-relu",
        "clamp(x, 0, inf) = relu(x), clamp(x, 0, 6) = relu6(x)",
        &[OpKind::Clamp],
        clamp_as_relu,
        |g| {
            let (low, high) = g.choose(&[(0.0, f64::INFINITY), (0.0, 6.0), (f64::NEG_INFINITY, f64::INFINITY)]);
            let dtype = g.choose(&[DType::F32, DType::I32]);
            chain(g, dtype, clamp(low, high), unary(U::Negate))
        },
    ),
    Rule::exact("extremum-as-clamp", "max(x, c) and min(x, c) are clamps", &[OpKind::Binary], extremum_as_clamp, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(0, 3);
        let x = s.input(&shape);
        let value = s.random.unit();
        let c = s.splat(DType::F32, &[], value);
        let function = s.random.choose(&[B::Maximum, B::Minimum]);
        let y = s.apply(binary(function), &[x, c]);
        s.finish(y)
    }),
    Rule::exact(
        "drop-broadcast-of-operand",
        "elementwise operators broadcast their operands themselves",
        OpKind::ELEMENTWISE,
        drop_broadcast,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.random_shape(1, 4);
            let narrower = s.random.broadcastable(&shape);
            let (x, y) = (s.input(&narrower), s.input(&shape));
            let wide = s.apply(crate::sketch::broadcast(&shape), &[x]);
            let z = s.apply(binary(B::Multiply), &[wide, y]);
            s.finish(z)
        },
    ),
];

fn chain(g: &mut Generator, dtype: DType, inner: Op, outer: Op) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(0, 4);
    let x = s.input_of(dtype, &shape);
    let y = s.apply(inner, &[x]);
    let z = s.apply(outer, &[y]);
    s.finish(z)
}

fn constant_right(g: &mut Generator, functions: &[B]) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(0, 4);
    let function = s.random.choose(functions);
    let dtype = s.random.choose(&[DType::F32, DType::I32]);
    let x = s.input_of(dtype, &shape);
    let narrower = s.random.broadcastable(&shape);
    let c = s.constant_of(dtype, &narrower);
    let y = s.apply(binary(function), &[x, c]);
    s.finish(y)
}

fn constant_left(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(0, 4);
    let function = s.random.choose(&[B::Add, B::Multiply, B::Maximum, B::Minimum]);
    let x = s.input(&shape);
    let c = s.constant(&shape);
    let y = s.apply(binary(function), &[c, x]);
    s.finish(y)
}

fn sample_clamps(g: &mut Generator) -> Graph {
    let mut one = || match g.range(0, 3) {
        0 => unary(U::Relu),
        1 => unary(U::Relu6),
        2 => clamp(g.unit() - 1.0, g.unit() + 1.0),
        _ => clamp(g.unit(), f64::INFINITY),
    };
    let (inner, outer) = (one(), one());
    let mut s = Sketch::new(g);
    let shape = s.random_shape(0, 4);
    let (x, four) = (s.input(&shape), s.splat(DType::F32, &[], 4.0));
    // Some numbers are larger than 6.
    let x = s.apply(binary(B::Multiply), &[x, four]);
    let y = s.apply(inner, &[x]);
    let z = s.apply(outer, &[y]);
    s.finish(z)
}

fn as_binary<'a>(m: &Match<'a>) -> Option<&'a Binary> {
    match m.op {
        Op::Binary(binary) => Some(binary),
        _ => None,
    }
}

fn order_operands(m: &Match<'_>) -> Vec<Term> {
    let swap = |binary: &Binary| {
        binary.function.is_commutative() && m.view.is_constant(m.operands[0]) && !m.view.is_constant(m.operands[1])
    };
    match as_binary(m) {
        Some(binary) if swap(binary) => {
            vec![Term::apply(binary.clone(), [m.operands[1].into(), m.operands[0].into()])]
        }
        _ => Vec::new(),
    }
}

fn subtract_as_add(m: &Match<'_>) -> Vec<Term> {
    let applies = as_binary(m).is_some_and(|binary| binary.function == B::Subtract)
        && m.view.is_constant(m.operands[1])
        && !m.view.is_constant(m.operands[0]);
    if !applies {
        return Vec::new();
    }
    let negated = Term::apply(Unary { function: U::Negate }, [m.operands[1].into()]);
    vec![Term::apply(Binary { function: B::Add }, [m.operands[0].into(), negated])]
}

/// The interval that an operator clamps to.
fn interval(op: &Op) -> Option<(f64, f64)> {
    let (low, high) = match op {
        Op::Unary(Unary { function: U::Relu }) => (0.0, f64::INFINITY),
        Op::Unary(Unary { function: U::Relu6 }) => (0.0, 6.0),
        Op::Clamp(clamp) => (clamp.low.0, clamp.high.0),
        _ => return None,
    };
    (low <= high).then_some((low, high))
}

fn clamped((low, high): (f64, f64), x: Term) -> Term {
    match (low, high) {
        (f64::NEG_INFINITY, f64::INFINITY) => x,
        (0.0, f64::INFINITY) => Term::apply(Unary { function: U::Relu }, [x]),
        (0.0, 6.0) => Term::apply(Unary { function: U::Relu6 }, [x]),
        _ => Term::apply(Clamp { low: Float(low), high: Float(high) }, [x]),
    }
}

fn merge_clamps(m: &Match<'_>) -> Vec<Term> {
    if !m.ty.dtype.is_float() {
        return Vec::new();
    }
    let Some((low, high)) = interval(m.op) else { return Vec::new() };
    let merged = |inner: (f64, f64)| (inner.0.max(low).min(high), inner.1.max(low).min(high));
    let inner = m.inner(0);
    let terms = inner.iter().filter_map(|inner| Some(clamped(merged(interval(inner.op)?), inner.operands[0].into())));
    terms.collect()
}

fn clamp_as_relu(m: &Match<'_>) -> Vec<Term> {
    let Op::Clamp(clamp) = m.op else { return Vec::new() };
    let term = clamped((clamp.low.0, clamp.high.0), m.operands[0].into());
    if matches!(&term, Term::Apply(op, _) if matches!(**op, Op::Clamp(_))) { Vec::new() } else { vec![term] }
}

fn extremum_as_clamp(m: &Match<'_>) -> Vec<Term> {
    let Some(binary) = as_binary(m) else { return Vec::new() };
    if m.operand_type(0) != m.ty || !m.ty.dtype.is_float() {
        return Vec::new();
    }
    let Some(number) = m.view.splat(m.operands[1]).map(Literal::to_f64).filter(|number| number.is_finite()) else {
        return Vec::new();
    };
    match binary.function {
        B::Maximum => vec![clamped((number, f64::INFINITY), m.operands[0].into())],
        B::Minimum => vec![clamped((f64::NEG_INFINITY, number), m.operands[0].into())],
        _ => Vec::new(),
    }
}

fn drop_broadcast(m: &Match<'_>) -> Vec<Term> {
    for k in 0..m.operands.len() {
        let inner = m.inner(k);
        let Some(narrow) = inner.iter().find(|inner| matches!(inner.op, Op::Broadcast(_))) else { continue };
        let mut operands: Vec<Term> = m.operands.iter().map(|&operand| operand.into()).collect();
        operands[k] = narrow.operands[0].into();
        let mut types = m.operand_types();
        types[k] = m.view.ty(narrow.operands[0]).clone();
        if m.op.infer(&types).is_ok_and(|results| results[0] == *m.ty) {
            return vec![Term::Apply(Box::new(m.op.clone()), operands)];
        }
    }
    Vec::new()
}
