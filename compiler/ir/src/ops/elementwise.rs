//! What all elementwise operators share: types, evaluation and work follow from their scalar expression.

use crate::operator::{OperatorError, PatchRead, PatchReads, RowReads, RowWindow, Work};
use crate::scalar::{Expression, Scalar, ScalarNode, evaluate_scalar};
use crate::tensor::{Tensor, Values};
use crate::types::{TensorType, broadcast_shapes, row_major_strides};
use std::ops::Range;

/// Operands broadcast to one shape; the data type is the expression's.
pub fn infer(expression: &Expression, operands: &[TensorType]) -> Result<Vec<TensorType>, OperatorError> {
    let dtypes: Vec<_> = operands.iter().map(|ty| ty.dtype).collect();
    let dtype = expression.result_dtype(&dtypes).map_err(OperatorError::OperandTypes)?;
    let shape = broadcast_shapes(operands.iter().map(|ty| &ty.shape[..])).ok_or_else(|| {
        let list: Vec<String> = operands.iter().map(TensorType::to_string).collect();
        OperatorError::types(format!("the shapes of {} don't broadcast", list.join(", ")))
    })?;
    Ok(vec![TensorType::new(dtype, shape)])
}

/// How operands that broadcast to a result of a shape are read for its rows: see [`Operator::by_rows`](crate::Operator::by_rows).
pub fn rows(operands: &[TensorType], result: &[usize]) -> Option<RowReads> {
    let [1, height, _, ..] = *result else { return None };
    let read = |ty: &TensorType| match (result.len() - ty.rank(), &ty.shape[..]) {
        (0, [_, rows, ..]) => Some((*rows == height && height > 1).then_some(RowWindow::ROW)),
        (1, [rows, ..]) if *rows > 1 => None,
        _ => Some(None),
    };
    operands.iter().map(read).collect()
}

/// How operands that broadcast to a result of a shape are read for some of its rows along them: see
/// [`Operator::patch`](crate::Operator::patch).
pub fn patch(operands: &[TensorType], result: &[usize], rows: &Range<usize>) -> Option<PatchReads> {
    let [1, height, _, _] = *result else { return None };
    let read = |ty: &TensorType| match ty.shape[..] {
        [_, 1, 1, _] | [1, 1, _] | [1, _] | [_] | [] => Some(PatchRead::Whole),
        [_, own, _, _] => Some(PatchRead::Rows(if own == height { rows.clone() } else { 0..own })),
        // What has fewer axes and columns isn't cut.
        _ => None,
    };
    operands.iter().map(read).collect()
}

/// Evaluates the expression for each element of the result.
pub fn evaluate(
    expression: &Expression,
    operands: &[&Tensor],
    results: &[TensorType],
) -> Result<Vec<Tensor>, OperatorError> {
    let dtypes: Vec<_> = operands.iter().map(|operand| operand.ty().dtype).collect();
    let dtypes = expression.dtypes(&dtypes).map_err(OperatorError::OperandTypes)?;
    let result = &results[0];
    let indices: Vec<Vec<usize>> =
        operands.iter().map(|operand| broadcast_indices(operand.shape(), &result.shape)).collect();
    let (mut floats, mut integers) = (Vec::new(), Vec::new());
    let (mut values, mut steps) = (Vec::new(), Vec::new());
    for element in 0..result.elements() {
        values.clear();
        for (operand, index) in operands.iter().zip(&indices) {
            values.push(match operand.values() {
                Values::Float(values) => Scalar::Float(values[index[element]]),
                Values::Integer(values) => Scalar::Integer(values[index[element]]),
            });
        }
        match evaluate_scalar(expression, &dtypes, &values, &mut steps) {
            Scalar::Float(value) => floats.push(value),
            Scalar::Integer(value) => integers.push(value),
        }
    }
    let ty = result.clone();
    Ok(vec![if ty.dtype.is_float() { Tensor::from_floats(ty, floats) } else { Tensor::from_integers(ty, integers) }])
}

/// For each element of `to`, the flat index in a tensor of shape `from` that broadcasts to it.
pub fn broadcast_indices(from: &[usize], to: &[usize]) -> Vec<usize> {
    if to.contains(&0) {
        return Vec::new();
    }
    let strides = row_major_strides(from);
    let skipped = to.len() - from.len();
    let mut indices = vec![0];
    for (axis, &extent) in to.iter().enumerate() {
        let stride = match axis.checked_sub(skipped) {
            Some(own) if from[own] != 1 => strides[own],
            _ => 0,
        };
        indices = indices.iter().flat_map(|&base| (0..extent).map(move |index| base + index * stride)).collect();
    }
    indices
}

/// Scalar operations of the primitive expression for every element, and the bytes moved.
pub fn work(expression: &Expression, operands: &[TensorType], results: &[TensorType]) -> Work {
    let dtypes: Vec<_> = operands.iter().map(|ty| ty.dtype).collect();
    let elements = results[0].elements() as u64;
    Work {
        scalar_operations: expression_cost(&expression.primitive(&dtypes)) * elements,
        ..Work::moving(operands, results)
    }
}

