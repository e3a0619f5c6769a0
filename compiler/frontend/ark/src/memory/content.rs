//! [`Content`]: what a buffer holds at some point of the program, as the writes that made it.

use super::area::{Area, Layout, holds, rows_of, share_array};
use super::partition::Partition;
use crate::model::Tensor;

/// The writes to a buffer that can still be seen, the oldest first. Where none was, it holds zeros.
#[derive(Debug, Clone)]
pub struct Content<V> {
    writes: Vec<Write<V>>,
}

/// A window of a buffer and what was written there.
#[derive(Debug, Clone)]
pub struct Write<V> {
    pub window: Tensor,
    pub value: V,
}

/// Where the elements of a window come from.
#[derive(Debug)]
pub enum Source {
    /// Nothing was written there.
    Untouched,
    /// One write, by its number, has them all.
    One(usize, Extraction),
    /// Writes to the window's own array, by the numbers that the partition's are indices of.
    Parts(Partition, Vec<usize>),
    /// Writes through windows of other arrays, or too many of them; the numbers of those that can be seen, the latest first.
    Mixed(Vec<usize>),
}

/// How a window's elements are got out of a value that holds them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Extraction {
    /// They are the value's, in its order.
    Whole,
    /// They are a box of it, which starts here.
    Box(Vec<usize>),
    /// The value holds all the rows of the window's array that it touches.
    Rows,
}

impl<V> Default for Content<V> {
    fn default() -> Self {
        Content { writes: Vec::new() }
    }
}

impl<V> Content<V> {
    /// A write by its number.
    pub fn get(&self, number: usize) -> &Write<V> {
        &self.writes[number]
    }

    /// Number of writes that can be seen.
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Writes a window. Writes that it hides are forgotten; whether there were any.
    pub fn write(&mut self, window: Tensor, value: V) -> bool {
        let before = self.writes.len();
        self.writes.retain(|write| !holds(&window, &write.window));
        let hides = self.writes.len() < before;
        self.writes.push(Write { window, value });
        hides
    }

    /// Where the elements of a window come from, seen after the first `count` writes.
    pub fn source(&self, window: &Tensor, count: usize) -> Source {
        let mut visible = Vec::new();
        for (number, write) in self.writes[..count].iter().enumerate().rev() {
            if !write.window.overlaps(window) {
                continue;
            }
            visible.push(number);
            if holds(&write.window, window) {
                break;
            }
        }
        let Some(&latest) = visible.first() else { return Source::Untouched };
        if let Some(extraction) = extraction(&self.writes[latest].window, window) {
            return Source::One(latest, extraction);
        }
        if visible.iter().all(|&number| share_array(&self.writes[number].window, window)) {
            let areas: Vec<Area> = visible.iter().map(|&number| Area::of(&self.writes[number].window)).collect();
            if let Some(partition) = Partition::of(&Area::of(window), &areas) {
                return Source::Parts(partition, visible);
            }
        }
        Source::Mixed(visible)
    }

    /// Whether a write to this window would hide another one.
    pub fn would_hide(&self, window: &Tensor) -> bool {
        self.writes.iter().any(|write| holds(window, &write.window))
    }

    /// Whether a byte of a window was written.
    pub fn touches(&self, window: &Tensor) -> bool {
        self.writes.iter().any(|write| write.window.overlaps(window))
    }

    /// Whether every element of a window was written.
    pub fn is_written(&self, window: &Tensor) -> bool {
        match self.source(window, self.writes.len()) {
            Source::Untouched => false,
            Source::One(..) => true,
            Source::Parts(partition, _) => partition.is_written(),
            Source::Mixed(visible) => {
                let windows = visible.iter().map(|&number| &self.writes[number].window);
                let mut written: Vec<_> = windows.filter(|window| window.is_dense()).map(Tensor::interval).collect();
                written.sort_unstable_by_key(|bytes| bytes.start);
                let all = window.interval();
                let reach = |end: usize, bytes: std::ops::Range<usize>| {
                    if bytes.start <= end { end.max(bytes.end) } else { end }
                };
                written.into_iter().fold(all.start, reach) >= all.end
            }
        }
    }
}

/// How the elements of a window are got out of those of another one of the same buffer, if that holds them in a plain way.
pub fn extraction(outer: &Tensor, inner: &Tensor) -> Option<Extraction> {
    if Layout::of(outer) == Layout::of(inner) {
        return Some(Extraction::Whole);
    }
    if share_array(outer, inner) && holds(outer, inner) {
        return Some(Extraction::Box(Area::of(inner).starts_within(&Area::of(outer))));
    }
    let (bytes, rows) = (outer.interval(), rows_of(inner));
    (outer.is_dense() && bytes.start <= rows.start && rows.end <= bytes.end).then_some(Extraction::Rows)
}
