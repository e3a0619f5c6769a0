//! Quantisation as it is cheap: one rounding to an integer, and the rest among integers.

use super::scalar::samples::sample;
use crate::canonicalise::scalars::{KINDS, ScalarTerm, Scalars, rewrites};
use crate::rewrite::Rule;
use mlc_ir::scalar::{BinaryFunction as B, ScalarId, ScalarNode, UnaryFunction as U};
use mlc_ir::{DType, Literal};

/// See the module.
pub(super) const RULES: &[Rule] = &[Rule::finite(
    "round-to-integer-before-limits",
    "whole numbers are shifted and limited as integers; what isn't narrow is beyond the limits",
    KINDS,
    |m| rewrites(m, round_to_integer),
    |g| {
        sample(g, &[DType::F32], |b, g, dtype| {
            let mut x = b.operand(0);
            if g.one_in(2) {
                let factor = g.choose(&[0.25, 3.0, 100.0]);
                let factor = b.number(dtype, factor);
                x = b.binary(B::Multiply, x, factor);
            }
            if g.one_in(3) {
                x = b.unary(U::Relu, x);
            }
            let mut y = b.unary(U::Round, x);
            if g.one_in(2) {
                let zero = b.number(dtype, g.range(0, 3) as f64);
                y = b.binary(g.choose(&[B::Add, B::Subtract]), y, zero);
            } else if g.one_in(2) {
                let zero = b.operand(1);
                let zero = b.cast(DType::U8, zero);
                let zero = b.cast(dtype, zero);
                y = b.binary(B::Add, y, zero);
            }
            let (to, low, high) = g.choose(&[(DType::I8, -2.0, 2.0), (DType::U8, 0.0, 3.0), (DType::I16, -1.0, 200.0)]);
            let (low, high) = (b.number(dtype, low), b.number(dtype, high));
            let y = b.binary(B::Maximum, y, low);
            let y = b.binary(B::Minimum, y, high);
            b.cast(to, y)
        })
    },
)];

/// The first and the last integer that rounding gives.
const ROUNDED: (i64, i64) = (-(1 << 22), (1 << 22) - 1);
/// Limits that nothing has been limited to yet, and more than any number that is looked at.
const FAR: i64 = 1 << 40;

/// What a zero point of 16 bits is at most.
const LARGEST_ZERO: i64 = 1 << 16;

/// A whole number, a number or the limits that it meets, in the order from the outside.
enum Change {
    Plus(i64),
    NotBelow(i64),
    NotAbove(i64),
}

/// What a step does to the step that it is of.
fn change(s: &Scalars<'_>, id: ScalarId, whole: impl Fn(f64) -> Option<i64>) -> Option<(ScalarId, Change)> {
    let number = |id: ScalarId| s.literal(id).and_then(|literal| whole(literal.to_f64()));
    match s.node(id) {
        ScalarNode::Unary(U::Relu, x) => Some((x, Change::NotBelow(0))),
        ScalarNode::Binary(function, x, y) => {
            let (x, number) = match (number(y), number(x)) {
                (Some(number), _) => (x, number),
                (None, Some(number)) if function.is_commutative() => (y, number),
                _ => return None,
            };
            let change = match function {
                B::Add => Change::Plus(number),
                B::Subtract => Change::Plus(-number),
                B::Maximum => Change::NotBelow(number),
                B::Minimum => Change::NotAbove(number),
                _ => return None,
            };
            Some((x, change))
        }
        _ => None,
    }
}

/// A number of up to 17 bits without a fraction.
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() <= f64::from(1 << 17)).then_some(number as i64)
}

/// What is rounded, and the zero point of up to 16 bits that is added to that, where it isn't a known number.
fn rounded_and_zero(s: &Scalars<'_>, id: ScalarId) -> Option<(ScalarId, ScalarId)> {
    let ScalarNode::Binary(B::Add, x, y) = s.node(id) else { return None };
    let (ScalarNode::Unary(U::Round, _), ScalarNode::Cast(DType::F32, zero)) = (s.node(x), s.node(y)) else {
        return None;
    };
    let dtype = s.dtype(zero);
    (dtype.is_integer() && dtype.size() <= 2).then_some((x, zero))
}

fn round_to_integer(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let (ScalarNode::Cast(dtype, mut at), _) = s.root() else { return None };
    if !dtype.is_integer() || dtype.size() > 2 || s.dtype(at) != DType::F32 {
        return None;
    }
    let mut changes = Vec::new();
    let mut zero = None;
    let mut rounded = loop {
        if let ScalarNode::Unary(U::Round, x) = s.node(at) {
            break x;
        }
        if let Some((x, own)) = rounded_and_zero(s, at) {
            zero = Some(own);
            at = x;
            continue;
        }
        let (x, change) = change(s, at, whole)?;
        changes.push(change);
        at = x;
    };
    // Limits before the rounding are limits behind it, rounded.
    let nearest = |number: f64| whole(number.round_ties_even());
    while zero.is_none()
        && let Some((x, change @ (Change::NotBelow(_) | Change::NotAbove(_)))) = change(s, rounded, nearest)
    {
        changes.push(change);
        rounded = x;
    }
    let (mut added, mut low, mut high) = (0, -FAR, FAR);
    for change in changes.iter().rev() {
        match change {
            Change::Plus(number) => {
                added += number;
                low += number;
                high += number;
            }
            Change::NotBelow(number) => (low, high) = (low.max(*number), high.max(*number)),
            Change::NotAbove(number) => (low, high) = (low.min(*number), high.min(*number)),
        }
    }
    let (first, last) = dtype.integer_range(8 * dtype.size());
    let is_stored = low >= first as i64 && high <= last as i64;
    let most = if zero.is_some() { LARGEST_ZERO } else { 0 };
    if !is_stored || low - added - most <= ROUNDED.0 || high - added + most >= ROUNDED.1 {
        return None;
    }
    let number = |number: i64| ScalarTerm::Number(Literal::integer(DType::I32, number));
    let mut value = ScalarTerm::unary(U::RoundToInteger, rounded);
    if let Some(zero) = zero {
        value = ScalarTerm::binary(B::Add, value, ScalarTerm::cast(DType::I32, zero));
    }
    if added != 0 {
        value = ScalarTerm::binary(B::Add, value, number(added));
    }
    let raised = ScalarTerm::binary(B::Maximum, value, number(low));
    Some(ScalarTerm::cast(dtype, ScalarTerm::binary(B::Minimum, raised, number(high))))
}
