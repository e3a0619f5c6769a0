//! `concat`: Joins tensors along an axis.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;

crate::operator_fields! {
    /// Joins tensors along an axis.
    pub struct Concat {
        /// The axis.
        pub axis: usize,
    }
}

impl Operator for Concat {
    const NAME: &'static str = "concat";

    fn category(&self) -> Category {
        Category::Movement
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let Some(first) = operands.first() else {
            return Err(OperatorError::OperandCount { expected: "at least 1".into(), found: 0 });
        };
        let mut result = TensorType::new(first.dtype, &first.shape);
        for (index, x) in operands.iter().enumerate() {
            let fits = x.dtype == first.dtype
                && x.rank() == first.rank()
                && self.axis < x.rank()
                && (0..x.rank()).all(|axis| axis == self.axis || x.shape[axis] == first.shape[axis]);
            if !fits {
                return Err(OperatorError::types(format!("operand {index} {x} doesn't join {first} along axis {}", self.axis)));
            }
        }
        result.shape[self.axis] = operands.iter().map(|x| x.shape[self.axis]).sum();
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
