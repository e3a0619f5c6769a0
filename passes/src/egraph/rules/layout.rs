//! Layout: transposes sink towards the outputs, where they meet their inverses, enter matrix products or reach the rim.
//!
//! `transpose` with permutation p makes axis i of the result from axis p[i] of its operand x. An operator over transposed
//! operands becomes a transpose of the operator over the operands, its axes renumbered by p.

use super::pattern::{per_channel, reshaped};
use crate::canonicalise::rules::moves_unit_axes_only;
use crate::rewrite::{Class, Match, Rule, Term};
use crate::sketch::{Sketch, binary, reshape, transpose, unary};
use mlc_ir::ops::{Constant, Matmul, Transpose};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Category, DType, Generator, Graph, Op, OpKind};

/// See the module.
pub const RULES: &[Rule] = &[
    Rule::exact(
        "absorb-transpose-into-matmul",
        "a matrix product reads its factors transposed",
        &[OpKind::Matmul],
        absorb_into_matmul,
        |g| {
            let mut s = Sketch::new(g);
            let (op, left, right) = s.matmul();
            let x = s.input(&left);
            let y = s.input(&right);
            let swapped = swap_last(left.len());
            let turned = s.apply(transpose(&swapped), &[x]);
            let z = s.apply(Matmul { transpose_left: !op.transpose_left, ..op }, &[turned, y]);
            s.finish(z)
        },
    ),
    Rule::exact("transpose-of-matmul-as-matmul", "(a b)' = b' a'", &[OpKind::Transpose], transpose_of_matmul, |g| {
        let mut s = Sketch::new(g);
        let (op, left, right) = s.matmul();
        let x = s.input(&left);
        let y = s.input(&right);
        let z = s.apply(op, &[x, y]);
        let swapped = swap_last(s.shape(z).len());
        let w = s.apply(transpose(&swapped), &[z]);
        s.finish(w)
    }),
    Rule::reassociation(
        "fold-transpose-into-linear-weights",
        "the order of flattened features is the order of the weights' rows",
        &[OpKind::Matmul],
        fold_into_linear,
        sample_linear,
    ),
];

/// Transposes and reshapes sink below elementwise operators, so that these meet the anchors behind.
pub const ELEMENTWISE_RULES: &[Rule] = &[
    Rule::exact(
        "sink-transpose-below-elementwise",
        "an elementwise operator doesn't care for the order of axes",
        OpKind::ELEMENTWISE,
        sink_below_elementwise,
        sample_elementwise,
    ),
    Rule::exact(
        "sink-reshape-below-elementwise",
        "an elementwise operator doesn't care for the shape, where its operands agree on it",
        OpKind::ELEMENTWISE,
        sink_reshape,
        sample_reshape,
    ),
];

/// The ways in which operand `k` is a transpose, as (x, permutation).
pub(super) fn transposed<'a>(m: &Match<'a>, k: usize) -> Vec<(Class, &'a [usize])> {
    let found = m.inner(k).into_iter().filter_map(|inner| match inner.op {
        Op::Transpose(transpose) => Some((inner.operands[0], &transpose.permutation[..])),
        _ => None,
    });
    found.collect()
}

fn inverse(permutation: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; permutation.len()];
    permutation.iter().enumerate().for_each(|(axis, &from)| inverse[from] = axis);
    inverse
}

/// Operand `k` in the axes before a transpose: its own inner value, or a rearranged constant or leaf.
fn untransposed(m: &Match<'_>, k: usize, permutation: &[usize]) -> Option<Term> {
    let class = m.operands[k];
    if let Some((x, _)) = transposed(m, k).into_iter().find(|(_, own)| *own == permutation) {
        return Some(x.into());
    }
    let ty = m.view.ty(class);
    if ty.elements() == 1 && ty.rank() <= permutation.len() {
        return Some(reshaped(class.into(), &vec![1; ty.rank()]));
    }
    let missing = permutation.len().checked_sub(ty.rank())?;
    let mut shape = vec![1; missing];
    shape.extend_from_slice(&ty.shape);
    let back = inverse(permutation);
    let aligned = if missing == 0 { class.into() } else { reshaped(class.into(), &shape) };
    if moves_unit_axes_only(&back, &shape) {
        let moved: Vec<usize> = back.iter().map(|&axis| shape[axis]).collect();
        return Some(reshaped(class.into(), &moved));
    }
    let leaf = m.inner(k).iter().all(|inner| inner.op.category() == Category::Source);
    (leaf || m.view.is_constant(class)).then(|| Term::apply(Transpose { permutation: back }, [aligned]))
}

