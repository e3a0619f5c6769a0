//! Elementwise arithmetic, with integers as far as a quantisation behind it.

use super::real::{
    Real, binary, constant, is_narrow, one_integer, positive, quantisation, range, real, reals, scalar, steps,
};
use super::samples;
use crate::rewrite::{Application, Class, Match, Rule, Term, View};
use mlc_ir::ops::{Binary, Clamp, Constant, Convolution, Matmul, Reduce, ReduceFunction, Unary};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Float, Literal, Op, OpKind};

/// See the module.
pub(super) const RULES: &[Rule] = &[
    Rule::reassociation(
        "add-bias-to-integer-sums",
        "s x + s b = s (x + b), where no sum exceeds 32 bits",
        &[OpKind::Binary],
        add_bias,
        samples::bias,
    ),
    Rule::reassociation(
        "merge-factor-into-scale",
        "(s x) c = (s c) x, (s x) / c = (s / c) x",
        &[OpKind::Binary],
        merge_factor,
        samples::factor,
    ),
    Rule::reassociation(
        "divide-before-clamp",
        "clamp(s x) / c = clamp((s / c) x), between limits divided by c",
        &[OpKind::Binary],
        divide_before_clamp,
        samples::clamped,
    ),
    Rule::reassociation(
        "weighted-sum-of-integers",
        "(s x + t y) / c = (m x + n y) / 2^k, with s / c and t / c as multiples of 2^-k",
        &[OpKind::Binary],
        weighted_sum,
        samples::weighted_sum,
    ),
    Rule::reassociation("product-of-integers", "(s x) (t y) = s t (x y)", &[OpKind::Binary], product, samples::product),
    Rule::exact(
        "drop-quantisation-of-its-own-integers",
        "round(x - z) + z = x, within the type's range",
        &[OpKind::Map],
        drop_quantisation,
        samples::requantisation,
    ),
];

/// Bits of the sums, and of the fraction, at least and at most, of a weighted sum.
const SUM_BITS: i32 = 31;
const FRACTION_BITS: std::ops::RangeInclusive<i32> = 16..=30;

/// So many operators of integers, one behind the other, are looked at.
const DEPTH: u32 = 6;

/// The largest magnitude that integers may have, as far as their operators tell.
fn largest(view: &dyn View, class: Class, depth: u32) -> i64 {
    let (low, high) = range(view.ty(class).dtype);
    let of_type = high.max(-low);
    let Some(depth) = depth.checked_sub(1) else { return of_type };
    if let Some(known) = constant(view, class) {
        return known.to_tensor().to_integers().iter().map(|number| number.saturating_abs()).max().unwrap_or(0);
    }
    let of = |application: &Application<'_>| {
        let [x, y] = [0, 1].map(|k| application.operands.get(k).copied());
        match application.op {
            Op::Binary(Binary { function: B::Add | B::Subtract }) => {
                Some(largest(view, x?, depth) + largest(view, y?, depth))
            }
            Op::Binary(Binary { function: B::Multiply }) => {
                largest(view, x?, depth).checked_mul(largest(view, y?, depth))
            }
            Op::Unary(Unary { function: U::Relu | U::Negate }) | Op::Transpose(_) | Op::Reshape(_) => {
                Some(largest(view, x?, depth))
            }
            Op::Reduce(Reduce { function: ReduceFunction::Sum, .. }) => {
                let all = view.ty(x?).elements().checked_div(view.ty(class).elements())?;
                largest(view, x?, depth).checked_mul(all as i64)
            }
            Op::Cast(_) if view.ty(x?).dtype.is_integer() && view.ty(x?).dtype.size() <= 4 => {
                Some(largest(view, x?, depth))
            }
            Op::Convolution(Convolution { sums: Some(_), .. }) | Op::Matmul(Matmul { sums: Some(_), .. }) => {
                let (x, weights) = (x?, y?);
                let steps = steps(application.op, &view.ty(x).shape, &view.ty(weights).shape)?;
                largest(view, x, depth).checked_mul(largest(view, weights, depth))?.checked_mul(steps as i64)
            }
            _ => None,
        }
    };
    let found = view.applications(class).iter().filter_map(of).min();
    // What exceeds the type wraps.
    found.filter(|&found| found <= of_type).unwrap_or(of_type)
}

fn is(m: &Match<'_>, functions: &[B]) -> bool {
    matches!(m.op, Op::Binary(Binary { function }) if functions.contains(function))
}

