//! Sums of products of bytes by routines that multiply two pairs of 16 bits at once ([`Routine`]): the bytes that some pixels meet
//! are widened into scratch memory once for all outputs, weights are words of four bytes.

use super::bounds;
use super::contraction::Contraction;
use super::scales::{Scales, Sums, numbers, per_output, scales};
use super::schedule::{Preferences, Settings};
use super::{Epilogue, KernelWriter};
use crate::loops::{Expr, Index, Nest, Routine, Stmt, Tile, ValueType, Var};
use mlc_ir::scalar::{BinaryFunction, Expression, ScalarNode};
use mlc_ir::types::row_major_strides;
use mlc_ir::{Attribute, DType, Diagnostic, TensorType};

/// Bytes in a word of weights.
pub(super) const GROUP: usize = 4;

/// Blocks whose sums are kept at once, at most.
const MOST_BLOCKS: usize = 8;

/// The same where sums are on the stack.
const MOST_BLOCKS_ON_STACK: usize = 4;

/// Of so many pixels at most, as a row has, those that are left over are worth code of their own.
pub(super) const FEW_PIXELS: usize = 32;

/// What of a contraction is computed so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// One pixel, whose bytes are read as they are.
    Row,
    /// Pixels that each read one pixel of x, which what is stored may overwrite afterwards.
    Pixel,
    /// Pixels that read a band, so that what is stored may lie over x.
    Band,
    /// All others.
    Window,
}

impl Contraction {
    /// The one schedule of this kind, where the machine has such instructions for the types and the layout.
    pub fn dot_schedules(&self, reach: Reach, kernel: &KernelWriter<'_>) -> Preferences {
        let merged = self.clone().merged(kernel).0;
        let fits = merged.reach() == reach && merged.has_dots(reach, kernel);
        if fits { vec![(0, Settings::default())] } else { Preferences::new() }
    }

    /// Whether the machine has such instructions for the types and the layout of a contraction whose axes are merged.
    pub(super) fn has_dots(&self, reach: Reach, kernel: &KernelWriter<'_>) -> bool {
        let stored = |pointer: Var| kernel.b.element_dtype(pointer);
        let is_constant = self.weights.constant.is_some() && self.weights.operand.is_some();
        let has_routine = kernel.target.dsp || kernel.target.pixel_pairs && reach == Reach::Row;
        has_routine
            && self.x.view.dtype == DType::I32
            && stored(self.x.pointer).is_byte()
            && stored(self.weights.pointer) == DType::I8
            && is_constant
            && self.steps() > 0
            && kernel.results[0].view.elements() > 0
            && self.outer.iter().all(|axis| axis.weights == 0)
            && self.reduction.last().is_none_or(|axis| axis.x == 1 || axis.extent == 1)
    }

    pub(super) fn reach(&self) -> Reach {
        let bytes = self.steps() as i64;
        let is_apart = self.reduction.len() <= 1 && self.outer.iter().all(|axis| axis.x >= bytes || axis.extent == 1);
        match is_apart {
            _ if self.is_row() => Reach::Row,
            _ if self.band.is_some() => Reach::Band,
            true => Reach::Pixel,
            false => Reach::Window,
        }
    }

    /// Whether it is one pixel of whole groups.
    fn is_row(&self) -> bool {
        self.pixels() == 1 && self.reduction.len() == 1 && self.steps().is_multiple_of(GROUP)
    }

    /// Number of positions of the outer axes.
    pub(super) fn pixels(&self) -> usize {
        self.outer.iter().map(|axis| axis.extent).product()
    }

    /// Indices of a pixel, by its number among all, along the outer axes.
    pub(super) fn place(&self, pixel: &Index) -> Vec<Index> {
        let extents: Vec<usize> = self.outer.iter().map(|axis| axis.extent).collect();
        let strides = row_major_strides(&extents);
        let along = |(number, stride): (usize, &usize)| {
            let quotient = pixel.divided_by(*stride as i64);
            if number == 0 { quotient } else { quotient.modulo(extents[number] as i64) }
        };
        strides.iter().enumerate().map(along).collect()
    }

