//! `broadcast`: Repeats axes of extent 1, and adds leading axes, up to a shape.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};
use crate::types::broadcast_shapes;

crate::operator_fields! {
    /// Repeats axes of extent 1, and adds leading axes, up to a shape.
    pub struct Broadcast {
        /// The result's shape.
        pub shape: Shape,
    }
}

impl Operator for Broadcast {
    const NAME: &'static str = "broadcast";

    fn category(&self) -> Category {
        Category::Movement
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        let result = TensorType::new(x.dtype, &self.shape);
        if broadcast_shapes([&x.shape[..], &self.shape]).as_ref() != Some(&self.shape) {
            return Err(OperatorError::types(format!("x {x} doesn't broadcast to {result}")));
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
