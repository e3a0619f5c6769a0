//! Sums of layers on one input are one layer: their weights add up, a window of one element as the tap it is.

use super::pattern::Layer;
use crate::rewrite::{Match, Rule, Term};
use crate::sketch::{Sketch, binary};
use mlc_ir::ops::{Binary, Convolution, Pad, PadMode};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{Generator, Graph, Literal, Op, OpKind, TensorType};

/// See the module.
pub const RULES: &[Rule] = &[
    Rule::reassociation("sum-sibling-layers", "x w + x v = x (w + v)", &[OpKind::Binary], sum_siblings, |g| {
        sample(g, false)
    }),
    Rule::reassociation(
        "sum-pointwise-sibling",
        "a window of one element is a larger window that is zero elsewhere",
        &[OpKind::Binary],
        sum_pointwise,
        |g| sample(g, true),
    ),
];

fn sample(g: &mut Generator, pointwise: bool) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.image();
    let (op, weights) = s.convolution(&shape, true);
    let x = s.input(&shape);
    let first = s.constant(&weights);
    let first = s.apply(op.clone(), &[x, first]);
    let (mut other, mut window) = (op, weights);
    if pointwise {
        let spatial = other.pads.len();
        window[..spatial].fill(1);
        other.pads.fill((0, 0));
    }
    let second = s.constant(&window);
    let second = s.apply(other, &[x, second]);
    let operands = if s.random.one_in(2) { [first, second] } else { [second, first] };
    let y = s.apply(binary(B::Add), &operands);
    s.finish(y)
}

/// The layers over constant weights that operand `k` is computed by.
fn layers<'a>(m: &Match<'a>, k: usize) -> Vec<Layer<'a>> {
    let inner = m.inner(k).into_iter().filter(|inner| matches!(inner.op, Op::Convolution(_) | Op::Matmul(_)));
    let constant = inner.filter(|inner| m.view.is_constant(inner.operands[1]));
    constant.map(|inner| Layer { op: inner.op, x: inner.operands[0], weights: inner.operands[1] }).collect()
}

/// Pairs of layers on one input whose sum the match is.
fn pairs<'a>(m: &Match<'a>) -> Vec<(Layer<'a>, Layer<'a>)> {
    let sum = matches!(m.op, Op::Binary(Binary { function: B::Add })) && m.ty.dtype.is_float();
    if !sum || m.operand_type(0) != m.operand_type(1) {
        return Vec::new();
    }
    let right = layers(m, 1);
    let pairs = layers(m, 0).into_iter().flat_map(|left| right.iter().map(move |&right| (left, right)));
    pairs.filter(|(left, right)| left.x == right.x).collect()
}

fn summed(layer: &Layer<'_>, other: Term) -> Term {
    let weights = Term::apply(Binary { function: B::Add }, [layer.weights.into(), other]);
    Term::Apply(Box::new(layer.op.clone()), vec![layer.x.into(), weights])
}

fn sum_siblings(m: &Match<'_>) -> Vec<Term> {
    let equal = |(left, right): &(Layer<'_>, Layer<'_>)| {
        left.op == right.op && m.view.ty(left.weights) == m.view.ty(right.weights)
    };
    pairs(m).iter().filter(|pair| equal(pair)).map(|(left, right)| summed(left, right.weights.into())).collect()
}

fn sum_pointwise(m: &Match<'_>) -> Vec<Term> {
    let mut terms = Vec::new();
    for (left, right) in pairs(m) {
        for (large, small) in [(left, right), (right, left)] {
            let types = (m.view.ty(large.weights), m.view.ty(small.weights));
            if let Some(pad) = enlargement(&large, &small, types) {
                terms.push(summed(&large, Term::apply(pad, [small.weights.into()])));
            }
        }
    }
    terms
}

/// The pad that makes the weights of a pointwise convolution those of a window, if its element is one of the taps.
fn enlargement(large: &Layer<'_>, small: &Layer<'_>, (to, from): (&TensorType, &TensorType)) -> Option<Pad> {
    let (Op::Convolution(large), Op::Convolution(small)) = (large.op, small.op) else { return None };
    let spatial = large.pads.len();
    let alike =
        |large: &Convolution, small: &Convolution| large.strides == small.strides && large.groups == small.groups;
    let pointwise = from.rank() == to.rank() && from.shape[..spatial].iter().all(|&taps| taps == 1);
    if !alike(large, small) || !pointwise || to.shape[..spatial] == from.shape[..spatial] {
        return None;
    }
    let mut pads = Vec::new();
    for axis in 0..spatial {
        let distance = large.pads[axis].0.checked_sub(small.pads[axis].0)?;
        let tap = distance / large.dilations[axis];
        let exact = distance.is_multiple_of(large.dilations[axis]);
        let after = to.shape[axis].checked_sub(tap + 1).filter(|_| exact)?;
        pads.push((tap, after));
    }
    pads.extend([(0, 0); 2]);
    Some(Pad { pads, mode: PadMode::Constant, value: Literal::of(to.dtype, 0.0) })
}