    /// The first element of x that a pixel meets.
    pub(super) fn start(&self, pixel: &Index) -> Index {
        self.start_at(&self.place(pixel))
    }

    /// The same by its indices along the outer axes.
    pub(super) fn start_at(&self, place: &[Index]) -> Index {
        let moved = place.iter().zip(&self.outer).map(|(index, axis)| index.times(axis.x));
        moved.fold(Index::from(self.x_offset), |start, index| start.plus(&index))
    }

    /// For each output whether all of its weights, which are constant bytes, are zero.
    pub(super) fn silent(&self) -> Vec<bool> {
        let bytes = self.weights.constant.as_ref().map_or(&[][..], |constant| &constant.bytes()[..]);
        let (run, runs) = runs(self);
        let stride = self.reduction.last().map_or(0, |axis| axis.weights);
        let is_zero = |element: i64| usize::try_from(element).is_ok_and(|element| bytes.get(element) == Some(&0));
        let of_output = |output: usize| {
            let start = self.weights_offset + output as i64 * self.output_stride;
            runs.iter().all(|(_, own)| (0..run as i64).all(|step| is_zero(start + own + step * stride)))
        };
        (0..self.outputs).map(of_output).collect()
    }

    /// Writes the kernel.
    ///
    /// # Errors
    /// None: the types are those of [`Contraction::dot_schedules`].
    pub fn write_dots(self, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        self.write_dots_of(false, kernel);
        Ok(())
    }

    /// The same, from the bytes of x where they are if that is to be direct.
    pub(super) fn write_dots_of(self, is_direct: bool, kernel: &mut KernelWriter<'_>) {
        self.in_merged_axes(kernel, |merged, kernel| {
            Dots::new(merged, is_direct || merged.is_row(), kernel).write(kernel);
        });
    }

    /// Writes the kernel under merged axes, as [`Contraction::merged`] says; what it takes out of the epilogue is there again behind it.
    pub(super) fn in_merged_axes(
        self,
        kernel: &mut KernelWriter<'_>,
        write: impl FnOnce(&Contraction, &mut KernelWriter<'_>),
    ) {
        let (merged, result, epilogue) = self.merged(kernel);
        let old =
            (std::mem::replace(&mut kernel.results[0], result), std::mem::replace(&mut kernel.epilogue, epilogue));
        let bounds = kernel.bounds.clone();
        write(&merged, kernel);
        (kernel.results[0], kernel.epilogue) = old;
        kernel.bounds = bounds;
    }

    /// What the sums of so many outputs begin with, and how they are rescaled, where the result is that and lies densely.
    pub(super) fn rescaled_sums(&self, outputs: usize, kernel: &mut KernelWriter<'_>) -> (Var, Option<Scales>) {
        let products = kernel.bounds.first().copied().unwrap_or(bounds::ANYTHING);
        let (first, values) = first_terms(kernel, self.outputs, outputs, 1);
        let is_dense = kernel.results[0].view.last_stride() == 1 && self.outputs == outputs;
        let known = Sums { products, first: values, silent: self.silent() };
        (first, if is_dense { scales(kernel, outputs, &known) } else { None })
    }
}

/// A contraction, and the memory that its routines share.
struct Dots<'c> {
    contraction: &'c Contraction,
    tile: Tile,
    dtype: DType,
    blocks: usize,
    /// Those that have weights.
    taken: usize,
    /// Blocks whose sums are kept at once.
    part: usize,
    groups: usize,
    /// Groups of x; `None` where its bytes are read as they are.
    pairs: Option<Var>,
    weights: Var,
    first: Var,
    scales: Option<Scales>,
    /// Where sums are that no routine rescales at once.
    sums: Option<Var>,
}

