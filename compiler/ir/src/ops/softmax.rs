//! `softmax`: Softmax along an axis, or its logarithm; the maximum is subtracted first.

use super::numbers::{Number, expect_values, groups};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use std::ops::Range;

crate::operator_fields! {
    /// Softmax along an axis, or its logarithm; the maximum is subtracted first.
    pub struct Softmax {
        /// The axis.
        pub axis: usize,
        /// Whether the result is log(softmax(x)).
        pub logarithm: bool,
    }
}

impl Operator for Softmax {
    const NAME: &'static str = "softmax";
    const CATEGORY: Category = Category::Anchor;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn integer_form(&self) -> IntegerForm {
        if self.logarithm { IntegerForm::None } else { IntegerForm::Softmax }
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
        if self.axis >= x.rank() || !x.dtype.is_float() {
            return Err(OperatorError::types(format!("x {x} isn't a float tensor with an axis {}", self.axis)));
        }
        Ok(vec![x.clone()])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let mut values = x.to_floats();
        for group in groups(x.shape(), &[self.axis]) {
            let largest = group.iter().fold(f64::NEG_INFINITY, |largest, &place| largest.larger(values[place]));
            let sum: f64 = group.iter().map(|&place| libm::exp(values[place] - largest)).sum();
            for place in group {
                let shifted = values[place] - largest;
                values[place] = if self.logarithm { shifted - libm::log(sum) } else { libm::exp(shifted) / sum };
            }
        }
        Ok(vec![Tensor::from_floats(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let elements = operands[0].elements() as u64;
        let rows = elements / operands[0].shape[self.axis].max(1) as u64;
        let scalar_operations = elements * 14 + rows * if self.logarithm { 10 } else { 4 };
        Work { scalar_operations, ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let shape = generator.shape(1, 4);
        let axis = generator.range(0, shape.len() - 1);
        let dtype = generator.float_dtype();
        (Softmax { axis, logarithm: generator.one_in(3) }, vec![TensorType::new(dtype, shape)])
    }
}
