//! Canonical rules of scalars, in expressions and among elementwise operators alike.

use crate::canonicalise::scalars::{KINDS, ScalarTerm, Scalars, rewrites};
use crate::rewrite::Rule;
use mlc_ir::scalar::{
    BinaryFunction as B, Expression, Scalar, ScalarId, ScalarNode, UnaryFunction as U, evaluate_scalar,
};
use mlc_ir::{DType, Literal};

pub(super) mod samples;

use samples::{FLOATS, NUMBERS, sample};

/// See the module.
pub(super) const RULES: &[Rule] = &[
    Rule::exact(
        "drop-zero-shift",
        "x + 0 = x - 0 = x",
        KINDS,
        |m| rewrites(m, drop_zero_shift),
        |g| {
            sample(g, NUMBERS, |b, g, dtype| {
                let (x, zero) = (b.operand(0), b.number(dtype, 0.0));
                let function = g.choose(&[B::Add, B::Subtract]);
                if function == B::Add && g.one_in(2) {
                    b.binary(function, zero, x)
                } else {
                    b.binary(function, x, zero)
                }
            })
        },
    ),
    Rule::exact(
        "drop-unit-factor",
        "x * 1 = x / 1 = x^1 = x",
        KINDS,
        |m| rewrites(m, drop_unit_factor),
        |g| {
            sample(g, NUMBERS, |b, g, dtype| {
                let (x, one) = (b.operand(0), b.number(dtype, 1.0));
                let function = g.choose(&[B::Multiply, B::Divide, B::Power]);
                if function == B::Multiply && g.one_in(2) {
                    b.binary(function, one, x)
                } else {
                    b.binary(function, x, one)
                }
            })
        },
    ),
    Rule::exact(
        "negative-unit-factor-as-negation",
        "x * -1 = x / -1 = 0 - x = -x",
        KINDS,
        |m| rewrites(m, negate_unit_factor),
        |g| {
            sample(g, &[DType::F32, DType::F16, DType::I32], |b, g, dtype| {
                let (x, minus_one, zero) = (b.operand(0), b.number(dtype, -1.0), b.number(dtype, 0.0));
                match g.range(0, 3) {
                    0 => b.binary(B::Multiply, minus_one, x),
                    1 => b.binary(B::Multiply, x, minus_one),
                    2 => b.binary(B::Divide, x, minus_one),
                    _ => b.binary(B::Subtract, zero, x),
                }
            })
        },
    ),
    Rule::exact(
        "division-by-power-of-two-as-product",
        "x / 2^k = x * 2^-k: both are rounded once",
        KINDS,
        |m| rewrites(m, divide_by_power_of_two),
        |g| {
            sample(g, FLOATS, |b, g, dtype| {
                let number = g.choose(&[0.125, 0.5, 2.0, -4.0, 8.0]);
                let (x, number) = (b.operand(0), b.number(dtype, number));
                b.binary(B::Divide, x, number)
            })
        },
    ),
    Rule::reassociation(
        "power-of-number-as-products-or-roots",
        "x^2 = x * x, x^0.5 = sqrt(x), x^-1 = 1 / x, and what they make up",
        KINDS,
        |m| rewrites(m, power_of_number),
        |g| {
            sample(g, FLOATS, |b, g, dtype| {
                let exponent = g.choose(&[2.0, 2.0, 3.0, 4.0, 0.5, -1.0]);
                let (x, exponent) = (b.operand(0), b.number(dtype, exponent));
                b.binary(B::Power, x, exponent)
            })
        },
    ),
    Rule::exact(
        "cancel-double-negation",
        "-(-x) = x, not not x = x",
        KINDS,
        |m| rewrites(m, cancel_double),
        |g| {
            sample(g, NUMBERS, |b, g, dtype| {
                let function = if dtype.is_float() || g.one_in(2) { U::Negate } else { U::Not };
                let x = b.operand(0);
                let once = b.unary(function, x);
                b.unary(function, once)
            })
        },
    ),
    Rule::exact(
        "drop-sign-below-even-function",
        "f(-x) = f(|x|) = f(x) for an even function f",
        KINDS,
        |m| rewrites(m, drop_sign),
        |g| {
            sample(g, FLOATS, |b, g, _| {
                let (sign, even) = (g.choose(&[U::Negate, U::Absolute]), g.choose(EVEN));
                let x = b.operand(0);
                let signed = b.unary(sign, x);
                b.unary(even, signed)
            })
        },
    ),
    Rule::exact(
        "drop-repeated-function",
        "f(f(x)) = f(x) for a projection f",
        KINDS,
        |m| rewrites(m, drop_repeated),
        |g| {
            sample(g, NUMBERS, |b, g, _| {
                let function = g.choose(PROJECTIONS);
                let x = b.operand(0);
                let once = b.unary(function, x);
                b.unary(function, once)
            })
        },
    ),
    Rule::exact(
        "drop-identity-cast",
        "a cast to the same type does nothing",
        KINDS,
        |m| rewrites(m, drop_cast),
        |g| {
            sample(g, NUMBERS, |b, _, dtype| {
                let x = b.operand(0);
                b.cast(dtype, x)
            })
        },
    ),
    Rule::exact(
        "merge-casts",
        "a cast after a lossless cast is one cast",
        KINDS,
        |m| rewrites(m, merge_casts),
        |g| {
            sample(g, &[DType::F32, DType::I8, DType::U8, DType::F16], |b, g, dtype| {
                let through = match dtype {
                    DType::F16 => DType::F32,
                    DType::F32 => DType::F64,
                    DType::I8 => DType::I32,
                    _ => DType::I16,
                };
                let x = b.operand(0);
                let wide = b.cast(through, x);
                let to = g.choose(&[DType::F32, DType::I8, DType::I64, DType::F16]);
                b.cast(to, wide)
            })
        },
    ),
    Rule::exact(
        "drop-equal-selection",
        "select(c, x, x) = x",
        KINDS,
        |m| rewrites(m, drop_equal_selection),
        |g| {
            sample(g, NUMBERS, |b, _, dtype| {
                let (x, zero) = (b.operand(0), b.number(dtype, 0.0));
                let condition = b.binary(B::Less, x, zero);
                b.select(condition, x, x)
            })
        },
    ),
    Rule::exact(
        "drop-known-selection",
        "select(true, x, y) = x, select(false, x, y) = y",
        KINDS,
        |m| rewrites(m, drop_known_selection),
        |g| {
            sample(g, NUMBERS, |b, g, _| {
                let known = b.number(DType::Bool, g.range(0, 1) as f64);
                let (x, y) = (b.operand(0), b.operand(1));
                b.select(known, x, y)
            })
        },
    ),
    Rule::exact(
        "turn-negated-selection",
        "select(not c, x, y) = select(c, y, x)",
        KINDS,
        |m| rewrites(m, turn_selection),
        |g| {
            sample(g, NUMBERS, |b, _, dtype| {
                let (x, y, zero) = (b.operand(0), b.operand(1), b.number(dtype, 0.0));
                let condition = b.binary(B::LessEqual, x, zero);
                let negated = b.unary(U::Not, condition);
                b.select(negated, x, y)
            })
        },
    ),
    Rule::exact(
        "self-comparison-as-truth",
        "x = x, x <= x and x >= x hold for integers, the others don't",
        KINDS,
        |m| rewrites(m, compare_with_itself),
        |g| {
            sample(g, &[DType::I32, DType::I8, DType::U8], |b, g, _| {
                let (x, y, function) = (b.operand(0), b.operand(1), g.choose(COMPARISONS));
                let truth = b.binary(function, x, x);
                b.select(truth, x, y)
            })
        },
    ),
    Rule::exact(
        "range-end-comparison-as-truth",
        "no integer is beyond the ends of its type's range",
        KINDS,
        |m| rewrites(m, compare_with_range_end),
        |g| {
            sample(g, &[DType::I32, DType::I8, DType::U8], |b, g, dtype| {
                let (x, y, (low, high)) = (b.operand(0), b.operand(1), dtype.integer_range(8 * dtype.size()));
                let is_low = g.one_in(2);
                let end = b.number(dtype, if is_low { low } else { high });
                let (within, beyond) = if is_low { (B::GreaterEqual, B::Less) } else { (B::LessEqual, B::Greater) };
                let truth = b.binary(if g.one_in(2) { within } else { beyond }, x, end);
                b.select(truth, x, y)
            })
        },
    ),
    Rule::exact(
        "compute-numbers",
        "a function of numbers is a number",
        KINDS,
        |m| rewrites(m, compute),
        |g| {
            sample(g, FLOATS, |b, g, dtype| {
                let (left, right) = (g.unit(), g.unit() + 2.5);
                let (x, left, right) = (b.operand(0), b.number(dtype, left), b.number(dtype, right));
                let number = if g.one_in(2) { b.binary(B::Divide, left, right) } else { b.unary(U::Sqrt, right) };
                b.binary(B::Multiply, x, number)
            })
        },
    ),
    Rule::reassociation(
        "sigmoid-product-as-silu",
        "x * sigmoid(x) = silu(x)",
        KINDS,
        |m| rewrites(m, sigmoid_product),
        |g| {
            sample(g, FLOATS, |b, g, _| {
                let x = b.operand(0);
                let gate = b.unary(U::Sigmoid, x);
                if g.one_in(2) { b.binary(B::Multiply, x, gate) } else { b.binary(B::Multiply, gate, x) }
            })
        },
    ),
];