impl<'c> Dots<'c> {
    /// What is computed; from the bytes of x where they are if that is to be `direct`.
    fn new(contraction: &'c Contraction, is_direct: bool, kernel: &mut KernelWriter<'_>) -> Dots<'c> {
        let is_single = contraction.pixels() == 1;
        let tile = if is_single || is_direct { Tile::OneByFour } else { Tile::ThreeByTwo };
        let blocks = contraction.outputs.div_ceil(tile.outputs());
        let most = if is_single { MOST_BLOCKS } else { MOST_BLOCKS_ON_STACK };
        let part = (1..=most).rev().find(|&part| blocks.is_multiple_of(part)).unwrap_or(1);
        let dtype = kernel.b.element_dtype(contraction.x.pointer);
        let (run, runs) = runs(contraction);
        let groups = runs.len() * run.div_ceil(GROUP);
        let outputs = blocks * tile.outputs();
        let (packed, constant) = (contraction.clone(), contraction.weights.constant.clone());
        let (first, scales) = contraction.rescaled_sums(outputs, kernel);
        let pairs = (!is_direct).then(|| kernel.gathered("pairs", DType::I32, groups * 2 * tile.pixels()));
        let is_rescaled = scales.is_some() && tile == Tile::ThreeByTwo;
        let idle: &[bool] = scales.as_ref().filter(|_| is_rescaled).map_or(&[], |scales| &scales.idle);
        let taken = blocks_with_weights(blocks, tile, idle);
        let number = taken.len();
        let ty = TensorType::new(DType::I32, [(groups * tile.outputs() * taken.len()).max(1)]);
        // Routines read whole blocks of gathered bytes, and a run of all blocks of a part of others.
        let together = if is_direct { part } else { 1 };
        let words = move || packed_words(&packed, constant.as_ref()?, tile, taken.chunks(together));
        let weights = kernel.pack(contraction.weights.operand.unwrap_or(1), "packed", ty, words);
        let sums = (!is_rescaled).then(|| kernel.gathered("sums", DType::I32, part * tile.outputs() * tile.pixels()));
        Dots { contraction, tile, dtype, blocks, taken: number, part, groups, pairs, weights, first, scales, sums }
    }

    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let pixels = self.contraction.pixels();
        let step = self.tile.pixels();
        let full = pixels / step * step;
        kernel.for_range("pixel", Index::default(), Index::from(full), step as i64, |kernel, first| {
            self.pixels(kernel, &first, step, step);
        });
        if full < pixels {
            let together = if self.sums.is_none() && pixels <= FEW_PIXELS { 2 } else { step };
            self.pixels(kernel, &Index::from(full), pixels - full, together);
        }
    }

    /// Some pixels from one on, by their number among all, by a routine for so many `together`.
    fn pixels(&self, kernel: &mut KernelWriter<'_>, first: &Index, count: usize, together: usize) {
        if self.pairs.is_some() {
            kernel.for_each("i", count, |kernel, i| self.widen(kernel, &first.plus(&i), &i, together));
        }
        let places: Vec<Vec<Index>> = (0..count)
            .map(|i| {
                let place = self.contraction.place(&first.offset(i as i64));
                place.into_iter().map(|index| kernel.b.define_index("place", index)).collect()
            })
            .collect();
        let Some(sums) = self.sums else { return self.rescaled(kernel, &places, together) };
        let x = match self.pairs {
            Some(pairs) => (pairs, Index::default()),
            None if self.contraction.pixels() == 1 => (self.contraction.x.pointer, self.contraction.start(first)),
            None => {
                (kernel.b.pointer("xp", self.contraction.x.pointer, self.contraction.start(first)), Index::default())
            }
        };
        let outputs = self.tile.outputs();
        let has_rest = !self.contraction.outputs.is_multiple_of(outputs);
        let parts = self.blocks / self.part - usize::from(has_rest);
        kernel.for_each("part", parts, |kernel, part| {
            self.sum(kernel, &x, sums, &part);
            let start = part.times(self.part as i64);
            if let Some(scales) = &self.scales {
                return self.rescale(kernel, sums, scales, (&places, &start));
            }
            kernel.for_each("block", self.part, |kernel, block| {
                self.store(kernel, sums, &places, (&start.plus(&block), &block), outputs);
            });
        });
        if has_rest {
            self.sum(kernel, &x, sums, &Index::from(parts));
            let start = Index::from(parts * self.part);
            let last = self.part - 1;
            kernel.for_each("block", last, |kernel, block| {
                self.store(kernel, sums, &places, (&start.plus(&block), &block), outputs);
            });
            let block = Index::from(last);
            let rest = self.contraction.outputs % outputs;
            self.store(kernel, sums, &places, (&start.plus(&block), &block), rest);
        }
    }

    /// Computes the sums of a part of the blocks, of pixels whose bytes begin at `x`.
    fn sum(&self, kernel: &mut KernelWriter<'_>, (x, start): &(Var, Index), sums: Var, part: &Index) {
        let outputs = part.times((self.part * self.tile.outputs()) as i64);
        let weights = outputs.times(self.groups as i64);
        let first = (self.first, outputs);
        let mut call = |source: (Var, Index), weights: Index, first: (Var, Index), groups: usize| {
            kernel.b.push(Stmt::Routine {
                routine: Routine::Dots { tile: self.tile, bytes: self.pairs.is_none().then_some(self.dtype) },
                pointers: vec![source, (self.weights, weights), first, (sums, Index::default())],
                numbers: vec![groups as i64, self.part as i64],
            });
        };
        if self.pairs.is_some() {
            return call((*x, start.clone()), weights, first, self.groups);
        }
        let (run, runs) = runs(self.contraction);
        let groups = run / GROUP;
        let words = (groups * self.part * self.tile.outputs()) as i64;
        for (number, (element, _)) in runs.iter().enumerate() {
            // Later runs go on from the sums of those before.
            let first = if number == 0 { first.clone() } else { (sums, Index::default()) };
            call((*x, start.offset(*element)), weights.offset(number as i64 * words), first, groups);
        }
    }

    /// Computes, rescales and stores all outputs of some pixels. Pixels that aren't there are stored before one that is, in its place.
    fn rescaled(&self, kernel: &mut KernelWriter<'_>, places: &[Vec<Index>], together: usize) {
        let (Some(scales), Some(pairs)) = (&self.scales, self.pairs) else { return };
        let result = kernel.results[0].clone();
        let mut pointers: Vec<(Var, Index)> =
            [pairs, self.weights, self.first, scales.table].map(|pointer| (pointer, Index::default())).to_vec();
        for i in 0..together {
            let Some(place) = places.get(i).or(places.last()) else { return };
            let indices: Vec<Index> = place.iter().cloned().chain([Index::default()]).collect();
            pointers.push((result.pointer, result.address(&indices)));
        }
        let mut numbers = vec![self.groups as i64, self.blocks as i64];
        numbers.extend(scales.limit());
        let limited = scales.limit().is_some();
        let idle = self.blocks - self.taken;
        let routine = Routine::RescaledDots { pixels: together, dtype: scales.dtype, limited, idle };
        kernel.b.push(Stmt::Routine { routine, pointers, numbers });
    }

    /// Rescales and stores the sums of a part of the blocks of one pixel, the first of which is `start`.
    fn rescale(
        &self,
        kernel: &mut KernelWriter<'_>,
        sums: Var,
        scales: &Scales,
        (places, start): (&[Vec<Index>], &Index),
    ) {
        let Some(place) = places.first() else { return };
        let output = start.times(self.tile.outputs() as i64);
        let result = kernel.results[0].clone();
        let indices: Vec<Index> = place.iter().cloned().chain([output.clone()]).collect();
        let y = (result.pointer, result.address(&indices));
        let mut numbers = vec![(self.part * self.tile.outputs()) as i64];
        numbers.extend(scales.limit());
        kernel.b.push(Stmt::Routine {
            routine: Routine::Rescale { dtype: scales.dtype, limited: scales.limit().is_some() },
            pointers: vec![(sums, Index::default()), (scales.table, output.times(3)), y],
            numbers,
        });
    }

    /// Widens what a pixel meets, the `i`-th of so many `together`.
    fn widen(&self, kernel: &mut KernelWriter<'_>, pixel: &Index, i: &Index, together: usize) {
        let contraction = self.contraction;
        contraction.bring(kernel, pixel);
        let x = kernel.b.pointer("xp", contraction.x.pointer, contraction.start(pixel));
        let Some(pairs) = self.pairs else { return };
        let pairs = kernel.b.pointer("pp", pairs, i.clone());
        let (run, runs) = runs(contraction);
        let words = (run.div_ceil(GROUP) * 2 * together) as i64;
        let routine = Routine::Widen { dtype: self.dtype, pixels: together };
        for (number, (element, _)) in runs.iter().enumerate() {
            let pointers = vec![(x, Index::from(*element)), (pairs, Index::from(number as i64 * words))];
            kernel.b.push(Stmt::Routine { routine, pointers, numbers: vec![run as i64] });
        }
    }

    /// Hands the sums of some outputs of a block, by its number among all and among those of its part, to the epilogue.
    fn store(
        &self,
        kernel: &mut KernelWriter<'_>,
        sums: Var,
        places: &[Vec<Index>],
        (block, own): (&Index, &Index),
        outputs: usize,
    ) {
        let width = self.tile.outputs();
        for output in 0..outputs {
            for (i, place) in places.iter().enumerate() {
                let index =
                    own.times((width * self.tile.pixels()) as i64).offset((output * self.tile.pixels() + i) as i64);
                let sum = Expr::Load { pointer: sums, index, ty: ValueType::scalar(DType::I32) };
                let mut indices = place.clone();
                indices.push(block.times(width as i64).offset(output as i64));
                kernel.finish(sum, &indices, 1);
            }
        }
    }
}

