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
        /// Whether they are only read.
        constant: bool,
    },
}

/// A variable's name in C and kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarInfo {
    /// C identifier, unique in the function.
    pub name: String,
    /// What it is.
    pub kind: VarKind,
}
