//! `slice`: Every step-th element of each axis from a start on; a negative step walks backwards.

use super::numbers::{expect_values, indices};
use crate::types::row_major_strides;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::TensorType;
use std::ops::Range;

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

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let strides = row_major_strides(x.shape());
        let place = |axis: usize, index: usize| (self.starts[axis] as i64 + index as i64 * self.steps[axis]) as usize;
        let mut sources = indices(&results[0].shape).map(|index| -> usize {
            index.iter().enumerate().map(|(axis, &index)| place(axis, index) * strides[axis]).sum()
        });
        Ok(vec![x.rearrange(results[0].clone(), |_| sources.next().unwrap_or_default())])
    }

    fn work(&self, _operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(results, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let shape = generator.shape(0, 4);
        let (mut starts, mut sizes, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        for &extent in &shape {
            let step: i64 = generator.choose(&[1, 1, 1, 2, 3, -1, -2]);
            let start = if generator.one_in(2) && step > 0 { 0 } else { generator.range(0, extent - 1) };
            let room = if step > 0 { extent - 1 - start } else { start };
            starts.push(start);
            sizes.push(generator.range(1, room / step.unsigned_abs() as usize + 1));
            steps.push(step);
        }
        (Slice { starts, sizes, steps }, vec![TensorType::new(generator.movement_dtype(), shape)])
    }
}
