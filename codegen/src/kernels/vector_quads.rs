//! Sums of products of bytes in vectors of outputs, several products of a lane at once: what x holds is copied into scratch memory, words of it are
//! the same in all lanes, and weights are words, too.
//!
//! Where machines multiply four bytes at once ([`Expr::QuadDot`]), the copy is of unsigned bytes, or of signed ones on Arm. Bytes of the other kind get
//! 128 more or less as they are copied; what that adds to a sum is a constant of its output, which the sum starts from. Where they
//! multiply two numbers of 16 bits at once ([`Expr::Dot`]), the copy is of such numbers, and weights are bytes that become such as they
//! are loaded: to split words of four bytes takes more instructions than their products, and more registers than there are. What
//! Winograd's convolutions have transformed is of such numbers already, and so are its weights.

use super::bounds;
use super::contraction::{Axis, Contraction};
use super::dots::{runs, take_bias};
use super::elementwise::nest;
use super::grain::{Grain, QUAD};
use super::lines::Lines;
use super::products::{finish, machine};
use super::scales::{Sums, numbers};
use super::schedule::{Preferences, Settings};
use super::tile::{self, Block, Machine, Span};
use super::walk::for_span;
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, Nest, ValueType, Var};
use crate::lower::view::merge_axes;
use crate::target::{ByteDots, Tuning};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{Attribute, DType, Diagnostic, Literal, TensorType};
use std::collections::BTreeMap;

/// What bytes get as signed ones become unsigned, or lose as unsigned ones become signed.
const BIAS: i64 = 128;

/// What bytes of a type get as they become those that the machine multiplies, which are signed on Arm and unsigned elsewhere.
pub fn added_bias(kernel: &KernelWriter<'_>, stored: DType) -> i64 {
    match (stored.is_signed(), kernel.target.byte_dots.is_arm()) {
        (false, true) => -BIAS,
        (true, false) => BIAS,
        _ => 0,
    }
}

/// Most pixels of a tile of one vector, which share words with their neighbours.
const MOST_PIXELS: usize = 16;

impl Contraction {
    /// The tiles that a kernel can be cut into, where the machine multiplies such words of the types and the layout.
    pub fn word_schedules(&self, grain: Grain, kernel: &KernelWriter<'_>) -> Preferences {
        let merged = self.clone().merged(kernel).0;
        if grain != Grain::of(kernel)
            || !has_quads(kernel, &self.x, &self.weights)
            || self.steps() == 0
            || !merged.has_runs()
        {
            return Preferences::new();
        }
        let machine = quad_machine(kernel);
        let (rows, columns, _) = merged.places();
        let sizes = tile::sizes(rows, columns, merged.outputs, machine);
        sizes.into_iter().map(|size| (0, Settings::default().with("vectors", size))).collect()
    }

    /// Whether bytes that are multiplied one after the other are neighbours, and weights the same for all positions.
    fn has_runs(&self) -> bool {
        self.outer.iter().all(|axis| axis.weights == 0)
            && self.reduction.last().is_none_or(|axis| axis.x == 1 || axis.extent == 1)
    }

    /// Extents of the axes that tiles lie along, and of those above, among which are all along which the weights move.
    fn places(&self) -> (usize, usize, Vec<usize>) {
        let split =
            |axes: &'_ [Axis]| axes.last().filter(|axis| axis.weights == 0).map(|last| (last.extent, axes.len() - 1));
        let (columns, left) = split(&self.outer).unwrap_or((1, self.outer.len()));
        let (rows, left) = split(&self.outer[..left]).unwrap_or((1, left));
        let above = &self.outer[..left];
        (rows, columns, above.iter().map(|axis| axis.extent).collect())
    }

    /// Writes the kernel.
    ///
    /// # Errors
    /// None: the types are those of [`Contraction::word_schedules`].
    pub fn write_words(self, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        let (merged, result, epilogue) = self.merged(kernel);
        let old =
            (std::mem::replace(&mut kernel.results[0], result), std::mem::replace(&mut kernel.epilogue, epilogue));
        let bounds = kernel.bounds.clone();
        Words::new(&merged, settings.number("vectors"), kernel).write(kernel);
        (kernel.results[0], kernel.epilogue) = old;
        kernel.bounds = bounds;
        Ok(())
    }
}

