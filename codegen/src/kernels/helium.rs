//! Sums of products of bytes by routines of Arm's vector extension for microcontrollers ([`Helium`]): a window is copied to where its
//! bytes follow each other, weights are vectors of 16 bytes, and sums whose epilogue only rescales them are stored as bytes at once.

use super::KernelWriter;
use super::contraction::Contraction;
use super::dots::{Reach, runs, take_bias};
use super::quads::{QUAD, finishes_quads};
use super::scales::{Factors, factors, numbers};
use super::schedule::{Preferences, Settings};
use crate::loops::helium::{Block, Helium, LESS, STEP, Stored};
use crate::loops::{Expr, Index, Nest, Routine, Stmt, ValueType, Var};
use crate::target::VectorSpelling;
use mlc_ir::{Attribute, DType, Diagnostic, Literal, TensorType};

/// Blocks whose sums are kept at once, at most, where they aren't stored as bytes.
const MOST_BLOCKS: usize = 8;

/// Pushes a call of a routine.
pub(super) fn call(kernel: &mut KernelWriter<'_>, routine: Helium, pointers: Vec<(Var, Index)>, numbers: Vec<i64>) {
    kernel.b.push(Stmt::Routine { routine: Routine::Helium(routine), pointers, numbers });
}

impl Contraction {
    /// The one schedule of this kind, where the machine has such instructions for the types and the layout.
    pub fn helium_schedules(&self, reach: Reach, kernel: &KernelWriter<'_>) -> Preferences {
        let merged = self.clone().merged(kernel).0;
        let stored = |pointer: Var| kernel.b.element_dtype(pointer);
        let fits = kernel.target.vectors == VectorSpelling::Mve
            && self.x.view.dtype == DType::I32
            && stored(self.x.pointer).is_byte()
            && stored(self.weights.pointer) == DType::I8
            && self.weights.constant.is_some()
            && self.weights.operand.is_some()
            && self.steps() > 0
            && kernel.results[0].view.elements() > 0
            && merged.outer.iter().all(|axis| axis.weights == 0)
            && merged.reduction.last().is_none_or(|axis| axis.x == 1 || axis.extent == 1)
            && merged.helium_reach(stored(self.x.pointer)) == reach;
        if fits { vec![(0, Settings::default())] } else { Preferences::new() }
    }

    fn helium_reach(&self, dtype: DType) -> Reach {
        match self.reach() {
            Reach::Row if self.is_whole(dtype) => Reach::Row,
            Reach::Row => Reach::Pixel,
            reach => reach,
        }
    }

    /// Whether it is one pixel of whole steps of signed bytes, which needn't be copied.
    fn is_whole(&self, dtype: DType) -> bool {
        dtype == DType::I8 && self.pixels() == 1 && self.reduction.len() <= 1 && self.steps().is_multiple_of(STEP)
    }

    /// Writes the kernel.
    ///
    /// # Errors
    /// None: the types are those of [`Contraction::helium_schedules`].
    pub fn write_helium(self, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        let (merged, result, epilogue) = self.merged(kernel);
        let old =
            (std::mem::replace(&mut kernel.results[0], result), std::mem::replace(&mut kernel.epilogue, epilogue));
        let bounds = kernel.bounds.clone();
        Sums::new(&merged, kernel).write(kernel);
        (kernel.results[0], kernel.epilogue) = old;
        kernel.bounds = bounds;
        Ok(())
    }
}

/// A contraction, and the memory that its routines share.
struct Sums<'c> {
    contraction: &'c Contraction,
    block: Block,
    /// What the bytes of x are.
    dtype: DType,
    /// Vectors of a pixel.
    steps: usize,
    /// The pixels of a block, copied; `None` where they are read as they are.
    window: Option<Var>,
    weights: Var,
    /// See [`Helium::Sums`], and how many of them each output has.
    terms: (Var, usize),
    stored: Stored,
    /// What is added to rescaled sums, and what they aren't below.
    limits: (i32, i32),
    /// Sums of some blocks, or bytes of the last one, whose outputs aren't all there.
    buffer: Option<Var>,
}

