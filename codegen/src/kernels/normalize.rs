//! Normalisation: the mean, the mean square of what is left, and the scaled elements, each in one loop over the group.

use super::KernelWriter;
use super::fold::Fold;
use super::reduce::Scale;
use super::schedule::{Kind, Scheduled, Settings};
use super::space::{Space, for_shape_in_vectors, stretches};
use crate::loops::{Expr, Index, Nest};
use mlc_ir::ops::Normalize;
use mlc_ir::scalar::UnaryFunction;
use mlc_ir::{DType, Diagnostic, Literal};

const OUTER_NAMES: [&str; 6] = ["i0", "i1", "i2", "i3", "i4", "i5"];
const REDUCED_NAMES: [&str; 6] = ["r0", "r1", "r2", "r3", "r4", "r5"];

impl Scheduled for Normalize {
    const KINDS: &'static [Kind<Self>] = &[Kind::only("walks", normalize).in_place()];
}

fn normalize(op: &Normalize, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    if kernel.results[0].view.elements() == 0 {
        return Ok(());
    }
    let dtype = kernel.operands[0].view.dtype;
    let space = Space::new(kernel, &op.axes, true);
    let count = space.reduced.iter().product();
    let group =
        Group { op, dtype, mean: Scale::by_reciprocal_of(count, dtype, kernel), strict: kernel.target.is_strict() };
    kernel.for_shape(&OUTER_NAMES, &space.outer, &mut |kernel, outer| {
        let Some((&last, rows)) = space.inner.split_last() else { return along(kernel, &space, &group, outer) };
        kernel.for_shape(&["j0", "j1", "j2", "j3"], rows, &mut |kernel, rows| {
            let lanes = kernel.epilogue_lanes(dtype);
            for stretch in stretches(last, lanes, 1, dtype) {
                let (start, end) = (Index::from(stretch.start), Index::from(stretch.end));
                kernel.for_range("c", start, end, stretch.lanes as i64, |kernel, index| {
                    let inner: Vec<Index> = rows.iter().cloned().chain([index]).collect();
                    across(kernel, &space, &group, outer, &inner, stretch.lanes);
                });
            }
        });
    });
    Ok(())
}

struct Group<'a> {
    op: &'a Normalize,
    dtype: DType,
    mean: Scale,
    strict: bool,
}

impl Group<'_> {
    fn literal(&self, value: f64, lanes: usize) -> Expr {
        let literal = Expr::Literal(Literal::float(self.dtype, value));
        if lanes == 1 { literal } else { Expr::Splat(Box::new(literal), lanes) }
    }

    fn mean_of(&self, sum: Expr) -> Expr {
        self.mean.apply(sum)
    }

    /// The square of an element's distance from the mean.
    fn square(&self, kernel: &mut KernelWriter<'_>, x: Expr, mean: Option<&Expr>) -> Expr {
        let distance = match mean {
            Some(mean) => x.minus(mean.clone()),
            None => x,
        };
        let distance = kernel.b.define("d", distance);
        distance.clone().times(distance)
    }

    /// 1 / sqrt(variance + epsilon), by which elements are multiplied; in strict code its reciprocal, by which they are divided.
    fn scale(&self, kernel: &mut KernelWriter<'_>, variance: Expr) -> Expr {
        let lanes = kernel.b.ty(&variance).lanes;
        let deviation = Expr::unary(UnaryFunction::Sqrt, variance.plus(self.literal(self.op.epsilon.0, 1)));
        if self.strict {
            return kernel.b.define("deviation", deviation);
        }
        kernel.b.define("scale", self.literal(1.0, lanes).over(deviation))
    }

    fn scaled(&self, x: Expr, mean: Option<&Expr>, scale: &Expr) -> Expr {
        let distance = match mean {
            Some(mean) => x.minus(mean.clone()),
            None => x,
        };
        if self.strict { distance.over(scale.clone()) } else { distance.times(scale.clone()) }
    }
}

fn along(kernel: &mut KernelWriter<'_>, space: &Space, group: &Group<'_>, outer: &[Index]) {
    let lanes = if space.is_contiguous() { kernel.lanes(group.dtype) } else { 1 };
    let fold = Fold::sum(group.dtype);
    let load = |kernel: &mut KernelWriter<'_>, reduced: &[Index], lanes: usize| {
        kernel.load(&space.x, &space.at(outer, reduced, &[]), lanes, lanes)
    };
    let mean = group.op.center.then(|| {
        let sum = fold.along(kernel, &space.reduced, lanes, &load);
        kernel.b.define("mean", group.mean_of(sum))
    });
    let squares = fold.along(kernel, &space.reduced, lanes, &|kernel, reduced, lanes| {
        let x = load(kernel, reduced, lanes);
        group.square(kernel, x, mean.as_ref())
    });
    let scale = group.scale(kernel, group.mean_of(squares));
    let lanes = lanes.min(kernel.epilogue_lanes(group.dtype));
    for_shape_in_vectors(kernel, &REDUCED_NAMES, &space.reduced, lanes, group.dtype, |kernel, reduced, lanes| {
        let x = load(kernel, reduced, lanes);
        kernel.finish(group.scaled(x, mean.as_ref(), &scale), &space.at(outer, reduced, &[]), lanes);
    });
}

fn across(
    kernel: &mut KernelWriter<'_>,
    space: &Space,
    group: &Group<'_>,
    outer: &[Index],
    inner: &[Index],
    lanes: usize,
) {
    let fold = Fold::sum(group.dtype);
    let load = |kernel: &mut KernelWriter<'_>, reduced: &[Index], _: usize| {
        kernel.load(&space.x, &space.at(outer, reduced, inner), lanes, lanes)
    };
    let mean = if group.op.center {
        let sums = fold.across(kernel, &space.reduced, 1, lanes, &load);
        sums.into_iter().next().map(|sum| kernel.b.define("mean", group.mean_of(sum)))
    } else {
        None
    };
    let squares = fold.across(kernel, &space.reduced, 1, lanes, &|kernel, reduced, vector| {
        let x = load(kernel, reduced, vector);
        group.square(kernel, x, mean.as_ref())
    });
    let Some(squares) = squares.into_iter().next() else { return };
    let scale = group.scale(kernel, group.mean_of(squares));
    kernel.for_shape(&REDUCED_NAMES, &space.reduced, &mut |kernel, reduced| {
        let x = load(kernel, reduced, 0);
        kernel.finish(group.scaled(x, mean.as_ref(), &scale), &space.at(outer, reduced, inner), lanes);
    });
}
