//! Canonical rules of elementwise operators.

use crate::rewrite::{Match, Rule, Term};
use crate::sketch::{Sketch, binary, cast, clamp, unary};
use mlc_ir::ops::{Binary, Cast, Clamp, Unary};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Category, DType, Float, Generator, Graph, Literal, Op, OpKind};

/// See the module.
pub(super) const RULES: &[Rule] = &[
    Rule::exact(
        "order-commutative-operands",
        "f(c, x) = f(x, c): constants stand right",
        &[OpKind::Binary],
        order_operands,
        constant_left,
    ),
    Rule::exact("drop-zero-shift", "x + 0 = x - 0 = x", &[OpKind::Binary], drop_zero_shift, |g| {
        neutral(g, &[B::Add, B::Subtract], 0.0)
    }),
    Rule::exact("drop-unit-factor", "x * 1 = x / 1 = x^1 = x", &[OpKind::Binary], drop_unit_factor, |g| {
        neutral(g, &[B::Multiply, B::Divide, B::Power], 1.0)
    }),
    Rule::exact("subtract-constant-as-add", "x - c = x + (-c)", &[OpKind::Binary], subtract_as_add, |g| {
        constant_right(g, &[B::Subtract])
    }),
    Rule::exact("cancel-double-negation", "-(-x) = x, not not x = x", &[OpKind::Unary], cancel_double, |g| {
        let function = g.choose(&[U::Negate, U::Not]);
        let dtype = if function == U::Not { DType::I32 } else { g.choose(&[DType::F32, DType::I8]) };
        chain(g, dtype, unary(function), unary(function))
    }),
    Rule::exact("drop-repeated-function", "f(f(x)) = f(x) for a projection f", &[OpKind::Unary], drop_repeated, |g| {
        let function = g.choose(PROJECTIONS);
        chain(g, DType::F32, unary(function), unary(function))
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
        "drop-identity-cast",
        "a cast to the same type does nothing",
        &[OpKind::Cast],
        drop_identity_cast,
        |g| {
            let dtype = g.choose(&[DType::F32, DType::I64, DType::Bool]);
            chain(g, dtype, cast(dtype), cast(dtype))
        },
    ),
    Rule::exact("merge-casts", "a cast after a lossless cast is one cast", &[OpKind::Cast], merge_casts, |g| {
        let (from, through) = g.choose(&[
            (DType::F32, DType::F64),
            (DType::I8, DType::I32),
            (DType::U8, DType::I16),
            (DType::Bool, DType::I32),
        ]);
        let to = g.choose(&[DType::F32, DType::I8, DType::I64, DType::F16]);
        chain(g, from, cast(through), cast(to))
    }),
    Rule::exact("drop-equal-selection", "select(c, x, x) = x", &[OpKind::Select], drop_equal_selection, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(0, 3);
        let narrower = s.random.broadcastable(&shape);
        let condition = s.input_of(DType::Bool, &narrower);
        let x = s.input(&shape);
        let y = s.apply(mlc_ir::ops::Select {}, &[condition, x, x]);
        s.finish(y)
    }),
    Rule::exact(
        "drop-known-selection",
        "select(true, x, y) = x, select(false, x, y) = y",
        &[OpKind::Select],
        drop_known_selection,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.random_shape(0, 3);
            let narrower = s.random.broadcastable(&shape);
            let value = if s.random.one_in(2) { 1.0 } else { 0.0 };
            let condition = s.splat(DType::Bool, &narrower, value);
            let (x, y) = (s.input(&shape), s.input(&shape));
            let y = s.apply(mlc_ir::ops::Select {}, &[condition, x, y]);
            s.finish(y)
        },
    ),
    Rule::reassociation(
        "sigmoid-product-as-silu",
        "x * sigmoid(x) = silu(x)",
        &[OpKind::Binary],
        sigmoid_product_as_silu,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.random_shape(0, 3);
            let x = s.input(&shape);
            let gate = s.apply(unary(U::Sigmoid), &[x]);
            let operands = if s.random.one_in(2) { [x, gate] } else { [gate, x] };
            let y = s.apply(binary(B::Multiply), &operands);
            s.finish(y)
        },
    ),
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

/// Functions for which f(f(x)) = f(x).
const PROJECTIONS: &[U] = &[U::Absolute, U::Relu, U::Relu6, U::Ceil, U::Floor, U::Round, U::Truncate, U::Sign];

fn chain(g: &mut Generator, dtype: DType, inner: Op, outer: Op) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(0, 4);
    let x = s.input_of(dtype, &shape);
    let y = s.apply(inner, &[x]);
    let z = s.apply(outer, &[y]);
    s.finish(z)
}

