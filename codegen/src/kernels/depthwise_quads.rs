//! Depthwise convolutions of bytes in vectors of channels, four products of a lane at once ([`Expr::QuadDot`]): the bytes that a column
//! of the window meets, one of each row, are words, which all pixels of a tile share whose windows have that column.

use super::KernelWriter;
use super::depthwise::{Depthwise, with_depthwise};
use super::depthwise_window::positions;
use super::grain::{QUAD, quad};
use super::lines::Lines;
use super::scales::numbers;
use super::schedule::{Preferences, Settings};
use super::tile::spans;
use super::vector_quads::{added_bias, first_terms, has_quads, quad_machine};
use super::walk::for_span;
use crate::loops::{Expr, Index, Nest, ValueType, Var};
use mlc_ir::ops::Convolution;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{Attribute, DType, Diagnostic, Literal, TensorType};
use std::collections::BTreeMap;

/// Most pixels of a tile, and taps of a window that is written out.
const MOST_PIXELS: usize = 8;
const MOST_TAPS: usize = 128;

/// Weights that are in registers.
const KEPT: usize = 12;

/// The schedule of this kind, where the machine has such instructions for the types and the layout.
pub fn list(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    let (x, weights) = (&kernel.operands[0], &kernel.operands[1]);
    let spatial = op.strides.len();
    let shape = &weights.view.shape;
    let taps: usize = shape[..spatial].iter().product();
    let fits = kernel.target.byte_dots.has_own_words()
        && has_quads(kernel, x, weights)
        && shape[spatial] == 1
        && op.groups > 1
        && shape[spatial + 1] == op.groups
        && op.pads.iter().all(|&pads| pads == (0, 0))
        && x.view.last_stride() == 1
        && op.groups >= quad_machine(kernel).narrowest
        && (1..=MOST_TAPS).contains(&taps);
    if fits { vec![(0, Settings::default())] } else { Preferences::new() }
}

/// Writes the kernel.
///
/// # Errors
/// None: the types are those of [`list`].
pub fn write(op: &Convolution, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    with_depthwise(op, kernel, |depthwise, kernel| {
        let (epilogue, bounds) = (kernel.epilogue.clone(), kernel.bounds.clone());
        Quads::new(depthwise, kernel).write(kernel);
        (kernel.epilogue, kernel.bounds) = (epilogue, bounds);
    });
    Ok(())
}

/// A convolution, its weights as words and the rows of its window.
struct Quads<'d> {
    depthwise: &'d Depthwise,
    /// Elements between the first row of the window and each.
    rows: Vec<i64>,
    /// Words of a column of the window.
    words: usize,
    weights: Var,
    first: Var,
    /// How sums are rescaled, if not by the epilogue.
    lines: Option<Lines>,
    /// Whether bytes that are loaded become those of the other kind.
    biased: bool,
}

/// A tile of pixels of a row, and of a vector of channels.
struct Tile<'t> {
    pixels: usize,
    lanes: usize,
    weights: &'t [Expr],
    first: &'t Expr,
}

