//! `scatter`: A copy of data in which updates are written, or combined with what is there, at the places that the indices name along an axis. The indices broadcast to the updates' shape; all three have one rank, and other axes of the updates may be shorter than the data's. Updates come in row-major order, so that the last one of a place stays; negative indices count from the end.

use super::numbers::{Number, dot, expect_values, indices as all_indices, mixed_kinds, order_key, resolve_index};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::{Tensor, Values};
use crate::types::{DType, Shape, TensorType, row_major_strides};
use std::ops::Range;

crate::operator_fields! {
    /// A copy of data with updates at the places that the indices name along an axis.
    pub struct Scatter {
        /// The axis of the data.
        pub axis: usize,
        /// How an update and the element at its place combine.
        pub reduction: ScatterReduction,
    }
}

crate::word_enum! {
    /// How a [`Scatter`] combines an update with the element at its place.
    pub enum ScatterReduction {
        /// The update replaces it.
        Replace = "replace",
        /// Their sum.
        Sum = "sum",
        /// Their product.
        Product = "product",
        /// The larger one; NaN wins.
        Maximum = "maximum",
        /// The smaller one; NaN wins.
        Minimum = "minimum",
    }
}

impl Operator for Scatter {
    const NAME: &'static str = "scatter";
    const CATEGORY: Category = Category::Anchor;

    fn roles(&self) -> Vec<&'static str> {
        vec!["data", "indices", "updates"]
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
        let [data, indices, updates] = expect_operands(operands)?;
        let rank = data.rank();
        let fits = self.axis < rank
            && indices.rank() == rank
            && updates.rank() == rank
            && (0..rank).all(|axis| axis == self.axis || updates.shape[axis] <= data.shape[axis])
            && (0..rank).all(|axis| indices.shape[axis] == 1 || indices.shape[axis] == updates.shape[axis])
            && (data.shape[self.axis] > 0 || updates.elements() == 0);
        let numbers = data.dtype != DType::Bool || self.reduction == ScatterReduction::Replace;
        if !fits || !numbers || !indices.dtype.is_integer() || data.dtype != updates.dtype {
            return Err(OperatorError::types(format!(
                "can't scatter {updates} along axis {} of {data} by {indices}",
                self.axis
            )));
        }
        Ok(vec![TensorType::new(data.dtype, data.shape.clone())])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [data, indices, updates] = expect_values(operands)?;
        let places = self.places(data, indices, updates)?;
        let values = match (data.values(), updates.values()) {
            (Values::Float(data), Values::Float(updates)) => Values::Float(self.combine(data, updates, &places)),
            (Values::Integer(data), Values::Integer(updates)) => {
                let dtype = results[0].dtype;
                let ordered = matches!(self.reduction, ScatterReduction::Maximum | ScatterReduction::Minimum);
                let key = |&value: &i64| if ordered { order_key(dtype, value) } else { value };
                let (data, updates): (Vec<i64>, Vec<i64>) =
                    (data.iter().map(key).collect(), updates.iter().map(key).collect());
                Values::Integer(self.combine(&data, &updates, &places).iter().map(key).collect())
            }
            _ => return Err(mixed_kinds()),
        };
        Ok(vec![Tensor::from_values(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let updates = operands[2].elements() as u64;
        let arithmetic = if self.reduction == ScatterReduction::Replace { 0 } else { updates };
        Work { scalar_operations: arithmetic, ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let mut data = generator.shape(1, 3);
        let axis = generator.range(0, data.len() - 1);
        // Random indices are in -5..=9.
        data[axis] = generator.range(10, 12);
        let mut updates: Shape =
            data.iter().map(|&extent| if generator.one_in(2) { extent } else { generator.range(1, extent) }).collect();
        updates[axis] = generator.range(0, 5);
        let indices: Shape = updates.iter().map(|&extent| if generator.one_in(3) { 1 } else { extent }).collect();
        let reduction = generator.choose(ScatterReduction::ALL);
        let mut dtypes = vec![DType::F32, DType::F32, DType::F64, DType::I64, DType::I8, DType::U8];
        if reduction == ScatterReduction::Replace {
            dtypes.push(DType::Bool);
        }
        let dtype = generator.choose(&dtypes);
        let indices = TensorType::new(generator.choose(&[DType::I64, DType::I32, DType::I8, DType::U8]), indices);
        let operands = vec![TensorType::new(dtype, data), indices, TensorType::new(dtype, updates)];
        (Scatter { axis, reduction }, operands)
    }
}

impl Scatter {
    /// Where each update goes in the flat data.
    fn places(&self, data: &Tensor, indices: &Tensor, updates: &Tensor) -> Result<Vec<usize>, OperatorError> {
        let (data_strides, own) = (row_major_strides(data.shape()), row_major_strides(indices.shape()));
        let repeated = own.iter().zip(indices.shape()).map(|(&stride, &extent)| if extent == 1 { 0 } else { stride });
        let index_strides: Shape = repeated.collect();
        let extent = data.shape()[self.axis];
        let values = indices.to_integers();
        all_indices(updates.shape())
            .map(|mut place| {
                let index = values[dot(&place, &index_strides)];
                place[self.axis] = resolve_index(index, extent, indices.ty().dtype)?;
                Ok(dot(&place, &data_strides))
            })
            .collect()
    }

    fn combine<T: Number>(&self, data: &[T], updates: &[T], places: &[usize]) -> Vec<T> {
        let mut results = data.to_vec();
        for (&place, &update) in places.iter().zip(updates) {
            let old = results[place];
            results[place] = match self.reduction {
                ScatterReduction::Replace => update,
                ScatterReduction::Sum => old.add(update),
                ScatterReduction::Product => old.multiply(update),
                ScatterReduction::Maximum => old.larger(update),
                ScatterReduction::Minimum => old.smaller(update),
            };
        }
        results
    }
}
