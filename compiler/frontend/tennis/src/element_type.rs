//! [`ElementType`]: the data types of the format, by their code.

use mlc_ir::DType;
use std::fmt;

/// A data type that a file can name; host pointers aren't among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ElementType(u8);

/// Name, bytes of an element, and the graph's data type where it has one; by code.
const TYPES: [(&str, usize, Option<DType>); 33] = [
    ("VOID", 0, None),
    ("INT8", 1, Some(DType::I8)),
    ("UINT8", 1, Some(DType::U8)),
    ("INT16", 2, Some(DType::I16)),
    ("UINT16", 2, Some(DType::U16)),
    ("INT32", 4, Some(DType::I32)),
    ("UINT32", 4, Some(DType::U32)),
    ("INT64", 8, Some(DType::I64)),
    ("UINT64", 8, Some(DType::U64)),
    ("FLOAT16", 2, Some(DType::F16)),
    ("FLOAT32", 4, Some(DType::F32)),
    ("FLOAT64", 8, Some(DType::F64)),
    ("PTR", 8, None),
    ("CHAR8", 1, None),
    ("CHAR16", 2, None),
    ("CHAR32", 4, None),
    ("UNKNOWN8", 1, None),
    ("UNKNOWN16", 2, None),
    ("UNKNOWN32", 4, None),
    ("UNKNOWN64", 8, None),
    ("UNKNOWN128", 16, None),
    ("BOOLEAN", 1, Some(DType::Bool)),
    ("COMPLEX32", 4, None),
    ("COMPLEX64", 8, None),
    ("COMPLEX128", 16, None),
    ("SINK8Q0", 1, None),
    ("SINK8Q1", 1, None),
    ("SINK8Q2", 1, None),
    ("SINK8Q3", 1, None),
    ("SINK8Q4", 1, None),
    ("SINK8Q5", 1, None),
    ("SINK8Q6", 1, None),
    ("SINK8Q7", 1, None),
];

/// A pointer of the host, which means nothing in a file.
const POINTER: u8 = 12;

impl ElementType {
    /// No data type: a file's way not to say one.
    pub const VOID: ElementType = ElementType(0);
    /// Whole numbers of parameters.
    pub const INT32: ElementType = ElementType(5);
    /// Numbers of parameters.
    pub const FLOAT32: ElementType = ElementType(10);
    /// Text, in UTF-8.
    pub const CHAR8: ElementType = ElementType(13);
    /// Truth values, a byte each.
    pub const BOOLEAN: ElementType = ElementType(21);

    /// Every data type, by code.
    pub fn all() -> impl Iterator<Item = ElementType> {
        (0..TYPES.len() as u8).filter_map(ElementType::of_code)
    }

    /// The data type of a code; `None` for pointers and codes that mean nothing.
    pub fn of_code(code: u8) -> Option<ElementType> {
        (usize::from(code) < TYPES.len() && code != POINTER).then_some(ElementType(code))
    }

    /// The data type that a graph's one is written as; `None` where the format has none.
    pub fn of_dtype(dtype: DType) -> Option<ElementType> {
        ElementType::all().find(|element_type| element_type.dtype() == Some(dtype))
    }

    /// Its code.
    pub fn code(self) -> u8 {
        self.0
    }

    /// Bytes of an element.
    pub fn width(self) -> usize {
        TYPES[usize::from(self.0)].1
    }

    /// The graph's data type; `None` for text and types without numbers.
    pub fn dtype(self) -> Option<DType> {
        TYPES[usize::from(self.0)].2
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(TYPES[usize::from(self.0)].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_format() {
        for (code, name, width) in [
            (0, "VOID", 0),
            (5, "INT32", 4),
            (11, "FLOAT64", 8),
            (13, "CHAR8", 1),
            (21, "BOOLEAN", 1),
            (32, "SINK8Q7", 1),
        ] {
            let found = ElementType::of_code(code).unwrap();
            assert_eq!((found.to_string().as_str(), found.width(), found.code()), (name, width, code));
        }
        assert_eq!([ElementType::of_code(12), ElementType::of_code(33), ElementType::of_code(77)], [None; 3]);
        assert_eq!(ElementType::of_dtype(DType::Bool), Some(ElementType::BOOLEAN));
        assert_eq!(ElementType::of_dtype(DType::Bf16), None);
        assert!(ElementType::all().all(|ty| ty.dtype().is_none_or(|dtype| dtype.size() == ty.width())));
    }
}
