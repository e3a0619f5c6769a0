//! The geometry that convolutions and pools share.

use crate::generator::Generator;
use crate::operator::{OperatorError, RowWindow};
use crate::types::{DType, Shape, TensorType, row_major_strides};
use std::ops::Range;

/// Strides, dilations and pads of a sliding window, an entry per spatial axis each.
pub struct Window<'a> {
    /// Step of the window.
    pub strides: &'a [usize],
    /// Distance of the window's taps.
    pub dilations: &'a [usize],
    /// Padding before and after.
    pub pads: &'a [(usize, usize)],
}

impl Window<'_> {
    fn check(&self, spatial: usize) -> Result<(), OperatorError> {
        let lengths = [self.strides.len(), self.dilations.len(), self.pads.len()];
        if lengths.iter().any(|&length| length != spatial) {
            return Err(OperatorError::field(format!("strides, dilations and pads need {spatial} entries")));
        }
        if self.strides.contains(&0) || self.dilations.contains(&0) {
            return Err(OperatorError::field("strides and dilations must be positive"));
        }
        Ok(())
    }

    /// Number of spatial axes of a convolution of x by weights.
    pub fn spatial_rank(&self, x: &TensorType, weights: &TensorType, groups: usize) -> Result<usize, OperatorError> {
        let spatial = x.rank().saturating_sub(2);
        if x.rank() != weights.rank() || x.rank() < 3 {
            return Err(OperatorError::types(format!(
                "x {x} and weights {weights} don't have equal ranks of 3 or more"
            )));
        }
        if groups == 0 {
            return Err(OperatorError::field("groups must be positive"));
        }
        self.check(spatial)?;
        Ok(spatial)
    }

    /// Number of positions of a window of `taps` taps along a spatial axis of `extent` elements.
    pub fn output_extent(&self, axis: usize, extent: usize, taps: usize) -> Result<usize, OperatorError> {
        let (before, after) = self.pads[axis];
        let padded = extent.checked_add(before).and_then(|sum| sum.checked_add(after));
        let reach = taps.checked_sub(1).and_then(|last| last.checked_mul(self.dilations[axis]));
        let room = padded.zip(reach).and_then(|(padded, reach)| padded.checked_sub(reach)?.checked_sub(1));
        let room = room.ok_or_else(|| {
            OperatorError::types(format!(
                "a window of {taps} taps, {} apart, doesn't fit into {extent} elements with pads ({before}, {after})",
                self.dilations[axis]
            ))
        })?;
        Ok(room / self.strides[axis] + 1)
    }

    /// The type of x [N, spatial…, C] after pooling.
    pub fn pooled(&self, x: &TensorType, window: &[usize]) -> Result<TensorType, OperatorError> {
        if x.rank() != window.len() + 2 || x.dtype == DType::Bool {
            return Err(OperatorError::types(format!("x {x} doesn't have {} spatial axes of numbers", window.len())));
        }
        self.check(window.len())?;
        let mut shape = x.shape.clone();
        for (axis, &taps) in window.iter().enumerate() {
            shape[axis + 1] = self.output_extent(axis, x.shape[axis + 1], taps)?;
        }
        Ok(TensorType::new(x.dtype, shape))
    }

    /// How rows of a window of `taps` rows read x, whose border consists of `border`; `None` for several images.
    pub fn rows(&self, x: &TensorType, taps: usize, border: i64) -> Option<RowWindow> {
        let window = RowWindow {
            taps,
            stride: self.strides[0],
            dilation: self.dilations[0],
            pads: self.pads[0],
            border,
            repeat: 1,
        };
        (x.shape[0] == 1).then_some(window)
    }

    /// Which rows of x a window of `taps` rows reads for some rows of the result, and how many of the border before and after them;
    /// `None` for several images, and where it reads the border alone.
    pub fn patch(&self, x: &TensorType, taps: usize, rows: Range<usize>) -> Option<(Range<usize>, (usize, usize))> {
        let (&[1, height, _, _], Some(last)) = (&x.shape[..], rows.end.checked_sub(1)) else { return None };
        let before = self.pads.first()?.0;
        let first = rows.start * self.strides[0];
        let behind = last * self.strides[0] + taps.saturating_sub(1) * self.dilations[0] + 1;
        let (start, end) = (first.saturating_sub(before), behind.saturating_sub(before).min(height));
        (start < end).then(|| (start..end, (before.saturating_sub(first), behind.saturating_sub(before + height))))
    }

    /// Whether a window of `taps` rows is all rows of x, and some rows divide them.
    pub fn covers_rows(&self, x: &TensorType, taps: usize, rows: usize) -> bool {
        let is_whole = x.shape[0] == 1 && x.shape[1] == taps && self.dilations[0] == 1 && self.pads[0] == (0, 0);
        is_whole && rows > 0 && taps.is_multiple_of(rows)
    }

    /// The taps of the window at an output position that meet the tensor: row-major number of the tap in a window of
    /// `taps`, and of the element among spatial `extents`.
    pub fn taps(&self, position: &[usize], extents: &[usize], taps: &[usize]) -> Vec<(usize, usize)> {
        let (tap_strides, strides) = (row_major_strides(taps), row_major_strides(extents));
        let mut met = vec![(0, 0)];
        for axis in 0..position.len() {
            let first = position[axis] * self.strides[axis];
            let before = self.pads[axis].0;
            let along = self.tap_range(axis, first, taps[axis], before..before + extents[axis]);
            let mut wider = Vec::with_capacity(met.len() * along.len());
            for (number, source) in met {
                for tap in along.clone() {
                    let place = first + tap * self.dilations[axis] - before;
                    wider.push((number + tap * tap_strides[axis], source + place * strides[axis]));
                }
            }
            met = wider;
        }
        met
    }

    /// Which of the taps from place `first` on fall into a range of places.
    pub fn tap_range(&self, axis: usize, first: usize, taps: usize, places: Range<usize>) -> Range<usize> {
        let dilation = self.dilations[axis];
        let start = places.start.saturating_sub(first).div_ceil(dilation).min(taps);
        let end = places.end.saturating_sub(first).div_ceil(dilation).min(taps);
        start..end.max(start)
    }
}

