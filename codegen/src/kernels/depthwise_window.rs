//! [`DepthwiseWindow`]: how the window of a depthwise convolution lies over the elements of its operand.

use super::Argument;
use super::clipped::{Columns, Meeting};
use super::window::WindowAxis;
use std::collections::BTreeMap;

/// The window of a convolution with a group per channel.
#[derive(Clone)]
pub struct DepthwiseWindow {
    /// The operand that it moves over.
    pub x: Argument,
    /// Elements of x between channels.
    pub channel_stride: i64,
    /// How windows lie along the spatial axes, when there is a border that isn't in memory.
    pub border: Option<Vec<WindowAxis>>,
    /// Extent and stride of x of each pixel axis, innermost last.
    pub pixels: Vec<(usize, i64)>,
    /// Extent, stride of x, stride of the weights of each axis of the window, innermost last.
    pub axes: Vec<(usize, i64, i64)>,
}

impl DepthwiseWindow {
    /// Number of taps.
    pub fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.0).product()
    }

    /// How windows lie along rows.
    pub fn columns(&self) -> Columns {
        let stride = self.pixels.last().map_or(0, |pixel| pixel.1);
        let tap = self.axes.last().map_or(0, |axis| axis.1);
        Columns { stride, tap, pad: self.pads().last().copied().unwrap_or(0) }
    }

    /// Elements of x that are missing before the first along each spatial axis.
    pub fn pads(&self) -> Vec<i64> {
        let axes = self.border.as_deref().unwrap_or_default();
        let strides = &self.x.view.strides[1..];
        axes.iter().zip(strides).map(|(axis, stride)| axis.missing().0 as i64 * stride).collect()
    }

    /// The elements that the taps of a row of the window meet: each with its pixels and taps.
    pub fn meetings(&self, meeting: &Meeting) -> BTreeMap<i64, Vec<(usize, usize)>> {
        let columns = self.columns();
        let reach = columns.first(meeting);
        let mut meetings: BTreeMap<i64, Vec<(usize, usize)>> = BTreeMap::new();
        for (pixel, taps) in meeting.iter().enumerate() {
            for tap in taps.clone() {
                meetings.entry(columns.element(pixel, tap) - reach).or_default().push((pixel, tap as usize));
            }
        }
        meetings
    }
}

/// All positions of a shape, in row-major order.
pub fn positions(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut list: Vec<Vec<usize>> = vec![Vec::new()];
    for &extent in shape {
        list = list.iter().flat_map(|prefix| (0..extent).map(move |at| [prefix.as_slice(), &[at]].concat())).collect();
    }
    list
}
