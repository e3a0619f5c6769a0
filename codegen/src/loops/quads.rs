//! Vectors of four integers of 32 bits as Arm's vector extension for microcontrollers has them: loaded from bytes, rescaled, and stored as
//! bytes.

use super::ValueType;
use mlc_ir::DType;

/// Four integers.
pub const QUAD: ValueType = ValueType { dtype: DType::I32, lanes: 4 };

/// What their vectors are made of, so that they are those of the intrinsics: on these machines `int32_t` is another type.
pub const QUAD_ELEMENT: &str = "int";

/// Four bytes of a type from an address on as such a vector.
pub fn widened(dtype: DType, address: &str) -> String {
    match dtype {
        DType::U8 => format!("(i32x4)vldrbq_u32({address})"),
        _ => format!("vldrbq_s32({address})"),
    }
}

/// The statement that stores the lowest byte of each lane as a byte of a type.
pub fn store_bytes(dtype: DType, address: &str, value: &str) -> String {
    match dtype {
        DType::U8 => format!("vstrbq_u32({address}, (uint32x4_t){value});"),
        _ => format!("vstrbq_s32({address}, {value});"),
    }
}

/// The name of the helper that rescales lanes, where it is set each by numbers of its own.
pub fn rescale_name(own: bool) -> &'static str {
    if own { "mlc_rescale_twice_each_i32x4" } else { "mlc_rescale_twice_i32x4" }
}

/// That helper. Halves are rounded up by the shift; those of negative numbers must be rounded down. Nothing is rounded where one shift for
/// all is by 31.
pub fn rescale(name: &str, own: bool) -> String {
    let (number, scalar, right, condition) = match own {
        true => ("i32x4", "", "vsubq_s32(vdupq_n_s32(31), shift)", ""),
        false => ("int32_t", "_n", "31 - shift", "if (shift > 31) "),
    };
    format!(
        "static inline i32x4 {name}(i32x4 x, {number} multiplier, {number} shift, int32_t added) {{\n  \
           i32x4 value = vqrdmulhq{scalar}_s32(x, multiplier);\n  \
           {condition}{{\n    \
             value = vaddq_s32(value, vshrq_n_s32(value, 31));\n    \
             value = vrshlq{scalar}_s32(value, {right});\n  \
           }}\n  \
           if (added != 0) {{\n    \
             value = vaddq_n_s32(value, added);\n  \
           }}\n  \
           return value;\n}}\n"
    )
}
