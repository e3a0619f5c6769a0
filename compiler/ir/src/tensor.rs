//! [`Tensor`]: the evaluator's values. Floats of every width are held as doubles that their type can represent, integers as
//! `i64` (`u64` by its bits), so that each operator has one plain evaluation for all of them.

use crate::attribute::Literal;
use crate::types::{DType, TensorType};
use half::{bf16, f16};

/// The elements, in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Values of a floating-point type.
    Float(Vec<f64>),
    /// Values of an integer type, or of `bool` as 0 and 1.
    Integer(Vec<i64>),
}

/// A dense tensor with its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    ty: TensorType,
    values: Values,
}

impl Tensor {
    /// A floating-point tensor; each value is rounded to the data type.
    ///
    /// Precondition: `values.len() == ty.elements()` and a floating-point type.
    pub fn from_floats(ty: TensorType, mut values: Vec<f64>) -> Self {
        debug_assert_eq!(values.len(), ty.elements());
        debug_assert!(ty.dtype.is_float());
        for value in &mut values {
            *value = round_float(ty.dtype, *value);
        }
        Tensor { ty, values: Values::Float(values) }
    }

    /// An integer or bool tensor; each value is wrapped to the data type.
    ///
    /// Precondition: `values.len() == ty.elements()` and an integer type or bool.
    pub fn from_integers(ty: TensorType, mut values: Vec<i64>) -> Self {
        debug_assert_eq!(values.len(), ty.elements());
        debug_assert!(!ty.dtype.is_float());
        for value in &mut values {
            *value = wrap_integer(ty.dtype, *value);
        }
        Tensor { ty, values: Values::Integer(values) }
    }

    /// A tensor of values of the type's kind, rounded or wrapped to it.
    ///
    /// Precondition: as many values as `ty` has elements, floats for a floating-point type, else integers.
    pub fn from_values(ty: TensorType, values: Values) -> Self {
        match values {
            Values::Float(values) => Tensor::from_floats(ty, values),
            Values::Integer(values) => Tensor::from_integers(ty, values),
        }
    }

    /// A tensor whose elements are all one literal's value, converted to the tensor's data type.
    pub fn splat(ty: TensorType, literal: Literal) -> Self {
        let elements = ty.elements();
        if ty.dtype.is_float() {
            Tensor::from_floats(ty, vec![literal.to_f64(); elements])
        } else {
            let value = match literal {
                Literal::Integer(_, value) => value,
                Literal::Float(_, value) => crate::scalar::saturate(ty.dtype, value.0),
            };
            Tensor::from_integers(ty, vec![value; elements])
        }
    }

    /// A tensor whose element `i` is element `source(i)` of this one: data movement of every kind.
    pub fn rearrange(&self, ty: TensorType, source: impl FnMut(usize) -> usize) -> Self {
        let range = 0..ty.elements();
        let values = match &self.values {
            Values::Float(values) => Values::Float(range.map(source).map(|index| values[index]).collect()),
            Values::Integer(values) => Values::Integer(range.map(source).map(|index| values[index]).collect()),
        };
        Tensor { ty, values }
    }

    /// Data type and shape.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// Extents.
    pub fn shape(&self) -> &[usize] {
        &self.ty.shape
    }

    /// The elements.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The elements as doubles, whatever the type.
    pub fn to_floats(&self) -> Vec<f64> {
        match &self.values {
            Values::Float(values) => values.clone(),
            Values::Integer(values) if self.ty.dtype == DType::U64 => {
                values.iter().map(|&value| value as u64 as f64).collect()
            }
            Values::Integer(values) => values.iter().map(|&value| value as f64).collect(),
        }
    }

    /// The elements as integers; floats are truncated.
    pub fn to_integers(&self) -> Vec<i64> {
        match &self.values {
            Values::Float(values) => values.iter().map(|&value| value as i64).collect(),
            Values::Integer(values) => values.clone(),
        }
    }

    /// The same elements under another shape with as many elements.
    pub fn with_shape(mut self, shape: &[usize]) -> Self {
        debug_assert_eq!(shape.iter().product::<usize>(), self.ty.elements());
        self.ty.shape = shape.into();
        self
    }

    /// Little-endian bytes, as files and generated C hold them.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.ty.bytes());
        let (dtype, size) = (self.ty.dtype, self.ty.dtype.size());
        match &self.values {
            Values::Float(values) => {
                for &value in values {
                    bytes.extend(&float_bits(dtype, value).to_le_bytes()[..size]);
                }
            }
            Values::Integer(values) => {
                for value in values {
                    bytes.extend(&value.to_le_bytes()[..size]);
                }
            }
        }
        bytes
    }

    /// Reads little-endian bytes. Precondition: `bytes.len() == ty.bytes()`.
    pub fn from_le_bytes(ty: TensorType, bytes: &[u8]) -> Self {
        debug_assert_eq!(bytes.len(), ty.bytes());
        let chunks = bytes.chunks_exact(ty.dtype.size());
        let values = if ty.dtype.is_float() {
            Values::Float(chunks.map(|chunk| float_of_bits(ty.dtype, read_bits(chunk))).collect())
        } else {
            Values::Integer(chunks.map(|chunk| wrap_integer(ty.dtype, read_bits(chunk) as i64)).collect())
        };
        Tensor { ty, values }
    }
}

/// The bits of an element, the upper ones 0.
fn read_bits(chunk: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..chunk.len()].copy_from_slice(chunk);
    u64::from_le_bytes(word)
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
