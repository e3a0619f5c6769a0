//! [`File`]: nodes and constants of a model under names of their own.

use crate::proto::{
    AttributeProto, AttributeType, DimensionProto, NodeProto, TensorProto, TensorShapeProto, TensorTypeProto,
    TypeProto, ValueInfoProto,
};
use crate::tensor;
use mlc_ir::{Attribute, DType, Literal, TensorType};
use std::collections::BTreeMap;

/// What of a model has been written.
pub(super) struct File {
    pub nodes: Vec<NodeProto>,
    pub constants: Vec<TensorProto>,
    /// How often each name was asked for.
    taken: BTreeMap<String, usize>,
}

impl File {
    /// A file whose inputs and outputs have these names.
    pub fn new(names: impl Iterator<Item = String>) -> Self {
        File { nodes: Vec::new(), constants: Vec::new(), taken: names.map(|name| (name, 1)).collect() }
    }

    /// A name that nothing else has.
    fn unique(&mut self, name: &str) -> String {
        let mut candidate = name.to_owned();
        while self.taken.contains_key(&candidate) {
            let count = self.taken.entry(name.to_owned()).or_insert(1);
            *count += 1;
            candidate = format!("{name}.{count}");
        }
        self.taken.insert(candidate.clone(), 1);
        candidate
    }

    /// Applies an operator to operands; the result's name.
    pub fn apply(&mut self, kind: &str, input: Vec<String>, attribute: Vec<AttributeProto>, name: &str) -> String {
        let name = self.unique(name);
        self.named(kind, input, attribute, &name);
        name
    }

    /// Applies an operator whose result has this name.
    pub fn named(&mut self, kind: &str, input: Vec<String>, attribute: Vec<AttributeProto>, name: &str) {
        let (name, op_type) = (name.to_owned(), kind.to_owned());
        self.nodes.push(NodeProto {
            input,
            output: vec![name.clone()],
            name,
            op_type,
            attribute,
            ..NodeProto::default()
        });
    }

    /// Writes a constant; its name.
    pub fn constant(&mut self, name: &str, value: &Attribute) -> String {
        let name = self.unique(name);
        self.constants.push(TensorProto {
            dims: value.ty().shape.iter().map(|&extent| extent as i64).collect(),
            data_type: tensor::number_of_dtype(value.ty().dtype),
            name: name.clone(),
            raw_data: Some(value.bytes().clone()),
            ..TensorProto::default()
        });
        name
    }

    /// Writes a number that belongs to something.
    pub fn number(&mut self, owner: &str, what: &str, dtype: DType, number: f64) -> String {
        self.constant(&format!("{owner}.{what}"), &Literal::of(dtype, number).to_attribute())
    }

    /// Writes a list of whole numbers that belongs to something.
    pub fn list(&mut self, owner: &str, what: &str, numbers: &[i64]) -> String {
        let list = Attribute::from_i64(&[numbers.len()], numbers);
        list.map(|list| self.constant(&format!("{owner}.{what}"), &list)).unwrap_or_default()
    }

    /// Permutes axes, unless they stay.
    pub fn transpose(&mut self, operand: String, permutation: &[usize]) -> String {
        if permutation.iter().copied().eq(0..permutation.len()) {
            return operand;
        }
        let name = format!("{operand}.transposed");
        self.apply("Transpose", vec![operand], vec![list_attribute("perm", permutation.iter().copied())], &name)
    }
}

/// Name and type of an input or an output.
pub(super) fn declaration(name: &str, ty: &TensorType) -> ValueInfoProto {
    let extent = |&extent: &usize| DimensionProto { dim_value: Some(extent as i64), dim_param: None };
    let shape = Some(TensorShapeProto { dim: ty.shape.iter().map(extent).collect() });
    let tensor_type = Some(TensorTypeProto { elem_type: tensor::number_of_dtype(ty.dtype), shape });
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { tensor_type, ..TypeProto::default() }) }
}

/// An attribute that is a whole number.
pub(super) fn integers_attribute(name: &str, number: usize) -> AttributeProto {
    let (name, r#type) = (name.to_owned(), AttributeType::Int.into());
    AttributeProto { name, i: Some(number as i64), r#type, ..AttributeProto::default() }
}

/// An attribute that is a list of whole numbers.
pub(super) fn list_attribute(name: &str, numbers: impl IntoIterator<Item = usize>) -> AttributeProto {
    let ints = numbers.into_iter().map(|number| number as i64).collect();
    AttributeProto { name: name.to_owned(), ints, r#type: AttributeType::Ints.into(), ..AttributeProto::default() }
}

/// An attribute that is a word.
pub(super) fn word_attribute(name: &str, word: &'static str) -> AttributeProto {
    let s = Some(bytes::Bytes::from_static(word.as_bytes()));
    AttributeProto { name: name.to_owned(), s, r#type: AttributeType::String.into(), ..AttributeProto::default() }
}
