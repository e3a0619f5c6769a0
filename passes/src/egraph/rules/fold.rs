//! Folding of scales, shifts and pads into the weights and fields of convolutions, matrix products and pools.

use super::pattern::{is_scale, per_channel, reshaped, scaled, shifted};
use crate::rewrite::{Application, Class, Match, Rule, Term};
use crate::sketch::{Sketch, average_pool, binary, max_pool, pad};
use mlc_ir::ops::{
    AveragePool, Binary, Broadcast, Convolution, Matmul, MaxPool, Pad, PadMode, Transpose, TransposedConvolution,
};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Generator, Graph, Literal, Op, OpKind, Value};

/// See the module.
pub const RULES: &[Rule] = &[
    Rule::reassociation(
        "fold-scale-into-convolution",
        "scaling an output channel scales its weights",
        &[OpKind::Binary],
        scale_into_convolution,
        |g| after_convolution(g, B::Multiply),
    ),
    Rule::reassociation(
        "fold-scale-into-transposed-convolution",
        "scaling an output channel scales its weights",
        &[OpKind::Binary],
        scale_into_transposed,
        sample_transposed,
    ),
    Rule::reassociation(
        "fold-scale-into-matmul",
        "scaling a column scales that column of the right factor",
        &[OpKind::Binary],
        scale_into_matmul,
        |g| after_matmul(g, B::Multiply),
    ),
    Rule::reassociation(
        "fold-input-scale-into-convolution",
        "scaling an input channel scales its weights; zero padding stays zero",
        &[OpKind::Convolution],
        input_scale_into_convolution,
        |g| before_convolution(g, B::Multiply, true),
    ),
    Rule::reassociation(
        "move-input-shift-behind-convolution",
        "without padding, shifting an input channel shifts all outputs alike",
        &[OpKind::Convolution],
        input_shift_behind_convolution,
        |g| before_convolution(g, B::Add, false),
    ),
    Rule::reassociation(
        "fold-input-scale-into-matmul",
        "scaling a column of the left factor scales that row of the right one",
        &[OpKind::Matmul],
        input_scale_into_matmul,
        |g| before_matmul(g, B::Multiply),
    ),
    Rule::reassociation(
        "move-input-shift-behind-matmul",
        "(x + b) w = x w + b w",
        &[OpKind::Matmul],
        input_shift_behind_matmul,
        |g| before_matmul(g, B::Add),
    ),
    Rule::finite(
        "fold-pad-into-convolution",
        "a convolution has a border of its own",
        &[OpKind::Convolution],
        pad_into_convolution,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.image();
            let x = s.input(&shape);
            let border = s.random.choose(&[0, 0, 0, -3, 2]);
            let padded = spatial_pad(&mut s, x, border as f64);
            let (op, weights) = s.convolution(&shape, true);
            let op = Convolution { border, ..op };
            let weights = s.constant(&weights);
            let y = s.apply(op, &[padded, weights]);
            s.finish(y)
        },
    ),
    Rule::exact(
        "fold-pad-into-max-pool",
        "padding of a maximum is never chosen",
        &[OpKind::MaxPool],
        pad_into_max_pool,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.image();
            let spatial = shape.len() - 2;
            let x = s.input(&shape);
            let padded = spatial_pad(&mut s, x, f64::NEG_INFINITY);
            let y = s.apply(max_pool(vec![2; spatial], vec![1; spatial], vec![(0, 0); spatial]), &[padded]);
            s.finish(y)
        },
    ),
    Rule::exact(
        "fold-pad-into-average-pool",
        "zeros that are elements are padding that counts",
        &[OpKind::AveragePool],
        pad_into_average_pool,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.image();
            let spatial = shape.len() - 2;
            let x = s.input(&shape);
            let padded = spatial_pad(&mut s, x, 0.0);
            let pads = vec![(s.random.range(0, 1), 1); spatial];
            let counted = if s.random.one_in(2) { pads.clone() } else { vec![(0, 0); spatial] };
            let y = s.apply(average_pool(vec![2; spatial], vec![1; spatial], pads, counted), &[padded]);
            s.finish(y)
        },
    ),
];

/// A constant that broadcasts to the shape, most often one number per channel.
fn channel_constant(s: &mut Sketch<'_>, shape: &[usize]) -> Value {
    let channels = shape[shape.len() - 1];
    match s.random.range(0, 4) {
        0 => s.constant(&[]),
        1 => s.constant(&[1, channels]),
        2 => s.constant(&vec![1; shape.len()]),
        _ => s.constant(&[channels]),
    }
}

