//! `map`: any scalar expression of the elements of tensors, which broadcast. Chains of elementwise operators fuse to it.

use crate::scalar::{BinaryFunction, Expression, UnaryFunction};
use crate::types::{DType, TensorType};

crate::operator_fields! {
    /// Any scalar expression of the elements of tensors, which broadcast.
    pub struct Map {
        /// The expression; operand k is its x<k>.
        pub expression: Expression,
    }
}

crate::elementwise_operator!(Map, "map", None, |self, _types| Some(self.expression.clone()), |generator| {
    let shape = generator.shape(0, 4);
    let other = generator.broadcastable(&shape);
    let outer = generator.choose(&[BinaryFunction::Add, BinaryFunction::Multiply, BinaryFunction::Maximum]);
    let inner = generator.choose(&[UnaryFunction::Relu, UnaryFunction::Sigmoid, UnaryFunction::Tanh, UnaryFunction::Negate]);
    let scale = generator.unit();
    let expression = Expression::build(|b| {
        let (x, y) = (b.operand(0), b.operand(1));
        let factor = b.number(DType::F32, scale);
        let scaled = b.binary(BinaryFunction::Multiply, x, factor);
        let inner = b.unary(inner, scaled);
        b.binary(outer, inner, y)
    });
    (Map { expression }, vec![TensorType::new(DType::F32, shape), TensorType::new(DType::F32, other)])
});
