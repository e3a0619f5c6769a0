//! Transposes sink below reshapes that split and join neighbouring axes, as channel shuffles and attention heads do.
//!
//! A reshape pairs runs of axes before with runs of axes after. Whole runs can be permuted after the reshape as well as
//! before it; only the order within a run must be right before.

use super::layout::transposed;
use super::pattern::reshaped;
use crate::rewrite::{Match, Rule, Term};
use crate::sketch::{Sketch, reshape, transpose};
use mlc_ir::ops::Transpose;
use mlc_ir::{Generator, Graph, OpKind};
use std::ops::Range;

/// See the module.
pub const RULES: &[Rule] = &[Rule::exact(
    "sink-transpose-below-reshape",
    "runs of axes that a reshape keeps together can be permuted behind it",
    &[OpKind::Reshape],
    sink_below_reshape,
    sample,
)];

/// The shortest runs of axes of equal extent before and after, in order; `None` for tensors without elements.
fn runs(before: &[usize], after: &[usize]) -> Option<Vec<(Range<usize>, Range<usize>)>> {
    if before.contains(&0) || after.contains(&0) {
        return None;
    }
    let mut runs: Vec<(Range<usize>, Range<usize>)> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < before.len() && j < after.len() {
        let (first_i, first_j) = (i, j);
        let (mut left, mut right) = (before[i], after[j]);
        (i, j) = (i + 1, j + 1);
        while left != right {
            if left < right {
                left *= before.get(i)?;
                i += 1;
            } else {
                right *= after.get(j)?;
                j += 1;
            }
        }
        runs.push((first_i..i, first_j..j));
    }
    let last = runs.last_mut()?;
    last.0.end = before.len();
    last.1.end = after.len();
    Some(runs)
}

fn sink_below_reshape(m: &Match<'_>) -> Vec<Term> {
    let Some(runs) = runs(&m.operand_type(0).shape, &m.ty.shape) else { return Vec::new() };
    let mut terms = Vec::new();
    for (x, permutation) in transposed(m, 0) {
        let mut order: Vec<usize> = (0..runs.len()).collect();
        order.sort_by_key(|&run| permutation[runs[run].0.clone()].iter().min().copied());
        if order.iter().copied().eq(0..runs.len()) {
            continue;
        }
        let inner: Vec<usize> =
            order.iter().flat_map(|&run| permutation[runs[run].0.clone()].iter().copied()).collect();
        let shape: Vec<usize> = order.iter().flat_map(|&run| m.ty.shape[runs[run].1.clone()].iter().copied()).collect();
        let placed: Vec<usize> = order.iter().flat_map(|&run| runs[run].1.clone()).collect();
        let mut outer = vec![0; placed.len()];
        placed.iter().enumerate().for_each(|(position, &axis)| outer[axis] = position);
        let identity = inner.iter().copied().eq(0..inner.len());
        let ordered = if identity { x.into() } else { Term::apply(Transpose { permutation: inner }, [x.into()]) };
        terms.push(Term::apply(Transpose { permutation: outer }, [reshaped(ordered, &shape)]));
    }
    terms
}

fn sample(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let pairs: Vec<(usize, usize)> = (0..3).map(|_| (s.random.range(1, 3), s.random.range(1, 3))).collect();
    let split = s.random.one_in(2);
    let joined: Vec<usize> = pairs.iter().map(|(left, right)| left * right).collect();
    let parted: Vec<usize> = pairs.iter().flat_map(|&(left, right)| [left, right]).collect();
    let (before, after) = if split { (joined, parted) } else { (parted, joined) };
    let permutation = s.permutation(before.len());
    let mut shape = vec![0; before.len()];
    permutation.iter().zip(&before).for_each(|(&axis, &extent)| shape[axis] = extent);
    let x = s.input(&shape);
    let turned = s.apply(transpose(&permutation), &[x]);
    let y = s.apply(reshape(&after), &[turned]);
    s.finish(y)
}
