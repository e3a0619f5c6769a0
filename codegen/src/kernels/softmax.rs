//! Softmax: the largest element, the sum of the exponentials, and the quotients, each in one loop over the axis. The
//! exponentials wait in the result's own memory, or in scratch memory where an epilogue computes the result.

use super::fold::Fold;
use super::space::{Space, for_vectors, stretches};
use super::{Argument, Kernel};
use crate::loops::halves::is_half;
use crate::loops::{Expr, Index, Nest};
use crate::lower::view::View;
use mlc_ir::ops::Softmax;
use mlc_ir::scalar::UnaryFunction;
use mlc_ir::{DType, Diagnostic, Literal};

const OUTER_NAMES: [&str; 6] = ["i0", "i1", "i2", "i3", "i4", "i5"];

/// The schedule of `softmax`.
pub fn softmax(kernel: &mut Kernel<'_>, op: &Softmax) -> Result<(), Diagnostic> {
    if kernel.results[0].view.elements() == 0 {
        return Ok(());
    }
    let dtype = kernel.operands[0].view.dtype;
    let space = Space::new(kernel, &[op.axis], true);
    let lanes = kernel.epilogue_lanes(dtype);
    let row = Row::new(kernel, &space, op.logarithm, lanes);
    kernel.for_shape(&OUTER_NAMES, &space.outer, &mut |kernel, outer| {
        let Some((&last, rows)) = space.inner.split_last() else {
            let along = if space.is_contiguous() { kernel.lanes(dtype) } else { 1 };
            return row.along(kernel, outer, along);
        };
        kernel.for_shape(&["j0", "j1", "j2", "j3"], rows, &mut |kernel, rows| {
            for stretch in stretches(last, lanes, 1, dtype) {
                let (start, end) = (Index::from(stretch.start), Index::from(stretch.end));
                kernel.for_range("c", start, end, stretch.lanes as i64, |kernel, index| {
                    let inner: Vec<Index> = rows.iter().cloned().chain([index]).collect();
                    row.across(kernel, outer, &inner, stretch.lanes);
                });
            }
        });
    });
    Ok(())
}

/// One row of a softmax: the elements along the axis at one position of the other axes.
struct Row<'a> {
    space: &'a Space,
    dtype: DType,
    logarithm: bool,
    /// Where exponentials wait, when it isn't the result; indexed by element and lane.
    scratch: Option<Argument>,
}

