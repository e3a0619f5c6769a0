//! `arg_reduce`: Index of the largest or smallest element along an axis, as i64.

use super::numbers::{expect_values, groups, order_key};
use crate::tensor::Values;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};
use super::reduce::reduced_shape;
use std::ops::Range;

crate::operator_fields! {
    /// Index of the largest or smallest element along an axis, as i64.
    pub struct ArgReduce {
        /// Which element is looked for; NaN counts as found.
        pub function: ArgFunction,
        /// The axis.
        pub axis: usize,
        /// Whether the axis stays, with extent 1.
        pub keep_axis: bool,
        /// Whether the last of equal elements counts, not the first.
        pub last: bool,
    }
}

crate::word_enum! {
    /// Which element an [`ArgReduce`] looks for.
    pub enum ArgFunction {
        /// The largest.
        Maximum = "maximum",
        /// The smallest.
        Minimum = "minimum",
    }
}

impl Operator for ArgReduce {
    const NAME: &'static str = "arg_reduce";
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
        let shape = reduced_shape(x, &[self.axis], self.keep_axis)?;
        if x.shape[self.axis] == 0 || x.dtype == DType::Bool {
            return Err(OperatorError::types(format!("there is no extreme element along axis {} of {x}", self.axis)));
        }
        Ok(vec![TensorType::new(DType::I64, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let find = |group: Vec<usize>| match x.values() {
            Values::Float(values) => self.find(group.iter().map(|&place| values[place])),
            Values::Integer(values) => {
                self.find(group.iter().map(|&place| order_key(x.ty().dtype, values[place])))
            }
        };
        let found = groups(x.shape(), &[self.axis]).map(|group| find(group) as i64).collect();
        Ok(vec![Tensor::from_integers(results[0].clone(), found)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work { scalar_operations: operands[0].elements() as u64, ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        let shape = generator.shape(1, 4);
        let operator = ArgReduce {
            function: generator.choose(ArgFunction::ALL),
            axis: generator.range(0, shape.len() - 1),
            keep_axis: generator.one_in(2),
            last: generator.one_in(3),
        };
        let dtype = generator.number_dtype();
        (operator, vec![TensorType::new(dtype, shape)])
    }
}

impl ArgReduce {
    /// The place of the extreme value. NaN, the only value that doesn't compare with itself, beats every number.
    fn find<T: PartialOrd + Copy>(&self, values: impl Iterator<Item = T>) -> usize {
        let is_nan = |value: T| value.partial_cmp(&value).is_none();
        let better = |value: T, found: T| match (is_nan(value), is_nan(found)) {
            (true, true) => self.last,
            (true, false) => true,
            (false, true) => false,
            (false, false) if value == found => self.last,
            (false, false) => (value > found) == (self.function == ArgFunction::Maximum),
        };
        let mut best: Option<(usize, T)> = None;
        for (place, value) in values.enumerate() {
            if best.is_none_or(|(_, found)| better(value, found)) {
                best = Some((place, value));
            }
        }
        best.map_or(0, |(place, _)| place)
    }
}
