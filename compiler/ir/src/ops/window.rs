//! The geometry that convolutions and pools share.

use crate::operator::OperatorError;
use crate::types::{DType, TensorType};

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
        if x.rank() != weights.rank() || x.rank() < 3 || x.dtype != weights.dtype || x.dtype == DType::Bool {
            return Err(OperatorError::types(format!(
                "x {x} and weights {weights} don't have equal ranks of 3 or more and one type"
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
}
