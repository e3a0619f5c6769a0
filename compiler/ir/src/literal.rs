//! [`Literal`]: one typed number.

use crate::rounding::{round_float, saturate, wrap_integer};
use crate::types::{DType, Float};
use std::fmt;

/// One typed number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Literal {
    /// A value of a floating-point type, already rounded to it.
    Float(DType, Float),
    /// A value of an integer type or bool, already within its range.
    Integer(DType, i64),
}

impl Literal {
    /// A floating-point literal, rounded to its type.
    pub fn float(dtype: DType, value: f64) -> Self {
        Literal::Float(dtype, Float(round_float(dtype, value)))
    }

    /// An integer literal, wrapped to its type.
    pub fn integer(dtype: DType, value: i64) -> Self {
        Literal::Integer(dtype, wrap_integer(dtype, value))
    }

    /// A number as a literal of any type; integers truncate it, up to the ends of their range.
    pub fn of(dtype: DType, value: f64) -> Self {
        if dtype.is_float() { Literal::float(dtype, value) } else { Literal::integer(dtype, saturate(dtype, value)) }
    }

    /// Its data type.
    pub fn dtype(self) -> DType {
        match self {
            Literal::Float(dtype, _) | Literal::Integer(dtype, _) => dtype,
        }
    }

    /// Its value as a double.
    pub fn to_f64(self) -> f64 {
        match self {
            Literal::Float(_, value) => value.0,
            Literal::Integer(DType::U64, value) => value as u64 as f64,
            Literal::Integer(_, value) => value as f64,
        }
    }

    /// Whether it is a floating-point number with all the digits of its type: neither zero or denormal, nor NaN or infinite.
    pub fn is_normal(self) -> bool {
        let smallest = match self.dtype() {
            DType::F16 => 2f64.powi(-14),
            DType::Bf16 | DType::F32 => f64::from(f32::MIN_POSITIVE),
            DType::F64 => f64::MIN_POSITIVE,
            _ => return false,
        };
        let value = self.to_f64();
        value.is_finite() && value.abs() >= smallest
    }
}

/// `0.5_f32`, `7_i64`, `true`.
impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Integer(DType::Bool, value) => write!(f, "{}", *value != 0),
            Literal::Integer(DType::U64, value) => write!(f, "{}_u64", *value as u64),
            Literal::Integer(dtype, value) => write!(f, "{value}_{dtype}"),
            Literal::Float(DType::F32, value) if value.0.is_finite() => write!(f, "{:?}_f32", value.0 as f32),
            Literal::Float(dtype, value) => match value.to_string().split_once('(') {
                Some((nan, bits)) => write!(f, "{nan}_{dtype}({bits}"),
                None => write!(f, "{value}_{dtype}"),
            },
        }
    }
}
