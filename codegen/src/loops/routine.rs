//! Routines: inner loops of integer kernels that C compilers don't make well of single statements. Each is a function of C that a
//! file carries, with instructions of the DSP extension of Arm's cores where there are any.
//!
//! A *pair* is a word of two numbers of 16 bits, the first in its lower half. A *group* is four numbers that follow each other: they
//! are kept as two pairs, of the first and the third and of the second and the fourth, which is what one instruction widens of
//! four bytes.

use super::helium::Helium;
use crate::target::Instructions;
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
    /// Copies bytes (a pointer to them, and one to where they are to be, which may be among them, but nearer to the beginning; a count).
    CopyBytes {
        /// Bytes of an element.
        size: usize,
    },
    /// Has the cache bring a line that is needed soon (a pointer; bytes from there, which may be beyond what it points into). Nothing is
    /// read or written.
    FetchAhead,
    /// Copies a channel into a *plane*, whose words are pairs of a column in rows 2i and 2i + 1 (pointers to the channel, to the word
    /// of its first column in row 0 of the plane; numbers of rows and columns, bytes between rows and between columns, words of a
    /// row of pairs, rows of the plane above the channel).
    RowPairs {
        /// What the bytes are.
        dtype: DType,
    },
    /// Windows of 3 x 3 over a plane, rescaled and stored (pointers to the plane, to the weights, to the first term, to a multiplier,
    /// a shift less 32 and what is added as in [`Routine::Rescale`], to the results; numbers of their rows and columns, bytes
    /// between their rows and between their columns, words of a row of pairs). Weights are three pairs of the first and the second row and
    /// three of the second and the third. Weights and the first term are twice what they stand for, so that sums are.
    Depthwise {
        /// Rows and columns between windows: 1 or 2.
        stride: usize,
        /// What is stored.
        dtype: DType,
    },
    /// Windows of 3 x 3 that make one row of several channels, rescaled and stored (pointers to x, to [`Routine::ROW_WINDOW_WORDS`] words of each channel, to
    /// three numbers of each as [`Routine::Rescale`] takes them, to the results; numbers of channels and of columns of x, whether there is a border on
    /// the left and on the right, bytes between rows of x, and between columns of x and of the result). The words are the weights of each column's
    /// first two rows as a pair; those of the third row, the first two as a pair; the first term of a sum, what a border on the right adds, the first
    /// term and what one on the left adds. All are twice what they stand for.
    RowWindows {
        /// Columns between windows: 1 or 2.
        stride: usize,
        /// What the bytes of x are.
        x: DType,
        /// What is stored.
        result: DType,
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
    /// Bytes of two pixels as words (pointers to those of the one, to those of the other, to the words; a count): the first, plus 2^16 times
    /// the second.
    JoinPixels,
    /// Sums of products of two pixels, each product of a word and a byte being one of both (pointers to the words, to weights, to the first
    /// terms, to the sums; numbers of blocks of two outputs and of steps). A step is two words; its weights are a word of the
    /// first's bytes of both outputs, then the second's. Weights are in chunks, over which neither pixel's sums leave 16 bits: a number of steps and
    /// these; none ends a block. Sums of the first pixel's outputs lie before those of the second's.
    PixelPairs,
    /// Sums of one pixel rescaled, limited and stored (pointers to the sums, to three numbers of each output, to the results; the
    /// number of outputs, the lower limit). The three are a multiplier, a shift less 32, and twice what is added and 1, shifted to
    /// the left by that.
    Rescale {
        /// What is stored.
        dtype: DType,
        /// Whether the lower limit is above the smallest number of that type.
        limited: bool,
    },
    /// Sums of products of some pixels and two outputs that are rescaled, limited and stored (pointers to the groups, to the words of
    /// weights, to the first terms, to what [`Routine::Rescale`] takes of each output, to each pixel's results; numbers of groups
    /// and of blocks of outputs, the lower limit). A block whose multipliers are 0 has no weights. The last pixel is stored first.
    RescaledDots {
        /// Three pixels, or two.
        pixels: usize,
        /// What is stored.
        dtype: DType,
        /// Whether the lower limit is above the smallest number of that type.
        limited: bool,
        /// Blocks without weights, which prices know; the function is the same.
        idle: usize,
    },
    /// The same of bytes where they are (pointers to those of the first pixel, to weights, to the first terms, to what [`Routine::Rescale`] takes
    /// of each output, to each pixel's results; numbers of groups of a run and of blocks, of runs, bytes from the end of a run to the next one;
    /// the lower limit). The last pixel is stored first.
    DirectDots {
        /// What the function is made for.
        tile: DirectTile,
        /// See [`Routine::RescaledDots`].
        idle: usize,
    },
    /// One of the vector extension.
    Helium(Helium),
}