/// Whether two lists of scales along one axis are the same, but for rounding.
fn agree(left: &[f64], right: &[f64]) -> bool {
    let extent = left.len().max(right.len());
    let at = |list: &[f64], index: usize| if list.len() == 1 { list[0] } else { list[index] };
    let fits = |list: &[f64]| list.len() == 1 || list.len() == extent;
    let alike = |index: usize| (at(left, index) / at(right, index) - 1.0).abs() <= f64::from(f32::EPSILON) * 4.0;
    fits(left) && fits(right) && (0..extent).all(alike)
}

/// Whether a scale is one number, or runs along the last axis.
fn runs_along_last(view: &dyn View, scale: Class) -> bool {
    let ty = view.ty(scale);
    ty.elements() == ty.shape.last().copied().unwrap_or(1)
}

fn add_bias(m: &Match<'_>) -> Vec<Term> {
    if !is(m, &[B::Add]) {
        return Vec::new();
    }
    let is_sum = |own: &Real| m.view.ty(own.integers).dtype == DType::I32 && runs_along_last(m.view, own.scale);
    let mut terms = Vec::new();
    for (sums, bias) in [(0, 1), (1, 0)] {
        if !m.view.is_constant(m.operands[bias]) || m.operand_type(sums) != m.ty {
            continue;
        }
        for own in reals(m.view, m.operands[sums]).into_iter().filter(is_sum) {
            for bias in reals(m.view, m.operands[bias]).into_iter().filter(is_sum) {
                let scales = own.scales(m.view).zip(bias.scales(m.view));
                let fits = scales.is_some_and(|(left, right)| agree(&left, &right));
                let sum = largest(m.view, own.integers, DEPTH) + largest(m.view, bias.integers, DEPTH);
                if fits && sum <= i64::from(i32::MAX) {
                    terms.push(real(with_bias(m, own.integers, bias.integers), own.scale.into(), None));
                }
            }
        }
    }
    terms
}

/// The sums with a bias, which is added to another constant if they have one already.
fn with_bias(m: &Match<'_>, sums: Class, bias: Class) -> Term {
    let corrected = m.view.applications(sums).into_iter().find_map(|inner| match (inner.op, inner.operands) {
        (Op::Binary(Binary { function: B::Add }), &[x, constant]) if m.view.is_constant(constant) => {
            (m.view.ty(x) == m.view.ty(sums)).then_some((x, constant))
        }
        _ => None,
    });
    match corrected {
        Some((x, constant)) => binary(B::Add, x.into(), binary(B::Add, constant.into(), bias.into())),
        None => binary(B::Add, sums.into(), bias.into()),
    }
}

/// The second operand, if it is one positive number that is neither very large nor very small.
fn divisor(m: &Match<'_>) -> Option<f64> {
    match positive(m.view, m.operands[1])?[..] {
        [number] if m.operand_type(0) == m.ty => Some(number),
        _ => None,
    }
}

fn merge_factor(m: &Match<'_>) -> Vec<Term> {
    let Op::Binary(Binary { function: function @ (B::Multiply | B::Divide) }) = *m.op else { return Vec::new() };
    if divisor(m).is_none() {
        return Vec::new();
    }
    let found = reals(m.view, m.operands[0]).into_iter().filter(|own| own.scales(m.view).is_some());
    let merged = found.map(|own| {
        let scale = binary(function, own.scale.into(), scalar(m.view, m.operands[1]));
        real(own.integers.into(), scale, own.zero.map(Term::from))
    });
    merged.collect()
}

/// The limits of an operator that does nothing else.
fn limits(op: &Op) -> Option<(f64, f64)> {
    match op {
        Op::Clamp(Clamp { low, high }) => Some((low.0, high.0)),
        Op::Unary(Unary { function: U::Relu }) => Some((0.0, f64::INFINITY)),
        Op::Unary(Unary { function: U::Relu6 }) => Some((0.0, 6.0)),
        _ => None,
    }
}

/// A term between limits that were divided by a number.
fn limited(term: Term, (low, high): (f64, f64), divisor: f64) -> Term {
    let quotient = |limit: f64| Float(f64::from(limit as f32 / divisor as f32));
    Term::apply(Clamp { low: quotient(low), high: quotient(high) }, [term])
}

fn divide_before_clamp(m: &Match<'_>) -> Vec<Term> {
    let Some(divisor) = divisor(m).filter(|_| is(m, &[B::Divide])) else { return Vec::new() };
    let mut terms = Vec::new();
    for inner in m.inner(0) {
        let (Some(limits), Some(&x)) = (limits(inner.op), inner.operands.first()) else { continue };
        for own in reals(m.view, x).into_iter().filter(|own| own.scales(m.view).is_some()) {
            let scale = binary(B::Divide, own.scale.into(), scalar(m.view, m.operands[1]));
            let quotient = real(own.integers.into(), scale, own.zero.map(Term::from));
            terms.push(limited(quotient, limits, divisor));
        }
    }
    terms
}

