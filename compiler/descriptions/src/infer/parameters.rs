//! Parameters of an operator: as they are given, and as the checks have left them.

use super::host::{self, Records};
use super::library;
use crate::c::{Function, Machine, Memory, Pointer, Type, Value};
use crate::parameter::{Parameter, ParameterKind, ParameterValue};

/// A parameter after the checks.
#[derive(Debug, Clone, PartialEq)]
pub struct InferredParameter {
    /// Its value: elements of arrays may have been overwritten.
    pub value: ParameterValue,
    /// What a function has made of its text or its texts: a number, or numbers.
    pub converted: Option<ParameterValue>,
}

/// The value as one of a parameter's type: 0 and 1 are also truth values.
pub(super) fn converted(parameter: &Parameter, value: &ParameterValue) -> Option<ParameterValue> {
    let truth = |number: &f64| match *number {
        0.0 => Some(false),
        1.0 => Some(true),
        _ => None,
    };
    match (parameter.kind, value) {
        (ParameterKind::Bool, ParameterValue::Number(number)) if !parameter.array => {
            truth(number).map(ParameterValue::Bool)
        }
        (ParameterKind::Bool, ParameterValue::Numbers(numbers)) if parameter.array => {
            numbers.iter().map(truth).collect::<Option<_>>().map(ParameterValue::Bools)
        }
        _ if value.type_name() == parameter.type_name() => Some(value.clone()),
        _ => None,
    }
}

/// What a function makes of a parameter's string, or of each of its strings.
pub(super) fn convert_text(
    machine: &mut Machine<Records>,
    number: usize,
    name: &str,
    ty: Type,
) -> Result<Value, String> {
    let (function, ..) = Function::named(name).ok_or("the function isn't known")?;
    let (texts, length) = (machine.host.parameters[number].string, machine.host.parameters[number].length);
    let Some(element) = ty.target() else {
        return library::call(&machine.host, &mut machine.memory, function, &[texts])?.converted(ty);
    };
    let list = Pointer::object(machine.memory.variable(element, length)?, element);
    for index in 0..length {
        let text = machine.memory.moved(host::pointer(texts)?, index as i128)?;
        let text = machine.memory.load(text)?;
        let value = library::call(&machine.host, &mut machine.memory, function, &[text])?;
        let place = machine.memory.moved(list, index as i128)?;
        machine.memory.store(place, value)?;
    }
    Ok(Value::Pointer(list))
}

/// The parameters as the checks have left them.
pub(super) fn final_values(
    memory: &mut Memory,
    records: &Records,
    parameters: &[Parameter],
    values: &[ParameterValue],
) -> Result<Vec<InferredParameter>, String> {
    let mut results = Vec::new();
    for ((record, parameter), given) in records.parameters.iter().zip(parameters).zip(values) {
        let seen = record.value(record.view);
        let mut value = given.clone();
        let mut converted = None;
        match given {
            ParameterValue::Numbers(_) => value = ParameterValue::Numbers(numbers(memory, seen, record.length)?),
            ParameterValue::Bools(_) => {
                let numbers = numbers(memory, seen, record.length)?;
                value = ParameterValue::Bools(numbers.iter().map(|number| *number != 0.0).collect());
            }
            ParameterValue::Text(_) if parameter.from_function.is_some() => {
                converted = seen.number().map(ParameterValue::Number);
            }
            ParameterValue::Texts(_) if parameter.from_function.is_some() => {
                converted = Some(ParameterValue::Numbers(numbers(memory, seen, record.length)?));
            }
            _ => {}
        }
        results.push(InferredParameter { value, converted });
    }
    Ok(results)
}

/// The elements of an array of numbers.
fn numbers(memory: &mut Memory, list: Value, length: usize) -> Result<Vec<f64>, String> {
    let start = host::pointer(list)?;
    let element = |number: usize| {
        let place = memory.moved(start, number as i128)?;
        Ok(memory.load(place)?.number().unwrap_or_default())
    };
    (0..length).map(element).collect()
}
