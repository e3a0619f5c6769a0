//! Canonical rules of operators that only move elements.

use crate::rewrite::{Match, Rule, Term};
use crate::sketch::{Sketch, binary, broadcast, concat, max_pool, pad, reshape, slice, transpose};
use mlc_ir::ops::{Concat, Pad, PadMode, Reshape, ResizeCoordinates, Slice, Transpose};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Literal, Op, OpKind};

/// See the module.
pub(crate) const RULES: &[Rule] = &[
    Rule::exact("drop-identity-transpose", "no axis moves", &[OpKind::Transpose], drop_identity_transpose, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(0, 4);
        let x = s.input(&shape);
        let axes: Vec<usize> = (0..shape.len()).collect();
        let y = s.apply(transpose(&axes), &[x]);
        s.finish(y)
    }),
    Rule::exact(
        "compose-transposes",
        "a permutation of a permutation is one",
        &[OpKind::Transpose],
        compose_transposes,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.random_shape(1, 4);
            let (first, second) = (s.permutation(shape.len()), s.permutation(shape.len()));
            let x = s.input(&shape);
            let y = s.apply(transpose(&first), &[x]);
            let z = s.apply(transpose(&second), &[y]);
            s.finish(z)
        },
    ),
    Rule::exact(
        "transpose-of-unit-axes-as-reshape",
        "moving axes of extent 1 keeps the order of the elements",
        &[OpKind::Transpose],
        transpose_as_reshape,
        |g| {
            let mut s = Sketch::new(g);
            let mut shape = s.random_shape(1, 4);
            let kept = s.random.range(0, shape.len() - 1);
            shape.iter_mut().enumerate().filter(|(axis, _)| *axis != kept).for_each(|(_, extent)| *extent = 1);
            let permutation = s.permutation(shape.len());
            let x = s.input(&shape);
            let y = s.apply(transpose(&permutation), &[x]);
            s.finish(y)
        },
    ),
    Rule::exact("drop-identity-reshape", "the shape stays", &[OpKind::Reshape], drop_if_same_type, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(0, 4);
        let x = s.input(&shape);
        let y = s.apply(reshape(&shape), &[x]);
        s.finish(y)
    }),
    Rule::exact("compose-reshapes", "only the last shape counts", &[OpKind::Reshape], compose_reshapes, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(1, 4);
        let x = s.input(&shape);
        let y = s.apply(reshape(&[shape.iter().product()]), &[x]);
        let mut last = shape;
        last.insert(0, 1);
        let z = s.apply(reshape(&last), &[y]);
        s.finish(z)
    }),
    Rule::exact("drop-full-slice", "all elements stay", &[OpKind::Slice], drop_full_slice, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(1, 4);
        let x = s.input(&shape);
        let y = s.apply(slice(&shape, 0, 0, shape[0]), &[x]);
        s.finish(y)
    }),
    Rule::exact("compose-slices", "a slice of a slice is a slice", &[OpKind::Slice], compose_slices, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(1, 3);
        let x = s.input(&shape);
        let inner = random_slice(&mut s, &shape);
        let y = s.apply(inner, &[x]);
        let sliced = s.shape(y);
        let outer = random_slice(&mut s, &sliced);
        let z = s.apply(outer, &[y]);
        s.finish(z)
    }),
    Rule::exact("drop-empty-pad", "nothing is added", &[OpKind::Pad], drop_if_same_type, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(0, 4);
        let x = s.input(&shape);
        let y = s.apply(pad(vec![(0, 0); shape.len()], Literal::of(DType::F32, 1.0)), &[x]);
        s.finish(y)
    }),
    Rule::exact("merge-pads", "pads with one constant add up", &[OpKind::Pad], merge_pads, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(1, 3);
        let mut y = s.input(&shape);
        for _ in 0..2 {
            let pads = shape.iter().map(|_| (s.random.range(0, 2), s.random.range(0, 2))).collect();
            y = s.apply(pad(pads, Literal::of(DType::F32, 0.5)), &[y]);
        }
        s.finish(y)
    }),
    Rule::exact("drop-concat-of-one", "there is nothing to join", &[OpKind::Concat], drop_concat_of_one, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(1, 4);
        let x = s.input(&shape);
        let y = s.apply(concat(0), &[x]);
        s.finish(y)
    }),
    Rule::exact("flatten-nested-concat", "joining is associative", &[OpKind::Concat], flatten_concat, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(1, 3);
        let axis = s.random.range(0, shape.len() - 1);
        let (x, y, z) = (s.input(&shape), s.input(&shape), s.input(&shape));
        let inner = s.apply(concat(axis), &[x, y]);
        let outer = s.apply(concat(axis), &[z, inner, x]);
        s.finish(outer)
    }),
    Rule::exact(
        "slice-of-concat",
        "a slice within one part needs only that part",
        &[OpKind::Slice],
        slice_of_concat,
        |g| {
            let mut s = Sketch::new(g);
            let mut shape = s.random_shape(1, 3);
            let axis = s.random.range(0, shape.len() - 1);
            shape[axis] += 1;
            let parts = [s.input(&shape), s.input(&shape), s.input(&shape)];
            let y = s.apply(concat(axis), &parts);
            let joined = s.shape(y);
            let size = s.random.range(1, shape[axis]);
            let start = s.random.range(0, 2) * shape[axis] + s.random.range(0, shape[axis] - size);
            let z = s.apply(slice(&joined, axis, start, size), &[y]);
            s.finish(z)
        },
    ),
    Rule::exact(
        "join-adjacent-slices",
        "neighbouring slices joined are one slice",
        &[OpKind::Concat],
        join_slices,
        |g| {
            let mut s = Sketch::new(g);
            let mut shape = s.random_shape(1, 3);
            let axis = s.random.range(0, shape.len() - 1);
            shape[axis] += 3;
            let x = s.input(&shape);
            let (start, middle) = (s.random.range(0, 1), s.random.range(2, shape[axis] - 1));
            let left = s.apply(slice(&shape, axis, start, middle - start), &[x]);
            let right = s.apply(slice(&shape, axis, middle, 1), &[x]);
            let y = s.apply(concat(axis), &[left, right, x]);
            s.finish(y)
        },
    ),
    Rule::exact("drop-identity-broadcast", "no axis is repeated", &[OpKind::Broadcast], drop_if_same_type, |g| {
        let mut s = Sketch::new(g);
        let shape = s.random_shape(0, 4);
        let x = s.input(&shape);
        let y = s.apply(broadcast(&shape), &[x]);
        s.finish(y)
    }),
    Rule::exact(
        "broadcast-of-unit-axes-as-reshape",
        "only axes of extent 1 are added",
        &[OpKind::Broadcast],
        broadcast_as_reshape,
        |g| {
            let mut s = Sketch::new(g);
            let mut shape = s.random_shape(0, 3);
            let x = s.input(&shape);
            shape.insert(0, 1);
            let y = s.apply(broadcast(&shape), &[x]);
            s.finish(y)
        },
    ),
    Rule::finite(
        "drop-identity-resize",
        "every element stands on its own place",
        &[OpKind::Resize],
        drop_identity_resize,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.image();
            let op = mlc_ir::ops::Resize {
                axes: vec![1],
                sizes: vec![shape[1]],
                ratios: vec![mlc_ir::Float(1.0)],
                mode: s.random.choose(mlc_ir::ops::ResizeMode::ALL),
                coordinates: s.random.choose(ResizeCoordinates::ALL),
            };
            let x = s.input(&shape);
            let y = s.apply(op, &[x]);
            s.finish(y)
        },
    ),
    Rule::exact(
        "drop-pool-of-single-elements",
        "a window of one element, moved by one",
        &[OpKind::AveragePool, OpKind::MaxPool],
        drop_pool,
        |g| {
            let mut s = Sketch::new(g);
            let shape = s.image();
            let spatial = shape.len() - 2;
            let x = s.input(&shape);
            let y = s.apply(max_pool(vec![1; spatial], vec![1; spatial], vec![(0, 0); spatial]), &[x]);
            s.finish(y)
        },
    ),
    Rule::exact(
        "drop-parts-outside-slice",
        "a slice that takes whole parts joins only them",
        &[OpKind::Slice],
        slice_across_parts,
        |g| {
            let mut s = Sketch::new(g);
            let mut shape = s.random_shape(1, 3);
            let axis = s.random.range(0, shape.len() - 1);
            shape[axis] += 1;
            let parts = [s.input(&shape), s.input(&shape), s.input(&shape)];
            let y = s.apply(concat(axis), &parts);
            let joined = s.shape(y);
            let start = if s.random.one_in(2) { 0 } else { shape[axis] };
            let z = s.apply(slice(&joined, axis, start, 2 * shape[axis]), &[y]);
            let w = s.apply(binary(BinaryFunction::Add), &[z, z]);
            s.finish(w)
        },
    ),
];

