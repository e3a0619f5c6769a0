//! The innermost loops of a register tile: products are added to sums, each of which is a variable.

use super::KernelWriter;
use super::ahead::Share;
use super::contraction::Axis;
use super::half_vectors::{LONGEST_RUN, is_long};
use super::products::machine;
use super::tile::Lanes;
use super::twins;
use super::weights::Weights;
use crate::loops::{Expr, Index, Nest, ValueType, Var};
use crate::target::{Target, Tuning, VectorSpelling};
use mlc_ir::DType;

/// Some pixels of some vectors of outputs, and their sums.
#[derive(Clone)]
pub struct Tile<'t> {
    dtype: DType,
    /// Element of x of each pixel.
    pixels: Vec<i64>,
    vectors: &'t [Lanes],
    /// Sets of sums; steps of the reduction take turns with them. In a set, pixel by pixel, vector by vector.
    sums: Vec<Vec<Var>>,
    /// What the sums of runs are added to where sums may only have so many terms; else none.
    totals: Vec<Var>,
    /// Steps of the reduction that a turn of a rolled loop has.
    rolled: Option<usize>,
    /// What it fetches of the next block's weights.
    ahead: Option<Share>,
    /// Whether pixels are two in each sum.
    twins: bool,
}

/// The reduction of a tile while its loops are written.
struct Reduction<'t> {
    tile: &'t Tile<'t>,
    axes: &'t [Axis],
    weights: &'t Weights,
    /// Steps of the innermost axis that are written out.
    unrolled: usize,
}