/// Pads without those of the first spatial axis.
pub(super) fn without_rows(pads: &[(usize, usize)]) -> Vec<(usize, usize)> {
    [(0, 0)].into_iter().chain(pads.iter().copied().skip(1)).collect()
}

/// What is said of two spatial axes, in the other order. Precondition: there are two.
pub(super) fn transposed<T: Copy>(axes: &[T]) -> Vec<T> {
    vec![axes[1], axes[0]]
}

/// x [N, spatial…, C].
pub(super) fn spatial_shape(batch: usize, extents: impl IntoIterator<Item = usize>, channels: usize) -> Shape {
    let mut shape = Shape::from_slice(&[batch]);
    shape.extend(extents);
    shape.push(channels);
    shape
}

/// One spatial axis of a random window that fits its tensor.
pub(super) struct SampleAxis {
    pub extent: usize,
    pub window: usize,
    pub stride: usize,
    pub dilation: usize,
    pub pads: (usize, usize),
}

impl SampleAxis {
    /// Any window that fits; smaller tensors for more axes.
    pub fn random(generator: &mut Generator, spatial: usize) -> Self {
        let window = generator.choose(&[1, 1, 2, 3, 3, 4]);
        let dilation = generator.choose(&[1, 1, 1, 2]);
        let reach = (window - 1) * dilation;
        let pads = match generator.range(0, 2) {
            0 => (0, 0),
            1 => (reach / 2, reach - reach / 2),
            _ => (generator.range(0, reach), generator.range(0, reach + 1)),
        };
        let extent =
            generator.range(1, if spatial > 2 { 4 } else { 9 }).max((reach + 1).saturating_sub(pads.0 + pads.1));
        SampleAxis { extent, window, stride: generator.choose(&[1, 1, 2, 3]), dilation, pads }
    }

    /// A window of which at least one tap meets the tensor at every position.
    pub fn random_pool(generator: &mut Generator, spatial: usize) -> Self {
        let axis = SampleAxis::random(generator, spatial);
        let window = Window { strides: &[axis.stride], dilations: &[axis.dilation], pads: &[axis.pads] };
        let positions = window.output_extent(0, axis.extent, axis.window).unwrap_or_default();
        let meets = |position| !window.taps(&[position], &[axis.extent], &[axis.window]).is_empty();
        if (0..positions).all(meets) {
            return axis;
        }
        let extent = axis.extent.max((axis.window - 1) * axis.dilation + 1);
        SampleAxis { extent, pads: (0, 0), ..axis }
    }
}
