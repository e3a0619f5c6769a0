//! The PNNX format: a `.param` text of operators beside a `.bin` archive of weights.

pub mod expression;
pub mod model;
pub mod value;

pub use expression::{Expression, ExpressionError};
pub use model::{
    Attribute, Complex, Dimension, ElementType, Model, Operand, OperandId, OperandType, Operator, OperatorId, Parameter,
};
