//! Elementwise operators and plain movement: one loop nest over the result, with axes merged where all tensors allow it and
//! vectors along the innermost axis.

use super::transposed::Blocks;
use super::vectors::moved_dtype;
use super::walk::{AXIS_NAMES, for_full_vectors};
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest};
use crate::lower::view::{View, merge_axes};
use mlc_ir::scalar::Expression;
use mlc_ir::{DType, Literal};

/// Computes an expression of the kernel's operands for each element of the first result.
pub fn map(kernel: &mut KernelWriter<'_>, expression: &Expression) {
    let (operands, result) = (kernel.operands.clone(), kernel.results[0].clone());
    apply(kernel, expression, &operands, &result);
}

/// Computes an expression of operands for each element of some memory.
pub fn apply(kernel: &mut KernelWriter<'_>, expression: &Expression, operands: &[Argument], result: &Argument) {
    let shape = result.view.shape.clone();
    if result.view.elements() == 0 {
        return;
    }
    let mut views = vec![result.view.clone()];
    views.extend(operands.iter().map(|operand| operand.view.broadcast(&shape)));
    let views = merge_axes(&views);
    let dtypes: Vec<DType> = operands.iter().map(|operand| operand.view.dtype).collect();
    let dtype = result.view.dtype;
    let movement = expression.is_identity() && dtype != DType::Bool;
    let dtype = if movement { Some(dtype) } else { kernel.vector_dtype(expression, &dtypes) };
    let unit_strides =
        views.iter().all(|view| matches!(view.strides.last(), Some(0 | 1))) && views[0].strides.last() == Some(&1);
    let lanes = dtype.map_or(1, |dtype| kernel.lanes(dtype));
    let blocks = Blocks::new(kernel.target, &views, lanes);
    let lanes = if unit_strides || blocks.is_some() { lanes } else { 1 };
    let operands: Vec<Argument> = operands
        .iter()
        .zip(&views[1..])
        .map(|(operand, view)| Argument { view: view.clone(), ..operand.clone() })
        .collect();
    let result = Argument { view: views[0].clone(), ..result.clone() };
    let element = |kernel: &mut KernelWriter<'_>, indices: &[Index], lanes: usize| {
        let load = |operand| match dtype {
            Some(dtype) => kernel.load_beside(dtype, operand, indices, lanes, lanes),
            None => kernel.load(operand, indices, lanes, lanes),
        };
        let values = operands.iter().map(load).collect();
        let value = kernel.expression(expression, values, lanes);
        kernel.store(&result, value, indices, lanes);
    };
    match blocks {
        Some(blocks) => blocks.nest(kernel, lanes, element),
        None => nest(kernel, &result.view, lanes, element),
    }
}

/// Copies the kernel's operand to its first result.
pub fn copy(kernel: &mut KernelWriter<'_>) {
    for argument in kernel.operands.iter_mut().chain(&mut kernel.results) {
        argument.view.dtype = moved_dtype(argument.view.dtype);
    }
    map(kernel, &Expression::operand(0));
}

/// Writes a constant into the border that pads leave around the interior of the first result.
pub fn fill_border(kernel: &mut KernelWriter<'_>, pads: &[(usize, usize)], value: Literal) {
    let whole = kernel.results[0].view.clone();
    let mut starts = vec![0usize; whole.rank()];
    let mut sizes: Vec<usize> = whole.shape.to_vec();
    for (axis, &(before, after)) in pads.iter().enumerate() {
        for (start, size) in [(0, before), (whole.shape[axis] - after, after)] {
            if size > 0 {
                let (mut from, mut extents) = (starts.clone(), sizes.clone());
                from[axis] = start;
                extents[axis] = size;
                fill(kernel, &whole.slice(&from, &extents, &vec![1; from.len()]), value);
            }
        }
        starts[axis] = before;
        sizes[axis] -= before + after;
    }
}

fn fill(kernel: &mut KernelWriter<'_>, view: &View, value: Literal) {
    if view.elements() == 0 {
        return;
    }
    let base = kernel.results[0].pointer;
    let offset = view.offset - kernel.results[0].view.offset;
    let merged = merge_axes(std::slice::from_ref(view)).remove(0);
    let pointer = kernel.b.pointer("border", base, Index::from(offset));
    let result = Argument { pointer, view: merged.clone(), constant: None, operand: None };
    let lanes = if merged.strides.last() == Some(&1) { kernel.lanes(view.dtype) } else { 1 };
    nest(kernel, &merged, lanes, |kernel, indices, lanes| {
        kernel.store(&result, Expr::splat(value, lanes), indices, lanes);
    });
}

/// Loops over all positions of a view, in vectors of `lanes` along the last axis and single elements for the rest of it.
pub fn nest(
    kernel: &mut KernelWriter<'_>,
    view: &View,
    lanes: usize,
    body: impl Fn(&mut KernelWriter<'_>, &[Index], usize),
) {
    let Some((&extent, outer)) = view.shape.split_last() else { return body(kernel, &[], 1) };
    kernel.for_shape(&AXIS_NAMES, outer, &mut |kernel, indices| {
        for_full_vectors(kernel, extent, lanes, |kernel, index, lanes| {
            let indices: Vec<Index> = indices.iter().cloned().chain([index]).collect();
            body(kernel, &indices, lanes);
        });
    });
}
