//! Elementwise operators and plain movement: one loop nest over the result, with axes merged where all tensors allow it and
//! vectors along the innermost axis.

use super::quads::{QUAD, has_quads};
use super::schedule::{Kind, Preferences, Scheduled, Settings};
use super::transposed::Blocks;
use super::walk::{AXIS_NAMES, for_full_vectors};
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest, Routine, Stmt};
use crate::lower::view::{View, merge_axes};
use mlc_ir::ops::Map;
use mlc_ir::scalar::Expression;
use mlc_ir::{DType, Diagnostic, Literal};

impl Scheduled for Map {
    const KINDS: &'static [Kind<Self>] = &[
        Kind::new("copies", copies, |_, _, kernel| copy(kernel)).in_place(),
        Kind::new("rows", |_, _| vec![(1, Settings::default())], |op, _, kernel| map(op, false, kernel)).in_place(),
        Kind::new("blocks", blocks, |op, _, kernel| map(op, true, kernel)).in_place(),
    ];
}

/// Bytes of elements that follow each other from which on a routine copies them: fewer are loaded and stored one after the other.
const LEAST_RUN: usize = 65;

fn copies(op: &Map, kernel: &KernelWriter<'_>) -> Preferences {
    match op.expression.is_identity() && has_runs(kernel, &kernel.operands[0], &kernel.results[0]) {
        true => vec![(0, Settings::default())],
        false => Preferences::new(),
    }
}

fn copy(kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let (operand, result) = (kernel.operands[0].clone(), kernel.results[0].clone());
    copy_runs(kernel, &operand, &result);
    Ok(())
}

/// Whether elements that are only moved follow each other before and after, and a routine is to copy them: C compilers make calls of such
/// loops, and libraries that are made to be small copy byte by byte.
pub fn has_runs(kernel: &KernelWriter<'_>, operand: &Argument, result: &Argument) -> bool {
    let walk = Walk::new(kernel, &Expression::operand(0), std::slice::from_ref(operand), result);
    let is_long = walk.lanes == 1 && walk.run().is_some_and(|run| run >= LEAST_RUN);
    kernel.target.copies_by_routine() && is_long
}

/// Copies elements that follow each other by a routine.
pub fn copy_runs(kernel: &mut KernelWriter<'_>, operand: &Argument, result: &Argument) {
    let walk = Walk::new(kernel, &Expression::operand(0), std::slice::from_ref(operand), result);
    let (Some(run), Some(stored)) = (walk.run(), walk.stored) else { return };
    let routine = Routine::CopyBytes { size: stored.size() };
    let outer = walk.views[0].shape.len() - 1;
    let outer = walk.views[0].shape[..outer].to_vec();
    kernel.for_shape(&AXIS_NAMES, &outer, &mut |kernel, indices| {
        let first: Vec<Index> = indices.iter().cloned().chain([Index::default()]).collect();
        let place = |argument: &Argument, view: &View| {
            let argument = Argument { view: view.clone(), ..argument.clone() };
            (argument.pointer, argument.address(&first))
        };
        let pointers = vec![place(operand, &walk.views[1]), place(result, &walk.views[0])];
        kernel.b.push(Stmt::Routine { routine, pointers, numbers: vec![run as i64] });
    });
}

fn blocks(op: &Map, kernel: &KernelWriter<'_>) -> Preferences {
    let walk = Walk::new(kernel, &op.expression, &kernel.operands, &kernel.results[0]);
    match walk.blocks {
        Some(_) => vec![(if walk.blocks_pay { 0 } else { 2 }, Settings::default())],
        None => Preferences::new(),
    }
}

fn map(op: &Map, in_blocks: bool, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    let (operands, result) = (kernel.operands.clone(), kernel.results[0].clone());
    let walk = Walk::new(kernel, &op.expression, &operands, &result);
    walk.write(kernel, &op.expression, &operands, &result, in_blocks);
    Ok(())
}

/// Computes an expression of operands for each element of some memory, in blocks where they pay.
pub fn apply(kernel: &mut KernelWriter<'_>, expression: &Expression, operands: &[Argument], result: &Argument) {
    let walk = Walk::new(kernel, expression, operands, result);
    let in_blocks = walk.blocks_pay;
    walk.write(kernel, expression, operands, result, in_blocks);
}

/// How the elements of a result and of operands can be walked.
struct Walk {
    /// Of the result and the operands, with the same axes.
    views: Vec<View>,
    /// The type of the elements in memory, where all tensors have the same.
    stored: Option<DType>,
    /// The type in whose vectors the elements can be computed.
    dtype: Option<DType>,
    /// Lanes of vectors of it.
    lanes: usize,
    /// Blocks, where an operand is transposed.
    blocks: Option<Blocks>,
    blocks_pay: bool,
}

impl Walk {
    fn new(kernel: &KernelWriter<'_>, expression: &Expression, operands: &[Argument], result: &Argument) -> Walk {
        let shape = result.view.shape.clone();
        let mut views = vec![result.view.clone()];
        views.extend(operands.iter().map(|operand| operand.view.broadcast(&shape)));
        let views = merge_axes(&views);
        let dtypes: Vec<DType> = operands.iter().map(|operand| operand.view.dtype).collect();
        let dtype = result.view.dtype;
        let movement = expression.is_identity() && dtype != DType::Bool;
        let dtype = if movement { Some(dtype) } else { kernel.vector_dtype(expression, &dtypes) };
        let lanes = dtype.map_or(1, |dtype| kernel.lanes(dtype));
        let blocks = Blocks::new(&views, lanes);
        let blocks_pay = blocks.is_some() && Blocks::pay(kernel.target, &views[0], lanes);
        let is_quads = dtype.is_none() && blocks.is_none() && has_quads(kernel, expression, &dtypes);
        let lanes = if is_quads { QUAD } else { lanes };
        let first = kernel.b.element_dtype(result.pointer);
        let is_first = |operand: &Argument| kernel.b.element_dtype(operand.pointer) == first;
        let stored = operands.iter().all(is_first).then_some(first);
        Walk { views, stored, dtype, lanes, blocks, blocks_pay }
    }

    /// Bytes of the elements along the last axis, where they follow each other in all tensors.
    fn run(&self) -> Option<usize> {
        let bytes = self.views[0].shape.last()? * self.stored?.size();
        let is_dense = self.views.iter().all(|view| view.strides.last() == Some(&1));
        (is_dense && bytes > 0 && bytes <= i32::MAX as usize).then_some(bytes)
    }

    fn write(
        self,
        kernel: &mut KernelWriter<'_>,
        expression: &Expression,
        operands: &[Argument],
        result: &Argument,
        in_blocks: bool,
    ) {
        if result.view.elements() == 0 {
            return;
        }
        let Walk { views, dtype, lanes, blocks, .. } = self;
        let unit_strides =
            views.iter().all(|view| matches!(view.strides.last(), Some(0 | 1))) && views[0].strides.last() == Some(&1);
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
            let value = kernel.known_expression(expression, values, lanes);
            kernel.store(&result, value, indices, lanes);
        };
        match blocks.filter(|_| in_blocks) {
            Some(blocks) => blocks.nest(kernel, lanes, element),
            None => nest(kernel, &result.view, if unit_strides { lanes } else { 1 }, element),
        }
    }
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
