//! `concat`: Joins tensors along an axis.

use crate::tensor::Values;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchRead, PatchReads, RowReads, RowWindow, Work};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use std::ops::Range;

crate::operator_fields! {
    /// Joins tensors along an axis.
    pub struct Concat {
        /// The axis.
        pub axis: usize,
    }
}

impl Operator for Concat {
    const NAME: &'static str = "concat";
    const CATEGORY: Category = Category::Movement;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn integer_form(&self) -> IntegerForm {
        IntegerForm::Elements
    }

    fn by_rows(&self, operands: &[TensorType]) -> Option<(Self, RowReads)> {
        let has_rows = operands.iter().all(|x| x.rank() > 2 && x.shape[0] == 1);
        (self.axis > 1 && has_rows).then(|| (self.clone(), vec![Some(RowWindow::ROW); operands.len()]))
    }

    fn patch(&self, operands: &[TensorType], rows: Range<usize>) -> Option<(Self, PatchReads)> {
        let has_rows = self.axis == 3 && operands.iter().all(|x| x.rank() == 4 && x.shape[0] == 1);
        has_rows.then(|| (self.clone(), vec![PatchRead::Rows(rows); operands.len()]))
    }

    fn share_of_rows(&self, _operands: &[TensorType], _rows: usize) -> Option<(Self, f64)> {
        None
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let Some(first) = operands.first() else {
            return Err(OperatorError::OperandCount { expected: "at least 1".into(), found: 0 });
        };
        let mut result = TensorType::new(first.dtype, &first.shape);
        for (index, x) in operands.iter().enumerate() {
            let fits = x.dtype == first.dtype
                && x.rank() == first.rank()
                && self.axis < x.rank()
                && (0..x.rank()).all(|axis| axis == self.axis || x.shape[axis] == first.shape[axis]);
            if !fits {
                return Err(OperatorError::types(format!("operand {index} {x} doesn't join {first} along axis {}", self.axis)));
            }
        }
        result.shape[self.axis] = operands.iter().map(|x| x.shape[self.axis]).sum();
        Ok(vec![result])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let Some(first) = operands.first() else {
            return Err(OperatorError::OperandCount { expected: "at least 1".into(), found: 0 });
        };
        let outer: usize = first.shape()[..self.axis].iter().product();
        let values = if results[0].dtype.is_float() {
            let parts: Vec<Vec<f64>> = operands.iter().map(|x| x.to_floats()).collect();
            Values::Float(join(&parts, outer))
        } else {
            let parts: Vec<Vec<i64>> = operands.iter().map(|x| x.to_integers()).collect();
            Values::Integer(join(&parts, outer))
        };
        Ok(vec![Tensor::from_values(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(operands, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let shape = generator.shape(1, 4);
        let axis = generator.range(0, shape.len() - 1);
        let dtype = generator.movement_dtype();
        let part = |generator: &mut Generator| {
            let mut part = shape.clone();
            part[axis] = generator.extent();
            TensorType::new(dtype, part)
        };
        let operands = (0..generator.range(1, 4)).map(|_| part(generator)).collect();
        (Concat { axis }, operands)
    }
}

/// Interleaves the parts' runs, one of each part for every outer index.
fn join<T: Copy>(parts: &[Vec<T>], outer: usize) -> Vec<T> {
    let run = |part: &Vec<T>| part.len() / outer.max(1);
    (0..outer).flat_map(|row| parts.iter().flat_map(move |part| part[row * run(part)..][..run(part)].to_vec())).collect()
}
