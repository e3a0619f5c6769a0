//! [`Attribute`]: a weight tensor as a model file holds it. Bytes are shared, never copied on load; `concat` and `slice` are its algebra.

use crate::checksum::Fnv;
use crate::literal::Literal;
use crate::parallel;
use crate::tensor::{Tensor, Values};
use crate::transposition::transposed;
use crate::types::{DType, Shape, TensorType};
use bytes::Bytes;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// A dense, row-major, little-endian constant.
#[derive(Clone)]
pub struct Attribute {
    ty: TensorType,
    bytes: Bytes,
    /// [`Attribute::content_hash`], once it was asked for.
    hash: Arc<OnceLock<u64>>,
    /// [`Attribute::word_hash`], once it was asked for.
    words: Arc<OnceLock<u64>>,
}

/// Why two attributes can't be joined, or an attribute can't be cut or made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributeError {
    /// The number of bytes isn't that of the type.
    #[error("{found} bytes given for {ty}, which has {expected}")]
    Size {
        /// The type asked for.
        ty: TensorType,
        /// Its bytes.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The attributes' types don't allow joining along the axis.
    #[error("can't concatenate {left} and {right} along axis {axis}")]
    Concat {
        /// First type.
        left: TensorType,
        /// The type that doesn't fit it.
        right: TensorType,
        /// The axis.
        axis: usize,
    },
    /// The axes aren't a permutation of the tensor's.
    #[error("{permutation:?} isn't a permutation of the axes of {ty}")]
    Transpose {
        /// The attribute's type.
        ty: TensorType,
        /// The axes given.
        permutation: Vec<usize>,
    },
    /// The cut leaves the tensor.
    #[error("can't take {start}..{end} along axis {axis} of {ty}")]
    Slice {
        /// The attribute's type.
        ty: TensorType,
        /// The axis.
        axis: usize,
        /// First index.
        start: usize,
        /// One past the last index.
        end: usize,
    },
}

impl Attribute {
    /// Wraps bytes, little-endian and dense.
    ///
    /// # Errors
    /// When the number of bytes isn't that of the type.
    pub fn new(ty: TensorType, bytes: impl Into<Bytes>) -> Result<Self, AttributeError> {
        let bytes = bytes.into();
        let expected = ty.checked_bytes();
        if expected != Some(bytes.len()) {
            let found = bytes.len();
            return Err(AttributeError::Size { ty, expected: expected.unwrap_or(usize::MAX), found });
        }
        Ok(Attribute { ty, bytes, hash: Arc::default(), words: Arc::default() })
    }