fn after_convolution(g: &mut Generator, function: B) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.image();
    let (op, weights) = s.convolution(&shape, true);
    let x = s.input(&shape);
    let weights = s.constant(&weights);
    let y = s.apply(op, &[x, weights]);
    let shape = s.shape(y);
    let c = channel_constant(&mut s, &shape);
    let z = s.apply(binary(function), &[y, c]);
    s.finish(z)
}

fn before_convolution(g: &mut Generator, function: B, padded: bool) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.image();
    let (op, weights) = s.convolution(&shape, padded);
    let x = s.input(&shape);
    let c = channel_constant(&mut s, &shape);
    let y = s.apply(binary(function), &[x, c]);
    let weights = s.constant(&weights);
    let z = s.apply(op, &[y, weights]);
    s.finish(z)
}

fn sample_transposed(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.image();
    let spatial = shape.len() - 2;
    let channels = shape[spatial + 1];
    let groups = if channels.is_multiple_of(2) { s.random.range(1, 2) } else { 1 };
    let mut weights = vec![2; spatial];
    weights.extend([channels, s.random.range(1, 3)]);
    let op = TransposedConvolution {
        strides: vec![s.random.range(1, 2); spatial],
        dilations: vec![1; spatial],
        pads: vec![(0, s.random.range(0, 1)); spatial],
        output_pads: vec![0; spatial],
        groups,
        sums: None,
    };
    let x = s.input(&shape);
    let weights = s.constant(&weights);
    let y = s.apply(op, &[x, weights]);
    let shape = s.shape(y);
    let c = channel_constant(&mut s, &shape);
    let z = s.apply(binary(B::Multiply), &[y, c]);
    s.finish(z)
}

/// A left factor's shape, a matmul by constant weights, and their shape.
fn random_matmul(s: &mut Sketch<'_>) -> (Vec<usize>, Matmul, Vec<usize>) {
    let (inner, columns) = (s.random.range(1, 5), s.random.range(1, 5));
    let mut left = s.random_shape(1, 3);
    left.push(inner);
    let transpose_right = s.random.one_in(2);
    let weights = if transpose_right { vec![columns, inner] } else { vec![inner, columns] };
    (left, Matmul { transpose_left: false, transpose_right, sums: None }, weights)
}

fn after_matmul(g: &mut Generator, function: B) -> Graph {
    let mut s = Sketch::new(g);
    let (left, op, weights) = random_matmul(&mut s);
    let x = s.input(&left);
    let weights = s.constant(&weights);
    let y = s.apply(op, &[x, weights]);
    let shape = s.shape(y);
    let c = channel_constant(&mut s, &shape);
    let z = s.apply(binary(function), &[y, c]);
    s.finish(z)
}

fn before_matmul(g: &mut Generator, function: B) -> Graph {
    let mut s = Sketch::new(g);
    let (left, op, weights) = random_matmul(&mut s);
    let x = s.input(&left);
    let c = channel_constant(&mut s, &left);
    let y = s.apply(binary(function), &[x, c]);
    let weights = s.constant(&weights);
    let z = s.apply(op, &[y, weights]);
    s.finish(z)
}

fn spatial_pad(s: &mut Sketch<'_>, x: Value, value: f64) -> Value {
    let rank = s.shape(x).len();
    let mut pads = vec![(0, 0); rank];
    for pad in &mut pads[1..rank - 1] {
        *pad = (s.random.range(0, 2), s.random.range(0, 2));
    }
    s.apply(pad(pads, Literal::of(DType::F32, value)), &[x])
}

fn times(x: Term, y: Term) -> Term {
    Term::apply(Binary { function: B::Multiply }, [x, y])
}

/// The channels of the match's result.
fn channels(m: &Match<'_>) -> usize {
    m.ty.shape.last().copied().unwrap_or(1)
}

/// The ways in which the first operand is an operator over constant weights, which are of the type of the sums.
fn anchors<'a>(m: &Match<'a>, kind: OpKind) -> Vec<Application<'a>> {
    let fits = |weights: Class| m.view.is_constant(weights) && m.view.ty(weights).dtype == m.ty.dtype;
    m.inner(0).into_iter().filter(|inner| inner.op.kind() == kind && fits(inner.operands[1])).collect()
}

/// Whether the match's weights are constant, and of the type of its sums.
fn has_plain_weights(m: &Match<'_>) -> bool {
    m.view.is_constant(m.operands[1]) && m.operand_type(1).dtype == m.ty.dtype
}

