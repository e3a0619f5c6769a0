//! Constants: the one place where operators over constants are computed, and the one rule for when.
//!
//! A value that is needed is computed whatever its size, by [`compute`]: on the way out of an e-graph, before code is
//! generated, where a state starts. While a graph is built, [`compute_early`] computes what is small and what only moves
//! elements; the rest waits until it is known to be needed. Loops and functions of archives are never computed: they may run
//! for long. All results are the evaluator's.

use crate::attribute::Attribute;
use crate::operator::{Category, OperatorError};
use crate::ops::Op;
use crate::scalar::BinaryFunction;
use crate::tensor::Tensor;
use crate::types::{DType, TensorType};

/// Most elements of operands and results together that are computed before they are known to be needed.
const EARLY_ELEMENTS: usize = 1 << 16;
/// Most multiply-accumulate operations that are.
const EARLY_MACS: u64 = 1 << 22;

/// Whether applications of an operator to constants are constants.
pub fn is_computable(op: &Op) -> bool {
    op.category() != Category::Control
}

/// The results of an operator over constants.
///
/// # Errors
/// When it doesn't accept the operands, isn't to be computed, or the values have no result.
pub fn compute(op: &Op, operands: &[&Attribute]) -> Result<Vec<Attribute>, OperatorError> {
    let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty().clone()).collect();
    let results = op.infer(&types)?;
    if !is_computable(op) {
        return Err(OperatorError::Evaluation(format!("{} isn't computed ahead of time", op.name())));
    }
    if let [result] = &results[..]
        && let Some(value) = move_bytes(op, operands).or_else(|| binary_f32(op, operands, result))
        && value.ty() == result
    {
        return Ok(vec![value]);
    }
    let tensors: Vec<Tensor> = operands.iter().map(|operand| operand.to_tensor()).collect();
    let values = op.evaluate(&tensors.iter().collect::<Vec<_>>(), &results)?;
    Ok(values.iter().map(Attribute::from_tensor).collect())
}

/// The results of an operator over constants that are worth computing before they are known to be needed, else `None`.
///
/// # Errors
/// When it doesn't accept the operands, or the values have no result.
pub fn compute_early(op: &Op, operands: &[&Attribute]) -> Result<Option<Vec<Attribute>>, OperatorError> {
    if operands.is_empty() || !is_computable(op) {
        return Ok(None);
    }
    let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty().clone()).collect();
    let results = op.infer(&types)?;
    if is_early(op, &types, &results) { compute(op, operands).map(Some) } else { Ok(None) }
}

fn is_early(op: &Op, operands: &[TensorType], results: &[TensorType]) -> bool {
    let elements = |types: &[TensorType]| {
        types.iter().try_fold(0usize, |sum, ty| sum.checked_add(ty.checked_bytes()? / ty.dtype.size()))
    };
    let (Some(read), Some(written)) = (elements(operands), elements(results)) else { return false };
    let moves = matches!(op.category(), Category::View | Category::Movement) && written <= read;
    moves || (read.saturating_add(written) <= EARLY_ELEMENTS && op.work(operands, results).macs <= EARLY_MACS)
}

fn move_bytes(op: &Op, operands: &[&Attribute]) -> Option<Attribute> {
    match op {
        Op::Reshape(reshape) => operands[0].reshape(&reshape.shape).ok(),
        Op::Concat(concat) => Attribute::concat(concat.axis, operands).ok(),
        Op::Transpose(transpose) => operands[0].transpose(&transpose.permutation).ok(),
        Op::Slice(slice) if slice.steps.iter().all(|&step| step == 1) => {
            let mut value = operands[0].clone();
            for (axis, (&start, &size)) in slice.starts.iter().zip(&slice.sizes).enumerate() {
                if size != value.ty().shape[axis] {
                    value = value.slice(axis, start, start + size).ok()?;
                }
            }
            Some(value)
        }
        _ => None,
    }
}

