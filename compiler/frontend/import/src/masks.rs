//! [`SliceMasks`]: what formats after TensorFlow's say of the entries of a strided slice.

use crate::call::Call;
use crate::fault::Fault;
use crate::format::Format;

/// A set of entries: bit i is entry i.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceMask(i64);

impl SliceMask {
    /// Whether an entry is in it.
    pub fn has(self, entry: usize) -> bool {
        entry < 63 && self.0 >> entry & 1 == 1
    }
}

/// The masks of a strided slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceMasks {
    /// Entries whose begin doesn't count: the first element.
    pub begin: SliceMask,
    /// Entries whose end doesn't count: the last element.
    pub end: SliceMask,
    /// Entries that stand for all axes which the others leave.
    pub ellipsis: SliceMask,
    /// Entries that are new axes.
    pub new_axis: SliceMask,
    /// Entries that take one element, and its axis away.
    pub shrink_axis: SliceMask,
}

impl SliceMasks {
    /// How many entries are an ellipsis.
    pub fn ellipses(&self, entries: usize) -> usize {
        (0..entries).filter(|&entry| self.ellipsis.has(entry)).count()
    }

    /// How many entries are about one axis of the operand each.
    pub fn axes(&self, entries: usize) -> usize {
        (0..entries).filter(|&entry| !self.ellipsis.has(entry) && !self.new_axis.has(entry)).count()
    }
}

impl<'m, F: Format> Call<'_, 'm, F> {
    /// The masks `begin_mask`, `end_mask`, `ellipsis_mask`, `new_axis_mask` and `shrink_axis_mask`, each 0 where it isn't given.
    ///
    /// # Errors
    /// When one isn't a whole number.
    pub fn slice_masks(&mut self) -> Result<SliceMasks, Fault> {
        Ok(SliceMasks {
            begin: SliceMask(self.int_or("begin_mask", 0)?),
            end: SliceMask(self.int_or("end_mask", 0)?),
            ellipsis: SliceMask(self.int_or("ellipsis_mask", 0)?),
            new_axis: SliceMask(self.int_or("new_axis_mask", 0)?),
            shrink_axis: SliceMask(self.int_or("shrink_axis_mask", 0)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_counted_by_what_they_stand_for() {
        let none = SliceMask(0);
        let masks = SliceMasks {
            begin: none,
            end: none,
            ellipsis: SliceMask(0b10),
            new_axis: SliceMask(0b100),
            shrink_axis: SliceMask(-1),
        };
        assert_eq!((masks.ellipses(4), masks.axes(4)), (1, 2));
        assert!(masks.shrink_axis.has(31) && masks.shrink_axis.has(62) && !masks.shrink_axis.has(63));
    }
}
