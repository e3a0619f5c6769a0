//! Operators that only move elements. On constants they are carried out at once; those that move nothing are left out.

use super::Builder;
use mlc_ir::folding;
use mlc_ir::ops::{Broadcast, Concat, Gather, Pad, PadMode, Reshape, Slice, Transpose};
use mlc_ir::{Literal, Op, OperatorError, Value};

impl Builder {
    /// Applies an operator that only moves elements. A constant is moved at once, whatever the format, and keeps its name, so that
    /// a transposed weight stays a weight.
    fn moved(&mut self, op: impl Into<Op>, x: Value) -> Result<Value, OperatorError> {
        let op = op.into();
        let Some(constant) = self.graph.constant(x) else { return self.apply(op, &[x]) };
        let Some(moved) = folding::compute_early(&op, &[constant])? else { return self.apply(op, &[x]) };
        let (what, name) = (op.name(), self.graph.node(x.node).name.to_string());
        let name = if name.ends_with(what) { name } else { format!("{name}.{what}") };
        let mut values = moved.into_iter().map(|value| self.graph.add_constant(&name, value));
        values.next().ok_or_else(|| OperatorError::Evaluation(format!("{what} gave no result")))
    }

    /// The same elements under another shape.
    ///
    /// # Errors
    /// When the number of elements differs.
    pub fn reshape(&mut self, x: Value, shape: &[usize]) -> Result<Value, OperatorError> {
        if self.ty(x).shape[..] == *shape {
            return Ok(x);
        }
        self.moved(Reshape { shape: shape.into() }, x)
    }

    /// Permutes axes: axis `i` of the result is axis `permutation[i]` of `x`.
    ///
    /// # Errors
    /// When it isn't a permutation of the axes.
    pub fn transpose(&mut self, x: Value, permutation: &[usize]) -> Result<Value, OperatorError> {
        if permutation.iter().copied().eq(0..self.rank(x)) {
            return Ok(x);
        }
        self.moved(Transpose { permutation: permutation.to_vec() }, x)
    }

    /// Swaps two axes.
    ///
    /// # Errors
    /// When an axis isn't there.
    pub fn swap_axes(&mut self, x: Value, first: usize, second: usize) -> Result<Value, OperatorError> {
        let mut permutation: Vec<usize> = (0..self.rank(x)).collect();
        if first.max(second) >= permutation.len() {
            return Err(OperatorError::field(format!("{} has no axis {}", self.ty(x), first.max(second))));
        }
        permutation.swap(first, second);
        self.transpose(x, &permutation)
    }

    /// Moves one axis to another place; the others keep their order.
    ///
    /// # Errors
    /// When an axis isn't there.
    pub fn move_axis(&mut self, x: Value, from: usize, to: usize) -> Result<Value, OperatorError> {
        let mut permutation: Vec<usize> = (0..self.rank(x)).collect();
        if from.max(to) >= permutation.len() {
            return Err(OperatorError::field(format!("{} has no axis {}", self.ty(x), from.max(to))));
        }
        let axis = permutation.remove(from);
        permutation.insert(to, axis);
        self.transpose(x, &permutation)
    }

    /// Inserts an axis of extent 1.
    ///
    /// # Errors
    /// When the place is beyond the last axis.
    pub fn insert_axis(&mut self, x: Value, axis: usize) -> Result<Value, OperatorError> {
        let mut shape = self.shape(x);
        if axis > shape.len() {
            return Err(OperatorError::field(format!("{} has no place {axis} for an axis", self.ty(x))));
        }
        shape.insert(axis, 1);
        self.reshape(x, &shape)
    }

    /// Removes an axis of extent 1.
    ///
    /// # Errors
    /// When the axis isn't there or has another extent.
    pub fn remove_axis(&mut self, x: Value, axis: usize) -> Result<Value, OperatorError> {
        let mut shape = self.shape(x);
        if shape.get(axis) != Some(&1) {
            return Err(OperatorError::field(format!("axis {axis} of {} can't be removed", self.ty(x))));
        }
        shape.remove(axis);
        self.reshape(x, &shape)
    }

    /// Repeats axes of extent 1 and adds leading axes, up to a shape.
    ///
    /// # Errors
    /// When the value doesn't broadcast to the shape.
    pub fn broadcast(&mut self, x: Value, shape: &[usize]) -> Result<Value, OperatorError> {
        if self.ty(x).shape[..] == *shape {
            return Ok(x);
        }
        self.apply(Broadcast { shape: shape.into() }, &[x])
    }

    /// Whether a value broadcasts to a shape.
    pub fn broadcasts_to(&self, x: Value, shape: &[usize]) -> bool {
        let own = &self.ty(x).shape;
        let mut pairs = own.iter().rev().zip(shape.iter().rev());
        own.len() <= shape.len() && pairs.all(|(&own, &extent)| own == 1 || own == extent)
    }

