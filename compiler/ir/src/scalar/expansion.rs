//! How composite functions are made of primitive ones, so that a code generator needs the primitives only.

use super::expression::{Expression, ExpressionBuilder, ScalarId, ScalarNode};
use super::functions::{BinaryFunction, UnaryFunction};
use crate::types::DType;

impl Expression {
    /// The same function made of primitive functions only.
    pub fn primitive(&self, operands: &[DType]) -> Expression {
        self.primitive_except(operands, |_| false)
    }

    /// The same function made of primitive functions, and composite ones that are to stay.
    pub fn primitive_except(&self, operands: &[DType], stays: fn(UnaryFunction) -> bool) -> Expression {
        let Ok(dtypes) = self.dtypes(operands) else { return self.clone() };
        Expression::build(|b| {
            let mut map: Vec<ScalarId> = Vec::new();
            for node in self.nodes().iter() {
                let id = match node.map_children(|child| map[child as usize]) {
                    ScalarNode::Unary(function, x) if !stays(function) => {
                        let ScalarNode::Unary(_, child) = *node else { return x };
                        b.expanded_unary(function, x, dtypes[child as usize])
                    }
                    other => b.push(other),
                };
                map.push(id);
            }
            map.last().copied().unwrap_or(0)
        })
    }
}

impl ExpressionBuilder {
    /// A function of one step, expanded down to primitive functions.
    fn expanded_unary(&mut self, function: UnaryFunction, x: ScalarId, dtype: DType) -> ScalarId {
        let first_new = self.len();
        let Some(result) = function.expand(self, x, dtype) else { return self.unary(function, x) };
        let added = self.split_off(first_new);
        let mut map: Vec<ScalarId> = Vec::new();
        for node in added {
            let resolve = |child: ScalarId| {
                let child = child as usize;
                if child < first_new { child as ScalarId } else { map[child - first_new] }
            };
            let id = match node.map_children(resolve) {
                ScalarNode::Unary(inner, y) => self.expanded_unary(inner, y, dtype),
                other => self.push(other),
            };
            map.push(id);
        }
        if (result as usize) < first_new { result } else { map[result as usize - first_new] }
    }
}

impl UnaryFunction {
    /// How a composite function is made of primitive ones; `None` for a primitive.
    pub fn expand(self, b: &mut ExpressionBuilder, x: ScalarId, dtype: DType) -> Option<ScalarId> {
        use BinaryFunction as B;
        use UnaryFunction as U;
        let literal = |b: &mut ExpressionBuilder, value: f64| b.number(dtype, value);
        Some(match self {
            U::Reciprocal => {
                let one = literal(b, 1.0);
                b.binary(B::Divide, one, x)
            }
            U::Rsqrt => {
                let root = b.unary(U::Sqrt, x);
                let one = literal(b, 1.0);
                b.binary(B::Divide, one, root)
            }
            U::Square => b.binary(B::Multiply, x, x),
            U::Exp2 => {
                let log2 = literal(b, std::f64::consts::LN_2);
                let scaled = b.binary(B::Multiply, x, log2);
                b.unary(U::Exp, scaled)
            }
            U::Log2 | U::Log10 => {
                let factor = if self == U::Log2 { std::f64::consts::LOG2_E } else { std::f64::consts::LOG10_E };
                let log = b.unary(U::Log, x);
                let factor = literal(b, factor);
                b.binary(B::Multiply, log, factor)
            }
            U::Sigmoid => {
                let negated = b.unary(U::Negate, x);
                let exp = b.unary(U::Exp, negated);
                let one = literal(b, 1.0);
                let sum = b.binary(B::Add, one, exp);
                b.binary(B::Divide, one, sum)
            }
            U::Relu6 => {
                let relu = b.unary(U::Relu, x);
                let six = literal(b, 6.0);
                b.binary(B::Minimum, relu, six)
            }
            U::Silu => {
                let sigmoid = b.unary(U::Sigmoid, x);
                b.binary(B::Multiply, x, sigmoid)
            }
            U::Gelu => {
                let factor = literal(b, std::f64::consts::FRAC_1_SQRT_2);
                let scaled = b.binary(B::Multiply, x, factor);
                let erf = b.unary(U::Erf, scaled);
                half_of_one_plus(b, x, erf, dtype)
            }
            U::GeluTanh => {
                let square = b.binary(B::Multiply, x, x);
                let cube = b.binary(B::Multiply, square, x);
                let factor = literal(b, 0.044715);
                let cubic = b.binary(B::Multiply, cube, factor);
                let sum = b.binary(B::Add, x, cubic);
                let scale = literal(b, (2.0 / std::f64::consts::PI).sqrt());
                let scaled = b.binary(B::Multiply, sum, scale);
                let tanh = b.unary(U::Tanh, scaled);
                half_of_one_plus(b, x, tanh, dtype)
            }
            U::HardSigmoid => {
                let three = literal(b, 3.0);
                let shifted = b.binary(B::Add, x, three);
                let clipped = b.unary(U::Relu6, shifted);
                let six = literal(b, 6.0);
                b.binary(B::Divide, clipped, six)
            }
            U::HardSwish => {
                let gate = b.unary(U::HardSigmoid, x);
                b.binary(B::Multiply, x, gate)
            }
            U::Softplus => {
                let magnitude = b.unary(U::Absolute, x);
                let negated = b.unary(U::Negate, magnitude);
                let exp = b.unary(U::Exp, negated);
                let log = b.unary(U::Log1p, exp);
                let relu = b.unary(U::Relu, x);
                b.binary(B::Add, relu, log)
            }
            U::Mish => {
                let softplus = b.unary(U::Softplus, x);
                let tanh = b.unary(U::Tanh, softplus);
                b.binary(B::Multiply, x, tanh)
            }
            U::Softsign => {
                let magnitude = b.unary(U::Absolute, x);
                let one = literal(b, 1.0);
                let sum = b.binary(B::Add, one, magnitude);
                b.binary(B::Divide, x, sum)
            }
            U::LogSigmoid => {
                let negated = b.unary(U::Negate, x);
                let softplus = b.unary(U::Softplus, negated);
                b.unary(U::Negate, softplus)
            }
            _ => return None,
        })
    }

    /// Whether [`UnaryFunction::expand`] gives an expansion.
    pub fn is_composite(self) -> bool {
        Expression::unary(self).primitive(&[DType::F32]) != Expression::unary(self)
    }
}

fn half_of_one_plus(b: &mut ExpressionBuilder, x: ScalarId, y: ScalarId, dtype: DType) -> ScalarId {
    let one = b.number(dtype, 1.0);
    let sum = b.binary(BinaryFunction::Add, one, y);
    let half = b.number(dtype, 0.5);
    let halved = b.binary(BinaryFunction::Multiply, x, half);
    b.binary(BinaryFunction::Multiply, halved, sum)
}
