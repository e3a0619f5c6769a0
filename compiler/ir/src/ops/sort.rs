//! `sort`: The first elements of an axis in order, and their indices as i64. Equal elements keep their order; NaN counts as larger than every number.

use super::numbers::{Number, expect_values, groups, order_key};
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, count_product, expect_operands};
use crate::scalar::Expression;
use crate::tensor::{Tensor, Values};
use crate::types::{DType, TensorType};
use std::cmp::Ordering;
use std::ops::Range;

crate::operator_fields! {
    /// The first elements of an axis in order, and their indices as i64.
    pub struct Sort {
        /// The axis.
        pub axis: usize,
        /// How many elements of it are wanted.
        pub count: usize,
        /// Whether the largest comes first.
        pub descending: bool,
    }
}

impl Operator for Sort {
    const NAME: &'static str = "sort";
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
        if self.axis >= x.rank() || self.count > x.shape[self.axis] {
            let (count, axis) = (self.count, self.axis);
            return Err(OperatorError::types(format!("there are no {count} ordered elements along axis {axis} of {x}")));
        }
        let mut shape = x.shape.clone();
        shape[self.axis] = self.count;
        Ok(vec![TensorType::new(x.dtype, shape.clone()), TensorType::new(DType::I64, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let dtype = x.ty().dtype;
        let mut sources = vec![0; results[0].elements()];
        let mut indices = vec![0; results[0].elements()];
        for (from, to) in groups(x.shape(), &[self.axis]).zip(groups(&results[0].shape, &[self.axis])) {
            let order = match x.values() {
                Values::Float(values) => self.order(from.iter().map(|&place| values[place])),
                Values::Integer(values) => self.order(from.iter().map(|&place| order_key(dtype, values[place]))),
            };
            for (&place, index) in to.iter().zip(order) {
                (sources[place], indices[place]) = (from[index], index as i64);
            }
        }
        let values = x.rearrange(results[0].clone(), |element| sources[element]);
        Ok(vec![values, Tensor::from_integers(results[1].clone(), indices)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let x = &operands[0];
        let rounds = self.count.min(x.shape[self.axis].max(2).ilog2() as usize);
        Work { scalar_operations: count_product([x.elements(), rounds, 2]), ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let mut shape = generator.shape(1, 3);
        let axis = generator.range(0, shape.len() - 1);
        if generator.one_in(2) {
            shape[axis] = generator.range(1, 40);
        }
        let count = if generator.one_in(2) { shape[axis] } else { generator.range(0, shape[axis]) };
        let dtype = generator.choose(&[DType::F32, DType::F32, DType::F64, DType::I64, DType::I8, DType::U8, DType::Bool]);
        (Sort { axis, count, descending: generator.one_in(2) }, vec![TensorType::new(dtype, shape)])
    }
}

impl Sort {
    /// Places of the elements in order.
    fn order<T: Number>(&self, values: impl Iterator<Item = T>) -> Vec<usize> {
        let values: Vec<T> = values.collect();
        // NaN, the only value that doesn't compare with itself, goes behind all numbers.
        let is_nan = |value: T| value.partial_cmp(&value).is_none();
        let compare = |x: T, y: T| x.partial_cmp(&y).unwrap_or_else(|| is_nan(x).cmp(&is_nan(y)));
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&left, &right| {
            let ordering: Ordering = compare(values[left], values[right]);
            if self.descending { ordering.reverse() } else { ordering }
        });
        order
    }
}
