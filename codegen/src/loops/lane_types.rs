//! The integer types that vectors of other types are seen as: for their bits, their comparisons, and sums that wrap.

use super::ValueType;
use super::spelling::value_type_name;
use mlc_ir::DType;

/// The integer type whose lanes hold comparisons of a type.
pub fn mask_dtype(dtype: DType) -> DType {
    signed_of_size(dtype.size())
}

/// The signed integer type of so many bytes.
pub fn signed_of_size(bytes: usize) -> DType {
    match bytes {
        1 => DType::I8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

/// The unsigned type of an integer type's width, whose arithmetic wraps.
pub fn unsigned_dtype(dtype: DType) -> DType {
    unsigned_of_size(dtype.size())
}

/// The unsigned integer type of so many bytes.
pub fn unsigned_of_size(bytes: usize) -> DType {
    match bytes {
        1 => DType::U8,
        2 => DType::U16,
        4 => DType::U32,
        _ => DType::U64,
    }
}

/// The name of the vector of those.
pub fn unsigned_name(ty: ValueType) -> String {
    value_type_name(ValueType { dtype: unsigned_dtype(ty.dtype), ..ty })
}

/// The name of the vector that holds comparisons of vectors of a type.
pub fn mask_name(ty: ValueType) -> String {
    value_type_name(ValueType::vector(mask_dtype(ty.dtype), ty.lanes))
}
