//! `reduce`: Reduction over axes.

use crate::generator::Generator;
use crate::operator::{Category, Operator, OperatorError, Work, expect_operands};
use crate::scalar::Expression;
use crate::tensor::Tensor;
use crate::types::{DType, Shape, TensorType};

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

    fn category(&self) -> Category {
        Category::Anchor
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

    fn evaluate(&self, _operands: &[&Tensor], _results: &[TensorType]) -> Result<Vec<Tensor>, OperatorError> {
        Err(OperatorError::Evaluation("no evaluation yet".into()))
    }

    fn work(&self, operands: &[TensorType], results: &[TensorType]) -> Work {
        Work::moving(operands, results)
    }

    fn expression(&self, _operands: &[TensorType]) -> Option<Expression> {
        None
    }

    fn sample(_generator: &mut Generator) -> (Self, Vec<TensorType>) {
        todo!()
    }
}