fn scale_into_convolution(m: &Match<'_>) -> Vec<Term> {
    let Some((scale, _)) = per_channel_scale(m) else { return Vec::new() };
    let fold = |inner: &Application<'_>| {
        let weights = times(inner.operands[1].into(), scale.clone());
        Term::Apply(Box::new(inner.op.clone()), vec![inner.operands[0].into(), weights])
    };
    anchors(m, OpKind::Convolution).iter().map(fold).collect()
}

fn per_channel_scale(m: &Match<'_>) -> Option<(Term, usize)> {
    if m.ty.rank() == 0 || !is_scale(m) { None } else { per_channel(m, m.operands[1], channels(m)) }
}

fn scale_into_transposed(m: &Match<'_>) -> Vec<Term> {
    let Some((scale, extent)) = per_channel_scale(m) else { return Vec::new() };
    let mut terms = Vec::new();
    for inner in anchors(m, OpKind::TransposedConvolution) {
        let Op::TransposedConvolution(op) = inner.op else { continue };
        let weights = inner.operands[1];
        let scaled = if op.groups == 1 || extent == 1 {
            times(weights.into(), scale.clone())
        } else {
            let shape = &m.view.ty(weights).shape;
            let spatial = shape.len() - 2;
            let mut split = shape[..spatial].to_vec();
            split.extend([op.groups, shape[spatial] / op.groups, shape[spatial + 1]]);
            let factors = reshaped(scale.clone(), &[op.groups, 1, shape[spatial + 1]]);
            reshaped(times(reshaped(weights.into(), &split), factors), shape)
        };
        terms.push(Term::apply(op.clone(), [inner.operands[0].into(), scaled]));
    }
    terms
}

fn scale_into_matmul(m: &Match<'_>) -> Vec<Term> {
    let Some((scale, extent)) = per_channel_scale(m) else { return Vec::new() };
    let mut terms = Vec::new();
    for inner in anchors(m, OpKind::Matmul) {
        let Op::Matmul(op) = inner.op else { continue };
        let factors = if op.transpose_right { reshaped(scale.clone(), &[extent, 1]) } else { scale.clone() };
        terms.push(Term::apply(op.clone(), [inner.operands[0].into(), times(inner.operands[1].into(), factors)]));
    }
    terms
}

fn input_scale_into_convolution(m: &Match<'_>) -> Vec<Term> {
    let Op::Convolution(op) = m.op else { return Vec::new() };
    if !has_plain_weights(m) || op.border != 0 {
        return Vec::new();
    }
    let shape = &m.operand_type(1).shape;
    let spatial = shape.len() - 2;
    let (own, outputs) = (shape[spatial], shape[spatial + 1]);
    let mut terms = Vec::new();
    for (x, scale) in scaled(m, 0) {
        let Some((scale, extent)) = per_channel(m, scale, own * op.groups) else { continue };
        let factors = if extent == 1 {
            scale
        } else if op.groups == 1 {
            reshaped(scale, &[own, 1])
        } else {
            let columns = Term::apply(Transpose { permutation: vec![1, 0] }, [reshaped(scale, &[op.groups, own])]);
            let columns = reshaped(columns, &[own, op.groups, 1]);
            let repeated = Broadcast { shape: [own, op.groups, outputs / op.groups][..].into() };
            reshaped(Term::apply(repeated, [columns]), &[own, outputs])
        };
        terms.push(Term::apply(op.clone(), [x.into(), times(m.operands[1].into(), factors)]));
    }
    terms
}

fn input_shift_behind_convolution(m: &Match<'_>) -> Vec<Term> {
    let Op::Convolution(op) = m.op else { return Vec::new() };
    if !has_plain_weights(m) || op.pads.iter().any(|&pad| pad != (0, 0)) {
        return Vec::new();
    }
    let shape = &m.operand_type(1).shape;
    let spatial = shape.len() - 2;
    let mut window = vec![1];
    for axis in 0..spatial {
        window.push((shape[axis] - 1) * op.dilations[axis] + 1);
    }
    window.push(shape[spatial] * op.groups);
    let mut terms = Vec::new();
    for (x, shift) in shifted(m, 0) {
        let Some((shift, _)) = per_channel(m, shift, window[spatial + 1]) else { continue };
        let shifts = Term::apply(Broadcast { shape: window[..].into() }, [shift]);
        let moved = Term::apply(op.clone(), [shifts, m.operands[1].into()]);
        let result = Term::apply(op.clone(), [x.into(), m.operands[1].into()]);
        terms.push(Term::apply(Binary { function: B::Add }, [result, reshaped(moved, &[shape[spatial + 1]])]));
    }
    terms
}

