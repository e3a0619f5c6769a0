//! `unary`: a function of each element.

use crate::scalar::{Expression, UnaryFunction};
use crate::types::{DType, TensorType};

crate::operator_fields! {
    /// A function of each element.
    pub struct Unary {
        /// The function.
        pub function: UnaryFunction,
    }
}

crate::elementwise_operator!(Unary, "unary", Some(1), |self, _types| Some(Expression::unary(self.function)), |generator| {
    let function = generator.choose(UnaryFunction::ALL);
    let common = [generator.number_dtype(), generator.integer_dtype(), DType::Bool];
    let legal: Vec<DType> = common.into_iter().filter(|&dtype| function.result_dtype(dtype).is_some()).collect();
    let dtype = if legal.is_empty() { DType::F32 } else { generator.choose(&legal) };
    (Unary { function }, vec![TensorType::new(dtype, generator.shape(0, 4))])
});
