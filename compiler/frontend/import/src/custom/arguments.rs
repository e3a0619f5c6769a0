//! Operands and attributes of a model's operator as its description has them: inputs and parameters.

use super::options::{CustomOperators, Described};
use crate::call::Call;
use crate::fault::Fault;
use crate::format::Format;
use crate::item::{AttributeValue, Item};
use mlc_descriptions::{Description, ELEMENT_TYPES, Parameter, ParameterKind, ParameterValue, TensorDescription};
use mlc_ir::{Code, DType, Graph, Op, Value};

/// Data types by the names of the element types that they are; truth values have four bytes there.
const TYPES: [(&str, DType); 11] = [
    ("TL_DOUBLE", DType::F64),
    ("TL_FLOAT", DType::F32),
    ("TL_INT64", DType::I64),
    ("TL_INT32", DType::I32),
    ("TL_INT16", DType::I16),
    ("TL_INT8", DType::I8),
    ("TL_UINT64", DType::U64),
    ("TL_UINT32", DType::U32),
    ("TL_UINT16", DType::U16),
    ("TL_UINT8", DType::U8),
    ("TL_BOOL", DType::Bool),
];

/// The number of memory that a processor has.
const PROCESSOR_MEMORY: u8 = 1;

/// The data type of the model that an element type stands for.
pub(crate) fn data_type(element: usize) -> Option<DType> {
    let name = ELEMENT_TYPES.get(element)?;
    TYPES.iter().find(|(known, _)| known == name).map(|(_, dtype)| *dtype)
}

/// An operand as a description sees it.
pub(crate) struct Argument {
    /// The value: truth values as integers, a number as a list of one.
    pub value: Value,
    /// Its type.
    pub ty: TensorDescription,
}

/// Which operands are inputs, in the description's order: by label where all have labels, else by position.
fn places<F: Format>(call: &Call<'_, '_, F>, described: Described<'_>) -> Result<Vec<usize>, Fault> {
    let Description { inputs, parameters, .. } = described.description;
    let label = |place: usize| F::label(call.site.operator, place);
    let is_parameter = |name: &str| parameters.iter().any(|parameter| parameter.name == described.parameter(name));
    let mut places: Vec<usize> =
        (0..call.inputs.len()).filter(|&place| !label(place).is_some_and(is_parameter)).collect();
    while places.last().is_some_and(|&last| call.inputs[last].is_absent()) {
        places.pop();
    }
    if let Some(absent) = places.iter().find(|&&place| call.inputs[place].is_absent()) {
        let message = format!("operand {absent} isn't given; the inputs of described operators must be");
        return Err(Fault::new(Code::OperandCount, message));
    }
    let is_labelled = !places.is_empty() && places.iter().all(|&place| label(place).is_some());
    if !is_labelled || places.len() != inputs.len() {
        return Ok(places);
    }
    let place_of = |name: &str| places.iter().find(|&&place| label(place) == Some(name)).copied();
    let needed = |name: &str| Fault::new(Code::OperandCount, format!("it needs a `{name}` input tensor"));
    inputs.iter().map(|input| place_of(&input.name).ok_or_else(|| needed(&input.name))).collect()
}

/// Which of the description's outputs each result of the model's operator is: by label where it has one, else by position.
///
/// # Errors
/// When a label is of no output.
pub(crate) fn result_order<F: Format>(call: &Call<'_, '_, F>, described: Described<'_>) -> Result<Vec<usize>, Fault> {
    let outputs = &described.description.outputs;
    let labels: Vec<&str> =
        (0..call.results()).map_while(|result| F::result_label(call.site.operator, result)).collect();
    if labels.is_empty() {
        return Ok((0..outputs.len()).collect());
    }
    if labels.len() != outputs.len() {
        return Ok((0..labels.len()).collect());
    }
    let missing = outputs.iter().find(|output| !labels.contains(&output.name.as_str()));
    if let Some(output) = missing {
        return Err(Fault::new(Code::OperandCount, format!("it needs a `{}` output tensor", output.name)));
    }
    Ok(labels.iter().filter_map(|label| outputs.iter().position(|output| output.name == *label)).collect())
}

/// What the model calls the outputs, in the description's order.
pub(crate) fn result_names<F: Format>(call: &Call<'_, '_, F>, order: &[usize]) -> Vec<String> {
    let names = F::results(call.model, call.site.operator);
    let name = |output: usize| {
        let result = order.iter().position(|found| *found == output);
        result.and_then(|result| names.get(result).copied().flatten())
    };
    let name = |output| name(output).map_or_else(|| call.site.name.clone(), |name| name.to_string());
    (0..order.len()).map(name).collect()
}

/// The operands that are inputs.
///
/// # Errors
/// When one that the description wants isn't there, isn't a tensor, or is of a type that descriptions don't have.
pub(crate) fn arguments<F: Format>(
    call: &mut Call<'_, '_, F>,
    described: Described<'_>,
) -> Result<Vec<Argument>, Fault> {
    let names: Vec<String> = F::operands(call.model, call.site.operator)
        .into_iter()
        .map(|name| name.map_or_else(String::new, |name| name.to_string()))
        .collect();
    let mut arguments = Vec::new();
    for place in places(call, described)? {
        let value = call.input(place)?;
        let name = names.get(place).filter(|name| !name.is_empty()).cloned();
        arguments.push(argument(call, name.unwrap_or_else(|| format!("operand {place}")), value)?);
    }
    Ok(arguments)
}