fn random_slice(s: &mut Sketch<'_>, shape: &[usize]) -> Op {
    let (mut starts, mut sizes, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for &extent in shape {
        let step = s.random.choose(&[1i64, 1, 2, -1]);
        let whole = extent <= 1 || (step != 2 && s.random.one_in(4));
        let size = if whole { extent } else { s.random.range(1, extent.div_ceil(2)) };
        let reach = size.saturating_sub(1) * step.unsigned_abs() as usize;
        let room = extent.saturating_sub(reach + 1);
        let low = s.random.range(0, room);
        starts.push(if step < 0 { low + reach } else { low });
        sizes.push(size);
        steps.push(step);
    }
    Slice { starts, sizes, steps }.into()
}

fn drop_if_same_type(m: &Match<'_>) -> Vec<Term> {
    if m.operand_type(0) == m.ty { vec![m.operands[0].into()] } else { Vec::new() }
}

fn drop_identity_transpose(m: &Match<'_>) -> Vec<Term> {
    let Op::Transpose(transpose) = m.op else { return Vec::new() };
    let identity = transpose.permutation.iter().copied().eq(0..m.ty.rank());
    if identity { vec![m.operands[0].into()] } else { Vec::new() }
}

fn compose_transposes(m: &Match<'_>) -> Vec<Term> {
    let Op::Transpose(outer) = m.op else { return Vec::new() };
    let compose = |op: &Op| match op {
        Op::Transpose(inner) => Some(outer.permutation.iter().map(|&axis| inner.permutation[axis]).collect::<Vec<_>>()),
        _ => None,
    };
    let terms = m.inner(0).into_iter().filter_map(|inner| {
        let permutation = compose(inner.op)?;
        let x = Term::from(inner.operands[0]);
        let identity = permutation.iter().copied().eq(0..permutation.len());
        Some(if identity { x } else { Term::apply(Transpose { permutation }, [x]) })
    });
    terms.collect()
}

/// Whether a permutation keeps the order of all axes of more than one element.
pub(crate) fn moves_unit_axes_only(permutation: &[usize], shape: &[usize]) -> bool {
    permutation.iter().filter(|&&axis| shape[axis] != 1).is_sorted()
}

fn transpose_as_reshape(m: &Match<'_>) -> Vec<Term> {
    let Op::Transpose(transpose) = m.op else { return Vec::new() };
    if moves_unit_axes_only(&transpose.permutation, &m.operand_type(0).shape) {
        return vec![Term::apply(Reshape { shape: m.ty.shape.clone() }, [m.operands[0].into()])];
    }
    Vec::new()
}

fn compose_reshapes(m: &Match<'_>) -> Vec<Term> {
    let terms = m.inner(0).into_iter().filter(|inner| matches!(inner.op, Op::Reshape(_))).map(|inner| {
        let x = Term::from(inner.operands[0]);
        let identity = m.view.ty(inner.operands[0]) == m.ty;
        if identity { x } else { Term::apply(Reshape { shape: m.ty.shape.clone() }, [x]) }
    });
    terms.collect()
}

fn drop_full_slice(m: &Match<'_>) -> Vec<Term> {
    let Op::Slice(slice) = m.op else { return Vec::new() };
    let forward = slice.steps.iter().zip(&slice.sizes).all(|(&step, &size)| step == 1 || size <= 1);
    if forward && m.operand_type(0) == m.ty { vec![m.operands[0].into()] } else { Vec::new() }
}

fn compose_slices(m: &Match<'_>) -> Vec<Term> {
    let Op::Slice(outer) = m.op else { return Vec::new() };
    let compose = |inner: &Slice| {
        let starts = (0..m.ty.rank()).map(|axis| {
            let start = inner.starts[axis] as i64 + outer.starts[axis] as i64 * inner.steps[axis];
            usize::try_from(start).ok()
        });
        let steps = outer.steps.iter().zip(&inner.steps).map(|(outer, inner)| outer.checked_mul(*inner));
        Some(Slice {
            starts: starts.collect::<Option<_>>()?,
            sizes: outer.sizes.clone(),
            steps: steps.collect::<Option<_>>()?,
        })
    };
    let terms = m.inner(0).into_iter().filter_map(|inner| match inner.op {
        Op::Slice(slice) => Some(Term::apply(compose(slice)?, [inner.operands[0].into()])),
        _ => None,
    });
    terms.collect()
}

fn merge_pads(m: &Match<'_>) -> Vec<Term> {
    let Op::Pad(outer) = m.op else { return Vec::new() };
    let merge = |inner: &Pad| {
        let constant = inner.mode == PadMode::Constant && outer.mode == PadMode::Constant && inner.value == outer.value;
        let pads = inner.pads.iter().zip(&outer.pads).map(|(inner, outer)| (inner.0 + outer.0, inner.1 + outer.1));
        constant.then(|| Pad { pads: pads.collect(), ..outer.clone() })
    };
    let terms = m.inner(0).into_iter().filter_map(|inner| match inner.op {
        Op::Pad(pad) => Some(Term::apply(merge(pad)?, [inner.operands[0].into()])),
        _ => None,
    });
    terms.collect()
}

fn drop_concat_of_one(m: &Match<'_>) -> Vec<Term> {
    match m.operands {
        [x] if m.view.ty(*x) == m.ty => vec![(*x).into()],
        _ => Vec::new(),
    }
}

fn flatten_concat(m: &Match<'_>) -> Vec<Term> {
    let Op::Concat(outer) = m.op else { return Vec::new() };
    let mut operands: Vec<Term> = Vec::new();
    for k in 0..m.operands.len() {
        let inner = m.inner(k);
        match inner.iter().find(|inner| matches!(inner.op, Op::Concat(inner) if inner.axis == outer.axis)) {
            Some(nested) => operands.extend(nested.operands.iter().map(|&operand| Term::from(operand))),
            None => operands.push(m.operands[k].into()),
        }
    }
    if operands.len() == m.operands.len() { Vec::new() } else { vec![Term::apply(outer.clone(), operands)] }
}

/// The parts of a concat that a forward slice of step 1 covers: (part, start in it, size).
fn covered(m: &Match<'_>, slice: &Slice, axis: usize, parts: &[crate::rewrite::Class]) -> Vec<(usize, usize, usize)> {
    let (start, end) = (slice.starts[axis], slice.starts[axis] + slice.sizes[axis]);
    let mut begin = 0;
    let mut covered = Vec::new();
    for (index, &part) in parts.iter().enumerate() {
        let extent = m.view.ty(part).shape[axis];
        let (low, high) = (start.max(begin), end.min(begin + extent));
        if low < high {
            covered.push((index, low - begin, high - low));
        }
        begin += extent;
    }
    covered
}

fn slice_of_concat(m: &Match<'_>) -> Vec<Term> {
    let Op::Slice(slice) = m.op else { return Vec::new() };
    let mut terms = Vec::new();
    for inner in m.inner(0) {
        let Op::Concat(concat) = inner.op else { continue };
        if slice.steps[concat.axis] != 1 {
            continue;
        }
        if let [(part, start, size)] = covered(m, slice, concat.axis, inner.operands)[..] {
            let mut own = slice.clone();
            own.starts[concat.axis] = start;
            own.sizes[concat.axis] = size;
            terms.push(Term::apply(own, [inner.operands[part].into()]));
        }
    }
    terms
}

fn slice_across_parts(m: &Match<'_>) -> Vec<Term> {
    let Op::Slice(slice) = m.op else { return Vec::new() };
    let mut terms = Vec::new();
    for inner in m.inner(0) {
        let Op::Concat(concat) = inner.op else { continue };
        let full = |axis: usize| {
            axis == concat.axis || (slice.starts[axis] == 0 && slice.sizes[axis] == m.operand_type(0).shape[axis])
        };
        if slice.steps.iter().any(|&step| step != 1) || !(0..m.ty.rank()).all(full) {
            continue;
        }
        let covered = covered(m, slice, concat.axis, inner.operands);
        let whole =
            |&(part, _, size): &(usize, usize, usize)| m.view.ty(inner.operands[part]).shape[concat.axis] == size;
        if covered.len() > 1 && covered.iter().all(whole) {
            let parts = covered.iter().map(|&(part, ..)| inner.operands[part].into());
            terms.push(Term::apply(Concat { axis: concat.axis }, parts.collect::<Vec<_>>()));
        }
    }
    terms
}

/// A slice of step 1 along `axis` only, as (operand, start, end).
fn plain_slice(m: &Match<'_>, k: usize, axis: usize) -> Vec<(crate::rewrite::Class, usize, usize)> {
    let plain = |slice: &Slice, shape: &[usize]| {
        (0..shape.len()).all(|other| {
            slice.steps[other] == 1
                && (other == axis || (slice.starts[other] == 0 && slice.sizes[other] == shape[other]))
        })
    };
    let found = m.inner(k).into_iter().filter_map(|inner| match inner.op {
        Op::Slice(slice) if plain(slice, &m.view.ty(inner.operands[0]).shape) => {
            Some((inner.operands[0], slice.starts[axis], slice.starts[axis] + slice.sizes[axis]))
        }
        _ => None,
    });
    found.collect()
}

fn join_slices(m: &Match<'_>) -> Vec<Term> {
    let Op::Concat(outer) = m.op else { return Vec::new() };
    for k in 0..m.operands.len().saturating_sub(1) {
        for (x, start, middle) in plain_slice(m, k, outer.axis) {
            let next = plain_slice(m, k + 1, outer.axis);
            let Some(&(_, _, end)) = next.iter().find(|(other, from, _)| *other == x && *from == middle) else {
                continue;
            };
            let joined = Term::apply(slice(&m.view.ty(x).shape, outer.axis, start, end - start), [x.into()]);
            let mut operands: Vec<Term> = m.operands.iter().map(|&operand| operand.into()).collect();
            operands.splice(k..=k + 1, [joined]);
            return vec![Term::apply(outer.clone(), operands)];
        }
    }
    Vec::new()
}

fn broadcast_as_reshape(m: &Match<'_>) -> Vec<Term> {
    if m.operand_type(0).elements() == m.ty.elements() {
        return vec![Term::apply(Reshape { shape: m.ty.shape.clone() }, [m.operands[0].into()])];
    }
    Vec::new()
}

fn drop_identity_resize(m: &Match<'_>) -> Vec<Term> {
    let Op::Resize(resize) = m.op else { return Vec::new() };
    let unit =
        resize.coordinates == ResizeCoordinates::AlignCorners || resize.ratios.iter().all(|ratio| ratio.0 == 1.0);
    if unit { drop_if_same_type(m) } else { Vec::new() }
}

fn drop_pool(m: &Match<'_>) -> Vec<Term> {
    let (window, strides, pads) = match m.op {
        Op::MaxPool(pool) => (&pool.window, &pool.strides, &pool.pads),
        Op::AveragePool(pool) => (&pool.window, &pool.strides, &pool.pads),
        _ => return Vec::new(),
    };
    let single = window.iter().chain(strides).all(|&extent| extent == 1) && pads.iter().all(|&pad| pad == (0, 0));
    if single { vec![m.operands[0].into()] } else { Vec::new() }
}