/// Pixels, of two outputs each, of a [`Routine::DirectDots`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirectTile {
    /// Three pixels, or two.
    pub pixels: usize,
    /// Bytes from one to the next.
    pub distance: usize,
    /// What the bytes of x are.
    pub x: DType,
    /// Whether weights are groups, and no words of four.
    pub wide: bool,
    /// What is stored.
    pub dtype: DType,
    /// Whether the lower limit is above the smallest number of that type.
    pub limited: bool,
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
    /// Words of a channel that [`Routine::RowWindows`] reads.
    pub const ROW_WINDOW_WORDS: usize = 8;

    /// The function's name.
    pub fn name(self) -> String {
        match self {
            Routine::Widen { dtype, pixels } => format!("mlc_widen_{dtype}_{pixels}"),
            Routine::Copy { dtype } => format!("mlc_copy_{dtype}"),
            Routine::CopyBytes { .. } => "mlc_copy_bytes".to_owned(),
            Routine::FetchAhead => "mlc_fetch_ahead".to_owned(),
            Routine::Helium(routine) => routine.name(),
            Routine::Dots { tile, bytes } => {
                let of = bytes.map_or(String::new(), |dtype| format!("{dtype}_"));
                format!("mlc_dots_{of}{}x{}", tile.pixels(), tile.outputs())
            }
            Routine::JoinPixels => "mlc_join_pixels".to_owned(),
            Routine::PixelPairs => "mlc_pixel_pairs".to_owned(),
            Routine::RowPairs { dtype } => format!("mlc_row_pairs_{dtype}"),
            Routine::Depthwise { stride, dtype } => format!("mlc_depthwise_3x3_{stride}_{dtype}"),
            Routine::RowWindows { stride, x, result } => format!("mlc_row_windows_{stride}_{x}_{result}"),
            Routine::Rescale { dtype, limited } => format!("mlc_rescale_{}{dtype}", limited_prefix(limited)),
            Routine::RescaledDots { pixels, dtype, limited, .. } => {
                format!("mlc_rescaled_dots_{}{dtype}_{pixels}x2", limited_prefix(limited))
            }
            Routine::DirectDots { tile: DirectTile { pixels, distance, x, wide, dtype, limited }, .. } => {
                let (limit, wide) = (limited_prefix(limited), if wide { "wide_" } else { "" });
                format!("mlc_direct_dots_{limit}{wide}{x}_{distance}_{dtype}_{pixels}x2")
            }
        }
    }

    /// The same as others that have the same function.
    pub fn function(self) -> Routine {
        match self {
            Routine::RescaledDots { pixels, dtype, limited, .. } => {
                Routine::RescaledDots { pixels, dtype, limited, idle: 0 }
            }
            Routine::DirectDots { tile, .. } => Routine::DirectDots { tile, idle: 0 },
            other => other,
        }
    }

    /// Instructions of a call with these numbers, on the machines that it was made for; what one of `each` kind costs decides about those that
    /// all machines have.
    pub fn instructions(self, numbers: &[i64], each: &Instructions) -> f64 {
        let number = |place: usize| numbers.get(place).copied().unwrap_or(0) as f64;
        match self {
            Routine::Copy { .. } => 2.0,
            Routine::CopyBytes { .. } => 30.0 + each.moved_byte * number(0),
            Routine::FetchAhead => 1.0,
            Routine::Helium(routine) => routine.instructions(numbers),
            Routine::Widen { .. } => 4.0 + 7.0 * (number(0) / 4.0).ceil(),
            Routine::Dots { tile: Tile::ThreeByTwo, .. } => 24.0 + number(1) * (17.0 + 19.75 * number(0)),
            Routine::Dots { tile: Tile::OneByFour, bytes } => {
                let widened = if bytes.is_some() { 2.0 } else { 0.0 };
                24.0 + number(1) * (18.0 + (each.quad_dots + widened) * number(0))
            }
            Routine::JoinPixels => 10.0 + 8.0 * number(0),
            // A chunk has four steps or so.
            Routine::PixelPairs => 40.0 + number(0) * (40.0 + 23.0 * number(1)),
            Routine::RowPairs { .. } => 40.0 + number(0) * (6.0 + 2.5 * number(1)),
            Routine::Depthwise { stride: 1, .. } => {
                60.0 + (number(0) / 2.0).ceil() * (40.0 + 58.0 * (number(1) / 2.0).ceil())
            }
            Routine::Depthwise { .. } => 60.0 + number(0) * (40.0 + 37.0 * (number(1) / 2.0).ceil()),
            Routine::RowWindows { stride, .. } => {
                let [left, right] = [number(2), number(3)];
                let results = ((number(1) + left + right - 3.0) / stride as f64).floor() + 1.0;
                let (begin, each, last) = if stride == 1 { (38.0, 23.0, 11.0) } else { (30.0, 32.0, 19.0) };
                25.0 + number(0) * (begin + 8.0 * (1.0 - left) + each * (results - right) + last * right)
            }
            Routine::Rescale { limited, .. } => 15.0 + number(0) * (each.rescaled + if limited { 3.0 } else { 0.0 }),
            Routine::RescaledDots { pixels, limited, idle, .. } => {
                let products = (7.0 + 4.0 * pixels as f64) * number(0) + 3.0 * (number(0) / 4.0).ceil();
                40.0 + number(1) * rescaled_block(pixels, limited) + (number(1) - idle as f64) * products
            }
            Routine::DirectDots { tile: DirectTile { pixels, wide, limited, .. }, idle } => {
                let loaded = if wide { 1.0 } else { 5.0 };
                let run = 13.0 + (loaded + 7.0 * pixels as f64) * number(0) + 3.0 * (number(0) / 4.0).ceil();
                40.0 + number(1) * rescaled_block(pixels, limited) + (number(1) - idle as f64) * number(2) * run
            }
        }
    }

    /// Elements that a call reads or writes behind each of its pointers.
    pub fn elements(self, numbers: &[i64]) -> Vec<usize> {
        let number = |place: usize| numbers.get(place).map_or(0, |&number| number.max(0) as usize);
        match self {
            Routine::Copy { .. } => vec![1; 2],
            Routine::CopyBytes { size } => vec![number(0) / size.max(1); 2],
            Routine::FetchAhead => Vec::new(),
            Routine::Helium(routine) => routine.elements(numbers),
            Routine::Widen { pixels, .. } => vec![number(0), number(0).div_ceil(4) * 2 * pixels],
            Routine::JoinPixels => vec![number(0); 3],
            Routine::PixelPairs => {
                let (blocks, steps) = (number(0), number(1));
                vec![2 * steps, blocks * (2 * steps + 1), 2 * blocks, 4 * blocks]
            }
            Routine::RowPairs { .. } => {
                let read = strided(&[(number(0), number(2)), (number(1), number(3))]);
                vec![read, 2 * (number(0) + number(5)).div_ceil(2) * number(4)]
            }
            Routine::Depthwise { stride, .. } => {
                let rows = if stride == 1 { number(0).div_ceil(2) } else { number(0) };
                let stored = strided(&[(number(0), number(2)), (number(1), number(3))]);
                vec![2 * (rows + 1) * number(4), 6, 1, 3, stored]
            }
            Routine::RowWindows { stride, .. } => {
                let results = (number(1) + number(2) + number(3)).saturating_sub(3) / stride + 1;
                let read = strided(&[(3, number(4)), (number(1), number(5)), (number(0), 1)]);
                let stored = strided(&[(results, number(5)), (number(0), 1)]);
                vec![read, Self::ROW_WINDOW_WORDS * number(0), 3 * number(0), stored]
            }
            Routine::Rescale { .. } => vec![number(0), 3 * number(0), number(0)],
            Routine::RescaledDots { pixels, .. } => {
                let (groups, outputs) = (number(0), 2 * number(1));
                let operands = vec![groups * 2 * pixels, groups * outputs, outputs, 3 * outputs];
                operands.into_iter().chain(std::iter::repeat_n(outputs, pixels)).collect()
            }
            Routine::DirectDots { tile: DirectTile { pixels, distance, wide, .. }, idle } => {
                let (run, outputs, runs) = (4 * number(0), 2 * number(1), number(2));
                let gap = numbers.get(3).copied().unwrap_or(0);
                let last = (runs.saturating_sub(1) as i64 * (run as i64 + gap)).max(0) as usize;
                let words = number(0) * runs * 2 * number(1).saturating_sub(idle) * if wide { 2 } else { 1 };
                let operands = vec![(pixels - 1) * distance + last + run, words, outputs, 3 * outputs];
                operands.into_iter().chain(std::iter::repeat_n(outputs, pixels)).collect()
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

/// Instructions around the products of a block of two outputs that is rescaled.
fn rescaled_block(pixels: usize, limited: bool) -> f64 {
    let pixels = pixels as f64;
    15.0 + 14.0 * pixels + if limited { 2.0 + 6.0 * pixels } else { 0.0 }
}

fn limited_prefix(limited: bool) -> &'static str {
    if limited { "limited_" } else { "" }
}

/// Elements from the first to the last of some axes, each of an extent and a stride.
fn strided(axes: &[(usize, usize)]) -> usize {
    1 + axes.iter().map(|(extent, stride)| extent.saturating_sub(1) * stride).sum::<usize>()
}
