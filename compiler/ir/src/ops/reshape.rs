//! `reshape`: The same elements in the same order under another shape.

use super::numbers::expect_values;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};
use std::ops::Range;

crate::operator_fields! {
    /// The same elements in the same order under another shape.
    pub struct Reshape {
        /// The new shape, all extents given.
        pub shape: Shape,
    }
}

impl Operator for Reshape {
    const NAME: &'static str = "reshape";
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
        if result.checked_bytes() != Some(x.bytes()) {
            return Err(OperatorError::types(format!("x {x} doesn't have as many elements as {result}")));
        }
        Ok(vec![result])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        Ok(vec![x.rearrange(results[0].clone(), |element| element)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(operands, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let x = generator.shape(0, 4);
        let mut shape = Shape::new();
        let mut rest: usize = x.iter().product();
        while rest > 1 {
            let divisors: Vec<usize> = (1..=rest).filter(|divisor| rest.is_multiple_of(*divisor)).collect();
            let extent = if shape.len() == 3 { rest } else { generator.choose(&divisors) };
            shape.push(extent);
            rest /= extent;
        }
        if generator.one_in(3) {
            shape.insert(generator.range(0, shape.len()), 1);
        }
        (Reshape { shape }, vec![TensorType::new(generator.movement_dtype(), x)])
    }
}
