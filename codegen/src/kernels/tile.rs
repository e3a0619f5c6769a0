//! Tile selection: how the pixels and output channels of a dense kernel are cut into register tiles.
//!
//! [`sizes`] and [`plan`] are pure functions of extents and registers. A tile is `rows × columns` neighbouring pixels times some vectors of
//! output channels; each of its accumulators lives in a register. Nothing is left to run time: what a tile size doesn't
//! divide is covered by smaller tiles.

use crate::target::Tuning;

/// What tile selection must know of the machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Elements of a vector register; 1 without vectors.
    pub lanes: usize,
    /// Elements of the narrowest vector worth using.
    pub narrowest: usize,
    /// Registers.
    pub registers: usize,
    /// Most of them that hold sums.
    pub sums: usize,
    /// Most pixels whose elements the first level of cache keeps at once; they may lie so that they compete for a place.
    pub neighbours: usize,
    /// Whether tiles take two steps of the reduction at once, for which each pixel keeps two elements in registers.
    pub pairs: bool,
    /// Whether vectors of a tile have as many outputs each: where lanes are computed one after the other, all have the same number of turns.
    pub whole: bool,
    /// Whether the elements of two pixels are joined to one number, so that a register holds the sums of both.
    pub twins: bool,
    /// Whether every instruction counts.
    pub in_order: bool,
    /// What tiles have been found to cost.
    pub tuning: Tuning,
}

/// One vector of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lanes {
    /// Elements.
    pub width: usize,
    /// How many of them are outputs; the rest is padding.
    pub valid: usize,
}

/// A part of an axis that is walked in equal steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First index.
    pub start: usize,
    /// One past the last index; `step` divides the distance.
    pub end: usize,
    /// Indices that one tile covers.
    pub step: usize,
}

/// Equal blocks of outputs, and the tiles of pixels that they are computed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// First output.
    pub first: usize,
    /// How many blocks follow each other.
    pub count: usize,
    /// The vectors of one block.
    pub vectors: Vec<Lanes>,
    /// Tiles along the axis of rows.
    pub rows: Vec<Span>,
    /// Tiles along the axis of columns.
    pub columns: Vec<Span>,
}

impl Block {
    /// Elements of one block with its padding.
    pub fn width(&self) -> usize {
        self.vectors.iter().map(|vector| vector.width).sum()
    }

    /// Outputs of one block.
    pub fn outputs(&self) -> usize {
        self.vectors.iter().map(|vector| vector.valid).sum()
    }
}

/// Instructions that it takes to load an element which is half of a word: a load and two conversions for both.
const PAIRED_LOAD: f64 = 1.5;

/// Instructions that it takes to load an element of x, for all lanes of a vector where there are any: one, or two.
const SPREAD_LOAD: f64 = 1.25;

impl Machine {
    /// Most pixels of a tile of so many vectors. Beside its sums, registers hold the weights and an input element; where there
    /// are many, C compilers also keep there what the epilogue adds to each vector. Many pixels of one vector don't pay.
    fn pixels(self, vectors: usize) -> usize {
        if self.twins {
            return 2 * (self.registers / 2 / vectors).max(1);
        }
        if self.in_order {
            // Elements of x that are multiplied with vectors are in general registers, and weights come one by one.
            let (kept, each) = match self.lanes {
                1 if self.pairs => (self.tuning.spare_registers, vectors + 2),
                1 => (vectors + self.tuning.spare_registers, vectors),
                _ => (1, vectors),
            };
            return (self.registers.saturating_sub(kept) / each).max(1);
        }
        if self.lanes == 1 || self.whole {
            return (self.registers / 2 / vectors).max(1);
        }
        // One more is for what C compilers move.
        let kept = if self.registers > 16 { 2 * vectors + 1 } else { vectors + 2 };
        let free = self.registers.saturating_sub(kept).min(self.sums);
        let most = if vectors == 1 { self.tuning.narrow_pixels } else { usize::MAX };
        (free / vectors).min(most).min(self.neighbours).max(1)
    }

