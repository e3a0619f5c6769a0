//! `convolution`: N-D cross-correlation. x [N, spatial…, C], weights [window…, C / groups, O] give [N, spatial…, O]; zero padding.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};
use super::window::Window;

crate::operator_fields! {
    /// N-D cross-correlation.
    pub struct Convolution {
        /// Step of the window per spatial axis.
        pub strides: Vec<usize>,
        /// Distance of the window's taps per spatial axis.
        pub dilations: Vec<usize>,
        /// Zeros before and after each spatial axis.
        pub pads: Vec<(usize, usize)>,
        /// Groups that split input and output channels; depthwise when equal to C.
        pub groups: usize,
    }
}

impl Operator for Convolution {
    const NAME: &'static str = "convolution";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x, weights] = expect_operands(operands)?;
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let spatial = window.spatial_rank(x, weights, self.groups)?;
        let (channels, outputs) = (x.shape[spatial + 1], weights.shape[spatial + 1]);
        if weights.shape[spatial] * self.groups != channels {
            return Err(OperatorError::types(format!(
                "weights {weights} take {} channels in each of {} groups, x {x} has {channels}",
                weights.shape[spatial], self.groups
            )));
        }
        if !outputs.is_multiple_of(self.groups) {
            return Err(OperatorError::types(format!("{outputs} output channels don't split into {} groups", self.groups)));
        }
        let mut shape = Shape::from_slice(&[x.shape[0]]);
        for axis in 0..spatial {
            shape.push(window.output_extent(axis, x.shape[axis + 1], weights.shape[axis])?);
        }
        shape.push(outputs);
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