/// Functions for which f(f(x)) = f(x).
const PROJECTIONS: &[U] = &[U::Absolute, U::Relu, U::Relu6, U::Ceil, U::Floor, U::Round, U::Truncate, U::Sign];
/// Functions whose result is a truth value.
const COMPARISONS: &[B] = &[B::Equal, B::NotEqual, B::Less, B::LessEqual, B::Greater, B::GreaterEqual];
/// Functions for which f(-x) = f(x).
const EVEN: &[U] = &[U::Absolute, U::Square, U::Cos, U::Cosh];

/// The operands of a binary function, if the root is one of these.
fn binary(s: &Scalars<'_>, functions: &[B]) -> Option<(B, ScalarId, ScalarId)> {
    match s.root().0 {
        ScalarNode::Binary(function, x, y) if functions.contains(&function) => Some((function, x, y)),
        _ => None,
    }
}

/// The operand of a unary function, if the root is one.
fn unary(s: &Scalars<'_>) -> Option<(U, ScalarId)> {
    match s.root().0 {
        ScalarNode::Unary(function, x) => Some((function, x)),
        _ => None,
    }
}

/// The other operand where one is a number that does nothing: the right one, or the left one of a commutative function.
fn without(s: &Scalars<'_>, functions: &[B], number: f64) -> Option<ScalarId> {
    let (function, x, y) = binary(s, functions)?;
    if s.is_number(y, number) {
        return Some(x);
    }
    (function.is_commutative() && s.is_number(x, number)).then_some(y)
}