impl<'t> Tile<'t> {
    /// Defines the sums, of so many terms, of a tile whose innermost reduction axis has `run` steps, `rolled` of which are a turn of a
    /// loop where code is to be small; with `twins`, the elements of two pixels are one.
    pub fn new(
        kernel: &mut KernelWriter<'_>,
        dtype: DType,
        pixels: Vec<i64>,
        vectors: &'t [Lanes],
        (run, terms): (usize, usize),
        (rolled, twins): (Option<usize>, bool),
    ) -> Tile<'t> {
        let size = pixels.len() * vectors.len();
        let sets = kernel.target.machine.tuning.in_flight.div_ceil(size).min(run.max(1)).min(4);
        let takes_turns = dtype.is_float() && !kernel.target.is_strict() && rolled.is_none();
        let sets = if takes_turns { sets } else { 1 };
        let mut tile =
            Tile { dtype, pixels, vectors, sums: Vec::new(), totals: Vec::new(), rolled, ahead: None, twins };
        for set in 0..sets {
            let suffix = if set == 0 { String::new() } else { format!("_{}", ["b", "c", "d"][(set - 1) % 3]) };
            let sums = tile.zeros(kernel, "sum", &suffix);
            tile.sums.push(sums);
        }
        if is_long(dtype, terms) {
            tile.totals = tile.zeros(kernel, "total", "");
        }
        tile
    }

    /// The same, fetching a share of the next block's weights.
    pub fn fetching(self, ahead: Option<Share>) -> Tile<'t> {
        Tile { ahead, ..self }
    }

    /// Pixels that share a sum.
    fn shared(&self) -> usize {
        if self.twins { 2 } else { 1 }
    }

    /// A variable for each vector of each pixel, or of two of them.
    fn zeros(&self, kernel: &mut KernelWriter<'_>, name: &str, suffix: &str) -> Vec<Var> {
        let mut list = Vec::new();
        let dtype = if self.twins { DType::I64 } else { self.dtype };
        for pixel in (0..self.pixels.len()).step_by(self.shared()) {
            for (number, vector) in self.vectors.iter().enumerate() {
                let zero = Expr::zero(dtype, vector.width);
                list.push(kernel.b.mutable(&format!("{name}_{pixel}_{number}{suffix}"), zero));
            }
        }
        list
    }

    /// The tile of some of the pixels, with their sums, at other elements of x.
    pub fn part(&self, pixels: &[(usize, i64)]) -> Tile<'t> {
        let vectors = self.vectors.len();
        let of_pixels = |sums: &Vec<Var>| -> Vec<Var> {
            let of = |pixel: usize| sums.get(pixel * vectors..).unwrap_or_default().iter().copied().take(vectors);
            pixels.iter().flat_map(|&(pixel, _)| of(pixel)).collect()
        };
        Tile {
            pixels: pixels.iter().map(|pixel| pixel.1).collect(),
            sums: self.sums.iter().map(of_pixels).collect(),
            totals: of_pixels(&self.totals),
            ..self.clone()
        }
    }

    /// Writes the loops over reduction axes.
    pub fn accumulate(&self, kernel: &mut KernelWriter<'_>, x: Var, axes: &[Axis], weights: &Weights) {
        let size = self.pixels.len() * self.vectors.len();
        let run = axes.last().map_or(1, |axis| axis.extent).max(1);
        let run = if self.totals.is_empty() { run } else { run.min(LONGEST_RUN) };
        let Tuning { longest_run, turn, .. } = kernel.target.machine.tuning;
        let turn = turn.div_ceil(size).min(self.reached(kernel.target)).min(self.held(kernel));
        let most = turn.next_multiple_of(self.sums.len()).min(run);
        let unrolled = match (self.rolled, kernel.target.in_order) {
            (Some(steps), _) => steps.min(run),
            _ if run * size <= longest_run => run,
            (None, true) => self.even_turn(run, most),
            (None, false) => most,
        };
        // Two steps are taken at once.
        let unrolled = if weights.pairs() && unrolled % 2 == 1 { 2 } else { unrolled };
        Reduction { tile: self, axes, weights, unrolled }.level(kernel, 0, &Index::default(), x, weights.pointer);
    }

    /// Writes the loop over one reduction axis, of which `run` steps are walked, a multiple of those of a rolled turn.
    pub fn accumulate_counted(&self, kernel: &mut KernelWriter<'_>, x: Var, axis: Axis, weights: &Weights, run: Index) {
        let unrolled = match self.rolled.unwrap_or(1) {
            steps if weights.pairs() && steps % 2 == 1 => 2,
            steps => steps,
        };
        Reduction { tile: self, axes: &[axis], weights, unrolled }.turns(
            kernel,
            &Index::default(),
            run,
            x,
            weights.pointer,
        );
    }

    /// How many steps gcc keeps all sums in registers for: it copies and spills some of 3 × 3 between two steps, where 16 registers hold all
    /// and what they are made of; none of 4 × 3 or 5 × 2.
    fn held(&self, kernel: &KernelWriter<'_>) -> usize {
        let sums = self.pixels.len() * self.vectors.len() * self.sums.len();
        let is_spilled = self.pixels.len() == 3 && self.vectors.len() == 3;
        let is_tight = 2 * sums > machine(self.dtype, kernel).registers;
        if is_spilled && is_tight && kernel.target.vectors == VectorSpelling::Gnu { 1 } else { usize::MAX }
    }

    /// Steps whose packed weights instructions reach from one pointer.
    fn reached(&self, target: &Target) -> usize {
        let step: usize = self.vectors.iter().map(|vector| vector.width * self.dtype.size()).sum();
        target.machine.reach.map_or(usize::MAX, |reach| (reach as usize / step.max(1)).max(1))
    }

    /// Steps of a turn, `most` at most, that leave no rest where possible: the rest is code of its own.
    fn even_turn(&self, run: usize, most: usize) -> usize {
        let sets = self.sums.len();
        let even = (most.div_ceil(2)..=most).rev().find(|&steps| run.is_multiple_of(steps) && steps % sets == 0);
        even.unwrap_or(most)
    }

    /// Adds the sets of sums up.
    pub fn total(&self, kernel: &mut KernelWriter<'_>) -> Vec<Var> {
        if !self.totals.is_empty() {
            return self.totals.clone();
        }
        let Some((first, others)) = self.sums.split_first() else { return Vec::new() };
        if self.twins {
            return self.parted(kernel, first);
        }
        for other in others {
            for (&sum, &part) in first.iter().zip(other) {
                kernel.b.assign(sum, Expr::Var(sum).plus(Expr::Var(part)));
            }
        }
        first.clone()
    }

    /// The sums of each pixel, of those of two.
    fn parted(&self, kernel: &mut KernelWriter<'_>, sums: &[Var]) -> Vec<Var> {
        let mut list = Vec::new();
        for (pixels, sums) in self.pixels.chunks(self.shared()).zip(sums.chunks(self.vectors.len().max(1))) {
            let parts: Vec<Vec<Var>> = sums.iter().map(|&sum| twins::parted(kernel, sum, pixels.len() == 1)).collect();
            (0..pixels.len()).for_each(|pixel| list.extend(parts.iter().map(|own| own[pixel])));
        }
        list
    }

    /// Adds the sums of a run to the totals.
    fn end_run(&self, kernel: &mut KernelWriter<'_>) {
        for sums in &self.sums {
            for (place, (&sum, &total)) in sums.iter().zip(&self.totals).enumerate() {
                let width = self.vectors[place % self.vectors.len()].width;
                kernel.b.assign(total, Expr::Var(total).plus(Expr::Var(sum)));
                kernel.b.assign(sum, Expr::zero(self.dtype, width));
            }
        }
    }
}