    /// Time of one step of a tile along the reduction, in units of one vector multiply-add.
    fn step_cost(self, pixels: usize, vectors: usize) -> f64 {
        let products = (pixels * vectors) as f64;
        if self.twins {
            // A product and a sum are two instructions, and so is what joins the elements of two pixels.
            let pairs = pixels.div_ceil(2);
            // C compilers load the weights of two steps at once where none is used twice.
            let weights = if pairs == 1 { 2 * vectors } else { vectors };
            let spilled = (pairs * vectors + weights).saturating_sub(self.registers);
            return (pairs * vectors + pixels / 2 + spilled) as f64 + 0.5 * (pixels + vectors) as f64;
        }
        if self.in_order {
            let load = if self.pairs { PAIRED_LOAD } else { 1.0 };
            return products + load * (pixels + vectors) as f64;
        }
        if self.whole {
            return products + vectors as f64 + SPREAD_LOAD * pixels as f64;
        }
        let step = &self.tuning.step;
        let vectors_of = |cost: f64| cost * vectors as f64;
        let narrow = step.narrow.get(vectors.saturating_sub(1)).copied().unwrap_or(1.0);
        let shared = if pixels <= step.unshared_pixels { products } else { vectors as f64 };
        let loads = step.load * (shared + pixels as f64);
        let least = self.tuning.in_flight as f64;
        (narrow * products).max(loads).max(vectors_of(step.streamed)).max(least) + vectors_of(step.vector) + step.tile
    }
}

/// Most outputs behind full vectors that are computed one by one, where a vector of them is computed lane by lane on some machines: the
/// padding of their weights would cost memory on all.
const MOST_SINGLE: usize = 2;

/// Cuts outputs into vectors: full ones, and the narrowest that holds the rest.
pub fn vectors(outputs: usize, machine: Machine) -> Vec<Lanes> {
    let full = Lanes { width: machine.lanes, valid: machine.lanes };
    let mut list = vec![full; outputs / machine.lanes];
    let rest = outputs % machine.lanes;
    if machine.whole && rest <= MOST_SINGLE {
        list.extend(vec![Lanes { width: 1, valid: 1 }; rest]);
    } else if rest > 0 {
        let mut width = machine.narrowest.min(machine.lanes);
        while width < rest {
            width *= 2;
        }
        list.push(Lanes { width, valid: rest });
    }
    list
}

/// Most sizes of tiles that are worth a look, and how much more than the best one they may be thought to cost.
const MOST_SIZES: usize = 4;
const MOST_COST: f64 = 1.3;

/// How many vectors tiles of `rows × columns` pixels times `outputs` can have, those first that are thought to cost least.
pub fn sizes(rows: usize, columns: usize, outputs: usize, machine: Machine) -> Vec<usize> {
    let all = vectors(outputs, machine);
    let most = (machine.registers / 2).clamp(1, all.len().max(1));
    let costs: Vec<(usize, f64)> = (1..=most).map(|size| (size, time(rows, columns, outputs, machine, size))).collect();
    let best = costs.iter().copied().reduce(|best, next| if next.1 < best.1 * 0.999 { next } else { best });
    let Some((best, least)) = best else { return Vec::new() };
    let mut others: Vec<(usize, f64)> =
        costs.into_iter().filter(|(size, cost)| *size != best && *cost <= MOST_COST * least).collect();
    others.sort_by(|left, right| left.1.total_cmp(&right.1));
    std::iter::once(best).chain(others.into_iter().map(|(size, _)| size)).take(MOST_SIZES).collect()
}

/// Cuts `rows × columns` pixels times `outputs` into tiles of `size` vectors.
pub fn plan(rows: usize, columns: usize, outputs: usize, machine: Machine, size: usize) -> Vec<Block> {
    blocks(&vectors(outputs, machine), size.max(1), rows, columns, machine)
}

/// Time of one step of the reduction of all tiles of such a plan, in units of one vector multiply-add.
pub fn time(rows: usize, columns: usize, outputs: usize, machine: Machine, size: usize) -> f64 {
    let blocks = plan(rows, columns, outputs, machine, size);
    blocks.iter().map(|block| block.count as f64 * cost(block, machine)).sum()
}

fn cost(block: &Block, machine: Machine) -> f64 {
    let mut sum = 0.0;
    for rows in &block.rows {
        for columns in &block.columns {
            let tiles = (rows.end - rows.start) / rows.step * ((columns.end - columns.start) / columns.step);
            sum += tiles as f64 * machine.step_cost(rows.step * columns.step, block.vectors.len());
        }
    }
    sum
}

/// Blocks of `size` vectors each; what remains, and a narrower last vector, make blocks of their own.
fn blocks(all: &[Lanes], size: usize, rows: usize, columns: usize, machine: Machine) -> Vec<Block> {
    let mut list: Vec<Block> = Vec::new();
    let mut first = 0;
    let is_alike = |left: &Lanes, right: &Lanes| !machine.whole || left == right;
    for part in all.chunk_by(is_alike).flat_map(|run| run.chunks(size)) {
        let outputs: usize = part.iter().map(|vector| vector.valid).sum();
        match list.last_mut() {
            Some(last) if last.vectors == part => last.count += 1,
            _ => {
                let (rows, columns) = pixels(rows, columns, part.len(), machine);
                list.push(Block { first, count: 1, vectors: part.to_vec(), rows, columns });
            }
        }
        first += outputs;
    }
    list
}

