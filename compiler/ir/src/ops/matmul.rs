//! `matmul`: Matrix product of the last two axes; the axes before broadcast.

use super::elementwise::broadcast_indices;
use super::numbers::{Number, expect_values, mixed_kinds};
use super::sums::{self, sums_dtype};
use crate::tensor::Values;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, count_product, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};
use crate::types::broadcast_shapes;
use std::ops::Range;

crate::operator_fields! {
    /// Matrix product of the last two axes; the axes before broadcast.
    pub struct Matmul {
        /// Whether the left operand is [.., K, M] instead of [.., M, K].
        pub transpose_left: bool,
        /// Whether the right operand is [.., N, K] instead of [.., K, N].
        pub transpose_right: bool,
        /// Type of the sums where both operands are integers of 8 or 16 bits, of types of their own, or `f32` where the left one is `f32`
        /// and the right one's elements are halves; `none` for sums of the operands' type.
        pub sums: Option<DType> = None,
    }
}

impl Operator for Matmul {
    const NAME: &'static str = "matmul";
    const CATEGORY: Category = Category::Accumulation;

    fn roles(&self) -> Vec<&'static str> {
        vec!["left", "right"]
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::Products
    }

    fn by_rows(&self, _operands: &[TensorType]) -> Option<(Self, RowReads)> {
        None
    }

    fn patch(&self, _operands: &[TensorType], _rows: Range<usize>) -> Option<(Self, PatchReads)> {
        None
    }

    fn share_of_rows(&self, _operands: &[TensorType], _rows: usize) -> Option<(Self, f64)> {
        None
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [left, right] = expect_operands(operands)?;
        if left.rank() < 2 || right.rank() < 2 {
            return Err(OperatorError::types(format!("can't multiply {left} by {right}: two matrices expected")));
        }
        let dtype = sums_dtype(self.sums, left, right)?;
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
        Ok(vec![TensorType::new(dtype, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [left, right] = expect_values(operands)?;
        let values = match (left.values(), right.values()) {
            (Values::Float(a), Values::Float(b)) => {
                Values::Float(self.multiply(left.shape(), a, right.shape(), b, &results[0].shape))
            }
            (Values::Integer(a), Values::Integer(b)) => {
                Values::Integer(self.multiply(left.shape(), a, right.shape(), b, &results[0].shape))
            }
            _ => return Err(mixed_kinds()),
        };
        Ok(vec![Tensor::from_values(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let shape = &operands[0].shape;
        let inner = shape[shape.len() - if self.transpose_left { 2 } else { 1 }];
        Work { macs: count_product([results[0].elements(), inner]), ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let (left_dtype, right_dtype, sums) = sums::sample(generator);
        let operator = Matmul { transpose_left: generator.one_in(4), transpose_right: generator.one_in(3), sums };
        let (m, n, k) = (generator.extent(), generator.extent(), generator.extent());
        let batch = generator.shape(0, 2);
        let (mut left, mut right) = (generator.broadcastable(&batch), batch);
        left.extend(if operator.transpose_left { [k, m] } else { [m, k] });
        right.extend(if operator.transpose_right { [n, k] } else { [k, n] });
        (operator, vec![TensorType::new(left_dtype, left), TensorType::new(right_dtype, right)])
    }
}

impl Matmul {
    fn multiply<T: Number>(&self, a_shape: &[usize], a: &[T], b_shape: &[usize], b: &[T], y_shape: &[usize]) -> Vec<T> {
        let (a_batch, a_matrix) = a_shape.split_at(a_shape.len() - 2);
        let b_batch = &b_shape[..b_shape.len() - 2];
        let (batch, result) = y_shape.split_at(y_shape.len() - 2);
        let (m, n) = (result[0], result[1]);
        let k = if self.transpose_left { a_matrix[0] } else { a_matrix[1] };
        let (a_row, a_column) = if self.transpose_left { (1, m) } else { (k, 1) };
        let (b_row, b_column) = if self.transpose_right { (1, k) } else { (n, 1) };
        let mut y = Vec::with_capacity(y_shape.iter().product());
        for (a_index, b_index) in broadcast_indices(a_batch, batch).into_iter().zip(broadcast_indices(b_batch, batch)) {
            let (a, b) = (&a[a_index * m * k..][..m * k], &b[b_index * k * n..][..k * n]);
            for row in 0..m {
                let mut sums = vec![T::ZERO; n];
                for inner in 0..k {
                    let factor = a[row * a_row + inner * a_column];
                    for (column, sum) in sums.iter_mut().enumerate() {
                        *sum = sum.add(factor.multiply(b[inner * b_row + column * b_column]));
                    }
                }
                y.extend(sums);
            }
        }
        y
    }
}
