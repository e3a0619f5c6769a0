//! The helper functions that generated C carries, by what they compute, and how a text asks for them: kernels do, and helpers that
//! call others.

use super::ValueType;
use super::expression::Rescaling;
use super::routine::Routine;
use mlc_ir::DType;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};

/// A helper that needs to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intrinsic {
    /// A function of one value of a type.
    Unary(UnaryFunction, ValueType),
    /// A function of two values of a type.
    Binary(BinaryFunction, ValueType),
    /// A choice per lane between vectors.
    Select(ValueType),
    /// The same number in all lanes.
    Splat(ValueType),
    /// The lanes of a vector combined.
    Fold(BinaryFunction, ValueType),
    /// A conversion of each lane: saturating from floating-point numbers to integers, rounding to half precision.
    Cast(DType, ValueType),
    /// The bits of a number of the first type as one of the second, which has the same size.
    BitCast(DType, DType),
    /// Two neighbouring halves at a multiple of words as a word.
    HalfPair,
    /// A half of such a word as a single.
    HalfOf {
        /// Whether it is the upper one.
        is_upper: bool,
    },
    /// The bits of a half as a number of C's.
    Half,
    /// An integer of a type times a multiplier by two to the power of a shift, rounded.
    Rescale(Rescaling, DType),
    /// Four integers of 32 bits times multipliers by two to the power of shifts to the right, rounded twice; where it is set,
    /// each has its own multiplier and shift.
    RescaleLanes(bool),
    /// An integer of 32 bits as one of a narrow type, saturated.
    Saturate(DType),
    /// Two neighbouring numbers of 16 bits as a word.
    Pair,
    /// A sum and the products of the halves of two words.
    Dot,
    /// A routine.
    Routine(Routine),
}

/// Keeps what a file needs.
pub trait Helpers {
    /// Notes that a type is used.
    fn use_type(&mut self, ty: ValueType);

    /// Notes that a helper is used and gives its name.
    fn call(&mut self, intrinsic: Intrinsic) -> String;
}