fn sink_below_elementwise(m: &Match<'_>) -> Vec<Term> {
    let mut terms = Vec::new();
    let mut seen: Vec<&[usize]> = Vec::new();
    for k in 0..m.operands.len() {
        for (_, permutation) in transposed(m, k) {
            if permutation.len() != m.ty.rank() || seen.contains(&permutation) {
                continue;
            }
            seen.push(permutation);
            let operands: Option<Vec<Term>> =
                (0..m.operands.len()).map(|other| untransposed(m, other, permutation)).collect();
            if let Some(operands) = operands {
                let below = Term::Apply(Box::new(m.op.clone()), operands);
                terms.push(Term::apply(Transpose { permutation: permutation.to_vec() }, [below]));
            }
        }
    }
    terms
}

fn swap_last(rank: usize) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..rank).collect();
    axes.swap(rank - 1, rank - 2);
    axes
}

fn absorb_into_matmul(m: &Match<'_>) -> Vec<Term> {
    let Op::Matmul(op) = m.op else { return Vec::new() };
    let mut terms = Vec::new();
    for k in 0..2 {
        for (x, permutation) in transposed(m, k) {
            if permutation != swap_last(permutation.len()) {
                continue;
            }
            let (left, right) = (k == 0, k == 1);
            let flipped = Matmul {
                transpose_left: op.transpose_left != left,
                transpose_right: op.transpose_right != right,
                ..op.clone()
            };
            let mut operands = [m.operands[0], m.operands[1]];
            operands[k] = x;
            terms.push(Term::apply(flipped, operands.map(Term::from)));
        }
    }
    terms
}

fn transpose_of_matmul(m: &Match<'_>) -> Vec<Term> {
    let Op::Transpose(transpose) = m.op else { return Vec::new() };
    if m.ty.rank() < 2 || transpose.permutation != swap_last(m.ty.rank()) {
        return Vec::new();
    }
    let swapped = m.inner(0).into_iter().filter_map(|inner| {
        let Op::Matmul(op) = inner.op else { return None };
        let swapped = Matmul { transpose_left: !op.transpose_right, transpose_right: !op.transpose_left, ..op.clone() };
        Some(Term::apply(swapped, [inner.operands[1].into(), inner.operands[0].into()]))
    });
    swapped.collect()
}

/// A flattened transpose as (x, x's shape, the permutation, number of leading axes that stay).
fn flattened_transpose(m: &Match<'_>) -> Vec<(Class, Vec<usize>, Vec<usize>, usize)> {
    let mut found = Vec::new();
    for flat in m.inner(0) {
        if !matches!(flat.op, Op::Reshape(_)) {
            continue;
        }
        let lead = m.operand_type(0).rank() - 1;
        let moved = m.view.ty(flat.operands[0]);
        if moved.rank() <= lead || moved.shape[..lead] != m.operand_type(0).shape[..lead] {
            continue;
        }
        for inner in m.view.applications(flat.operands[0]) {
            let Op::Transpose(transpose) = inner.op else { continue };
            let stays = transpose.permutation[..lead].iter().copied().eq(0..lead);
            let shape = m.view.ty(inner.operands[0]).shape.to_vec();
            if stays && !moves_unit_axes_only(&transpose.permutation, &shape) {
                found.push((inner.operands[0], shape, transpose.permutation.clone(), lead));
            }
        }
    }
    found
}

fn fold_into_linear(m: &Match<'_>) -> Vec<Term> {
    let Op::Matmul(op) = m.op else { return Vec::new() };
    if op.transpose_left || !m.view.is_constant(m.operands[1]) || m.operand_type(1).rank() != 2 {
        return Vec::new();
    }
    let weights = &m.operand_type(1).shape;
    let found = flattened_transpose(m).into_iter().map(|(x, shape, permutation, lead)| {
        let features = permutation.len() - lead;
        let moved: Vec<usize> = permutation[lead..].iter().map(|&axis| shape[axis]).collect();
        let own: Vec<usize> = permutation[lead..].iter().map(|&axis| axis - lead).collect();
        let back = inverse(&own);
        let (mut split, order): (Vec<usize>, Vec<usize>) = if op.transpose_right {
            (vec![weights[0]], std::iter::once(0).chain(back.iter().map(|&axis| axis + 1)).collect())
        } else {
            (Vec::new(), back.iter().copied().chain([features]).collect())
        };
        split.extend(&moved);
        if !op.transpose_right {
            split.push(weights[1]);
        }
        let rows = Term::apply(Transpose { permutation: order }, [reshaped(m.operands[1].into(), &split)]);
        let flat = reshaped(x.into(), &m.operand_type(0).shape);
        Term::apply(op.clone(), [flat, reshaped(rows, weights)])
    });
    found.collect()
}

