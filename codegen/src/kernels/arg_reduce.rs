//! The place of the largest or smallest element along an axis: one loop that keeps the best element and its place, or that of each lane of
//! vectors, which run along an axis that stays, or else along the axis itself.

use super::KernelWriter;
use super::schedule::{Kind, Preferences, Scheduled, Settings};
use super::space::{Space, stretches};
use super::walk::AXIS_NAMES;
use crate::loops::{Expr, Index, Nest, Var};
use crate::target::VectorSpelling;
use mlc_ir::ops::{ArgFunction, ArgReduce};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Diagnostic, Literal};
use std::ops::Range;

impl Scheduled for ArgReduce {
    const KINDS: &'static [Kind<Self>] = &[
        Kind::new("lanes", lanes_list, |op, _, kernel| {
            in_lanes(op, kernel);
            Ok(())
        }),
        Kind::only("best-so-far", arg_reduce),
    ];
}

fn arg_reduce(op: &ArgReduce, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let x = kernel.operands[0].clone();
    let extent = x.view.shape[op.axis];
    let mut kept = x.view.shape.to_vec();
    kept.remove(op.axis);
    kernel.for_shape(&AXIS_NAMES, &kept, &mut |kernel, indices| {
        let at = |index: Index| {
            let mut all = indices.to_vec();
            all.insert(op.axis, index);
            all
        };
        let result = if op.keep_axis { at(Index::default()) } else { indices.to_vec() };
        if extent == 1 {
            return kernel.finish(Literal::integer(DType::I64, 0).into(), &result, 1);
        }
        let first = kernel.load(&x, &at(Index::default()), 1, 1);
        let best = kernel.b.mutable("best", first);
        let place = kernel.b.mutable("place", Literal::integer(DType::I32, 0).into());
        keep_better(op, kernel, 1..extent, &Best { value: best, place }, &|kernel, index| {
            kernel.load(&x, &at(index), 1, 1)
        });
        kernel.finish(Expr::Cast(DType::I64, Box::new(Expr::Var(place))), &result, 1);
    });
    Ok(())
}

/// Looks for better elements than the best one so far, one by one.
fn keep_better<'a>(
    op: &ArgReduce,
    kernel: &mut KernelWriter<'a>,
    places: Range<usize>,
    so_far: &Best,
    load: &dyn Fn(&mut KernelWriter<'a>, Index) -> Expr,
) {
    let &Best { value: best, place } = so_far;
    kernel.for_range("r", Index::from(places.start), Index::from(places.end), 1, |kernel, index| {
        let value = load(kernel, index.clone());
        let value = kernel.b.define("value", value);
        let dtype = kernel.b.ty(&value).dtype;
        kernel.when_value(better(op, dtype, value.clone(), Expr::Var(best)), |kernel| {
            kernel.b.assign(best, value);
            kernel.b.assign(place, Expr::Index(DType::I32, index));
        });
    });
}

/// Where C compilers know vectors of the type, whose places are in vectors as wide, and the axis that they run along fills one.
fn lanes_list(op: &ArgReduce, kernel: &KernelWriter<'_>) -> Preferences {
    let dtype = kernel.operands[0].view.dtype;
    let lanes = kernel.lanes(dtype);
    let is_wide = matches!(dtype, DType::F32 | DType::I32) && kernel.target.vectors == VectorSpelling::Gnu;
    if !is_wide || lanes == 1 || op.last || kernel.results[0].view.elements() == 0 {
        return Preferences::new();
    }
    let space = Space::new(&mut kernel.clone(), &[op.axis], op.keep_axis);
    let fills = match (&space.reduced[..], space.inner.last()) {
        ([extent], Some(&along)) => *extent > 1 && along >= lanes,
        ([extent], None) => space.is_contiguous() && *extent >= 2 * lanes,
        _ => false,
    };
    if fills { vec![(0, Settings::default())] } else { Preferences::new() }
}

fn in_lanes(op: &ArgReduce, kernel: &mut KernelWriter<'_>) {
    let dtype = kernel.operands[0].view.dtype;
    let lanes = kernel.lanes(dtype);
    let space = Space::new(kernel, &[op.axis], op.keep_axis);
    let extent = space.reduced[0];
    kernel.for_shape(&AXIS_NAMES, &space.outer, &mut |kernel, outer| {
        let Some((&last, rows)) = space.inner.split_last() else {
            let load = |kernel: &mut KernelWriter<'_>, place: Index, lanes: usize| {
                kernel.load(&space.x, &space.at(outer, &[place], &[]), lanes, lanes)
            };
            let place = best_along(op, kernel, extent, lanes, &load);
            return kernel.finish(place, &space.at(outer, &space.no_reduced(), &[]), 1);
        };
        kernel.for_shape(&["j0", "j1", "j2", "j3"], rows, &mut |kernel, rows| {
            for stretch in stretches(last, lanes, 1, dtype) {
                let (lanes, step) = (stretch.lanes, stretch.lanes as i64);
                kernel.for_range("c", Index::from(stretch.start), Index::from(stretch.end), step, |kernel, index| {
                    let at = |reduced: &[Index], lane: usize| {
                        space.at(outer, reduced, &[rows, &[index.offset(lane as i64)]].concat())
                    };
                    let load = |kernel: &mut KernelWriter<'_>, place: Index| {
                        kernel.load(&space.x, &at(&[place], 0), lanes, lanes)
                    };
                    let Best { place, .. } = best_of_each(op, kernel, (extent, 1), lanes, &load);
                    for lane in 0..lanes {
                        let place = Expr::Cast(DType::I64, Box::new(lane_of(place, lane, lanes)));
                        kernel.finish(place, &at(&space.no_reduced(), lane), 1);
                    }
                });
            }
        });
    });
}

