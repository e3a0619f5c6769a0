//! `reduce`: Reduction over axes.

use super::numbers::{Number, expect_values, groups, order_key};
use crate::tensor::Values;
use crate::generator::Generator;
use crate::operator::{Category, IntegerForm, Operator, OperatorError, PatchReads, RowReads, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, Shape, TensorType};
use std::ops::Range;

crate::operator_fields! {
    /// Reduction over axes.
    pub struct Reduce {
        /// What combines the elements.
        pub function: ReduceFunction,
        /// The axes, ascending.
        pub axes: Vec<usize>,
        /// Whether reduced axes stay, with extent 1.
        pub keep_axes: bool,
    }
}

crate::word_enum! {
    /// What combines the elements of a reduction.
    pub enum ReduceFunction {
        /// Sum.
        Sum = "sum",
        /// Arithmetic mean.
        Mean = "mean",
        /// Product.
        Product = "product",
        /// Largest element; NaN wins.
        Maximum = "maximum",
        /// Smallest element; NaN wins.
        Minimum = "minimum",
        /// Whether all bools are true.
        All = "all",
        /// Whether any bool is true.
        Any = "any",
    }
}

/// The shape without, or with extent 1 at, the given axes.
pub(super) fn reduced_shape(x: &TensorType, axes: &[usize], keep_axes: bool) -> Result<Shape, OperatorError> {
    if axes.iter().any(|&axis| axis >= x.rank()) || axes.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(OperatorError::field(format!("axes {axes:?} aren't ascending axes of {x}")));
    }
    let kept = (0..x.rank()).filter(|axis| keep_axes || !axes.contains(axis));
    Ok(kept.map(|axis| if axes.contains(&axis) { 1 } else { x.shape[axis] }).collect())
}

impl Operator for Reduce {
    const NAME: &'static str = "reduce";
    const CATEGORY: Category = Category::Accumulation;

    fn roles(&self) -> Vec<&'static str> {
        vec!["x"]
    }

    fn reads_rows(&self) -> bool {
        false
    }

    fn integer_form(&self) -> IntegerForm {
        match self.function {
            ReduceFunction::Maximum | ReduceFunction::Minimum => IntegerForm::Elements,
            ReduceFunction::Sum | ReduceFunction::Mean => IntegerForm::Means,
            _ => IntegerForm::None,
        }
    }

    fn by_rows(&self, _operands: &[TensorType]) -> Option<(Self, RowReads)> {
        None
    }

    fn patch(&self, _operands: &[TensorType], _rows: Range<usize>) -> Option<(Self, PatchReads)> {
        None
    }

    fn share_of_rows(&self, operands: &[TensorType], rows: usize) -> Option<(Self, f64)> {
        let x = operands.first()?;
        let divides = x.rank() > 2 && x.shape[0] == 1 && rows > 0 && x.shape[1].is_multiple_of(rows);
        let factor = match self.function {
            ReduceFunction::Sum => 1.0,
            ReduceFunction::Mean if divides => rows as f64 / x.shape[1] as f64,
            _ => return None,
        };
        (divides && self.axes.contains(&1)).then(|| (self.clone(), factor))
    }

    fn infer(&self, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
        let [x] = expect_operands(operands)?;
        let allowed = match self.function {
            ReduceFunction::Mean => x.dtype.is_float(),
            ReduceFunction::All | ReduceFunction::Any => x.dtype == DType::Bool,
            _ => x.dtype != DType::Bool,
        };
        if !allowed {
            return Err(OperatorError::types(format!("{} isn't defined for {}", self.function.name(), x.dtype)));
        }
        let shape = reduced_shape(x, &self.axes, self.keep_axes)?;
        let empty = self.axes.iter().any(|&axis| x.shape[axis] == 0);
        if empty && matches!(self.function, ReduceFunction::Maximum | ReduceFunction::Minimum) {
            return Err(OperatorError::types(format!("{} of no elements: {x}", self.function.name())));
        }
        Ok(vec![TensorType::new(x.dtype, shape)])
    }

    fn evaluate(&self, operands: &[&Tensor], results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        let [x] = expect_values(operands)?;
        let groups = groups(x.shape(), &self.axes);
        let values = match x.values() {
            Values::Float(values) => {
                Values::Float(groups.map(|group| self.reduce_floats(group.iter().map(|&place| values[place]))).collect())
            }
            Values::Integer(values) => {
                let dtype = x.ty().dtype;
                let reduce = |group: Vec<usize>| self.reduce_integers(dtype, group.iter().map(|&place| values[place]));
                Values::Integer(groups.map(reduce).collect())
            }
        };
        Ok(vec![Tensor::from_values(results[0].clone(), values)])
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        let means = if self.function == ReduceFunction::Mean { results[0].elements() } else { 0 };
        Work { scalar_operations: (operands[0].elements() + means) as u64, ..Work::moving(operands, results) }
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(generator: &mut Generator) -> (Self, Vec<TensorType>) {
        use ReduceFunction as R;
        let function = generator.choose(R::ALL);
        let dtype = match function {
            R::All | R::Any => DType::Bool,
            R::Mean => generator.float_dtype(),
            _ => generator.number_dtype(),
        };
        let shape = generator.shape(0, 4);
        let axes = if shape.is_empty() { Vec::new() } else { generator.axes(shape.len()) };
        (Reduce { function, axes, keep_axes: generator.one_in(2) }, vec![TensorType::new(dtype, shape)])
    }
}

impl Reduce {
    fn reduce_floats(&self, values: impl ExactSizeIterator<Item = f64>) -> f64 {
        let count = values.len() as f64;
        match self.function {
            ReduceFunction::Sum => values.sum(),
            ReduceFunction::Mean => values.sum::<f64>() / count,
            ReduceFunction::Product => values.product(),
            ReduceFunction::Minimum => -values.fold(f64::NEG_INFINITY, |largest, value| largest.larger(-value)),
            _ => values.fold(f64::NEG_INFINITY, Number::larger),
        }
    }

    fn reduce_integers(&self, dtype: DType, values: impl Iterator<Item = i64>) -> i64 {
        let key = |value: &i64| order_key(dtype, *value);
        match self.function {
            ReduceFunction::Product => values.fold(1, i64::wrapping_mul),
            ReduceFunction::Maximum => values.max_by_key(key).unwrap_or_default(),
            ReduceFunction::Minimum => values.min_by_key(key).unwrap_or_default(),
            ReduceFunction::All => values.fold(1, |all, value| all & value),
            ReduceFunction::Any => values.fold(0, |any, value| any | value),
            ReduceFunction::Sum | ReduceFunction::Mean => values.fold(0, i64::wrapping_add),
        }
    }
}
