//! `normalize`: (x - mean) / sqrt(variance + epsilon) over axes, with the biased variance; without centring, x / sqrt(mean(x^2) + epsilon).

use super::numbers::{expect_values, groups};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use super::reduce::reduced_shape;
use crate::types::Float;
use std::ops::Range;

crate::operator_fields! {
    /// (x - mean) / sqrt(variance + epsilon) over axes, with the biased variance; without centring, x / sqrt(mean(x^2) + epsilon).
    pub struct Normalize {
        /// The axes of the statistics, ascending.
        pub axes: Vec<usize>,
        /// Added to the variance.
        pub epsilon: Float,
        /// Whether the mean is subtracted.
        pub center: bool,
    }
}

impl Operator for Normalize {
    const NAME: &'static str = "normalize";
    const CATEGORY: Category = Category::Anchor;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x"]
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
        let [x] = expect_operands(operands)?;
        reduced_shape(x, &self.axes, true)?;
        if !x.dtype.is_float() {
            return Err(OperatorError::types(format!("normalize isn't defined for {}", x.dtype)));
        }
        Ok(vec![x.clone()])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let mut values = x.to_floats();
        for group in groups(x.shape(), &self.axes) {
            let count = group.len() as f64;
            let mean = if self.center { group.iter().map(|&place| values[place]).sum::<f64>() / count } else { 0.0 };
            let variance = group.iter().map(|&place| square(values[place] - mean)).sum::<f64>() / count;
            let deviation = (variance + self.epsilon.0).sqrt();
            for place in group {
                values[place] = (values[place] - mean) / deviation;
            }
        }
        Ok(vec![Tensor::from_floats(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let elements = operands[0].elements() as u64;
        let group: usize = self.axes.iter().map(|&axis| operands[0].shape[axis]).product();
        let per_element = if self.center { 5 } else { 3 };
        let per_group = 14;
        let scalar_operations = elements * per_element + elements / group.max(1) as u64 * per_group;
        Work { scalar_operations, ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let shape = generator.shape(1, 4);
        let axes = generator.axes(shape.len());
        let epsilon = Float(generator.choose(&[1e-5, 1e-3, 1.0]));
        let operator = Normalize { axes, epsilon, center: !generator.one_in(3) };
        (operator, vec![TensorType::new(generator.float_dtype(), shape)])
    }
}

fn square(x: f64) -> f64 {
    x * x
}
