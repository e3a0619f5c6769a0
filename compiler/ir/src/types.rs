//! Tensor types: data type, shape, quantisation. Shapes are concrete: a frontend binds symbolic dimensions before it builds a graph.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::fmt;

/// Extents of a dense, row-major tensor, slowest axis first.
pub type Shape = SmallVec<[usize; 6]>;

/// Element types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DType {
    /// IEEE single.
    F32,
    /// IEEE double.
    F64,
    /// IEEE half.
    F16,
    /// The upper half of an IEEE single.
    Bf16,
    /// Signed 8-bit.
    I8,
    /// Unsigned 8-bit.
    U8,
    /// Signed 16-bit.
    I16,
    /// Unsigned 16-bit.
    U16,
    /// Signed 32-bit.
    I32,
    /// Unsigned 32-bit.
    U32,
    /// Signed 64-bit.
    I64,
    /// Unsigned 64-bit.
    U64,
    /// One byte, 0 or 1.
    Bool,
}

impl DType {
    /// Every data type.
    pub const ALL: [DType; 13] = [
        DType::F32,
        DType::F64,
        DType::F16,
        DType::Bf16,
        DType::I8,
        DType::U8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::U32,
        DType::I64,
        DType::U64,
        DType::Bool,
    ];

    /// The spelling in the text form, such as `f32`.
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::I8 => "i8",
            DType::U8 => "u8",
            DType::I16 => "i16",
            DType::U16 => "u16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::I64 => "i64",
            DType::U64 => "u64",
            DType::Bool => "bool",
        }
    }

    /// The data type of a spelling.
    pub fn parse(text: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == text)
    }

    /// The spelling of the Model Library Format and of Relay, such as `float32`.
    pub fn long_name(self) -> &'static str {
        match self {
            DType::F32 => "float32",
            DType::F64 => "float64",
            DType::F16 => "float16",
            DType::Bf16 => "bfloat16",
            DType::I8 => "int8",
            DType::U8 => "uint8",
            DType::I16 => "int16",
            DType::U16 => "uint16",
            DType::I32 => "int32",
            DType::U32 => "uint32",
            DType::I64 => "int64",
            DType::U64 => "uint64",
            DType::Bool => "bool",
        }
    }

    /// The data type of such a spelling.
    pub fn parse_long_name(text: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.long_name() == text)
    }

    /// Code and bits of an element as DLPack has them (Model Library Format, section 5.3).
    pub fn dlpack(self) -> (u8, u8) {
        let bits = 8 * self.size() as u8;
        match self {
            DType::Bool => (1, 1),
            DType::Bf16 => (4, bits),
            _ if self.is_float() => (2, bits),
            _ if self.is_signed() => (0, bits),
            _ => (1, bits),
        }
    }

    /// Bytes of an element.
    pub fn size(self) -> usize {
        match self {
            DType::I8 | DType::U8 | DType::Bool => 1,
            DType::F16 | DType::Bf16 | DType::I16 | DType::U16 => 2,
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F64 | DType::I64 | DType::U64 => 8,
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F64 | DType::F16 | DType::Bf16)
    }

    /// Whether it is an integer type; `bool` isn't.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != DType::Bool
    }

    /// Whether it is an integer type of 8 bits; `bool` isn't.
    pub fn is_byte(self) -> bool {
        matches!(self, DType::I8 | DType::U8)
    }

    /// Whether it can hold negative numbers.
    pub fn is_signed(self) -> bool {
        self.is_float() || matches!(self, DType::I8 | DType::I16 | DType::I32 | DType::I64)
    }

    /// The smallest and the largest number of an integer type that has so many bits; exact for up to 53 of them.
    pub fn integer_range(self, bits: usize) -> (f64, f64) {
        let count = 2f64.powi(bits as i32);
        if self.is_signed() { (-count / 2.0, count / 2.0 - 1.0) } else { (0.0, count - 1.0) }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A double that can be compared for identity and hashed: two are equal when their bits are.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
pub struct Float(pub f64);

impl PartialEq for Float {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Float {}

impl std::hash::Hash for Float {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl PartialOrd for Float {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Float {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl fmt::Debug for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

/// Shortest decimal text that reads back to the same bits; always has a point, an exponent, or is `inf`, `-inf`, `nan`.
/// A NaN of other bits than the usual ones shows them: `nan(0x7ff8000000000001)`.
impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.is_nan() {
            write!(f, "{:?}", self.0)
        } else if self.0.to_bits() == f64::NAN.to_bits() {
            f.write_str("nan")
        } else {
            write!(f, "nan(0x{:016x})", self.0.to_bits())
        }
    }
}

/// How integers stand for real numbers: `real = scale * (integer - zero_point)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Quantization {
    /// What a step is worth.
    pub scale: Float,
    /// The integer that stands for 0.
    pub zero_point: i64,
}

/// Data type and shape.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Type of each element.
    pub dtype: DType,
    /// Extents, slowest axis first; empty for a scalar.
    pub shape: Shape,
}

impl TensorType {
    /// A plain tensor type.
    pub fn new(dtype: DType, shape: impl AsRef<[usize]>) -> Self {
        TensorType { dtype, shape: shape.as_ref().into() }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements. Graphs hold only types whose byte size fits in `isize`, see [`TensorType::checked_bytes`].
    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes of the dense tensor.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.size()
    }

    /// Bytes of the dense tensor, or `None` when they exceed what an address space holds (2^40 bytes). Extents of 0 don't
    /// excuse the others, so that sums and products of a legal tensor's extents and strides never overflow.
    pub fn checked_bytes(&self) -> Option<usize> {
        let elements = self.shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent.max(1)))?;
        elements.checked_mul(self.dtype.size()).filter(|&bytes| bytes <= 1 << 40)?;
        Some(self.bytes())
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape.as_slice())
    }
}

/// Row-major strides, in elements.
pub fn row_major_strides(shape: &[usize]) -> SmallVec<[usize; 6]> {
    let mut strides: SmallVec<[usize; 6]> = shape.iter().map(|_| 1).collect();
    for axis in (0..shape.len().saturating_sub(1)).rev() {
        strides[axis] = strides[axis + 1] * shape[axis + 1];
    }
    strides
}

/// The shape that right-aligned broadcasting of `shapes` gives, or `None` when they don't broadcast.
pub fn broadcast_shapes<'a>(shapes: impl IntoIterator<Item = &'a [usize]>) -> Option<Shape> {
    let mut result = Shape::new();
    for shape in shapes {
        while result.len() < shape.len() {
            result.insert(0, 1);
        }
        let offset = result.len() - shape.len();
        for (axis, &extent) in shape.iter().enumerate() {
            let slot = &mut result[offset + axis];
            if *slot == 1 {
                *slot = extent;
            } else if extent != 1 && extent != *slot {
                return None;
            }
        }
    }
    Some(result)
}