/// The cheapest cut of the pixels for tiles of so many vectors.
fn pixels(rows: usize, columns: usize, vectors: usize, machine: Machine) -> (Vec<Span>, Vec<Span>) {
    let most = machine.pixels(vectors);
    let mut best: Option<(f64, Vec<Span>, Vec<Span>)> = None;
    for height in 1..=most.min(rows.max(1)) {
        let across = cut(columns, most / height, |width| machine.step_cost(height * width, vectors));
        let lanes = vec![Lanes { width: 1, valid: 1 }; vectors];
        let block = Block { first: 0, count: 1, vectors: lanes, rows: spans(rows, height), columns: across };
        let sum = cost(&block, machine);
        if best.as_ref().is_none_or(|(least, ..)| sum < least * 0.98) {
            best = Some((sum, block.rows, block.columns));
        }
    }
    best.map(|(_, rows, columns)| (rows, columns)).unwrap_or_default()
}

/// The cheapest cut of an axis into steps of at most `most`, larger ones first.
fn cut(extent: usize, most: usize, cost: impl Fn(usize) -> f64) -> Vec<Span> {
    let costs: Vec<f64> = (0..=most.min(extent)).map(cost).collect();
    let mut best: Vec<(f64, usize)> = vec![(0.0, 0)];
    for end in 1..=extent {
        let choices = (1..=most.min(end)).map(|step| (best[end - step].0 + costs[step], step));
        best.push(choices.reduce(|best, next| if next.0 < best.0 - 1e-6 { next } else { best }).unwrap_or((0.0, 1)));
    }
    let mut steps = Vec::new();
    let mut end = extent;
    while end > 0 {
        steps.push(best[end].1);
        end -= best[end].1;
    }
    steps.sort_unstable_by(|left, right| right.cmp(left));
    let mut list: Vec<Span> = Vec::new();
    for step in steps {
        let start = list.last().map_or(0, |last| last.end);
        match list.last_mut() {
            Some(last) if last.step == step => last.end += step,
            _ => list.push(Span { start, end: start + step, step }),
        }
    }
    list
}

