//! [`Tflite`]: what the format brings to the import engine.

use crate::element_type::ElementType;
use crate::model::{Model, Operator, Setting, Subgraph, Tensor};
use mlc_import::{AttributeValue, Attributes, Constant, Description, Fault, Format, Operand};
use mlc_ir::{Attribute, Code, DType, Location, TensorType};
use std::convert::Infallible;
use std::fmt;

/// The format.
pub struct Tflite;

/// An operator where it stands in the model.
#[derive(Clone, Copy)]
pub struct Application<'m> {
    pub model: &'m Model,
    pub subgraph: &'m Subgraph,
    pub operator: &'m Operator,
}

/// A subgraph that an operator runs.
#[derive(Clone, Copy)]
pub struct Region<'m> {
    pub model: &'m Model,
    pub subgraph: &'m Subgraph,
}

impl<'m> Application<'m> {
    /// The subgraphs that the operator runs, in the order of its options.
    pub fn regions(self) -> Vec<Region<'m>> {
        let model = self.model;
        let subgraphs = self.operator.subgraphs().filter_map(|number| model.subgraphs.get(number));
        subgraphs.map(|subgraph| Region { model, subgraph }).collect()
    }
}

/// A tensor of a subgraph.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name<'m> {
    pub index: usize,
    /// Need not be the only one of its name.
    pub name: &'m str,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() { write!(f, "tensor {}", self.index) } else { f.write_str(self.name) }
    }
}

impl<'m> Name<'m> {
    pub fn of(subgraph: &'m Subgraph, index: usize) -> Self {
        Name { index, name: &subgraph.tensors[index].name }
    }
}

impl Format for Tflite {
    const NAME: &'static str = "tflite";
    const ATTRIBUTE: &'static str = "option";
    const CLOSED_REGIONS: bool = true;

    type Model<'m> = &'m Model;
    type Operator<'m> = Application<'m>;
    type Name<'m> = Name<'m>;
    type Item = Operand;
    type Attribute<'m> = &'m Setting;
    type Region<'m> = Region<'m>;
    type Scope<'m> = &'m Subgraph;
    type Note = Infallible;

    /// An operator has no name; its first result has one.
    fn describe(application: Self::Operator<'_>) -> Description<'_> {
        let Application { subgraph, operator, .. } = application;
        let first = operator.outputs.first().map(|&output| Name::of(subgraph, output).to_string());
        let name = first.unwrap_or_else(|| format!("operator {}", operator.index));
        Description { kind: &operator.kind, domain: "", name, location: Location::default() }
    }

    /// A tensor that keeps its value between two runs, of an operator that begins anew each time, isn't one that something computes.
    fn operands<'m>(_model: Self::Model<'m>, application: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        let Application { subgraph, operator, .. } = application;
        let is_state = |index: usize| subgraph.tensors[index].is_variable && subgraph.tensors[index].data.is_none();
        let named =
            |input: &Option<usize>| input.filter(|&index| !is_state(index)).map(|index| Name::of(subgraph, index));
        operator.inputs.iter().map(named).collect()
    }

    fn results<'m>(_model: Self::Model<'m>, application: Self::Operator<'m>) -> Vec<Option<Self::Name<'m>>> {
        let Application { subgraph, operator, .. } = application;
        operator.outputs.iter().map(|&output| Some(Name::of(subgraph, output))).collect()
    }

