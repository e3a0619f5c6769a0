//! The engine's types for PNNX, and what PNNX operators have besides what the engine reads for all formats: weights, lists as
//! operands, shapes that the file gives for results.

use super::format::{Pnnx, extent, wanted_results};
use super::item::{Item, dtype_of};
use mlc_import::{Extent, Fault};
use mlc_ir::{Attribute, Code, Shape, TensorType, Value};
use std::collections::BTreeSet;

/// An operator while it is imported.
pub(super) type Call<'c, 'm> = mlc_import::Call<'c, 'm, Pnnx>;

/// A model while it becomes a graph.
pub(super) type Importer<'m> = mlc_import::Importer<'m, Pnnx>;

/// Operator types with their handlers.
pub(super) type Table = mlc_import::Table<Pnnx>;

/// Access to what only PNNX has.
pub(super) trait Operands {
    /// The tensor `input`, or the first operand.
    fn x(&mut self) -> Result<Value, Fault>;

    /// All operands as tensors; a list counts as its items.
    fn all_tensors(&mut self) -> Result<Vec<Value>, Fault>;

    /// A weight of the operator.
    fn weight(&mut self, key: &str) -> Result<Value, Fault>;

    /// A weight of the operator, if it is there.
    fn optional_weight(&mut self, key: &str) -> Result<Option<Value>, Fault>;

    /// An argument: the operand labelled so, else the parameter. `None` when absent or Python's None.
    fn argument(&mut self, key: &str) -> Option<Item>;

    /// A constant of one element as a number, anything else as it is.
    fn host_number(&self, item: Item) -> Item;

    /// The axes of a list parameter, ascending; all of them when it is absent or empty.
    fn axes_or_all(&mut self, x: Value, key: &str) -> Result<Vec<usize>, Fault>;

    /// Shapes that the file gives for the results, as far as they are known.
    fn declared(&self) -> Vec<Option<Vec<Option<usize>>>>;

    /// Whether anything takes each of the results that the file names.
    fn used_results(&self) -> Vec<bool>;
}

impl Operands for Call<'_, '_> {
    fn x(&mut self) -> Result<Value, Fault> {
        self.labelled_input("input", 0)
    }

    fn all_tensors(&mut self) -> Result<Vec<Value>, Fault> {
        self.use_all_inputs();
        let items = match &self.inputs[..] {
            [Item::List(items)] => items.clone(),
            _ => self.inputs.clone(),
        };
        items.iter().map(|item| self.as_tensor("`input`", item)).collect()
    }

    fn weight(&mut self, key: &str) -> Result<Value, Fault> {
        self.optional_weight(key)?.ok_or_else(|| {
            Fault::new(Code::WeightMissing, format!("the weight `{key}` is missing"))
                .with_help(format!("the line declares it as in @{key}=(16,3)f32"))
        })
    }

    fn optional_weight(&mut self, key: &str) -> Result<Option<Value>, Fault> {
        let Some(attribute) = self.site.operator.attributes.get(key) else { return Ok(None) };
        let attribute = to_ir(key, attribute)?;
        Ok(Some(self.builder.constant(key, attribute)))
    }

    fn argument(&mut self, key: &str) -> Option<Item> {
        self.attribute(key).map(|argument| argument.item)
    }

    fn host_number(&self, item: Item) -> Item {
        item.host_number(self.builder)
    }

    fn axes_or_all(&mut self, x: Value, key: &str) -> Result<Vec<usize>, Fault> {
        let rank = self.rank(x);
        match self.ints(key)? {
            Some(axes) if !axes.is_empty() => {
                // PyTorch takes axes 0 and -1 for a number, too.
                if rank == 0 && axes.iter().all(|axis| matches!(axis, 0 | -1)) {
                    return Ok(Vec::new());
                }
                let axes = axes.iter().map(|&axis| self.axis(x, axis)).collect::<Result<BTreeSet<_>, _>>()?;
                Ok(axes.into_iter().collect())
            }
            _ => Ok((0..rank).collect()),
        }
    }

    fn declared(&self) -> Vec<Option<Vec<Option<usize>>>> {
        let shape = |operand: &crate::model::OperandId| {
            let declared = self.model.operand(*operand).ty.as_ref()?;
            let known = |dimension| match extent(dimension) {
                Extent::Known(extent) => Some(extent),
                Extent::Named(name) => self.dimensions.get(name).copied(),
                Extent::Open => None,
            };
            Some(declared.shape.iter().map(known).collect())
        };
        self.site.operator.outputs.iter().map(shape).collect()
    }

    fn used_results(&self) -> Vec<bool> {
        let results = wanted_results(self.model, self.site.operator).iter();
        results.map(|&operand| !self.model.operand(operand).consumers.is_empty()).collect()
    }
}

/// A weight of the file as the IR's constant, sharing the bytes.
pub(super) fn to_ir(key: &str, attribute: &crate::model::Attribute) -> Result<Attribute, Fault> {
    let dtype = dtype_of(attribute.element_type).ok_or_else(|| {
        Fault::variant(format!("the weight `{key}` has element type {}, which isn't supported", attribute.element_type))
    })?;
    let shape: Shape = attribute.shape.iter().map(|&extent| extent as usize).collect();
    Ok(Attribute::new(TensorType::new(dtype, shape), attribute.data.clone())?)
}
