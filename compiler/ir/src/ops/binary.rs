//! `binary`: a function of the elements of two tensors, which broadcast.

use crate::scalar::{BinaryFunction, Expression};
use crate::types::{DType, TensorType};

crate::operator_fields! {
    /// A function of the elements of two tensors, which broadcast.
    pub struct Binary {
        /// The function.
        pub function: BinaryFunction,
    }
}

crate::elementwise_operator!(Binary, "binary", Some(2), |self, _types| Some(Expression::binary(self.function)), |generator| {
    let function = generator.choose(BinaryFunction::ALL);
    let common = [generator.number_dtype(), generator.integer_dtype(), DType::Bool];
    let legal: Vec<DType> = common.into_iter().filter(|&dtype| function.result_dtype(dtype).is_some()).collect();
    let dtype = if legal.is_empty() { DType::F32 } else { generator.choose(&legal) };
    let left = generator.shape(0, 4);
    let right = generator.broadcastable(&left);
    let mut operands = vec![TensorType::new(dtype, left), TensorType::new(dtype, right)];
    if generator.one_in(2) {
        operands.swap(0, 1);
    }
    (Binary { function }, operands)
});
