//! Register tiles of small code: loops instead of steps that are written out, and one size of tile that leaves no rest, so that
//! there is one copy of it: where none divides a row, the last tile is moved back over pixels that have been computed already.

use super::schedule::{Preferences, Settings};
use super::tile::{Block, Lanes, Machine, spans, vectors};
use super::{Argument, KernelWriter};

/// Most pixels of a tile, most vectors, and most steps of a turn.
const MOST_PIXELS: usize = 8;
const MOST_VECTORS: usize = 16;
const STEPS: [usize; 4] = [1, 2, 3, 4];
/// Instructions per product, in tenths, that small tiles are looked for within.
const PACES: [usize; 6] = [15, 18, 20, 22, 25, 30];
/// Instructions of a turn beside loads and products, and of an epilogue.
const TURN: usize = 3;
const EPILOGUE: usize = 6;
/// Where rolled schedules stand in lists: behind all others.
pub const LAST: usize = 1000;

/// A tile and a turn of its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    pixels: usize,
    vectors: usize,
    steps: usize,
    /// Pixels that are computed for each that there is, in tenths: more where the last tile lies over the one before.
    computed: usize,
    /// Copies of the code: two where vectors are left.
    copies: usize,
}

impl Size {
    fn products(self) -> usize {
        self.pixels * self.vectors
    }

    /// Instructions of a step.
    fn step(self) -> usize {
        self.products() + self.pixels + self.vectors
    }

    /// Instructions per product, in tenths.
    fn pace(self) -> usize {
        self.computed * (self.steps * self.step() + TURN) / (self.steps * self.products())
    }

    fn code(self) -> usize {
        self.copies * (self.steps * self.step() + EPILOGUE * self.products())
    }

    fn fits(self, machine: Machine) -> bool {
        let beside = if machine.in_order && machine.lanes > 1 { 1 } else { self.vectors + 1 };
        self.products() == 1 || self.products() + beside < machine.registers
    }
}

/// What rolled tiles lie over.
pub struct Extents {
    /// Pixels in a row.
    pub columns: usize,
    /// Outputs.
    pub outputs: usize,
    /// Steps of the innermost reduction axis.
    pub run: usize,
    /// Whether the last tile of a row may lie over the one before.
    pub overlap: bool,
}

impl Extents {
    fn sizes(&self, machine: Machine) -> Vec<Size> {
        let Extents { columns, outputs, run, overlap } = *self;
        let all = vectors(outputs, machine).len();
        let pixels = (1..=MOST_PIXELS.min(columns)).filter(|pixels| overlap || columns.is_multiple_of(*pixels));
        let mut sizes: Vec<Size> = Vec::new();
        for pixels in pixels {
            let computed = 10 * columns.next_multiple_of(pixels) / columns;
            for vectors in 1..=MOST_VECTORS.min(all) {
                let copies = if all.is_multiple_of(vectors) { 1 } else { 2 };
                let steps = STEPS.into_iter().filter(|steps| run.is_multiple_of(*steps));
                let size = |steps| Size { pixels, vectors, steps, computed, copies };
                sizes.extend(steps.map(size).filter(|size| size.fits(machine)));
            }
        }
        sizes
    }
}

/// Whether a pixel can be computed twice: not where its result may overwrite what it is computed from.
pub fn may_overlap(kernel: &KernelWriter<'_>) -> bool {
    let alike = |operand: &Argument| operand.constant.is_none() && operand.view == kernel.results[0].view;
    !kernel.epilogue.iter().flat_map(|epilogue| &epilogue.operands).any(alike)
}

/// The smallest tiles for several paces.
pub fn schedules(extents: &Extents, weights: &Argument, machine: Machine) -> Preferences {
    let sizes = extents.sizes(machine);
    let mut chosen: Vec<Size> = Vec::new();
    for pace in PACES {
        let within = sizes.iter().filter(|size| size.pace() <= pace);
        let best = within.min_by_key(|size| (size.code(), size.pace()));
        chosen.extend(best.filter(|best| !chosen.contains(best)));
    }
    if chosen.is_empty() {
        chosen.extend(sizes.iter().min_by_key(|size| (size.pace(), size.code())));
    }
    let weights = if weights.constant.is_some() && weights.operand.is_some() { "packed" } else { "direct" };
    let setting = |size: &Size| {
        Settings::default()
            .with("pixels", size.pixels)
            .with("vectors", size.vectors)
            .with("steps", size.steps)
            .with("weights", weights)
    };
    chosen.iter().enumerate().map(|(number, size)| (LAST + number, setting(size))).collect()
}

/// Tiles of so many pixels of a row and vectors of outputs. The last one of a row may end behind it: it is to be moved back.
pub fn plan(
    rows: usize,
    columns: usize,
    outputs: usize,
    machine: Machine,
    (pixels, size): (usize, usize),
) -> Vec<Block> {
    let mut list: Vec<Block> = Vec::new();
    let mut first = 0;
    for part in vectors(outputs, machine).chunks(size.max(1)) {
        match list.last_mut() {
            Some(last) if last.vectors == part => last.count += 1,
            _ => {
                let (rows, columns) = (spans(rows, 1), spans(columns.next_multiple_of(pixels), pixels));
                list.push(Block { first, count: 1, vectors: part.to_vec(), rows, columns });
            }
        }
        first += part.iter().map(|vector: &Lanes| vector.valid).sum::<usize>();
    }
    list
}
