//! `leaky_relu`: x where x >= 0, else slope * x.

use crate::scalar::{BinaryFunction, Expression};
use crate::types::{Float, TensorType};

crate::operator_fields! {
    /// x where x >= 0, else slope * x.
    pub struct LeakyRelu {
        /// Factor of negative elements.
        pub slope: Float,
    }
}

crate::elementwise_operator!(
    LeakyRelu,
    "leaky_relu",
    Some(1),
    |self, types| types[0].dtype.is_float().then(|| Expression::build(|b| {
        let x = b.operand(0);
        let zero = b.number(types[0].dtype, 0.0);
        let slope = b.number(types[0].dtype, self.slope.0);
        let negative = b.binary(BinaryFunction::Less, x, zero);
        let scaled = b.binary(BinaryFunction::Multiply, x, slope);
        b.select(negative, scaled, x)
    })),
    |generator| {
        let slope = Float(generator.unit());
        (LeakyRelu { slope }, vec![TensorType::new(generator.float_dtype(), generator.shape(0, 4))])
    }
);