/// The elements that follow each other in the innermost reduction axis, and where each such run starts in x and in the weights.
pub(super) fn runs(contraction: &Contraction) -> (usize, Vec<(i64, i64)>) {
    let Some((last, above)) = contraction.reduction.split_last() else { return (1, vec![(0, 0)]) };
    let mut starts = vec![(0, 0)];
    for axis in above {
        let moved = |&(x, weights): &(i64, i64)| {
            (0..axis.extent as i64).map(move |at| (x + at * axis.x, weights + at * axis.weights))
        };
        starts = starts.iter().flat_map(moved).collect();
    }
    (last.extent, starts)
}

/// The blocks that have weights: not those whose results don't depend on their sums, as is known of `idle` outputs.
pub(super) fn blocks_with_weights(blocks: usize, tile: Tile, idle: &[bool]) -> Vec<usize> {
    let is_idle = |block: usize| {
        let own = idle.chunks(tile.outputs()).nth(block);
        own.is_some_and(|own| own.iter().all(|&idle| idle))
    };
    (0..blocks).filter(|&block| !is_idle(block)).collect()
}

/// Weights of some blocks as words of four bytes, the first in the lowest bits: of each part of the blocks run by run, block by block, group by
/// group, output by output.
pub(super) fn packed_words<'b>(
    contraction: &Contraction,
    constant: &Attribute,
    tile: Tile,
    parts: impl Iterator<Item = &'b [usize]>,
) -> Option<Attribute> {
    let (run, runs) = runs(contraction);
    let stride = contraction.reduction.last().map_or(0, |axis| axis.weights);
    let bytes = constant.bytes();
    let mut words: Vec<i64> = Vec::new();
    for part in parts {
        for ((_, start), &block) in runs.iter().flat_map(|run| part.iter().map(move |block| (run, block))) {
            for group in 0..run.div_ceil(GROUP) {
                for output in (0..tile.outputs()).map(|output| block * tile.outputs() + output) {
                    let mut word = [0; GROUP];
                    for (place, byte) in word.iter_mut().enumerate() {
                        let step = group * GROUP + place;
                        if step < run && output < contraction.outputs {
                            let moved = step as i64 * stride + output as i64 * contraction.output_stride;
                            let element = contraction.weights_offset + start + moved;
                            *byte = *bytes.get(usize::try_from(element).ok()?)?;
                        }
                    }
                    words.push(i32::from_le_bytes(word).into());
                }
            }
        }
    }
    words.resize(words.len().max(1), 0);
    Some(numbers(words))
}

