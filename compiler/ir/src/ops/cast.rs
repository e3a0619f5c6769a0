//! `cast`: conversion to another data type. Floats truncate to integers and saturate, NaN gives 0; to bool is `!= 0`.

use crate::scalar::Expression;
use crate::types::{DType, TensorType};

crate::operator_fields! {
    /// Conversion to another data type.
    pub struct Cast {
        /// The new type.
        pub dtype: DType,
    }
}

crate::elementwise_operator!(
    Cast,
    "cast",
    Some(1),
    |self, _types| Some(Expression::build(|b| {
        let x = b.operand(0);
        b.cast(self.dtype, x)
    })),
    |generator| {
        let from = generator.choose(&DType::ALL);
        let dtype = generator.choose(&DType::ALL);
        (Cast { dtype }, vec![TensorType::new(from, generator.shape(0, 4))])
    }
);
