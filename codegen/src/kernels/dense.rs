//! The register tile: sums of products over strided operands, the core of convolutions and matrix products.
//!
//! Of a [`Contraction`], some pixels times some vectors of outputs are computed at once, each sum in a variable of its own; an
//! element of `x` is multiplied with vectors of weights that were packed when the code was generated. All bounds are
//! constants, and nothing is ever checked at run time.

use super::accumulate::Tile;
use super::ahead::Share;
use super::contraction::{Axis, Contraction, merged_reduction};
use super::order;
use super::products::{finish, require_products};
use super::rolled::{self, Extents};
use super::schedule::{Preferences, Settings};
use super::tile::{self, Block, Machine};
use super::walk::for_span;
use super::weights::{Store, Weights};
use super::{Argument, Epilogue, KernelWriter};
use crate::loops::{Index, Nest};
use crate::lower::view::{View, merge_axes};
use mlc_ir::Diagnostic;

/// What writes a tile of pixels, by its origin and its rows and columns.
type TileWriter<'a, 'k> = &'a mut dyn FnMut(&mut KernelWriter<'k>, &[Index], (usize, usize));

/// The outer axes of a contraction as tiles see them.
struct Cut<'c> {
    machine: Machine,
    /// Those along which the weights move.
    weight_axes: &'c [Axis],
    /// Extents of those of the other axes that tiles don't lie along.
    above: Vec<usize>,
    /// The axes that they lie along.
    rows: usize,
    columns: usize,
    /// Positions of all axes along which the weights stay.
    pixels: usize,
}

impl Contraction {
    /// The tiles that a kernel can be cut into, and where its weights can be.
    pub fn schedules(&self, kernel: &KernelWriter<'_>) -> Preferences {
        if kernel.results[0].view.elements() == 0 {
            return vec![(0, Settings::default())];
        }
        let merged = self.clone().merged(kernel).0;
        let cut = merged.cut(kernel);
        let sizes = tile::sizes(cut.rows, cut.columns, merged.outputs, cut.machine);
        Store::schedules(&merged, &sizes, cut.pixels, cut.machine)
    }

    /// The tiles of loops that aren't written out.
    pub fn rolled_schedules(&self, kernel: &KernelWriter<'_>) -> Preferences {
        if kernel.results[0].view.elements() == 0 || self.steps() == 0 {
            return Preferences::new();
        }
        let merged = self.clone().merged(kernel).0;
        let Cut { machine, columns, .. } = merged.cut(kernel);
        let run = merged.reduction.last().map_or(1, |axis| axis.extent);
        let extents = Extents { columns, outputs: merged.outputs, run, overlap: rolled::may_overlap(kernel) };
        rolled::schedules(&extents, &merged.weights, machine)
    }

    /// Writes the kernel's loops.
    ///
    /// # Errors
    /// When C has no arithmetic for the data type.
    pub fn write(self, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        require_products(self.x.view.dtype)?;
        if kernel.results[0].view.elements() == 0 {
            return Ok(());
        }
        let (merged, result, epilogue) = self.merged(kernel);
        let old =
            (std::mem::replace(&mut kernel.results[0], result), std::mem::replace(&mut kernel.epilogue, epilogue));
        merged.loops(settings, kernel);
        (kernel.results[0], kernel.epilogue) = old;
        Ok(())
    }

    /// The same with axes merged that continue each other in memory, and those along which the weights move first; and the
    /// result and the epilogue under these axes.
    pub(super) fn merged(mut self, kernel: &KernelWriter<'_>) -> (Contraction, Argument, Option<Epilogue>) {
        self.reduction = if self.steps() == 0 {
            vec![Axis { extent: 0, x: 0, weights: 0 }]
        } else {
            merged_reduction(&self.reduction)
        };
        let mut order: Vec<usize> = (0..self.outer.len()).collect();
        order.sort_by_key(|&axis| self.outer[axis].weights == 0);
        let views: Vec<View> = self.outer_views(kernel).iter().map(|view| view.transpose(&order)).collect();
        let merged = merge_axes(&views);
        self.outer = (0..merged[0].rank())
            .map(|axis| Axis {
                extent: merged[0].shape[axis],
                x: merged[0].strides[axis],
                weights: merged[1].strides[axis],
            })
            .collect();
        let outputs = self.outputs;
        let result = with_outputs(&kernel.results[0], &merged[2], outputs);
        let epilogue = kernel.epilogue.as_ref().map(|epilogue| Epilogue {
            expression: epilogue.expression.clone(),
            operands: epilogue
                .operands
                .iter()
                .zip(&merged[3..])
                .map(|(own, view)| with_outputs(own, view, outputs))
                .collect(),
        });
        (self, result, epilogue)
    }

