//! Sliding windows over channels-first tensors: the intermediate representation has them channels-last.

use super::Builder;
use mlc_ir::ops::{AdaptivePool, AveragePool, Convolution, MaxPool, PoolFunction, TransposedConvolution};
use mlc_ir::{Op, OperatorError, Value};

/// Strides, dilations and pads of a convolution, an entry per spatial axis each.
#[derive(Debug, Clone)]
pub struct SlidingWindow {
    /// Step of the window.
    pub strides: Vec<usize>,
    /// Distance of the window's taps.
    pub dilations: Vec<usize>,
    /// Zeros before and after each spatial axis.
    pub pads: Vec<(usize, usize)>,
    /// Groups that split the channels.
    pub groups: usize,
}

/// Geometry of a pool, an entry per spatial axis each.
#[derive(Debug, Clone)]
pub struct PoolWindow {
    /// Extent of the window.
    pub window: Vec<usize>,
    /// Step of the window.
    pub strides: Vec<usize>,
    /// Distance of the window's taps.
    pub dilations: Vec<usize>,
    /// Padding before and after each spatial axis.
    pub pads: Vec<(usize, usize)>,
}

/// The pads behind an axis with which a pool that rounds down has as many positions as one that rounds up: at least the
/// axis' own, unless they'd make another window fit.
///
/// The last window must begin inside the tensor or the padding before it. A window may reach beyond the padded tensor by less
/// than a step; `None` when it has no position.
pub fn ceil_mode_pads(
    extent: usize,
    taps: usize,
    stride: usize,
    dilation: usize,
    pad: (usize, usize),
) -> Option<usize> {
    let reach = taps.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    let padded = extent.checked_add(pad.0)?.checked_add(pad.1)?;
    if reach.saturating_sub(padded) >= stride {
        return None;
    }
    let mut last = padded.saturating_sub(reach).div_ceil(stride);
    if last.checked_mul(stride)? >= extent + pad.0 {
        last = last.checked_sub(1)?;
    }
    let needed = last.checked_mul(stride)?.checked_add(reach)?;
    let after = needed.saturating_sub(extent + pad.0);
    let another = needed.checked_add(stride)?;
    Some(if padded < another { after.max(pad.1) } else { after })
}

impl Builder {
    /// Channels-last form of a channels-first tensor [N, C, spatial…].
    ///
    /// # Errors
    /// When it has fewer than two axes.
    pub fn to_channels_last(&mut self, x: Value) -> Result<Value, OperatorError> {
        let last = self.rank(x).saturating_sub(1);
        self.move_axis(x, 1, last)
    }

    /// Channels-first form of a channels-last tensor [N, spatial…, C].
    ///
    /// # Errors
    /// When it has fewer than two axes.
    pub fn to_channels_first(&mut self, x: Value) -> Result<Value, OperatorError> {
        let last = self.rank(x).saturating_sub(1);
        self.move_axis(x, last, 1)
    }

    /// Applies a channels-last operator to a channels-first tensor.
    ///
    /// # Errors
    /// When the operator doesn't accept it.
    pub fn apply_channels_last(&mut self, op: impl Into<Op>, x: Value) -> Result<Value, OperatorError> {
        let x = self.to_channels_last(x)?;
        let y = self.apply(op, &[x])?;
        self.to_channels_first(y)
    }

    /// Cross-correlation of x [N, C, spatial…] by weights [O, C / groups, window…], with an optional bias [O].
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn convolution(
        &mut self,
        x: Value,
        weights: Value,
        bias: Option<Value>,
        window: SlidingWindow,
    ) -> Result<Value, OperatorError> {
        let rank = self.rank(weights);
        let permutation: Vec<usize> = (2..rank).chain([1, 0]).take(rank).collect();
        let weights = self.transpose(weights, &permutation)?;
        let x = self.to_channels_last(x)?;
        let SlidingWindow { strides, dilations, pads, groups } = window;
        let y = self.apply(Convolution { strides, dilations, pads, groups, border: 0, sums: None }, &[x, weights])?;
        let y = self.add_optional(y, bias)?;
        self.to_channels_first(y)
    }

    /// Transposed convolution of x [N, C, spatial…] by weights [C, O / groups, window…], with an optional bias [O].
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn transposed_convolution(
        &mut self,
        x: Value,
        weights: Value,
        bias: Option<Value>,
        window: SlidingWindow,
        output_pads: Vec<usize>,
    ) -> Result<Value, OperatorError> {
        let rank = self.rank(weights);
        let permutation: Vec<usize> = (2..rank).chain([0, 1]).take(rank).collect();
        let weights = self.transpose(weights, &permutation)?;
        let x = self.to_channels_last(x)?;
        let SlidingWindow { strides, dilations, pads, groups } = window;
        let op = TransposedConvolution { strides, dilations, pads, output_pads, groups, sums: None };
        let y = self.apply(op, &[x, weights])?;
        let y = self.add_optional(y, bias)?;
        self.to_channels_first(y)
    }

    /// Largest element of each window of x [N, C, spatial…].
    ///
    /// # Errors
    /// When the window doesn't fit.
    pub fn max_pool(&mut self, x: Value, pool: PoolWindow) -> Result<Value, OperatorError> {
        let PoolWindow { window, strides, dilations, pads } = pool;
        self.apply_channels_last(MaxPool { window, strides, dilations, pads }, x)
    }

    /// Mean of each window of x [N, C, spatial…]; `counted_pads` are the pads whose elements count in the divisor.
    ///
    /// # Errors
    /// When the window doesn't fit.
    pub fn average_pool(
        &mut self,
        x: Value,
        pool: PoolWindow,
        counted_pads: Vec<(usize, usize)>,
    ) -> Result<Value, OperatorError> {
        let PoolWindow { window, strides, dilations, pads } = pool;
        self.apply_channels_last(AveragePool { window, strides, dilations, pads, counted_pads }, x)
    }

    /// Mean or maximum of `sizes` cells of x [N, C, spatial…], as an ordinary pool where all cells are equal.
    ///
    /// # Errors
    /// When the tensor doesn't have so many spatial axes.
    pub fn adaptive_pool(&mut self, x: Value, function: PoolFunction, sizes: &[usize]) -> Result<Value, OperatorError> {
        let shape = self.shape(x);
        let spatial = shape.get(2..).unwrap_or(&[]);
        let uniform = spatial.len() == sizes.len()
            && spatial.iter().zip(sizes).all(|(&extent, &size)| size > 0 && extent > 0 && extent.is_multiple_of(size));
        if !uniform {
            return self.apply_channels_last(AdaptivePool { function, sizes: sizes.to_vec() }, x);
        }
        let window: Vec<usize> = spatial.iter().zip(sizes).map(|(&extent, &size)| extent / size).collect();
        if window.iter().all(|&taps| taps == 1) {
            return Ok(x);
        }
        let zeros = vec![(0, 0); window.len()];
        let pool =
            PoolWindow { strides: window.clone(), dilations: vec![1; window.len()], pads: zeros.clone(), window };
        match function {
            PoolFunction::Mean => self.average_pool(x, pool, zeros),
            PoolFunction::Maximum => self.max_pool(x, pool),
        }
    }
}
