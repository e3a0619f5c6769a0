//! [`Call`]: one operator of the model while it is imported, with checked access to its operands. What was looked at is noted;
//! the rest is told to the user. Attributes are in `attributes.rs`.

use crate::axes::{normalized_axis, slice_part};
use crate::builder::Builder;
use crate::fault::Fault;
use crate::format::{Attributes, Format, Surplus};
use crate::item::Item;
use indexmap::IndexMap;
use mlc_ir::ops::Slice;
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{Attribute, Code, DType, Location, Shape, Value};
use std::collections::{BTreeMap, BTreeSet};

/// An operator of the model where it stands.
pub struct Site<'m, F: Format> {
    /// The operator in its file.
    pub operator: F::Operator<'m>,
    /// Its type.
    pub kind: &'m str,
    /// The set that its type is in; empty for the format's own.
    pub domain: &'m str,
    /// The version of that set, in formats that have versions.
    pub version: Option<i64>,
    /// Its name, after the names of the functions and regions around it.
    pub name: String,
    /// Where it is, for messages.
    pub location: Location,
}

impl<F: Format> Clone for Site<'_, F> {
    fn clone(&self) -> Self {
        Site { operator: self.operator, name: self.name.clone(), location: self.location.clone(), ..*self }
    }
}

impl<F: Format> Site<'_, F> {
    /// The type and the name, as messages begin.
    pub(crate) fn title(&self) -> String {
        if self.name == self.kind { self.kind.to_owned() } else { format!("{} `{}`", self.kind, self.name) }
    }
}

/// What a call is made of.
pub(crate) struct Parts<'c, 'm, F: Format> {
    pub site: &'c Site<'m, F>,
    pub model: F::Model<'m>,
    pub builder: &'c mut Builder,
    pub notes: &'c mut IndexMap<Value, F::Note>,
    pub dimensions: &'c BTreeMap<String, usize>,
    pub inputs: Vec<F::Item>,
    pub attributes: Attributes<'m, F>,
}

/// An operator and what is known about its operands.
pub struct Call<'c, 'm, F: Format> {
    /// The operator.
    pub site: &'c Site<'m, F>,
    /// The model.
    pub model: F::Model<'m>,
    /// Builds the graph.
    pub builder: &'c mut Builder,
    /// What the operator takes, in order.
    pub inputs: Vec<F::Item>,
    /// Extents of the model's named dimensions, as far as they are known.
    pub dimensions: &'c BTreeMap<String, usize>,
    pub(crate) attributes: Attributes<'m, F>,
    pub(crate) used_attributes: BTreeSet<usize>,
    pub(crate) used_inputs: BTreeSet<usize>,
    notes: &'c mut IndexMap<Value, F::Note>,
    warnings: Vec<(Code, String)>,
}

impl<'c, 'm, F: Format> Call<'c, 'm, F> {
    pub(crate) fn new(parts: Parts<'c, 'm, F>) -> Self {
        let Parts { site, model, builder, notes, dimensions, inputs, attributes } = parts;
        let (used_inputs, used_attributes) = (BTreeSet::new(), BTreeSet::new());
        let warnings = Vec::new();
        Call { site, model, builder, inputs, dimensions, attributes, used_attributes, used_inputs, notes, warnings }
    }

    /// Version of the operator's set; 0 in formats without versions.
    pub fn version(&self) -> i64 {
        self.site.version.unwrap_or(0)
    }

    /// Whether something may use a result: it has a name.
    pub fn wants(&self, result: usize) -> bool {
        F::results(self.model, self.site.operator).get(result).is_some_and(Option::is_some)
    }

    /// Number of results that the file lists.
    pub fn results(&self) -> usize {
        F::results(self.model, self.site.operator).len()
    }

    /// Number of operands, absent ones between others counted.
    pub fn operands(&self) -> usize {
        self.inputs.len()
    }

    /// Tells the user about this operator, once it is imported.
    pub fn warn(&mut self, code: Code, message: impl Into<String>) {
        self.warnings.push((code, message.into()));
    }

    /// An operand whatever it is.
    pub fn item(&mut self, index: usize) -> F::Item {
        self.used_inputs.insert(index);
        self.inputs.get(index).cloned().unwrap_or_else(F::Item::absent)
    }

    /// The tensor that an item stands for. `what` names the operand.
    ///
    /// # Errors
    /// When it stands for none.
    pub fn as_tensor(&mut self, what: &str, item: &F::Item) -> Result<Value, Fault> {
        item.to_value(self.builder, what)
    }

    /// A tensor, if it is there.
    ///
    /// # Errors
    /// When the operand is something else.
    pub fn optional(&mut self, index: usize) -> Result<Option<Value>, Fault> {
        let item = self.item(index);
        if item.is_absent() || item.is_unknown() {
            return Ok(None);
        }
        self.as_tensor(&index.to_string(), &item).map(Some)
    }

    /// A tensor.
    ///
    /// # Errors
    /// When the operand isn't there, or is something else.
    pub fn input(&mut self, index: usize) -> Result<Value, Fault> {
        self.optional(index)?.ok_or_else(|| {
            let given = self.inputs.len();
            Fault::new(Code::OperandCount, format!("operand {index} is missing; {given} are given"))
        })
    }

