//! Convolutions whose zero border isn't in memory: taps that would meet it are left out. Along the last axis that is done when
//! the code is generated: a tile at the edge has a loop for each set of its pixels that share taps, so that nothing is computed
//! in vain. Along the other axes the loops over taps get bounds.

use super::KernelWriter;
use super::accumulate::Tile;
use super::contraction::{Axis, Contraction, merged_reduction};
use super::order;
use super::products::{finish, require_products};
use super::schedule::{Preferences, Settings};
use super::tile::{self, Block, Span};
use super::walk::for_span;
use super::weights::{Store, Weights};
use super::window::{Place, WindowAxis};
use crate::loops::{Index, Nest, Var};
use mlc_ir::Diagnostic;
use std::ops::Range;

/// The taps of each pixel of a tile that meet the tensor.
pub type Meeting = Vec<Range<i64>>;

/// A sliding window along the axis that tiles lie along.
#[derive(Debug, Clone, Copy)]
pub struct Columns {
    /// Elements of x between windows.
    pub stride: i64,
    /// Elements of x between taps.
    pub tap: i64,
    /// Elements of x that are missing before the first.
    pub pad: i64,
}

impl Columns {
    /// The element of x that a tap of a pixel meets, counted from the first window's origin.
    pub fn element(self, pixel: usize, tap: i64) -> i64 {
        pixel as i64 * self.stride + tap * self.tap - self.pad
    }

    /// The first element that a tile at the origin would meet: other elements of the tile are counted from it, so that no
    /// pointer leaves the tensor.
    pub fn first(self, meeting: &Meeting) -> i64 {
        let firsts = meeting.iter().enumerate().filter(|(_, taps)| !taps.is_empty());
        firsts.map(|(pixel, taps)| self.element(pixel, taps.start)).min().unwrap_or(0)
    }
}

/// Cuts tiles along an axis into runs that meet the tensor alike.
pub fn runs(axis: &WindowAxis, spans: &[Span]) -> Vec<(Span, Meeting)> {
    let mut list: Vec<(Span, Meeting)> = Vec::new();
    for span in spans {
        for start in (span.start..span.end).step_by(span.step) {
            let meeting: Meeting = (start..start + span.step).map(|output| axis.taps(output)).collect();
            match list.last_mut() {
                Some((last, known)) if last.step == span.step && *known == meeting => last.end += span.step,
                _ => list.push((Span { start, end: start + span.step, step: span.step }, meeting)),
            }
        }
    }
    list
}

/// A convolution as a contraction over outer axes [groups, items, spatial axes…] and the taps and channels of the window.
pub struct Clipped<'c> {
    /// The contraction; x is without border.
    pub contraction: &'c Contraction,
    /// How windows lie along the spatial axes.
    pub axes: &'c [WindowAxis],
    /// The last of them.
    pub columns: Columns,
}

/// The operands of a row of pixels.
struct Row {
    x: Var,
    places: Vec<Place>,
    weights: Weights,
}

