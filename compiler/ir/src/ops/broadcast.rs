//! `broadcast`: Repeats axes of extent 1, and adds leading axes, up to a shape.

use super::elementwise::broadcast_indices;
use super::numbers::expect_values;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};
use crate::types::broadcast_shapes;
use std::ops::Range;

crate::operator_fields! {
    /// Repeats axes of extent 1, and adds leading axes, up to a shape.
    pub struct Broadcast {
        /// The result's shape.
        pub shape: Shape,
    }
}

impl Operator for Broadcast {
    const NAME: &'static str = "broadcast";
    const CATEGORY: Category = Category::View;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::Elements
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
        let [x] = expect_operands(operands)?;
        let result = TensorType::new(x.dtype, &self.shape);
        if broadcast_shapes([&x.shape[..], &self.shape]).as_ref() != Some(&self.shape) {
            return Err(OperatorError::types(format!("x {x} doesn't broadcast to {result}")));
        }
        Ok(vec![result])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let sources = broadcast_indices(x.shape(), &results[0].shape);
        Ok(vec![x.rearrange(results[0].clone(), |element| sources[element])])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(operands, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let shape = generator.shape(0, 4);
        let x = generator.broadcastable(&shape);
        let dtype = generator.movement_dtype();
        (Broadcast { shape }, vec![TensorType::new(dtype, x)])
    }
}
