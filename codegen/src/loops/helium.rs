//! Routines of Arm's vector extension for microcontrollers (MVE, "Helium"): sums of 16 products of bytes an instruction, in general
//! registers, and sums that are rescaled four at a time.
//!
//! A *step* is 16 bytes, a vector. What a step multiplies that isn't there is multiplied by weights that are 0.

use mlc_ir::DType;

/// What unsigned bytes get less as they become signed.
pub const LESS: i64 = 128;

/// Bytes of a vector.
pub const STEP: usize = 16;

/// Columns of a patch, and its rows: four bytes of each of four columns are a vector.
pub const PATCH: usize = 4;

/// Bytes of a column of a strip: those of 16 channels in four rows.
pub const COLUMN: usize = STEP * PATCH;

/// Words of a channel's record.
pub const RECORD: usize = 7;

/// A routine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Helium {
    /// Copies the rows of a window to where they follow each other (pointers to its first byte and to the copy; bytes of a row, how many
    /// rows, bytes from one to the next). The copy's bytes are signed: unsigned ones less [`LESS`].
    Window {
        /// What the bytes are.
        dtype: DType,
    },
    /// Sums of products (pointers to the steps of each pixel, one pixel after the other, to weights, to terms, to what is stored; numbers
    /// of steps and of blocks of outputs). Weights are block by block, step by step, output by output.
    Sums {
        /// Pixels and outputs of a block.
        block: Block,
        /// What becomes of the sums.
        stored: Stored,
    },
    /// Makes a strip of four rows of 16 channels: for each column the four bytes of each channel, those of rows that aren't there from the
    /// border (pointers to the first row that is there, to 16 bytes of border, to the strip; rows before that one, rows that are there,
    /// bytes between rows and between columns, number of columns and of channels that are there).
    Strip,
    /// Sums of a window over a strip, rescaled and stored, channel by channel (pointers to the strip, to the record of each channel, to the
    /// results; numbers of columns and of channels, bytes between results of neighbouring columns and of neighbouring rows, what is added,
    /// the lower limit). A record is the weights in the order of a patch, four in a word, a first term, a multiplier and 31 less a shift.
    Patches {
        /// Which sums are made at once.
        patch: Patch,
        /// Whether the lower limit is above the smallest number of a byte.
        limited: bool,
    },
}

/// Pixels and outputs whose sums are computed at once: eight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Block {
    /// Two pixels, four outputs.
    TwoByFour,
    /// One pixel, eight outputs.
    OneByEight,
}

impl Block {
    /// How many pixels.
    pub fn pixels(self) -> usize {
        match self {
            Block::TwoByFour => 2,
            Block::OneByEight => 1,
        }
    }

    /// How many outputs.
    pub fn outputs(self) -> usize {
        8 / self.pixels()
    }
}

/// What becomes of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stored {
    /// They are stored block by block, pixel by pixel, as numbers of 32 bits. Terms are the first ones of the outputs' sums.
    Whole,
    /// They are rescaled, limited and stored as bytes (pointers to each pixel's results; further numbers: what is added, the lower limit).
    /// Terms are block by block, and in these for four outputs at a time, first terms, of all outputs of the block, then multipliers and 31
    /// less shifts.
    Rescaled {
        /// Whether the lower limit is above the smallest number of a byte.
        limited: bool,
    },
}

/// Which sums are made of one patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Patch {
    /// Of a window of three rows and columns that moves by one: two rows and columns of results. There are at least two columns.
    Square,
    /// One; those of four columns are stored at once.
    Single {
        /// Columns that the window moves.
        stride: usize,
    },
}

impl Helium {
    /// The function's name.
    pub fn name(self) -> String {
        let limit = |limited: bool| if limited { "limited_" } else { "" };
        match self {
            Helium::Window { dtype } => format!("mlc_window_{dtype}"),
            Helium::Sums { block, stored } => {
                let stored = match stored {
                    Stored::Whole => "",
                    Stored::Rescaled { limited: true } => "rescaled_limited_",
                    Stored::Rescaled { limited: false } => "rescaled_",
                };
                format!("mlc_sums_{stored}i8_{}x{}", block.pixels(), block.outputs())
            }
            Helium::Strip => "mlc_strip_i8".to_owned(),
            Helium::Patches { patch: Patch::Square, limited } => format!("mlc_patches_{}i8_2x2", limit(limited)),
            Helium::Patches { patch: Patch::Single { stride }, limited } => {
                format!("mlc_patches_{}i8_by_{stride}", limit(limited))
            }
        }
    }

    /// Instructions of a call with these numbers.
    pub fn instructions(self, numbers: &[i64]) -> f64 {
        let number = |place: usize| numbers.get(place).copied().unwrap_or(0) as f64;
        let limit = |limited: bool| if limited { 1.0 } else { 0.0 };
        match self {
            Helium::Window { .. } => 14.0 + number(1) * (7.0 + 3.0 * (number(0) / 16.0).ceil()),
            Helium::Sums { block, stored } => {
                let step = (8 + block.pixels() + block.outputs()) as f64;
                let steps = step * number(0) + 2.0 * (number(0) / 4.0).ceil();
                let of_block = match stored {
                    Stored::Whole => 9.0,
                    Stored::Rescaled { limited } => 28.0 + 2.0 * limit(limited),
                };
                45.0 + number(1) * (steps + of_block)
            }
            Helium::Strip => 50.0 + 14.0 * number(4),
            Helium::Patches { patch: Patch::Square, limited } => {
                50.0 + number(1) * (20.0 + (19.0 + limit(limited)) * (number(0) / 2.0).ceil())
            }
            Helium::Patches { patch: Patch::Single { .. }, limited } => {
                50.0 + number(1) * (12.0 + (28.0 + limit(limited)) * (number(0) / 4.0).ceil())
            }
        }
    }

    /// Elements that a call reads or writes behind each of its pointers.
    pub fn elements(self, numbers: &[i64]) -> Vec<usize> {
        let number = |place: usize| numbers.get(place).map_or(0, |&number| number.max(0) as usize);
        let span = |count: usize, stride: usize, own: usize| count.saturating_sub(1) * stride + own;
        match self {
            Helium::Window { .. } => vec![span(number(1), number(2), number(0)), number(0) * number(1)],
            Helium::Sums { block, stored } => {
                let (steps, outputs) = (number(0), number(1) * block.outputs());
                let read = [steps * STEP * block.pixels(), steps * STEP * outputs];
                let written = match stored {
                    Stored::Whole => vec![outputs, outputs * block.pixels()],
                    Stored::Rescaled { .. } => {
                        [3 * outputs].into_iter().chain(std::iter::repeat_n(outputs, block.pixels())).collect()
                    }
                };
                read.into_iter().chain(written).collect()
            }
            Helium::Strip => {
                let row = span(number(4), number(3), number(5));
                vec![span(number(1), number(2), row), STEP, number(4) * COLUMN]
            }
            Helium::Patches { patch, .. } => {
                let (columns, channels) = (number(0), number(1));
                let read = match patch {
                    Patch::Square => columns + 2,
                    Patch::Single { stride } => span(columns.next_multiple_of(PATCH), stride, PATCH),
                };
                let rows = if patch == Patch::Square { 2 } else { 1 };
                let written = span(rows, number(3), span(columns, number(2), channels));
                vec![read * COLUMN, channels * RECORD, written]
            }
        }
    }
}
