//! Running sums and products: one loop along the axis that carries the total; vectors run along axes that lie closer in memory.

use super::KernelWriter;
use super::schedule::{Kind, Scheduled, Settings};
use super::space::{Space, stretches};
use crate::loops::{Expr, Index, Nest};
use mlc_ir::ops::{Cumulative, CumulativeFunction};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{Diagnostic, Literal};

const OUTER_NAMES: [&str; 6] = ["i0", "i1", "i2", "i3", "i4", "i5"];

impl Scheduled for Cumulative {
    const KINDS: &'static [Kind<Self>] = &[Kind::only("running-total", cumulative).in_place()];
}

fn cumulative(op: &Cumulative, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    if kernel.results[0].view.elements() == 0 {
        return Ok(());
    }
    let dtype = kernel.operands[0].view.dtype;
    let space = Space::new(kernel, &[op.axis], true);
    let lanes = kernel.epilogue_lanes(dtype);
    kernel.for_shape(&OUTER_NAMES, &space.outer, &mut |kernel, outer| {
        let Some((&last, rows)) = space.inner.split_last() else { return run(kernel, &space, op, outer, &[], 1) };
        kernel.for_shape(&["j0", "j1", "j2", "j3"], rows, &mut |kernel, rows| {
            for stretch in stretches(last, lanes, 1, dtype) {
                let (start, end) = (Index::from(stretch.start), Index::from(stretch.end));
                kernel.for_range("c", start, end, stretch.lanes as i64, |kernel, index| {
                    let inner: Vec<Index> = rows.iter().cloned().chain([index]).collect();
                    run(kernel, &space, op, outer, &inner, stretch.lanes);
                });
            }
        });
    });
    Ok(())
}

/// The totals at one position of the other axes.
fn run(kernel: &mut KernelWriter<'_>, space: &Space, op: &Cumulative, outer: &[Index], inner: &[Index], lanes: usize) {
    let dtype = space.x.view.dtype;
    let (name, function, start) = match op.function {
        CumulativeFunction::Sum => ("sum", BinaryFunction::Add, 0.0),
        CumulativeFunction::Product => ("product", BinaryFunction::Multiply, 1.0),
    };
    let start = Expr::Literal(Literal::of(dtype, start));
    let start = if lanes == 1 { start } else { Expr::Splat(Box::new(start), lanes) };
    let total = kernel.b.mutable(name, start);
    let extent: usize = space.reduced.iter().product();
    kernel.for_each("r", extent, |kernel, step| {
        let place = if op.reverse { step.times(-1).offset(extent as i64 - 1) } else { step };
        let indices = space.at(outer, &vec![place; space.reduced.len()], inner);
        // The result may overwrite the operand: the element is read first.
        let x = kernel.load(&space.x, &indices, lanes, lanes);
        let x = kernel.b.define("x", x);
        let next = Expr::binary(function, Expr::Var(total), x);
        if op.exclusive {
            kernel.finish(Expr::Var(total), &indices, lanes);
            kernel.b.assign(total, next);
        } else {
            kernel.b.assign(total, next);
            kernel.finish(Expr::Var(total), &indices, lanes);
        }
    });
}