impl Clipped<'_> {
    /// Extents of the axes along which the weights stay.
    pub fn extents(&self) -> Vec<usize> {
        self.contraction.outer[1..].iter().map(|axis| axis.extent).collect()
    }

    /// The tiles that a kernel can be cut into, and where its weights can be.
    pub fn schedules(&self, kernel: &KernelWriter<'_>) -> Preferences {
        let (contraction, extents) = (self.contraction, self.extents());
        let machine = contraction.machine(kernel);
        let sizes = match extents.last() {
            Some(&columns) if kernel.results[0].view.elements() > 0 => {
                tile::sizes(1, columns, contraction.outputs, machine)
            }
            _ => return vec![(0, Settings::default())],
        };
        let list = Store::schedules(contraction, &sizes, extents.iter().product(), machine);
        list.into_iter().map(|(place, settings)| (place, settings.with("border", "left-out"))).collect()
    }

    /// Writes the kernel's loops.
    ///
    /// # Errors
    /// When C has no arithmetic for the data type.
    pub fn write(&self, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        let contraction = self.contraction;
        require_products(contraction.x.view.dtype)?;
        if kernel.results[0].view.elements() == 0 {
            return Ok(());
        }
        let extents = self.extents();
        let Some((&columns, rows)) = extents.split_last() else { return Ok(()) };
        let weight_axes = &contraction.outer[..1];
        let machine = contraction.machine(kernel);
        let blocks = tile::plan(1, columns, contraction.outputs, machine, settings.number("vectors"));
        let store = Store::new(contraction, kernel, &blocks, weight_axes, settings);
        kernel.for_each("g", weight_axes[0].extent, |kernel, group| {
            let (fixed, names) = (std::slice::from_ref(&group), ["n", "row", "line"]);
            if order::is_by_pixels(settings) {
                // Tiles of as many pixels as the first block, which has most outputs, can have.
                let Some(Block { columns, .. }) = blocks.first() else { return };
                kernel.for_shape(&names, rows, &mut |kernel, row| {
                    let position = [fixed, row].concat();
                    self.for_tiles(kernel, columns, &mut |kernel, column, meeting| {
                        store.for_blocks(contraction, kernel, &blocks, fixed, &mut |kernel, block, first, weights| {
                            let row = self.row(kernel, &position, weights);
                            self.tile(kernel, &row, (&position, column, meeting), block, first);
                        });
                    });
                });
                return;
            }
            store.for_blocks(contraction, kernel, &blocks, fixed, &mut |kernel, block, first, weights| {
                kernel.for_shape(&names, rows, &mut |kernel, row| {
                    let position = [fixed, row].concat();
                    let row = self.row(kernel, &position, weights);
                    self.for_tiles(kernel, &block.columns, &mut |kernel, column, meeting| {
                        self.tile(kernel, &row, (&position, column, meeting), block, first);
                    });
                });
            });
        });
        Ok(())
    }

    /// Where x and the weights of a row begin; `position` has the group, the item and the outputs along all axes but the last.
    fn row(&self, kernel: &mut KernelWriter<'_>, position: &[Index], weights: &Weights) -> Row {
        let (places, start, tap) = self.origin(kernel, position, weights);
        let x = kernel.b.pointer("xr", self.contraction.x.pointer, start);
        let pointer = kernel.b.pointer("wr", weights.pointer, tap);
        Row { x, places, weights: weights.part(pointer, weights.reduction.clone()) }
    }

    /// Calls `body` for each tile of a row, with its first column and the taps that its pixels meet.
    fn for_tiles<'k>(
        &self,
        kernel: &mut KernelWriter<'k>,
        columns: &[Span],
        body: &mut dyn FnMut(&mut KernelWriter<'k>, &Index, &Meeting),
    ) {
        let Some(axis) = self.axes.last() else { return };
        for (span, meeting) in runs(axis, columns) {
            for_span(kernel, "column", span, |kernel, column| body(kernel, &column, &meeting));
        }
    }

    /// Where the window lies that belongs to a position of the group, the item and some spatial axes: its place along
    /// each of these axes, and the elements of x and of the weights where it begins.
    pub fn origin(
        &self,
        kernel: &mut KernelWriter<'_>,
        position: &[Index],
        weights: &Weights,
    ) -> (Vec<Place>, Index, Index) {
        let contraction = self.contraction;
        let (mut start, mut tap) = (Index::from(contraction.x_offset), Index::default());
        for (index, axis) in position[..2].iter().zip(&contraction.outer) {
            start = start.plus(&index.times(axis.x));
        }
        let mut places = Vec::new();
        for (number, output) in position[2..].iter().enumerate() {
            let size = contraction.outer[number + 2].extent;
            let place = self.axes[number].place(kernel, &self.axes[number].whole(size), output);
            start = start.plus(&place.origin.times(self.element(number)));
            tap = tap.plus(&place.first.times(weights.reduction[number]));
            places.push(place);
        }
        (places, start, tap)
    }

    /// Elements of x between neighbours along a spatial axis.
    pub fn element(&self, number: usize) -> i64 {
        self.contraction.x.view.strides[number + 1]
    }

    fn tile(
        &self,
        kernel: &mut KernelWriter<'_>,
        Row { x: row, places, weights }: &Row,
        (position, column, meeting): (&[Index], &Index, &Meeting),
        block: &Block,
        first: &Index,
    ) {
        let reach = self.columns.first(meeting);
        let x = kernel.b.pointer("xp", *row, column.times(self.columns.stride).offset(reach));
        let groups = groups(meeting);
        let runs: Vec<Vec<Axis>> = groups.iter().map(|(taps, _)| self.run(taps, weights)).collect();
        let run = runs.iter().filter_map(|axes| axes.last()).map(|axis| axis.extent).max().unwrap_or(1);
        let pixels = vec![0; meeting.len()];
        let Contraction { x: operand, .. } = self.contraction;
        let terms = (run, self.contraction.steps());
        let tile = Tile::new(kernel, operand.view.dtype, pixels, &block.vectors, terms, (None, false));
        self.taps(kernel, weights, 0, places, (x, weights.pointer), &mut |kernel, x, pointer| {
            for ((taps, pixels), axes) in groups.iter().zip(&runs) {
                let moved = |&pixel: &usize| (pixel, self.columns.element(pixel, taps.start) - reach);
                let part = tile.part(&pixels.iter().map(moved).collect::<Vec<_>>());
                let stride = weights.reduction[self.axes.len() - 1];
                let pointer = kernel.b.pointer("wt", pointer, Index::from(taps.start * stride));
                let weights = weights.part(pointer, axes.iter().map(|axis| axis.weights).collect());
                part.accumulate(kernel, x, axes, &weights);
            }
        });
        let sums = tile.total(kernel);
        for (pixel, sums) in sums.chunks(block.vectors.len().max(1)).enumerate() {
            let indices = [position, &[column.offset(pixel as i64)]].concat();
            let mut output = first.clone();
            for (&sum, vector) in sums.iter().zip(&block.vectors) {
                finish(kernel, sum, &indices, &output, *vector);
                output = output.offset(vector.valid as i64);
            }
        }
    }

    /// Loops over the taps of axes from number `number` on, within their bounds, for each of which there is a place.
    pub fn taps(
        &self,
        kernel: &mut KernelWriter<'_>,
        weights: &Weights,
        number: usize,
        places: &[Place],
        (x, pointer): (Var, Var),
        body: &mut dyn FnMut(&mut KernelWriter<'_>, Var, Var),
    ) {
        let Some((place, inner)) = places.split_first() else { return body(kernel, x, pointer) };
        kernel.for_range("tap", Index::default(), place.count.clone(), 1, |kernel, tap| {
            let x = kernel.b.pointer("xt", x, tap.times(self.contraction.reduction[number].x));
            let pointer = kernel.b.pointer("wt", pointer, tap.times(weights.reduction[number]));
            self.taps(kernel, weights, number + 1, inner, (x, pointer), body);
        });
    }

    /// Reduction axes over some taps of the last axis and the channels, merged where x and the weights continue.
    fn run(&self, taps: &Range<i64>, weights: &Weights) -> Vec<Axis> {
        let last = self.axes.len() - 1;
        let reduction = self.contraction.reduction[last..].iter().zip(&weights.reduction[last..]);
        let mut axes: Vec<Axis> = reduction.map(|(axis, &weights)| Axis { weights, ..*axis }).collect();
        axes[0].extent = (taps.end - taps.start) as usize;
        let merged = merged_reduction(&axes);
        // All taps and channels may be single ones.
        if merged.is_empty() { vec![Axis { extent: 1, x: 0, weights: 0 }] } else { merged }
    }
}

/// Neighbouring taps with the pixels that they meet the tensor for.
pub fn groups(meeting: &Meeting) -> Vec<(Range<i64>, Vec<usize>)> {
    let end = meeting.iter().map(|taps| taps.end).max().unwrap_or(0);
    let mut list: Vec<(Range<i64>, Vec<usize>)> = Vec::new();
    for tap in 0..end {
        let pixels: Vec<usize> = (0..meeting.len()).filter(|&pixel| meeting[pixel].contains(&tap)).collect();
        match list.last_mut() {
            Some((taps, known)) if taps.end == tap && *known == pixels => taps.end += 1,
            _ if pixels.is_empty() => {}
            _ => list.push((tap..tap + 1, pixels)),
        }
    }
    list
}
