//! What Winograd's convolutions ([`Winograd`]) take, as far as is known without writing them: which tiles are taken, and how many at once.

use super::KernelWriter;
use super::tile::{self, Machine};
use super::winograd::Winograd;
use super::winograd_numbers::Numbers;
use super::winograd_windows::Group;
use crate::target::ByteDots;

/// How much longer than the least time what takes about that does.
const ABOUT: f64 = 1.01;

impl Winograd {
    /// Time of the register tiles of all results, in units of one vector multiply-add.
    pub(super) fn direct_time(&self, kernel: &KernelWriter<'_>) -> f64 {
        let [rows, columns] = self.extents;
        let size = tile::sizes(rows, columns, self.outputs, self.machine).first().copied().unwrap_or(1);
        let taps = self.windows.taps();
        let step = tile::time(rows, columns, self.outputs, self.machine, size);
        let steps = (taps * self.channels).div_ceil(self.numbers.together());
        let weights = 4 * steps * self.outputs;
        // Four products of bytes may take one instruction less than those of two pairs.
        let quicker = match (self.numbers, kernel.target.byte_dots) {
            (Numbers::Words, ByteDots::SwappedQuads) => 0.75,
            _ => 1.0,
        };
        let computing = (self.items * steps) as f64 * step * quicker;
        beside_fetching(kernel, computing, weights, 1)
    }

    /// Time of so many tiles at once, in units of one vector multiply-add.
    fn time(&self, tiles: usize, kernel: &KernelWriter<'_>) -> f64 {
        let costs = kernel.target.machine.tuning.winograd;
        let turns = self.total().div_ceil(tiles);
        let vectors = |elements: usize, machine: Machine| tile::vectors(elements, machine).len() as f64;
        let step = tile::time(1, tiles, self.outputs, self.machine, self.vectors(tiles));
        let sums = tiles as f64 * vectors(self.outputs, self.machine);
        let of_product = |group: &Group| costs.product * self.steps(group) as f64 * step + costs.sum * sums;
        let moved_of_product = |group: &Group| {
            group.phases as f64 * vectors(self.channels, self.elements) + vectors(self.outputs, self.machine)
        };
        let products = turns as f64 * self.sum(of_product);
        let moved = self.total() as f64 * self.sum(moved_of_product);
        let weights = 4 * self.outputs * self.sum(|group| self.steps(group) as f64) as usize;
        beside_fetching(kernel, products, weights, turns) + costs.moved * moved + self.spilling(tiles, kernel)
    }

    /// Products that a lane adds to each sum of a group, one after the other.
    fn steps(&self, group: &Group) -> usize {
        self.depth(group).div_ceil(self.numbers.together())
    }

    /// The sum over all products of what is said of one in a group.
    fn sum(&self, of_product: impl Fn(&Group) -> f64) -> f64 {
        self.groups.iter().map(|group| group.products.len() as f64 * of_product(group)).sum()
    }

    /// Time that it takes to bring what is transformed back from behind the second level of cache, if that is too small for it.
    fn spilling(&self, tiles: usize, kernel: &KernelWriter<'_>) -> f64 {
        let machine = &kernel.target.machine;
        match machine.caches.get(1) {
            Some(cache) if self.transformed_bytes(tiles) > cache.bytes / 4 * 3 => {
                let bytes = 2 * self.total().div_ceil(tiles) * self.transformed_bytes(tiles);
                bytes as f64 / cache.fill / machine.instructions.multiply_add
            }
            _ => 0.0,
        }
    }

    /// How many tiles are best taken at once, and the time that all take so: the fewest of those that take about the least time, as memory
    /// is for what they have transformed. The last turn has no fewer than it must.
    pub(super) fn best_tiles(&self, kernel: &KernelWriter<'_>) -> (usize, f64) {
        let total = self.total();
        let mut timed: Vec<(usize, f64)> = Vec::new();
        for turns in 1..=total {
            let tiles = total.div_ceil(turns);
            if timed.last().is_some_and(|last| last.0 == tiles) {
                continue;
            }
            timed.push((tiles, self.time(tiles, kernel)));
            if self.transformed_bytes(tiles) < kernel.target.machine.tuning.winograd.least_bytes {
                break;
            }
        }
        let least = timed.iter().fold(f64::INFINITY, |least, own| least.min(own.1));
        timed.into_iter().rfind(|own| own.1 <= ABOUT * least).unwrap_or((total, least))
    }
}

/// Time of computing, in units of one vector multiply-add, while weights of so many bytes come so many times: first from behind the level
/// of cache that holds them, since other kernels have run since, then from it.
fn beside_fetching(kernel: &KernelWriter<'_>, computing: f64, bytes: usize, turns: usize) -> f64 {
    let machine = &kernel.target.machine;
    let costs = machine.tuning.winograd;
    let level = machine.caches.iter().position(|cache| bytes <= cache.bytes).unwrap_or(machine.caches.len());
    let fill = |level: usize| machine.caches.get(level).map_or(f64::INFINITY, |cache| cache.fill);
    let first_fill = if level + 1 < machine.caches.len() { fill(level) } else { costs.memory_fill };
    let again_fill = level.checked_sub(1).map_or(f64::INFINITY, fill);
    let time = |bytes: usize, fill: f64| bytes as f64 / fill / machine.instructions.multiply_add;
    let fetching = time(bytes, first_fill) + time(bytes * (turns - 1), again_fill);
    computing.max(fetching) + costs.unhidden * computing.min(fetching)
}
