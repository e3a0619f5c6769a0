//! The rows of a depthwise window: products of taps with the elements that they meet, added to the sums of neighbouring pixels.

use super::KernelWriter;
use super::clipped::{Meeting, groups};
use super::depthwise_window::{DepthwiseWindow, positions};
use super::window::WindowAxis;
use crate::loops::{Expr, Index, Nest, Relation, ValueType, Var};
use std::collections::BTreeMap;

/// Longest row of a window that is written out.
const LONGEST_ROW: usize = 16;

type Condition = (Index, Relation, Index);

/// The weights of one vector of channels.
pub struct Taps {
    /// Points at the first tap.
    pub pointer: Var,
    /// Elements between taps along each window axis.
    pub strides: Vec<i64>,
    /// Elements between channels.
    pub stride: i64,
    /// What is loaded for one tap.
    pub ty: ValueType,
}

impl Taps {
    /// The weights of a tap.
    pub fn load(&self, index: Index) -> Expr {
        strided(self.pointer, index, self.stride, self.ty)
    }
}

/// The elements of a vector, `stride` elements apart.
pub fn strided(pointer: Var, index: Index, stride: i64, ty: ValueType) -> Expr {
    if ty.lanes == 1 || stride == 1 {
        return Expr::Load { pointer, index, ty };
    }
    Expr::Gather { pointer, index, stride, valid: ty.lanes, ty }
}

/// A tile of pixels while its window is walked.
pub struct Row<'r> {
    /// How it lies over x.
    pub window: &'r DepthwiseWindow,
    /// The tile's first element of x, were there no border above it.
    pub x: Var,
    /// A sum for each pixel.
    pub sums: &'r [Var],
    /// The taps of each pixel.
    pub meeting: &'r Meeting,
    /// Their weights.
    pub taps: &'r Taps,
}

impl Row<'_> {
    /// Loops over the rows of the window at the pixel `first`; they are written out when the weights are in registers.
    pub fn all(&self, kernel: &mut KernelWriter<'_>, first: &[Index], weights: Option<&[Expr]>) {
        let Some((&(length, ..), above)) = self.window.axes.split_last() else { return };
        let shape: Vec<usize> = above.iter().map(|axis| axis.0).collect();
        let meetings = self.window.meetings(self.meeting);
        let missing: i64 = self.window.pads().iter().take(above.len()).sum();
        if let Some(weights) = weights {
            for (number, position) in positions(&shape).iter().enumerate() {
                let start: i64 = position.iter().zip(above).map(|(&tap, axis)| tap as i64 * axis.1).sum();
                let row = &weights[number * length..][..length];
                let position: Vec<Index> = position.iter().map(|&tap| Index::from(tap)).collect();
                kernel.when(self.conditions(first, &position), |kernel| {
                    self.written_out(kernel, &Index::from(start - missing), &meetings, row);
                });
            }
            return;
        }
        kernel.for_shape(&["tap"; 6], &shape, &mut |kernel, position| {
            kernel.when(self.conditions(first, position), |kernel| {
                let (mut start, mut place) = (Index::from(-missing), Index::default());
                for (number, index) in position.iter().enumerate() {
                    start = start.plus(&index.times(above[number].1));
                    place = place.plus(&index.times(self.taps.strides[number]));
                }
                self.walked(kernel, &start, &place, &meetings);
            });
        });
    }

    /// What must hold so that a row of the window isn't in the border; nothing where it can't be.
    fn conditions(&self, first: &[Index], position: &[Index]) -> Vec<Condition> {
        let axes = self.window.border.as_deref().unwrap_or_default();
        let outputs = first.iter().zip(&self.window.pixels).skip(1);
        let mut list = Vec::new();
        for ((axis, tap), (output, pixels)) in axes.iter().zip(position).zip(outputs) {
            let WindowAxis::Sliding { extent, taps, stride, dilation, pads, .. } = *axis else { continue };
            let place = output.times(stride as i64).plus(&tap.times(dilation as i64));
            let taps = tap.as_constant().map_or((0, taps - 1), |tap| (tap as usize, tap as usize));
            if taps.0 * dilation < pads.0 {
                list.push((place.clone(), Relation::GreaterEqual, Index::from(pads.0)));
            }
            if (pixels.0 - 1) * stride + taps.1 * dilation >= extent + pads.0 {
                list.push((place, Relation::Less, Index::from(extent + pads.0)));
            }
        }
        list
    }

    /// A row of the window whose weights aren't in registers.
    fn walked(
        &self,
        kernel: &mut KernelWriter<'_>,
        start: &Index,
        place: &Index,
        meetings: &BTreeMap<i64, Vec<(usize, usize)>>,
    ) {
        let length = self.window.axes.last().map_or(1, |axis| axis.0);
        let stride = self.taps.strides.last().copied().unwrap_or(0);
        if length <= LONGEST_ROW {
            let row: Vec<Expr> =
                (0..length).map(|tap| kernel.shared("w", self.taps.load(place.offset(tap as i64 * stride)))).collect();
            return self.written_out(kernel, start, meetings, &row);
        }
        let columns = self.window.columns();
        let reach = columns.first(self.meeting);
        for (taps, pixels) in groups(self.meeting) {
            kernel.for_range("tap", Index::from(taps.start), Index::from(taps.end), 1, |kernel, tap| {
                let weight = kernel.shared("w", self.taps.load(place.plus(&tap.times(stride))));
                for pixel in pixels {
                    let index = start.plus(&tap.times(columns.tap)).offset(columns.element(pixel, 0) - reach);
                    let value = strided(self.x, index, self.window.channel_stride, self.taps.ty);
                    let sum = self.sums[pixel];
                    kernel.b.assign(sum, Expr::Var(sum).plus(value.times(weight.clone())));
                }
            });
        }
    }

    /// One row of the window, written out.
    fn written_out(
        &self,
        kernel: &mut KernelWriter<'_>,
        start: &Index,
        meetings: &BTreeMap<i64, Vec<(usize, usize)>>,
        row: &[Expr],
    ) {
        for (&moved, pairs) in meetings {
            let value = strided(self.x, start.offset(moved), self.window.channel_stride, self.taps.ty);
            let value = if pairs.len() == 1 { value } else { kernel.b.define("v", value) };
            for &(pixel, tap) in pairs {
                let sum = self.sums[pixel];
                kernel.b.assign(sum, Expr::Var(sum).plus(value.clone().times(row[tap].clone())));
            }
        }
    }
}
