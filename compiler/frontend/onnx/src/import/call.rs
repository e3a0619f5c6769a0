//! [`Call`]: one operator of the model while it is imported, with checked access to operands and attributes.

use super::scope::Attributes;
use super::{Item, Site};
use crate::external::ExternalData;
use crate::proto::AttributeProto;
use crate::tensor;
use indexmap::IndexMap;
use mlc_import::Builder;
use mlc_import::Fault;
use mlc_ir::{Attribute, Code, DType, Shape, Value};
use std::collections::BTreeSet;

/// An operator and what is known about its operands.
pub(super) struct Call<'c, 'a> {
    pub site: Site<'a>,
    pub builder: &'c mut Builder,
    packed: &'c mut IndexMap<Value, usize>,
    external: &'c dyn ExternalData,
    inputs: Vec<Item>,
    attributes: Attributes<'a>,
    used_inputs: BTreeSet<usize>,
    used_attributes: BTreeSet<&'static str>,
    /// What the user should know.
    pub warnings: Vec<String>,
}

impl<'c, 'a> Call<'c, 'a> {
    pub fn new(
        site: Site<'a>,
        builder: &'c mut Builder,
        packed: &'c mut IndexMap<Value, usize>,
        external: &'c dyn ExternalData,
        inputs: Vec<Item>,
        attributes: Attributes<'a>,
    ) -> Self {
        let (used_inputs, used_attributes) = (BTreeSet::new(), BTreeSet::new());
        Call { site, builder, packed, external, inputs, attributes, used_inputs, used_attributes, warnings: Vec::new() }
    }

    /// Version of the operator's set.
    pub fn version(&self) -> i64 {
        self.site.version
    }

    /// Whether something may use a result: it has a name.
    pub fn wants(&self, result: usize) -> bool {
        self.site.node.output.get(result).is_some_and(|name| !name.is_empty())
    }

    /// Number of results that are named.
    pub fn results(&self) -> usize {
        self.site.node.output.len()
    }

    /// Number of operands, absent ones between others counted.
    pub fn operands(&self) -> usize {
        self.inputs.len()
    }

    /// An operand whatever it is.
    pub fn item(&mut self, index: usize) -> Item {
        self.used_inputs.insert(index);
        self.inputs.get(index).cloned().unwrap_or(Item::Absent)
    }

    /// A tensor, if it is there.
    pub fn optional(&mut self, index: usize) -> Result<Option<Value>, Fault> {
        match self.item(index) {
            Item::Tensor(value) => Ok(Some(value)),
            Item::Absent | Item::Unknown => Ok(None),
            Item::Sequence(_) => Err(Fault::operands(format!("operand {index} must be a tensor, found a sequence"))),
        }
    }

    /// A tensor.
    pub fn input(&mut self, index: usize) -> Result<Value, Fault> {
        self.optional(index)?.ok_or_else(|| Fault::new(Code::OperandCount, format!("operand {index} is missing")))
    }

    /// All operands as tensors.
    pub fn all_inputs(&mut self) -> Result<Vec<Value>, Fault> {
        (0..self.inputs.len()).map(|index| self.input(index)).collect()
    }

    /// The value of an operand that is known while the model is imported.
    pub fn known(&mut self, index: usize) -> Result<Option<Attribute>, Fault> {
        let value = self.optional(index)?;
        Ok(value.and_then(|value| self.builder.graph().constant(value).cloned()))
    }

    /// The value of an operand that decides on the shape of the result, or on the operator's kind; `None` when it isn't there.
    pub fn constant(&mut self, index: usize, what: &str) -> Result<Option<Attribute>, Fault> {
        let Some(value) = self.optional(index)? else { return Ok(None) };
        match self.builder.graph().constant(value) {
            Some(attribute) => Ok(Some(attribute.clone())),
            None => {
                let message =
                    format!("{what} (operand {index}) must be known while compiling, but it depends on the data");
                Err(Fault::new(Code::DataDependentShape, message).with_help(
                    "make it a constant in the source model; if it depends on an open dimension, the model computes it from data",
                ))
            }
        }
    }

    /// Whole numbers that must be known while compiling; `None` when the operand isn't there.
    pub fn constant_ints(&mut self, index: usize, what: &str) -> Result<Option<Vec<i64>>, Fault> {
        let Some(attribute) = self.constant(index, what)? else { return Ok(None) };
        if !attribute.ty().dtype.is_integer() {
            return Err(Fault::operands(format!(
                "{what} (operand {index}) must be whole numbers, found {}",
                attribute.ty()
            )));
        }
        Ok(Some(attribute.to_tensor().to_integers()))
    }

