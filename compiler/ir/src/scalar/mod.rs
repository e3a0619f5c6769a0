//! Scalar functions and expressions: what elementwise operators and epilogues compute for each element.

mod evaluate;
mod expansion;
mod expression;
mod fixed_point;
mod functions;
mod text;

pub use evaluate::{Scalar, evaluate_scalar, evaluate_step};
pub use expression::{Expression, ExpressionBuilder, ScalarId, ScalarNode};
pub use fixed_point::fixed_point;
pub use functions::{BinaryFunction, Rounding, UnaryFunction};
