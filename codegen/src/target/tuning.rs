//! [`Tuning`]: what experience says of schedules on a machine, as data. Prices are read off the loop program; this is what lists of
//! schedules are made and put in order by, before anything is written.

use serde::Serialize;

/// Time of one step of a register tile along the reduction, in units of one vector multiply-add; measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepCost {
    /// What a product takes in tiles of one vector and of two, which load more for each; wider ones take 1.
    pub narrow: [f64; 2],
    /// Most pixels that weights are read from memory for by each of them, under some tunings of gcc.
    pub unshared_pixels: usize,
    /// A load.
    pub load: f64,
    /// A vector of weights, which comes from the second level of cache at half the speed of the first.
    pub streamed: f64,
    /// What each vector takes beside that.
    pub vector: f64,
    /// What each tile takes beside that.
    pub tile: f64,
}

/// What Winograd's convolutions take beside the products, in units of one vector multiply-add; measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WinogradCost {
    /// A product of a register tile, relative to those of plain convolutions: weights are read for fewer pixels.
    pub product: f64,
    /// What each sum of products takes beside these: it is begun, and stored.
    pub sum: f64,
    /// To load, transform and store a vector of what is transformed.
    pub moved: f64,
    /// Bytes of packed weights a cycle that come from memory.
    pub memory_fill: f64,
    /// The share of the lesser of two times, of computing and of fetching weights, that isn't hidden behind the other.
    pub unhidden: f64,
    /// Time, as a share of that of the plain convolution, below which they are thought to be faster.
    pub least_gain: f64,
    /// Bytes of transformed tiles that nothing is gained by going below.
    pub least_bytes: usize,
}

/// What experience says of schedules on a machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tuning {
    /// Fewest multiply-adds that must be under way to keep the units busy: sums take turns where a tile has fewer.
    pub in_flight: usize,
    /// Products of the innermost reduction axis of a tile up to which all of them are written out.
    pub longest_run: usize,
    /// Products of one turn of the innermost loop: more where instructions run one after the other, so that the loop's own count.
    pub turn: usize,
    /// Registers of a machine without vectors that a tile leaves for an element of x and what is loaded next.
    pub spare_registers: usize,
    /// Most pixels of a tile of one vector: more don't pay.
    pub narrow_pixels: usize,
    /// What a step of a tile takes.
    pub step: StepCost,
    /// Bytes between elements that compete for the same place in the first level of cache, and how many of them have one beside
    /// the weights.
    pub cache_period: usize,
    /// See [`Tuning::cache_period`].
    pub cache_ways: usize,
    /// Pixels that must share weights which lie far apart so that these are copied.
    pub copied_pixels: usize,
    /// Bytes of input up to which a depthwise convolution walks it again for each vector of channels.
    pub rewalked_bytes: usize,
    /// Bytes of a result up to which the plain walk over transposed operands is as fast as blocks, with vectors and without.
    /// Vectors gain as soon as the nearest cache is left; C compilers make as much of the plain walk of single elements until the
    /// next one is left, too.
    pub near_bytes: [usize; 2],
    /// Bytes of a kernel's packed weights from which on those of the next block are fetched while one is multiplied.
    pub fetched_ahead: usize,
    /// What Winograd's convolutions take.
    pub winograd: WinogradCost,
}

/// A core with several units and caches.
const WIDE: Tuning = Tuning {
    in_flight: 8,
    longest_run: 160,
    turn: 16,
    spare_registers: 2,
    narrow_pixels: 8,
    step: StepCost { narrow: [1.25, 1.05], unshared_pixels: 4, load: 0.95, streamed: 2.0, vector: 0.15, tile: 0.5 },
    cache_period: 2048,
    cache_ways: 6,
    copied_pixels: 8,
    rewalked_bytes: 256 << 10,
    near_bytes: [1 << 15, 1 << 20],
    fetched_ahead: usize::MAX,
    winograd: WinogradCost {
        product: 1.4,
        sum: 22.0,
        moved: 8.5,
        memory_fill: 4.5,
        unhidden: 0.5,
        least_gain: 0.9,
        least_bytes: 1 << 16,
    },
};

impl Tuning {
    /// A desktop or server processor of these days.
    pub const fn host() -> Tuning {
        Tuning { fetched_ahead: 1 << 15, ..WIDE }
    }

    /// The same where vectors have so many bytes. Processors with vectors of 64 bytes were found to hide what weights take on their way
    /// from memory.
    pub fn for_vectors(self, bytes: usize) -> Tuning {
        match bytes {
            64.. => Tuning { winograd: WinogradCost { memory_fill: 6.0, unhidden: 0.0, ..self.winograd }, ..self },
            _ => self,
        }
    }

    /// A small processor with several units and caches.
    pub const fn little() -> Tuning {
        WIDE
    }

    /// A core that runs one instruction after the other, without caches that blocks would gain from.
    pub fn in_order() -> Tuning {
        Tuning { in_flight: 4, turn: 64, near_bytes: [usize::MAX; 2], ..WIDE }
    }

    /// The same where a product is a call: writing it out again saves nothing.
    pub fn soft_float() -> Tuning {
        Tuning { in_flight: 1, longest_run: 0, turn: 1, ..Tuning::in_order() }
    }
}
