//! [`Pnnx`]: what the format brings to the import engine.

use super::item::{Argument, Item, dtype_of};
use crate::model::{Dimension, Model, OperandId, Operator};
use mlc_import::{Attributes, Builder, Description, Extent, Fault, Format, Surplus};
use mlc_ir::{Code, Location};
use std::collections::BTreeMap;
use std::fmt;

/// The format.
pub struct Pnnx;

/// An operand of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name<'m> {
    pub id: OperandId,
    text: &'m str,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// The name of an operand.
pub fn name_of(model: &Model, id: OperandId) -> Name<'_> {
    Name { id, text: &model.operand(id).name }
}

/// An operator's results that something takes, or that the file's user may take: all, by name.
fn names<'m>(model: &'m Model, operands: &[OperandId]) -> Vec<Option<Name<'m>>> {
    operands.iter().map(|&id| Some(name_of(model, id))).collect()
}

/// The operator that takes apart the tuple which this operator's only output stands for.
fn unpacking<'m>(model: &'m Model, operator: &Operator) -> Option<&'m Operator> {
    let [output] = operator.outputs[..] else { return None };
    let kind = operator.kind.as_str();
    if kind.starts_with("pnnx.") || kind.starts_with("prim::") {
        return None;
    }
    let mut consumers = model.operand(output).consumers.iter().map(|&consumer| model.operator(consumer));
    consumers.find(|consumer| consumer.kind == "prim::TupleUnpack")
}

/// The operands that stand for the results of an operator that gives several.
pub fn wanted_results<'m>(model: &'m Model, operator: &'m Operator) -> &'m [OperandId] {
    &unpacking(model, operator).unwrap_or(operator).outputs
}

/// An extent of the file.
pub fn extent(dimension: &Dimension) -> Extent<'_> {
    match dimension {
        Dimension::Known(extent) => Extent::Known(*extent as usize),
        Dimension::Symbol(name) => Extent::Named(name),
        Dimension::Unknown => Extent::Open,
    }
}

impl Format for Pnnx {
    const NAME: &'static str = "pnnx";
    const ATTRIBUTE: &'static str = "parameter";
    const SURPLUS_OPERANDS: Surplus = Surplus::Warned;
    /// The exporter computes on shapes itself.
    const COMPUTES_SHAPES: bool = false;

    type Model<'m> = &'m Model;
    type Operator<'m> = &'m Operator;
    type Name<'m> = Name<'m>;
    type Item = Item;
    type Attribute<'m> = Argument;
    type Region<'m> = std::convert::Infallible;
    type Scope<'m> = ();
    type Note = std::convert::Infallible;

    fn describe(operator: Self::Operator<'_>) -> Description<'_> {
        let location = if operator.line > 0 { Location::line(operator.line) } else { Location::default() };
        Description { kind: &operator.kind, domain: "", name: operator.name.clone(), location }
    }

    fn operands<'m>(model: Self::Model<'m>, operator: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        names(model, &operator.inputs)
    }

    fn results<'m>(model: Self::Model<'m>, operator: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        names(model, &operator.outputs)
    }

    fn label(operator: Self::Operator<'_>, operand: usize) -> Option<&str> {
        operator.input_names.get(operand)?.as_deref()
    }

    fn attributes<'m>(_scope: &(), operator: Self::Operator<'m>) -> Result<Attributes<'m, Self>, Fault> {
        Ok(operator.parameters.iter().map(|(key, value)| (key.as_str(), Argument::from(value))).collect())
    }

    fn operand_as_attribute<'m>(item: &Item, builder: &Builder) -> Option<Self::Attribute<'m>> {
        Some(Argument::of_operand(item, builder))
    }

    /// What is False, None or about training can't change the result.
    fn attribute_matters<'m>(name: &str, value: &Self::Attribute<'m>) -> bool {
        const HARMLESS: [&str; 14] = [
            "copy",
            "device",
            "dropout",
            "inplace",
            "layout",
            "memory_format",
            "non_blocking",
            "num_features",
            "pin_memory",
            "requires_grad",
            "scale_grad_by_freq",
            "sparse",
            "momentum",
            "affine",
        ];
        !HARMLESS.contains(&name) && !matches!(value.item, Item::None | Item::Bool(false))
    }

    fn arrange<'m>(model: Self::Model<'m>, operator: Self::Operator<'m>, results: Vec<Item>) -> Vec<Item> {
        if unpacking(model, operator).is_some() { vec![Item::List(results)] } else { results }
    }

    /// Compares a tensor with what the file says about its operand, and learns named dimensions.
    fn check_result<'m>(
        model: Self::Model<'m>,
        dimensions: &mut BTreeMap<String, usize>,
        builder: &Builder,
        name: Self::Name<'m>,
        item: &Item,
    ) -> Result<(), Fault> {
        let Some(declared) = &model.operand(name.id).ty else { return Ok(()) };
        let (Item::Tensor(value) | Item::Complex(value, _)) = item else { return Ok(()) };
        let ty = builder.ty(*value);
        let mut fits = ty.rank() == declared.shape.len();
        for (&found, expected) in ty.shape.iter().zip(&declared.shape) {
            fits &= match extent(expected) {
                Extent::Known(expected) => expected == found,
                Extent::Open => true,
                Extent::Named(name) => *dimensions.entry(name.to_owned()).or_insert(found) == found,
            };
        }
        let real = matches!(item, Item::Tensor(_));
        let dtype_fits = !real || dtype_of(declared.element_type).is_none_or(|dtype| dtype == ty.dtype);
        if fits && dtype_fits {
            return Ok(());
        }
        let message = format!("result `{name}` is {ty}, the file says {declared}");
        Err(Fault::new(Code::ShapeMismatch, message).with_help(
            "the file was edited, or written for other input shapes: export the model again for the shapes you need",
        ))
    }

    fn help_for_unknown(kind: &str) -> String {
        let known = ["nn.", "F.", "torch.", "Tensor.", "aten::", "prim::", "pnnx."];
        let known = known.iter().any(|prefix| kind.starts_with(prefix));
        let help = match known {
            true => {
                "replace it in the source model by supported operators, and export that again, or describe its C: --op-descriptions"
            }
            false => {
                "a module that the exporter kept whole has no defined meaning; export the model without `moduleop=`"
            }
        };
        help.into()
    }
}
