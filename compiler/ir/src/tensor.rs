//! [`Tensor`]: the evaluator's values. Floats of every width are held as doubles that their type can represent, integers as
//! `i64` (`u64` by its bits), so that each operator has one plain evaluation for all of them.

use crate::literal::Literal;
use crate::rounding::{float_bits, float_of_bits, round_float, saturate, wrap_integer};
use crate::types::{DType, TensorType};

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
                Literal::Float(_, value) => saturate(ty.dtype, value.0),
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