    /// Repeats the whole tensor along each axis; the counts and the shape are aligned at the last axis.
    ///
    /// # Errors
    /// When the result would be too large.
    pub fn tile(&mut self, x: Value, counts: &[usize]) -> Result<Value, OperatorError> {
        let (mut counts, mut shape) = (counts.to_vec(), self.shape(x).to_vec());
        let rank = counts.len().max(shape.len());
        counts.splice(0..0, vec![1; rank - counts.len()]);
        shape.splice(0..0, vec![1; rank - shape.len()]);
        // Each repeated axis gets an axis for the repetitions before it.
        let (mut split, mut repeated, mut result) = (Vec::new(), Vec::new(), Vec::new());
        for (&count, &extent) in counts.iter().zip(&shape) {
            if count != 1 {
                split.push(1);
                repeated.push(count);
            }
            split.push(extent);
            repeated.push(extent);
            let extent = extent.checked_mul(count).ok_or_else(|| OperatorError::field("the result is too large"))?;
            result.push(extent);
        }
        let x = self.reshape(x, &split)?;
        let x = self.broadcast(x, &repeated)?;
        self.reshape(x, &result)
    }

    /// Repeats each element of an axis.
    ///
    /// # Errors
    /// When the axis isn't there, or the result would be too large.
    pub fn repeat_elements(&mut self, x: Value, axis: usize, count: usize) -> Result<Value, OperatorError> {
        let mut result = self.shape(x);
        if axis >= result.len() {
            return Err(OperatorError::field(format!("{} has no axis {axis}", self.ty(x))));
        }
        let mut repeated = result.clone();
        repeated.insert(axis + 1, count);
        result[axis] =
            result[axis].checked_mul(count).ok_or_else(|| OperatorError::field("the result is too large"))?;
        let x = self.insert_axis(x, axis + 1)?;
        let x = self.broadcast(x, &repeated)?;
        self.reshape(x, &result)
    }

    /// `size` elements of an axis, from `start` on, `step` apart.
    ///
    /// # Errors
    /// When they leave the axis.
    pub fn slice_axis(
        &mut self,
        x: Value,
        axis: usize,
        start: usize,
        size: usize,
        step: i64,
    ) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        if axis >= shape.len() {
            return Err(OperatorError::field(format!("{} has no axis {axis}", self.ty(x))));
        }
        if start == 0 && size == shape[axis] && step == 1 {
            return Ok(x);
        }
        let mut slice = Slice { starts: vec![0; shape.len()], sizes: shape.to_vec(), steps: vec![1; shape.len()] };
        (slice.starts[axis], slice.sizes[axis], slice.steps[axis]) = (start, size, step);
        self.moved(slice, x)
    }

    /// One element of an axis, which vanishes.
    ///
    /// # Errors
    /// When the element isn't there.
    pub fn pick(&mut self, x: Value, axis: usize, index: usize) -> Result<Value, OperatorError> {
        let slice = self.slice_axis(x, axis, index, 1, 1)?;
        self.remove_axis(slice, axis)
    }

    /// Consecutive pieces of an axis, of these extents.
    ///
    /// # Errors
    /// When they leave the axis.
    pub fn split(&mut self, x: Value, axis: usize, sizes: &[usize]) -> Result<Vec<Value>, OperatorError> {
        let mut start = 0;
        sizes
            .iter()
            .map(|&size| {
                let piece = self.slice_axis(x, axis, start, size, 1);
                start += size;
                piece
            })
            .collect()
    }

    /// Joins tensors along an axis.
    ///
    /// # Errors
    /// When their types don't fit.
    pub fn concat(&mut self, parts: &[Value], axis: usize) -> Result<Value, OperatorError> {
        match parts {
            [single] if axis < self.rank(*single) => Ok(*single),
            _ => self.apply(Concat { axis }, parts),
        }
    }

    /// Joins tensors of one shape along a new axis.
    ///
    /// # Errors
    /// When their types don't fit.
    pub fn stack(&mut self, parts: &[Value], axis: usize) -> Result<Value, OperatorError> {
        let parts = parts.iter().map(|&part| self.insert_axis(part, axis)).collect::<Result<Vec<_>, _>>()?;
        self.concat(&parts, axis)
    }

    /// Slices along an axis by integer indices.
    ///
    /// # Errors
    /// When the axis isn't there, the indices aren't integers, or a constant one leaves the axis.
    pub fn gather(&mut self, data: Value, indices: Value, axis: usize) -> Result<Value, OperatorError> {
        self.check_indices(data, indices, axis)?;
        self.apply(Gather { axis }, &[data, indices])
    }

    /// Adds elements before and after each axis, or cuts them off where the number is negative.
    ///
    /// # Errors
    /// When the mode can't reach that far, or more is cut off than there is.
    pub fn pad(&mut self, x: Value, pads: &[(i64, i64)], mode: PadMode, value: f64) -> Result<Value, OperatorError> {
        let literal = Literal::of(self.dtype(x), value);
        let mut cut = x;
        for (axis, &(before, after)) in pads.iter().enumerate() {
            let extent = self.ty(x).shape.get(axis).copied().unwrap_or(0);
            let (first, last) = (before.min(0).unsigned_abs() as usize, after.min(0).unsigned_abs() as usize);
            let size = extent.checked_sub(first).and_then(|rest| rest.checked_sub(last)).ok_or_else(|| {
                OperatorError::field(format!("pads ({before}, {after}) cut more than axis {axis} of {}", self.ty(x)))
            })?;
            if size != extent {
                cut = self.slice_axis(cut, axis, first, size, 1)?;
            }
        }
        let pads: Vec<(usize, usize)> =
            pads.iter().map(|&(before, after)| (before.max(0) as usize, after.max(0) as usize)).collect();
        if pads.iter().all(|&pad| pad == (0, 0)) && pads.len() == self.rank(x) {
            return Ok(cut);
        }
        self.apply(Pad { pads, mode, value: literal }, &[cut])
    }
}