/// Whether the machine has such instructions for operands: bytes along the last axis of x, constant weights.
pub fn has_quads(kernel: &KernelWriter<'_>, x: &Argument, weights: &Argument) -> bool {
    has_bytes(kernel, x, weights) && weights.constant.as_ref().is_some_and(|constant| fits(kernel, constant))
}

/// The same but for what weights may be.
pub fn has_bytes(kernel: &KernelWriter<'_>, x: &Argument, weights: &Argument) -> bool {
    let stored = |argument: &Argument| kernel.b.element_dtype(argument.pointer);
    kernel.target.byte_dots != ByteDots::None
        && kernel.lanes(DType::I32) > 1
        && x.view.dtype == DType::I32
        && stored(x).is_byte()
        && stored(weights) == DType::I8
        && weights.constant.is_some()
        && weights.operand.is_some()
        && x.view.strides.iter().all(|&stride| stride >= 0)
        && kernel.results[0].view.elements() > 0
}

/// Whether two products of constant weights can be added as numbers of 16 bits, if that is what the machine does.
fn fits(kernel: &KernelWriter<'_>, weights: &Attribute) -> bool {
    kernel.target.byte_dots != ByteDots::SwappedQuads || !weights.bytes().contains(&(i8::MIN as u8))
}

/// What tiles of sums can use: vectors of half a register at least. Where registers are many, half of them hold words and weights, as C compilers
/// load these long before they are multiplied; steps of products take another eighth.
pub fn quad_machine(kernel: &KernelWriter<'_>) -> Machine {
    grain_machine(Grain::of(kernel), kernel)
}

/// The same for words of a grain.
pub fn grain_machine(grain: Grain, kernel: &KernelWriter<'_>) -> Machine {
    let machine = machine(DType::I32, kernel);
    let tuning = Tuning { narrow_pixels: MOST_PIXELS, ..machine.tuning };
    let sums = match kernel.target.byte_dots {
        ByteDots::SwappedQuads if grain == Grain::Quads => machine.registers * 3 / 8,
        _ if machine.registers > 16 => machine.registers / 2,
        _ => machine.sums,
    };
    Machine { narrowest: machine.lanes.min(8), tuning, sums, ..machine }
}

/// The sums' first terms, where x has `added` more than it should: what the epilogue would add at once, if that is a constant of each
/// output, less `added` times the weights of each output. And how they are rescaled, if by lines, for which they are moved.
pub fn first_terms(
    kernel: &mut KernelWriter<'_>,
    (outputs, padded): (usize, usize),
    (weights, added): (usize, i64),
    sums: impl Fn() -> Option<Vec<i64>> + Send + Sync + 'static,
) -> (Var, Option<Lines>) {
    let products = kernel.bounds.first().copied().unwrap_or(bounds::ANYTHING);
    let (operand, first) = take_bias(kernel, outputs).unwrap_or_else(|| (weights, vec![0; outputs]));
    let known = Sums { products, first, silent: Vec::new() };
    let lines = Lines::take(kernel, &known, padded);
    let mut terms = known.first;
    if let Some(lines) = &lines {
        terms.iter_mut().zip(&lines.moved).for_each(|(first, moved)| *first += moved);
    }
    let first = kernel.pack(operand, "first", TensorType::new(DType::I32, [padded]), move || {
        let mut list = terms.clone();
        if added != 0 {
            list.iter_mut().zip(sums()?).for_each(|(first, sum)| *first -= added * sum);
        }
        list.iter_mut().for_each(|first| *first = i64::from(*first as i32));
        list.resize(padded, 0);
        Some(numbers(list))
    });
    (first, lines)
}

