//! Numbers as a data type represents them: rounded, wrapped, as bits.

use crate::types::DType;
use half::{bf16, f16};

/// The nearest value that a floating-point type can represent.
pub fn round_float(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::F16 => f16::from_f32(round_to_odd(value)).to_f64(),
        DType::Bf16 => bf16::from_f32(round_to_odd(value)).to_f64(),
        DType::F32 => f64::from(value as f32),
        _ => value,
    }
}

/// The single beside a double whose last bit is set, unless it is exact. Rounding it to a narrower type rounds the double
/// once; by way of the nearest single, as some machines convert, it would be rounded twice.
fn round_to_odd(value: f64) -> f32 {
    let single = value as f32;
    if value.is_nan() || f64::from(single) == value {
        return single;
    }
    let away = f64::from(single).abs() > value.abs();
    f32::from_bits((single.to_bits() - u32::from(away)) | 1)
}

/// The value that two's complement arithmetic of an integer type leaves; for bool, whether it isn't 0.
pub fn wrap_integer(dtype: DType, value: i64) -> i64 {
    match dtype {
        DType::I8 => i64::from(value as i8),
        DType::U8 => i64::from(value as u8),
        DType::I16 => i64::from(value as i16),
        DType::U16 => i64::from(value as u16),
        DType::I32 => i64::from(value as i32),
        DType::U32 => i64::from(value as u32),
        DType::Bool => i64::from(value != 0),
        _ => value,
    }
}

/// A number without its fraction, within the range of an integer type; NaN gives 0.
pub fn saturate(to: DType, value: f64) -> i64 {
    match to {
        DType::I8 => i64::from(value as i8),
        DType::U8 => i64::from(value as u8),
        DType::I16 => i64::from(value as i16),
        DType::U16 => i64::from(value as u16),
        DType::I32 => i64::from(value as i32),
        DType::U32 => i64::from(value as u32),
        DType::U64 => (value as u64) as i64,
        _ => value as i64,
    }
}

/// The bits that represent a value of a floating-point type; the upper ones are 0.
pub fn float_bits(dtype: DType, value: f64) -> u64 {
    match dtype {
        DType::F64 => value.to_bits(),
        DType::F16 => u64::from(f16::from_f32(value as f32).to_bits()),
        DType::Bf16 => u64::from(bf16::from_f32(value as f32).to_bits()),
        _ => u64::from((value as f32).to_bits()),
    }
}

/// The value of a floating-point type that the lower bits represent.
pub fn float_of_bits(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::F64 => f64::from_bits(bits),
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        DType::Bf16 => bf16::from_bits(bits as u16).to_f64(),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}
