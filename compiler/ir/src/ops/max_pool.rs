//! `max_pool`: Largest element of each window of x [N, spatial…, C]; padding is never chosen, NaN always.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use super::window::Window;

crate::operator_fields! {
    /// Largest element of each window of x [N, spatial…, C]; padding is never chosen, NaN always.
    pub struct MaxPool {
        /// Extent of the window per spatial axis.
        pub window: Vec<usize>,
        /// Step of the window per spatial axis.
        pub strides: Vec<usize>,
        /// Distance of the window's taps per spatial axis.
        pub dilations: Vec<usize>,
        /// Padding before and after each spatial axis.
        pub pads: Vec<(usize, usize)>,
    }
}

impl Operator for MaxPool {
    const NAME: &'static str = "max_pool";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        let window = Window { strides: &self.strides, dilations: &self.dilations, pads: &self.pads };
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