/// The best elements so far, and their places.
struct Best {
    value: Var,
    place: Var,
}

/// Of each lane the first of the best values from 0 to an end, by steps of some places.
fn best_of_each<'a>(
    op: &ArgReduce,
    kernel: &mut KernelWriter<'a>,
    (end, step): (usize, usize),
    lanes: usize,
    load: &dyn Fn(&mut KernelWriter<'a>, Index) -> Expr,
) -> Best {
    let first = load(kernel, Index::default());
    let best = kernel.b.mutable("best", first);
    let place = kernel.b.mutable("place", Expr::splat(Literal::integer(DType::I32, 0), lanes));
    kernel.for_range("r", Index::from(step), Index::from(end), step as i64, |kernel, index| {
        let value = load(kernel, index.clone());
        let value = kernel.b.define("value", value);
        let own = Expr::Index(DType::I32, index);
        let own = if lanes == 1 { own } else { Expr::Splat(Box::new(own), lanes) };
        let own = better_of(op, kernel, (&value, best), own, Expr::Var(place));
        kernel.b.assign(place, own);
        let value = better_of(op, kernel, (&value, best), value.clone(), Expr::Var(best));
        kernel.b.assign(best, value);
    });
    Best { value: best, place }
}

/// `new` where a value is better than the best one so far, or the first that isn't a number; else `old`. Comparisons with those are false.
fn better_of(op: &ArgReduce, kernel: &KernelWriter<'_>, (value, best): (&Expr, Var), new: Expr, old: Expr) -> Expr {
    let order = match op.function {
        ArgFunction::Maximum => BinaryFunction::LessEqual,
        ArgFunction::Minimum => BinaryFunction::GreaterEqual,
    };
    let select = |condition: Expr, x: Expr, y: Expr| Expr::Select(Box::new(condition), Box::new(x), Box::new(y));
    let is_number = Expr::binary(BinaryFunction::Equal, Expr::Var(best), Expr::Var(best));
    let new = if kernel.b.ty(value).dtype.is_float() { select(is_number, new, old.clone()) } else { new };
    select(Expr::binary(order, value.clone(), Expr::Var(best)), old, new)
}

fn lane_of(vector: Var, lane: usize, lanes: usize) -> Expr {
    if lanes == 1 { Expr::Var(vector) } else { Expr::Lane(Box::new(Expr::Var(vector)), lane) }
}

/// The place of the best element of an axis that vectors run along, i64: that of each lane, of those the first best one, and what is left
/// behind the last vector.
fn best_along<'a>(
    op: &ArgReduce,
    kernel: &mut KernelWriter<'a>,
    extent: usize,
    lanes: usize,
    load: &dyn Fn(&mut KernelWriter<'a>, Index, usize) -> Expr,
) -> Expr {
    let full = extent / lanes * lanes;
    let Best { value, place } =
        best_of_each(op, kernel, (full, lanes), lanes, &|kernel, place| load(kernel, place, lanes));
    let dtype = kernel.b.ty(&Expr::Var(value)).dtype;
    let place_of = |lane: usize| {
        let offset = Literal::integer(DType::I32, lane as i64);
        Expr::binary(BinaryFunction::Add, lane_of(place, lane, lanes), offset.into())
    };
    let best = kernel.b.mutable("first", lane_of(value, 0, lanes));
    let found = kernel.b.mutable("found", lane_of(place, 0, lanes));
    for lane in 1..lanes {
        let other = kernel.b.define("other", lane_of(value, lane, lanes));
        let own = kernel.b.define("own", place_of(lane));
        let is_before = Expr::binary(BinaryFunction::Less, own.clone(), Expr::Var(found));
        let both = |left, right| Expr::binary(BinaryFunction::And, left, right);
        let mut ties = Expr::binary(BinaryFunction::Equal, other.clone(), Expr::Var(best));
        if dtype.is_float() {
            let [other, best] = [other.clone(), Expr::Var(best)].map(|x| Expr::unary(UnaryFunction::IsNan, x));
            ties = Expr::binary(BinaryFunction::Or, ties, both(other, best));
        }
        let is_better = better(op, dtype, other.clone(), Expr::Var(best));
        let wins = Expr::binary(BinaryFunction::Or, is_better, both(ties, is_before));
        kernel.when_value(wins, |kernel| {
            kernel.b.assign(best, other);
            kernel.b.assign(found, own);
        });
    }
    let so_far = Best { value: best, place: found };
    keep_better(op, kernel, full..extent, &so_far, &|kernel, place| load(kernel, place, 1));
    Expr::Cast(DType::I64, Box::new(Expr::Var(found)))
}

/// Whether a later element takes the place of the best one; NaN beats every number.
fn better(op: &ArgReduce, dtype: DType, value: Expr, best: Expr) -> Expr {
    let order = match (op.function, op.last) {
        (ArgFunction::Maximum, false) => BinaryFunction::Greater,
        (ArgFunction::Maximum, true) => BinaryFunction::GreaterEqual,
        (ArgFunction::Minimum, false) => BinaryFunction::Less,
        (ArgFunction::Minimum, true) => BinaryFunction::LessEqual,
    };
    let beats = Expr::binary(order, value.clone(), best.clone());
    if !dtype.is_float() {
        return beats;
    }
    let is_nan = |value| Expr::unary(UnaryFunction::IsNan, value);
    if op.last {
        return Expr::binary(BinaryFunction::Or, beats, is_nan(value));
    }
    let is_number = Expr::binary(BinaryFunction::Equal, best.clone(), best);
    let first_nan = Expr::binary(BinaryFunction::And, is_nan(value), is_number);
    Expr::binary(BinaryFunction::Or, beats, first_nan)
}