fn drop_zero_shift(s: &Scalars<'_>) -> Option<ScalarTerm> {
    without(s, &[B::Add, B::Subtract], 0.0).map(ScalarTerm::Step)
}

fn drop_unit_factor(s: &Scalars<'_>) -> Option<ScalarTerm> {
    without(s, &[B::Multiply, B::Divide, B::Power], 1.0).map(ScalarTerm::Step)
}

fn negate_unit_factor(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let negative = || without(s, &[B::Multiply, B::Divide], -1.0);
    let from_zero = || binary(s, &[B::Subtract]).filter(|&(_, x, _)| s.is_number(x, 0.0)).map(|(_, _, y)| y);
    Some(ScalarTerm::unary(U::Negate, negative().or_else(from_zero)?))
}

fn divide_by_power_of_two(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let (_, x, y) = binary(s, &[B::Divide])?;
    let number = s.literal(y).filter(|number| number.is_normal() && is_power_of_two(number.to_f64()))?;
    let reciprocal = Literal::float(number.dtype(), 1.0 / number.to_f64());
    reciprocal.is_normal().then(|| ScalarTerm::binary(B::Multiply, x, ScalarTerm::Number(reciprocal)))
}

/// Whether a normal number is a power of two, or its negative: it has no digit but the first.
fn is_power_of_two(number: f64) -> bool {
    number.to_bits() & ((1 << 52) - 1) == 0
}

fn power_of_number(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let (_, x, exponent) = binary(s, &[B::Power])?;
    let exponent = s.literal(exponent).filter(|literal| literal.dtype().is_float())?.to_f64();
    let square = || ScalarTerm::unary(U::Square, x);
    Some(match exponent {
        2.0 => square(),
        3.0 => ScalarTerm::binary(B::Multiply, square(), x),
        4.0 => ScalarTerm::unary(U::Square, square()),
        0.5 => ScalarTerm::unary(U::Sqrt, x),
        -1.0 => ScalarTerm::unary(U::Reciprocal, x),
        _ => return None,
    })
}