/// A contraction, and the memory of its words.
struct Words<'c> {
    contraction: &'c Contraction,
    grain: Grain,
    blocks: Vec<Block>,
    /// Where x is, copied.
    x: Var,
    weights: Var,
    /// The sums' first terms, if they aren't zeros.
    first: Option<Var>,
    /// How sums are rescaled, if not by the epilogue.
    lines: Option<Lines>,
    /// Words of the elements that follow each other.
    words: usize,
    /// How many such runs there are, and how many of weights, which may move from one position of x to another.
    runs: usize,
    weight_runs: usize,
    /// Whether registers keep the words that neighbouring pixels share.
    shares: bool,
}

impl<'c> Words<'c> {
    fn new(contraction: &'c Contraction, vectors: usize, kernel: &mut KernelWriter<'_>) -> Words<'c> {
        let grain = if contraction.transform.is_some() { Grain::Words } else { Grain::of(kernel) };
        let machine = grain_machine(grain, kernel);
        let (rows, columns, _) = contraction.places();
        let blocks = tile::plan(rows, columns, contraction.outputs, machine, vectors);
        let (run, starts) = runs(contraction);
        let words = run.div_ceil(grain.count());
        let padded: usize = blocks.iter().map(|block| block.count * block.width()).sum();
        let operand = contraction.weights.operand.unwrap_or(1);
        let dtype = kernel.b.element_dtype(contraction.x.pointer);
        let (packed, own) = (contraction.clone(), blocks.clone());
        let (stored, size) = grain.weights();
        let dots = kernel.target.byte_dots;
        let weight_runs = contraction.weight_starts().len();
        let ty = TensorType::new(stored, [padded * words * weight_runs * size]);
        let weights = kernel.pack(operand, "packed", ty, move || packed.weight_words(&own, grain, dots));
        let (first, lines, x) = match grain {
            Grain::Words => (None, None, contraction.x.pointer),
            Grain::Pairs | Grain::Quads => {
                let added = if grain == Grain::Quads { added_bias(kernel, dtype) } else { 0 };
                let list = contraction.clone();
                let (first, lines) =
                    first_terms(kernel, (contraction.outputs, padded), (operand, added), move || list.weight_sums());
                (Some(first), lines, copy(kernel, &contraction.x, dtype, grain))
            }
        };
        let shares = grain == Grain::Quads && dots != ByteDots::SwappedQuads;
        let runs = starts.len();
        Words { contraction, grain, blocks, x, weights, first, lines, words, runs, weight_runs, shares }
    }

    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let (_, _, above) = self.contraction.places();
        let mut section = 0;
        for block in &self.blocks {
            kernel.for_each("block", block.count, |kernel, number| {
                let output = number.times(block.outputs() as i64).offset(block.first as i64);
                let padded = number.times(block.width() as i64).offset(section as i64);
                let size = self.grain.weights().1;
                let start = padded.times((self.words * self.weight_runs * size) as i64);
                kernel.for_shape(&["n", "m"], &above, &mut |kernel, outer| {
                    let moved = outer.iter().zip(&self.contraction.outer).filter(|(_, axis)| axis.weights != 0);
                    let position = moved.fold(Index::default(), |position, (index, axis)| {
                        position.times(axis.extent as i64).plus(index)
                    });
                    let of_position = self.words * self.runs * block.width() * size;
                    let start = start.plus(&position.times(of_position as i64));
                    let weights = kernel.b.pointer("wp", self.weights, start);
                    for rows in &block.rows {
                        for_span(kernel, "row", *rows, |kernel, row| {
                            for columns in &block.columns {
                                for_span(kernel, "column", *columns, |kernel, column| {
                                    let both = [row.clone(), column];
                                    let own = &both[2 - (self.contraction.outer.len() - outer.len()).min(2)..];
                                    let origin = [outer, own].concat();
                                    let tile = WordTile { block, origin, size: (rows, columns), weights };
                                    self.tile(kernel, &tile, (&output, &padded));
                                });
                            }
                        });
                    }
                });
            });
            section += block.count * block.width();
        }
    }

    /// Sums of some pixels of some vectors of outputs, the first of which is `output`, and number `padded` with the padding of all.
    fn tile(&self, kernel: &mut KernelWriter<'_>, tile: &WordTile<'_>, (output, padded): (&Index, &Index)) {
        let outer = &self.contraction.outer;
        let mut start = Index::from(self.contraction.x_offset);
        for (index, axis) in tile.origin.iter().zip(outer) {
            start = start.plus(&index.times(axis.x));
        }
        let x = kernel.b.pointer("xp", self.x, start);
        let places = tile.places(outer.len());
        let pixels: Vec<i64> =
            places.iter().map(|place| place.iter().zip(outer).map(|(&at, axis)| at as i64 * axis.x).sum()).collect();
        let mut sums = Vec::new();
        for pixel in 0..places.len() {
            let mut at = padded.clone();
            for (number, vector) in tile.block.vectors.iter().enumerate() {
                let ty = ValueType::vector(DType::I32, vector.width);
                let load = |pointer| Expr::Load { pointer, index: at.clone(), ty };
                let first = self.first.map_or(Expr::zero(DType::I32, vector.width), load);
                sums.push(kernel.b.mutable(&format!("sum_{pixel}_{number}"), first));
                at = at.offset(vector.width as i64);
            }
        }
        self.accumulate(kernel, x, (tile, &pixels), &sums);
        for (place, sums) in places.iter().zip(sums.chunks(tile.block.vectors.len().max(1))) {
            let indices: Vec<Index> =
                tile.origin.iter().zip(place).map(|(index, &at)| index.offset(at as i64)).collect();
            let (mut own, mut entry) = (output.clone(), padded.clone());
            for (&sum, vector) in sums.iter().zip(&tile.block.vectors) {
                if let Some(lines) = &self.lines {
                    let value = lines.value(kernel, Expr::Var(sum), &entry, vector.width);
                    kernel.b.assign(sum, value);
                }
                entry = entry.offset(vector.width as i64);
                finish(kernel, sum, &indices, &own, *vector);
                own = own.offset(vector.valid as i64);
            }
        }
    }

    /// Adds all products to the sums of a tile: loops over the axes above a run, and over its words where they are many.
    fn accumulate(&self, kernel: &mut KernelWriter<'_>, x: Var, own: (&WordTile<'_>, &[i64]), sums: &[Var]) {
        let tuning = kernel.target.machine.tuning;
        let above: &[Axis] = self.contraction.reduction.split_last().map_or(&[], |(_, above)| above);
        let mut written_out = above.len();
        let mut products = self.words * sums.len();
        while written_out > 0 && products * above[written_out - 1].extent <= tuning.longest_run {
            written_out -= 1;
            products *= above[written_out].extent;
        }
        let step = (own.0.block.width() * self.words) as i64;
        let period = self.period();
        let alike = self.words / period * sums.len();
        let turn = match period * alike <= tuning.longest_run {
            true => period,
            false => tuning.turn.div_ceil(alike).min(period),
        };
        let extents: Vec<usize> = above.iter().map(|axis| axis.extent).collect();
        kernel.for_shape(&["tap"; 6], &extents[..written_out], &mut |kernel, position| {
            let inner = super::depthwise_window::positions(&extents[written_out..]);
            for place in inner {
                let place: Vec<Index> = place.into_iter().map(Index::from).collect();
                let (mut from, mut number) = (Index::default(), Index::default());
                for (index, axis) in position.iter().chain(&place).zip(above) {
                    from = from.plus(&index.times(axis.x));
                    number = number.times(axis.extent as i64).plus(index);
                }
                let weights = number.times(step);
                let full = period / turn * turn;
                let turns = Span { start: 0, end: full, step: turn };
                for_span(kernel, "k", turns, |kernel, k| {
                    self.words(kernel, x, own, sums, (&from, &weights), (&k, turn))
                });
                let rest = (&Index::from(full), period - full);
                self.words(kernel, x, own, sums, (&from, &weights), rest);
            }
        });
    }

    /// After how many words of a run a pixel meets those that its neighbour began with; all, where that isn't at a word's end, or where words are loaded
    /// more easily than kept.
    fn period(&self) -> usize {
        if !self.shares {
            return self.words;
        }
        let apart = self.contraction.outer.last().map_or(0, |axis| axis.x.unsigned_abs() as usize);
        let words = apart / QUAD;
        let is_shared =
            apart.is_multiple_of(QUAD) && (1..self.words).contains(&words) && self.words.is_multiple_of(words);
        if is_shared { words } else { self.words }
    }

    /// Adds the products of some words of a run, from number `k` on, and of those which neighbouring pixels share with these.
    fn words(
        &self,
        kernel: &mut KernelWriter<'_>,
        x: Var,
        (tile, pixels): (&WordTile<'_>, &[i64]),
        sums: &[Var],
        (from, start): (&Index, &Index),
        (k, count): (&Index, usize),
    ) {
        let vectors = &tile.block.vectors;
        let period = self.period();
        for own in 0..count {
            let mut words: BTreeMap<i64, Expr> = BTreeMap::new();
            for word in (own..self.words).step_by(period) {
                let k = k.offset(word as i64);
                let mut at = start.plus(&k.times(tile.block.width() as i64));
                let mut weights = Vec::new();
                for vector in vectors {
                    weights.push(self.grain.load(kernel, tile.weights, &at, vector.width));
                    at = at.offset(vector.width as i64);
                }
                for (pixel, sums) in pixels.iter().zip(sums.chunks(vectors.len())) {
                    let count = self.grain.count();
                    let place = pixel + (word * count) as i64;
                    let index = from.plus(&k.times(count as i64)).offset(*pixel);
                    let load = || kernel.b.define("v", self.grain.word(x, index));
                    let word = words.entry(place).or_insert_with(load).clone();
                    for ((&sum, weight), vector) in sums.iter().zip(&weights).zip(vectors) {
                        kernel.b.assign(sum, self.grain.dot(sum, word.clone(), weight.clone(), vector.width));
                    }
                }
            }
        }
    }
}