impl<'d> Quads<'d> {
    fn new(depthwise: &'d Depthwise, kernel: &mut KernelWriter<'_>) -> Quads<'d> {
        let channels = depthwise.channels;
        let axes = &depthwise.window.axes;
        let above = &axes[..axes.len().saturating_sub(1)];
        let shape: Vec<usize> = above.iter().map(|axis| axis.0).collect();
        let offset = |place: &Vec<usize>| place.iter().zip(above).map(|(&at, axis)| at as i64 * axis.1).sum();
        let rows: Vec<i64> = positions(&shape).iter().map(offset).collect();
        let columns = axes.last().map_or(1, |axis| axis.0);
        let words = rows.len().div_ceil(QUAD);
        let operand = kernel.operands[1].operand.unwrap_or(1);
        let constant = kernel.operands[1].constant.clone();
        let own = Taps { rows: rows.len(), columns, channels };
        let ty = TensorType::new(DType::I32, [words * columns * channels]);
        let bytes = constant.clone();
        let weights = kernel.pack(operand, "packed", ty, move || own.words(bytes.as_ref()?));
        let dtype = kernel.b.element_dtype(depthwise.window.x.pointer);
        let added = added_bias(kernel, dtype);
        let (first, lines) =
            first_terms(kernel, (channels, channels), (operand, added), move || own.sums(constant.as_ref()?));
        Quads { depthwise, rows, words, weights, first, lines, biased: added != 0 }
    }

    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let (channels, machine) = (self.depthwise.channels, quad_machine(kernel));
        let full = channels / machine.lanes * machine.lanes;
        let steps = (Index::default(), Index::from(full), machine.lanes as i64);
        kernel.for_range("channel", steps.0, steps.1, steps.2, |kernel, channel| {
            self.section(kernel, &channel, machine.lanes);
        });
        // The last vectors lie over channels that have been computed.
        let (mut first, mut width) = (full, machine.lanes);
        while first < channels {
            while width > machine.narrowest && (width > channels || width / 2 >= channels - first) {
                width /= 2;
            }
            self.section(kernel, &Index::from(first.min(channels - width)), width);
            first += width;
        }
    }

    /// All pixels of a vector of channels.
    fn section(&self, kernel: &mut KernelWriter<'_>, channel: &Index, lanes: usize) {
        let ty = ValueType::vector(DType::I32, lanes);
        let columns = self.depthwise.window.axes.last().map_or(1, |axis| axis.0);
        let channels = self.depthwise.channels;
        let mut weights: Vec<Expr> = (0..columns * self.words)
            .map(|word| {
                let index = channel.offset((word * channels) as i64);
                Expr::Load { pointer: self.weights, index, ty }
            })
            .collect();
        if weights.len() <= KEPT {
            weights = weights.into_iter().map(|load| kernel.b.define("w", load)).collect();
        }
        let first = kernel.b.define("first_term", Expr::Load { pointer: self.first, index: channel.clone(), ty });
        let pixels = &self.depthwise.window.pixels;
        let (extent, above) = pixels.split_last().map_or((1, &[][..]), |(last, above)| (last.0, above));
        let shape: Vec<usize> = above.iter().map(|axis| axis.0).collect();
        let step = (1..=MOST_PIXELS).rev().find(|&step| extent.is_multiple_of(step)).unwrap_or(1);
        let step = if step * 2 > MOST_PIXELS { step } else { MOST_PIXELS.min(extent) };
        kernel.for_shape(&["n", "row"], &shape, &mut |kernel, outer| {
            for span in spans(extent, step) {
                for_span(kernel, "column", span, |kernel, column| {
                    let tile = Tile { pixels: span.step, lanes, weights: &weights, first: &first };
                    self.tile(kernel, &tile, &[outer, &[column]].concat(), channel);
                });
            }
        });
    }

    fn tile(&self, kernel: &mut KernelWriter<'_>, tile: &Tile<'_>, origin: &[Index], channel: &Index) {
        let window = &self.depthwise.window;
        let mut start = channel.clone();
        for (index, axis) in origin.iter().zip(&window.pixels) {
            start = start.plus(&index.times(axis.1));
        }
        let x = kernel.b.pointer("xp", window.x.pointer, start);
        let (columns, apart, _) = window.axes.last().copied().unwrap_or((1, 0, 0));
        let moved = window.pixels.last().map_or(0, |axis| axis.1);
        let mut sums = vec![tile.first.clone(); tile.pixels];
        // By element, so that each word is made once.
        let mut uses: BTreeMap<i64, Vec<(usize, usize)>> = BTreeMap::new();
        for pixel in 0..tile.pixels {
            for column in 0..columns {
                let element = pixel as i64 * moved + column as i64 * apart;
                uses.entry(element).or_default().push((pixel, column));
            }
        }
        for (element, uses) in uses {
            for word in 0..self.words {
                let value = self.word(x, element, word, tile.lanes);
                let value = kernel.b.define("v", value);
                for &(pixel, column) in &uses {
                    let weights = tile.weights[column * self.words + word].clone();
                    let sum = Expr::QuadDot(Box::new([sums[pixel].clone(), value.clone(), weights]));
                    sums[pixel] = kernel.b.define("sum", sum);
                }
            }
        }
        for (pixel, sum) in sums.into_iter().enumerate() {
            let mut indices = vec![Index::default()];
            indices.extend_from_slice(origin);
            if let Some(last) = indices.last_mut().filter(|_| !origin.is_empty()) {
                *last = last.offset(pixel as i64);
            }
            indices.push(channel.clone());
            let sum = match &self.lines {
                Some(lines) => lines.value(kernel, sum, channel, tile.lanes),
                None => sum,
            };
            self.finish(kernel, sum, &indices, tile.lanes);
        }
    }

    /// The word of some rows of a column of the window.
    fn word(&self, x: Var, element: i64, word: usize, lanes: usize) -> Expr {
        let ty = ValueType::vector(DType::U8, lanes);
        let part = self.rows.iter().skip(word * QUAD).take(QUAD).enumerate().map(|(place, row)| {
            let bytes = Expr::Load { pointer: x, index: Index::from(element + row), ty };
            let wide = Expr::Cast(DType::I32, Box::new(bytes));
            let shift = Literal::integer(DType::I32, 8 * place as i64);
            if place == 0 { wide } else { Expr::binary(BinaryFunction::ShiftLeft, wide, Expr::splat(shift, lanes)) }
        });
        let all = part.reduce(|all, own| Expr::binary(BinaryFunction::Or, all, own));
        let all = all.unwrap_or_else(|| Expr::zero(DType::I32, lanes));
        if !self.biased {
            return all;
        }
        let signs = Literal::integer(DType::I32, i64::from(i32::from_le_bytes([0x80; QUAD])));
        Expr::binary(BinaryFunction::Xor, all, Expr::splat(signs, lanes))
    }

    /// Hands a vector of sums to the epilogue, lane by lane where that can't do vectors.
    fn finish(&self, kernel: &mut KernelWriter<'_>, sum: Expr, indices: &[Index], lanes: usize) {
        if kernel.epilogue_lanes(DType::I32) > 1 {
            return kernel.finish(sum, indices, lanes);
        }
        for lane in 0..lanes {
            let mut own = indices.to_vec();
            if let Some(last) = own.last_mut() {
                *last = last.offset(lane as i64);
            }
            kernel.finish(Expr::Lane(Box::new(sum.clone()), lane), &own, 1);
        }
    }
}

