//! Rules without one of their conditions. Their own samplers draw only what satisfies it, the corpus tells them apart.

use super::{check_corpus, check_samples, corpus};
use crate::rewrite::{Find, Match, Rule, Search, Term};
use crate::sketch::{Sketch, transpose};
use mlc_ir::ops::{Binary, Cast, Clamp, Unary};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Category, Float, Op};

/// f(c, x) = f(x, c), whether f is commutative or not.
fn order_any_operands(m: &Match<'_>) -> Vec<Term> {
    if !matches!(m.op, Op::Binary(_)) || !m.view.is_constant(m.operands[0]) {
        return Vec::new();
    }
    vec![Term::Apply(Box::new(m.op.clone()), vec![m.operands[1].into(), m.operands[0].into()])]
}

/// x + c = x, whether c is 0 or not.
fn drop_any_shift(m: &Match<'_>) -> Vec<Term> {
    let shift = matches!(m.op, Op::Binary(Binary { function: B::Add | B::Subtract }));
    let drops = shift && m.operand_type(0) == m.ty && m.view.is_constant(m.operands[1]);
    if drops { vec![m.operands[0].into()] } else { Vec::new() }
}

/// f(f(x)) = f(x), whatever f is.
fn drop_any_repeated(m: &Match<'_>) -> Vec<Term> {
    let repeated = m.inner(0).iter().any(|inner| inner.op == m.op);
    if repeated { vec![m.operands[0].into()] } else { Vec::new() }
}

/// A cast after a cast is one cast, whether the first one loses something or not.
fn merge_any_casts(m: &Match<'_>) -> Vec<Term> {
    let Op::Cast(Cast { dtype }) = m.op else { return Vec::new() };
    let inner = m.inner(0);
    let casts = inner.iter().filter(|inner| matches!(inner.op, Op::Cast(_)));
    casts.map(|inner| Term::apply(Cast { dtype: *dtype }, [inner.operands[0].into()])).collect()
}

/// max(x, c) is a clamp, also of integers.
fn extremum_of_any_type(m: &Match<'_>) -> Vec<Term> {
    let (Op::Binary(Binary { function: B::Maximum }), Some(number)) = (m.op, m.view.splat(m.operands[1])) else {
        return Vec::new();
    };
    let clamp = Clamp { low: Float(number.to_f64()), high: Float(f64::INFINITY) };
    vec![Term::apply(clamp, [m.operands[0].into()])]
}

/// A slice that keeps the type does nothing, whatever its steps are.
fn drop_any_slice(m: &Match<'_>) -> Vec<Term> {
    if m.operand_type(0) == m.ty { vec![m.operands[0].into()] } else { Vec::new() }
}

/// A shift before a convolution goes behind it, whether the convolution pads or not.
fn shift_behind_any_convolution(m: &Match<'_>) -> Vec<Term> {
    let Op::Convolution(op) = m.op else { return Vec::new() };
    let mut terms = Vec::new();
    for inner in m.inner(0) {
        let shifts = matches!(inner.op, Op::Binary(Binary { function: B::Add }));
        if !shifts || m.view.ty(inner.operands[1]).elements() != 1 || !m.view.is_constant(m.operands[1]) {
            continue;
        }
        let mut shape = m.operand_type(0).shape.clone();
        shape[0] = 1;
        let shift = Term::apply(mlc_ir::ops::Broadcast { shape }, [inner.operands[1].into()]);
        let moved = Term::apply(op.clone(), [shift, m.operands[1].into()]);
        let unpadded = Term::apply(op.clone(), [inner.operands[0].into(), m.operands[1].into()]);
        // The shift of the middle is taken for that of every place.
        let first = crate::sketch::slice(&m.ty.shape, 1, 0, 1);
        terms.push(Term::apply(Binary { function: B::Add }, [unpadded, Term::apply(first, [moved])]));
    }
    terms
}

/// x * sigmoid(y) = silu(x), whether x is y or not.
fn silu_of_any_gate(m: &Match<'_>) -> Vec<Term> {
    let product = matches!(m.op, Op::Binary(Binary { function: B::Multiply }));
    let gate = |op: &Op| matches!(op, Op::Unary(Unary { function: U::Sigmoid }));
    let gated = product && m.view.applications(m.operands[1]).iter().any(|inner| gate(inner.op));
    if gated { vec![Term::apply(Unary { function: U::Silu }, [m.operands[0].into()])] } else { Vec::new() }
}

/// A transpose before an operator of one operand goes behind it, whether that looks at axes or not.
fn sink_transpose_below_anything(m: &Match<'_>) -> Vec<Term> {
    if m.op.category() == Category::Movement || m.operands.len() != 1 {
        return Vec::new();
    }
    let below = |op: &Op, x| Term::apply(op.clone(), [Term::Apply(Box::new(m.op.clone()), vec![x])]);
    let inner = m.inner(0);
    let transposes = inner.iter().filter(|inner| matches!(inner.op, Op::Transpose(_)));
    transposes.map(|inner| below(inner.op, inner.operands[0].into())).collect()
}

/// Rules by name, and what is left of them without a condition.
const WITHOUT: &[(&str, Find)] = &[
    ("order-commutative-operands", order_any_operands),
    ("drop-zero-shift", drop_any_shift),
    ("drop-repeated-function", drop_any_repeated),
    ("merge-casts", merge_any_casts),
    ("extremum-as-clamp", extremum_of_any_type),
    ("drop-full-slice", drop_any_slice),
    ("move-input-shift-behind-convolution", shift_behind_any_convolution),
    ("sigmoid-product-as-silu", silu_of_any_gate),
    ("sink-transpose-below-normalization", sink_transpose_below_anything),
];

#[test]
fn the_samples_of_a_rule_do_not_show_that_a_condition_is_missing() {
    let mut rule = *crate::canonicalise::rules::all().iter().find(|rule| rule.name == "drop-full-slice").unwrap();
    rule.search = Search::Each(&[mlc_ir::OpKind::Slice], drop_any_slice);
    assert!(check_samples(&rule).is_ok());
}

#[test]
fn a_rule_without_one_of_its_conditions_is_caught() {
    let rules = crate::pipeline::all_rules();
    let corpus = corpus::graphs(&rules);
    for &(name, find) in WITHOUT {
        let mut rule: Rule = *rules.iter().find(|rule| rule.name == name).unwrap();
        let Search::Each(kinds, _) = rule.search else { panic!("{name} looks at groups") };
        rule.search = Search::Each(kinds, find);
        let found = check_corpus(&[rule], &corpus);
        assert!(found.is_err(), "nothing tells {name} without its condition from the rule");
    }
}

#[test]
fn samples_that_leave_a_mutant_alive_are_refused() {
    let mut rule = *crate::canonicalise::rules::all().iter().find(|rule| rule.name == "compose-transposes").unwrap();
    rule.sample = |g| {
        let mut s = Sketch::new(g);
        let x = s.input(&[2, 2]);
        let y = s.apply(transpose(&[1, 0]), &[x]);
        let z = s.apply(transpose(&[0, 1]), &[y]);
        s.finish(z)
    };
    assert!(check_samples(&rule).is_ok());
    rule.sample = |g| {
        let mut s = Sketch::new(g);
        let x = s.input(&[1, 2]);
        let y = s.apply(transpose(&[0, 1]), &[x]);
        let z = s.apply(transpose(&[0, 1]), &[y]);
        s.finish(z)
    };
    let refused = check_samples(&rule).unwrap_err();
    assert!(refused.contains("another value"), "{refused}");
}
