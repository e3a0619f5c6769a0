//! Whether two windows of one buffer share memory, also when they are windows of different arrays.

use super::model::Tensor;
use smallvec::SmallVec;

/// Pieces of the window with fewer that are looked at one by one, where nothing else decides.
const MOST_RUNS: usize = 1 << 10;

/// A range of indices along one axis of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Axis {
    /// Bytes between two neighbours; what lies along the axes behind this one takes no more.
    pitch: usize,
    first: usize,
    extent: usize,
}

impl Axis {
    fn meets(&self, other: &Axis) -> bool {
        self.first < other.first + other.extent && other.first < self.first + self.extent
    }

    /// The same elements along two axes, the outer one with a larger pitch; `None` if they aren't whole steps of it.
    fn split(&self, pitch: usize) -> Option<[Axis; 2]> {
        let count = (pitch > self.pitch && pitch.is_multiple_of(self.pitch)).then(|| pitch / self.pitch)?;
        let whole = self.first.is_multiple_of(count) && self.extent.is_multiple_of(count);
        let outer = Axis { pitch, first: self.first / count, extent: self.extent / count };
        whole.then_some([outer, Axis { first: 0, extent: count, ..*self }])
    }
}

impl Tensor {
    /// Whether they share a byte of one buffer. Where windows of different arrays are both scattered in a thousand pieces or more, and
    /// their rows don't fit each other, they are taken to if the space between their ends does.
    pub fn overlaps(&self, other: &Tensor) -> bool {
        if self.buffer != other.buffer {
            return false;
        }
        if self.same_array(other) {
            return self.common_box(other).is_some();
        }
        let (mine, others) = (self.interval(), other.interval());
        mine.start < others.end
            && others.start < mine.end
            && by_axes(axes(self), axes(other)).unwrap_or_else(|| by_runs(self, other))
    }
}

/// The axes of a window down to single bytes, as few as possible: an axis with all of its storage is one with that in front of it.
fn axes(tensor: &Tensor) -> SmallVec<[Axis; 4]> {
    let steps = tensor.steps();
    let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
    for axis in 0..tensor.rank() {
        let storage = tensor.storage[axis];
        let pitch = steps[axis] * tensor.data_type.size();
        match axes.last_mut() {
            Some(last) if tensor.shape[axis] == storage => {
                *last = Axis { pitch, first: last.first * storage, extent: last.extent * storage };
            }
            _ => axes.push(Axis { pitch, first: tensor.offsets[axis], extent: tensor.shape[axis] }),
        }
    }
    if let Some(last) = axes.last_mut() {
        *last = Axis { pitch: 1, first: last.first * last.pitch, extent: last.extent * last.pitch };
    }
    axes
}

/// Compares axis by axis, from the outermost, as long as both have the same pitch, or can be seen so.
fn by_axes(mut a: SmallVec<[Axis; 4]>, mut b: SmallVec<[Axis; 4]>) -> Option<bool> {
    a.reverse();
    b.reverse();
    while let (Some(outer), Some(other)) = (a.pop(), b.pop()) {
        if outer.pitch == other.pitch {
            if !outer.meets(&other) {
                return Some(false);
            }
        } else if let Some([first, second]) = outer.split(other.pitch) {
            a.extend([second, first]);
            b.push(other);
        } else {
            let [first, second] = other.split(outer.pitch)?;
            b.extend([second, first]);
            a.push(outer);
        }
    }
    Some(true)
}

/// Compares piece by piece.
fn by_runs(a: &Tensor, b: &Tensor) -> bool {
    let (few, many) = if a.run_count() <= b.run_count() { (a, b) } else { (b, a) };
    few.run_count() > MOST_RUNS || few.runs().any(|run| many.first_from(run.start).is_some_and(|byte| byte < run.end))
}