    /// All operands as tensors.
    ///
    /// # Errors
    /// When one is something else.
    pub fn all_inputs(&mut self) -> Result<Vec<Value>, Fault> {
        (0..self.inputs.len()).map(|index| self.input(index)).collect()
    }

    /// A function of each element of the first operand.
    ///
    /// # Errors
    /// When the operand isn't there, or the function isn't defined for its data type.
    pub fn unary(&mut self, function: UnaryFunction) -> Result<Value, Fault> {
        let x = self.input(0)?;
        Ok(self.builder.unary(function, x)?)
    }

    /// A function of the elements of the first two operands, which broadcast.
    ///
    /// # Errors
    /// When an operand isn't there, or their types don't fit.
    pub fn binary(&mut self, function: BinaryFunction) -> Result<Value, Fault> {
        let (x, y) = (self.input(0)?, self.input(1)?);
        Ok(self.builder.binary(function, x, y)?)
    }

    /// Marks all operands as looked at.
    pub fn use_all_inputs(&mut self) {
        self.used_inputs.extend(0..self.inputs.len());
    }

    /// The place of the operand labelled so.
    pub(crate) fn place_of_label(&self, label: &str) -> Option<usize> {
        (0..self.inputs.len()).find(|&index| F::label(self.site.operator, index) == Some(label))
    }

    /// An operand by its label, else by its place where the operand there has no other label; `None` when it isn't there.
    pub fn labelled(&mut self, label: &str, place: usize) -> Option<F::Item> {
        let free = || place < self.inputs.len() && F::label(self.site.operator, place).is_none();
        let place = self.place_of_label(label).or_else(|| free().then_some(place))?;
        Some(self.item(place)).filter(|item| !item.is_absent())
    }

    /// An operand by label or place.
    ///
    /// # Errors
    /// When it isn't there.
    pub fn labelled_item(&mut self, label: &str, place: usize) -> Result<F::Item, Fault> {
        self.labelled(label, place).ok_or_else(|| {
            let message = format!("operand `{label}` is missing; the operator has {} operands", self.inputs.len());
            Fault::new(Code::OperandCount, message)
        })
    }

    /// A tensor by label or place.
    ///
    /// # Errors
    /// When it isn't there, or is something else.
    pub fn labelled_input(&mut self, label: &str, place: usize) -> Result<Value, Fault> {
        let item = self.labelled_item(label, place)?;
        self.as_tensor(&format!("`{label}`"), &item)
    }

    /// A tensor by label or place, if it is there.
    ///
    /// # Errors
    /// When it is something else.
    pub fn optional_labelled_input(&mut self, label: &str, place: usize) -> Result<Option<Value>, Fault> {
        self.labelled(label, place).map(|item| self.as_tensor(&format!("`{label}`"), &item)).transpose()
    }

    /// The value of an operand, if it is known while the model is imported.
    ///
    /// # Errors
    /// When the operand isn't a tensor.
    pub fn known(&mut self, index: usize) -> Result<Option<Attribute>, Fault> {
        let value = self.optional(index)?;
        Ok(value.and_then(|value| self.builder.graph().constant(value).cloned()))
    }

    /// The value of an operand that decides on the shape of the result, or on the operator's kind; `None` when it isn't there.
    ///
    /// # Errors
    /// When it isn't known while the model is imported.
    pub fn constant(&mut self, index: usize, what: &str) -> Result<Option<Attribute>, Fault> {
        let Some(value) = self.optional(index)? else { return Ok(None) };
        match self.builder.graph().constant(value) {
            Some(attribute) => Ok(Some(attribute.clone())),
            None => {
                let message =
                    format!("{what} (operand {index}) must be known while compiling, but it depends on the data");
                let mut help =
                    "make it a constant in the source model; if it depends on an open dimension, the model computes it from data".to_owned();
                if F::TAKES_INPUT_VALUES {
                    help += "; if an input decides on it, --input-value NAME=FILE says what that always is";
                }
                Err(Fault::new(Code::DataDependentShape, message).with_help(help))
            }
        }
    }

    /// Whole numbers that must be known while compiling; `None` when the operand isn't there.
    ///
    /// # Errors
    /// When they aren't known, or aren't whole numbers.
    pub fn constant_ints(&mut self, index: usize, what: &str) -> Result<Option<Vec<i64>>, Fault> {
        let Some(attribute) = self.constant(index, what)? else { return Ok(None) };
        if attribute.ty().dtype.is_float() {
            return Err(Fault::operands(format!(
                "{what} (operand {index}) must be whole numbers, found {}",
                attribute.ty()
            )));
        }
        Ok(Some(attribute.to_tensor().to_integers()))
    }

    /// One whole number that must be known while compiling; `None` when the operand isn't there.
    ///
    /// # Errors
    /// When it isn't known, or isn't one whole number.
    pub fn constant_int(&mut self, index: usize, what: &str) -> Result<Option<i64>, Fault> {
        self.constant_ints(index, what)?.map(|numbers| only(&numbers, what)).transpose()
    }

