//! Transposes sink below operators that work along axes, whose numbers change.

use super::layout::transposed;
use crate::rewrite::{Class, Match, Rule, Term};
use crate::sketch::{Sketch, concat, pad, slice, transpose, unary};
use mlc_ir::ops::{
    ArgFunction, ArgReduce, Concat, Cumulative, CumulativeFunction, Normalize, Pad, Reduce, ReduceFunction, Resize,
    ResizeCoordinates, ResizeMode, Slice, Softmax, Transpose,
};
use mlc_ir::scalar::UnaryFunction;
use mlc_ir::{DType, Float, Generator, Graph, Literal, Op, OpKind};

/// See the module.
pub const RULES: &[Rule] = &[
    Rule::exact(
        "sink-transpose-below-normalization",
        "an operator along axes works along the same axes before the transpose",
        &[OpKind::Softmax, OpKind::Normalize, OpKind::Cumulative],
        sink_below_normalization,
        |g| {
            sample(g, |g, shape| match g.range(0, 2) {
                0 => Softmax { axis: g.range(0, shape.len() - 1), logarithm: g.one_in(2) }.into(),
                1 => Normalize { axes: vec![g.range(0, shape.len() - 1)], epsilon: Float(0.001), center: g.one_in(2) }
                    .into(),
                _ => Cumulative {
                    function: CumulativeFunction::Sum,
                    axis: g.range(0, shape.len() - 1),
                    exclusive: g.one_in(2),
                    reverse: g.one_in(2),
                }
                .into(),
            })
        },
    ),
    Rule::reassociation(
        "sink-transpose-below-reduction",
        "a reduction over axes is one over the same axes before the transpose",
        &[OpKind::Reduce, OpKind::ArgReduce],
        sink_below_reduction,
        |g| {
            sample(g, |g, shape| {
                let axis = g.range(0, shape.len() - 1);
                let keep = g.one_in(2);
                if g.one_in(3) {
                    return ArgReduce { function: ArgFunction::Maximum, axis, keep_axis: keep, last: g.one_in(2) }
                        .into();
                }
                let axes = (0..shape.len()).filter(|&other| other == axis || g.one_in(3)).collect();
                let function = g.choose(&[ReduceFunction::Sum, ReduceFunction::Maximum, ReduceFunction::Mean]);
                Reduce { function, axes, keep_axes: keep }.into()
            })
        },
    ),
    Rule::exact("sink-transpose-below-pad", "each axis keeps its pads", &[OpKind::Pad], sink_below_pad, |g| {
        sample(g, |g, shape| {
            let pads = shape.iter().map(|_| (g.range(0, 2), g.range(0, 2))).collect();
            pad(pads, Literal::of(DType::F32, 0.5))
        })
    }),
    Rule::exact("sink-transpose-below-slice", "each axis keeps its cut", &[OpKind::Slice], sink_below_slice, |g| {
        sample(g, |g, shape| {
            let axis = g.range(0, shape.len() - 1);
            let size = g.range(1, shape[axis]);
            slice(shape, axis, g.range(0, shape[axis] - size), size)
        })
    }),
    Rule::exact(
        "sink-transpose-below-resize",
        "each axis keeps its scale",
        &[OpKind::Resize],
        sink_below_resize,
        |g| {
            sample(g, |g, shape| {
                let first = g.range(0, shape.len() - 1);
                let axes: Vec<usize> = (0..shape.len()).filter(|&axis| axis == first || g.one_in(3)).collect();
                let sizes: Vec<usize> = axes.iter().map(|&axis| shape[axis] * g.range(1, 2)).collect();
                let ratios =
                    axes.iter().zip(&sizes).map(|(&axis, &size)| Float(shape[axis] as f64 / size as f64)).collect();
                let mode = g.choose(&[ResizeMode::Nearest, ResizeMode::Linear]);
                Resize { axes, sizes, ratios, mode, coordinates: ResizeCoordinates::HalfPixel }.into()
            })
        },
    ),
    Rule::exact(
        "sink-transpose-below-concat",
        "joining equally transposed tensors joins along the axis before",
        &[OpKind::Concat],
        sink_below_concat,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.random_shape(2, 4);
            let permutation = s.permutation(shape.len());
            let turned: Vec<_> = (0..3)
                .map(|_| {
                    let x = s.input(&shape);
                    s.apply(transpose(&permutation), &[x])
                })
                .collect();
            let axis = s.random.range(0, shape.len() - 1);
            let y = s.apply(concat(axis), &turned);
            s.finish(y)
        },
    ),
];

/// The operator that `make` gives for the shape of a random transposed input, applied to it.
fn sample(g: &mut Generator, make: fn(&mut Generator, &[usize]) -> Op) -> Graph {
    let mut s = Sketch::new(g);
    let mut shape = s.random_shape(2, 4);
    if s.random.one_in(4) {
        // The type doesn't tell the axes apart.
        shape.fill(2);
    }
    let permutation = s.permutation(shape.len());
    let mut x = s.input(&shape);
    if s.random.one_in(2) {
        // Some elements are equal.
        x = s.apply(unary(UnaryFunction::Round), &[x]);
    }
    let turned = s.apply(transpose(&permutation), &[x]);
    let wide = s.shape(turned);
    let op = make(s.random, &wide);
    let y = s.apply(op, &[turned]);
    s.finish(y)
}