/// Neighbouring pixels of a block of outputs.
struct WordTile<'t> {
    block: &'t Block,
    /// The first pixel.
    origin: Vec<Index>,
    /// How many rows and columns.
    size: (&'t Span, &'t Span),
    weights: Var,
}

impl WordTile<'_> {
    /// The pixels from the first one on, along all axes.
    fn places(&self, rank: usize) -> Vec<Vec<usize>> {
        let mut places = Vec::new();
        for row in 0..self.size.0.step {
            for column in 0..self.size.1.step {
                let mut place = vec![0; rank];
                for (axis, moved) in [column, row].into_iter().enumerate() {
                    if let Some(own) = rank.checked_sub(axis + 1) {
                        place[own] = moved;
                    }
                }
                places.push(place);
            }
        }
        places
    }
}

/// Copies what x shows into scratch memory of the same layout, as bytes that the machine multiplies or as numbers of 16 bits. Behind the
/// last there is room for a word.
fn copy(kernel: &mut KernelWriter<'_>, x: &Argument, dtype: DType, grain: Grain) -> Var {
    let last: usize =
        x.view.shape.iter().zip(&x.view.strides).map(|(&extent, &stride)| (extent - 1) * stride as usize).sum();
    let (name, own) = grain.copied(dtype);
    let copy = kernel.scratch(name, own, last + grain.count());
    let view = merge_axes(std::slice::from_ref(&x.view)).remove(0);
    let is_dense = view.strides.last().is_none_or(|&stride| stride == 1);
    let lanes = if is_dense { kernel.lanes(own) } else { 1 };
    nest(kernel, &view, lanes, |kernel, indices, lanes| {
        let mut index = Index::default();
        for (place, &stride) in indices.iter().zip(&view.strides) {
            index = index.plus(&place.times(stride));
        }
        let value = Expr::Load { pointer: x.pointer, index: index.clone(), ty: ValueType::vector(dtype, lanes) };
        let value = match grain {
            Grain::Pairs | Grain::Words => Expr::Cast(own, Box::new(value)),
            Grain::Quads if added_bias(kernel, dtype) != 0 => {
                let bias = if dtype.is_signed() { -BIAS } else { BIAS };
                Expr::binary(BinaryFunction::Xor, value, Expr::splat(Literal::integer(dtype, bias), lanes))
            }
            Grain::Quads => value,
        };
        kernel.b.store(copy, index, value);
    });
    copy
}