fn argument<F: Format>(call: &mut Call<'_, '_, F>, name: String, value: Value) -> Result<Argument, Fault> {
    let ty = call.builder.ty(value).clone();
    let known = TYPES.iter().find(|(_, dtype)| *dtype == ty.dtype);
    let Some((element, _)) = known else {
        let message = format!("`{name}` is {ty}, a data type that described operators don't have");
        return Err(Fault::variant(message));
    };
    let graph = call.builder.graph();
    let is_static = F::is_static(call.note(value), graph.constant(value).is_some()) || is_persistent(graph, value);
    let extents: Option<Vec<i32>> = ty.shape.iter().map(|&extent| i32::try_from(extent).ok()).collect();
    let mut extents =
        extents.ok_or_else(|| Fault::variant(format!("`{name}` is {ty}, larger than an int can count")))?;
    let mut value = if ty.dtype == DType::Bool { call.builder.cast(value, DType::I32)? } else { value };
    if extents.is_empty() {
        extents.push(1);
        value = call.builder.reshape(value, &[1])?;
    }
    let element = ELEMENT_TYPES.iter().position(|known| known == element).unwrap_or_default();
    Ok(Argument { value, ty: TensorDescription { name, element, extents, is_static, memory: PROCESSOR_MEMORY } })
}

/// Whether a described operator computes a value before the first run.
fn is_persistent(graph: &Graph, value: Value) -> bool {
    matches!(&graph.node(value.node).op, Op::Extern(op) if op.persistent.contains(&(value.slot as usize)))
}

/// The parameters that attributes give.
///
/// # Errors
/// When an attribute is of a kind that no parameter has.
pub(crate) fn parameters<'m, F: Format>(
    call: &mut Call<'_, 'm, F>,
    described: Described<'_>,
    operators: &CustomOperators,
) -> Result<Vec<(String, ParameterValue)>, Fault> {
    let operator = call.site.operator;
    let labelled = (0..call.inputs.len()).filter_map(|place| F::label(operator, place));
    let names: Vec<String> = call.attributes.keys().copied().chain(labelled).map(str::to_owned).collect();
    let mut found = Vec::new();
    for name in names {
        let parameter_name = described.parameter(&name).to_owned();
        let parameter = described.description.parameters.iter().find(|parameter| parameter.name == parameter_name);
        let is_operand = call.place_of_label(&name).is_some();
        let Some(parameter) = parameter else {
            let matters = call.attributes.get(name.as_str()).is_some_and(|value| F::attribute_matters(&name, value));
            if is_operand || !matters {
                continue;
            }
            if operators.ignore_attributes {
                call.warn(
                    Code::Unused,
                    format!("{} `{name}` isn't in the description and doesn't count", F::ATTRIBUTE),
                );
                continue;
            }
            found.push((parameter_name, ParameterValue::Null));
            continue;
        };
        let Some(attribute) = call.attribute(&name) else {
            if parameter.kind == ParameterKind::Null {
                found.push((parameter_name, ParameterValue::Null));
            }
            continue;
        };
        let value = wanted(parameter, &attribute).or_else(|| natural(&attribute)).ok_or_else(|| {
            let (kind, description) = (parameter.type_name(), attribute.description());
            Fault::parameter(format!("{} `{name}` must be of type {kind}, found {description}", F::ATTRIBUTE))
        })?;
        found.push((parameter_name, value));
    }
    Ok(found)
}

/// An attribute as a value of a parameter's type.
fn wanted(parameter: &Parameter, attribute: &impl AttributeValue) -> Option<ParameterValue> {
    match (parameter.kind, parameter.array) {
        (ParameterKind::Null, _) => attribute.is_absent().then_some(ParameterValue::Null),
        (ParameterKind::Text, false) => attribute.word().map(|word| ParameterValue::Text(word.to_string())),
        (ParameterKind::Text, true) => attribute.words().map(ParameterValue::Texts),
        (ParameterKind::Number, false) => number(attribute).map(ParameterValue::Number),
        (ParameterKind::Number, true) => numbers(attribute).map(ParameterValue::Numbers),
        (ParameterKind::Bool, false) => attribute.flag().map(ParameterValue::Bool),
        (ParameterKind::Bool, true) => attribute.flags().map(ParameterValue::Bools),
    }
}

/// An attribute as a value of its own type, so that a message can say which that is.
fn natural(attribute: &impl AttributeValue) -> Option<ParameterValue> {
    let number = number(attribute).map(ParameterValue::Number);
    let word = || attribute.word().map(|word| ParameterValue::Text(word.to_string()));
    let flag = || attribute.flag().map(ParameterValue::Bool);
    let numbers = || numbers(attribute).map(ParameterValue::Numbers);
    let words = || attribute.words().map(ParameterValue::Texts);
    number.or_else(word).or_else(flag).or_else(numbers).or_else(words)
}

fn number(attribute: &impl AttributeValue) -> Option<f64> {
    attribute.int().map(|number| number as f64).or_else(|| attribute.float())
}

fn numbers(attribute: &impl AttributeValue) -> Option<Vec<f64>> {
    let whole = attribute.ints().map(|numbers| numbers.into_iter().map(|number| number as f64).collect());
    whole.or_else(|| attribute.floats())
}
