//! `softmax`: Softmax along an axis, or its logarithm; the maximum is subtracted first.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;

crate::operator_fields! {
    /// Softmax along an axis, or its logarithm; the maximum is subtracted first.
    pub struct Softmax {
        /// The axis.
        pub axis: usize,
        /// Whether the result is log(softmax(x)).
        pub logarithm: bool,
    }
}

impl Operator for Softmax {
    const NAME: &'static str = "softmax";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        if self.axis >= x.rank() || !x.dtype.is_float() {
            return Err(OperatorError::types(format!("x {x} isn't a float tensor with an axis {}", self.axis)));
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
