//! `cumulative`: Running sum or product along an axis.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};

crate::operator_fields! {
    /// Running sum or product along an axis.
    pub struct Cumulative {
        /// What is accumulated.
        pub function: CumulativeFunction,
        /// The axis.
        pub axis: usize,
        /// Whether an element itself is left out.
        pub exclusive: bool,
        /// Whether it runs from the end.
        pub reverse: bool,
    }
}

crate::word_enum! {
    /// What a running reduction accumulates.
    pub enum CumulativeFunction {
        /// Sum.
        Sum = "sum",
        /// Product.
        Product = "product",
    }
}

impl Operator for Cumulative {
    const NAME: &'static str = "cumulative";

    fn category(&self) -> Category {
        Category::Anchor
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        if self.axis >= x.rank() || x.dtype == DType::Bool {
            return Err(OperatorError::types(format!("x {x} isn't a tensor of numbers with an axis {}", self.axis)));
        }
        Ok(vec![x.clone()])
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
