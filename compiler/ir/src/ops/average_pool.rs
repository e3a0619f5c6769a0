//! `average_pool`: Mean of each window of x [N, spatial…, C].

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use super::window::Window;

crate::operator_fields! {
    /// Mean of each window of x [N, spatial…, C].
    pub struct AveragePool {
        /// Extent of the window per spatial axis.
        pub window: Vec<usize>,
        /// Step of the window per spatial axis.
        pub strides: Vec<usize>,
        /// Distance of the window's taps per spatial axis.
        pub dilations: Vec<usize>,
        /// Padding, of zeros, before and after each spatial axis.
        pub pads: Vec<(usize, usize)>,
        /// The part of the padding, next to the tensor, whose elements count in the divisor.
        pub counted_pads: Vec<(usize, usize)>,
    }
}

impl Operator for AveragePool {
    const NAME: &'static str = "average_pool";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
        let counted = self.counted_pads.len() == self.pads.len()
            && self.counted_pads.iter().zip(&self.pads).all(|(counted, pad)| counted.0 <= pad.0 && counted.1 <= pad.1);
        if !counted {
            return Err(OperatorError::field("counted_pads must not exceed pads"));
        }
        if !x.dtype.is_float() {
            return Err(OperatorError::types(format!("average_pool isn't defined for {}", x.dtype)));
        }
        Ok(vec![window.pooled(x, &self.window)?])
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