impl<'c> Sums<'c> {
    fn new(contraction: &'c Contraction, kernel: &mut KernelWriter<'_>) -> Sums<'c> {
        let block = if contraction.pixels() == 1 { Block::OneByEight } else { Block::TwoByFour };
        let steps = contraction.steps().div_ceil(STEP);
        let outputs = contraction.outputs.next_multiple_of(block.outputs());
        let (packed, constant) = (contraction.clone(), contraction.weights.constant.clone());
        let bytes = move || packed_bytes(&packed, constant.as_ref()?, block);
        let ty = TensorType::new(DType::I8, [outputs * steps * STEP]);
        let weights = kernel.pack(contraction.weights.operand.unwrap_or(1), "packed", ty, bytes);
        let bias = take_bias(kernel, contraction.outputs);
        let is_dense = kernel.results[0].view.last_stride() == 1;
        let factors = factors(kernel, contraction.outputs).filter(|factors| is_dense && factors.dtype == DType::I8);
        let stored = match &factors {
            Some(factors) => Stored::Rescaled { limited: factors.is_limited() },
            None => Stored::Whole,
        };
        let limits = factors.as_ref().map_or((0, 0), |factors| (factors.added, factors.low));
        let own = if stored == Stored::Whole { 1 } else { 3 };
        let terms = terms(kernel, (contraction, block), bias, factors);
        let dtype = kernel.b.element_dtype(contraction.x.pointer);
        let is_copied = !contraction.is_whole(dtype);
        let window = is_copied.then(|| kernel.gathered("window", DType::I8, steps * STEP * block.pixels()));
        let has_rest = contraction.outputs < outputs;
        let buffer = match stored {
            Stored::Whole => {
                let blocks = (outputs / block.outputs()).min(MOST_BLOCKS);
                Some(kernel.gathered("sums", DType::I32, blocks * block.outputs() * block.pixels()))
            }
            Stored::Rescaled { .. } => {
                has_rest.then(|| kernel.gathered("rest", DType::I8, block.outputs() * block.pixels()))
            }
        };
        Sums { contraction, block, dtype, steps, window, weights, terms: (terms, own), stored, limits, buffer }
    }

    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let count = self.contraction.steps();
        if let Some(window) = self.window {
            // What of the last step isn't there is multiplied by 0, and must be a number.
            let zero = Expr::Literal(Literal::integer(DType::I8, 0));
            kernel.for_each("pixel", self.block.pixels(), |kernel, pixel| {
                kernel.for_range("k", Index::from(count), Index::from(self.steps * STEP), 1, |kernel, k| {
                    kernel.b.store(window, pixel.times((self.steps * STEP) as i64).plus(&k), zero.clone());
                });
            });
        }
        let (pixels, step) = (self.contraction.pixels(), self.block.pixels());
        let full = pixels / step * step;
        kernel.for_range("pixel", Index::default(), Index::from(full), step as i64, |kernel, first| {
            self.pixels(kernel, &first, step);
        });
        if full < pixels {
            self.pixels(kernel, &Index::from(full), pixels - full);
        }
    }

    /// Some pixels from one on, by their number among all.
    fn pixels(&self, kernel: &mut KernelWriter<'_>, first: &Index, count: usize) {
        let places: Vec<Vec<Index>> = (0..count)
            .map(|i| {
                let place = self.contraction.place(&first.offset(i as i64));
                place.into_iter().map(|index| kernel.b.define_index("place", index)).collect()
            })
            .collect();
        for (i, place) in places.iter().enumerate() {
            self.contraction.bring(kernel, &first.offset(i as i64));
            self.copy(kernel, place, i);
        }
        let blocks = self.contraction.outputs / self.block.outputs();
        if self.stored == Stored::Whole {
            return self.sums(kernel, &places, blocks);
        }
        let result = kernel.results[0].clone();
        if blocks > 0 {
            let to = (0..self.block.pixels()).filter_map(|i| places.get(i).or(places.last()));
            let to = to.map(|place| {
                let indices: Vec<Index> = place.iter().cloned().chain([Index::default()]).collect();
                (result.pointer, result.address(&indices))
            });
            self.call(kernel, &Index::default(), blocks, to.collect());
        }
        let rest = self.contraction.outputs % self.block.outputs();
        if let Some(buffer) = self.buffer.filter(|_| rest > 0) {
            let width = self.block.outputs();
            let to = (0..self.block.pixels()).map(|i| (buffer, Index::from(i * width)));
            self.call(kernel, &Index::from(blocks), 1, to.collect());
            for (i, place) in places.iter().enumerate() {
                kernel.for_each("output", rest, |kernel, output| {
                    let index = output.offset((i * width) as i64);
                    let value = Expr::Load { pointer: buffer, index, ty: ValueType::scalar(DType::I8) };
                    let output = output.offset((blocks * width) as i64);
                    let indices: Vec<Index> = place.iter().cloned().chain([output]).collect();
                    kernel.store(&result, value, &indices, 1);
                });
            }
        }
    }

    /// Copies what the `i`-th pixel of a block meets.
    fn copy(&self, kernel: &mut KernelWriter<'_>, place: &[Index], i: usize) {
        let (Some(window), contraction) = (self.window, self.contraction) else { return };
        let mut start = Index::from(contraction.x_offset);
        for (index, axis) in place.iter().zip(&contraction.outer) {
            start = start.plus(&index.times(axis.x));
        }
        let x = kernel.b.pointer("xp", contraction.x.pointer, start);
        let (run, starts) = runs(contraction);
        // Runs along the innermost of the other axes are the rows of a window.
        let above = contraction.reduction.len().checked_sub(2).map(|axis| contraction.reduction[axis]);
        let (rows, pitch) = above.map_or((1, run as i64), |axis| (axis.extent, axis.x));
        for (number, (element, _)) in starts.iter().enumerate().step_by(rows) {
            let to = i * self.steps * STEP + number * run;
            let pointers = vec![(x, Index::from(*element)), (window, Index::from(to))];
            call(kernel, Helium::Window { dtype: self.dtype }, pointers, vec![run as i64, rows as i64, pitch]);
        }
    }

    /// Computes the sums of some blocks from one on.
    fn call(&self, kernel: &mut KernelWriter<'_>, first: &Index, blocks: usize, to: Vec<(Var, Index)>) {
        let output = first.times(self.block.outputs() as i64);
        let x = match self.window {
            Some(window) => (window, Index::default()),
            None => (self.contraction.x.pointer, Index::from(self.contraction.x_offset)),
        };
        let weights = (self.weights, output.times((self.steps * STEP) as i64));
        let terms = (self.terms.0, output.times(self.terms.1 as i64));
        let pointers = [x, weights, terms].into_iter().chain(to).collect();
        let mut numbers = vec![self.steps as i64, blocks as i64];
        if let Stored::Rescaled { limited } = self.stored {
            numbers.push(self.limits.0.into());
            numbers.extend(limited.then_some(i64::from(self.limits.1)));
        }
        call(kernel, Helium::Sums { block: self.block, stored: self.stored }, pointers, numbers);
    }

    /// Computes all sums of some pixels, of whole blocks and of the outputs behind them, and hands them to the epilogue.
    fn sums(&self, kernel: &mut KernelWriter<'_>, places: &[Vec<Index>], blocks: usize) {
        let Some(buffer) = self.buffer else { return };
        let part = (1..=MOST_BLOCKS).rev().find(|&part| blocks.is_multiple_of(part)).unwrap_or(1);
        kernel.for_each("part", blocks / part, |kernel, number| {
            let first = number.times(part as i64);
            self.call(kernel, &first, part, vec![(buffer, Index::default())]);
            kernel.for_each("block", part, |kernel, block| {
                self.finish(kernel, buffer, places, (&first.plus(&block), &block), self.block.outputs());
            });
        });
        let rest = self.contraction.outputs % self.block.outputs();
        if rest > 0 {
            let first = Index::from(blocks);
            self.call(kernel, &first, 1, vec![(buffer, Index::default())]);
            self.finish(kernel, buffer, places, (&first, &Index::default()), rest);
        }
    }

    /// Hands the sums of some outputs of a block, by its number among all and among those in the buffer, to the epilogue.
    fn finish(
        &self,
        kernel: &mut KernelWriter<'_>,
        buffer: Var,
        places: &[Vec<Index>],
        (block, own): (&Index, &Index),
        outputs: usize,
    ) {
        let (width, pixels) = (self.block.outputs(), self.block.pixels());
        let lanes = if outputs.is_multiple_of(QUAD) && finishes_quads(kernel) { QUAD } else { 1 };
        for (i, place) in places.iter().enumerate() {
            kernel.for_range("output", Index::default(), Index::from(outputs), lanes as i64, |kernel, output| {
                let index = own.times((width * pixels) as i64).offset((i * width) as i64).plus(&output);
                let sum = Expr::Load { pointer: buffer, index, ty: ValueType::vector(DType::I32, lanes) };
                let mut indices = place.clone();
                indices.push(block.times(width as i64).plus(&output));
                kernel.finish(sum, &indices, lanes);
            });
        }
    }
}

