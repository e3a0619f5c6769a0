//! [`Ring`]: the rows of a tensor that are in memory, and [`RowWalk`]: where the rows of a whole tensor are.

use super::homes::BufferId;
use crate::loops::Routine;
use crate::target::Instructions;

/// How the rows of a tensor are walked.
#[derive(Debug)]
pub struct RowWalk {
    /// The rows of a turn: a buffer of kind [`Moving`](super::homes::BufferKind::Moving).
    pub rows: BufferId,
    /// Number of the tensor's binding.
    pub whole: usize,
    /// Whether it is only read.
    pub constant: bool,
    /// Bytes from one time to the next one that finds other rows.
    pub stride: i64,
    /// How often rows are found before others are.
    pub repeat: usize,
    /// Bytes of the tensor's pixels, where these follow each other without gaps; else 1.
    pub pixel: usize,
}

/// A ring of rows.
#[derive(Debug)]
pub struct Ring {
    /// Number of its binding.
    pub binding: usize,
    /// Its bytes.
    pub bytes: usize,
    /// Bytes that are appended at a time.
    pub appended: usize,
    /// Each byte of a border.
    pub border: u8,
    /// What moves the rows up; the C library where there is nothing.
    pub routine: Option<Routine>,
}

impl Ring {
    /// Bytes that are moved up each time.
    pub fn kept(&self) -> usize {
        self.bytes - self.appended
    }

    /// What moving them costs each time, in the unit of prices.
    pub fn time(&self, each: &Instructions) -> f64 {
        match self.routine {
            _ if self.kept() == 0 => 0.0,
            Some(routine) => routine.instructions(&[self.kept() as i64], each),
            None => each.call + each.copied_byte * self.kept() as f64,
        }
    }
}
