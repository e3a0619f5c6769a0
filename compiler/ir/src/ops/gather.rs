//! `gather`: Slices of data along an axis by integer indices: the axis is replaced by the axes of the indices. Negative indices count from the end.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};

crate::operator_fields! {
    /// Slices of data along an axis by integer indices.
    pub struct Gather {
        /// The axis of the data.
        pub axis: usize,
    }
}

impl Operator for Gather {
    const NAME: &'static str = "gather";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [data, indices] = expect_operands(operands)?;
        if self.axis >= data.rank() || !indices.dtype.is_integer() {
            return Err(OperatorError::types(format!("can't gather from axis {} of {data} by {indices}", self.axis)));
        }
        let mut shape = Shape::from_slice(&data.shape[..self.axis]);
        shape.extend_from_slice(&indices.shape);
        shape.extend_from_slice(&data.shape[self.axis + 1..]);
        Ok(vec![TensorType::new(data.dtype, shape)])
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
