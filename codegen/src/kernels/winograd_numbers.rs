//! What Winograd's convolutions transform and multiply: singles, or bytes as numbers of 16 bits.

use super::lines::Lines;
use super::vector_quads::{first_terms, has_bytes};
use super::{Argument, KernelWriter};
use crate::loops::{Expr, Index, ValueType, Var};
use mlc_ir::ops::Convolution;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Literal};

/// Products that a sum of bytes has at most, so that 32 bits hold four times the sum.
pub const MOST_PRODUCTS: usize = 1 << 14;

/// What is transformed and multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    Singles,
    /// Numbers of 16 bits, two of which are multiplied at once.
    Words,
}

impl Numbers {
    /// What a convolution of some operands is computed in, if in either: bytes where two numbers of 16 bits are multiplied at once, singles
    /// where their order may change.
    pub fn of(op: &Convolution, kernel: &KernelWriter<'_>) -> Option<Numbers> {
        let (x, weights) = (&kernel.operands[0], &kernel.operands[1]);
        let is_single = |argument: &Argument| kernel.b.element_dtype(argument.pointer) == DType::F32;
        let is_constant = weights.constant.as_ref().is_some_and(|constant| constant.ty().dtype == DType::F32);
        let are_singles = [x, weights, &kernel.results[0]].into_iter().all(is_single) && is_constant;
        let is_free = weights.operand.is_some() && !kernel.target.is_strict();
        let are_bytes = kernel.target.byte_dots.has_quick_words() && has_bytes(kernel, x, weights);
        match op.sums {
            None if are_singles && is_free => Some(Numbers::Singles),
            Some(DType::I32) if are_bytes => Some(Numbers::Words),
            _ => None,
        }
    }

    /// The type of transformed elements.
    pub fn elements(self) -> DType {
        match self {
            Numbers::Singles => DType::F32,
            Numbers::Words => DType::I16,
        }
    }

    /// The type of sums of products.
    pub fn sums(self) -> DType {
        match self {
            Numbers::Singles => DType::F32,
            Numbers::Words => DType::I32,
        }
    }

    /// How many are multiplied at once.
    pub fn together(self) -> usize {
        self.sums().size() / self.elements().size()
    }
}

/// What sums of integers get before they are results, beside what the epilogue says.
pub struct Ends {
    doublings: u32,
    first: Var,
    lines: Option<Lines>,
}

impl Ends {
    /// Those of a kernel's outputs, which the epilogue then no longer says: they have room for whole vectors.
    pub fn take(kernel: &mut KernelWriter<'_>, doublings: u32, outputs: usize, lanes: usize) -> Option<Ends> {
        let weights = kernel.operands[1].operand?;
        let padded = outputs.next_multiple_of(lanes);
        let (first, lines) = first_terms(kernel, (outputs, padded), (weights, 0), || None);
        Some(Ends { doublings, first, lines })
    }

    /// What becomes of the sums of a vector of outputs.
    pub fn value(&self, kernel: &mut KernelWriter<'_>, sums: Expr, output: &Index, lanes: usize) -> Expr {
        let ty = ValueType::vector(DType::I32, lanes);
        let bits = Expr::splat(Literal::integer(DType::I32, self.doublings.into()), lanes);
        let halved = Expr::binary(BinaryFunction::ShiftRight, sums, bits);
        let sums = halved.plus(Expr::Load { pointer: self.first, index: output.clone(), ty });
        match &self.lines {
            Some(lines) => lines.value(kernel, sums, output, lanes),
            None => sums,
        }
    }
}
