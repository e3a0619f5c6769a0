//! Iteration spaces of operators that combine elements along some axes of their operand: which axes are walked in which order,
//! and how a vector walks along the last of them.

use super::{Argument, KernelWriter};
use crate::loops::{Index, Nest};
use crate::lower::view::{Strides, View, merge_axes};
use mlc_ir::{DType, Shape};

/// An operand whose axes are grouped as outer, reduced and inner ones, each group merged as far as its layout allows. The
/// kernel's first result and epilogue take the same axes, with extent 1 where the result has no reduced ones.
///
/// The inner axes are those that lie closer in memory than the reduced ones; the last one of them is contiguous.
pub struct Space {
    /// The operand, with the axes in that order.
    pub x: Argument,
    /// Extents of the outer axes.
    pub outer: Shape,
    /// Extents of the reduced axes.
    pub reduced: Shape,
    /// Extents of the inner axes.
    pub inner: Shape,
}

impl Space {
    /// The space of the kernel's operand 0 with some axes reduced. The result has the operand's axes, or lacks the reduced
    /// ones (`keep_axes` false), or has extent 1 there.
    pub fn new(kernel: &mut KernelWriter<'_>, axes: &[usize], keep_axes: bool) -> Space {
        let x = kernel.operands[0].clone();
        let result_shape = kernel.results[0].view.shape.clone();
        let expand = |view: &View| if keep_axes { view.clone() } else { with_axes(view, axes) };
        let mut views = vec![x.view.clone(), expand(&kernel.results[0].view)];
        if let Some(epilogue) = &kernel.epilogue {
            views.extend(epilogue.operands.iter().map(|operand| expand(&operand.view.broadcast(&result_shape))));
        }
        let groups = grouped(&x.view, axes, kernel.target.is_strict());
        let whole = views[1].shape == x.view.shape;
        let mut spaced: Vec<View> =
            views.iter().map(|view| View { shape: Shape::new(), strides: Strides::new(), ..view.clone() }).collect();
        let mut extents: Vec<Shape> = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            let parts: Vec<View> = views.iter().map(|view| select(view, group)).collect();
            let merged = if number == 1 && !whole {
                let own = merge_axes(&parts[..1]);
                let one = View { shape: Shape::from_elem(1, own[0].rank()), ..own[0].clone() };
                own.into_iter().chain(vec![one; parts.len() - 1]).collect()
            } else {
                merge_axes(&parts)
            };
            extents.push(merged[0].shape.clone());
            for (space, part) in spaced.iter_mut().zip(&merged) {
                space.shape.extend_from_slice(&part.shape);
                space.strides.extend_from_slice(&part.strides);
            }
        }
        let mut spaced = spaced.into_iter();
        let x = Argument { view: spaced.next().unwrap_or_else(|| x.view.clone()), ..x };
        if let Some(view) = spaced.next() {
            kernel.results[0].view = view;
        }
        if let Some(epilogue) = &mut kernel.epilogue {
            epilogue.operands.iter_mut().zip(spaced).for_each(|(operand, view)| operand.view = view);
        }
        let mut extents = extents.into_iter();
        let mut next = || extents.next().unwrap_or_default();
        Space { x, outer: next(), reduced: next(), inner: next() }
    }

    /// Whether elements along the last reduced axis are contiguous.
    pub fn is_contiguous(&self) -> bool {
        let last = self.outer.len() + self.reduced.len();
        self.inner.is_empty() && !self.reduced.is_empty() && self.x.view.strides[last - 1] == 1
    }

    /// Indices of all axes from those of the groups.
    pub fn at(&self, outer: &[Index], reduced: &[Index], inner: &[Index]) -> Vec<Index> {
        [outer, reduced, inner].concat()
    }

    /// Index 0 for each reduced axis: where a result without them is.
    pub fn no_reduced(&self) -> Vec<Index> {
        vec![Index::default(); self.reduced.len()]
    }
}

/// The view with axes of extent 1 put in at the given places.
fn with_axes(view: &View, axes: &[usize]) -> View {
    let mut result = view.clone();
    for &axis in axes {
        result.shape.insert(axis, 1);
        result.strides.insert(axis, 0);
    }
    result
}

fn select(view: &View, axes: &[usize]) -> View {
    View {
        shape: axes.iter().map(|&axis| view.shape[axis]).collect(),
        strides: axes.iter().map(|&axis| view.strides[axis]).collect(),
        ..view.clone()
    }
}