impl Row<'_> {
    fn new<'a>(kernel: &mut Kernel<'_>, space: &'a Space, logarithm: bool, lanes: usize) -> Row<'a> {
        let dtype = space.x.view.dtype;
        // Exponentials in half precision would be rounded twice.
        let narrow = is_half(kernel.b.element_dtype(kernel.results[0].pointer));
        let scratch = ((kernel.epilogue.is_some() || narrow) && !logarithm).then(|| {
            let mut shape = space.reduced.to_vec();
            if !space.inner.is_empty() {
                shape.push(lanes);
            }
            let pointer = kernel.scratch("exponentials", dtype, shape.iter().product());
            Argument { pointer, view: View::dense(dtype, &shape), constant: None, operand: None }
        });
        Row { space, dtype, logarithm, scratch }
    }

    fn exponential(&self, kernel: &Kernel<'_>, indices: &[Index], lanes: usize, largest: &Expr) -> Expr {
        let x = kernel.load(&self.space.x, indices, lanes, lanes);
        Expr::unary(UnaryFunction::Exp, x.minus(largest.clone()))
    }

    /// Keeps an exponential until the sum is known.
    fn keep(&self, kernel: &mut Kernel<'_>, value: Expr, indices: &[Index], place: &[Index], lanes: usize) {
        match &self.scratch {
            Some(scratch) => kernel.store(&scratch.clone(), value, place, lanes),
            None => {
                let result = kernel.results[0].clone();
                kernel.store(&result, value, indices, lanes);
            }
        }
    }

    fn kept(&self, kernel: &Kernel<'_>, indices: &[Index], place: &[Index], lanes: usize) -> Expr {
        let from = self.scratch.as_ref().unwrap_or(&kernel.results[0]);
        kernel.load(from, if self.scratch.is_some() { place } else { indices }, lanes, lanes)
    }

    /// What the sum of exponentials does to each element: a factor or, in strict code, a divisor; for the logarithm what is
    /// subtracted.
    fn denominator(&self, kernel: &mut Kernel<'_>, sum: Expr, largest: &Expr) -> Expr {
        if self.logarithm {
            let log = Expr::unary(UnaryFunction::Log, sum);
            return kernel.b.define("shift", largest.clone().plus(log));
        }
        if kernel.target.is_strict() {
            return kernel.b.define("divisor", sum);
        }
        let one = Expr::Literal(Literal::float(self.dtype, 1.0));
        let lanes = kernel.b.ty(&sum).lanes;
        let one = if lanes == 1 { one } else { Expr::Splat(Box::new(one), lanes) };
        kernel.b.define("scale", one.over(sum))
    }

    fn finish(&self, kernel: &mut Kernel<'_>, indices: &[Index], place: &[Index], lanes: usize, denominator: &Expr) {
        let value = if self.logarithm {
            kernel.load(&self.space.x, indices, lanes, lanes).minus(denominator.clone())
        } else {
            let kept = self.kept(kernel, indices, place, lanes);
            let strict = kernel.target.is_strict();
            if strict { kept.over(denominator.clone()) } else { kept.times(denominator.clone()) }
        };
        kernel.finish(value, indices, lanes);
    }

    fn along(&self, kernel: &mut Kernel<'_>, outer: &[Index], lanes: usize) {
        let space = self.space;
        let extent: usize = space.reduced.iter().product();
        let largest = Fold::largest(self.dtype).along(kernel, &space.reduced, lanes, &|kernel, reduced, lanes| {
            kernel.load(&space.x, &space.at(outer, reduced, &[]), lanes, lanes)
        });
        let largest = kernel.b.define("largest", largest);
        let sum = Fold::sum(self.dtype).along(kernel, &space.reduced, lanes, &|kernel, reduced, lanes| {
            let indices = space.at(outer, reduced, &[]);
            let value = self.exponential(kernel, &indices, lanes, &largest);
            if self.logarithm {
                return value;
            }
            let value = kernel.b.define("exponential", value);
            self.keep(kernel, value.clone(), &indices, reduced, lanes);
            value
        });
        let denominator = self.denominator(kernel, sum, &largest);
        let lanes = lanes.min(kernel.epilogue_lanes(self.dtype));
        for_vectors(kernel, "r", extent, lanes, self.dtype, |kernel, index, lanes| {
            let reduced = vec![index; space.reduced.len()];
            self.finish(kernel, &space.at(outer, &reduced, &[]), &reduced, lanes, &denominator);
        });
    }

    fn across(&self, kernel: &mut Kernel<'_>, outer: &[Index], inner: &[Index], lanes: usize) {
        let space = self.space;
        let zero = Index::default;
        let largest = Fold::largest(self.dtype).across(kernel, &space.reduced, 1, lanes, &|kernel, reduced, _| {
            kernel.load(&space.x, &space.at(outer, reduced, inner), lanes, lanes)
        });
        let Some(largest) = largest.into_iter().next() else { return };
        let largest = kernel.b.define("largest", largest);
        let place = |reduced: &[Index]| reduced.iter().cloned().chain([zero()]).collect::<Vec<_>>();
        let sums = Fold::sum(self.dtype).across(kernel, &space.reduced, 1, lanes, &|kernel, reduced, _| {
            let indices = space.at(outer, reduced, inner);
            let value = self.exponential(kernel, &indices, lanes, &largest);
            if self.logarithm {
                return value;
            }
            let value = kernel.b.define("exponential", value);
            self.keep(kernel, value.clone(), &indices, &place(reduced), lanes);
            value
        });
        let Some(sum) = sums.into_iter().next() else { return };
        let denominator = self.denominator(kernel, sum, &largest);
        kernel.for_shape(&["r"], &space.reduced, &mut |kernel, reduced| {
            self.finish(kernel, &space.at(outer, reduced, inner), &place(reduced), lanes, &denominator);
        });
    }
}
