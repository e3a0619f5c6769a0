//! Sums of products in half precision, on machines whose vectors compute with halves (`Target::half_vectors`): twice as many at once, with no conversions.
//!
//! A product and a sum are rounded as one, to a half. Errors of a sum grow with the number of its terms, so one of many terms is made
//! of the sums of short runs ([`LONGEST_RUN`]). Strict code does without, and so does an epilogue with more than simple steps.

use super::contraction::Contraction;
use super::vectors::are_simple;
use super::{Argument, KernelWriter};
use mlc_ir::{DType, Op};

/// Terms of a sum of halves; the sums of more are summed up.
pub const LONGEST_RUN: usize = 64;

/// Whether a kernel's sums of products are computed in vectors of halves.
pub fn computes_in_halves(op: &Op, kernel: &KernelWriter<'_>) -> bool {
    kernel.target.half_vectors && !kernel.target.is_strict() && fits(op, kernel) && has_epilogue(kernel)
}

fn fits(op: &Op, kernel: &KernelWriter<'_>) -> bool {
    let [x, weights] = &kernel.operands[..] else { return false };
    let is_packed = weights.constant.is_some() && weights.operand.is_some();
    let are_halves = [x, weights].into_iter().chain(&kernel.results).all(is_of_halves);
    let lanes = kernel.target.vector_bytes / DType::F16.size();
    let is_whole = match op {
        Op::Matmul(_) => true,
        Op::Convolution(op) => {
            let (spatial, shape) = (op.strides.len(), &weights.view.shape);
            let is_depthwise = shape[spatial] == 1 && op.groups > 1;
            // Vectors of channels leave no rest, which would be single halves.
            !is_depthwise
                || op.groups.is_multiple_of(lanes) && shape[..spatial].iter().product::<usize>() <= LONGEST_RUN
        }
        _ => false,
    };
    is_packed && are_halves && is_whole
}

fn is_of_halves(argument: &Argument) -> bool {
    argument.view.dtype == DType::F16
}

/// Whether every step of the epilogue is one of halves that the vectors have.
fn has_epilogue(kernel: &KernelWriter<'_>) -> bool {
    let Some(epilogue) = &kernel.epilogue else { return true };
    let halves = vec![DType::F16; epilogue.operands.len() + 1];
    let steps = epilogue.expression.dtypes(&halves).unwrap_or_default();
    epilogue.operands.iter().all(is_of_halves)
        && !steps.is_empty()
        && steps.iter().all(|&step| step == DType::F16)
        && are_simple(&epilogue.expression, &halves)
}

impl Contraction {
    /// Whether its sums have more terms than may be summed up at once.
    pub fn has_long_sums(&self) -> bool {
        is_long(self.x.view.dtype, self.steps())
    }
}

/// Whether a sum of products of elements of a type has more terms than may be summed up at once.
pub fn is_long(dtype: DType, terms: usize) -> bool {
    dtype == DType::F16 && terms > LONGEST_RUN
}
