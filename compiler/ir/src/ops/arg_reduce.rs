//! `arg_reduce`: Index of the largest or smallest element along an axis, as i64.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};
use super::reduce::reduced_shape;

crate::operator_fields! {
    /// Index of the largest or smallest element along an axis, as i64.
    pub struct ArgReduce {
        /// Which element is looked for; NaN counts as found.
        pub function: ArgFunction,
        /// The axis.
        pub axis: usize,
        /// Whether the axis stays, with extent 1.
        pub keep_axis: bool,
        /// Whether the last of equal elements counts, not the first.
        pub last: bool,
    }
}

crate::word_enum! {
    /// Which element an [`ArgReduce`] looks for.
    pub enum ArgFunction {
        /// The largest.
        Maximum = "maximum",
        /// The smallest.
        Minimum = "minimum",
    }
}

impl Operator for ArgReduce {
    const NAME: &'static str = "arg_reduce";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        let shape = reduced_shape(x, &[self.axis], self.keep_axis)?;
        if x.shape[self.axis] == 0 || x.dtype == DType::Bool {
            return Err(OperatorError::types(format!("there is no extreme element along axis {} of {x}", self.axis)));
        }
        Ok(vec![TensorType::new(DType::I64, shape)])
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