/// Weights as vectors: block by block, step by step, output by output.
fn packed_bytes(contraction: &Contraction, constant: &Attribute, block: Block) -> Option<Attribute> {
    let (run, starts) = runs(contraction);
    let stride = contraction.reduction.last().map_or(0, |axis| axis.weights);
    let (count, width) = (contraction.steps(), block.outputs());
    let (steps, bytes) = (count.div_ceil(STEP), constant.bytes());
    let mut packed: Vec<u8> = Vec::with_capacity(contraction.outputs.next_multiple_of(width) * steps * STEP);
    for first in (0..contraction.outputs).step_by(width) {
        for step in 0..steps {
            for output in first..first + width {
                for k in step * STEP..(step + 1) * STEP {
                    if k >= count || output >= contraction.outputs {
                        packed.push(0);
                        continue;
                    }
                    let moved = (k % run) as i64 * stride + output as i64 * contraction.output_stride;
                    let element = contraction.weights_offset + starts.get(k / run)?.1 + moved;
                    packed.push(*bytes.get(usize::try_from(element).ok()?)?);
                }
            }
        }
    }
    Attribute::new(TensorType::new(DType::I8, [packed.len()]), packed).ok()
}

/// The terms of the outputs' sums, filled up to whole blocks: first ones alone, or those by which sums are rescaled with them.
fn terms(
    kernel: &mut KernelWriter<'_>,
    (contraction, block): (&Contraction, Block),
    bias: Option<(usize, Vec<i64>)>,
    factors: Option<Factors>,
) -> Var {
    let outputs = contraction.outputs;
    let padded = outputs.next_multiple_of(block.outputs());
    let moved = (kernel.b.element_dtype(contraction.x.pointer) == DType::U8).then(|| contraction.clone());
    let operand = bias.as_ref().map(|bias| bias.0).or(factors.as_ref().and_then(|factors| factors.operand));
    let operand = operand.or(moved.as_ref().and_then(|moved| moved.weights.operand));
    let first: Vec<i64> = bias.map_or_else(|| vec![0; outputs], |bias| bias.1);
    let scales = factors.map(|factors| factors.list(outputs));
    let length = if scales.is_some() { 3 * padded } else { padded };
    let list = move || {
        let mut first = first.clone();
        if let Some(moved) = &moved {
            // What x has less than it should.
            first.iter_mut().zip(moved.weight_sums()?).for_each(|(first, sum)| *first += LESS * sum);
            first.iter_mut().for_each(|first| *first = i64::from(*first as i32));
        }
        first.resize(padded, 0);
        let Some(mut scales) = scales.clone() else { return Some(numbers(first)) };
        scales.resize(padded, (0, 32));
        let of_block = |number: usize| {
            let own = number * block.outputs()..(number + 1) * block.outputs();
            let scales = scales[own.clone()].chunks(QUAD).flat_map(|scales| {
                let multipliers = scales.iter().map(|scale| scale.0);
                multipliers.chain(scales.iter().map(|scale| 31 - scale.1))
            });
            first[own].iter().copied().chain(scales).collect::<Vec<i64>>()
        };
        Some(numbers((0..padded / block.outputs()).flat_map(of_block).collect()))
    };
    match operand {
        Some(operand) => kernel.pack(operand, "terms", TensorType::new(DType::I32, [length]), list),
        None => {
            let list = list().unwrap_or_else(|| numbers(vec![0; length]));
            kernel.table("terms", list)
        }
    }
}
