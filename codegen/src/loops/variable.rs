//! Variables of a loop program, and types of values.

use mlc_ir::DType;

/// A variable of a function, by its number.
pub type Var = u32;

/// Type of a value: one element, or a vector of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueType {
    /// Type of each lane. A `bool` vector is a mask as wide as the compared type.
    pub dtype: DType,
    /// Number of lanes; 1 is a scalar.
    pub lanes: usize,
}

impl ValueType {
    /// A scalar.
    pub fn scalar(dtype: DType) -> Self {
        ValueType { dtype, lanes: 1 }
    }

    /// A vector, or a scalar for one lane.
    pub fn vector(dtype: DType, lanes: usize) -> Self {
        ValueType { dtype, lanes }
    }
}

/// What a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VarKind {
    /// A loop counter or another integer used for addresses.
    Index,
    /// A value.
    Value(ValueType),
    /// A pointer to elements.
    Pointer {
        /// Type of the elements.
        dtype: DType,
        /// What they are.
        holds: Holds,
    },
}

/// What lies behind a pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Constants of the program: what was computed before has long driven them out of caches that don't hold all of it.
    Constants,
    /// Values that are only read.
    Operand,
    /// Values that are written.
    Result,
    /// What each turn of a loop that writes results gathers for itself: none reads what another one has written, so that such turns may come in any
    /// order, but not at the same time.
    Gathered,
}

impl Holds {
    /// Whether anything is written there.
    pub fn is_written(self) -> bool {
        matches!(self, Holds::Result | Holds::Gathered)
    }
}

/// A variable's name in C and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarInfo {
    /// C identifier, unique in the function.
    pub name: String,
    /// What it is.
    pub kind: VarKind,
}
