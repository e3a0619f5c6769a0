//! Weights of register tiles: packed when the code is generated, copied into packed form at run time, or read where they are.

use super::KernelWriter;
use super::ahead::Ahead;
use super::contraction::{Axis, Contraction};
use super::order;
use super::products::machine;
use super::schedule::{Preferences, Settings};
use super::tile::{self, Block, Lanes, Machine, Span};
use crate::loops::{Expr, Index, Nest, ValueType, Var};
use crate::target::VectorSpelling;
use mlc_ir::types::row_major_strides;
use mlc_ir::{Attribute, DType, TensorType};
use std::borrow::Cow;

/// Where a tile's weights are: strides and a pointer at the first output of its block.
#[derive(Clone)]
pub struct Weights {
    /// Points at the first output of the block.
    pub pointer: Var,
    dtype: DType,
    /// Elements between the steps of each reduction axis.
    pub reduction: Vec<i64>,
    output_stride: i64,
    packed: bool,
    /// Whether two steps of an output are neighbours.
    pairs: bool,
    /// What tiles fetch of those of the next block.
    pub ahead: Option<Ahead>,
}

impl Weights {
    /// Those behind another pointer, with a stride for each of other reduction axes.
    pub fn part(&self, pointer: Var, reduction: Vec<i64>) -> Weights {
        Weights { pointer, reduction, ..self.clone() }
    }

    /// Whether steps are taken two at once, the first of which is even.
    pub fn pairs(&self) -> bool {
        self.pairs
    }

    /// The weight of the output `offset` behind the block's first, and that of the next step, where steps are taken two at once.
    pub fn load_pair(&self, pointer: Var, index: &Index, offset: usize) -> [Expr; 2] {
        let ty = ValueType::scalar(self.dtype);
        [0, 1].map(|step| Expr::Load { pointer, index: index.offset(2 * offset as i64 + step), ty })
    }

    /// The weights of a vector of outputs, `offset` outputs behind the block's first.
    pub fn load(&self, pointer: Var, index: &Index, offset: usize, vector: Lanes) -> Expr {
        let ty = ValueType::vector(self.dtype, vector.width);
        let index = index.offset(offset as i64 * self.output_stride);
        if vector.width == 1 || (self.output_stride == 1 && (self.packed || vector.valid == vector.width)) {
            return Expr::Load { pointer, index, ty };
        }
        Expr::Gather { pointer, index, stride: self.output_stride, valid: vector.valid, ty }
    }
}

/// How the weights are kept.
pub enum Store {
    /// Packed when the code was generated, or, with `copied`, at run time for each position of the weight axes; those of the next block
    /// may be fetched `ahead`.
    Packed { pointer: Var, copied: bool, ahead: bool },
    /// Read where they are.
    Direct,
}

impl Store {
    /// Tiles of some sizes with the places where their weights can be, which `pixels` pixels of each position of the weight axes
    /// share: constants are packed, weights that are far apart may be copied.
    pub fn schedules(contraction: &Contraction, sizes: &[usize], pixels: usize, machine: Machine) -> Preferences {
        let copied_pixels = machine.tuning.copied_pixels;
        let weights = &contraction.weights;
        let is_scattered = contraction.output_stride != 1 && contraction.outputs > 1;
        let places: &[&'static str] = match &weights.constant {
            _ if contraction.steps() == 0 => &["direct"],
            Some(_) if weights.operand.is_some() => &["packed"],
            _ if is_scattered && pixels >= copied_pixels => &["copied", "direct"],
            _ if is_scattered && pixels > 1 => &["direct", "copied"],
            _ => &["direct"],
        };
        let mut list = Preferences::new();
        for (number, &size) in sizes.iter().enumerate() {
            // Other places only for the size that is thought best.
            for (turn, &place) in places[..if number == 0 { places.len() } else { 1 }].iter().enumerate() {
                let settings = Settings::default().with("vectors", size).with("weights", place);
                list.push((number + turn * sizes.len(), settings));
            }
        }
        list
    }

