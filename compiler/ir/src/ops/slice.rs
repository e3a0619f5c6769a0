//! `slice`: Every step-th element of each axis from a start on; a negative step walks backwards.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;

crate::operator_fields! {
    /// Every step-th element of each axis from a start on; a negative step walks backwards.
    pub struct Slice {
        /// First element per axis.
        pub starts: Vec<usize>,
        /// Number of elements per axis.
        pub sizes: Vec<usize>,
        /// Distance of the elements per axis, not 0.
        pub steps: Vec<i64>,
    }
}

impl Operator for Slice {
    const NAME: &'static str = "slice";

    fn category(&self) -> Category {
        Category::Movement
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        let rank = x.rank();
        if self.starts.len() != rank || self.sizes.len() != rank || self.steps.len() != rank {
            return Err(OperatorError::field(format!("starts, sizes and steps need an entry per axis of {x}")));
        }
        for axis in 0..rank {
            let (start, size, step) = (self.starts[axis] as i128, self.sizes[axis] as i128, i128::from(self.steps[axis]));
            let last = start + (size - 1) * step;
            let inside = 0..x.shape[axis] as i128;
            if step == 0 || (size > 0 && !(inside.contains(&start) && inside.contains(&last))) {
                return Err(OperatorError::field(format!("{size} elements from {start} by {step} leave axis {axis} of {x}")));
            }
        }
        Ok(vec![TensorType::new(x.dtype, &self.sizes)])
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
