//! [`Tensor`]: the value of a parameter. It is read by value: whatever the stored data type is, a number is a number.

use crate::element_type::ElementType;
use bytes::Bytes;
use mlc_ir::{DType, TensorType, Values};

/// An ordinary tensor: dense, row-major, little-endian.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its data type.
    pub element_type: ElementType,
    /// Its extents; none for a scalar.
    pub shape: Vec<usize>,
    /// Its bytes, as many as type and shape say.
    pub data: Bytes,
}

/// One ordinary tensor, or an ordered tuple of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The tensors, at least one.
    pub fields: Vec<Field>,
}

impl Field {
    /// Text.
    pub fn of_text(text: &str) -> Self {
        let data = Bytes::copy_from_slice(text.as_bytes());
        Field { element_type: ElementType::CHAR8, shape: vec![text.len()], data }
    }

    /// Whole numbers.
    ///
    /// Precondition: as many as the shape says.
    pub fn of_ints(shape: &[usize], values: &[i32]) -> Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Field { element_type: ElementType::INT32, shape: shape.to_vec(), data }
    }

    /// Single-precision numbers.
    ///
    /// Precondition: as many as the shape says.
    pub fn of_floats(shape: &[usize], values: &[f32]) -> Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Field { element_type: ElementType::FLOAT32, shape: shape.to_vec(), data }
    }

    /// A truth value.
    pub fn of_flag(value: bool) -> Self {
        let data = Bytes::copy_from_slice(&[u8::from(value)]);
        Field { element_type: ElementType::BOOLEAN, shape: Vec::new(), data }
    }

    /// Its numbers, those of text in decimal; `None` where it has none.
    fn values(&self, most: usize) -> Option<Values> {
        let Some(dtype) = self.element_type.dtype() else {
            return self.text()?.trim().parse().ok().map(|number| Values::Float(vec![number]));
        };
        let elements = (self.data.len() / dtype.size()).min(most);
        let ty = TensorType::new(dtype, [elements]);
        let bytes = &self.data[..elements * dtype.size()];
        Some(mlc_ir::Tensor::from_le_bytes(ty, bytes).values().clone())
    }

    /// Its numbers.
    pub fn floats(&self) -> Option<Vec<f64>> {
        Some(to_floats(self.values(usize::MAX)?))
    }

    /// Its numbers without their fractions.
    pub fn ints(&self) -> Option<Vec<i64>> {
        Some(to_ints(self.values(usize::MAX)?))
    }

    /// Its first number.
    pub fn float(&self) -> Option<f64> {
        to_floats(self.values(1)?).first().copied()
    }

    /// Its first number without its fraction.
    pub fn int(&self) -> Option<i64> {
        to_ints(self.values(1)?).first().copied()
    }

    /// Whether its first number isn't zero, or its text is `true`.
    pub fn flag(&self) -> Option<bool> {
        match self.text() {
            Some(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => self.float().map(|number| number != 0.0),
        }
    }

    /// Its text, if it is one in UTF-8.
    pub fn text(&self) -> Option<&str> {
        if self.element_type != ElementType::CHAR8 {
            return None;
        }
        std::str::from_utf8(&self.data).ok()
    }

    /// The bytes as the graph wants them: truth values are 0 or 1.
    pub fn normalized_data(&self) -> Bytes {
        let is_odd = |byte: &u8| *byte > 1;
        if self.element_type.dtype() == Some(DType::Bool) && self.data.iter().any(is_odd) {
            return self.data.iter().map(|byte| u8::from(*byte != 0)).collect();
        }
        self.data.clone()
    }

    /// For messages: `INT32[4, 2]`.
    pub fn type_text(&self) -> String {
        format!("{}{:?}", self.element_type, self.shape)
    }
}

fn to_floats(values: Values) -> Vec<f64> {
    match values {
        Values::Float(values) => values,
        Values::Integer(values) => values.into_iter().map(|value| value as f64).collect(),
    }
}

fn to_ints(values: Values) -> Vec<i64> {
    match values {
        Values::Float(values) => values.into_iter().map(|value| value as i64).collect(),
        Values::Integer(values) => values,
    }
}

impl From<Field> for Tensor {
    fn from(field: Field) -> Self {
        Tensor { fields: vec![field] }
    }
}

impl Tensor {
    /// The tensor, unless it is a tuple.
    pub fn single(&self) -> Option<&Field> {
        match &self.fields[..] {
            [field] => Some(field),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(code: u8, shape: &[usize], data: &[u8]) -> Field {
        Field {
            element_type: ElementType::of_code(code).unwrap(),
            shape: shape.to_vec(),
            data: Bytes::copy_from_slice(data),
        }
    }

    #[test]
    fn numbers_are_read_whatever_their_data_type() {
        let double = field(11, &[1], &(-2.75f64).to_le_bytes());
        assert_eq!((double.float(), double.int(), double.flag()), (Some(-2.75), Some(-2), Some(true)));
        assert_eq!(field(2, &[2], &[0, 200]).ints(), Some(vec![0, 200]));
        assert_eq!(field(1, &[], &[0xff]).int(), Some(-1));
        assert_eq!(Field::of_text("12").int(), Some(12));
        assert_eq!(Field::of_text("0.25").floats(), Some(vec![0.25]));
        assert_eq!(Field::of_text("True").flag(), Some(true));
        assert_eq!((Field::of_text("no").flag(), Field::of_text("no").int()), (None, None));
        assert_eq!((field(10, &[0], &[]).float(), field(0, &[], &[]).int()), (None, None));
        assert_eq!(field(13, &[1], &[0xff]).text(), None);
    }

    #[test]
    fn odd_truth_values_become_one() {
        assert_eq!(&field(21, &[3], &[0, 1, 7]).normalized_data()[..], [0, 1, 1]);
        assert_eq!(&field(2, &[1], &[7]).normalized_data()[..], [7]);
    }
}