/// Scalar operations of one evaluation; a transcendental function counts as 10.
pub fn expression_cost(expression: &Expression) -> u64 {
    use crate::scalar::UnaryFunction as U;
    let cost = |node: &ScalarNode| match node {
        ScalarNode::Operand(_) | ScalarNode::Literal(_) => 0,
        ScalarNode::Unary(
            U::Negate
            | U::Absolute
            | U::Sign
            | U::Ceil
            | U::Floor
            | U::Round
            | U::Truncate
            | U::Relu
            | U::Not
            | U::RoundToInteger,
            _,
        ) => 1,
        ScalarNode::Unary(..) => 10,
        ScalarNode::Binary(crate::scalar::BinaryFunction::Divide, ..) => 4,
        ScalarNode::Binary(crate::scalar::BinaryFunction::Power, ..) => 20,
        _ => 1,
    };
    expression.nodes().iter().map(cost).sum()
}

/// The error for operands that an operator has no expression for.
pub fn undefined(name: &str, operands: &[TensorType]) -> OperatorError {
    let list: Vec<String> = operands.iter().map(TensorType::to_string).collect();
    OperatorError::types(format!("{name} isn't defined for {}", list.join(", ")))
}

/// Implements [`crate::operator::Operator`] for an elementwise operator from its expression and its sample.
#[macro_export]
macro_rules! elementwise_operator {
    ($name:ident, $text:literal, $operands:expr, |$self:ident, $types:ident| $expression:expr, |$generator:ident| $sample:expr) => {
        impl $crate::operator::Operator for $name {
            const NAME: &'static str = $text;
            const CATEGORY: $crate::operator::Category = $crate::operator::Category::Elementwise;

            fn roles(&self) -> Vec<&'static str> {
                Vec::new()
            }

            fn reads_rows(&self) -> bool {
                false
            }

            fn integer_form(&self) -> $crate::operator::IntegerForm {
                $crate::operator::IntegerForm::Function
            }

            fn by_rows(
                &self,
                operands: &[$crate::types::TensorType],
            ) -> Option<(Self, $crate::operator::RowReads)> {
                let results = $crate::operator::Operator::infer(self, operands).ok()?;
                let reads = $crate::ops::elementwise::rows(operands, &results.first()?.shape)?;
                Some((self.clone(), reads))
            }

            fn patch(
                &self,
                operands: &[$crate::types::TensorType],
                rows: std::ops::Range<usize>,
            ) -> Option<(Self, $crate::operator::PatchReads)> {
                let results = $crate::operator::Operator::infer(self, operands).ok()?;
                let reads = $crate::ops::elementwise::patch(operands, &results.first()?.shape, &rows)?;
                Some((self.clone(), reads))
            }

            fn share_of_rows(&self, _operands: &[$crate::types::TensorType], _rows: usize) -> Option<(Self, f64)> {
                None
            }

            fn infer(
                &self,
                operands: &[$crate::types::TensorType],
            ) -> Result<Vec<$crate::types::TensorType>, $crate::operator::OperatorError> {
                let expected: Option<usize> = $operands;
                if expected.is_some_and(|expected| expected != operands.len()) || operands.is_empty() {
                    return Err($crate::operator::OperatorError::OperandCount {
                        expected: expected.map_or("at least 1".to_owned(), |expected| expected.to_string()),
                        found: operands.len(),
                    });
                }
                let expression = $crate::operator::Operator::expression(self, operands)
                    .ok_or_else(|| $crate::ops::elementwise::undefined($text, operands))?;
                $crate::ops::elementwise::infer(&expression, operands)
            }

            fn evaluate(
                &self,
                operands: &[&$crate::tensor::Tensor],
                results: &[$crate::types::TensorType],
            ) -> Result<Vec<$crate::tensor::Tensor>, $crate::operator::OperatorError> {
                let types: Vec<_> = operands.iter().map(|operand| operand.ty().clone()).collect();
                let expression = $crate::operator::Operator::expression(self, &types)
                    .ok_or_else(|| $crate::ops::elementwise::undefined($text, &types))?;
                $crate::ops::elementwise::evaluate(&expression, operands, results)
            }

            fn work(
                &self,
                operands: &[$crate::types::TensorType],
                results: &[$crate::types::TensorType],
            ) -> $crate::operator::Work {
                match $crate::operator::Operator::expression(self, operands) {
                    Some(expression) => $crate::ops::elementwise::work(&expression, operands, results),
                    None => $crate::operator::Work::moving(operands, results),
                }
            }

            fn expression(&$self, $types: &[$crate::types::TensorType]) -> Option<$crate::scalar::Expression> {
                $expression
            }

            fn sample($generator: &mut $crate::generator::Generator) -> (Self, Vec<$crate::types::TensorType>) {
                $sample
            }
        }
    };
}
