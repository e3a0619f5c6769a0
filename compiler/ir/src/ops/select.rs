//! `select`: element of the second operand where the first, a bool, is true, else of the third; all broadcast.

use crate::scalar::Expression;
use crate::types::{DType, TensorType};

crate::operator_fields! {
    /// Element of the second operand where the first, a bool, is true, else of the third; all broadcast.
    pub struct Select {}
}

crate::elementwise_operator!(
    Select,
    "select",
    Some(3),
    |self, _types| Some(Expression::build(|b| {
        let (condition, first, second) = (b.operand(0), b.operand(1), b.operand(2));
        b.select(condition, first, second)
    })),
    |generator| {
        let shape = generator.shape(0, 4);
        let dtype = generator.movement_dtype();
        let condition = TensorType::new(DType::Bool, generator.broadcastable(&shape));
        let second = TensorType::new(dtype, generator.broadcastable(&shape));
        (Select {}, vec![condition, TensorType::new(dtype, shape), second])
    }
);
