//! `clamp`: max(low, min(x, high)); NaN stays.

use crate::scalar::{BinaryFunction, Expression};
use crate::types::{Float, TensorType};

crate::operator_fields! {
    /// max(low, min(x, high)); NaN stays.
    pub struct Clamp {
        /// Smallest result, -inf for none.
        pub low: Float,
        /// Largest result, inf for none.
        pub high: Float,
    }
}

crate::elementwise_operator!(
    Clamp,
    "clamp",
    Some(1),
    |self, types| Some(Expression::build(|b| {
        let dtype = types[0].dtype;
        let mut x = b.operand(0);
        if self.low.0 > f64::NEG_INFINITY {
            let low = b.number(dtype, self.low.0);
            x = b.binary(BinaryFunction::Maximum, x, low);
        }
        if self.high.0 < f64::INFINITY {
            let high = b.number(dtype, self.high.0);
            x = b.binary(BinaryFunction::Minimum, x, high);
        }
        x
    })),
    |generator| {
        let low = if generator.one_in(3) { f64::NEG_INFINITY } else { -1.0 };
        let high = if generator.one_in(3) { f64::INFINITY } else { 2.0 };
        let dtype = generator.number_dtype();
        (Clamp { low: Float(low), high: Float(high) }, vec![TensorType::new(dtype, generator.shape(0, 4))])
    }
);
