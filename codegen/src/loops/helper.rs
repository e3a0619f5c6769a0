//! The helper functions that generated C carries, by what they compute, and how a text asks for them: kernels do, and helpers that
//! call others.

use super::ValueType;
use super::expression::{Integers, Rescaling};
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
    /// The lesser or greater of a value of a type and a number, one of `extremes::bound`.
    Bounded(BinaryFunction, ValueType),
    /// A choice per lane between vectors.
    Select(ValueType),
    /// A choice per lane between vectors of the last type by a comparison of vectors of the first, where an instruction takes its result.
    SelectBy(BinaryFunction, ValueType, ValueType),
    /// The same number in all lanes.
    Splat(ValueType),
    /// The lanes of a vector combined.
    Fold(BinaryFunction, ValueType),
    /// A vector that isn't read from memory again.
    Held(ValueType),
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
    /// Integers of a type times multipliers by two to the power of shifts, rounded.
    Rescale(Rescaling, ValueType),
    /// Four integers of 32 bits times multipliers by two to the power of shifts to the right, rounded twice; where it is set,
    /// each has its own multiplier and shift.
    RescaleLanes(bool),
    /// Integers of 32 bits, so many lanes of them, as ones of a narrow type, saturated.
    Saturate(DType, usize),
    /// Integers of 32 bits times slopes and with offsets, rounded to integers, in vectors of so many lanes.
    Line(Integers, usize),
    /// Two neighbouring numbers of 16 bits as a word.
    Pair,
    /// Sums and the products of the halves of two words, in vectors of so many lanes.
    Dot(usize),
    /// Neighbouring bytes as words of two numbers of 16 bits, in vectors of so many lanes.
    WidePairs(usize),
    /// Four neighbouring bytes as a word.
    Quad,
    /// Sums and the products of the bytes of two words, in vectors of so many lanes.
    QuadDot(usize),
    /// A routine.
    Routine(Routine),
    /// What stands before a loop whose turns aren't to be written one after the other.
    Rolled,
}

/// Keeps what a file needs.
pub trait Helpers {
    /// Notes that a type is used.
    fn use_type(&mut self, ty: ValueType);

    /// Notes that a helper is used and gives its name.
    fn call(&mut self, intrinsic: Intrinsic) -> String;
}
