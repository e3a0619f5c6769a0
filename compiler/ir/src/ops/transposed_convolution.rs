//! `transposed_convolution`: N-D transposed convolution. x [N, spatial…, C], weights [window…, C, O / groups]; element i adds x * w at i * stride - pad + tap * dilation.

use super::numbers::{Number, dot, expect_values, indices, mixed_kinds};
use super::sums::{self, sums_dtype};
use super::window::spatial_shape;
use crate::tensor::Values;
use crate::types::row_major_strides;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, count_product, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, Shape, TensorType};
use super::window::Window;
use std::ops::Range;

crate::operator_fields! {
    /// N-D transposed convolution.
    pub struct TransposedConvolution {
        /// Distance of the input elements in the result per spatial axis.
        pub strides: Vec<usize>,
        /// Distance of the window's taps per spatial axis.
        pub dilations: Vec<usize>,
        /// Elements cut off before and after each spatial axis.
        pub pads: Vec<(usize, usize)>,
        /// Elements added behind each spatial axis.
        pub output_pads: Vec<usize>,
        /// Groups that split input and output channels.
        pub groups: usize,
        /// Type of the sums where x and weights are integers of 8 or 16 bits, of types of their own, or `f32` where x is `f32` and the
        /// weights are halves; `none` for sums of the operands' type.
        pub sums: Option<DType> = None,
    }
}