fn sink_reshape(m: &Match<'_>) -> Vec<Term> {
    let Some(from) = (0..m.operands.len()).find_map(|k| reshape_source(m, k)) else { return Vec::new() };
    let shape = m.view.ty(from).shape.clone();
    let same_channels = shape.last().is_some() && shape.last() == m.ty.shape.last();
    let operand = |k: usize| -> Option<Term> {
        if let Some(literal) = m.view.splat(m.operands[k]) {
            return Some(Term::apply(Constant { value: literal.to_attribute() }, []));
        }
        if m.view.is_constant(m.operands[k]) {
            let (vector, _) = per_channel(m, m.operands[k], *m.ty.shape.last()?)?;
            return same_channels.then_some(vector);
        }
        let inner = m.inner(k);
        let agreed = inner.iter().filter(|inner| matches!(inner.op, Op::Reshape(_)));
        let mut agreed = agreed.filter(|inner| m.view.ty(inner.operands[0]).shape == shape);
        (m.operand_type(k).shape == m.ty.shape).then(|| agreed.next().map(|inner| inner.operands[0].into()))?
    };
    let operands: Option<Vec<Term>> = (0..m.operands.len()).map(operand).collect();
    operands.map(|operands| reshaped(Term::Apply(Box::new(m.op.clone()), operands), &m.ty.shape)).into_iter().collect()
}

/// The value that operand `k` is a reshape of, when it has the result's shape.
fn reshape_source(m: &Match<'_>, k: usize) -> Option<Class> {
    if m.operand_type(k).shape != m.ty.shape {
        return None;
    }
    let inner = m.inner(k);
    inner.iter().find(|inner| matches!(inner.op, Op::Reshape(_))).map(|inner| inner.operands[0])
}

fn sample_elementwise(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(2, 4);
    let permutation = s.permutation(shape.len());
    let x = s.input(&shape);
    let turned = s.apply(transpose(&permutation), &[x]);
    let wide = s.shape(turned);
    let y = match s.random.range(0, 4) {
        0 => s.apply(unary(U::Tanh), &[turned]),
        1 => {
            let other = s.input(&shape);
            let other = s.apply(transpose(&permutation), &[other]);
            s.apply(binary(B::Subtract), &[turned, other])
        }
        2 => {
            let narrower = s.random.broadcastable(&wide);
            let c = s.constant(&narrower);
            s.apply(binary(B::Multiply), &[turned, c])
        }
        3 => {
            let other = s.input(&wide);
            s.apply(binary(B::Subtract), &[other, turned])
        }
        _ => {
            let condition = s.input_of(DType::Bool, &wide);
            let c = s.constant(&[]);
            s.apply(mlc_ir::ops::Select {}, &[condition, turned, c])
        }
    };
    s.finish(y)
}

fn sample_linear(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape: Vec<usize> = (0..4).map(|_| s.random.range(1, 3)).collect();
    let order = s.permutation(3);
    let permutation: Vec<usize> = std::iter::once(0).chain(order.iter().map(|&axis| axis + 1)).collect();
    let x = s.input(&shape);
    let turned = s.apply(transpose(&permutation), &[x]);
    let features = shape[1..].iter().product();
    let flat = s.apply(reshape(&[shape[0], features]), &[turned]);
    let transpose_right = s.random.one_in(2);
    let outputs = s.random.range(1, 4);
    let weights = if transpose_right { [outputs, features] } else { [features, outputs] };
    let weights = s.constant(&weights);
    let y = s.apply(Matmul { transpose_left: false, transpose_right, sums: None }, &[flat, weights]);
    s.finish(y)
}

fn sample_reshape(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(2, 4);
    let channels = shape[shape.len() - 1];
    let flat = [shape[..shape.len() - 1].iter().product(), channels];
    let x = s.input(&shape);
    let x = s.apply(reshape(&flat), &[x]);
    let y = match s.random.range(0, 2) {
        0 => {
            let bias = s.constant(&[channels]);
            s.apply(binary(B::Add), &[x, bias])
        }
        1 => {
            let scale = s.splat(DType::F32, &[1, 1], 0.125);
            s.apply(binary(B::Multiply), &[x, scale])
        }
        _ => {
            let other = s.input(&shape);
            let other = s.apply(reshape(&flat), &[other]);
            s.apply(binary(B::Subtract), &[other, x])
        }
    };
    s.finish(y)
}