    fn attributes<'m>(
        _scope: &Self::Scope<'m>,
        application: Self::Operator<'m>,
    ) -> Result<Attributes<'m, Self>, Fault> {
        Ok(application.operator.options.iter().map(|(name, value)| (&**name, value)).collect())
    }

    /// The reader keeps what results depend on; what an import doesn't look at is said by shapes, too.
    fn attribute_matters<'m>(_name: &str, _value: &Self::Attribute<'m>) -> bool {
        false
    }

    fn constant<'m>(
        _model: Self::Model<'m>,
        scope: &Self::Scope<'m>,
        name: Self::Name<'m>,
    ) -> Option<Result<Constant<Self>, Fault>> {
        let tensor = &scope.tensors[name.index];
        tensor.data.is_some().then(|| Ok((constant(tensor)?, None)))
    }

    fn regions(application: Self::Operator<'_>) -> Vec<Self::Region<'_>> {
        application.regions()
    }

    fn region_name<'m>(region: Self::Region<'m>) -> &'m str {
        &region.subgraph.name
    }

    fn operators(region: Self::Region<'_>) -> Vec<Self::Operator<'_>> {
        let Region { model, subgraph } = region;
        subgraph.operators.iter().map(|operator| Application { model, subgraph, operator }).collect()
    }

    fn region_inputs(region: Self::Region<'_>) -> Vec<Self::Name<'_>> {
        region.subgraph.inputs.iter().map(|&input| Name::of(region.subgraph, input)).collect()
    }

    fn region_outputs(region: Self::Region<'_>) -> Vec<Self::Name<'_>> {
        region.subgraph.outputs.iter().map(|&output| Name::of(region.subgraph, output)).collect()
    }

    fn inner_scope<'m>(_outer: &Self::Scope<'m>, region: Self::Region<'m>) -> Self::Scope<'m> {
        region.subgraph
    }

    fn help_for_unknown(_kind: &str) -> String {
        "'mlc ops --format tflite' lists what is supported; --op-descriptions describes operators of one's own".into()
    }
}

/// The data type of a tensor.
pub fn dtype_of(element_type: ElementType) -> Result<DType, Fault> {
    let unknown = || Fault::variant(format!("the data type {element_type} isn't supported"));
    element_type.dtype().ok_or_else(unknown)
}

/// The value of a constant.
pub fn constant(tensor: &Tensor) -> Result<Attribute, Fault> {
    let ty = TensorType::new(dtype_of(tensor.element_type)?, &tensor.shape);
    let data = tensor.data.clone().unwrap_or_default();
    if let Some(sparsity) = &tensor.sparsity {
        let size = ty.dtype.size();
        let places = sparsity.places(&tensor.shape, data.len() / size).map_err(Fault::variant)?;
        let mut dense = vec![0; ty.bytes()];
        for (place, element) in places.into_iter().zip(data.chunks_exact(size)) {
            dense[place * size..][..size].copy_from_slice(element);
        }
        return Ok(Attribute::new(ty, dense)?);
    }
    if tensor.element_type == ElementType::INT4 {
        // Two numbers in a byte, the low half first; the shift back keeps the sign.
        let halves = data.iter().flat_map(|&byte| [(byte << 4) as i8 >> 4, byte as i8 >> 4]);
        let bytes: Vec<u8> = halves.take(ty.elements()).map(|number| number as u8).collect();
        return Ok(Attribute::new(ty, bytes)?);
    }
    if ty.dtype == DType::Bool && data.iter().any(|&byte| byte > 1) {
        return Err(Fault::new(Code::NumberOutOfRange, "a truth value is neither 0 nor 1"));
    }
    Ok(Attribute::new(ty, data)?)
}

impl<'m> AttributeValue for &'m Setting {
    type Word = &'m str;

    fn description(&self) -> String {
        match self {
            Setting::Int(number) => format!("the whole number {number}"),
            Setting::Float(number) => format!("the number {number}"),
            Setting::Flag(flag) => format!("the truth value {flag}"),
            Setting::Ints(numbers) => format!("a list of {}", numbers.len()),
            Setting::Floats(numbers) => format!("a list of {} numbers", numbers.len()),
            Setting::Text(text) => format!("the text `{text}`"),
            Setting::Subgraph(number) => format!("subgraph {number}"),
            Setting::Other => "a value that no operator takes".into(),
        }
    }

    fn int(&self) -> Option<i64> {
        if let Setting::Int(number) = self { Some(*number) } else { None }
    }

    fn float(&self) -> Option<f64> {
        if let Setting::Float(number) = self { Some(*number) } else { None }
    }

    fn flag(&self) -> Option<bool> {
        if let Setting::Flag(flag) = self { Some(*flag) } else { None }
    }

    fn ints(&self) -> Option<Vec<i64>> {
        if let Setting::Ints(numbers) = self { Some(numbers.clone()) } else { None }
    }

    fn floats(&self) -> Option<Vec<f64>> {
        if let Setting::Floats(numbers) = self { Some(numbers.clone()) } else { None }
    }

    fn word(&self) -> Option<&'m str> {
        let setting: &'m Setting = self;
        if let Setting::Text(text) = setting { Some(text) } else { None }
    }

    fn dtype(&self) -> Option<Result<DType, Fault>> {
        let number = i8::try_from(self.int()?).ok()?;
        Some(dtype_of(ElementType(number)))
    }
}
