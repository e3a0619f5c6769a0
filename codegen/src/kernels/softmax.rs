//! Softmax: the largest element, the sum of the exponentials, and the quotients, each in one loop over the axis. The
//! exponentials wait in the result's own memory, or in scratch memory where an epilogue computes the result; or they are computed
//! again, which takes no memory.

use super::fold::Fold;
use super::schedule::{Kind, Preferences, Scheduled, Settings};
use super::space::{Space, for_vectors, stretches};
use super::{Argument, KernelWriter};
use crate::loops::halves::is_half;
use crate::loops::{Expr, Index, Nest};
use crate::lower::view::View;
use mlc_ir::ops::Softmax;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Diagnostic, Literal};

const OUTER_NAMES: [&str; 6] = ["i0", "i1", "i2", "i3", "i4", "i5"];

impl Scheduled for Softmax {
    const KINDS: &'static [Kind<Self>] = &[
        Kind::new("kept", |_, _| vec![(0, Settings::default())], |op, _, kernel| softmax(op, true, kernel)).in_place(),
        Kind::new("recomputed", recomputed, |op, _, kernel| softmax(op, false, kernel)).in_place(),
    ];
}

/// The logarithm needs the exponentials for their sum alone.
fn recomputed(op: &Softmax, _: &KernelWriter<'_>) -> Preferences {
    if op.logarithm { Preferences::new() } else { vec![(1, Settings::default())] }
}

fn softmax(op: &Softmax, keeps: bool, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    if kernel.results[0].view.elements() == 0 {
        return Ok(());
    }
    let dtype = kernel.operands[0].view.dtype;
    let space = Space::new(kernel, &[op.axis], true);
    let lanes = kernel.epilogue_lanes(dtype);
    let row = Row::new(kernel, &space, op.logarithm, keeps, lanes);
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
    /// Whether exponentials wait until their sum is known.
    keeps: bool,
    /// Where they wait, when it isn't the result; indexed by element and lane.
    scratch: Option<Argument>,
}

/// What each element is computed from, beside itself.
struct Sum {
    /// The largest element.
    largest: Expr,
    part: Part,
}

/// What the sum of exponentials does to each element.
enum Part {
    /// It multiplies the element's exponential.
    Factor(Expr),
    /// It divides the element's exponential, in strict code.
    Divisor(Expr),
    /// The largest element is subtracted from the element, and then the logarithm of the sum: in one step, that would be
    /// rounded in units of the largest.
    Logarithm(Expr),
}

