//! [`Overlay`]: how far a result may lie over an operand that dies.

use super::homes::BufferId;
use crate::loops::Direction;

/// How far what is written must be ahead of what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distance {
    /// Bytes between the first ones of both, at least. Less than none where what is written may be behind.
    pub least: i64,
    /// What they must be a multiple of.
    pub modulus: usize,
}

impl Distance {
    /// Whether so many bytes are enough.
    pub fn allows(&self, bytes: i64) -> bool {
        bytes >= self.least && bytes % self.modulus.max(1) as i64 == 0
    }
}

/// A result that may lie over an operand that dies in the same part, or in the last of several that write it together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlay {
    /// The buffer that is written.
    pub result: BufferId,
    /// The buffer that is only read.
    pub operand: BufferId,
    /// How far before the operand the result begins, if loops go upwards and both meet.
    pub up: Option<Distance>,
    /// How far behind the operand's first byte the result's is, if loops go downwards and both meet.
    pub down: Option<Distance>,
    /// Of parts that write the result together, one after the other, which of how many this is.
    pub part: (usize, usize),
}

impl Overlay {
    /// Has both be in other buffers.
    pub(super) fn rebind(&mut self, moved: &dyn Fn(BufferId) -> (BufferId, i64)) {
        (self.result, self.operand) = (moved(self.result).0, moved(self.operand).0);
    }

    /// Which way loops have to go where the result begins so many bytes before the operand and meets it: upwards, if both are right.
    pub fn direction(&self, before: i64) -> Option<Direction> {
        let allows = |distance: Option<Distance>, bytes: i64| distance.is_some_and(|distance| distance.allows(bytes));
        match (allows(self.up, before), allows(self.down, -before)) {
            (true, _) => Some(Direction::Upwards),
            (false, true) => Some(Direction::Downwards),
            (false, false) => None,
        }
    }

    /// How far both must be apart for loops of a direction.
    pub fn distance(&self, direction: Direction) -> Option<Distance> {
        match direction {
            Direction::Upwards => self.up,
            Direction::Downwards => self.down,
        }
    }

    /// The same for loops that go one way only.
    pub(super) fn towards(self, direction: Direction) -> Overlay {
        match direction {
            Direction::Upwards => Overlay { down: None, ..self },
            Direction::Downwards => Overlay { up: None, ..self },
        }
    }
}