fn cancel_double(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let (function, inner) = unary(s)?;
    match s.node(inner) {
        ScalarNode::Unary(below, x) if below == function && matches!(function, U::Negate | U::Not) => Some(x.into()),
        _ => None,
    }
}

fn drop_sign(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let (function, inner) = unary(s)?;
    match s.node(inner) {
        ScalarNode::Unary(U::Negate | U::Absolute, x) if EVEN.contains(&function) && s.dtype(x).is_float() => {
            Some(ScalarTerm::unary(function, x))
        }
        _ => None,
    }
}

fn drop_repeated(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let (function, inner) = unary(s)?;
    let repeated = matches!(s.node(inner), ScalarNode::Unary(below, _) if below == function);
    (repeated && PROJECTIONS.contains(&function)).then_some(inner.into())
}

fn drop_cast(s: &Scalars<'_>) -> Option<ScalarTerm> {
    match s.root().0 {
        ScalarNode::Cast(dtype, x) if s.dtype(x) == dtype => Some(x.into()),
        _ => None,
    }
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

fn merge_casts(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let ScalarNode::Cast(to, inner) = s.root().0 else { return None };
    match s.node(inner) {
        ScalarNode::Cast(through, x) if is_lossless(s.dtype(x), through) => Some(ScalarTerm::cast(to, x)),
        _ => None,
    }
}

fn drop_equal_selection(s: &Scalars<'_>) -> Option<ScalarTerm> {
    match s.root().0 {
        ScalarNode::Select(_, x, y) if x == y => Some(x.into()),
        _ => None,
    }
}

fn drop_known_selection(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let ScalarNode::Select(c, x, y) = s.root().0 else { return None };
    let known = s.literal(c)?;
    Some(if known.to_f64() != 0.0 { x.into() } else { y.into() })
}

fn turn_selection(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let ScalarNode::Select(c, x, y) = s.root().0 else { return None };
    match s.node(c) {
        ScalarNode::Unary(U::Not, c) => Some(ScalarTerm::Select(c, y, x)),
        _ => None,
    }
}

fn compare_with_itself(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let (function, x, y) = binary(s, COMPARISONS)?;
    let truth = matches!(function, B::Equal | B::LessEqual | B::GreaterEqual);
    let known = x == y && !s.dtype(x).is_float();
    known.then(|| ScalarTerm::Number(Literal::integer(DType::Bool, i64::from(truth))))
}

fn compare_with_range_end(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let (function, x, end) = binary(s, &[B::Less, B::LessEqual, B::Greater, B::GreaterEqual])?;
    let dtype = s.dtype(x);
    let end = s.literal(end).filter(|_| dtype.is_integer() && dtype.size() <= 4)?.to_f64();
    let (low, high) = dtype.integer_range(8 * dtype.size());
    let truth = match function {
        B::GreaterEqual if end == low => true,
        B::Less if end == low => false,
        B::LessEqual if end == high => true,
        B::Greater if end == high => false,
        _ => return None,
    };
    Some(ScalarTerm::Number(Literal::integer(DType::Bool, i64::from(truth))))
}

fn compute(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let (root, dtype) = s.root();
    let children: Vec<Literal> = root.children().map(|child| s.literal(child)).collect::<Option<_>>()?;
    if children.is_empty() {
        return None;
    }
    let mut operands = 0..children.len() as u32;
    let function = Expression::build(|b| {
        let node = root.map_children(|_| b.operand(operands.next().unwrap_or_default()));
        b.push(node)
    });
    let dtypes = function.dtypes(&children.iter().map(|literal| literal.dtype()).collect::<Vec<_>>()).ok()?;
    let scalars: Vec<Scalar> = children.iter().map(|&literal| literal.into()).collect();
    Some(ScalarTerm::Number(evaluate_scalar(&function, &dtypes, &scalars, &mut Vec::new()).literal(dtype)))
}

fn sigmoid_product(s: &Scalars<'_>) -> Option<ScalarTerm> {
    let (_, x, y) = binary(s, &[B::Multiply])?;
    let gated = |x: ScalarId, gate: ScalarId| s.node(gate) == ScalarNode::Unary(U::Sigmoid, x);
    let x = if gated(x, y) { x } else { Some(y).filter(|&y| gated(y, x))? };
    Some(ScalarTerm::unary(U::Silu, x))
}
