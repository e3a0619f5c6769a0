//! [`Tennis`]: what the format brings to the import engine.

use super::item::Item;
use crate::element_type::ElementType;
use crate::model::{Model, Node, NodeId};
use crate::tensor::{Field, Tensor};
use mlc_import::{AttributeValue, Attributes, Description, Fault, Format, Surplus};
use mlc_ir::{DType, Location, Value};
use std::convert::Infallible;

/// The format.
pub struct Tennis;

/// A node where it stands in the model.
#[derive(Clone, Copy)]
pub struct Application<'m> {
    pub id: NodeId,
    pub node: &'m Node,
}

impl Format for Tennis {
    const NAME: &'static str = "tennis";
    const ATTRIBUTE: &'static str = "parameter";
    const SURPLUS_ATTRIBUTES: Surplus = Surplus::Refused;
    const TAKES_INPUT_VALUES: bool = true;

    type Model<'m> = &'m Model;
    type Operator<'m> = Application<'m>;
    type Name<'m> = NodeId;
    type Item = Item;
    type Attribute<'m> = &'m Tensor;
    type Region<'m> = Infallible;
    type Scope<'m> = ();
    type Note = Infallible;

    fn describe(operator: Self::Operator<'_>) -> Description<'_> {
        let node = operator.node;
        Description { kind: &node.kind, domain: "", name: node.title(), location: Location::byte_offset(node.offset) }
    }

    fn operands<'m>(_model: Self::Model<'m>, operator: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        operator.node.inputs.iter().copied().map(Some).collect()
    }

    fn results<'m>(_model: Self::Model<'m>, operator: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        vec![Some(operator.id)]
    }

    /// Names that begin with `#` are the format's own, and say nothing about the operator.
    fn attributes<'m>(_scope: &(), operator: Self::Operator<'m>) -> Result<Attributes<'m, Self>, Fault> {
        let parameters = operator.node.parameters.iter().filter(|(key, _)| !key.starts_with('#'));
        Ok(parameters.map(|(key, value)| (key.as_str(), value)).collect())
    }

    /// A node has one value, which packs several results.
    fn arrange<'m>(
        _model: Self::Model<'m>,
        _operator: Self::Operator<'m>,
        results: Vec<Self::Item>,
    ) -> Vec<Self::Item> {
        let tensors: Vec<Value> = results.iter().filter_map(mlc_import::Item::tensor).collect();
        if results.len() > 1 && tensors.len() == results.len() { vec![Item::packed(tensors)] } else { results }
    }

    fn help_for_unknown(_kind: &str) -> String {
        "'mlc ops --format tennis' lists what is supported".into()
    }
}

impl<'m> AttributeValue for &'m Tensor {
    type Word = &'m str;

    fn description(&self) -> String {
        let fields: Vec<String> = self.fields.iter().map(Field::type_text).collect();
        match self.single().and_then(Field::text) {
            Some(text) => format!("the text `{text}`"),
            None => fields.join(" and "),
        }
    }

    fn int(&self) -> Option<i64> {
        self.single()?.int()
    }

    fn float(&self) -> Option<f64> {
        self.single()?.float()
    }

    fn flag(&self) -> Option<bool> {
        self.single()?.flag()
    }

    fn ints(&self) -> Option<Vec<i64>> {
        self.single()?.ints()
    }

    fn floats(&self) -> Option<Vec<f64>> {
        self.single()?.floats()
    }

    fn word(&self) -> Option<&'m str> {
        let tensor: &'m Tensor = self;
        tensor.single()?.text()
    }

    fn dtype(&self) -> Option<Result<DType, Fault>> {
        self.int().map(dtype_of)
    }
}

/// The data type of a code.
pub fn dtype_of(code: i64) -> Result<DType, Fault> {
    let element_type = u8::try_from(code).ok().and_then(ElementType::of_code);
    let element_type = element_type.ok_or_else(|| Fault::parameter(format!("there is no data type {code}")))?;
    element_type.dtype().ok_or_else(|| unsupported(element_type))
}

/// Why a data type can't be computed with.
pub fn unsupported(element_type: ElementType) -> Fault {
    Fault::variant(format!("the data type {element_type} isn't supported"))
}
