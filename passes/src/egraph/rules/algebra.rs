//! Algebra on scales and shifts: brings constants together, so that they fold.

use super::pattern::{is_scale, is_shift, scaled, shifted};
use crate::rewrite::{Class, Match, Rule, Term};
use crate::sketch::{Sketch, binary, unary};
use mlc_ir::ops::{Binary, Unary};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Generator, Graph, Literal, Op, OpKind};

/// See the module.
pub const RULES: &[Rule] = &[
    Rule::reassociation("combine-scales", "(x * a) * b = x * (a * b)", &[OpKind::Binary], combine_scales, |g| {
        chain(g, B::Multiply, B::Multiply)
    }),
    Rule::reassociation("combine-shifts", "(x + a) + b = x + (a + b)", &[OpKind::Binary], combine_shifts, |g| {
        chain(g, B::Add, B::Add)
    }),
    Rule::reassociation(
        "distribute-scale-over-shift",
        "(x + a) * b = x * b + a * b",
        &[OpKind::Binary],
        distribute_scale,
        |g| chain(g, B::Add, B::Multiply),
    ),
    Rule::reassociation(
        "divide-by-constant-as-scale",
        "x / c = x * (1 / c)",
        &[OpKind::Binary],
        divide_as_scale,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.random_shape(1, 3);
            let x = s.input(&shape);
            let narrower = s.random.broadcastable(&shape);
            let c = s.constant(&narrower);
            let y = s.apply(binary(B::Divide), &[x, c]);
            s.finish(y)
        },
    ),
    Rule::reassociation("scale-of-negation", "(-x) * c = x * (-c)", &[OpKind::Binary], scale_of_negation, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(1, 3);
        let x = s.input(&shape);
        let narrower = s.random.broadcastable(&shape);
        let c = s.constant(&narrower);
        let negated = s.apply(unary(U::Negate), &[x]);
        let y = s.apply(binary(B::Multiply), &[negated, c]);
        s.finish(y)
    }),
    Rule::reassociation("factor-common-scale", "x * a + y * a = (x + y) * a", &[OpKind::Binary], factor_scale, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(1, 3);
        let (x, y) = (s.input(&shape), s.input(&shape));
        let narrower = s.random.broadcastable(&shape);
        let a = s.constant(&narrower);
        let left = s.apply(binary(B::Multiply), &[x, a]);
        let right = s.apply(binary(B::Multiply), &[y, a]);
        let z = s.apply(binary(B::Add), &[left, right]);
        s.finish(z)
    }),
    Rule::reassociation(
        "join-shifts-of-sum",
        "(x + a) + (y + b) = (x + y) + (a + b)",
        &[OpKind::Binary],
        join_shifts,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.random_shape(1, 3);
            let (x, y) = (s.input(&shape), s.input(&shape));
            let narrower = s.random.broadcastable(&shape);
            let a = s.constant(&narrower);
            let b = s.constant(&narrower);
            let left = s.apply(binary(B::Add), &[x, a]);
            let right = s.apply(binary(B::Add), &[y, b]);
            let z = s.apply(binary(B::Add), &[left, right]);
            s.finish(z)
        },
    ),
];

fn chain(g: &mut Generator, inner: B, outer: B) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 4);
    let x = s.input(&shape);
    let (first, second) = (s.random.broadcastable(&shape), s.random.broadcastable(&shape));
    let (a, b) = (s.constant(&first), s.constant(&second));
    let y = s.apply(binary(inner), &[x, a]);
    let z = s.apply(binary(outer), &[y, b]);
    s.finish(z)
}

fn times(x: impl Into<Term>, y: impl Into<Term>) -> Term {
    Term::apply(Binary { function: B::Multiply }, [x.into(), y.into()])
}

fn plus(x: impl Into<Term>, y: impl Into<Term>) -> Term {
    Term::apply(Binary { function: B::Add }, [x.into(), y.into()])
}

fn combine_scales(m: &Match<'_>) -> Vec<Term> {
    if !is_scale(m) {
        return Vec::new();
    }
    scaled(m, 0).into_iter().map(|(x, a)| times(x, times(a, m.operands[1]))).collect()
}

fn combine_shifts(m: &Match<'_>) -> Vec<Term> {
    if !is_shift(m) {
        return Vec::new();
    }
    shifted(m, 0).into_iter().map(|(x, a)| plus(x, plus(a, m.operands[1]))).collect()
}

fn distribute_scale(m: &Match<'_>) -> Vec<Term> {
    if !is_scale(m) {
        return Vec::new();
    }
    let b = m.operands[1];
    shifted(m, 0).into_iter().map(|(x, a)| plus(times(x, b), times(a, b))).collect()
}

fn divide_as_scale(m: &Match<'_>) -> Vec<Term> {
    let divides = matches!(m.op, Op::Binary(Binary { function: B::Divide })) && m.ty.dtype.is_float();
    if !divides || !m.view.is_constant(m.operands[1]) || !has_normal_reciprocals(m, m.operands[1]) {
        return Vec::new();
    }
    vec![times(m.operands[0], Term::apply(Unary { function: U::Reciprocal }, [m.operands[1].into()]))]
}

/// Whether the elements of a constant are known, and their reciprocals as precise as numbers of the type are. That of a
/// denormal may be infinite, and that of a very large number is a denormal.
fn has_normal_reciprocals(m: &Match<'_>, constant: Class) -> bool {
    let normal = |x: f64| Literal::float(m.ty.dtype, 1.0 / x).is_normal();
    match (m.view.splat(constant), m.view.value(constant)) {
        (Some(literal), _) => normal(literal.to_f64()),
        (None, Some(value)) => value.to_tensor().to_floats().into_iter().all(normal),
        (None, None) => false,
    }
}

fn scale_of_negation(m: &Match<'_>) -> Vec<Term> {
    if !is_scale(m) {
        return Vec::new();
    }
    let inner = m.inner(0);
    let negations = inner.iter().filter(|inner| matches!(inner.op, Op::Unary(Unary { function: U::Negate })));
    let negate = |x: Term| Term::apply(Unary { function: U::Negate }, [x]);
    negations.map(|inner| times(inner.operands[0], negate(m.operands[1].into()))).collect()
}

fn factor_scale(m: &Match<'_>) -> Vec<Term> {
    if !matches!(m.op, Op::Binary(Binary { function: B::Add })) || !m.ty.dtype.is_float() {
        return Vec::new();
    }
    let mut terms = Vec::new();
    for (x, a) in scaled(m, 0) {
        for (y, b) in scaled(m, 1) {
            if a == b && m.view.ty(x) == m.ty && m.view.ty(y) == m.ty {
                terms.push(times(plus(x, y), a));
            }
        }
    }
    terms
}

fn join_shifts(m: &Match<'_>) -> Vec<Term> {
    if !matches!(m.op, Op::Binary(Binary { function: B::Add })) || !m.ty.dtype.is_float() {
        return Vec::new();
    }
    let mut terms = Vec::new();
    for (x, a) in shifted(m, 0) {
        for (y, b) in shifted(m, 1) {
            if m.view.ty(x) == m.ty && m.view.ty(y) == m.ty {
                terms.push(plus(plus(x, y), plus(a, b)));
            }
        }
    }
    terms
}
