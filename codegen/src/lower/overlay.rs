//! [`Overlay`]: how far a result may lie over an operand that dies.

use super::homes::BufferId;

/// A result that may lie over an operand that dies in the same part, or in the last of several that write it together. Loops go upwards, so that the result begins before the operand, or behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlay {
    /// The buffer that is written.
    pub result: BufferId,
    /// The buffer that is only read.
    pub operand: BufferId,
    /// Bytes from the result's first byte to the operand's, at least. Less than none where the result may begin later.
    pub distance: i64,
    /// What the distance must be a multiple of, in bytes.
    pub modulus: usize,
    /// Of parts that write the result together, one after the other, which of how many this is.
    pub part: (usize, usize),
}

impl Overlay {
    /// Has both be in other buffers.
    pub(super) fn rebind(&mut self, moved: &dyn Fn(BufferId) -> (BufferId, i64)) {
        (self.result, self.operand) = (moved(self.result).0, moved(self.operand).0);
    }
}
