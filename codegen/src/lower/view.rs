//! [`View`]: a tensor as strided elements of a buffer. Movement of elements is arithmetic on views wherever strides can say it.

use mlc_ir::types::row_major_strides;
use mlc_ir::{DType, Shape};
use smallvec::SmallVec;

/// Strides in elements; negative ones walk backwards, 0 repeats.
pub type Strides = SmallVec<[i64; 6]>;

/// Where a tensor's elements lie, relative to the start of a buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct View {
    /// Type of the elements.
    pub dtype: DType,
    /// Extents.
    pub shape: Shape,
    /// Elements between neighbours along each axis.
    pub strides: Strides,
    /// Element of the buffer that holds element 0.
    pub offset: i64,
}

impl View {
    /// A dense, row-major tensor at the start of its buffer.
    pub fn dense(dtype: DType, shape: &[usize]) -> View {
        let strides = row_major_strides(shape).iter().map(|&stride| stride as i64).collect();
        View { dtype, shape: shape.into(), strides, offset: 0 }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether the elements are dense and row-major (the offset may be anything).
    pub fn is_dense(&self) -> bool {
        let dense = row_major_strides(&self.shape);
        self.elements() == 0
            || (0..self.rank()).all(|axis| self.shape[axis] == 1 || self.strides[axis] == dense[axis] as i64)
    }

    /// Stride of the last axis; 1 for a scalar and for an axis of one element.
    pub fn last_stride(&self) -> i64 {
        match self.strides.last() {
            Some(&stride) if self.shape[self.rank() - 1] != 1 => stride,
            _ => 1,
        }
    }

    /// Axis i of the result is axis `permutation[i]`.
    pub fn transpose(&self, permutation: &[usize]) -> View {
        View {
            shape: permutation.iter().map(|&axis| self.shape[axis]).collect(),
            strides: permutation.iter().map(|&axis| self.strides[axis]).collect(),
            ..self.clone()
        }
    }

    /// Elements `starts[i] + k * steps[i]` for k below `sizes[i]`.
    pub fn slice(&self, starts: &[usize], sizes: &[usize], steps: &[i64]) -> View {
        let moved: i64 = starts.iter().zip(&self.strides).map(|(&start, stride)| start as i64 * stride).sum();
        View {
            shape: sizes.into(),
            strides: self.strides.iter().zip(steps).map(|(stride, step)| stride * step).collect(),
            offset: self.offset + if self.elements() == 0 { 0 } else { moved },
            ..self.clone()
        }
    }

    /// The inner part that pads surround.
    pub fn interior(&self, pads: &[(usize, usize)]) -> View {
        let starts: Vec<usize> = pads.iter().map(|pad| pad.0).collect();
        let sizes: Vec<usize> = self.shape.iter().zip(pads).map(|(extent, pad)| extent - pad.0 - pad.1).collect();
        self.slice(&starts, &sizes, &vec![1; sizes.len()])
    }

    /// Repeats axes of one element, and adds leading axes, up to a shape.
    pub fn broadcast(&self, shape: &[usize]) -> View {
        let skipped = shape.len() - self.rank();
        let strides = (0..shape.len()).map(|axis| match axis.checked_sub(skipped) {
            Some(own) if self.shape[own] == shape[axis] && self.shape[own] != 1 => self.strides[own],
            _ => 0,
        });
        View { shape: shape.into(), strides: strides.collect(), ..self.clone() }
    }

    /// The same elements in the same order under another shape, when strides can say it.
    pub fn reshape(&self, shape: &[usize]) -> Option<View> {
        if self.elements() == 0 {
            return Some(View { offset: self.offset, ..View::dense(self.dtype, shape) });
        }
        let runs = self.runs();
        let mut strides: Strides = Strides::from_elem(0, shape.len());
        let mut axis = shape.len();
        for (extent, stride) in runs.into_iter().rev() {
            let mut covered = 1;
            while covered < extent {
                axis = axis.checked_sub(1)?;
                strides[axis] = stride * covered as i64;
                covered *= shape[axis];
            }
            if covered != extent {
                return None;
            }
        }
        Some(View { shape: shape.into(), strides, ..self.clone() })
    }

    /// The axes of more than one element, merged where neighbours continue each other: (extent, stride).
    fn runs(&self) -> Vec<(usize, i64)> {
        let mut runs: Vec<(usize, i64)> = Vec::new();
        for (&extent, &stride) in self.shape.iter().zip(&self.strides) {
            match runs.last_mut() {
                _ if extent == 1 => {}
                Some((outer, last)) if *last == stride * extent as i64 => {
                    *outer *= extent;
                    *last = stride;
                }
                _ => runs.push((extent, stride)),
            }
        }
        runs
    }
}

/// Merges axes of tensors that are walked together: where every view continues from one axis to the next, two axes become one.
/// Axes of one element vanish. All views have the same shape.
pub fn merge_axes(views: &[View]) -> Vec<View> {
    let Some(first) = views.first() else { return Vec::new() };
    let mut merged: Vec<View> =
        views.iter().map(|view| View { shape: Shape::new(), strides: Strides::new(), ..view.clone() }).collect();
    for axis in 0..first.rank() {
        let extent = first.shape[axis];
        if extent == 1 {
            continue;
        }
        let continues = merged[0].rank() > 0
            && views
                .iter()
                .zip(&merged)
                .all(|(view, own)| own.strides[own.rank() - 1] == view.strides[axis] * extent as i64);
        for (view, own) in views.iter().zip(&mut merged) {
            if continues {
                let last = own.rank() - 1;
                own.shape[last] *= extent;
                own.strides[last] = view.strides[axis];
            } else {
                own.shape.push(extent);
                own.strides.push(view.strides[axis]);
            }
        }
    }
    merged
}