    /// Asks for what a schedule wants.
    pub fn new(
        contraction: &Contraction,
        kernel: &mut KernelWriter<'_>,
        blocks: &[Block],
        weight_axes: &[Axis],
        settings: &Settings,
    ) -> Store {
        let weights = &contraction.weights;
        let width: usize = blocks.iter().map(|block| block.count * block.width()).sum();
        let elements = contraction.steps() * width;
        match (&weights.constant, weights.operand) {
            (Some(constant), Some(operand)) if settings.is("weights", "packed") => {
                let positions: usize = weight_axes.iter().map(|axis| axis.extent).product();
                let ty = TensorType::new(constant.ty().dtype, [positions * elements]);
                let is_much = ty.bytes() >= kernel.target.machine.tuning.fetched_ahead;
                // Where blocks are walked for each tile, the cache has all of them after the first.
                let ahead = is_much && kernel.target.vectors == VectorSpelling::Gnu && !order::is_by_pixels(settings);
                let (contraction, constant) = (contraction.clone(), constant.clone());
                let (blocks, weight_axes) = (blocks.to_vec(), weight_axes.to_vec());
                let steps = if contraction.pairs(kernel.target) { 2 } else { 1 };
                let values = move || contraction.packed(&constant, &blocks, &weight_axes, steps);
                Store::Packed { pointer: kernel.pack(operand, "packed", ty, values), copied: false, ahead }
            }
            _ if settings.is("weights", "copied") => {
                let pointer = kernel.scratch("packed", weights.view.dtype, elements);
                Store::Packed { pointer, copied: true, ahead: false }
            }
            _ => Store::Direct,
        }
    }

    /// Calls `body` for each block of outputs, with the first of them and their weights, at a position of the weight axes.
    pub fn for_blocks<'k>(
        &self,
        contraction: &Contraction,
        kernel: &mut KernelWriter<'k>,
        blocks: &[Block],
        fixed: &[Index],
        body: &mut dyn FnMut(&mut KernelWriter<'k>, &Block, &Index, &Weights),
    ) {
        let mut section = 0;
        for block in blocks {
            kernel.for_each("block", block.count, |kernel, number| {
                let weights = self.weights(contraction, kernel, fixed, (block, section), &number);
                let first = number.times(block.outputs() as i64).offset(block.first as i64);
                body(kernel, block, &first, &weights);
            });
            section += block.count * block.width();
        }
    }

    /// The weights of block `number` of a section, which starts `section` packed outputs behind the first.
    fn weights(
        &self,
        contraction: &Contraction,
        kernel: &mut KernelWriter<'_>,
        fixed: &[Index],
        (block, section): (&Block, usize),
        number: &Index,
    ) -> Weights {
        let dtype = contraction.weights.view.dtype;
        let reduction = &contraction.reduction;
        let steps = contraction.steps();
        let width = block.width();
        let strided = contraction.direct(fixed, number.times(block.outputs() as i64).offset(block.first as i64));
        match *self {
            Store::Direct => {
                let pointer = kernel.b.pointer("wp", contraction.weights.pointer, strided);
                let reduction = reduction.iter().map(|axis| axis.weights).collect();
                let output_stride = contraction.output_stride;
                Weights { pointer, dtype, reduction, output_stride, packed: false, pairs: false, ahead: None }
            }
            Store::Packed { pointer, copied, ahead } => {
                let mut place = number.times((steps * width) as i64).offset((section * steps) as i64);
                if !copied {
                    let total = contraction.packed_width(kernel) * steps;
                    let extents: Vec<usize> = contraction.outer[..fixed.len()].iter().map(|axis| axis.extent).collect();
                    for (index, stride) in fixed.iter().zip(row_major_strides(&extents)) {
                        place = place.plus(&index.times((stride * total) as i64));
                    }
                }
                let pointer = kernel.b.pointer("wp", pointer, place);
                let extents: Vec<usize> = reduction.iter().map(|axis| axis.extent).collect();
                let strides = row_major_strides(&extents).iter().map(|&stride| (stride * width) as i64).collect();
                let pairs = !copied && contraction.pairs(kernel.target);
                let ahead = ahead.then(|| contraction.ahead(pointer, block)).flatten();
                let packed =
                    Weights { pointer, dtype, reduction: strides, output_stride: 1, packed: true, pairs, ahead };
                if copied {
                    contraction.copy(kernel, block, &packed, strided);
                }
                packed
            }
        }
    }
}

