//! Convolutions of small code whose zero border isn't in memory: one pixel at a time, whose window gets its bounds when the code
//! runs, so that those at the border are computed by the same loops.

use super::KernelWriter;
use super::accumulate::Tile;
use super::clipped::Clipped;
use super::contraction::Axis;
use super::order;
use super::products::{finish, require_products};
use super::rolled::{self, Extents};
use super::schedule::{Preferences, Settings};
use super::tile::Block;
use super::weights::{Store, Weights};
use crate::loops::{Index, Nest};
use mlc_ir::Diagnostic;

impl Clipped<'_> {
    /// The tiles of loops that aren't written out.
    pub fn rolled_schedules(&self, kernel: &KernelWriter<'_>) -> Preferences {
        let contraction = self.contraction;
        if kernel.results[0].view.elements() == 0 || contraction.has_long_sums() {
            return Preferences::new();
        }
        let machine = contraction.machine(kernel);
        let run = contraction.reduction.last().map_or(1, |axis| axis.extent);
        let extents = Extents { columns: 1, outputs: contraction.outputs, run, overlap: false };
        let list = rolled::schedules(&extents, &contraction.weights, machine);
        list.into_iter().map(|(place, settings)| (place, settings.with("border", "left-out"))).collect()
    }

    /// Writes the kernel's loops.
    ///
    /// # Errors
    /// When C has no arithmetic for the data type.
    pub fn write_rolled(&self, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
        let contraction = self.contraction;
        require_products(contraction.x.view.dtype)?;
        let machine = contraction.machine(kernel);
        let blocks = rolled::plan(1, 1, contraction.outputs, machine, (1, settings.number("vectors")));
        let groups = &contraction.outer[..1];
        let store = Store::new(contraction, kernel, &blocks, groups, settings);
        let outputs = self.extents();
        kernel.for_each("g", groups[0].extent, |kernel, group| {
            let (fixed, steps) = (std::slice::from_ref(&group), settings.number("steps"));
            let names = ["n", "row", "line", "column"];
            if order::is_by_pixels(settings) {
                kernel.for_shape(&names, &outputs, &mut |kernel, output| {
                    let position = [fixed, output].concat();
                    store.for_blocks(contraction, kernel, &blocks, fixed, &mut |kernel, block, first, weights| {
                        self.pixel(kernel, &position, (block, steps), first, weights);
                    });
                });
                return;
            }
            store.for_blocks(contraction, kernel, &blocks, fixed, &mut |kernel, block, first, weights| {
                kernel.for_shape(&names, &outputs, &mut |kernel, output| {
                    self.pixel(kernel, &[fixed, output].concat(), (block, steps), first, weights);
                });
            });
        });
        Ok(())
    }

    /// One pixel at a position of the group, the item and the spatial axes.
    fn pixel(
        &self,
        kernel: &mut KernelWriter<'_>,
        position: &[Index],
        (block, steps): (&Block, usize),
        first: &Index,
        weights: &Weights,
    ) {
        let contraction = self.contraction;
        let (places, start, tap) = self.origin(kernel, position, weights);
        let x = kernel.b.pointer("xp", contraction.x.pointer, start);
        let pointer = kernel.b.pointer("wr", weights.pointer, tap);
        let channels = contraction.reduction.len() - 1;
        let axis = Axis { weights: weights.reduction[channels], ..contraction.reduction[channels] };
        let tile = Tile::new(
            kernel,
            contraction.x.view.dtype,
            vec![0],
            &block.vectors,
            (axis.extent, contraction.steps()),
            (Some(steps), false),
        );
        // The channels of neighbouring taps may follow each other in memory.
        let columns = channels - 1;
        let follow = |between: i64, taps: i64| taps == between * axis.extent as i64;
        let is_one_run =
            follow(axis.x, contraction.reduction[columns].x) && follow(axis.weights, weights.reduction[columns]);
        let walked = if is_one_run { &places[..columns] } else { &places[..] };
        self.taps(kernel, weights, 0, walked, (x, pointer), &mut |kernel, x, pointer| {
            let weights = weights.part(pointer, vec![axis.weights]);
            let taps = if is_one_run { places[columns].count.clone() } else { Index::from(1usize) };
            tile.accumulate_counted(kernel, x, axis, &weights, taps.times(axis.extent as i64));
        });
        let mut output = first.clone();
        for (&sum, vector) in tile.total(kernel).iter().zip(&block.vectors) {
            finish(kernel, sum, position, &output, *vector);
            output = output.offset(vector.valid as i64);
        }
    }
}