    /// Views over the outer axes only: of x, the weights, the result and the epilogue's operands.
    fn outer_views(&self, kernel: &KernelWriter<'_>) -> Vec<View> {
        let result = &kernel.results[0].view;
        let shape = result.shape.clone();
        let rank = self.outer.len();
        let of = |stride: fn(&Axis) -> i64| View {
            dtype: self.x.view.dtype,
            shape: shape[..rank].into(),
            strides: self.outer.iter().map(stride).collect(),
            offset: 0,
        };
        let mut views = vec![of(|axis| axis.x), of(|axis| axis.weights)];
        let epilogue = kernel.epilogue.iter().flat_map(|epilogue| &epilogue.operands);
        for argument in std::iter::once(&kernel.results[0]).chain(epilogue) {
            let view = argument.view.broadcast(&shape);
            views.push(View { shape: shape[..rank].into(), strides: view.strides[..rank].into(), ..view });
        }
        views
    }

    /// The outer axes along which the weights move, which are first once axes are merged, and those of pixels.
    pub(super) fn outer_axes(&self) -> (&[Axis], &[Axis]) {
        let fixed = self.outer.iter().filter(|axis| axis.weights != 0).count();
        self.outer.split_at(fixed)
    }

    fn cut(&self, kernel: &KernelWriter<'_>) -> Cut<'_> {
        let mut machine = self.machine(kernel);
        let apart = self.outer.last().map_or(0, |axis| axis.x.unsigned_abs() as usize * self.x.view.dtype.size());
        if apart > 0 && apart.is_multiple_of(machine.tuning.cache_period) {
            machine.neighbours = machine.tuning.cache_ways;
        }
        let (weight_axes, pixel_axes) = self.outer_axes();
        let (columns, above) = pixel_axes.split_last().map_or((1, pixel_axes), |(last, above)| (last.extent, above));
        let (rows, above) = above.split_last().map_or((1, above), |(last, above)| (last.extent, above));
        let above: Vec<usize> = above.iter().map(|axis| axis.extent).collect();
        let pixels = pixel_axes.iter().map(|axis| axis.extent).product();
        Cut { machine, weight_axes, above, rows, columns, pixels }
    }

    fn loops(&self, settings: &Settings, kernel: &mut KernelWriter<'_>) {
        let Cut { machine, weight_axes, above, rows, columns, .. } = self.cut(kernel);
        let vectors = settings.number("vectors");
        let (blocks, rolled) = match settings.number("steps") {
            0 => (tile::plan(rows, columns, self.outputs, machine, vectors), None),
            steps => {
                let pixels = settings.number("pixels").max(1);
                (rolled::plan(rows, columns, self.outputs, machine, (pixels, vectors)), Some(steps))
            }
        };
        let store = Store::new(self, kernel, &blocks, weight_axes, settings);
        let weight_shape: Vec<usize> = weight_axes.iter().map(|axis| axis.extent).collect();
        kernel.for_shape(&["g", "h"], &weight_shape, &mut |kernel, fixed| {
            if order::is_by_pixels(settings) {
                // Tiles of as many pixels as the first block, which has most outputs, can have.
                let Some(tiles) = blocks.first() else { return };
                kernel.for_shape(&["n", "m"], &above, &mut |kernel, outer| {
                    self.for_tiles(kernel, &[fixed, outer].concat(), tiles, &mut |kernel, origin, size| {
                        store.for_blocks(self, kernel, &blocks, fixed, &mut |kernel, block, first, weights| {
                            self.tile(kernel, origin, size, (block, rolled), first, weights);
                        });
                    });
                });
                return;
            }
            store.for_blocks(self, kernel, &blocks, fixed, &mut |kernel, block, first, weights| {
                kernel.for_shape(&["n", "m"], &above, &mut |kernel, outer| {
                    self.for_tiles(kernel, &[fixed, outer].concat(), block, &mut |kernel, origin, size| {
                        self.tile(kernel, origin, size, (block, rolled), first, weights);
                    });
                });
            });
        });
    }

    /// Calls `body` for each tile over the last two axes of pixels, cut as for a block of outputs, with its origin and size.
    fn for_tiles<'k>(
        &self,
        kernel: &mut KernelWriter<'k>,
        position: &[Index],
        block: &Block,
        body: TileWriter<'_, 'k>,
    ) {
        let pixel_axes = self.outer.len() - position.len();
        let extent = self.outer.last().map_or(1, |axis| axis.extent);
        for rows in &block.rows {
            for_span(kernel, "row", *rows, |kernel, row| {
                for columns in &block.columns {
                    for_span(kernel, "column", *columns, |kernel, column| {
                        let column = match pixel_axes > 0 && columns.end > extent {
                            // The last tile is moved back over pixels that have been computed.
                            true => kernel.b.define_index("first", column.minimum(&Index::from(extent - columns.step))),
                            false => column,
                        };
                        let mut origin = position.to_vec();
                        origin.extend([row.clone(), column].into_iter().skip(2 - pixel_axes.min(2)));
                        body(kernel, &origin, (rows.step, columns.step));
                    });
                }
            });
        }
    }