/// The first terms of the outputs' sums, filled up to `padded` of them: what the epilogue would add to each sum at once, if that
/// is a constant of each output, and 0 otherwise; a `factor` times that. And what they are without it.
pub(super) fn first_terms(
    kernel: &mut KernelWriter<'_>,
    outputs: usize,
    padded: usize,
    factor: i64,
) -> (Var, Vec<i64>) {
    let ty = TensorType::new(DType::I32, [padded]);
    let Some((number, values)) = take_bias(kernel, outputs) else {
        return (kernel.table("first", numbers(vec![0; padded])), vec![0; outputs]);
    };
    let list = values.clone();
    let table = kernel.pack(number, "first", ty, move || {
        // Of sums that nobody looks at a multiple may wrap.
        let terms = list.iter().map(|term| i64::from((term * factor) as i32));
        Some(numbers(terms.chain(std::iter::repeat(0)).take(padded).collect()))
    });
    (table, values)
}

/// Takes what an epilogue adds to each sum at once out of it, if that is a constant of each output: these, and the operand that they are.
pub(super) fn take_bias(kernel: &mut KernelWriter<'_>, outputs: usize) -> Option<(usize, Vec<i64>)> {
    let (operand, expression) = kernel.epilogue.as_ref().and_then(|epilogue| without_bias(epilogue, outputs))?;
    let argument = kernel.epilogue.as_ref()?.operands[operand - 1].clone();
    let (constant, number) = (argument.constant?, argument.operand?);
    if let Some(epilogue) = &mut kernel.epilogue {
        epilogue.expression = expression;
    }
    if let [sums, rest @ ..] = &mut kernel.bounds[..]
        && let Some(bias) = rest.get(operand - 1)
    {
        *sums = (sums.0.saturating_add(bias.0), sums.1.saturating_add(bias.1));
    }
    let list = constant.to_tensor().to_integers();
    Some((number, if list.len() == 1 { vec![list[0]; outputs] } else { list }))
}

