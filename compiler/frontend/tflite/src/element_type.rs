//! [`ElementType`]: what the elements of a tensor are, by the format's number.

use mlc_ir::DType;
use std::fmt;

/// A data type of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementType(pub i8);

const NAMES: [&str; 20] = [
    "FLOAT32",
    "FLOAT16",
    "INT32",
    "UINT8",
    "INT64",
    "STRING",
    "BOOL",
    "INT16",
    "COMPLEX64",
    "INT8",
    "FLOAT64",
    "COMPLEX128",
    "UINT64",
    "RESOURCE",
    "VARIANT",
    "UINT32",
    "UINT16",
    "INT4",
    "BFLOAT16",
    "INT2",
];

impl ElementType {
    /// Numbers of four bits, two in a byte.
    pub const INT4: ElementType = ElementType(17);
    /// A handle of a variable.
    pub const RESOURCE: ElementType = ElementType(13);

    /// What its elements become in a graph; `None` for what can't be computed with.
    pub fn dtype(self) -> Option<DType> {
        Some(match self.0 {
            0 => DType::F32,
            1 => DType::F16,
            2 => DType::I32,
            3 => DType::U8,
            4 => DType::I64,
            6 => DType::Bool,
            7 => DType::I16,
            9 | 17 => DType::I8,
            10 => DType::F64,
            12 => DType::U64,
            15 => DType::U32,
            16 => DType::U16,
            18 => DType::Bf16,
            _ => return None,
        })
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.0).ok().and_then(|number| NAMES.get(number)) {
            Some(name) => f.write_str(name),
            None => write!(f, "number {}", self.0),
        }
    }
}
