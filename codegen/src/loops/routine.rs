//! Routines: inner loops of integer kernels that C compilers don't make well of single statements. Each is a function of C that a
//! file carries, with instructions of the DSP extension of Arm's cores where there are any.
//!
//! A *pair* is a word of two numbers of 16 bits, the first in its lower half. A *group* is four numbers that follow each other: they
//! are kept as two pairs, of the first and the third and of the second and the fourth, which is what one instruction widens of
//! four bytes.

use mlc_ir::DType;

/// A function of C.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Routine {
    /// Of bytes (a pointer to numbers of this type, one to words; a count): makes groups of them, the last of which is filled up
    /// with zeros. Those of several pixels lie among each other: the first pairs of all pixels, then their second ones.
    Widen {
        /// What a byte is.
        dtype: DType,
        /// Pixels whose groups lie among each other.
        pixels: usize,
    },
    /// Copies a byte (a pointer to it, and one to a number of 16 bits). C compilers make no words of such neighbours, which would
    /// take more instructions.
    Copy {
        /// What the byte is.
        dtype: DType,
    },
    /// Sums of products (pointers to the groups of some pixels, to words of four weights, to the first terms of the outputs'
    /// sums, to the sums; numbers of groups and of blocks of outputs). Weights and sums are block by block: for each group
    /// the words of the block's outputs; for each output the sums of the pixels.
    Dots {
        /// Pixels and outputs of a block.
        tile: Tile,
        /// What the elements of x are where they are bytes, and no groups.
        bytes: Option<DType>,
    },
    /// Such sums rescaled, limited and stored (pointers to the sums, to a multiplier and a shift less 32 of each output, to each
    /// pixel's results; the number of blocks, twice what is added and 1, the lower limit). The last pixel is stored first.
    Rescale {
        /// Pixels and outputs of a block.
        tile: Tile,
        /// What is stored.
        dtype: DType,
        /// Whether the lower limit is above the smallest number of that type.
        limited: bool,
    },
}

/// Pixels and outputs whose sums are computed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tile {
    /// Three pixels, two outputs.
    ThreeByTwo,
    /// One pixel, four outputs.
    OneByFour,
}

impl Tile {
    /// How many pixels.
    pub fn pixels(self) -> usize {
        match self {
            Tile::ThreeByTwo => 3,
            Tile::OneByFour => 1,
        }
    }

    /// How many outputs.
    pub fn outputs(self) -> usize {
        match self {
            Tile::ThreeByTwo => 2,
            Tile::OneByFour => 4,
        }
    }
}

impl Routine {
    /// The function's name.
    pub fn name(self) -> String {
        match self {
            Routine::Widen { dtype, pixels } => format!("mlc_widen_{dtype}_{pixels}"),
            Routine::Copy { dtype } => format!("mlc_copy_{dtype}"),
            Routine::Dots { tile, bytes } => {
                let of = bytes.map_or(String::new(), |dtype| format!("{dtype}_"));
                format!("mlc_dots_{of}{}x{}", tile.pixels(), tile.outputs())
            }
            Routine::Rescale { tile, dtype, limited } => {
                let limited = if limited { "limited_" } else { "" };
                format!("mlc_rescale_{limited}{dtype}_{}x{}", tile.pixels(), tile.outputs())
            }
        }
    }

    /// Instructions of a call with these numbers, where the DSP extension is.
    pub fn instructions(self, numbers: &[i64]) -> f64 {
        let number = |place: usize| numbers.get(place).copied().unwrap_or(0) as f64;
        match self {
            Routine::Copy { .. } => 2.0,
            Routine::Widen { .. } => 4.0 + 7.0 * (number(0) / 4.0).ceil(),
            Routine::Dots { tile: Tile::ThreeByTwo, .. } => 24.0 + number(1) * (17.0 + 19.75 * number(0)),
            Routine::Dots { tile: Tile::OneByFour, .. } => 24.0 + number(1) * (13.0 + 19.75 * number(0)),
            Routine::Rescale { tile, .. } => {
                20.0 + number(0) * (5.0 + tile.outputs() as f64 * (2.0 + 9.0 * tile.pixels() as f64))
            }
        }
    }

    /// Elements that a call reads or writes behind each of its pointers.
    pub fn elements(self, numbers: &[i64]) -> Vec<usize> {
        let number = |place: usize| numbers.get(place).map_or(0, |&number| number.max(0) as usize);
        match self {
            Routine::Copy { .. } => vec![1; 2],
            Routine::Widen { pixels, .. } => vec![number(0), number(0).div_ceil(4) * 2 * pixels],
            Routine::Rescale { tile, .. } => {
                let outputs = number(0) * tile.outputs();
                let own = [outputs * tile.pixels(), 2 * outputs];
                own.into_iter().chain(std::iter::repeat_n(outputs, tile.pixels())).collect()
            }
            Routine::Dots { tile, bytes } => {
                let (groups, blocks) = (number(0), number(1));
                let outputs = blocks * tile.outputs();
                let of_group = if bytes.is_some() { 4 } else { 2 * tile.pixels() };
                vec![groups * of_group, groups * outputs, outputs, outputs * tile.pixels()]
            }
        }
    }
}
