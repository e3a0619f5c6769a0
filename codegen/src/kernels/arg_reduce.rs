//! The place of the largest or smallest element along an axis: one loop that keeps the best element and its place.

use super::KernelWriter;
use super::schedule::{Kind, Scheduled, Settings};
use super::walk::AXIS_NAMES;
use crate::loops::{Expr, Index, Nest};
use mlc_ir::ops::{ArgFunction, ArgReduce};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Diagnostic, Literal};

impl Scheduled for ArgReduce {
    const KINDS: &'static [Kind<Self>] = &[Kind::only("best-so-far", arg_reduce)];
}

fn arg_reduce(op: &ArgReduce, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let x = kernel.operands[0].clone();
    let dtype = x.view.dtype;
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
        kernel.for_range("r", Index::from(1usize), Index::from(extent), 1, |kernel, index| {
            let value = kernel.load(&x, &at(index.clone()), 1, 1);
            let value = kernel.b.define("value", value);
            kernel.when_value(better(op, dtype, value.clone(), Expr::Var(best)), |kernel| {
                kernel.b.assign(best, value);
                kernel.b.assign(place, Expr::Index(DType::I32, index));
            });
        });
        kernel.finish(Expr::Cast(DType::I64, Box::new(Expr::Var(place))), &result, 1);
    });
    Ok(())
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