    /// Numbers that must be known while compiling; `None` when the operand isn't there.
    ///
    /// # Errors
    /// When they aren't known.
    pub fn constant_floats(&mut self, index: usize, what: &str) -> Result<Option<Vec<f64>>, Fault> {
        Ok(self.constant(index, what)?.map(|attribute| attribute.to_tensor().to_floats()))
    }

    /// One number that must be known while compiling; `None` when the operand isn't there.
    ///
    /// # Errors
    /// When it isn't known, or isn't one number.
    pub fn constant_float(&mut self, index: usize, what: &str) -> Result<Option<f64>, Fault> {
        self.constant_floats(index, what)?.map(|numbers| only(&numbers, what)).transpose()
    }

    /// The axis of a tensor that a number, negative ones from the end, means.
    ///
    /// # Errors
    /// When the tensor has no such axis.
    pub fn axis(&self, x: Value, axis: i64) -> Result<usize, Fault> {
        normalized_axis(axis, self.builder.rank(x))
            .ok_or_else(|| Fault::parameter(format!("{} has no axis {axis}", self.builder.ty(x))))
    }

    /// Axes by number, ascending.
    ///
    /// # Errors
    /// When the tensor lacks one, or one is there twice.
    pub fn axes(&self, x: Value, axes: &[i64]) -> Result<Vec<usize>, Fault> {
        let found = axes.iter().map(|&axis| self.axis(x, axis)).collect::<Result<BTreeSet<_>, _>>()?;
        if found.len() < axes.len() {
            return Err(Fault::parameter(format!("an axis is there twice: {axes:?}")));
        }
        Ok(found.into_iter().collect())
    }

    /// The slice of some axes from `starts` to `ends` by `steps`, one of each for every axis, each axis once; `None` for a step of 0.
    ///
    /// # Errors
    /// When the tensor lacks an axis, or one is there twice.
    pub fn slice_of_axes(
        &self,
        x: Value,
        axes: &[i64],
        (starts, ends, steps): (&[i64], &[i64], &[i64]),
    ) -> Result<Option<Slice>, Fault> {
        self.axes(x, axes)?;
        let shape = self.shape(x);
        let mut slice = Slice { starts: vec![0; shape.len()], sizes: shape.to_vec(), steps: vec![1; shape.len()] };
        for (index, &axis) in axes.iter().enumerate() {
            let axis = self.axis(x, axis)?;
            let Some((start, size, step)) = slice_part(shape[axis], starts[index], ends[index], steps[index]) else {
                return Ok(None);
            };
            (slice.starts[axis], slice.sizes[axis], slice.steps[axis]) = (start, size, step);
        }
        Ok(Some(slice))
    }

    /// Shape of a value, to be iterated while the builder is at work.
    pub fn shape(&self, value: Value) -> Shape {
        self.builder.shape(value)
    }

    /// Data type of a value.
    pub fn dtype_of(&self, value: Value) -> DType {
        self.builder.dtype(value)
    }

    /// Number of axes of a value.
    pub fn rank(&self, value: Value) -> usize {
        self.builder.rank(value)
    }

    /// What the format remembers of a value.
    pub fn note(&self, value: Value) -> Option<&F::Note> {
        self.notes.get(&value)
    }

    /// Remembers something of a value.
    pub fn set_note(&mut self, value: Value, note: F::Note) {
        self.notes.insert(value, note);
    }

    /// What the user should know, whatever was looked at.
    pub(crate) fn into_warnings(self) -> Vec<(Code, String)> {
        self.warnings
    }

    /// Ends the call: what the user should know.
    ///
    /// # Errors
    /// When something that the operator has was not looked at, and the format refuses that.
    pub(crate) fn finish(self) -> Result<Vec<(Code, String)>, Fault> {
        let mut warnings = Vec::new();
        for name in self.unused_attributes() {
            if F::SURPLUS_ATTRIBUTES == Surplus::Refused {
                return Err(Fault::parameter(format!("there is no {} `{name}`", F::ATTRIBUTE)));
            }
            warnings.push((Code::Unused, format!("{} `{name}` isn't known and doesn't count", F::ATTRIBUTE)));
        }
        for index in (0..self.inputs.len()).filter(|index| !self.used_inputs.contains(index)) {
            let label = F::label(self.site.operator, index);
            if F::SURPLUS_OPERANDS == Surplus::Refused && !self.inputs[index].is_absent() {
                let given = self.inputs.len();
                let message = format!("the operator doesn't take an operand {index}; {given} are given");
                return Err(Fault::new(Code::OperandCount, message));
            }
            let what = match label {
                Some(label) => format!("operand `{label}`"),
                None if self.inputs[index].tensor().is_some() => format!("operand {index}"),
                None => continue,
            };
            warnings.push((Code::Unused, format!("{what} isn't known and doesn't count")));
        }
        warnings.extend(self.warnings);
        Ok(warnings)
    }
}

fn only<T: Copy>(numbers: &[T], what: &str) -> Result<T, Fault> {
    match numbers {
        [number] => Ok(*number),
        _ => Err(Fault::operands(format!("{what} must be one number, found {}", numbers.len()))),
    }
}
