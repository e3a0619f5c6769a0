//! What a machine's vectors can do: everything where C compilers know the type of vectors, sums, products and comparisons of
//! `f32` where intrinsics are needed.

use crate::loops::mve_mathematics;
use crate::target::{ByteDots, Target, VectorSpelling};
use mlc_ir::scalar::{BinaryFunction as B, Expression, ScalarNode, UnaryFunction};
use mlc_ir::{Category, DType, Objective, Op};

/// Whether there are vectors of a type.
pub fn has_lanes(target: &Target, dtype: DType) -> bool {
    match target.vectors {
        VectorSpelling::None => false,
        VectorSpelling::Gnu => dtype != DType::Bool,
        VectorSpelling::Either | VectorSpelling::Mve => dtype == DType::F32,
    }
}

/// Whether an operator's own steps have vector instructions.
pub fn has_operator(target: &Target, op: &Op) -> bool {
    let accumulates = op.category() == Category::Accumulation || matches!(op, Op::Recurrent(_));
    match target.vectors {
        VectorSpelling::None | VectorSpelling::Gnu => true,
        // Of other loops C compilers make vectors themselves, as long as the machine's.
        // Vectors save time for code, of which there is least in single values.
        VectorSpelling::Either => accumulates && target.objective != Objective::Size,
        VectorSpelling::Mve => {
            let is_known = matches!(op, Op::Normalize(_) | Op::Softmax(_) | Op::Resize(_));
            accumulates || op.category() == Category::Elementwise || is_known
        }
    }
}

/// Whether the steps of an expression of operands of some types have.
pub fn has_steps(target: &Target, expression: &Expression, operands: &[DType]) -> bool {
    let is_scalar = |node: &ScalarNode| {
        matches!(node, ScalarNode::Rescale(..) | ScalarNode::Unary(UnaryFunction::RoundToInteger, _))
    };
    let has_singles = |node: &ScalarNode| {
        let is_of_lanes = match node {
            ScalarNode::Unary(UnaryFunction::Absolute, _) | ScalarNode::Binary(B::Divide, ..) => true,
            ScalarNode::Unary(function, _) => mve_mathematics::has(*function) && !target.is_strict(),
            _ => false,
        };
        is_of_lanes || is_simple(node)
    };
    let is_known = || expression.primitive(operands).nodes().iter().all(has_singles);
    (target.vectors != VectorSpelling::Mve || is_known()) && !expression.nodes().iter().any(is_scalar)
}

/// Whether the steps of an expression of operands of some types are ones that all vectors have, those of halves too.
pub fn are_simple(expression: &Expression, operands: &[DType]) -> bool {
    expression.primitive(operands).nodes().iter().all(is_simple)
}

fn is_simple(node: &ScalarNode) -> bool {
    match node {
        ScalarNode::Operand(_) | ScalarNode::Literal(_) => true,
        ScalarNode::Unary(function, _) => matches!(function, UnaryFunction::Relu | UnaryFunction::Negate),
        ScalarNode::Binary(function, ..) => {
            matches!(function, B::Add | B::Subtract | B::Multiply | B::Maximum | B::Minimum)
        }
        ScalarNode::Select(..) | ScalarNode::Cast(..) | ScalarNode::BitCast(..) | ScalarNode::Rescale(..) => false,
    }
}

/// Whether the steps of an expression are integers or singles of 32 bits but for bytes that are loaded or stored, and its rescalings have
/// vector instructions.
pub fn widens_bytes(target: &Target, expression: &Expression, operands: &[DType]) -> bool {
    let Ok(steps) = expression.dtypes(operands) else { return false };
    let is_wide = |dtype: DType| matches!(dtype, DType::I32 | DType::F32);
    let fits = |(node, &step): (&ScalarNode, &DType)| match *node {
        ScalarNode::Operand(_) => step.is_byte() || is_wide(step),
        ScalarNode::Cast(to, x) => match (steps[x as usize], to) {
            (DType::I32, to) => to.is_byte() || is_wide(to),
            (from, to) => from == to || from.is_byte() && is_wide(to),
        },
        ScalarNode::Binary(B::ShiftLeft | B::ShiftRight, ..) | ScalarNode::Rescale(..) => step == DType::I32,
        ScalarNode::Binary(B::Divide, ..) => step == DType::F32,
        ScalarNode::Binary(function, ..) => {
            is_wide(step) && matches!(function, B::Add | B::Subtract | B::Multiply | B::Maximum | B::Minimum)
        }
        ScalarNode::Unary(UnaryFunction::Relu | UnaryFunction::Negate, _) => is_wide(step),
        ScalarNode::Unary(UnaryFunction::RoundToInteger, _) => true,
        ScalarNode::Literal(_) => is_wide(step),
        _ => false,
    };
    target.byte_dots != ByteDots::None && expression.nodes().iter().zip(&steps).all(fits)
}

/// The type as which elements of a type are moved: that of the bytes for bools, which vectors of masks can't hold.
pub fn moved_dtype(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::U8 } else { dtype }
}
