//! What only moves or compares elements does so with integers, before they are converted.

use super::real::{Real, binary, is_narrow, real, reals, reshaped, scalar};
use super::samples;
use crate::rewrite::{Application, Class, Match, Rule, Term};
use mlc_ir::ops::{Binary, Cast, Concat, MaxPool, Pad, PadMode, Transpose, Unary};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Literal, Op, OpKind};

/// See the module.
pub(super) const RULES: &[Rule] = &[
    Rule::exact(
        "move-dequantisation-behind-movement",
        "elements are converted one by one, wherever they are",
        &[OpKind::Pad, OpKind::Reshape, OpKind::Slice, OpKind::Transpose],
        behind_movement,
        samples::movement,
    ),
    Rule::exact(
        "move-zero-point-behind-movement",
        "elements are widened, and less their zero point, wherever they are",
        &[OpKind::Reshape, OpKind::Slice, OpKind::Transpose],
        centred_behind_movement,
        samples::centred_movement,
    ),
    Rule::exact(
        "move-dequantisation-behind-concat",
        "elements are converted one by one, alike in all parts",
        &[OpKind::Concat],
        behind_concat,
        samples::concat_of,
    ),
    Rule::exact(
        "move-dequantisation-behind-max-pool",
        "a positive scale keeps the order of numbers",
        &[OpKind::MaxPool],
        behind_max_pool,
        samples::max_pool_of,
    ),
    Rule::exact(
        "move-dequantisation-behind-relu",
        "a positive scale keeps signs, and the zero point stands for 0",
        &[OpKind::Unary],
        behind_relu,
        samples::relu,
    ),
];

/// A scale or a zero point of the moved integers, which have so many axes.
fn moved(m: &Match<'_>, parameter: Class, rank: usize) -> Option<Term> {
    let ty = m.view.ty(parameter);
    if ty.elements() == 1 {
        return Some(scalar(m.view, parameter));
    }
    let Op::Transpose(Transpose { permutation }) = m.op else { return None };
    let mut shape = vec![1; rank - ty.rank()];
    shape.extend(ty.shape.iter());
    Some(Term::apply(Transpose { permutation: permutation.clone() }, [reshaped(parameter.into(), &shape)]))
}

/// The operator, of integers instead of real numbers.
fn of_integers(m: &Match<'_>, own: &Real) -> Option<Op> {
    let Op::Pad(Pad { pads, mode, value }) = m.op else { return Some(m.op.clone()) };
    if *mode == PadMode::Constant && value.to_f64() != 0.0 {
        return None;
    }
    let value = Literal::integer(m.view.ty(own.integers).dtype, own.zero_number(m.view)?);
    // Where 0 is padded, the scale must not make it anything else.
    own.one_scale(m.view)?;
    Some(Pad { pads: pads.clone(), mode: *mode, value }.into())
}

fn behind_movement(m: &Match<'_>) -> Vec<Term> {
    let rank = m.operand_type(0).rank();
    let terms = reals(m.view, m.operands[0]).into_iter().filter_map(|own| {
        let op = of_integers(m, &own)?;
        let scale = moved(m, own.scale, rank)?;
        let zero = match own.zero {
            Some(zero) => Some(moved(m, zero, rank)?),
            None => None,
        };
        Some(real(Term::apply(op, [own.integers.into()]), scale, zero))
    });
    terms.collect()
}

fn centred_behind_movement(m: &Match<'_>) -> Vec<Term> {
    let (rank, wide) = (m.operand_type(0).rank(), DType::I32);
    if m.ty.dtype != wide {
        return Vec::new();
    }
    let terms = m.inner(0).into_iter().filter_map(|inner| match (inner.op, inner.operands) {
        (Op::Cast(cast), &[x]) if is_narrow(m.view.ty(x).dtype) => {
            Some(Term::apply(cast.clone(), [Term::Apply(Box::new(m.op.clone()), vec![x.into()])]))
        }
        (Op::Binary(Binary { function: B::Subtract }), &[x, zero]) if m.view.ty(x) == m.operand_type(0) => {
            let is_wide = |inner: &Application<'_>| matches!(inner.op, Op::Cast(Cast { dtype }) if *dtype == wide);
            let zero = m.view.applications(x).iter().any(is_wide).then(|| moved(m, zero, rank))??;
            Some(binary(B::Subtract, Term::Apply(Box::new(m.op.clone()), vec![x.into()]), zero))
        }
        _ => None,
    });
    terms.collect()
}

fn behind_concat(m: &Match<'_>) -> Vec<Term> {
    let Op::Concat(Concat { axis }) = m.op else { return Vec::new() };
    let parts: Option<Vec<Real>> =
        m.operands.iter().map(|&operand| reals(m.view, operand).into_iter().next()).collect();
    let Some(parts) = parts else { return Vec::new() };
    let key = |part: &Real| {
        let dtype = m.view.ty(part.integers).dtype;
        Some((part.one_scale(m.view)?.to_bits(), part.zero_number(m.view)?, part.zero.is_some(), dtype))
    };
    let Some(first) = parts.first().filter(|first| key(first).is_some()) else { return Vec::new() };
    if parts.iter().any(|part| key(part) != key(first)) {
        return Vec::new();
    }
    let joined = Term::apply(Concat { axis: *axis }, parts.iter().map(|part| part.integers.into()));
    vec![real(joined, scalar(m.view, first.scale), first.zero.map(|zero| scalar(m.view, zero)))]
}

/// Where each window has an element of the image.
fn behind_max_pool(m: &Match<'_>) -> Vec<Term> {
    let Op::MaxPool(MaxPool { window, dilations, pads, .. }) = m.op else { return Vec::new() };
    let is_filled = pads.iter().zip(window).all(|(pad, &taps)| pad.0 < taps && pad.1 < taps);
    let is_dense = dilations.iter().all(|&dilation| dilation == 1) || pads.iter().all(|&pad| pad == (0, 0));
    let terms = reals(m.view, m.operands[0])
        .into_iter()
        .filter(|own| own.one_scale(m.view).is_some() && own.zero_number(m.view).is_some() && is_filled && is_dense);
    let pooled = terms.map(|own| {
        let integers = Term::apply(m.op.clone(), [own.integers.into()]);
        real(integers, scalar(m.view, own.scale), own.zero.map(|zero| scalar(m.view, zero)))
    });
    pooled.collect()
}

fn behind_relu(m: &Match<'_>) -> Vec<Term> {
    if !matches!(m.op, Op::Unary(Unary { function: U::Relu })) {
        return Vec::new();
    }
    let terms = reals(m.view, m.operands[0]).into_iter().filter(|own| own.scales(m.view).is_some());
    let limited = terms.map(|own| {
        let integers = match own.zero {
            Some(zero) => binary(B::Maximum, own.integers.into(), zero.into()),
            None => Term::apply(Unary { function: U::Relu }, [own.integers.into()]),
        };
        real(integers, own.scale.into(), own.zero.map(Term::from))
    });
    limited.collect()
}
