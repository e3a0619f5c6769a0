//! Sums of products of bytes of two pixels in a register of 64 bits: the second pixel's element is the upper half of a number, the first
//! one's is added to it, and the product with a weight has both products. Modulo 2^64 a sum of these is the sum of the first pixel and
//! 2^32 times that of the second, so that both are known once the first, which has 32 bits, is.

use super::KernelWriter;
use crate::loops::{Expr, Var};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Literal};

/// Most products whose sum has 32 bits: each is 255 times 128 at most.
pub const MOST_TERMS: usize = 1 << 16;

/// A number of 32 bits as one of 64: a weight, or an element alone.
pub fn widened(value: Expr) -> Expr {
    Expr::Cast(DType::I64, Box::new(value))
}

/// The elements of two pixels as one number, or that of a single one.
pub fn joined(first: Expr, second: Option<Expr>) -> Expr {
    let upper = |second: Expr| widened(second).times(Expr::Literal(Literal::integer(DType::I64, 1 << 32)));
    match second {
        Some(second) => widened(first).plus(upper(second)),
        None => widened(first),
    }
}

/// Defines the sums of both pixels, or of the single one.
pub fn parted(kernel: &mut KernelWriter<'_>, sum: Var, is_single: bool) -> Vec<Var> {
    let narrowed = |value: Expr| Expr::Cast(DType::I32, Box::new(value));
    let first = kernel.b.mutable("first_sum", narrowed(Expr::Var(sum)));
    if is_single {
        return vec![first];
    }
    let upper = Expr::binary(BinaryFunction::Subtract, Expr::Var(sum), widened(Expr::Var(first)));
    let bits = Expr::Literal(Literal::integer(DType::I64, 32));
    let second = narrowed(Expr::binary(BinaryFunction::ShiftRight, upper, bits));
    vec![first, kernel.b.mutable("second_sum", second)]
}