impl Contraction {
    /// Outputs with the padding of their vectors.
    fn packed_width(&self, kernel: &KernelWriter<'_>) -> usize {
        tile::vectors(self.outputs, machine(self.x.view.dtype, kernel)).iter().map(|vector| vector.width).sum()
    }

    /// What a block's tiles fetch of the next one.
    fn ahead(&self, weights: Var, block: &Block) -> Option<Ahead> {
        let (size, steps) = (self.weights.view.dtype.size(), self.steps());
        let pixels = self.outer_axes().1.iter().map(|axis| axis.extent).product();
        let of = |spans: &[Span]| spans.first().map_or(1, |span| span.step);
        let ahead = Ahead { weights, size, elements: steps * block.width(), steps, pixels };
        ahead.for_tiles(of(&block.rows) * of(&block.columns))
    }

    /// Element of the unpacked weights at the first step of the reduction.
    fn direct(&self, fixed: &[Index], output: Index) -> Index {
        if self.steps() == 0 {
            return Index::default();
        }
        let mut place = output.times(self.output_stride).offset(self.weights_offset);
        for (index, axis) in fixed.iter().zip(&self.outer) {
            place = place.plus(&index.times(axis.weights));
        }
        place
    }

    /// Packs constant weights: [weight axes][block][reduction][outputs of the block], with `together` steps of an output side by side.
    fn packed(
        &self,
        constant: &Attribute,
        blocks: &[Block],
        weight_axes: &[Axis],
        together: usize,
    ) -> Option<Attribute> {
        let size = constant.ty().dtype.size();
        let steps = offsets(&self.reduction);
        let width: usize = blocks.iter().map(|block| block.count * block.width()).sum();
        let positions = offsets(weight_axes);
        let mut packed = vec![0; positions.len() * steps.len() * width * size];
        // All blocks take a few steps before the next ones are read, so that neighbours are read while they are in the cache.
        for (turn, near) in steps.chunks(STEPS_AT_ONCE).enumerate() {
            let first = turn * STEPS_AT_ONCE;
            let part = self.part(constant, &positions, near, first)?;
            let of_positions = packed.chunks_exact_mut((steps.len() * width * size).max(1));
            for (position, packed) in part.positions.iter().zip(of_positions) {
                let mut before = 0;
                for block in blocks {
                    let width = block.width();
                    for number in 0..block.count {
                        let output = (block.first + number * block.outputs()) as i64;
                        let from = position + output * self.output_stride;
                        let place = before * steps.len() + first * width;
                        let groups = packed[place * size..].chunks_mut(together * width * size);
                        for (steps, group) in part.steps.chunks(together).zip(groups) {
                            self.pack_group(&part.bytes, block, from, steps, group, size)?;
                        }
                        before += width;
                    }
                }
            }
        }
        let elements = packed.len() / size;
        Attribute::new(TensorType::new(constant.ty().dtype, [elements]), packed).ok()
    }