fn input_scale_into_matmul(m: &Match<'_>) -> Vec<Term> {
    let Op::Matmul(op) = m.op else { return Vec::new() };
    if !has_plain_weights(m) || op.transpose_left {
        return Vec::new();
    }
    let inner = channels_of(m, 0);
    let mut terms = Vec::new();
    for (x, scale) in scaled(m, 0) {
        let Some((scale, extent)) = per_channel(m, scale, inner) else { continue };
        let factors = if op.transpose_right { scale } else { reshaped(scale, &[extent, 1]) };
        terms.push(Term::apply(op.clone(), [x.into(), times(m.operands[1].into(), factors)]));
    }
    terms
}

fn channels_of(m: &Match<'_>, k: usize) -> usize {
    m.operand_type(k).shape.last().copied().unwrap_or(1)
}

fn input_shift_behind_matmul(m: &Match<'_>) -> Vec<Term> {
    let Op::Matmul(op) = m.op else { return Vec::new() };
    if !has_plain_weights(m) || op.transpose_left || m.operand_type(1).rank() != 2 {
        return Vec::new();
    }
    let inner = channels_of(m, 0);
    let mut terms = Vec::new();
    for (x, shift) in shifted(m, 0) {
        let Some((shift, _)) = per_channel(m, shift, inner) else { continue };
        let row = Term::apply(Broadcast { shape: [1, inner][..].into() }, [shift]);
        let moved = Term::apply(op.clone(), [row, m.operands[1].into()]);
        let result = Term::apply(op.clone(), [x.into(), m.operands[1].into()]);
        terms.push(Term::apply(Binary { function: B::Add }, [result, reshaped(moved, &[channels(m)])]));
    }
    terms
}

/// Pads before and after each axis.
type Pads = Vec<(usize, usize)>;

/// The ways in which the first operand is padded with a constant along spatial axes only, as (x, pads of the spatial axes, the
/// constant).
fn padded_with_any(m: &Match<'_>) -> Vec<(Term, Pads, f64)> {
    let found = m.inner(0).into_iter().filter_map(|inner| {
        let Op::Pad(Pad { pads, mode: PadMode::Constant, value }) = inner.op else { return None };
        let [(0, 0), spatial @ .., (0, 0)] = &pads[..] else { return None };
        Some((inner.operands[0].into(), spatial.to_vec(), value.to_f64()))
    });
    found.collect()
}

/// Those of them where the constant `fits`.
fn spatially_padded(m: &Match<'_>, fits: fn(f64) -> bool) -> Vec<(Term, Vec<(usize, usize)>)> {
    let found = padded_with_any(m).into_iter().filter(|(.., value)| fits(*value));
    found.map(|(x, pads, _)| (x, pads)).collect()
}

fn sum(own: &[(usize, usize)], outer: &[(usize, usize)]) -> Vec<(usize, usize)> {
    own.iter().zip(outer).map(|(own, outer)| (own.0 + outer.0, own.1 + outer.1)).collect()
}

fn pad_into_convolution(m: &Match<'_>) -> Vec<Term> {
    let Op::Convolution(op) = m.op else { return Vec::new() };
    let is_bordered = op.pads.iter().any(|&pads| pads != (0, 0));
    let fold = |(x, pads, value): (Term, Pads, f64)| {
        let border = value as i64;
        let fits = border as f64 == value && (!is_bordered || border == op.border);
        fits.then(|| {
            let op = Convolution { pads: sum(&op.pads, &pads), border, ..op.clone() };
            Term::apply(op, [x, m.operands[1].into()])
        })
    };
    padded_with_any(m).into_iter().filter_map(fold).collect()
}

fn pad_into_max_pool(m: &Match<'_>) -> Vec<Term> {
    let Op::MaxPool(op) = m.op else { return Vec::new() };
    let fold =
        |(x, pads): (Term, Vec<(usize, usize)>)| Term::apply(MaxPool { pads: sum(&op.pads, &pads), ..op.clone() }, [x]);
    spatially_padded(m, |value| value == f64::NEG_INFINITY).into_iter().map(fold).collect()
}

fn pad_into_average_pool(m: &Match<'_>) -> Vec<Term> {
    let Op::AveragePool(op) = m.op else { return Vec::new() };
    let fold = |(x, pads): (Term, Vec<(usize, usize)>)| {
        let op = AveragePool { counted_pads: sum(&op.counted_pads, &pads), pads: sum(&op.pads, &pads), ..op.clone() };
        Term::apply(op, [x])
    };
    spatially_padded(m, |value| value == 0.0).into_iter().map(fold).collect()
}