/// Arithmetic of f32 where the second operand repeats along leading axes, as scales of weights do.
fn binary_f32(op: &Op, operands: &[&Attribute], result: &TensorType) -> Option<Attribute> {
    let Op::Binary(binary) = op else { return None };
    let [left, right] = operands else { return None };
    if result.dtype != DType::F32 || left.ty() != result {
        return None;
    }
    let period = right.ty().elements();
    let shape = &right.ty().shape;
    let suffix = shape.iter().skip_while(|&&extent| extent == 1).count();
    let repeats = result.shape[result.rank() - suffix..] == shape[shape.len() - suffix..];
    if period == 0 || !repeats {
        return None;
    }
    let function: fn(f32, f32) -> f32 = match binary.function {
        BinaryFunction::Add => |x, y| x + y,
        BinaryFunction::Subtract => |x, y| x - y,
        BinaryFunction::Multiply => |x, y| x * y,
        BinaryFunction::Divide => |x, y| x / y,
        _ => return None,
    };
    let read = |chunk: &[u8]| f32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    let factors: Vec<f32> = right.bytes().chunks_exact(4).map(read).collect();
    let mut bytes = Vec::with_capacity(left.bytes().len());
    for row in left.bytes().chunks(period * 4) {
        for (chunk, &factor) in row.chunks_exact(4).zip(&factors) {
            bytes.extend_from_slice(&function(read(chunk), factor).to_le_bytes());
        }
    }
    Attribute::new(result.clone(), bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Generator;
    use crate::ops::{Broadcast, OpKind, Transpose, Unary};
    use crate::scalar::UnaryFunction;

    #[test]
    fn what_is_computed_is_what_the_evaluator_gives() {
        for &kind in OpKind::OWN {
            let mut generator = Generator::new(kind as u64);
            for _ in 0..100 {
                let (op, types) = kind.sample(&mut generator);
                let operands: Vec<Attribute> =
                    types.iter().map(|ty| Attribute::from_tensor(&generator.tensor(ty))).collect();
                let references: Vec<&Attribute> = operands.iter().collect();
                let tensors: Vec<Tensor> = operands.iter().map(Attribute::to_tensor).collect();
                let results = op.infer(&types).unwrap();
                let expected = op.evaluate(&tensors.iter().collect::<Vec<_>>(), &results);
                match compute(&op, &references) {
                    Ok(found) => {
                        let expected: Vec<Attribute> = expected.unwrap().iter().map(Attribute::from_tensor).collect();
                        assert_eq!(found, expected, "{op:?} of {types:?}");
                    }
                    Err(error) => assert!(expected.is_err() || !is_computable(&op), "{op:?} of {types:?}: {error}"),
                }
            }
        }
    }

    #[test]
    fn large_arithmetic_waits_and_moves_do_not() {
        let large = Attribute::from_f32(&[256, 256], &vec![1.0; 1 << 16]).unwrap();
        let small = Attribute::from_f32(&[2, 2], &[1.0; 4]).unwrap();
        let early = |op: Op, x: &Attribute| compute_early(&op, &[x]).unwrap().is_some();
        let negate = || Op::from(Unary { function: UnaryFunction::Negate });
        let transpose = || Op::from(Transpose { permutation: vec![1, 0] });
        assert!(early(negate(), &small) && !early(negate(), &large));
        assert!(early(transpose(), &small) && early(transpose(), &large));
        assert!(!early(Broadcast { shape: [2, 256, 256][..].into() }.into(), &large));
    }

    #[test]
    fn what_has_no_result_is_an_error() {
        let x = Attribute::from_f32(&[2], &[1.0; 2]).unwrap();
        assert!(compute(&Transpose { permutation: vec![1, 0] }.into(), &[&x]).is_err());
        assert!(compute_early(&Transpose { permutation: vec![1, 0] }.into(), &[&x]).is_err());
    }
}