    /// Where the weights of some steps are, the first of which is step `first`: in the constant, or transformed, so that no more of these than
    /// the cache holds are there at a time.
    fn part<'c>(
        &self,
        constant: &'c Attribute,
        positions: &[i64],
        steps: &'c [i64],
        first: usize,
    ) -> Option<WeightsPart<'c>> {
        let Some((windows, group)) = &self.transform else {
            let positions = positions.iter().map(|position| self.weights_offset + position).collect();
            return Some(WeightsPart { bytes: Cow::Borrowed(constant.bytes()), positions, steps: steps.into() });
        };
        let transformed = windows.transformed_weights(group, constant, first..first + steps.len())?;
        let places = |count: usize, stride: usize| (0..count).map(|number| (number * stride) as i64).collect();
        Some(WeightsPart {
            bytes: transformed.into(),
            positions: places(positions.len(), steps.len() * self.outputs),
            steps: Cow::Owned(places(steps.len(), self.outputs)),
        })
    }

    /// Packs some steps of one block, side by side: [outputs of the block][steps], whose first output is element `from` at step 0.
    fn pack_group(
        &self,
        bytes: &[u8],
        block: &Block,
        from: i64,
        steps: &[i64],
        packed: &mut [u8],
        size: usize,
    ) -> Option<()> {
        let (mut output, mut lane) = (0, 0);
        for vector in &block.vectors {
            if let ([step], 1) = (steps, self.output_stride) {
                let start = usize::try_from(from + step + output).ok()? * size;
                let length = vector.valid * size;
                packed[lane * size..][..length].copy_from_slice(bytes.get(start..start + length)?);
            } else {
                for valid in 0..vector.valid {
                    for (turn, step) in steps.iter().enumerate() {
                        let element = from + step + (output + valid as i64) * self.output_stride;
                        let start = usize::try_from(element).ok()? * size;
                        let to = ((lane + valid) * steps.len() + turn) * size;
                        packed[to..to + size].copy_from_slice(bytes.get(start..start + size)?);
                    }
                }
            }
            output += vector.valid as i64;
            lane += vector.width;
        }
        Some(())
    }

    /// Packs the weights of one block at run time.
    fn copy(&self, kernel: &mut KernelWriter<'_>, block: &Block, packed: &Weights, start: Index) {
        let source = kernel.b.pointer("source", self.weights.pointer, start);
        let shape: Vec<usize> = self.reduction.iter().map(|axis| axis.extent).collect();
        let dtype = packed.dtype;
        kernel.for_shape(&["tap", "k"], &shape, &mut |kernel, indices| {
            let (mut from, mut to) = (Index::default(), Index::default());
            for (number, index) in indices.iter().enumerate() {
                from = from.plus(&index.times(self.reduction[number].weights));
                to = to.plus(&index.times(packed.reduction[number]));
            }
            for vector in &block.vectors {
                let ty = ValueType::vector(dtype, vector.width);
                let (stride, valid) = (self.output_stride, vector.valid);
                let value = if vector.width == 1 {
                    Expr::Load { pointer: source, index: from.clone(), ty }
                } else {
                    Expr::Gather { pointer: source, index: from.clone(), stride, valid, ty }
                };
                kernel.b.store(packed.pointer, to.clone(), value);
                from = from.offset(vector.valid as i64 * stride);
                to = to.offset(vector.width as i64);
            }
        });
    }
}

/// The weights of some steps before they are packed.
struct WeightsPart<'c> {
    bytes: Cow<'c, [u8]>,
    /// Elements before those of each position of the weight axes.
    positions: Vec<i64>,
    /// Elements before those of each step.
    steps: Cow<'c, [i64]>,
}

/// Steps that all blocks are packed of before the next ones: an even number.
const STEPS_AT_ONCE: usize = 16;

/// Elements of the weights at all positions of axes, in row-major order.
fn offsets(axes: &[Axis]) -> Vec<i64> {
    let mut list = vec![0];
    for axis in axes {
        list = list.iter().flat_map(|base| (0..axis.extent).map(move |at| base + at as i64 * axis.weights)).collect();
    }
    list
}
