//! Depthwise convolutions of small code: some channels of one pixel at a time. The window gets its bounds when the code runs, so
//! that pixels at a border which isn't in memory are computed by the same loops.

use super::KernelWriter;
use super::depthwise::{Depthwise, Section, with_depthwise};
use super::depthwise_rows::strided;
use super::products::{finish, require_products};
use super::rolled::LAST;
use super::schedule::{Preferences, Settings};
use super::tile::Lanes;
use crate::loops::{Expr, Index, Nest, ValueType, Var};
use mlc_ir::Diagnostic;
use mlc_ir::ops::Convolution;
use mlc_ir::types::row_major_strides;

/// Most vectors of channels that are computed at once.
const MOST_VECTORS: [usize; 3] = [8, 4, 2];

/// How many channels can be computed at once; constant weights are packed for that.
pub fn list(op: &Convolution, kernel: &KernelWriter<'_>) -> Preferences {
    if kernel.results[0].view.elements() == 0 || kernel.operands[1].constant.is_none() {
        return Preferences::new();
    }
    with_depthwise(op, &mut kernel.clone(), |depthwise, _| {
        let lanes = depthwise.machine.lanes;
        let vectors = depthwise.channels / lanes;
        if !depthwise.channels.is_multiple_of(lanes) {
            return Preferences::new();
        }
        let most = MOST_VECTORS.into_iter().filter(|&most| 2 * most < depthwise.machine.registers);
        let largest = |most: usize| (1..=most.min(vectors)).rev().find(|part| vectors.is_multiple_of(*part));
        let mut channels: Vec<usize> = most.filter_map(largest).map(|vectors| vectors * lanes).collect();
        channels.dedup();
        let settings = |channels: usize| Settings::default().with("channels", channels);
        channels.into_iter().enumerate().map(|(number, channels)| (LAST + number, settings(channels))).collect()
    })
}

/// Writes the kernel's loops.
///
/// # Errors
/// When there is no arithmetic for the data type.
pub fn write(op: &Convolution, settings: &Settings, kernel: &mut KernelWriter<'_>) -> Result<(), Diagnostic> {
    require_products(kernel.operands[0].view.dtype)?;
    with_depthwise(op, kernel, |depthwise, kernel| depthwise.rolled(kernel, settings.number("channels").max(1)));
    Ok(())
}

/// The taps of a pixel along one axis of the window.
struct Walk {
    count: Index,
    /// Elements between taps, of x and of the weights.
    x: i64,
    weights: i64,
}

impl Depthwise {
    fn rolled(&self, kernel: &mut KernelWriter<'_>, width: usize) {
        let sections = [Section { first: 0, count: self.channels / width, width }];
        let Some(packed) = self.pack(kernel, &sections) else { return };
        let taps = self.window.taps();
        let pixels: Vec<usize> = self.window.pixels.iter().map(|pixel| pixel.0).collect();
        kernel.for_each("multiple", self.multiplier, |kernel, multiple| {
            kernel.for_each("block", sections[0].count, |kernel, number| {
                let channel = number.times(width as i64);
                let place = channel.times(taps as i64).plus(&multiple.times((taps * self.channels) as i64));
                let weights = kernel.b.pointer("wp", packed, place);
                kernel.for_shape(&["n", "row", "column", "line"], &pixels, &mut |kernel, pixel| {
                    let sums = self.rolled_sums(kernel, pixel, &channel, width, weights);
                    let indices: Vec<Index> = std::iter::once(&multiple).chain(pixel).cloned().collect();
                    let vector = Lanes { width: self.machine.lanes, valid: self.machine.lanes };
                    for (number, &sum) in sums.iter().enumerate() {
                        finish(kernel, sum, &indices, &channel.offset((number * vector.width) as i64), vector);
                    }
                });
            });
        });
    }

    /// The sums of a pixel, a vector each.
    fn rolled_sums(
        &self,
        kernel: &mut KernelWriter<'_>,
        pixel: &[Index],
        channel: &Index,
        width: usize,
        weights: Var,
    ) -> Vec<Var> {
        let window = &self.window;
        let shape: Vec<usize> = window.axes.iter().map(|axis| axis.0).collect();
        let strides = row_major_strides(&shape).into_iter().map(|stride| (stride * width) as i64);
        let walk =
            |((count, x, _), weights): (&(usize, i64, i64), i64)| Walk { count: Index::from(*count), x: *x, weights };
        let mut walks: Vec<Walk> = window.axes.iter().zip(strides).map(walk).collect();
        let (mut start, mut tap) = (channel.times(window.channel_stride), Index::default());
        let bounded = window.border.as_deref().unwrap_or_default();
        for (number, (index, &(extent, stride))) in pixel.iter().zip(&window.pixels).enumerate() {
            // The first axis of pixels is that of the items where there is a border.
            let spatial = number.checked_sub(1).and_then(|number| Some((number, bounded.get(number)?)));
            let Some((number, axis)) = spatial else {
                start = start.plus(&index.times(stride));
                continue;
            };
            let place = axis.place(kernel, &axis.whole(extent), index);
            start = start.plus(&place.origin.times(window.x.view.strides[number + 1]));
            tap = tap.plus(&place.first.times(walks[number].weights));
            walks[number].count = place.count;
        }
        let x = kernel.b.pointer("xp", window.x.pointer, start);
        let weights = kernel.b.pointer("wr", weights, tap);
        let ty = ValueType::vector(window.x.view.dtype, self.machine.lanes);
        let zero = Expr::zero(ty.dtype, ty.lanes);
        let vectors = width / ty.lanes;
        let sums: Vec<Var> =
            (0..vectors).map(|number| kernel.b.mutable(&format!("sum_{number}"), zero.clone())).collect();
        self.rolled_taps(kernel, &walks, (x, weights), &sums);
        sums
    }

    fn rolled_taps(&self, kernel: &mut KernelWriter<'_>, walks: &[Walk], (x, weights): (Var, Var), sums: &[Var]) {
        if let Some((walk, inner)) = walks.split_first() {
            return kernel.for_range("tap", Index::default(), walk.count.clone(), 1, |kernel, tap| {
                let x = kernel.b.pointer("xt", x, tap.times(walk.x));
                let weights = kernel.b.pointer("wt", weights, tap.times(walk.weights));
                self.rolled_taps(kernel, inner, (x, weights), sums);
            });
        }
        let ty = ValueType::vector(self.window.x.view.dtype, self.machine.lanes);
        let stride = self.window.channel_stride;
        for (number, &sum) in sums.iter().enumerate() {
            let first = (number * ty.lanes) as i64;
            let element = strided(x, Index::from(first * stride), stride, ty);
            let weight = Expr::Load { pointer: weights, index: Index::from(first), ty };
            kernel.b.assign(sum, Expr::Var(sum).plus(element.times(weight)));
        }
    }
}
