//! `search_sorted`: How many elements of a sorted sequence stand before each value: the place where it would be inserted. A sequence with several axes is sorted along the last one, and each row belongs to the values at the same place of the other axes. NaN stands behind all numbers.

use super::numbers::expect_values;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::{Tensor, Values};
use crate::types::{DType, TensorType};
use std::ops::Range;

crate::operator_fields! {
    /// How many elements of a sorted sequence stand before each value.
    pub struct SearchSorted {
        /// Whether equal elements stand before a value.
        pub right: bool,
    }
}

impl Operator for SearchSorted {
    const NAME: &'static str = "search_sorted";
    const CATEGORY: Category = Category::Anchor;

    fn roles(&self) -> Vec<&'static str> {
        vec!["sequence", "values"]
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
        let [sequence, values] = expect_operands(operands)?;
        let rows = sequence.shape.split_last().map(|(_, rows)| rows);
        let fits = rows.is_some_and(|rows| {
            rows.is_empty() || values.shape.split_last().is_some_and(|(_, outer)| outer == rows)
        });
        if !fits || sequence.dtype != values.dtype || sequence.dtype == DType::Bool {
            return Err(OperatorError::types(format!("can't look for {values} in the sorted sequence {sequence}")));
        }
        Ok(vec![TensorType::new(DType::I64, values.shape.clone())])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [sequence, values] = expect_values(operands)?;
        let dtype = sequence.ty().dtype;
        let counts = match (sequence.values(), values.values()) {
            (Values::Integer(_), Values::Integer(_)) if dtype == DType::U64 => {
                // As bits they would have a sign.
                let unsigned = |tensor: &Tensor| tensor.to_integers().into_iter().map(|x| x as u64).collect::<Vec<u64>>();
                self.counts(sequence.shape(), values.shape(), &unsigned(sequence), &unsigned(values))
            }
            (Values::Integer(sorted), Values::Integer(wanted)) => {
                self.counts(sequence.shape(), values.shape(), sorted, wanted)
            }
            (Values::Float(sorted), Values::Float(wanted)) => {
                self.counts(sequence.shape(), values.shape(), sorted, wanted)
            }
            _ => return Err(super::numbers::mixed_kinds()),
        };
        Ok(vec![Tensor::from_integers(results[0].clone(), counts)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let length = operands[0].shape.last().copied().unwrap_or(0) as u64;
        let scalar_operations = operands[1].elements() as u64 * length;
        Work { scalar_operations, ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let values = generator.shape(1, 3);
        let mut sequence = if generator.one_in(2) { values.clone() } else { values[..1].into() };
        let last = sequence.len() - 1;
        sequence[last] = generator.range(1, 9);
        let dtype = generator.number_dtype();
        let operator = SearchSorted { right: generator.one_in(2) };
        (operator, vec![TensorType::new(dtype, sequence), TensorType::new(dtype, values)])
    }
}

impl SearchSorted {
    /// The elements of its row that stand before each value.
    fn counts<T: PartialOrd>(&self, sequence: &[usize], values: &[usize], sorted: &[T], wanted: &[T]) -> Vec<i64> {
        let length = sequence.last().copied().unwrap_or(0);
        let shared = sequence.len() == 1;
        let columns = values.last().copied().unwrap_or(1).max(1);
        let before = |element: &T, value: &T| match self.right {
            false => !element.ge(value),
            true => !element.gt(value),
        };
        let count = |(place, value): (usize, &T)| {
            let row = if shared { 0 } else { place / columns };
            sorted[row * length..][..length].iter().filter(|element| before(element, value)).count() as i64
        };
        wanted.iter().enumerate().map(count).collect()
    }
}
