//! Sums of products of bytes by a routine that multiplies two pixels at once ([`Routine::PixelPairs`]): what they meet is joined to words in
//! scratch memory, once for all outputs. As the weights are known, so is over how many of them the sums of both stay apart in a word.

use super::KernelWriter;
use super::bounds;
use super::contraction::Contraction;
use super::dots::{Reach, first_terms, runs};
use super::scales::{Scales, Sums, numbers, scales};
use super::schedule::{Preferences, Settings};
use crate::loops::{Expr, Index, Nest, Routine, Stmt, ValueType, Var};
use mlc_ir::{Attribute, DType, Diagnostic};

/// Outputs of a block.
const OUTPUTS: usize = 2;

/// Most that the weights of a chunk add up to: times the largest byte, no more than a number of 16 bits.
const MOST: i64 = 255;

impl Contraction {
    /// The one schedule of this kind, where it is the fastest for the types and the layout.
    pub fn pair_schedules(&self, reach: Reach, kernel: &KernelWriter<'_>) -> Preferences {
        let merged = self.clone().merged(kernel).0;
        let stored = |pointer: Var| kernel.b.element_dtype(pointer);
        let fits = kernel.target.pixel_pairs
            && self.x.view.dtype == DType::I32
            && [self.x.pointer, self.weights.pointer].iter().all(|&pointer| stored(pointer) == DType::I8)
            && self.weights.operand.is_some()
            && self.steps() > 0
            && kernel.results[0].view.elements() > 0
            && merged.outer.iter().all(|axis| axis.weights == 0)
            && merged.reduction.last().is_none_or(|axis| axis.x == 1 || axis.extent == 1)
            && merged.reach() == reach
            && chunks(&merged).is_some();
        if fits { vec![(0, Settings::default())] } else { Preferences::new() }
    }

    /// Writes the kernel.
    ///
    /// # Errors
    /// None: the types are those of [`Contraction::pair_schedules`].
    pub fn write_pairs(self, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        let (merged, result, epilogue) = self.merged(kernel);
        let old =
            (std::mem::replace(&mut kernel.results[0], result), std::mem::replace(&mut kernel.epilogue, epilogue));
        let bounds = kernel.bounds.clone();
        if let Some(pairs) = Pairs::new(&merged, kernel) {
            pairs.write(kernel);
        }
        (kernel.results[0], kernel.epilogue) = old;
        kernel.bounds = bounds;
        Ok(())
    }
}

/// A contraction, and the memory that its routines share.
struct Pairs<'c> {
    contraction: &'c Contraction,
    blocks: usize,
    words: Var,
    weights: Var,
    first: Var,
    scales: Option<Scales>,
    sums: Var,
}

