//! Four bytes at once as integers of 32 bits: which expressions Arm's vector extension for microcontrollers computes so.

use super::KernelWriter;
use super::bounds;
use crate::loops::Known;
use crate::target::VectorSpelling;
use mlc_ir::scalar::{BinaryFunction as B, Expression, Rounding, ScalarNode, UnaryFunction as U};
use mlc_ir::{DType, Literal};

/// Lanes of its vectors.
pub const QUAD: usize = 4;

/// Bounds of the shift of a number that is only multiplied.
const UNSHIFTED: bounds::Bounds = (31, 31);

/// Whether an expression over the operands whose bounds a kernel knows is computed so: bytes, integers of 32 bits and singles, of which
/// bytes or singles are made.
pub fn has_quads(kernel: &KernelWriter<'_>, expression: &Expression, operands: &[DType]) -> bool {
    let is_number = |dtype: &DType| dtype.is_byte() || matches!(dtype, DType::I32 | DType::F32);
    if kernel.target.vectors != VectorSpelling::Mve || kernel.scalar || !operands.iter().all(is_number) {
        return false;
    }
    let Ok(types) = expression.dtypes(operands) else { return false };
    let nodes = expression.nodes();
    let known = bounds::of_steps(expression, &types, &kernel.bounds);
    let is_operand = |x: u32| matches!(nodes[x as usize], ScalarNode::Operand(_));
    let is_literal = |x: u32| matches!(nodes[x as usize], ScalarNode::Literal(_));
    let is_wide = |x: u32| types[x as usize] == DType::I32;
    let is_single = |x: u32| types[x as usize] == DType::F32;
    let fits = |dtype: DType, (low, high): bounds::Bounds| {
        let range = dtype.integer_range(8);
        low as f64 >= range.0 && high as f64 <= range.1
    };
    let is_known = |(id, node): (usize, &ScalarNode)| match *node {
        ScalarNode::Operand(_) => true,
        ScalarNode::Literal(literal) => matches!(literal.dtype(), DType::I32 | DType::F32),
        ScalarNode::Cast(DType::I32, x) => {
            let is_returned = bounds::kept(nodes, &types, &known, x).is_some_and(is_wide);
            is_returned || types[x as usize].is_byte() && is_operand(x)
        }
        ScalarNode::Cast(DType::F32, x) => is_wide(x),
        ScalarNode::Cast(to, x) if to.is_byte() => is_wide(x) && (id + 1 == nodes.len() || fits(to, known[x as usize])),
        ScalarNode::Unary(U::RoundToInteger, x) => is_single(x),
        ScalarNode::Unary(U::Relu, x) | ScalarNode::Binary(B::Divide, x, _) => is_single(x),
        ScalarNode::Binary(B::Add | B::Subtract | B::Multiply | B::Maximum | B::Minimum, x, _) => {
            is_wide(x) || is_single(x)
        }
        ScalarNode::Binary(B::ShiftLeft | B::ShiftRight, x, y) => {
            let bits = match nodes[y as usize] {
                ScalarNode::Literal(Literal::Integer(_, bits)) => bits,
                _ => -1,
            };
            is_wide(x) && (0..32).contains(&bits)
        }
        ScalarNode::Rescale(Rounding::Twice, children) => {
            let known = children.map(|child| known[child as usize]);
            let is_right = bounds::known(Rounding::Twice, DType::I32, known) != Known::Nothing;
            // A rescaled number has 32 bits, but for the smallest one of all by itself.
            is_wide(children[0])
                && known[1].0 > i32::MIN.into()
                && (is_right || known[2] == UNSHIFTED && is_literal(children[2]))
        }
        _ => false,
    };
    let is_stored = match nodes.last() {
        Some(ScalarNode::Cast(dtype, _)) if dtype.is_byte() => true,
        _ => types.last() == Some(&DType::F32),
    };
    is_stored && nodes.iter().enumerate().all(is_known)
}

/// Whether a kernel's epilogue makes bytes of sums so, and stores them.
pub fn finishes_quads(kernel: &KernelWriter<'_>) -> bool {
    let Some(epilogue) = &kernel.epilogue else { return false };
    let mut operands = vec![DType::I32];
    operands.extend(epilogue.operands.iter().map(|operand| operand.view.dtype));
    let follows = |stride: i64| (0..=1).contains(&stride);
    kernel.results[0].view.last_stride() == 1
        && epilogue.operands.iter().all(|operand| follows(operand.view.last_stride()))
        && has_quads(kernel, &epilogue.expression, &operands)
}
