//! [`Ring`]: the rows of a tensor that are in memory, [`RingOfRows`]: which these are, and [`RowWalk`]: where rows are that lie elsewhere each time.

use super::homes::BufferId;
use crate::loops::Routine;
use crate::target::Instructions;
use mlc_ir::TensorType;

/// How the rows of a tensor, or of a ring that slides, are walked.
#[derive(Debug)]
pub struct RowWalk {
    /// The rows of a turn: a buffer of kind [`Moving`](super::homes::BufferKind::Moving).
    pub rows: BufferId,
    /// Number of the tensor's or the ring's binding.
    pub whole: usize,
    /// Whether it is only read.
    pub constant: bool,
    /// Bytes from one time to the next one that finds other rows.
    pub stride: i64,
    /// The first turn in which it finds any.
    pub first: usize,
    /// Turns from one that finds some to the next one that finds others.
    pub period: usize,
    /// After how many of these it finds the first ones again; `None` of a tensor.
    pub slides: Option<usize>,
    /// Bytes of the tensor's pixels, where these follow each other without gaps; else 1.
    pub pixel: usize,
}

impl RowWalk {
    /// Bytes from the first rows to those of a turn.
    #[cfg(test)]
    pub fn place(&self, turn: usize) -> i64 {
        let time = (turn - self.first) / self.period;
        self.stride * self.slides.map_or(time, |slides| time % slides) as i64
    }
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
    /// How often rows are appended, each time behind the ones before, until those that are still needed are moved to its front.
    pub slides: usize,
    /// Each byte of a border.
    pub border: u8,
    /// Bytes of a row, the border's included.
    pub row: usize,
    /// Bytes of the border before and behind the columns of each row; `None` where there is more of it.
    pub around: Option<(usize, usize)>,
    /// What moves the rows up; the C library where there is nothing.
    pub routine: Option<Routine>,
}

impl Ring {
    /// Bytes that are moved to the front.
    pub fn kept(&self) -> usize {
        self.bytes - self.slides * self.appended
    }

    /// How often they are, of how often rows are appended: not before the first ones, where nothing is kept yet and the ring slides.
    pub fn moves(&self, appended: usize) -> usize {
        if self.slides == 1 { appended } else { appended.saturating_sub(1) / self.slides }
    }

    /// What moving them costs if rows are appended so often, in the unit of prices.
    pub fn time(&self, appended: usize, each: &Instructions) -> f64 {
        let once = match self.routine {
            _ if self.kept() == 0 => 0.0,
            Some(routine) => routine.instructions(&[self.kept() as i64], each),
            None => each.call + each.copied_byte * self.kept() as f64,
        };
        self.moves(appended) as f64 * once
    }
}

/// Extents of the border around each axis of some rows.
pub type Pads = Vec<(usize, usize)>;

/// A ring of rows with their border.
#[derive(Debug, Clone)]
pub struct RingOfRows {
    /// The type of all rows that there is memory for, the border's columns included.
    pub ty: TensorType,
    /// The border around its rows.
    pub pads: Pads,
    /// What the border consists of, if anything reads it.
    pub border: Option<i64>,
    /// See [`Ring::slides`].
    pub slides: usize,
}

impl RingOfRows {
    pub fn new(ty: &TensorType) -> RingOfRows {
        RingOfRows { ty: ty.clone(), pads: vec![(0, 0); ty.rank()], border: None, slides: 1 }
    }

    /// Has it have a border; `None` where it has another one.
    pub fn surround(&mut self, pads: &Pads, border: i64) -> Option<()> {
        if *self.border.get_or_insert(border) != border {
            return None;
        }
        for (own, other) in self.pads.iter_mut().zip(pads) {
            *own = (own.0.max(other.0), own.1.max(other.1));
        }
        Some(())
    }

    /// What each byte of the border is, where they are all alike.
    pub fn border_byte(&self) -> Option<u8> {
        match self.border.unwrap_or(0) {
            0 => Some(0),
            value if self.ty.dtype.size() == 1 => Some(value.to_le_bytes()[0]),
            _ => None,
        }
    }

    /// Bytes of a row with the border around its columns.
    pub fn row_bytes(&self) -> usize {
        let columns = self.ty.shape.iter().zip(&self.pads).skip(2).map(|(extent, pad)| extent + pad.0 + pad.1);
        columns.product::<usize>() * self.ty.dtype.size()
    }

    /// Bytes of the border before and behind the columns of each row of a ring that holds rows; `None` where there is more of it.
    pub fn around(&self) -> Option<(usize, usize)> {
        let pixel = self.ty.shape.iter().skip(3).product::<usize>() * self.ty.dtype.size();
        let (before, behind) = self.pads.get(2).copied().unwrap_or((0, 0));
        let is_all = self.pads.iter().enumerate().all(|(axis, pad)| axis == 2 || *pad == (0, 0));
        is_all.then_some((before * pixel, behind * pixel))
    }

    /// Bytes of a row of a ring that holds rows.
    pub fn held_row_bytes(&self) -> usize {
        self.ty.bytes() / self.ty.shape[1].max(1)
    }

    /// Has it hold so many rows, in so many places one after the other that are `step` rows apart.
    pub fn hold(&mut self, rows: usize, slides: usize, step: usize) {
        self.slides = slides;
        self.ty.shape[1] = rows + (slides - 1) * step;
        for (extent, pad) in self.ty.shape.iter_mut().zip(&self.pads) {
            *extent += pad.0 + pad.1;
        }
    }
}
