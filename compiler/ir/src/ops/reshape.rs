//! `reshape`: The same elements in the same order under another shape.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};

crate::operator_fields! {
    /// The same elements in the same order under another shape.
    pub struct Reshape {
        /// The new shape, all extents given.
        pub shape: Shape,
    }
}

impl Operator for Reshape {
    const NAME: &'static str = "reshape";

    fn category(&self) -> Category {
        Category::Movement
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        let result = TensorType::new(x.dtype, &self.shape);
        if result.checked_bytes() != Some(x.bytes()) {
            return Err(OperatorError::types(format!("x {x} doesn't have as many elements as {result}")));
        }
        Ok(vec![result])
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
