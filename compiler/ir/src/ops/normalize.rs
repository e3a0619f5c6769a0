//! `normalize`: (x - mean) / sqrt(variance + epsilon) over axes, with the biased variance; without centring, x / sqrt(mean(x^2) + epsilon).

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use super::reduce::reduced_shape;
use crate::types::Float;

crate::operator_fields! {
    /// (x - mean) / sqrt(variance + epsilon) over axes, with the biased variance; without centring, x / sqrt(mean(x^2) + epsilon).
    pub struct Normalize {
        /// The axes of the statistics, ascending.
        pub axes: Vec<usize>,
        /// Added to the variance.
        pub epsilon: Float,
        /// Whether the mean is subtracted.
        pub center: bool,
    }
}

impl Operator for Normalize {
    const NAME: &'static str = "normalize";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        reduced_shape(x, &self.axes, true)?;
        if !x.dtype.is_float() {
            return Err(OperatorError::types(format!("normalize isn't defined for {}", x.dtype)));
        }
        Ok(vec![x.clone()])
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
