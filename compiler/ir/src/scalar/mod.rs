//! Scalar functions and expressions: what elementwise operators and epilogues compute for each element.

mod evaluate;
mod expression;
mod functions;
mod text;

pub(crate) use evaluate::saturate;
pub use evaluate::{Scalar, evaluate_scalar};
pub use expression::{Expression, ExpressionBuilder, ScalarId, ScalarNode};
pub use functions::{BinaryFunction, UnaryFunction};