    /// What a tile fetches of the next block's weights.
    fn share(
        &self,
        kernel: &mut KernelWriter<'_>,
        origin: &[Index],
        (rows, columns): (usize, usize),
        weights: &Weights,
    ) -> Option<Share> {
        let (weight_axes, pixel_axes) = self.outer_axes();
        let first = match (origin.get(weight_axes.len()..)?, pixel_axes) {
            ([column], [_]) => column.clone(),
            ([row, column], [_, axis]) => row.times(axis.extent as i64).plus(&column.times(rows as i64)),
            _ => return None,
        };
        Some(weights.ahead?.share(kernel, &first, rows * columns))
    }

    fn tile(
        &self,
        kernel: &mut KernelWriter<'_>,
        origin: &[Index],
        size: (usize, usize),
        (block, rolled): (&Block, Option<usize>),
        first: &Index,
        weights: &Weights,
    ) {
        let mut places = Vec::new();
        for row in 0..size.0 {
            for column in 0..size.1 {
                let mut place = vec![0usize; origin.len()];
                for (axis, moved) in [column, row].into_iter().enumerate() {
                    if let Some(own) = origin.len().checked_sub(axis + 1) {
                        place[own] = moved;
                    }
                }
                places.push(place);
            }
        }
        let moved = |place: &[usize]| place.iter().zip(&self.outer).map(|(&at, axis)| at as i64 * axis.x).sum();
        let mut start = Index::default();
        if self.steps() > 0 {
            start = Index::from(self.x_offset);
            for (index, axis) in origin.iter().zip(&self.outer) {
                start = start.plus(&index.times(axis.x));
            }
        }
        let x = kernel.b.pointer("xp", self.x.pointer, start);
        let pixels = places.iter().map(|place| moved(place)).collect();
        let run = self.reduction.last().map_or(1, |axis| axis.extent);
        let kind = (rolled, self.has_twins(kernel));
        let tile = Tile::new(kernel, self.x.view.dtype, pixels, &block.vectors, (run, self.steps()), kind);
        let tile = tile.fetching(self.share(kernel, origin, size, weights));
        tile.accumulate(kernel, x, &self.reduction, weights);
        let sums = tile.total(kernel);
        for (place, sums) in places.iter().zip(sums.chunks(block.vectors.len().max(1))) {
            let indices: Vec<Index> = origin.iter().zip(place).map(|(index, &at)| index.offset(at as i64)).collect();
            let mut output = first.clone();
            for (&sum, vector) in sums.iter().zip(&block.vectors) {
                finish(kernel, sum, &indices, &output, *vector);
                output = output.offset(vector.valid as i64);
            }
        }
    }
}

/// An argument under merged outer axes, with its axis of outputs behind them.
fn with_outputs(argument: &Argument, outer: &View, outputs: usize) -> Argument {
    let mut view = outer.clone();
    view.shape.push(outputs);
    let last = argument.view.shape.last().copied().unwrap_or(1);
    view.strides.push(if last == 1 { 0 } else { argument.view.strides[argument.view.rank() - 1] });
    Argument { view, ..argument.clone() }
}
