//! `transpose`: Permutes axes: axis i of the result is axis permutation[i] of x.

use super::numbers::{dot, expect_values, indices};
use crate::types::row_major_strides;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};
use std::ops::Range;

crate::operator_fields! {
    /// Permutes axes.
    pub struct Transpose {
        /// A permutation of the axes.
        pub permutation: Vec<usize>,
    }
}

impl Operator for Transpose {
    const NAME: &'static str = "transpose";
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
        let mut sorted = self.permutation.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..x.rank()) {
            return Err(OperatorError::field(format!("{:?} isn't a permutation of the axes of {x}", self.permutation)));
        }
        let shape: Shape = self.permutation.iter().map(|&axis| x.shape[axis]).collect();
        Ok(vec![TensorType::new(x.dtype, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let strides = row_major_strides(x.shape());
        let permuted: Shape = self.permutation.iter().map(|&axis| strides[axis]).collect();
        let mut sources = indices(&results[0].shape).map(|index| dot(&index, &permuted));
        Ok(vec![x.rearrange(results[0].clone(), |_| sources.next().unwrap_or_default())])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(operands, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let shape = generator.shape(0, 5);
        let mut rest: Vec<usize> = (0..shape.len()).collect();
        let mut permutation = Vec::new();
        while !rest.is_empty() {
            permutation.push(rest.remove(generator.range(0, rest.len() - 1)));
        }
        (Transpose { permutation }, vec![TensorType::new(generator.movement_dtype(), shape)])
    }
}
