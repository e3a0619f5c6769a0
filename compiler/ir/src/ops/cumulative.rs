//! `cumulative`: Running sum or product along an axis.

use super::numbers::{Number, expect_values, groups};
use crate::tensor::Values;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};
use std::ops::Range;

crate::operator_fields! {
    /// Running sum or product along an axis.
    pub struct Cumulative {
        /// What is accumulated.
        pub function: CumulativeFunction,
        /// The axis.
        pub axis: usize,
        /// Whether an element itself is left out.
        pub exclusive: bool,
        /// Whether it runs from the end.
        pub reverse: bool,
    }
}

crate::word_enum! {
    /// What a running reduction accumulates.
    pub enum CumulativeFunction {
        /// Sum.
        Sum = "sum",
        /// Product.
        Product = "product",
    }
}

impl Operator for Cumulative {
    const NAME: &'static str = "cumulative";
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
        if self.axis >= x.rank() || x.dtype == DType::Bool {
            return Err(OperatorError::types(format!("x {x} isn't a tensor of numbers with an axis {}", self.axis)));
        }
        Ok(vec![x.clone()])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let values = match x.values() {
            Values::Float(values) => Values::Float(self.run(x.shape(), values, 1.0)),
            Values::Integer(values) => Values::Integer(self.run(x.shape(), values, 1)),
        };
        Ok(vec![Tensor::from_values(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work { scalar_operations: operands[0].elements() as u64, ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let shape = generator.shape(1, 4);
        let operator = Cumulative {
            function: generator.choose(CumulativeFunction::ALL),
            axis: generator.range(0, shape.len() - 1),
            exclusive: generator.one_in(2),
            reverse: generator.one_in(2),
        };
        let dtype = generator.number_dtype();
        (operator, vec![TensorType::new(dtype, shape)])
    }
}

impl Cumulative {
    fn run<T: Number>(&self, shape: &[usize], values: &[T], one: T) -> Vec<T> {
        let mut results = values.to_vec();
        for mut group in groups(shape, &[self.axis]) {
            if self.reverse {
                group.reverse();
            }
            let mut total = if self.function == CumulativeFunction::Sum { T::ZERO } else { one };
            for place in group {
                let before = total;
                total = match self.function {
                    CumulativeFunction::Sum => total.add(values[place]),
                    CumulativeFunction::Product => total.multiply(values[place]),
                };
                results[place] = if self.exclusive { before } else { total };
            }
        }
        results
    }
}