/// The operand that an epilogue adds to each sum before it does anything else, a constant that only changes from output to output;
/// and the expression without that.
fn without_bias(epilogue: &Epilogue, outputs: usize) -> Option<(usize, Expression)> {
    let nodes = epilogue.expression.nodes();
    let mut readers = (0..nodes.len())
        .filter(|&id| nodes[id].children().any(|child| nodes[child as usize] == ScalarNode::Operand(0)));
    let sum = readers.next().filter(|_| readers.next().is_none())?;
    let ScalarNode::Binary(BinaryFunction::Add, x, y) = nodes[sum] else { return None };
    let other = match [x, y].map(|id| nodes[id as usize]) {
        [ScalarNode::Operand(0), ScalarNode::Operand(other)] | [ScalarNode::Operand(other), ScalarNode::Operand(0)] => {
            other as usize
        }
        _ => return None,
    };
    let argument = epilogue.operands.get(other.checked_sub(1)?)?;
    per_output(argument, outputs)?;
    let expression = Expression::build(|b| {
        let mut map = Vec::new();
        for (id, node) in nodes.iter().enumerate() {
            let own = if id == sum { b.operand(0) } else { b.push(node.map_children(|child| map[child as usize])) };
            map.push(own);
        }
        map.last().copied().unwrap_or(0)
    });
    Some((other, expression))
}