impl<'c> Pairs<'c> {
    fn new(contraction: &'c Contraction, kernel: &mut KernelWriter<'_>) -> Option<Pairs<'c>> {
        let blocks = contraction.outputs.div_ceil(OUTPUTS);
        let chunks = numbers(chunks(contraction)?);
        let operand = contraction.weights.operand.unwrap_or(1);
        let weights = kernel.pack(operand, "packed", chunks.ty().clone(), move || Some(chunks.clone()));
        let products = kernel.bounds.first().copied().unwrap_or(bounds::ANYTHING);
        let (first, values) = first_terms(kernel, contraction.outputs, blocks * OUTPUTS, 1);
        let known = Sums { products, first: values, silent: contraction.silent() };
        let is_dense = kernel.results[0].view.last_stride() == 1;
        let scales = if is_dense { scales(kernel, contraction.outputs, &known) } else { None };
        let words = kernel.gathered("words", DType::I32, contraction.steps().next_multiple_of(2));
        let sums = kernel.gathered("sums", DType::I32, blocks * OUTPUTS * 2);
        Some(Pairs { contraction, blocks, words, weights, first, scales, sums })
    }

    fn write(&self, kernel: &mut KernelWriter<'_>) {
        let steps = self.contraction.steps();
        if !steps.is_multiple_of(2) {
            kernel.b.store(self.words, Index::from(steps), Expr::zero(DType::I32, 1));
        }
        let pixels = self.contraction.pixels();
        let full = pixels / 2 * 2;
        kernel
            .for_range("pixel", Index::default(), Index::from(full), 2, |kernel, first| self.pixels(kernel, &first, 2));
        if full < pixels {
            self.pixels(kernel, &Index::from(full), 1);
        }
    }

    /// Two pixels from one on, or a last one with itself.
    fn pixels(&self, kernel: &mut KernelWriter<'_>, first: &Index, count: usize) {
        let contraction = self.contraction;
        let other = first.offset(count as i64 - 1);
        contraction.bring(kernel, first);
        let [x, y] =
            [first, &other].map(|pixel| kernel.b.pointer("xp", contraction.x.pointer, contraction.start(pixel)));
        let (run, runs) = runs(contraction);
        for (number, &(element, _)) in runs.iter().enumerate() {
            let element = Index::from(element);
            kernel.b.push(Stmt::Routine {
                routine: Routine::JoinPixels,
                pointers: vec![(x, element.clone()), (y, element), (self.words, Index::from(number * run))],
                numbers: vec![run as i64],
            });
        }
        let own = [self.words, self.weights, self.first, self.sums].map(|pointer| (pointer, Index::default()));
        let steps = contraction.steps().div_ceil(2);
        kernel.b.push(Stmt::Routine {
            routine: Routine::PixelPairs,
            pointers: own.to_vec(),
            numbers: vec![self.blocks as i64, steps as i64],
        });
        for i in 0..count {
            let place: Vec<Index> = contraction.place(&first.offset(i as i64));
            let place: Vec<Index> = place.into_iter().map(|index| kernel.b.define_index("place", index)).collect();
            self.store(kernel, &place, i * self.blocks * OUTPUTS);
        }
    }

    /// Stores what the sums from one on make of a pixel.
    fn store(&self, kernel: &mut KernelWriter<'_>, place: &[Index], from: usize) {
        let outputs = self.contraction.outputs;
        let at = |output: &Index| place.iter().cloned().chain([output.clone()]).collect::<Vec<Index>>();
        let Some(scales) = &self.scales else {
            return kernel.for_each("output", outputs, |kernel, output| {
                let index = output.offset(from as i64);
                let sum = Expr::Load { pointer: self.sums, index, ty: ValueType::scalar(DType::I32) };
                kernel.finish(sum, &at(&output), 1);
            });
        };
        let result = kernel.results[0].clone();
        let y = (result.pointer, result.address(&at(&Index::default())));
        kernel.b.push(Stmt::Routine {
            routine: Routine::Rescale { dtype: scales.dtype, limited: scales.limit().is_some() },
            pointers: vec![(self.sums, Index::from(from)), (scales.table, Index::default()), y],
            numbers: std::iter::once(outputs as i64).chain(scales.limit()).collect(),
        });
    }
}

/// Weights as [`Routine::PixelPairs`] reads them; `None` where those of a step alone add up to too much, or aren't known.
fn chunks(contraction: &Contraction) -> Option<Vec<i64>> {
    let bytes = contraction.weights.constant.as_ref().map(Attribute::bytes)?;
    let (run, runs) = runs(contraction);
    let stride = contraction.reduction.last().map_or(0, |axis| axis.weights);
    let weight = |output: usize, step: usize| -> Option<i8> {
        if output >= contraction.outputs || step >= contraction.steps() {
            return Some(0);
        }
        let moved = (step % run) as i64 * stride + output as i64 * contraction.output_stride;
        let element = contraction.weights_offset + runs.get(step / run)?.1 + moved;
        bytes.get(usize::try_from(element).ok()?).map(|&byte| byte as i8)
    };
    let mut words = Vec::new();
    for first in (0..contraction.outputs).step_by(OUTPUTS) {
        let (mut sums, mut chunk) = ([0; OUTPUTS], Vec::new());
        for step in (0..contraction.steps()).step_by(2) {
            let mut word = [0; 2 * OUTPUTS];
            let mut own = [0; OUTPUTS];
            for (place, byte) in word.iter_mut().enumerate() {
                let weight = weight(first + place % OUTPUTS, step + place / OUTPUTS)?;
                own[place % OUTPUTS] += i64::from(weight).abs();
                *byte = weight as u8;
            }
            if own.iter().any(|&own| own > MOST) {
                return None;
            }
            if sums.iter().zip(own).any(|(sum, own)| sum + own > MOST) {
                sums = [0; OUTPUTS];
                finish(&mut words, &mut chunk);
            }
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
            chunk.push(i64::from(i32::from_le_bytes(word)));
        }
        finish(&mut words, &mut chunk);
        words.push(0);
    }
    Some(words)
}

fn finish(words: &mut Vec<i64>, chunk: &mut Vec<i64>) {
    words.push(chunk.len() as i64);
    words.append(chunk);
}