    /// One whole number that must be known while compiling; `None` when the operand isn't there.
    pub fn constant_int(&mut self, index: usize, what: &str) -> Result<Option<i64>, Fault> {
        match self.constant_ints(index, what)?.as_deref() {
            None => Ok(None),
            Some([value]) => Ok(Some(*value)),
            Some(values) => Err(Fault::operands(format!("{what} must be one number, found {}", values.len()))),
        }
    }

    /// Numbers that must be known while compiling; `None` when the operand isn't there.
    pub fn constant_floats(&mut self, index: usize, what: &str) -> Result<Option<Vec<f64>>, Fault> {
        Ok(self.constant(index, what)?.map(|attribute| attribute.to_tensor().to_floats()))
    }

    /// One number that must be known while compiling; `None` when the operand isn't there.
    pub fn constant_float(&mut self, index: usize, what: &str) -> Result<Option<f64>, Fault> {
        match self.constant_floats(index, what)?.as_deref() {
            None => Ok(None),
            Some([value]) => Ok(Some(*value)),
            Some(values) => Err(Fault::operands(format!("{what} must be one number, found {}", values.len()))),
        }
    }

    fn attribute<T>(
        &mut self,
        key: &'static str,
        kind: &str,
        read: impl FnOnce(&'a AttributeProto) -> Option<T>,
    ) -> Result<Option<T>, Fault> {
        self.used_attributes.insert(key);
        let Some(&attribute) = self.attributes.get(key) else { return Ok(None) };
        read(attribute).map(Some).ok_or_else(|| Fault::parameter(format!("attribute `{key}` must be {kind}")))
    }

    /// Whether an attribute is given.
    pub fn has(&self, key: &str) -> bool {
        self.attributes.contains_key(key)
    }

    /// A whole number.
    pub fn int(&mut self, key: &'static str) -> Result<Option<i64>, Fault> {
        self.attribute(key, "a whole number", |attribute| {
            // Zero is left out of the file by writers that follow proto3 strictly.
            attribute.i.or((attribute.r#type == 2).then_some(0))
        })
    }

    pub fn int_or(&mut self, key: &'static str, default: i64) -> Result<i64, Fault> {
        Ok(self.int(key)?.unwrap_or(default))
    }

    /// A whole number that must be 0 or 1.
    pub fn flag_or(&mut self, key: &'static str, default: bool) -> Result<bool, Fault> {
        match self.int(key)? {
            None => Ok(default),
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(other) => Err(Fault::parameter(format!("attribute `{key}` must be 0 or 1, found {other}"))),
        }
    }

    /// A number: the double that its shortest decimal text stands for is not needed, the standard's attributes are floats.
    pub fn float(&mut self, key: &'static str) -> Result<Option<f64>, Fault> {
        self.attribute(key, "a number", |attribute| {
            attribute.f.map(f64::from).or((attribute.r#type == 1).then_some(0.0))
        })
    }

    pub fn float_or(&mut self, key: &'static str, default: f64) -> Result<f64, Fault> {
        Ok(self.float(key)?.unwrap_or(default))
    }

    /// Whole numbers.
    pub fn ints(&mut self, key: &'static str) -> Result<Option<Vec<i64>>, Fault> {
        self.attribute(key, "a list of whole numbers", |attribute| {
            let fits = attribute.r#type == 7 || (attribute.r#type == 0 && !attribute.ints.is_empty());
            fits.then(|| attribute.ints.clone())
        })
    }

    /// Numbers.
    pub fn floats(&mut self, key: &'static str) -> Result<Option<Vec<f64>>, Fault> {
        self.attribute(key, "a list of numbers", |attribute| {
            let fits = attribute.r#type == 6 || (attribute.r#type == 0 && !attribute.floats.is_empty());
            fits.then(|| attribute.floats.iter().copied().map(f64::from).collect())
        })
    }

    /// A word.
    pub fn word(&mut self, key: &'static str) -> Result<Option<&'a str>, Fault> {
        self.attribute(key, "a word", |attribute| match &attribute.s {
            Some(bytes) => std::str::from_utf8(bytes).ok(),
            None => (attribute.r#type == 3).then_some(""),
        })
    }

    /// Words.
    pub fn words(&mut self, key: &'static str) -> Result<Option<Vec<&'a str>>, Fault> {
        self.attribute(key, "a list of words", |attribute| {
            attribute.strings.iter().map(|bytes| std::str::from_utf8(bytes).ok()).collect()
        })
    }

    /// A tensor.
    pub fn tensor(&mut self, key: &'static str) -> Result<Option<Attribute>, Fault> {
        let proto = self.attribute(key, "a tensor", |attribute| attribute.t.as_ref())?;
        proto.map(|proto| tensor::to_attribute(proto, self.external)).transpose()
    }

    /// A sparse tensor, written out.
    pub fn sparse_tensor(&mut self, key: &'static str) -> Result<Option<Attribute>, Fault> {
        let proto = self.attribute(key, "a sparse tensor", |attribute| attribute.sparse_tensor.as_ref())?;
        proto.map(|proto| tensor::sparse_to_attribute(proto, self.external)).transpose()
    }

    /// A data type by its number in the standard.
    pub fn dtype(&mut self, key: &'static str) -> Result<Option<DType>, Fault> {
        self.int(key)?.map(tensor::dtype_of).transpose()
    }

    /// An attribute that the operator can't do without.
    pub fn required<T>(&self, key: &str, value: Option<T>) -> Result<T, Fault> {
        value.ok_or_else(|| Fault::new(Code::ParameterMissing, format!("attribute `{key}` is missing")))
    }

    /// Marks attributes that don't matter for the result.
    pub fn ignore(&mut self, keys: &[&'static str]) {
        self.used_attributes.extend(keys);
    }

    /// Whole numbers that older versions have as an attribute, newer ones as an operand.
    pub fn ints_or_input(
        &mut self,
        key: &'static str,
        index: usize,
        operand_since: i64,
    ) -> Result<Option<Vec<i64>>, Fault> {
        if self.version() < operand_since { self.ints(key) } else { self.constant_ints(index, key) }
    }

    /// The axis that a number, negative ones from the end, means.
    pub fn axis(&self, x: Value, axis: i64) -> Result<usize, Fault> {
        normalized_axis(axis, self.builder.rank(x))
            .ok_or_else(|| Fault::parameter(format!("{} has no axis {axis}", self.builder.ty(x))))
    }

    /// The axis attribute, with its default.
    pub fn axis_or(&mut self, x: Value, key: &'static str, default: i64) -> Result<usize, Fault> {
        let axis = self.int_or(key, default)?;
        self.axis(x, axis)
    }

    /// Axes by number, ascending.
    pub fn axes(&self, x: Value, axes: &[i64]) -> Result<Vec<usize>, Fault> {
        let found = axes.iter().map(|&axis| self.axis(x, axis)).collect::<Result<BTreeSet<_>, _>>()?;
        if found.len() < axes.len() {
            return Err(Fault::parameter(format!("an axis is there twice: {axes:?}")));
        }
        Ok(found.into_iter().collect())
    }

    pub fn shape(&self, value: Value) -> Shape {
        self.builder.shape(value)
    }

    pub fn dtype_of(&self, value: Value) -> DType {
        self.builder.dtype(value)
    }

    pub fn rank(&self, value: Value) -> usize {
        self.builder.rank(value)
    }

    /// Bits of an element, for a tensor of integers narrower than a byte; its data type is that of a byte.
    pub fn packed_bits(&self, value: Value) -> Option<usize> {
        self.packed.get(&value).copied()
    }

    /// Notes that a tensor of bytes holds integers of so many bits.
    pub fn note_packed_bits(&mut self, value: Value, bits: Option<usize>) {
        if let Some(bits) = bits {
            self.packed.insert(value, bits);
        }
    }

    /// Bits of an element of a tensor attribute that holds integers narrower than a byte.
    pub fn packed_bits_of_attribute(&self, key: &str) -> Result<Option<usize>, Fault> {
        match self.attributes.get(key).and_then(|attribute| attribute.t.as_ref()) {
            Some(proto) => tensor::packed_bits(i64::from(proto.data_type)),
            None => Ok(None),
        }
    }

    /// A constant of whole numbers.
    pub fn constant_of_ints(&mut self, shape: &[usize], values: &[i64]) -> Result<Value, Fault> {
        let attribute = Attribute::from_i64(shape, values)
            .ok_or_else(|| Fault::operands(format!("{} numbers don't fill the shape {shape:?}", values.len())))?;
        Ok(self.builder.constant("value", attribute))
    }

    /// Attributes that the import didn't look at.
    pub fn unused_attributes(&self) -> Vec<String> {
        let unused = self.attributes.keys().filter(|name| !self.used_attributes.contains(*name));
        unused.map(|&name| name.to_owned()).collect()
    }

    /// Refuses operands that the import didn't look at: the operator doesn't have them.
    pub fn check_inputs_used(&self) -> Result<(), Fault> {
        let mut surplus = (0..self.inputs.len()).filter(|index| !self.used_inputs.contains(index));
        match surplus.find(|&index| self.inputs[index] != Item::Absent) {
            Some(index) => {
                let message = format!("the operator doesn't take an operand {index}; {} are given", self.inputs.len());
                Err(Fault::new(Code::OperandCount, message))
            }
            None => Ok(()),
        }
    }
}

/// The axis that a number, negative ones from the end, means.
pub(super) fn normalized_axis(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let axis = if axis < 0 { axis + rank } else { axis };
    (0..rank).contains(&axis).then_some(axis as usize)
}
