//! The engine's types for ONNX, and what ONNX operators have besides what the engine reads for all formats: tensors as
//! attributes, lists of words, and integers narrower than a byte.

use super::format::Onnx;
use crate::proto::AttributeProto;
use crate::tensor;
use mlc_import::{Fault, Handler};
use mlc_ir::{Attribute, Value};

/// An operator while it is imported.
pub(super) type Call<'c, 'm> = mlc_import::Call<'c, 'm, Onnx>;

/// A model while it becomes a graph.
pub(super) type Importer<'m> = mlc_import::Importer<'m, Onnx>;

/// An operator of the model where it stands.
pub(super) type Site<'m> = mlc_import::Site<'m, Onnx>;

/// What a name of the model stands for.
pub(super) type Item = mlc_import::Operand;

/// Operators of one operator set: name, first supported version of the set, handler.
pub(super) type Table = &'static [(&'static str, i64, Handler<Onnx>)];

/// Access to what only ONNX has.
pub(super) trait TensorAttributes<'m> {
    /// A tensor.
    fn tensor(&mut self, key: &str) -> Result<Option<Attribute>, Fault>;

    /// A sparse tensor, written out.
    fn sparse_tensor(&mut self, key: &str) -> Result<Option<Attribute>, Fault>;

    /// Words.
    fn words(&mut self, key: &str) -> Result<Option<Vec<&'m str>>, Fault>;

    /// Bits of an element, for a tensor of integers narrower than a byte; its data type is that of a byte.
    fn packed_bits(&self, value: Value) -> Option<usize>;

    /// Notes that a tensor of bytes holds integers of so many bits.
    fn note_packed_bits(&mut self, value: Value, bits: Option<usize>);

    /// Bits of an element of a tensor attribute that holds integers narrower than a byte.
    fn packed_bits_of_attribute(&mut self, key: &str) -> Result<Option<usize>, Fault>;

    /// A constant of whole numbers.
    fn constant_of_ints(&mut self, shape: &[usize], values: &[i64]) -> Result<Value, Fault>;
}

impl<'m> TensorAttributes<'m> for Call<'_, 'm> {
    fn tensor(&mut self, key: &str) -> Result<Option<Attribute>, Fault> {
        let proto = self.typed(key, "a tensor", |attribute| attribute.t.as_ref())?;
        proto.map(|proto| tensor::to_attribute(proto, self.model.external)).transpose()
    }

    fn sparse_tensor(&mut self, key: &str) -> Result<Option<Attribute>, Fault> {
        let proto = self.typed(key, "a sparse tensor", |attribute| attribute.sparse_tensor.as_ref())?;
        proto.map(|proto| tensor::sparse_to_attribute(proto, self.model.external)).transpose()
    }

    fn words(&mut self, key: &str) -> Result<Option<Vec<&'m str>>, Fault> {
        let read = |attribute: &&'m AttributeProto| {
            let attribute: &'m AttributeProto = attribute;
            attribute.strings.iter().map(|bytes| std::str::from_utf8(bytes).ok()).collect()
        };
        self.typed(key, "a list of words", read)
    }

    fn packed_bits(&self, value: Value) -> Option<usize> {
        self.note(value).copied()
    }

    fn note_packed_bits(&mut self, value: Value, bits: Option<usize>) {
        if let Some(bits) = bits {
            self.set_note(value, bits);
        }
    }

    fn packed_bits_of_attribute(&mut self, key: &str) -> Result<Option<usize>, Fault> {
        match self.attribute(key).and_then(|attribute| attribute.t.as_ref()) {
            Some(proto) => tensor::packed_bits(i64::from(proto.data_type)),
            None => Ok(None),
        }
    }

    fn constant_of_ints(&mut self, shape: &[usize], values: &[i64]) -> Result<Value, Fault> {
        let attribute = Attribute::from_i64(shape, values)
            .ok_or_else(|| Fault::operands(format!("{} numbers don't fill the shape {shape:?}", values.len())))?;
        Ok(self.builder.constant("value", attribute))
    }
}
