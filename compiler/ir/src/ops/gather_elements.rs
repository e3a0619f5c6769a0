//! `gather_elements`: For each element of the indices, the element of data at the same place, but for one axis, where the index says the place. Negative indices count from the end. Other axes of the indices may be shorter than the data's.

use super::numbers::{dot, expect_values, indices as all_indices, resolve_index};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, Shape, TensorType, row_major_strides};
use std::ops::Range;

crate::operator_fields! {
    /// Elements of data at the places that the indices name along an axis.
    pub struct GatherElements {
        /// The axis of the data.
        pub axis: usize,
    }
}

impl Operator for GatherElements {
    const NAME: &'static str = "gather_elements";
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
        let fits = self.axis < data.rank()
            && data.rank() == indices.rank()
            && (0..data.rank()).all(|axis| axis == self.axis || indices.shape[axis] <= data.shape[axis]);
        if !fits || !indices.dtype.is_integer() || (data.shape[self.axis] == 0 && indices.elements() > 0) {
            return Err(OperatorError::types(format!("can't gather along axis {} of {data} by {indices}", self.axis)));
        }
        Ok(vec![TensorType::new(data.dtype, indices.shape.clone())])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [data, indices] = expect_values(operands)?;
        let strides = row_major_strides(data.shape());
        let extent = data.shape()[self.axis];
        let mut places = Vec::with_capacity(results[0].elements());
        for (mut place, index) in all_indices(indices.shape()).zip(indices.to_integers()) {
            place[self.axis] = resolve_index(index, extent, indices.ty().dtype)?;
            places.push(dot(&place, &strides));
        }
        Ok(vec![data.rearrange(results[0].clone(), |element| places[element])])
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
        let mut wanted: Shape = data.iter().map(|&extent| generator.range(1, extent)).collect();
        wanted[axis] = generator.range(0, 13);
        let dtype = generator.choose(&[DType::F32, DType::F32, DType::I64, DType::I8, DType::Bool]);
        let indices = TensorType::new(generator.choose(&[DType::I64, DType::I32, DType::U8]), wanted);
        (GatherElements { axis }, vec![TensorType::new(dtype, data), indices])
    }
}
