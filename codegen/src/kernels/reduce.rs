//! Reductions. Where the operand's contiguous axis stays, vectors run along it and several of them are reduced at once; where
//! it is reduced, vectors run along it and their lanes are combined at the end.

use super::KernelWriter;
use super::fold::Fold;
use super::schedule::{Kind, Scheduled, Settings};
use super::space::{Space, stretches};
use super::vectors::moved_dtype;
use crate::loops::{Expr, Index, Nest};
use mlc_ir::ops::{Reduce, ReduceFunction};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Diagnostic, Literal};

const OUTER_NAMES: [&str; 6] = ["i0", "i1", "i2", "i3", "i4", "i5"];
/// Vectors that are reduced at once.
const VECTORS: usize = 4;

impl Scheduled for Reduce {
    const KINDS: &'static [Kind<Self>] = &[Kind::only("folds", reduce)];
}

fn reduce(op: &Reduce, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let dtype = moved_dtype(kernel.operands[0].view.dtype);
    kernel.operands[0].view.dtype = dtype;
    let fold = fold_of(op.function, dtype);
    reduce_axes(kernel, &op.axes, op.keep_axes, fold, op.function == ReduceFunction::Mean);
    Ok(())
}

fn fold_of(function: ReduceFunction, dtype: DType) -> Fold {
    match function {
        ReduceFunction::Sum | ReduceFunction::Mean => Fold::sum(dtype),
        ReduceFunction::Product => {
            Fold { name: "product", function: BinaryFunction::Multiply, start: Literal::of(dtype, 1.0) }
        }
        ReduceFunction::Maximum => Fold::largest(dtype),
        ReduceFunction::Minimum => Fold::smallest(dtype),
        ReduceFunction::All => Fold { name: "all", function: BinaryFunction::And, start: Literal::integer(dtype, 1) },
        ReduceFunction::Any => Fold { name: "any", function: BinaryFunction::Or, start: Literal::integer(dtype, 0) },
    }
}

/// The division of sums by a count: a product with its reciprocal, unless code must be strict.
#[derive(Debug, Clone, Copy)]
pub enum Scale {
    /// A factor.
    Factor(Literal),
    /// A divisor.
    Divisor(Literal),
}

impl Scale {
    /// The division by a count.
    pub fn by_reciprocal_of(count: usize, dtype: DType, kernel: &KernelWriter<'_>) -> Scale {
        if kernel.target.is_strict() {
            Scale::Divisor(Literal::float(dtype, count as f64))
        } else {
            Scale::Factor(Literal::float(dtype, 1.0 / count as f64))
        }
    }

    /// The sum divided by the count.
    pub fn apply(self, sum: Expr) -> Expr {
        match self {
            Scale::Factor(factor) => sum.times(factor.into()),
            Scale::Divisor(divisor) => sum.over(divisor.into()),
        }
    }
}

/// Folds the kernel's operand 0 along axes; a mean is divided by their extent.
pub fn reduce_axes(kernel: &mut KernelWriter<'_>, axes: &[usize], keep_axes: bool, fold: Fold, mean: bool) {
    if kernel.results[0].view.elements() == 0 {
        return;
    }
    let dtype = kernel.operands[0].view.dtype;
    let count: usize = axes.iter().map(|&axis| kernel.operands[0].view.shape[axis]).product();
    let scale = mean.then(|| Scale::by_reciprocal_of(count, dtype, kernel));
    let space = Space::new(kernel, axes, keep_axes);
    // Truth values are folded as bytes.
    let element = if fold.is_of_truth() { DType::Bool } else { dtype };
    let scaled = |value: Expr| match scale {
        Some(scale) => scale.apply(value),
        None if element != dtype => Expr::Cast(element, Box::new(value)),
        None => value,
    };
    let no_reduced = space.no_reduced();
    kernel.for_shape(&OUTER_NAMES, &space.outer, &mut |kernel, outer| {
        let Some((&last, rows)) = space.inner.split_last() else {
            let lanes = if space.is_contiguous() { kernel.lanes(dtype) } else { 1 };
            let value = fold.along(kernel, &space.reduced, lanes, &|kernel, reduced, lanes| {
                kernel.load(&space.x, &space.at(outer, reduced, &[]), lanes, lanes)
            });
            return kernel.finish(scaled(value), &space.at(outer, &no_reduced, &[]), 1);
        };
        kernel.for_shape(&["j0", "j1", "j2", "j3"], rows, &mut |kernel, rows| {
            let lanes = kernel.lanes_beside_epilogue(dtype, element);
            for stretch in stretches(last, lanes, VECTORS, dtype) {
                let block = (stretch.vectors * stretch.lanes) as i64;
                let at = |index: &Index, vector: usize| -> Vec<Index> {
                    let index = index.offset((vector * stretch.lanes) as i64);
                    rows.iter().cloned().chain([index]).collect()
                };
                kernel.for_range("c", Index::from(stretch.start), Index::from(stretch.end), block, |kernel, index| {
                    let values = fold.across(
                        kernel,
                        &space.reduced,
                        stretch.vectors,
                        stretch.lanes,
                        &|kernel, reduced, vector| {
                            let indices = space.at(outer, reduced, &at(&index, vector));
                            kernel.load(&space.x, &indices, stretch.lanes, stretch.lanes)
                        },
                    );
                    for (vector, value) in values.into_iter().enumerate() {
                        let indices = space.at(outer, &no_reduced, &at(&index, vector));
                        kernel.finish(scaled(value), &indices, stretch.lanes);
                    }
                });
            }
        });
    });
}
