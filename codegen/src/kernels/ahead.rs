//! Weights that are fetched ahead. A tile of few pixels is done with a block's weights before memory, which looks no further than what is
//! read next, has brought those of the block behind it: each tile of a block asks for a share of these while it multiplies.

use super::KernelWriter;
use crate::loops::{Index, Routine, Stmt, Var};
use crate::target::LINE_BYTES;

/// Most tiles that share what is fetched: computing more of them takes far longer than fetching the next block at once.
const MOST_TILES: usize = 64;

/// A block of weights that are multiplied with some pixels, while the next one is fetched.
#[derive(Debug, Clone, Copy)]
pub struct Ahead {
    /// The block's weights.
    pub weights: Var,
    /// Bytes of an element.
    pub size: usize,
    /// Elements of the block.
    pub elements: usize,
    /// Steps of the reduction.
    pub steps: usize,
    /// Pixels of all its tiles.
    pub pixels: usize,
}

/// What a tile fetches.
#[derive(Debug, Clone)]
pub struct Share {
    ahead: Ahead,
    /// The first element in the block.
    place: Index,
    /// Elements of each step.
    each: usize,
}

impl Ahead {
    /// The same if the next block is worth fetching by tiles of so many pixels. A single tile has memory see what comes.
    pub fn for_tiles(self, of: usize) -> Option<Ahead> {
        (2..=MOST_TILES).contains(&self.pixels.div_ceil(of.max(1))).then_some(self)
    }

    /// Elements that a tile of `own` pixels fetches in each step, and the last one that it may begin at to end with the block.
    fn part(&self, own: usize) -> (usize, usize) {
        let each = (self.elements * own).div_ceil(self.pixels.max(1)).div_ceil(self.steps.max(1));
        (each, self.elements.saturating_sub(each * self.steps))
    }

    /// Elements from the share of a pixel to that of the next one.
    fn of_pixel(&self) -> usize {
        self.elements.div_ceil(self.pixels.max(1))
    }

    /// The share of the tile of `own` pixels whose first one is number `first`.
    pub fn share(self, kernel: &mut KernelWriter<'_>, first: &Index, own: usize) -> Share {
        let (each, last) = self.part(own);
        let place = first.times(self.of_pixel() as i64).minimum(&Index::from(last));
        let place = if place.as_constant().is_some() { place } else { kernel.b.define_index("next", place) };
        Share { ahead: self, place, each }
    }
}

impl Share {
    /// Asks for what falls on `count` steps of the reduction from number `step` on.
    pub fn fetch(&self, kernel: &mut KernelWriter<'_>, step: &Index, count: usize) {
        let Ahead { weights, size, elements, .. } = self.ahead;
        let place = self.place.plus(&step.times(self.each as i64));
        let line = (LINE_BYTES / size.max(1)).max(1);
        for first in (0..count * self.each).step_by(line) {
            let pointers = vec![(weights, place.offset(first as i64))];
            kernel.b.push(Stmt::Routine {
                routine: Routine::FetchAhead,
                pointers,
                numbers: vec![(elements * size) as i64],
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(steps: usize, width: usize, pixels: usize) -> Ahead {
        Ahead { weights: 0, size: 4, elements: steps * width, steps, pixels }
    }

    #[test]
    fn tiles_fetch_every_line_of_a_block_and_nothing_else() {
        let line = 16;
        for (steps, width, of, pixels) in [
            (256, 32, 2, 8),
            (512, 32, 2, 4),
            (256, 24, 4, 169),
            (64, 16, 6, 28),
            (2304, 24, 4, 196),
            (9, 8, 3, 7),
            (1, 16, 1, 5),
        ] {
            let ahead = block(steps, width, pixels).for_tiles(of).unwrap();
            let mut fetched = vec![false; ahead.elements];
            for first in (0..pixels).step_by(of) {
                let (each, last) = ahead.part(of.min(pixels - first));
                let place = (first * ahead.of_pixel()).min(last);
                for step in (0..steps).step_by(2) {
                    let count = each * 2.min(steps - step);
                    (0..count).step_by(line).for_each(|at| fetched[place + step * each + at] = true);
                }
            }
            for at in 0..ahead.elements {
                let before = at.saturating_sub(line - 1);
                assert!(fetched[before..=at].contains(&true), "{at} of {steps} x {width}, {of} of {pixels} pixels");
            }
        }
    }

    #[test]
    fn a_single_tile_and_very_many_fetch_nothing() {
        assert!(block(128, 32, 4).for_tiles(4).is_none());
        assert!(block(128, 32, 1).for_tiles(1).is_none());
        assert!(block(128, 32, 4 * MOST_TILES + 1).for_tiles(4).is_none());
        assert!(block(128, 32, 4 * MOST_TILES).for_tiles(4).is_some());
    }
}