    /// An f32 attribute from values; `None` when their number isn't that of the shape.
    pub fn from_f32(shape: &[usize], values: &[f32]) -> Option<Self> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Attribute::new(TensorType::new(DType::F32, shape), bytes).ok()
    }

    /// An i64 attribute from values; `None` when their number isn't that of the shape.
    pub fn from_i64(shape: &[usize], values: &[i64]) -> Option<Self> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Attribute::new(TensorType::new(DType::I64, shape), bytes).ok()
    }

    /// A u8 attribute with one axis, such as a text.
    pub fn from_u8(values: impl Into<Bytes>) -> Self {
        let bytes = values.into();
        Attribute { ty: TensorType::new(DType::U8, [bytes.len()]), bytes, hash: Arc::default(), words: Arc::default() }
    }

    /// The attribute of an evaluated tensor, rounded to the tensor's data type.
    pub fn from_tensor(tensor: &Tensor) -> Self {
        Attribute {
            ty: tensor.ty().clone(),
            bytes: tensor.to_le_bytes().into(),
            hash: Arc::default(),
            words: Arc::default(),
        }
    }

    /// The values, for the evaluator.
    pub fn to_tensor(&self) -> Tensor {
        Tensor::from_le_bytes(self.ty.clone(), &self.bytes)
    }

    /// Data type and shape.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The raw little-endian bytes, not necessarily aligned.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The single value when all elements are bitwise equal and there is at least one.
    pub fn splat(&self) -> Option<Literal> {
        let size = self.ty.dtype.size();
        let first = self.bytes.get(..size)?;
        if self.bytes.chunks_exact(size).any(|element| element != first) {
            return None;
        }
        let one = Tensor::from_le_bytes(TensorType::new(self.ty.dtype, []), first);
        Some(match one.values() {
            Values::Float(values) => Literal::float(self.ty.dtype, values[0]),
            Values::Integer(values) => Literal::integer(self.ty.dtype, values[0]),
        })
    }

    /// Joins attributes along an axis. Axis 0 of two is the PNNX class's `operator+`.
    ///
    /// # Errors
    /// When data types, ranks or the other extents differ, when a rank is 0, or when nothing is given.
    pub fn concat(axis: usize, parts: &[&Attribute]) -> Result<Attribute, AttributeError> {
        let Some(first) = parts.first() else {
            let ty = TensorType::new(DType::F32, []);
            return Err(AttributeError::Concat { left: ty.clone(), right: ty, axis });
        };
        let mut ty = first.ty.clone();
        for part in parts {
            let fits = part.ty.dtype == ty.dtype
                && part.ty.rank() == ty.rank()
                && axis < ty.rank()
                && (0..ty.rank()).all(|other| other == axis || part.ty.shape[other] == ty.shape[other]);
            if !fits {
                return Err(AttributeError::Concat { left: first.ty.clone(), right: part.ty.clone(), axis });
            }
        }
        ty.shape[axis] = parts.iter().map(|part| part.ty.shape[axis]).sum();
        let outer: usize = ty.shape[..axis].iter().product();
        let mut bytes = Vec::with_capacity(ty.bytes());
        for row in 0..outer {
            for part in parts {
                let run = part.bytes.len() / outer.max(1);
                bytes.extend_from_slice(&part.bytes[row * run..(row + 1) * run]);
            }
        }
        Attribute::new(ty, bytes)
    }

    /// Cuts `start..end` along an axis; shares the bytes when the axis is the slowest.
    ///
    /// # Errors
    /// When the cut leaves the tensor.
    pub fn slice(&self, axis: usize, start: usize, end: usize) -> Result<Attribute, AttributeError> {
        if axis >= self.ty.rank() || start > end || end > self.ty.shape[axis] {
            return Err(AttributeError::Slice { ty: self.ty.clone(), axis, start, end });
        }
        let mut ty = self.ty.clone();
        ty.shape[axis] = end - start;
        let outer: usize = self.ty.shape[..axis].iter().product();
        let inner: usize = self.ty.shape[axis + 1..].iter().product::<usize>() * ty.dtype.size();
        if outer == 1 {
            return Attribute::new(ty, self.bytes.slice(start * inner..end * inner));
        }
        let run = self.ty.shape[axis] * inner;
        let mut bytes = Vec::with_capacity(ty.bytes());
        for row in 0..outer {
            bytes.extend_from_slice(&self.bytes[row * run + start * inner..row * run + end * inner]);
        }
        Attribute::new(ty, bytes)
    }

    /// Permutes the axes: axis `i` of the result is axis `permutation[i]` of this. Moves bytes, whatever the data type;
    /// shares them when only axes of extent 1 move.
    ///
    /// # Errors
    /// When it isn't a permutation of the axes.
    pub fn transpose(&self, permutation: &[usize]) -> Result<Attribute, AttributeError> {
        let mut sorted = permutation.to_vec();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..self.ty.rank()) {
            return Err(AttributeError::Transpose { ty: self.ty.clone(), permutation: permutation.to_vec() });
        }
        let shape: Shape = permutation.iter().map(|&axis| self.ty.shape[axis]).collect();
        let ty = TensorType { shape, ..self.ty.clone() };
        let moving: Vec<usize> = permutation.iter().copied().filter(|&axis| self.ty.shape[axis] != 1).collect();
        if moving.windows(2).all(|pair| pair[0] < pair[1]) || self.bytes.is_empty() {
            return Attribute::new(ty, self.bytes.clone());
        }
        let bytes = transposed(&self.bytes, self.ty.dtype.size(), &self.ty.shape, permutation);
        Attribute::new(ty, bytes)
    }

    /// The same bytes under another shape with as many elements.
    ///
    /// # Errors
    /// When the number of elements differs.
    pub fn reshape(&self, shape: &[usize]) -> Result<Attribute, AttributeError> {
        Attribute::new(TensorType { shape: shape.into(), ..self.ty.clone() }, self.bytes.clone())
    }

    /// FNV-1a over type and bytes: the same on every machine. Computed once.
    pub fn content_hash(&self) -> u64 {
        *self.hash.get_or_init(|| {
            let mut sum = self.hash_of_type();
            sum.feed(&self.bytes);
            sum.sum()
        })
    }

    /// Finds the [content hashes](Attribute::content_hash) of constants, in several threads where they are large.
    pub fn hash_together(mut values: Vec<&Attribute>) {
        values.retain(|value| value.hash.get().is_none());
        // Those of about the same size are hashed together.
        values.sort_by_key(|value| std::cmp::Reverse(value.bytes.len()));
        let bytes = values.iter().map(|value| value.bytes.len()).sum();
        let groups: Vec<&[&Attribute]> = values.chunks(Fnv::TOGETHER).collect();
        parallel::map(&groups, parallel::threads(bytes), |group| {
            let mut sums: Vec<Fnv> = group.iter().map(|value| value.hash_of_type()).collect();
            Fnv::feed_together(sums.iter_mut().zip(group.iter().map(|value| &*value.bytes)).collect());
            group.iter().zip(sums).for_each(|(value, sum)| _ = value.hash.get_or_init(|| sum.sum()));
        });
    }

    /// The beginning of a content hash.
    fn hash_of_type(&self) -> Fnv {
        let mut sum = Fnv::default();
        sum.feed(self.ty.to_string().as_bytes());
        sum
    }

    /// A hash of the bytes alone, the same on every machine: words of eight bytes in four sums, where [`Attribute::content_hash`] takes one byte
    /// after the other. Bytes that differ in one word have different ones. Computed once.
    pub fn word_hash(&self) -> u64 {
        *self.words.get_or_init(|| {
            let (groups, rest) = self.bytes.as_chunks::<32>();
            let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut sums = [0, 1, 2, rest.len() as u64];
            for group in groups {
                for (sum, word) in sums.iter_mut().zip(group.as_chunks::<8>().0) {
                    *sum = mix(*sum, u64::from_le_bytes(*word));
                }
            }
            let [first, others @ ..] = sums;
            let hash = others.into_iter().fold(first, mix);
            rest.iter().fold(hash, |hash, &byte| mix(hash, byte.into()))
        })
    }
}

