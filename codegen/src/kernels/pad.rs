//! Pads that repeat elements of the tensor. Along the last axis border and interior have loops of their own, so that the
//! interior is copied in vectors; along the other axes the source element is computed once per row.

use super::KernelWriter;
use super::schedule::{Kind, Scheduled, Settings};
use super::space::for_vectors;
use super::walk::AXIS_NAMES;
use crate::loops::{Index, Nest};
use mlc_ir::ops::{Pad, PadMode};
use mlc_ir::{Code, Diagnostic, Location};

impl Scheduled for Pad {
    const KINDS: &'static [Kind<Self>] = &[Kind::only("rows", pad)];
}

fn pad(op: &Pad, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    if op.mode == PadMode::Constant {
        let message = "pads of a constant are placed by lowering, not computed";
        return Err(Diagnostic::error(Code::TargetLimit, Location::default(), message));
    }
    let x = kernel.operands[0].clone();
    let shape = kernel.results[0].view.shape.to_vec();
    let dtype = x.view.dtype;
    let Some((&last, outer)) = shape.split_last() else {
        let value = kernel.load(&x, &[], 1, 1);
        kernel.finish(value, &[], 1);
        return Ok(());
    };
    let axis = outer.len();
    let lanes = if x.view.last_stride() == 1 { kernel.epilogue_lanes(dtype) } else { 1 };
    kernel.for_shape(&AXIS_NAMES, outer, &mut |kernel, position| {
        let mut row: Vec<Index> = Vec::new();
        for (axis, index) in position.iter().enumerate() {
            let source = source(kernel, op, axis, index, x.view.shape[axis]);
            row.push(if op.pads[axis] == (0, 0) { source } else { kernel.b.define_index("row", source) });
        }
        let move_one = |kernel: &mut KernelWriter<'_>, from: Index, to: Index, lanes: usize| {
            let from: Vec<Index> = row.iter().cloned().chain([from]).collect();
            let to: Vec<Index> = position.iter().cloned().chain([to]).collect();
            let value = kernel.load(&x, &from, lanes, lanes);
            kernel.finish(value, &to, lanes);
        };
        let extent = x.view.shape[axis];
        let (before, after) = (op.pads[axis].0, op.pads[axis].0 + extent);
        for (start, end) in [(0, before), (after, last)] {
            kernel.for_range("c", Index::from(start), Index::from(end), 1, |kernel, to| {
                let from = source(kernel, op, axis, &to, extent);
                move_one(kernel, from, to, 1);
            });
        }
        for_vectors(kernel, "c", extent, lanes, dtype, |kernel, from, lanes| {
            let to = from.offset(before as i64);
            move_one(kernel, from, to, lanes);
        });
    });
    Ok(())
}

/// The element along an axis that the result shows at an index.
fn source(kernel: &mut KernelWriter<'_>, op: &Pad, axis: usize, index: &Index, extent: usize) -> Index {
    let (before, after) = op.pads[axis];
    if (before, after) == (0, 0) {
        return index.clone();
    }
    let place = index.offset(-(before as i64));
    let last = Index::from(extent as i64 - 1);
    match op.mode {
        PadMode::Reflect => {
            let risen = if before > 0 { place.maximum(&place.times(-1)) } else { place };
            if after == 0 {
                return risen;
            }
            let risen = kernel.b.define_index("mirrored", risen);
            risen.minimum(&last.times(2).plus(&risen.times(-1)))
        }
        PadMode::Circular => place.offset(extent as i64).modulo(extent as i64),
        PadMode::Replicate | PadMode::Constant => place.maximum(&Index::default()).minimum(&last),
    }
}
