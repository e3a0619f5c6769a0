//! Places in a sorted sequence: one loop over the sequence counts what stands before a value. It has no branch, so that its
//! time doesn't depend on the data, and it needs no order: on data that aren't sorted it gives what the evaluator gives.

use super::KernelWriter;
use super::schedule::{Kind, Scheduled, Settings};
use super::walk::AXIS_NAMES;
use crate::loops::{Expr, Index, Nest};
use mlc_ir::ops::SearchSorted;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Diagnostic, Literal};

impl Scheduled for SearchSorted {
    const KINDS: &'static [Kind<Self>] = &[Kind::only("count", search_sorted)];
}

fn search_sorted(op: &SearchSorted, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let (sequence, values) = (kernel.operands[0].clone(), kernel.operands[1].clone());
    let Some((&length, rows)) = sequence.view.shape.split_last() else { return Ok(()) };
    let rows = rows.len();
    // What isn't before a value: NaN compares as neither, and counts as being before it.
    let behind = if op.right { BinaryFunction::Greater } else { BinaryFunction::GreaterEqual };
    let shape = values.view.shape.to_vec();
    kernel.for_shape(&AXIS_NAMES, &shape, &mut |kernel, indices| {
        let value = kernel.load(&values, indices, 1, 1);
        let value = kernel.b.define("value", value);
        let count = kernel.b.mutable("count", Literal::integer(DType::I64, 0).into());
        kernel.for_range("r", Index::default(), Index::from(length), 1, |kernel, place| {
            let at = [&indices[..rows], &[place]].concat();
            let element = kernel.load(&sequence, &at, 1, 1);
            let before = Expr::unary(UnaryFunction::Not, Expr::binary(behind, element, value.clone()));
            let one = Expr::Cast(DType::I64, Box::new(before));
            kernel.b.assign(count, Expr::binary(BinaryFunction::Add, Expr::Var(count), one));
        });
        kernel.finish(Expr::Var(count), indices, 1);
    });
    Ok(())
}