/// Two values that are added up, and the limits between which their sum is.
type Sum = ([Class; 2], Option<(f64, f64)>);

/// The sums that the first operand is.
fn sums(m: &Match<'_>) -> Vec<Sum> {
    let pair = |inner: &Application<'_>| match (inner.op, inner.operands) {
        (Op::Binary(Binary { function: B::Add }), &[x, y]) => Some([x, y]),
        _ => None,
    };
    let mut found = Vec::new();
    for inner in m.inner(0) {
        found.extend(pair(&inner).map(|pair| (pair, None)));
        if let (Some(limits), Some(&x)) = (limits(inner.op), inner.operands.first()) {
            let pairs = m.view.applications(x);
            found.extend(pairs.iter().filter_map(pair).map(|pair| (pair, Some(limits))));
        }
    }
    found
}

fn weighted_sum(m: &Match<'_>) -> Vec<Term> {
    let Some(divisor) = divisor(m).filter(|_| is(m, &[B::Divide])) else { return Vec::new() };
    let mut terms = Vec::new();
    for ([x, y], limits) in sums(m) {
        for x in reals(m.view, x) {
            for y in reals(m.view, y) {
                let Some(sum) = sum_of(m.view, [x, y], divisor) else { continue };
                terms.push(match limits {
                    Some(limits) => limited(sum, limits, divisor),
                    None => sum,
                });
            }
        }
    }
    terms
}

/// The sum of two tensors of bytes, over a divisor.
fn sum_of(view: &dyn View, terms: [Real; 2], divisor: f64) -> Option<Term> {
    let mut factors = [0.0; 2];
    for (factor, own) in factors.iter_mut().zip(&terms) {
        let is_byte = view.ty(own.integers).dtype.is_byte() && own.is_uniform(view);
        *factor = own.one_scale(view).filter(|_| is_byte)? / divisor;
    }
    let sum: f64 = factors.iter().zip(&terms).map(|(factor, own)| factor * own.largest(view) as f64).sum();
    // Factors are rounded to multiples, by a half at most: so much less than the bits of the sums are taken.
    let fraction = (SUM_BITS - 1 - sum.log2().ceil() as i32).min(*FRACTION_BITS.end());
    if !FRACTION_BITS.contains(&fraction) {
        return None;
    }
    let [x, y] = [0, 1].map(|k| {
        let multiple = (factors[k] * 2f64.powi(fraction)).round() as i64;
        let multiple = Constant { value: Literal::integer(DType::I32, multiple).to_attribute() };
        binary(B::Multiply, terms[k].centred(), Term::apply(multiple, []))
    });
    let scale = Constant { value: Literal::float(DType::F32, 2f64.powi(-fraction)).to_attribute() };
    Some(real(binary(B::Add, x, y), Term::apply(scale, []), None))
}

fn product(m: &Match<'_>) -> Vec<Term> {
    if !is(m, &[B::Multiply]) {
        return Vec::new();
    }
    let is_byte = |own: &Real| m.view.ty(own.integers).dtype.is_byte() && own.one_scale(m.view).is_some();
    let mut terms = Vec::new();
    for x in reals(m.view, m.operands[0]).into_iter().filter(is_byte) {
        for y in reals(m.view, m.operands[1]).into_iter().filter(is_byte) {
            let scale = binary(B::Multiply, scalar(m.view, x.scale), scalar(m.view, y.scale));
            terms.push(real(binary(B::Multiply, x.centred(), y.centred()), scale, None));
        }
    }
    terms
}

fn drop_quantisation(m: &Match<'_>) -> Vec<Term> {
    let Op::Map(map) = m.op else { return Vec::new() };
    let zero = m.operands.get(1).copied();
    if !is_narrow(m.ty.dtype) || *map != quantisation(m.ty.dtype, zero.is_some()) {
        return Vec::new();
    }
    let zero = match zero {
        Some(zero) => one_integer(m.view, zero),
        None => Some(0),
    };
    let is_own = |own: &Real| {
        let known = own.zero_number(m.view);
        own.one_scale(m.view) == Some(1.0) && known.is_some() && known == zero && m.view.ty(own.integers) == m.ty
    };
    reals(m.view, m.operands[0]).into_iter().filter(is_own).map(|own| own.integers.into()).collect()
}
