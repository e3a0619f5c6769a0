//! `adaptive_pool`: Mean or maximum over cells floor(o * I / O) .. ceil((o + 1) * I / O) of x [N, spatial…, C].

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;

crate::operator_fields! {
    /// Mean or maximum over cells floor(o * I / O) .
    pub struct AdaptivePool {
        /// What is computed in each cell.
        pub function: PoolFunction,
        /// Extents of the result's spatial axes.
        pub sizes: Vec<usize>,
    }
}

crate::word_enum! {
    /// What a pooling cell computes.
    pub enum PoolFunction {
        /// Arithmetic mean.
        Mean = "mean",
        /// Largest element; NaN wins.
        Maximum = "maximum",
    }
}

impl Operator for AdaptivePool {
    const NAME: &'static str = "adaptive_pool";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        if x.rank() != self.sizes.len() + 2 || self.sizes.contains(&0) || x.shape[1..x.rank() - 1].contains(&0) {
            return Err(OperatorError::types(format!("x {x} doesn't have {} spatial axes, none empty", self.sizes.len())));
        }
        if self.function == PoolFunction::Mean && !x.dtype.is_float() {
            return Err(OperatorError::types(format!("a mean isn't defined for {}", x.dtype)));
        }
        let mut shape = x.shape.clone();
        shape[1..=self.sizes.len()].copy_from_slice(&self.sizes);
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