/// How many taps and channels weights [rows, columns, 1, channels] have.
#[derive(Clone, Copy)]
struct Taps {
    rows: usize,
    columns: usize,
    channels: usize,
}

impl Taps {
    fn weight(self, bytes: &[u8], (row, column, channel): (usize, usize, usize)) -> Option<i8> {
        bytes.get((row * self.columns + column) * self.channels + channel).map(|&byte| byte as i8)
    }

    /// Words of the rows of each column: [columns][words][channels].
    fn words(self, constant: &Attribute) -> Option<Attribute> {
        let bytes = constant.bytes();
        let mut words = Vec::new();
        for column in 0..self.columns {
            for first in (0..self.rows).step_by(QUAD) {
                for channel in 0..self.channels {
                    let rows = first..self.rows.min(first + QUAD);
                    let own: Vec<i8> =
                        rows.map(|row| self.weight(bytes, (row, column, channel))).collect::<Option<_>>()?;
                    words.push(quad(&own));
                }
            }
        }
        Some(numbers(words))
    }

    /// Sums of the channels' weights.
    fn sums(self, constant: &Attribute) -> Option<Vec<i64>> {
        let bytes = constant.bytes();
        let mut sums = vec![0; self.channels];
        for (place, &byte) in bytes.iter().enumerate() {
            *sums.get_mut(place % self.channels)? += i64::from(byte as i8);
        }
        Some(sums)
    }
}
