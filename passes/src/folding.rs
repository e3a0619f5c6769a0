//! Evaluation of operators over constants. Movement works on bytes, f32 arithmetic along the last axis on floats, and
//! everything else goes through the reference evaluator.

use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{Attribute, Category, DType, Op, Tensor, TensorType};

/// Whether applications of an operator to constants are computed by the optimiser. Loops aren't: they may run for long.
pub fn is_foldable(op: &Op, results: &[TensorType]) -> bool {
    results.len() == 1 && op.category() != Category::Control
}

/// The value of an operator of one result over constants; `None` when the evaluator has none for it.
pub fn evaluate(op: &Op, operands: &[&Attribute]) -> Option<Attribute> {
    let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty().clone()).collect();
    let results = op.infer(&types).ok()?;
    let [result] = &results[..] else { return None };
    if !is_foldable(op, &results) {
        return None;
    }
    if let Some(moved) = move_bytes(op, operands) {
        return (moved.ty() == result).then_some(moved);
    }
    if let Some(computed) = binary_f32(op, operands, result) {
        return Some(computed);
    }
    let tensors: Vec<Tensor> = operands.iter().map(|operand| operand.to_tensor()).collect();
    let references: Vec<&Tensor> = tensors.iter().collect();
    let value = op.evaluate(&references, &results).ok()?.into_iter().next()?;
    Some(Attribute::from_tensor(&value))
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
