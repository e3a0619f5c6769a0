//! [`Area`]: a box of the array that a tensor is a window of; and [`Layout`], the bytes of a window whatever array it is in.

use crate::model::{Extents, Tensor};
use std::ops::Range;

/// A box: where it starts on each axis of an array, and how far it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Area {
    pub starts: Extents,
    pub sizes: Extents,
}

impl Area {
    /// The box of a window.
    pub fn of(window: &Tensor) -> Area {
        Area { starts: window.offsets.clone(), sizes: window.shape.clone() }
    }

    /// The part that two boxes of one array have in common.
    pub fn intersection(&self, other: &Area) -> Option<Area> {
        let mut common = Area { starts: Extents::new(), sizes: Extents::new() };
        for axis in 0..self.starts.len() {
            let start = self.starts[axis].max(other.starts[axis]);
            let end = self.end(axis).min(other.end(axis));
            common.starts.push(start);
            common.sizes.push(end.checked_sub(start).filter(|&size| size > 0)?);
        }
        Some(common)
    }

    /// The first place behind the box on an axis.
    pub fn end(&self, axis: usize) -> usize {
        self.starts[axis] + self.sizes[axis]
    }

    /// Where the box starts, seen from the start of a box around it.
    pub fn starts_within(&self, outer: &Area) -> Vec<usize> {
        self.starts.iter().zip(&outer.starts).map(|(&inner, &outer)| inner - outer).collect()
    }

    /// The same box, but for one axis.
    #[must_use]
    pub fn with_axis(&self, axis: usize, range: Range<usize>) -> Area {
        let mut area = self.clone();
        (area.starts[axis], area.sizes[axis]) = (range.start, range.len());
        area
    }
}

/// The bytes of a window in their order: runs of runs, the innermost first, each a number of pieces and the bytes from one to the
/// next. Windows of one layout hold the same bytes in the same order, whatever their arrays and types are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    first: usize,
    runs: Vec<(usize, usize)>,
}

impl Layout {
    /// The layout of a window.
    pub fn of(window: &Tensor) -> Layout {
        let element = window.data_type.size();
        let mut runs = Vec::new();
        let mut run = (element, 1);
        for (&count, step) in window.shape.iter().zip(window.steps()).rev().filter(|&(&count, _)| count > 1) {
            let step = step * element;
            if step == run.0 * run.1 {
                run.0 *= count;
            } else {
                runs.push(run);
                run = (count, step);
            }
        }
        runs.push(run);
        Layout { first: window.first_byte(), runs: runs.into_iter().filter(|&run| run != (1, 1)).collect() }
    }
}

/// Whether two windows are boxes of one array; how far it goes along its first axis makes no difference.
pub fn share_array(first: &Tensor, second: &Tensor) -> bool {
    first.rank() == second.rank()
        && first.data_type.size() == second.data_type.size()
        && first.storage[1..] == second.storage[1..]
}

/// Bytes of a row: of one step along the first axis.
fn row_bytes(window: &Tensor) -> usize {
    window.storage[1..].iter().product::<usize>() * window.data_type.size()
}

/// The bytes of the rows that a window touches.
pub fn rows_of(window: &Tensor) -> Range<usize> {
    let row = row_bytes(window);
    window.offsets[0] * row..(window.offsets[0] + window.shape[0]) * row
}

/// The window of all the rows of a window's array that the bytes lie in.
pub fn rows_around(window: &Tensor, bytes: &Range<usize>) -> Tensor {
    let row = row_bytes(window);
    let (first, end) = (bytes.start / row, bytes.end.div_ceil(row));
    let mut offsets = Extents::from_elem(0, window.rank());
    let mut shape = window.storage.clone();
    (offsets[0], shape[0]) = (first, end - first);
    Tensor { offsets, padded_shape: shape.clone(), shape, ..window.clone() }
}

/// Whether all bytes of `inner`, a window of the same buffer, are bytes of `outer`; `false` where that isn't plain.
pub fn holds(outer: &Tensor, inner: &Tensor) -> bool {
    if share_array(outer, inner) {
        let area = Area::of(inner);
        return Area::of(outer).intersection(&area).as_ref() == Some(&area);
    }
    let (bytes, inner_bytes) = (outer.interval(), inner.interval());
    let around = bytes.start <= inner_bytes.start && inner_bytes.end <= bytes.end;
    around && (outer.is_dense() || Layout::of(outer) == Layout::of(inner))
}
