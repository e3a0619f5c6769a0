//! `elu`: x where x > 0, else alpha * (e^x - 1).

use crate::scalar::{BinaryFunction, Expression, UnaryFunction};
use crate::types::{Float, TensorType};

crate::operator_fields! {
    /// x where x > 0, else alpha * (e^x - 1).
    pub struct Elu {
        /// Factor of the exponential.
        pub alpha: Float,
    }
}

crate::elementwise_operator!(
    Elu,
    "elu",
    Some(1),
    |self, types| Some(Expression::build(|b| {
        let x = b.operand(0);
        let zero = b.number(types[0].dtype, 0.0);
        let alpha = b.number(types[0].dtype, self.alpha.0);
        let positive = b.binary(BinaryFunction::Greater, x, zero);
        let exponential = b.unary(UnaryFunction::Expm1, x);
        let scaled = b.binary(BinaryFunction::Multiply, alpha, exponential);
        b.select(positive, x, scaled)
    })),
    |generator| {
        let alpha = Float(generator.unit() + 1.5);
        (Elu { alpha }, vec![TensorType::new(generator.float_dtype(), generator.shape(0, 4))])
    }
);