impl Row<'_> {
    fn new<'a>(kernel: &mut KernelWriter<'_>, space: &'a Space, logarithm: bool, keeps: bool, lanes: usize) -> Row<'a> {
        let dtype = space.x.view.dtype;
        // Exponentials in half precision would be rounded twice.
        let narrow = is_half(kernel.b.element_dtype(kernel.results[0].pointer));
        let scratch = ((kernel.epilogue.is_some() || narrow) && !logarithm && keeps).then(|| {
            let mut shape = space.reduced.to_vec();
            if !space.inner.is_empty() {
                shape.push(lanes);
            }
            let pointer = kernel.scratch("exponentials", dtype, shape.iter().product());
            Argument { pointer, view: View::dense(dtype, &shape), constant: None, operand: None }
        });
        Row { space, dtype, logarithm, keeps, scratch }
    }

    /// An element's share of the sum: its exponential, kept; for the logarithm that of smaller elements than the largest, and
    /// 0 for the largest, whose 1 would hide the others.
    fn share(
        &self,
        kernel: &mut KernelWriter<'_>,
        indices: &[Index],
        place: &[Index],
        lanes: usize,
        largest: &Expr,
    ) -> Expr {
        let x = kernel.load(&self.space.x, indices, lanes, lanes);
        if !self.logarithm {
            let value = kernel.b.define("exponential", Expr::unary(UnaryFunction::Exp, x.minus(largest.clone())));
            if self.keeps {
                self.keep(kernel, value.clone(), indices, place, lanes);
            }
            return value;
        }
        let x = kernel.b.define("x", x);
        let value = Expr::unary(UnaryFunction::Exp, x.clone().minus(largest.clone()));
        let value = kernel.b.define("exponential", value);
        let one = self.number(1.0, lanes);
        let smaller = Expr::binary(BinaryFunction::Less, x, largest.clone());
        Expr::Select(Box::new(smaller), Box::new(value.clone()), Box::new(value.minus(one)))
    }

    /// 1 for the largest elements, which the sum for the logarithm leaves out, 0 for others.
    fn is_largest(&self, kernel: &mut KernelWriter<'_>, indices: &[Index], lanes: usize, largest: &Expr) -> Expr {
        let x = kernel.load(&self.space.x, indices, lanes, lanes);
        let smaller = Expr::binary(BinaryFunction::Less, x, largest.clone());
        Expr::Select(Box::new(smaller), Box::new(self.number(0.0, lanes)), Box::new(self.number(1.0, lanes)))
    }

    fn number(&self, value: f64, lanes: usize) -> Expr {
        let number = Expr::Literal(Literal::float(self.dtype, value));
        if lanes == 1 { number } else { Expr::Splat(Box::new(number), lanes) }
    }

    /// Keeps an exponential until the sum is known.
    fn keep(&self, kernel: &mut KernelWriter<'_>, value: Expr, indices: &[Index], place: &[Index], lanes: usize) {
        match &self.scratch {
            Some(scratch) => kernel.store(&scratch.clone(), value, place, lanes),
            None => {
                let result = kernel.results[0].clone();
                kernel.store(&result, value, indices, lanes);
            }
        }
    }

    /// The exponential of an element.
    fn exponential(
        &self,
        kernel: &KernelWriter<'_>,
        indices: &[Index],
        place: &[Index],
        lanes: usize,
        sum: &Sum,
    ) -> Expr {
        if !self.keeps {
            let x = kernel.load(&self.space.x, indices, lanes, lanes);
            return Expr::unary(UnaryFunction::Exp, x.minus(sum.largest.clone()));
        }
        let from = self.scratch.as_ref().unwrap_or(&kernel.results[0]);
        kernel.load(from, if self.scratch.is_some() { place } else { indices }, lanes, lanes)
    }

    fn denominator(&self, kernel: &mut KernelWriter<'_>, sum: Expr, largest: Expr) -> Sum {
        if kernel.target.is_strict() {
            return Sum { largest, part: Part::Divisor(kernel.b.define("divisor", sum)) };
        }
        let one = self.number(1.0, kernel.b.ty(&sum).lanes);
        Sum { largest, part: Part::Factor(kernel.b.define("scale", one.over(sum))) }
    }

    /// The logarithm of the sum of exponentials, of which one is 1: `log1p` of the others keeps what is small beside it.
    fn logarithm(&self, kernel: &mut KernelWriter<'_>, rest: Expr, count: Expr, largest: Expr) -> Sum {
        let one = self.number(1.0, kernel.b.ty(&rest).lanes);
        let others = rest.plus(count.minus(one));
        let logarithm = kernel.b.define("logarithm", Expr::unary(UnaryFunction::Log1p, others));
        Sum { largest, part: Part::Logarithm(logarithm) }
    }

    fn finish(&self, kernel: &mut KernelWriter<'_>, indices: &[Index], place: &[Index], lanes: usize, sum: &Sum) {
        let value = match &sum.part {
            Part::Logarithm(logarithm) => {
                let x = kernel.load(&self.space.x, indices, lanes, lanes);
                x.minus(sum.largest.clone()).minus(logarithm.clone())
            }
            Part::Divisor(divisor) => self.exponential(kernel, indices, place, lanes, sum).over(divisor.clone()),
            Part::Factor(factor) => self.exponential(kernel, indices, place, lanes, sum).times(factor.clone()),
        };
        kernel.finish(value, indices, lanes);
    }

    fn along(&self, kernel: &mut KernelWriter<'_>, outer: &[Index], lanes: usize) {
        let space = self.space;
        let extent: usize = space.reduced.iter().product();
        let largest = Fold::largest(self.dtype).along(kernel, &space.reduced, lanes, &|kernel, reduced, lanes| {
            kernel.load(&space.x, &space.at(outer, reduced, &[]), lanes, lanes)
        });
        let largest = kernel.b.define("largest", largest);
        let sum = Fold::sum(self.dtype).along(kernel, &space.reduced, lanes, &|kernel, reduced, lanes| {
            self.share(kernel, &space.at(outer, reduced, &[]), reduced, lanes, &largest)
        });
        let sum = if self.logarithm {
            let count = Fold::sum(self.dtype).along(kernel, &space.reduced, lanes, &|kernel, reduced, lanes| {
                self.is_largest(kernel, &space.at(outer, reduced, &[]), lanes, &largest)
            });
            self.logarithm(kernel, sum, count, largest)
        } else {
            self.denominator(kernel, sum, largest)
        };
        let lanes = lanes.min(kernel.epilogue_lanes(self.dtype));
        for_vectors(kernel, "r", extent, lanes, self.dtype, |kernel, index, lanes| {
            let reduced = vec![index; space.reduced.len()];
            self.finish(kernel, &space.at(outer, &reduced, &[]), &reduced, lanes, &sum);
        });
    }

    fn across(&self, kernel: &mut KernelWriter<'_>, outer: &[Index], inner: &[Index], lanes: usize) {
        let space = self.space;
        let zero = Index::default;
        let largest = Fold::largest(self.dtype).across(kernel, &space.reduced, 1, lanes, &|kernel, reduced, _| {
            kernel.load(&space.x, &space.at(outer, reduced, inner), lanes, lanes)
        });
        let Some(largest) = largest.into_iter().next() else { return };
        let largest = kernel.b.define("largest", largest);
        let place = |reduced: &[Index]| reduced.iter().cloned().chain([zero()]).collect::<Vec<_>>();
        let sums = Fold::sum(self.dtype).across(kernel, &space.reduced, 1, lanes, &|kernel, reduced, _| {
            self.share(kernel, &space.at(outer, reduced, inner), &place(reduced), lanes, &largest)
        });
        let Some(sum) = sums.into_iter().next() else { return };
        let sum = if self.logarithm {
            let counts = Fold::sum(self.dtype).across(kernel, &space.reduced, 1, lanes, &|kernel, reduced, _| {
                self.is_largest(kernel, &space.at(outer, reduced, inner), lanes, &largest)
            });
            let Some(count) = counts.into_iter().next() else { return };
            self.logarithm(kernel, sum, count, largest)
        } else {
            self.denominator(kernel, sum, largest)
        };
        kernel.for_shape(&["r"], &space.reduced, &mut |kernel, reduced| {
            self.finish(kernel, &space.at(outer, reduced, inner), &place(reduced), lanes, &sum);
        });
    }
}
