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
    let legal: Vec<DType> =
        [DType::F32, DType::I32, DType::Bool].into_iter().filter(|&dtype| function.result_dtype(dtype).is_some()).collect();
    let dtype = generator.choose(&legal);
    (Unary { function }, vec![TensorType::new(dtype, generator.shape(0, 4))])
});