/// An axis in steps of `step`, then one smaller step for the rest.
pub fn spans(extent: usize, step: usize) -> Vec<Span> {
    let full = extent / step * step;
    let mut list = Vec::new();
    if full > 0 {
        list.push(Span { start: 0, end: full, step });
    }
    if full < extent {
        list.push(Span { start: full, end: extent, step: extent - full });
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Tuning = Tuning::host();
    const WIDE: Machine = Machine {
        lanes: 16,
        narrowest: 4,
        registers: 32,
        sums: 24,
        neighbours: 64,
        pairs: false,
        whole: false,
        twins: false,
        in_order: false,
        tuning: HOST,
    };
    const MIDDLE: Machine = Machine {
        lanes: 8,
        narrowest: 4,
        registers: 16,
        sums: 12,
        neighbours: 64,
        pairs: false,
        whole: false,
        twins: false,
        in_order: false,
        tuning: HOST,
    };
    const SMALL: Machine = Machine {
        lanes: 1,
        narrowest: 1,
        registers: 32,
        sums: 24,
        neighbours: 64,
        pairs: false,
        whole: false,
        twins: false,
        in_order: true,
        tuning: HOST,
    };
    const SHORT: Machine = Machine {
        lanes: 4,
        narrowest: 4,
        registers: 8,
        sums: 6,
        neighbours: 64,
        pairs: false,
        whole: false,
        twins: false,
        in_order: true,
        tuning: HOST,
    };
    const EITHER: Machine = Machine {
        lanes: 4,
        narrowest: 4,
        registers: 16,
        sums: 12,
        neighbours: 64,
        pairs: false,
        whole: true,
        twins: false,
        in_order: false,
        tuning: HOST,
    };
    const SCALAR: Machine = Machine {
        lanes: 1,
        narrowest: 1,
        registers: 16,
        sums: 12,
        neighbours: 64,
        pairs: false,
        whole: false,
        twins: false,
        in_order: false,
        tuning: HOST,
    };

    fn best(rows: usize, columns: usize, outputs: usize, machine: Machine) -> Vec<Block> {
        plan(rows, columns, outputs, machine, sizes(rows, columns, outputs, machine)[0])
    }

    #[test]
    fn sizes_are_few_and_different() {
        for machine in [WIDE, MIDDLE, EITHER, SCALAR, SMALL, SHORT] {
            for outputs in [1, 3, 24, 64, 1000] {
                let list = sizes(14, 14, outputs, machine);
                assert!((1..=MOST_SIZES).contains(&list.len()), "{outputs}: {list:?}");
                assert!((1..list.len()).all(|place| !list[..place].contains(&list[place])), "{list:?}");
            }
        }
    }

    #[test]
    fn every_pixel_and_output_is_covered_once() {
        for machine in [WIDE, MIDDLE, EITHER, SCALAR, SMALL, SHORT] {
            for (rows, columns, outputs) in
                [(1, 1, 1), (1, 1, 1000), (3, 3, 10), (7, 7, 512), (56, 56, 64), (1, 125, 64), (25, 5, 24), (2, 17, 3)]
            {
                let mut next = 0;
                for block in best(rows, columns, outputs, machine) {
                    assert_eq!(block.first, next);
                    next += block.count * block.outputs();
                    assert!(block.vectors.iter().all(|vector| vector.valid <= vector.width));
                    for (spans, extent) in [(&block.rows, rows), (&block.columns, columns)] {
                        let mut at = 0;
                        for span in spans {
                            assert_eq!(span.start, at);
                            assert_eq!((span.end - span.start) % span.step, 0);
                            at = span.end;
                        }
                        assert_eq!(at, extent);
                    }
                }
                assert_eq!(next, outputs);
            }
        }
    }

    #[test]
    fn accumulators_fit_in_registers() {
        for machine in [WIDE, MIDDLE] {
            for outputs in 1..200 {
                for block in best(14, 14, outputs, machine) {
                    let pixels = block.rows[0].step * block.columns[0].step;
                    assert!(pixels * block.vectors.len() <= machine.registers * 3 / 4, "{outputs}: {block:?}");
                }
            }
        }
    }

    #[test]
    fn tiles_leave_registers_for_weights_an_element_and_what_is_moved() {
        for machine in [WIDE, MIDDLE] {
            for outputs in 1..200 {
                for size in sizes(14, 14, outputs, machine) {
                    for block in plan(14, 14, outputs, machine, size) {
                        let (pixels, vectors) = (block.rows[0].step * block.columns[0].step, block.vectors.len());
                        // The weights of one pixel aren't kept.
                        let taken = (pixels + 1) * vectors + 2;
                        assert!(pixels == 1 || taken <= machine.registers, "{outputs}: {block:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn small_machines_load_seldom_and_spill_nothing() {
        for (machine, most) in [(SMALL, 1.5), (SHORT, 2.0)] {
            let block = &best(1, 125, 64, machine)[0];
            let (pixels, vectors) = (block.columns[0].step, block.vectors.len());
            assert!(pixels * vectors < machine.registers, "{block:?}");
            let instructions = pixels * vectors + pixels + vectors;
            assert!(instructions as f64 / ((pixels * vectors) as f64) < most, "{block:?}");
        }
    }

    #[test]
    fn the_rest_of_the_outputs_gets_the_narrowest_vector_that_holds_it() {
        let widths =
            |outputs| vectors(outputs, WIDE).iter().map(|vector| (vector.width, vector.valid)).collect::<Vec<_>>();
        assert_eq!(widths(24), [(16, 16), (8, 8)]);
        assert_eq!(widths(10), [(16, 10)]);
        assert_eq!(widths(3), [(4, 3)]);
        assert_eq!(widths(32), [(16, 16), (16, 16)]);
    }

    #[test]
    fn lanes_that_are_computed_one_by_one_are_as_many_in_all_of_a_tile() {
        for outputs in 1..70 {
            for block in best(14, 14, outputs, EITHER) {
                assert!(block.vectors.iter().all(|vector| *vector == block.vectors[0]), "{outputs}: {block:?}");
                assert!(block.width() * 3 <= block.outputs() * 4, "{outputs}: {block:?}");
                // One lane's sums, weights and element of x are in registers where there are only 16.
                let pixels = block.rows[0].step * block.columns[0].step;
                assert!((pixels + 1) * block.vectors.len() < EITHER.registers, "{outputs}: {block:?}");
            }
        }
    }

    #[test]
    fn one_pixel_uses_many_vectors_at_once() {
        let blocks = best(1, 1, 256, WIDE);
        assert_eq!((blocks.len(), blocks[0].vectors.len()), (1, 16));
    }
}
