//! Patterns that several groups of rules look for.

use crate::rewrite::{Class, Match, Term, View};
use mlc_ir::Op;
use mlc_ir::ops::{Binary, Reshape};
use mlc_ir::scalar::BinaryFunction as B;

/// A convolution or matrix product over constant weights.
#[derive(Clone, Copy)]
pub(super) struct Layer<'a> {
    /// The operator.
    pub(super) op: &'a Op,
    /// Its input.
    pub(super) x: Class,
    /// Its weights.
    pub(super) weights: Class,
}

fn is_binary_with_constant(m: &Match<'_>, function: B) -> bool {
    matches!(m.op, Op::Binary(binary) if binary.function == function)
        && m.ty.dtype.is_float()
        && m.view.is_constant(m.operands[1])
        && !m.view.is_constant(m.operands[0])
        && m.operand_type(0) == m.ty
}

/// Whether the match is x * c of floats, c a constant that doesn't widen x.
pub(super) fn is_scale(m: &Match<'_>) -> bool {
    is_binary_with_constant(m, B::Multiply)
}

/// Whether the match is x + c of floats, c a constant that doesn't widen x.
pub(super) fn is_shift(m: &Match<'_>) -> bool {
    is_binary_with_constant(m, B::Add)
}

fn with_constant(m: &Match<'_>, k: usize, function: B) -> Vec<(Class, Class)> {
    let class = m.operands[k];
    let ty = m.view.ty(class);
    let found = m.inner(k).into_iter().filter_map(|inner| {
        let matches = matches!(inner.op, Op::Binary(Binary { function: own }) if *own == function)
            && ty.dtype.is_float()
            && m.view.is_constant(inner.operands[1])
            && m.view.ty(inner.operands[0]) == ty;
        matches.then(|| (inner.operands[0], inner.operands[1]))
    });
    found.collect()
}

/// The ways in which operand `k` is x * c of floats.
pub(super) fn scaled(m: &Match<'_>, k: usize) -> Vec<(Class, Class)> {
    with_constant(m, k, B::Multiply)
}

/// The ways in which operand `k` is x + c of floats.
pub(super) fn shifted(m: &Match<'_>, k: usize) -> Vec<(Class, Class)> {
    with_constant(m, k, B::Add)
}

/// A constant that varies along the last of `channels` elements only, as a vector of `channels` or 1 elements.
pub(super) fn per_channel(m: &Match<'_>, constant: Class, channels: usize) -> Option<(Term, usize)> {
    let extent = per_channel_extent(m.view, constant, channels)?;
    let vector = if m.view.ty(constant).rank() == 1 { constant.into() } else { reshaped(constant.into(), &[extent]) };
    Some((vector, extent))
}

/// The elements of a constant that varies along the last of `channels` elements only: `channels` or 1.
pub(super) fn per_channel_extent(view: &dyn View, constant: Class, channels: usize) -> Option<usize> {
    let shape = &view.ty(constant).shape;
    let extent = shape.last().copied().unwrap_or(1);
    let flat = shape.iter().product::<usize>() == extent && (extent == channels || extent == 1);
    flat.then_some(extent)
}

/// A term under another shape.
pub(super) fn reshaped(term: Term, shape: &[usize]) -> Term {
    Term::apply(Reshape { shape: shape.into() }, [term])
}
