//! Elementwise arithmetic of operands whose data types may differ.

use super::Builder;
use mlc_ir::ops::{Clamp, Map, Select};
use mlc_ir::scalar::{BinaryFunction, Expression, ExpressionBuilder, ScalarId, UnaryFunction};
use mlc_ir::{DType, Float, OperatorError, Value};

/// The smallest data type that stands for the values of both: float before integer before bool, and the wider of one kind.
///
/// Where neither holds the other's values (`u8` with `i8`, `f16` with `bf16`), the next wider type that does.
pub fn promoted(left: DType, right: DType) -> DType {
    if left == right || right == DType::Bool {
        return left;
    }
    if left == DType::Bool {
        return right;
    }
    match (left.is_float(), right.is_float()) {
        (true, false) => return left,
        (false, true) => return right,
        (true, true) if left.size() == right.size() => return DType::F32,
        (true, true) => return if left.size() > right.size() { left } else { right },
        (false, false) => {}
    }
    let (narrow, wide) = if left.size() < right.size() { (left, right) } else { (right, left) };
    if narrow.is_signed() == wide.is_signed() || (wide.is_signed() && narrow.size() < wide.size()) {
        return wide;
    }
    match wide.size() {
        1 => DType::I16,
        2 => DType::I32,
        _ => DType::I64,
    }
}

impl Builder {
    /// A scalar expression of the elements of tensors, which broadcast.
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn map(
        &mut self,
        operands: &[Value],
        body: impl FnOnce(&mut ExpressionBuilder) -> ScalarId,
    ) -> Result<Value, OperatorError> {
        self.apply(Map { expression: Expression::build(body) }, operands)
    }

    /// `max(low, min(x, high))`, with infinities for what isn't limited.
    ///
    /// # Errors
    /// When the tensor doesn't hold numbers.
    pub fn clamp(&mut self, x: Value, low: f64, high: f64) -> Result<Value, OperatorError> {
        self.apply(Clamp { low: Float(low), high: Float(high) }, &[x])
    }

    /// Elements of `x` where the condition, a bool, is true, else of `y`; all broadcast.
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn select(&mut self, condition: Value, x: Value, y: Value) -> Result<Value, OperatorError> {
        self.apply(Select {}, &[condition, x, y])
    }

    /// The sum. The second operand may be absent.
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn add_optional(&mut self, x: Value, y: Option<Value>) -> Result<Value, OperatorError> {
        match y {
            Some(y) => self.binary(BinaryFunction::Add, x, y),
            None => Ok(x),
        }
    }

    /// The product. The second operand may be absent.
    ///
    /// # Errors
    /// When the types don't fit.
    pub fn multiply_optional(&mut self, x: Value, y: Option<Value>) -> Result<Value, OperatorError> {
        match y {
            Some(y) => self.binary(BinaryFunction::Multiply, x, y),
            None => Ok(x),
        }
    }

    /// x raised to a power that is a product or a root; `None` for other powers.
    ///
    /// # Errors
    /// When the tensor doesn't hold numbers.
    pub fn simple_power(&mut self, x: Value, exponent: f64) -> Result<Option<Value>, OperatorError> {
        let dtype = self.dtype(x);
        let function = match exponent {
            2.0 | 3.0 if dtype != DType::Bool => UnaryFunction::Square,
            0.5 if dtype.is_float() => UnaryFunction::Sqrt,
            -0.5 if dtype.is_float() => UnaryFunction::Rsqrt,
            -1.0 if dtype.is_float() => UnaryFunction::Reciprocal,
            _ => return Ok(None),
        };
        let power = self.unary(function, x)?;
        if exponent == 3.0 {
            return self.binary(BinaryFunction::Multiply, power, x).map(Some);
        }
        Ok(Some(power))
    }
}
