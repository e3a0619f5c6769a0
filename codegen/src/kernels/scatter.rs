//! Scatters: the data is copied, then each index is resolved once, and the updates behind it are written or combined in
//! vectors, in the order in which they lie. An index outside of the axis writes nothing.

use super::place::Place;
use super::schedule::{Kind, Scheduled, Settings};
use super::space::for_shape_in_vectors;
use super::walk::AXIS_NAMES;
use super::{Argument, KernelWriter, elementwise};
use crate::loops::{Expr, Index, Nest};
use crate::lower::view::View;
use mlc_ir::Diagnostic;
use mlc_ir::ops::{Scatter, ScatterReduction};
use mlc_ir::scalar::{BinaryFunction, Expression};

impl Scheduled for Scatter {
    const KINDS: &'static [Kind<Self>] = &[Kind::only("copy-and-update", scatter)];
}

fn scatter(op: &Scatter, _: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let data = kernel.operands[0].clone();
    if data.view.elements() == 0 {
        return Ok(());
    }
    // Elements are written several times, and only what they are in the end goes through the epilogue.
    let target = match &kernel.epilogue {
        None => kernel.results[0].clone(),
        Some(_) => {
            let pointer = kernel.scratch("scattered", data.view.dtype, data.view.elements());
            Argument { pointer, view: View::dense(data.view.dtype, &data.view.shape), constant: None, operand: None }
        }
    };
    elementwise::apply(kernel, &Expression::operand(0), std::slice::from_ref(&data), &target);
    write_updates(kernel, op, &target);
    if kernel.epilogue.is_some() {
        let shape = target.view.shape.to_vec();
        kernel.for_shape(&AXIS_NAMES, &shape, &mut |kernel, indices| {
            let value = kernel.load(&target, indices, 1, 1);
            kernel.finish(value, indices, 1);
        });
    }
    Ok(())
}

fn write_updates(kernel: &mut KernelWriter<'_>, op: &Scatter, target: &Argument) {
    let (places, updates) = (kernel.operands[1].clone(), kernel.operands[2].clone());
    if updates.view.elements() == 0 {
        return;
    }
    let dtype = target.view.dtype;
    let extent = target.view.shape[op.axis];
    let shape = updates.view.shape.to_vec();
    // One index counts for all updates behind these axes.
    let varying = places.view.shape.iter().rposition(|&extent| extent > 1).map_or(0, |axis| axis + 1);
    let (outer, inner) = shape.split_at(varying.max(op.axis + 1));
    let contiguous = !inner.is_empty() && target.view.last_stride() == 1 && updates.view.last_stride() == 1;
    let lanes = if contiguous { kernel.lanes(dtype) } else { 1 };
    kernel.for_shape(&AXIS_NAMES, outer, &mut |kernel, position| {
        let all: Vec<Index> = position.iter().cloned().chain(inner.iter().map(|_| Index::default())).collect();
        let index = kernel.load(&places, &all, 1, 1);
        let (place, inside) = Place::new(kernel, index, extent).checked(kernel);
        kernel.when_value(inside, |kernel| {
            for_shape_in_vectors(kernel, &["j0", "j1", "j2", "j3"], inner, lanes, dtype, |kernel, inner, lanes| {
                let source = [position, inner].concat();
                let mut destination = source.clone();
                destination[op.axis] = place.clone();
                let update = kernel.load(&updates, &source, lanes, lanes);
                let value = combined(kernel, op.reduction, target, &destination, update, lanes);
                kernel.store(target, value, &destination, lanes);
            });
        });
    });
}

fn combined(
    kernel: &mut KernelWriter<'_>,
    reduction: ScatterReduction,
    target: &Argument,
    destination: &[Index],
    update: Expr,
    lanes: usize,
) -> Expr {
    let function = match reduction {
        ScatterReduction::Replace => return update,
        ScatterReduction::Sum => BinaryFunction::Add,
        ScatterReduction::Product => BinaryFunction::Multiply,
        ScatterReduction::Maximum => BinaryFunction::Maximum,
        ScatterReduction::Minimum => BinaryFunction::Minimum,
    };
    let old = kernel.load(target, destination, lanes, lanes);
    Expr::binary(function, old, update)
}
