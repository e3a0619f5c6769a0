//! Pads move behind transposes and reshapes, towards the convolutions and pools that take them up.

use crate::rewrite::{Match, Rule, Term};
use crate::sketch::{Sketch, pad, reshape, transpose};
use mlc_ir::ops::{Pad, Reshape, Transpose};
use mlc_ir::{DType, Generator, Graph, Literal, Op, OpKind};

/// See the module.
pub const RULES: &[Rule] = &[
    Rule::exact("move-pad-behind-transpose", "each axis keeps its pads", &[OpKind::Transpose], behind_transpose, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(1, 4);
        let padded = padded(&mut s, &shape, false);
        let permutation = s.permutation(shape.len());
        let y = s.apply(transpose(&permutation), &[padded]);
        s.finish(y)
    }),
    Rule::exact(
        "move-pad-behind-reshape",
        "a reshape that only moves axes of extent 1 leaves the others their pads",
        &[OpKind::Reshape],
        behind_reshape,
        sample_reshape,
    ),
];

/// An input of this shape, padded; with `wide`, only along axes that end up longer than 1.
fn padded(s: &mut Sketch<'_>, shape: &[usize], wide: bool) -> mlc_ir::Value {
    let x = s.input(shape);
    let pads = shape.iter().map(|&extent| {
        let room = usize::from(!wide || extent > 1) * 2;
        (s.random.range(0, room), s.random.range(0, room))
    });
    let pads = pads.collect();
    s.apply(pad(pads, Literal::of(DType::F32, 0.5)), &[x])
}

fn sample_reshape(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(2, 4);
    let padded = padded(&mut s, &shape, true);
    let mut moved: Vec<usize> = s.shape(padded).into_iter().filter(|&extent| extent != 1).collect();
    for _ in 0..2 {
        let place = s.random.range(0, moved.len());
        moved.insert(place, 1);
    }
    let y = s.apply(reshape(&moved), &[padded]);
    s.finish(y)
}

fn behind_transpose(m: &Match<'_>) -> Vec<Term> {
    let Op::Transpose(op) = m.op else { return Vec::new() };
    let moved = m.inner(0).into_iter().filter_map(|inner| {
        let Op::Pad(pad) = inner.op else { return None };
        let turned = Term::apply(Transpose { permutation: op.permutation.clone() }, [inner.operands[0].into()]);
        let pads = op.permutation.iter().map(|&axis| pad.pads[axis]).collect();
        Some(Term::apply(Pad { pads, ..pad.clone() }, [turned]))
    });
    moved.collect()
}

fn behind_reshape(m: &Match<'_>) -> Vec<Term> {
    let moved = m.inner(0).into_iter().filter_map(|inner| {
        let Op::Pad(pad) = inner.op else { return None };
        let before = &m.view.ty(inner.operands[0]).shape;
        let mut long = m.operand_type(0).shape.iter().enumerate().filter(|(_, extent)| **extent != 1);
        let (mut shape, mut pads) = (Vec::new(), Vec::new());
        for &extent in &m.ty.shape {
            let axis = if extent == 1 { None } else { Some(long.next().filter(|(_, own)| **own == extent)?.0) };
            shape.push(axis.map_or(1, |axis| before[axis]));
            pads.push(axis.map_or((0, 0), |axis| pad.pads[axis]));
        }
        let unpadded =
            pad.pads.iter().zip(&m.operand_type(0).shape).all(|(&pads, &extent)| extent != 1 || pads == (0, 0));
        let complete = long.next().is_none() && unpadded;
        let reshaped = Term::apply(Reshape { shape: shape[..].into() }, [inner.operands[0].into()]);
        complete.then(|| Term::apply(Pad { pads, ..pad.clone() }, [reshaped]))
    });
    moved.collect()
}
