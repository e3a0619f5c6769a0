//! `matmul`: Matrix product of the last two axes; the axes before broadcast.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};
use crate::types::broadcast_shapes;

crate::operator_fields! {
    /// Matrix product of the last two axes; the axes before broadcast.
    pub struct Matmul {
        /// Whether the left operand is [.., K, M] instead of [.., M, K].
        pub transpose_left: bool,
        /// Whether the right operand is [.., N, K] instead of [.., K, N].
        pub transpose_right: bool,
    }
}

impl Operator for Matmul {
    const NAME: &'static str = "matmul";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [left, right] = expect_operands(operands)?;
        if left.rank() < 2 || right.rank() < 2 || left.dtype != right.dtype || left.dtype == DType::Bool {
            return Err(OperatorError::types(format!("can't multiply {left} by {right}: two matrices of one type expected")));
        }
        let (left_batch, left_matrix) = left.shape.split_at(left.rank() - 2);
        let (right_batch, right_matrix) = right.shape.split_at(right.rank() - 2);
        let (m, k) = if self.transpose_left { (left_matrix[1], left_matrix[0]) } else { (left_matrix[0], left_matrix[1]) };
        let (inner, n) = if self.transpose_right { (right_matrix[1], right_matrix[0]) } else { (right_matrix[0], right_matrix[1]) };
        if k != inner {
            return Err(OperatorError::types(format!("can't multiply {left} by {right}: {k} columns meet {inner} rows")));
        }
        let mut shape = broadcast_shapes([left_batch, right_batch])
            .ok_or_else(|| OperatorError::types(format!("the leading axes of {left} and {right} don't broadcast")))?;
        shape.push(m);
        shape.push(n);
        Ok(vec![TensorType::new(left.dtype, shape)])
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