impl PartialEq for Attribute {
    fn eq(&self, other: &Self) -> bool {
        self.ty == other.ty && (self.bytes.as_ptr() == other.bytes.as_ptr() || self.bytes == other.bytes)
    }
}

impl Eq for Attribute {}

impl Hash for Attribute {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.ty, self.word_hash()).hash(state);
    }
}

impl fmt::Debug for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} #{:016x}", self.ty, self.content_hash())
    }
}

impl Literal {
    /// A scalar attribute (rank 0) of this value.
    pub fn to_attribute(self) -> Attribute {
        Attribute::from_tensor(&Tensor::splat(TensorType::new(self.dtype(), []), self))
    }
}

#[cfg(test)]
mod transpose_tests {
    use super::*;

    #[test]
    fn every_element_lands_where_its_axes_go() {
        let values: Vec<i64> = (0..24).collect();
        let x = Attribute::from_i64(&[2, 3, 4], &values).unwrap();
        let y = x.transpose(&[2, 0, 1]).unwrap();
        assert_eq!(&y.ty().shape[..], [4, 2, 3]);
        let moved = y.to_tensor().to_integers();
        for (a, b, c) in (0..2).flat_map(|a| (0..3).flat_map(move |b| (0..4).map(move |c| (a, b, c)))) {
            assert_eq!(moved[(c * 2 + a) * 3 + b], ((a * 3 + b) * 4 + c) as i64);
        }
        assert_eq!(y.transpose(&[1, 2, 0]).unwrap(), x);
    }

    #[test]
    fn moving_axes_of_extent_one_shares_the_bytes() {
        let x = Attribute::from_f32(&[3, 1, 2], &[0.0; 6]).unwrap();
        let y = x.transpose(&[1, 0, 2]).unwrap();
        assert_eq!(y.bytes().as_ptr(), x.bytes().as_ptr());
        assert_eq!(&y.ty().shape[..], [1, 3, 2]);
    }

    #[test]
    fn other_axes_are_refused() {
        let x = Attribute::from_f32(&[3, 2], &[0.0; 6]).unwrap();
        assert!(x.transpose(&[0, 0]).is_err());
        assert!(x.transpose(&[0]).is_err());
    }
}
