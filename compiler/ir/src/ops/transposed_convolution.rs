//! `transposed_convolution`: N-D transposed convolution. x [N, spatial…, C], weights [window…, C, O / groups]; element i adds x * w at i * stride - pad + tap * dilation.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};
use super::window::Window;

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
    }
}

impl Operator for TransposedConvolution {
    const NAME: &'static str = "transposed_convolution";

    fn category(&self) -> Category {
        Category::Anchor
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
            let (before, after) = self.pads[axis];
            let extent = x.shape[axis + 1].checked_sub(1).and_then(|last| last.checked_mul(self.strides[axis]));
            let reach = weights.shape[axis].checked_sub(1).and_then(|last| last.checked_mul(self.dilations[axis]));
            let full = extent.zip(reach).and_then(|(extent, reach)| extent.checked_add(reach + self.output_pads[axis] + 1));
            let extent = full.and_then(|full| full.checked_sub(before + after)).ok_or_else(|| {
                OperatorError::types(format!("the result of x {x} and weights {weights} has no extent on spatial axis {axis}"))
            })?;
            shape.push(extent);
        }
        shape.push(weights.shape[spatial + 1] * self.groups);
        Ok(vec![TensorType::new(x.dtype, shape)])
    }

    fn evaluate(&self, _operands: &[&Tensor], _results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        Err(OperatorError::Evaluation("no evaluation yet".into()))
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(operands, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(_generator: &mut Generator) -> (Self, Vec<TensorType>) {
        todo!()
    }
}