impl Reduction<'_> {
    /// Loops over the reduction axes from number `axis` on, behind `done` steps.
    fn level(&self, kernel: &mut KernelWriter<'_>, axis: usize, done: &Index, x: Var, weights: Var) {
        if axis + 1 < self.axes.len() {
            return kernel.for_each("tap", self.axes[axis].extent, |kernel, tap| {
                let x = kernel.b.pointer("xt", x, tap.times(self.axes[axis].x));
                let weights = kernel.b.pointer("wt", weights, tap.times(self.weights.reduction[axis]));
                let steps: usize = self.axes[axis + 1..].iter().map(|axis| axis.extent).product();
                self.level(kernel, axis + 1, &done.plus(&tap.times(steps as i64)), x, weights);
            });
        }
        let last = self.axes.last().copied().unwrap_or(Axis { extent: 1, x: 0, weights: 0 });
        if self.tile.totals.is_empty() {
            return self.run(kernel, done, last.extent, x, weights);
        }
        let weight_stride = self.weights.reduction.last().copied().unwrap_or(0);
        let part = |kernel: &mut KernelWriter<'_>, first: Index, extent: usize| {
            let x = kernel.b.pointer("xk", x, first.times(last.x));
            let weights = kernel.b.pointer("wk", weights, first.times(weight_stride));
            self.run(kernel, &done.plus(&first), extent, x, weights);
            self.tile.end_run(kernel);
        };
        let runs = last.extent / LONGEST_RUN;
        kernel.for_each("run", runs, |kernel, run| part(kernel, run.times(LONGEST_RUN as i64), LONGEST_RUN));
        if !last.extent.is_multiple_of(LONGEST_RUN) {
            part(kernel, Index::from(runs * LONGEST_RUN), last.extent % LONGEST_RUN);
        }
    }

    /// Some steps of the innermost reduction axis, behind `done` steps of all axes.
    fn run(&self, kernel: &mut KernelWriter<'_>, done: &Index, extent: usize, x: Var, weights: Var) {
        let full = extent / self.unrolled * self.unrolled;
        self.turns(kernel, done, Index::from(full), x, weights);
        self.steps(kernel, &Index::from(full), extent - full, x, weights);
    }

    /// The loop over the innermost reduction axis, up to a whole number of turns.
    fn turns(&self, kernel: &mut KernelWriter<'_>, done: &Index, end: Index, x: Var, weights: Var) {
        kernel.for_range("k", Index::default(), end, self.unrolled as i64, |kernel, k| {
            if let Some(share) = &self.tile.ahead {
                share.fetch(kernel, &done.plus(&k), self.unrolled);
            }
            self.steps(kernel, &k, self.unrolled, x, weights);
        });
    }

    /// Some steps of the innermost reduction axis from `k` on, written out.
    fn steps(&self, kernel: &mut KernelWriter<'_>, k: &Index, count: usize, x: Var, weights: Var) {
        if self.weights.pairs() {
            return (0..count).step_by(2).for_each(|step| self.pair(kernel, &k.offset(step as i64), step, x, weights));
        }
        for step in 0..count {
            self.step(kernel, &k.offset(step as i64), step, x, weights);
        }
    }

    /// The element of x at a step of a pixel, `moved` elements behind the first one's.
    fn element(&self, x: Var, k: &Index, moved: i64) -> Expr {
        let index = k.times(self.axes.last().map_or(0, |axis| axis.x)).offset(moved);
        Expr::Load { pointer: x, index, ty: ValueType::scalar(self.tile.dtype) }
    }

    /// Two steps, output by output, so that only the elements of x are kept.
    fn pair(&self, kernel: &mut KernelWriter<'_>, k: &Index, turn: usize, x: Var, weights: Var) {
        let Tile { pixels, vectors, sums, .. } = self.tile;
        let mut element = |moved: i64, step: i64| kernel.b.define("v", self.element(x, &k.offset(step), moved));
        let values: Vec<[Expr; 2]> = pixels.iter().map(|&moved| [0, 1].map(|step| element(moved, step))).collect();
        let at = k.times(self.weights.reduction.last().copied().unwrap_or(0));
        for number in 0..vectors.len() {
            let pair = self.weights.load_pair(weights, &at, number).map(|weight| kernel.shared("w", weight));
            for (step, weight) in pair.iter().enumerate() {
                let sums = &sums[(turn + step) % sums.len()];
                for (pixel, values) in values.iter().enumerate() {
                    let sum = sums[pixel * vectors.len() + number];
                    kernel.b.assign(sum, Expr::Var(sum).plus(values[step].clone().times(weight.clone())));
                }
            }
        }
    }

    /// One step of the innermost reduction axis.
    fn step(&self, kernel: &mut KernelWriter<'_>, k: &Index, turn: usize, x: Var, weights: Var) {
        let Tile { pixels, vectors, sums, twins, .. } = self.tile;
        let at = k.times(self.weights.reduction.last().copied().unwrap_or(0));
        let element = |moved: i64| self.element(x, k, moved);
        let mut offset = 0;
        if kernel.target.in_order && vectors.iter().any(|vector| vector.width > 1) {
            // Elements of x are kept apart from vectors, of which there are few: the weights take one at a time.
            let values: Vec<Expr> = pixels.iter().map(|&moved| kernel.b.define("v", element(moved))).collect();
            for (number, vector) in vectors.iter().enumerate() {
                let weight = self.weights.load(weights, &at, offset, *vector);
                let weight = if pixels.len() == 1 { weight } else { kernel.shared("w", weight) };
                offset += vector.width;
                for (pixel, value) in values.iter().enumerate() {
                    let sum = sums[turn % sums.len()][pixel * vectors.len() + number];
                    kernel.b.assign(sum, Expr::Var(sum).plus(value.clone().times(weight.clone())));
                }
            }
            return;
        }
        let shared = self.tile.shared();
        let mut loaded = Vec::new();
        for vector in *vectors {
            let value = self.weights.load(weights, &at, offset, *vector);
            let value = if *twins { twins::widened(value) } else { value };
            loaded.push(if pixels.len() <= shared { value } else { kernel.shared("w", value) });
            offset += vector.width;
        }
        let sums = &sums[turn % sums.len()];
        for (pixels, sums) in pixels.chunks(shared).zip(sums.chunks(vectors.len().max(1))) {
            let second = pixels.get(1).map(|&moved| element(moved));
            let value = if *twins { twins::joined(element(pixels[0]), second) } else { element(pixels[0]) };
            let value = if vectors.len() == 1 { value } else { kernel.b.define("v", value) };
            for (&sum, weight) in sums.iter().zip(&loaded) {
                kernel.b.assign(sum, Expr::Var(sum).plus(value.clone().times(weight.clone())));
            }
        }
    }
}