/// For each way in which the operand is a transpose: the term that `below` builds from (x, permutation).
fn sink(m: &Match<'_>, below: impl Fn(Class, &[usize]) -> Option<Term>) -> Vec<Term> {
    transposed(m, 0).into_iter().filter_map(|(x, permutation)| below(x, permutation)).collect()
}

fn lifted(op: impl Into<Op>, x: Class, permutation: Vec<usize>) -> Option<Term> {
    Some(Term::apply(Transpose { permutation }, [Term::apply(op, [x.into()])]))
}

fn sorted(axes: &[usize], permutation: &[usize]) -> Vec<usize> {
    let mut moved: Vec<usize> = axes.iter().map(|&axis| permutation[axis]).collect();
    moved.sort_unstable();
    moved
}

fn sink_below_normalization(m: &Match<'_>) -> Vec<Term> {
    sink(m, |x, permutation| {
        let op: Op = match m.op {
            Op::Softmax(op) => Softmax { axis: permutation[op.axis], ..op.clone() }.into(),
            Op::Normalize(op) => Normalize { axes: sorted(&op.axes, permutation), ..op.clone() }.into(),
            Op::Cumulative(op) => Cumulative { axis: permutation[op.axis], ..op.clone() }.into(),
            _ => return None,
        };
        lifted(op, x, permutation.to_vec())
    })
}

fn sink_below_reduction(m: &Match<'_>) -> Vec<Term> {
    sink(m, |x, permutation| {
        let (op, axes, keep): (Op, Vec<usize>, bool) = match m.op {
            Op::Reduce(op) => {
                let axes = sorted(&op.axes, permutation);
                (Reduce { axes: axes.clone(), ..op.clone() }.into(), axes, op.keep_axes)
            }
            Op::ArgReduce(op) => {
                let axis = permutation[op.axis];
                (ArgReduce { axis, ..op.clone() }.into(), vec![axis], op.keep_axis)
            }
            _ => return None,
        };
        if keep {
            return lifted(op, x, permutation.to_vec());
        }
        let kept = permutation.iter().filter(|axis| !axes.contains(axis));
        let rank = |axis: usize| (0..axis).filter(|other| !axes.contains(other)).count();
        lifted(op, x, kept.map(|&axis| rank(axis)).collect())
    })
}

/// Entries per axis of the result, in the order of the axes before the transpose.
fn moved<T: Copy>(entries: &[T], permutation: &[usize]) -> Vec<T> {
    let mut moved = entries.to_vec();
    permutation.iter().zip(entries).for_each(|(&axis, &entry)| moved[axis] = entry);
    moved
}

fn sink_below_pad(m: &Match<'_>) -> Vec<Term> {
    let Op::Pad(op) = m.op else { return Vec::new() };
    sink(m, |x, permutation| lifted(Pad { pads: moved(&op.pads, permutation), ..op.clone() }, x, permutation.to_vec()))
}

fn sink_below_slice(m: &Match<'_>) -> Vec<Term> {
    let Op::Slice(op) = m.op else { return Vec::new() };
    sink(m, |x, permutation| {
        let slice = Slice {
            starts: moved(&op.starts, permutation),
            sizes: moved(&op.sizes, permutation),
            steps: moved(&op.steps, permutation),
        };
        lifted(slice, x, permutation.to_vec())
    })
}

fn sink_below_resize(m: &Match<'_>) -> Vec<Term> {
    let Op::Resize(op) = m.op else { return Vec::new() };
    sink(m, |x, permutation| {
        let mut order: Vec<usize> = (0..op.axes.len()).collect();
        order.sort_unstable_by_key(|&index| permutation[op.axes[index]]);
        let resize = Resize {
            axes: sorted(&op.axes, permutation),
            sizes: order.iter().map(|&index| op.sizes[index]).collect(),
            ratios: order.iter().map(|&index| op.ratios[index]).collect(),
            ..op.clone()
        };
        lifted(resize, x, permutation.to_vec())
    })
}

fn sink_below_concat(m: &Match<'_>) -> Vec<Term> {
    let Op::Concat(op) = m.op else { return Vec::new() };
    let mut terms = Vec::new();
    for (_, permutation) in transposed(m, 0) {
        let inner = |k: usize| transposed(m, k).into_iter().find(|(_, own)| *own == permutation).map(|(x, _)| x.into());
        let operands: Option<Vec<Term>> = (0..m.operands.len()).map(inner).collect();
        if let Some(operands) = operands {
            let below = Term::apply(Concat { axis: permutation[op.axis] }, operands);
            terms.push(Term::apply(Transpose { permutation: permutation.to_vec() }, [below]));
        }
    }
    terms
}
