//! `gather`: Slices of data along an axis by integer indices: the axis is replaced by the axes of the indices. Negative indices count from the end.

use super::numbers::{expect_values, resolve_index};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType};
use std::ops::Range;

crate::operator_fields! {
    /// Slices of data along an axis by integer indices.
    pub struct Gather {
        /// The axis of the data.
        pub axis: usize,
    }
}

impl Operator for Gather {
    const NAME: &'static str = "gather";
    const CATEGORY: Category = Category::Anchor;

    fn roles(&self) -> Vec<&'static str> {
        vec!["data", "indices"]
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
        let [data, indices] = expect_operands(operands)?;
        if self.axis >= data.rank() || !indices.dtype.is_integer() {
            return Err(OperatorError::types(format!("can't gather from axis {} of {data} by {indices}", self.axis)));
        }
        let mut shape = Shape::from_slice(&data.shape[..self.axis]);
        shape.extend_from_slice(&indices.shape);
        shape.extend_from_slice(&data.shape[self.axis + 1..]);
        Ok(vec![TensorType::new(data.dtype, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [data, indices] = expect_values(operands)?;
        let extent = data.shape()[self.axis];
        let dtype = indices.ty().dtype;
        let resolved = indices.to_integers().into_iter().map(|index| resolve_index(index, extent, dtype));
        let places: Vec<usize> = resolved.collect::<Result<_, _>>()?;
        let inner: usize = data.shape()[self.axis + 1..].iter().product();
        let source = |element: usize| {
            let (row, column) = (element / inner, element % inner);
            let (outer, index) = (row / places.len(), row % places.len());
            (outer * extent + places[index]) * inner + column
        };
        Ok(vec![data.rearrange(results[0].clone(), source)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let rows = Work::moving(results, results);
        Work { bytes_read: rows.bytes_read + operands[1].bytes() as u64, ..rows }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let mut data = generator.shape(1, 3);
        let axis = generator.range(0, data.len() - 1);
        // Random indices are in -5..=9.
        data[axis] = generator.range(10, 12);
        let dtype = generator.movement_dtype();
        let indices = TensorType::new(generator.integer_dtype(), generator.shape(0, 2));
        (Gather { axis }, vec![TensorType::new(dtype, data), indices])
    }
}