impl Operator for TransposedConvolution {
    const NAME: &'static str = "transposed_convolution";
    const CATEGORY: Category = Category::Accumulation;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x", "weights"]
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::Products
    }

    fn by_rows(&self, _operands: &[TensorType]) -> Option<(Self, RowReads)> {
        None
    }

    fn patch(&self, _operands: &[TensorType], _rows: Range<usize>) -> Option<(Self, PatchReads)> {
        None
    }

    fn share_of_rows(&self, _operands: &[TensorType], _rows: usize) -> Option<(Self, f64)> {
        None
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x, weights] = expect_operands(operands)?;
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let spatial = window.spatial_rank(x, weights, self.groups)?;
        let channels = x.shape[spatial + 1];
        if weights.shape[spatial] != channels || !channels.is_multiple_of(self.groups) {
            return Err(OperatorError::types(format!(
                "weights {weights} take {} channels in {} groups, x {x} has {channels}",
                weights.shape[spatial], self.groups
            )));
        }
        if self.output_pads.len() != spatial {
            return Err(OperatorError::field("output_pads needs an entry per spatial axis"));
        }
        let mut shape = Shape::from_slice(&[x.shape[0]]);
        for axis in 0..spatial {
            let extent = self.output_extent(axis, x.shape[axis + 1], weights.shape[axis]).ok_or_else(|| {
                OperatorError::types(format!("the result of x {x} and weights {weights} has no extent on spatial axis {axis}"))
            })?;
            shape.push(extent);
        }
        let outputs = weights.shape[spatial + 1].checked_mul(self.groups);
        shape.push(outputs.ok_or_else(|| OperatorError::field(format!("{} groups are too many", self.groups)))?);
        Ok(vec![TensorType::new(sums_dtype(self.sums, x, weights)?, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x, weights] = expect_values(operands)?;
        let values = match (x.values(), weights.values()) {
            (Values::Float(x_values), Values::Float(w)) => {
                Values::Float(self.scatter(x.shape(), x_values, weights.shape(), w, &results[0].shape))
            }
            (Values::Integer(x_values), Values::Integer(w)) => {
                Values::Integer(self.scatter(x.shape(), x_values, weights.shape(), w, &results[0].shape))
            }
            _ => return Err(mixed_kinds()),
        };
        Ok(vec![Tensor::from_values(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let (x, weights, y) = (&operands[0].shape, &operands[1].shape, &results[0].shape);
        let spatial = self.strides.len();
        let products = (0..spatial).map(|axis| self.products(axis, weights[axis], y[axis + 1]));
        let factors = products.chain([x[0], x[spatial + 1], weights[spatial + 1]]);
        Work { macs: count_product(factors), ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let spatial = generator.choose(&[1, 2, 2, 2, 3]);
        let groups = generator.choose(&[1, 1, 1, 2, 3]);
        let channels = groups * generator.range(1, 3);
        let (mut extents, mut window, mut pads) = (Shape::new(), Shape::new(), Vec::new());
        let (mut strides, mut dilations, mut output_pads) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..spatial {
            let extent = generator.range(1, 4);
            let taps = generator.range(1, 4);
            let (stride, dilation) = (generator.range(1, 3), generator.choose(&[1, 1, 2]));
            let output_pad = if generator.one_in(3) { stride - 1 } else { 0 };
            let full = (extent - 1) * stride + (taps - 1) * dilation + output_pad + 1;
            let before = generator.range(0, (taps - 1).min(full - 1));
            let after = generator.range(0, (taps - 1).min(full - 1 - before));
            extents.push(extent);
            window.push(taps);
            strides.push(stride);
            dilations.push(dilation);
            pads.push((before, after));
            output_pads.push(output_pad);
        }
        let x = spatial_shape(generator.range(1, 2), extents, channels);
        window.extend([channels, generator.range(1, 4)]);
        let (x_dtype, weights_dtype, sums) = sums::sample(generator);
        let operator = TransposedConvolution { strides, dilations, pads, output_pads, groups, sums };
        (operator, vec![TensorType::new(x_dtype, x), TensorType::new(weights_dtype, window)])
    }
}

impl TransposedConvolution {
    /// Pairs of an element of the result and a tap that reaches it, from x or from zeros around it, along a spatial axis.
    fn products(&self, axis: usize, taps: usize, extent: usize) -> usize {
        let stride = self.strides[axis];
        let reached = |tap: usize| {
            let place = (tap % stride) * (self.dilations[axis] % stride) % stride;
            let first = (place + stride - self.pads[axis].0 % stride) % stride;
            // Taps a stride apart reach the same elements.
            extent.saturating_sub(first).div_ceil(stride).saturating_mul((taps - tap).div_ceil(stride))
        };
        (0..taps.min(stride)).map(reached).fold(0, usize::saturating_add)
    }

    /// Extent of a spatial axis of the result; `None` when it isn't positive, or doesn't fit in a machine word.
    fn output_extent(&self, axis: usize, extent: usize, taps: usize) -> Option<usize> {
        let (before, after) = self.pads[axis];
        let last = extent.checked_sub(1)?.checked_mul(self.strides[axis])?;
        let reach = taps.checked_sub(1)?.checked_mul(self.dilations[axis])?;
        let full = last.checked_add(reach)?.checked_add(self.output_pads[axis])?.checked_add(1)?;
        full.checked_sub(before)?.checked_sub(after).filter(|&extent| extent > 0)
    }

    /// Adds every input element times every weight of its channel at the place that the weight's tap gives.
    fn scatter<T: Number>(&self, x_shape: &[usize], x: &[T], w_shape: &[usize], w: &[T], y_shape: &[usize]) -> Vec<T> {
        let spatial = x_shape.len() - 2;
        let channels = x_shape[spatial + 1];
        let (group_channels, group_outputs) = (channels / self.groups, w_shape[spatial + 1]);
        let y_strides = row_major_strides(y_shape);
        let taps: Vec<Shape> = indices(&w_shape[..spatial]).collect();
        let mut y = vec![T::ZERO; y_shape.iter().product()];
        for (pixel, position) in indices(&x_shape[..=spatial]).enumerate() {
            for (tap, offset) in taps.iter().enumerate() {
                let Some(target) = self.target(&position[1..], offset, &y_shape[1..=spatial]) else { continue };
                let spot = position[0] * y_strides[0] + dot(&target, &y_strides[1..]);
                for channel in 0..channels {
                    let value = x[pixel * channels + channel];
                    let first = spot + channel / group_channels * group_outputs;
                    let factors = &w[(tap * channels + channel) * group_outputs..][..group_outputs];
                    for (sum, &factor) in y[first..first + group_outputs].iter_mut().zip(factors) {
                        *sum = sum.add(value.multiply(factor));
                    }
                }
            }
        }
        y
    }

    /// Where a tap of the window over an input element falls, unless it is cut off.
    fn target(&self, position: &[usize], tap: &[usize], extents: &[usize]) -> Option<Shape> {
        let along = |axis: usize| {
            let spot = position[axis] * self.strides[axis] + tap[axis] * self.dilations[axis];
            spot.checked_sub(self.pads[axis].0).filter(|&spot| spot < extents[axis])
        };
        (0..position.len()).map(along).collect()
    }
}