/// Outer, reduced and inner axes. Reduced axes are walked by their strides, unless the order of the elements must stay.
fn grouped(x: &View, reduced: &[usize], ordered: bool) -> [Vec<usize>; 3] {
    let stride = |axis: usize| x.strides[axis].unsigned_abs();
    let moves = |axis: &usize| x.shape[*axis] > 1;
    let nearest = reduced.iter().copied().filter(moves).map(stride).min().unwrap_or(u64::MAX);
    let kept = (0..x.rank()).filter(|axis| !reduced.contains(axis));
    let (mut inner, outer): (Vec<usize>, Vec<usize>) =
        kept.clone().partition(|&axis| moves(&axis) && (1..nearest).contains(&stride(axis)));
    let mut reduced = reduced.to_vec();
    if !ordered {
        reduced.sort_by_key(|&axis| std::cmp::Reverse((moves(&axis), stride(axis))));
    }
    inner.sort_by_key(|&axis| std::cmp::Reverse(stride(axis)));
    match inner.last() {
        Some(&last) if x.strides[last] == 1 => [outer, reduced, inner],
        _ => [kept.collect(), reduced, Vec::new()],
    }
}

/// A stretch of an axis that is walked in steps of some vectors of some lanes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// First element.
    pub start: usize,
    /// One past the last element; the stretch is a multiple of `vectors * lanes`.
    pub end: usize,
    /// Vectors of one step.
    pub vectors: usize,
    /// Lanes of a vector.
    pub lanes: usize,
}

/// Narrowest vector that is worth its instructions, in bytes.
const NARROWEST: usize = 16;

/// Cuts an axis into stretches: blocks of `vectors` vectors, what is left in fewer of them, then in narrower vectors, then in
/// single elements.
pub fn stretches(extent: usize, lanes: usize, vectors: usize, dtype: DType) -> Vec<Stretch> {
    let mut list = Vec::new();
    let mut start = 0;
    let mut cut = |vectors: usize, lanes: usize| {
        let block = (vectors * lanes).max(1);
        let end = start + (extent - start) / block * block;
        if end > start {
            list.push(Stretch { start, end, vectors, lanes });
            start = end;
        }
    };
    (1..=vectors).rev().for_each(|vectors| cut(vectors, lanes));
    let mut narrower = lanes / 2;
    while narrower * dtype.size() >= NARROWEST {
        cut(1, narrower);
        narrower /= 2;
    }
    (1..=vectors).rev().for_each(|vectors| cut(vectors, 1));
    list
}

/// The widest vector that is no longer than an axis.
pub fn fitting_lanes(extent: usize, lanes: usize, dtype: DType) -> usize {
    let mut lanes = lanes;
    while lanes > extent {
        lanes /= 2;
    }
    if lanes * dtype.size() >= NARROWEST { lanes } else { 1 }
}

/// Walks an axis in vectors, narrower ones and single elements; the body gets the first element's index and the lanes.
pub fn for_vectors(
    kernel: &mut KernelWriter<'_>,
    name: &str,
    extent: usize,
    lanes: usize,
    dtype: DType,
    mut body: impl FnMut(&mut KernelWriter<'_>, Index, usize),
) {
    for stretch in stretches(extent, lanes, 1, dtype) {
        let (start, end) = (Index::from(stretch.start), Index::from(stretch.end));
        kernel.for_range(name, start, end, stretch.lanes as i64, |kernel, index| body(kernel, index, stretch.lanes));
    }
}

/// Walks all positions of a shape, the last axis in vectors; the body gets an index per axis and the lanes.
pub fn for_shape_in_vectors(
    kernel: &mut KernelWriter<'_>,
    names: &[&str],
    shape: &[usize],
    lanes: usize,
    dtype: DType,
    mut body: impl FnMut(&mut KernelWriter<'_>, &[Index], usize),
) {
    let Some((&last, outer)) = shape.split_last() else { return body(kernel, &[], 1) };
    let name = names.get(outer.len()).copied().unwrap_or("i");
    kernel.for_shape(names, outer, &mut |kernel, indices| {
        for_vectors(kernel, name, last, lanes, dtype, |kernel, index, lanes| {
            let indices: Vec<Index> = indices.iter().cloned().chain([index]).collect();
            body(kernel, &indices, lanes);
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_cover_an_axis_once() {
        for extent in 0..200 {
            for (lanes, vectors) in [(16, 4), (8, 1), (4, 8), (1, 1), (1, 4)] {
                let mut next = 0;
                for stretch in stretches(extent, lanes, vectors, DType::F32) {
                    assert_eq!(stretch.start, next);
                    assert_eq!((stretch.end - stretch.start) % (stretch.vectors * stretch.lanes), 0);
                    next = stretch.end;
                }
                assert_eq!(next, extent);
            }
        }
    }
}
