//! Reductions over axes.

use super::Builder;
use mlc_ir::ops::{Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Literal, OperatorError, Value};

/// The smallest or the largest number of a data type, infinities included.
fn extreme(dtype: DType, largest: bool) -> Literal {
    if dtype.is_float() {
        return Literal::float(dtype, if largest { f64::INFINITY } else { f64::NEG_INFINITY });
    }
    let bits = dtype.size() as u32 * 8;
    let smallest = if dtype.is_signed() { i64::MIN >> (64 - bits) } else { 0 };
    // All bits of the smallest number inverted are the largest one.
    Literal::integer(dtype, if largest { !smallest } else { smallest })
}

impl Builder {
    /// Combines the elements along axes, which are ascending. Without axes nothing happens; the extremes of no elements are
    /// the neutral ones.
    ///
    /// # Errors
    /// When an axis isn't there, or the function isn't defined for the data type.
    pub fn reduce(
        &mut self,
        function: ReduceFunction,
        x: Value,
        axes: &[usize],
        keep_axes: bool,
    ) -> Result<Value, OperatorError> {
        if axes.is_empty() {
            return Ok(x);
        }
        let shape = self.shape(x);
        let empty = axes.iter().any(|&axis| shape.get(axis) == Some(&0));
        let neutral = match function {
            ReduceFunction::Maximum => extreme(self.dtype(x), false),
            ReduceFunction::Minimum => extreme(self.dtype(x), true),
            _ => return self.apply(Reduce { function, axes: axes.to_vec(), keep_axes }, &[x]),
        };
        if !empty {
            return self.apply(Reduce { function, axes: axes.to_vec(), keep_axes }, &[x]);
        }
        let kept = (0..shape.len()).filter(|axis| keep_axes || !axes.contains(axis));
        let kept: Vec<usize> = kept.map(|axis| if axes.contains(&axis) { 1 } else { shape[axis] }).collect();
        let neutral = self.literal(neutral);
        self.broadcast(neutral, &kept)
    }

    /// max + log(sum(exp(x - max))) along axes; an infinite maximum isn't subtracted.
    ///
    /// # Errors
    /// When an axis isn't there, or the tensor doesn't hold floats.
    pub fn log_sum_exp(&mut self, x: Value, axes: &[usize], keep_axes: bool) -> Result<Value, OperatorError> {
        let dtype = self.dtype(x);
        let maximum = self.reduce(ReduceFunction::Maximum, x, axes, true)?;
        let finite = self.map(&[maximum], |b| {
            let (x, zero) = (b.operand(0), b.number(dtype, 0.0));
            let infinite = b.unary(UnaryFunction::IsInfinite, x);
            b.select(infinite, zero, x)
        })?;
        let centred = self.binary(BinaryFunction::Subtract, x, finite)?;
        let exponential = self.unary(UnaryFunction::Exp, centred)?;
        let sum = self.reduce(ReduceFunction::Sum, exponential, axes, true)?;
        let logarithm = self.unary(UnaryFunction::Log, sum)?;
        let result = self.binary(BinaryFunction::Add, logarithm, finite)?;
        if keep_axes {
            return Ok(result);
        }
        let shape = self.shape(result);
        let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
        self.reshape(result, &kept)
    }
}
