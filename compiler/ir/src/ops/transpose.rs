//! `transpose`: Permutes axes: axis i of the result is axis permutation[i] of x.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};

crate::operator_fields! {
    /// Permutes axes.
    pub struct Transpose {
        /// A permutation of the axes.
        pub permutation: Vec<usize>,
    }
}

impl Operator for Transpose {
    const NAME: &'static str = "transpose";

    fn category(&self) -> Category {
        Category::Movement
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        let mut sorted = self.permutation.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..x.rank()) {
            return Err(OperatorError::field(format!("{:?} isn't a permutation of the axes of {x}", self.permutation)));
        }
        let shape: Shape = self.permutation.iter().map(|&axis| x.shape[axis]).collect();
        Ok(vec![TensorType::new(x.dtype, shape)])
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
