//! Where the elements of a tensor lie in its buffer.

use super::model::{Extents, Tensor};
use std::ops::Range;

impl Tensor {
    /// Number of axes, one to four.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements of the value.
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of the value, without what lies between its elements.
    pub fn bytes(&self) -> usize {
        self.elements() * self.data_type.size()
    }

    /// Bytes of the array that it is a window of, from the start of the buffer.
    pub fn storage_bytes(&self) -> usize {
        self.storage.iter().product::<usize>() * self.data_type.size()
    }

    /// Elements between two neighbours along each axis.
    pub fn steps(&self) -> Extents {
        let mut steps = Extents::from_elem(1, self.rank());
        for axis in (1..self.rank()).rev() {
            steps[axis - 1] = steps[axis] * self.storage[axis];
        }
        steps
    }

    /// Byte of the first element, from the start of the buffer.
    pub fn first_byte(&self) -> usize {
        let steps = self.steps();
        self.offsets.iter().zip(&steps).map(|(offset, step)| offset * step).sum::<usize>() * self.data_type.size()
    }

    /// From the first byte of the first element to the last of the last one; between them may be bytes of other windows.
    pub fn interval(&self) -> Range<usize> {
        let first = self.first_byte();
        let last: usize = self.shape.iter().zip(&self.steps()).map(|(extent, step)| (extent - 1) * step).sum();
        first..first + (last + 1) * self.data_type.size()
    }

    /// Whether no bytes lie between its elements.
    pub fn is_dense(&self) -> bool {
        self.run_axis() == 0
    }

    /// Whether it is all of a buffer of this size.
    pub fn covers(&self, bytes: usize) -> bool {
        self.bytes() == bytes
    }

    /// Whether both have their elements at the same places: windows of one buffer with the same type and geometry.
    pub fn same_window(&self, other: &Tensor) -> bool {
        self.same_array(other) && self.shape == other.shape && self.offsets == other.offsets
    }

    /// Whether both are windows of the same array, so that they compare as boxes in it.
    pub fn same_array(&self, other: &Tensor) -> bool {
        self.buffer == other.buffer && self.storage == other.storage && self.data_type.size() == other.data_type.size()
    }

    /// The elements that both have, as a box (first index and extent along each axis) in their array; `None` if they share none.
    /// Precondition: [`Tensor::same_array`].
    pub fn common_box(&self, other: &Tensor) -> Option<(Extents, Extents)> {
        let mut start = Extents::new();
        let mut extents = Extents::new();
        for axis in 0..self.rank() {
            let first = self.offsets[axis].max(other.offsets[axis]);
            let end = (self.offsets[axis] + self.shape[axis]).min(other.offsets[axis] + other.shape[axis]);
            extents.push(end.checked_sub(first).filter(|&extent| extent > 0)?);
            start.push(first);
        }
        Some((start, extents))
    }

    /// Number of pieces without gaps that it is made of.
    pub fn run_count(&self) -> usize {
        self.shape[..self.run_axis()].iter().product()
    }

    /// The pieces without gaps that it is made of, as bytes from the start of the buffer, ascending.
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let axis = self.run_axis();
        let steps = self.steps();
        let size = self.data_type.size();
        let length = self.shape[axis..].iter().product::<usize>() * size;
        let first = self.first_byte();
        (0..self.run_count()).map(move |mut run| {
            let mut start = 0;
            for outer in (0..axis).rev() {
                start += (run % self.shape[outer]) * steps[outer];
                run /= self.shape[outer];
            }
            let start = first + start * size;
            start..start + length
        })
    }

    /// The first axis from which on, with all behind it, elements lie side by side.
    fn run_axis(&self) -> usize {
        let mut axis = self.rank() - 1;
        // What lies along an axis in front joins if this axis has all its storage, or if there is nothing in front.
        while axis > 0
            && (self.shape[axis] == self.storage[axis] || self.shape[..axis].iter().all(|&extent| extent == 1))
        {
            axis -= 1;
        }
        axis
    }

    /// The first byte of its elements at or behind this one.
    pub(crate) fn first_from(&self, byte: usize) -> Option<usize> {
        let steps = self.steps();
        let size = self.data_type.size();
        let first = self.first_byte();
        let Some(behind) = byte.checked_sub(first) else { return Some(first) };
        let mut index = Extents::new();
        let mut rest = behind / size;
        for axis in 0..self.rank() {
            index.push(rest / steps[axis]);
            rest %= steps[axis];
        }
        // An element that is inside has the byte itself; else the next one along the innermost axis that has one more.
        let Some(outside) = (0..self.rank()).find(|&axis| index[axis] >= self.shape[axis]) else { return Some(byte) };
        let advanced = (0..outside).rev().find(|&axis| index[axis] + 1 < self.shape[axis])?;
        let element: usize = (0..advanced).map(|axis| index[axis] * steps[axis]).sum();
        Some(first + (element + (index[advanced] + 1) * steps[advanced]) * size)
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
