//! `input`: an input of the graph. It has no operands; its type is its field.

use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};
use std::ops::Range;

crate::operator_fields! {
    /// An input of the graph.
    pub struct Input {
        /// Type of the tensor that the caller passes.
        pub ty: TensorType,
    }
}

impl Operator for Input {
    const NAME: &'static str = "input";
    const CATEGORY: Category = Category::Source;

    fn roles(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::None
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
        let [] = expect_operands(operands)?;
        Ok(vec![self.ty.clone()])
    }

    fn evaluate(&self, _operands: &[&Tensor], _results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        Err(OperatorError::Evaluation("an input has the value that the caller gives it".into()))
    }

    fn work(&self, _operands: &[TensorType], _results: &[TensorType]) -> Work {
        Work::default()
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        (Input { ty: TensorType::new(DType::F32, generator.shape(0, 4)) }, Vec::new())
    }
}
