//! `bit_cast`: the same bits as numbers of another data type of the same size; which NaN it is isn't kept.

use crate::scalar::Expression;
use crate::types::{DType, TensorType};

crate::operator_fields! {
    /// The same bits as numbers of another data type of the same size.
    pub struct BitCast {
        /// The new type.
        pub dtype: DType,
    }
}

crate::elementwise_operator!(
    BitCast,
    "bit_cast",
    Some(1),
    |self, _types| Some(Expression::build(|b| {
        let x = b.operand(0);
        b.bit_cast(self.dtype, x)
    })),
    |generator| {
        let numbers: Vec<DType> = DType::ALL.into_iter().filter(|&dtype| dtype != DType::Bool).collect();
        let from = generator.choose(&numbers);
        let alike: Vec<DType> = numbers.into_iter().filter(|dtype| dtype.size() == from.size()).collect();
        let dtype = generator.choose(&alike);
        (BitCast { dtype }, vec![TensorType::new(from, generator.shape(0, 4))])
    }
);