fn neutral(g: &mut Generator, functions: &[B], value: f64) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(0, 4);
    let function = s.random.choose(functions);
    let dtype = if function == B::Power { DType::F32 } else { s.random.choose(&[DType::F32, DType::I32]) };
    let x = s.input_of(dtype, &shape);
    let narrower = s.random.broadcastable(&shape);
    let c = s.splat(dtype, &narrower, value);
    let y = s.apply(binary(function), &[x, c]);
    s.finish(y)
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

/// The first operand when the second is all `number` and doesn't widen.
fn drop_right(m: &Match<'_>, functions: &[B], number: f64) -> Vec<Term> {
    let drops = as_binary(m).is_some_and(|binary| functions.contains(&binary.function))
        && m.operand_type(0) == m.ty
        && m.view.splat(m.operands[1]).is_some_and(|literal| literal.to_f64() == number);
    if drops { vec![m.operands[0].into()] } else { Vec::new() }
}

fn drop_zero_shift(m: &Match<'_>) -> Vec<Term> {
    drop_right(m, &[B::Add, B::Subtract], 0.0)
}

fn drop_unit_factor(m: &Match<'_>) -> Vec<Term> {
    drop_right(m, &[B::Multiply, B::Divide, B::Power], 1.0)
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

fn cancel_double(m: &Match<'_>) -> Vec<Term> {
    let Op::Unary(Unary { function: function @ (U::Negate | U::Not) }) = m.op else { return Vec::new() };
    let same = |op: &Op| matches!(op, Op::Unary(inner) if inner.function == *function);
    m.inner(0).iter().filter(|inner| same(inner.op)).map(|inner| inner.operands[0].into()).collect()
}

fn drop_repeated(m: &Match<'_>) -> Vec<Term> {
    let Op::Unary(Unary { function }) = m.op else { return Vec::new() };
    let same = |op: &Op| matches!(op, Op::Unary(inner) if inner.function == *function);
    let repeated = PROJECTIONS.contains(function) && m.inner(0).iter().any(|inner| same(inner.op));
    if repeated { vec![m.operands[0].into()] } else { Vec::new() }
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

fn drop_identity_cast(m: &Match<'_>) -> Vec<Term> {
    if m.operand_type(0) == m.ty { vec![m.operands[0].into()] } else { Vec::new() }
}

/// Whether every value of `from` is one of `to`, and conversions from `to` treat it as conversions from `from` do.
fn is_lossless(from: DType, to: DType) -> bool {
    match (from.is_float(), to.is_float()) {
        (true, true) => to == DType::F64 || (to == DType::F32 && from != DType::F64),
        (false, false) if from == DType::Bool => true,
        (false, false) => match (from.is_signed(), to.is_signed()) {
            (false, true) => to.size() > from.size(),
            (true, false) => false,
            _ => to != DType::Bool && to.size() >= from.size(),
        },
        _ => false,
    }
}

fn merge_casts(m: &Match<'_>) -> Vec<Term> {
    let Op::Cast(outer) = m.op else { return Vec::new() };
    let fits = |op: &Op, from: DType| matches!(op, Op::Cast(inner) if is_lossless(from, inner.dtype));
    m.inner(0)
        .iter()
        .filter(|inner| {
            inner.op.category() == Category::Elementwise && fits(inner.op, m.view.ty(inner.operands[0]).dtype)
        })
        .map(|inner| Term::apply(Cast { dtype: outer.dtype }, [inner.operands[0].into()]))
        .collect()
}

fn drop_equal_selection(m: &Match<'_>) -> Vec<Term> {
    let equal = m.operands[1] == m.operands[2] && m.operand_type(1) == m.ty;
    if equal { vec![m.operands[1].into()] } else { Vec::new() }
}

fn drop_known_selection(m: &Match<'_>) -> Vec<Term> {
    let Some(condition) = m.view.splat(m.operands[0]) else { return Vec::new() };
    let chosen = if condition.to_f64() != 0.0 { 1 } else { 2 };
    // A chosen side that the others widen is left alone.
    if m.operand_type(chosen) == m.ty { vec![m.operands[chosen].into()] } else { Vec::new() }
}

fn sigmoid_product_as_silu(m: &Match<'_>) -> Vec<Term> {
    if as_binary(m).is_none_or(|binary| binary.function != B::Multiply) || m.operand_type(0) != m.operand_type(1) {
        return Vec::new();
    }
    for (x, gate) in [(m.operands[0], m.operands[1]), (m.operands[1], m.operands[0])] {
        let matches = |op: &Op| matches!(op, Op::Unary(Unary { function: U::Sigmoid }));
        if m.view.applications(gate).iter().any(|inner| matches(inner.op) && inner.operands[0] == x) {
            return vec![Term::apply(Unary { function: U::Silu }, [x.into()])];
        }
    }
    Vec::new()
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
