//! The checks of tensors and parameters, and what is said when one isn't met.

use super::host::{Records, integer, number_of};
use crate::c::{Binary, ELEMENTS, Failure, Function, MEMORIES, Memory, Record, Value, compare, mark};

/// Does a check; nothing if the function is none.
pub(super) fn check(
    records: &Records,
    memory: &mut Memory,
    function: Function,
    arguments: &[Value],
) -> Option<Result<Value, Failure>> {
    let result = match (function, arguments) {
        (Function::CheckArrayLen, [entry, length]) => array_length(records, *entry, *length),
        (Function::CheckBound(relation), [entry, limit]) => bound(records, *entry, relation, *limit),
        (Function::CheckBounds(relation), [entry, limit]) => bounds(records, memory, *entry, relation, *limit),
        (
            Function::CheckMtype
            | Function::CheckDtype
            | Function::CheckNdim
            | Function::CheckLen
            | Function::CheckSameType
            | Function::CheckSameShape
            | Function::CheckStatic
            | Function::CheckNotStatic,
            [entry, rest @ ..],
        ) => tensor(records, function, *entry, rest.first().copied().unwrap_or(Value::Void)),
        _ => return None,
    };
    Some(result.map(|()| Value::Void))
}

/// The name of a number in a list.
fn name_of<'a>(names: &[&'a str], number: i32) -> &'a str {
    usize::try_from(number).ok().and_then(|number| names.get(number)).copied().unwrap_or("an unknown one")
}

fn tensor(records: &Records, function: Function, entry: Value, other: Value) -> Result<(), Failure> {
    let number = number_of(Record::TensorEntry, entry)?;
    let record = &records.tensors[number];
    let ty = &record.known.as_ref().ok_or("the tensor isn't defined yet")?.ty;
    let failed = |what: String| {
        let (optype, operator) = (&records.optype, &records.operator_name);
        Err(Failure::Check(format!("{optype}: `{operator}`'s tensor `{}`{what}", record.name_text)))
    };
    match function {
        Function::CheckMtype => {
            let expected = integer(other)?;
            if i32::from(ty.memory) != expected {
                let (expected, found) = (name_of(&MEMORIES, expected), name_of(&MEMORIES, ty.memory.into()));
                return failed(format!("'s mtype should be {expected}, but gets {found}"));
            }
        }
        Function::CheckDtype => {
            let expected = integer(other)?;
            if ty.element as i32 != expected {
                let (expected, found) = (name_of(&ELEMENTS, expected), name_of(&ELEMENTS, ty.element as i32));
                return failed(format!("'s dtype should be {expected}, but gets {found}"));
            }
        }
        Function::CheckNdim => {
            let (expected, found) = (integer(other)?, ty.extents.len());
            if found as i32 != expected {
                return failed(format!(" should be a {expected}-dimensional tensor, but has {found} dimensions"));
            }
        }
        Function::CheckLen => {
            let (expected, found) = (integer(other)?, ty.length());
            if found != expected {
                return failed(format!(" should have {expected} elements, but has {found}"));
            }
        }
        Function::CheckSameType | Function::CheckSameShape => {
            let number = number_of(Record::TensorEntry, other)?;
            let (name, other) = (&records.tensors[number].name_text, &records.tensors[number].known);
            let other = &other.as_ref().ok_or("the tensor isn't defined yet")?.ty;
            if function == Function::CheckSameType && ty.element != other.element {
                let types = [ty.element, other.element].map(|element| name_of(&ELEMENTS, element as i32));
                return failed(format!(
                    " ({}) and tensor `{name}` ({}) should have the same data type",
                    types[0], types[1]
                ));
            }
            if function == Function::CheckSameShape && ty.extents != other.extents {
                return failed(format!(
                    "({:?}) and tensor `{name}`({:?}) should have the same shape",
                    ty.extents, other.extents
                ));
            }
        }
        Function::CheckStatic if !ty.is_static => return failed(" should be static".into()),
        Function::CheckNotStatic if ty.is_static => return failed(" should not be static".into()),
        _ => {}
    }
    Ok(())
}

fn array_length(records: &Records, entry: Value, length: Value) -> Result<(), Failure> {
    let parameter = &records.parameters[number_of(Record::ParamEntry, entry)?];
    let (expected, found) = (integer(length)?, parameter.length);
    if found as i64 == i64::from(expected) {
        return Ok(());
    }
    let (optype, operator, name) = (&records.optype, &records.operator_name, &parameter.name_text);
    Err(Failure::Check(format!(
        "{optype}: `{operator}`'s `{name}` param needs {expected} elements, but gets {found} elements"
    )))
}

/// A number as messages have it.
fn shown(value: Value) -> String {
    match value {
        Value::Int(number, _) => number.to_string(),
        Value::Single(number) => number.to_string(),
        value => value.number().map_or_else(|| "nothing".into(), |number| number.to_string()),
    }
}

fn holds(relation: Binary, value: Value, limit: Value) -> Result<bool, Failure> {
    match (value, limit) {
        (Value::Int(value, _), Value::Int(limit, _)) => Ok(compare(relation, value, limit).unwrap_or(false)),
        _ => {
            let (value, limit) = (value.number(), limit.number());
            let (Some(value), Some(limit)) = (value, limit) else { return Err("a bound is a number".into()) };
            Ok(compare(relation, value, limit).unwrap_or(false))
        }
    }
}

fn bound(records: &Records, entry: Value, relation: Binary, limit: Value) -> Result<(), Failure> {
    let parameter = &records.parameters[number_of(Record::ParamEntry, entry)?];
    let value = parameter.value(parameter.view);
    if holds(relation, value, limit)? {
        return Ok(());
    }
    let (optype, operator, name) = (&records.optype, &records.operator_name, &parameter.name_text);
    Err(Failure::Check(format!(
        "{optype}: `{operator}`'s `{name}` param's value should be {} {}, but gets a {}",
        mark(relation),
        shown(limit),
        shown(value)
    )))
}

fn bounds(records: &Records, memory: &mut Memory, entry: Value, relation: Binary, limit: Value) -> Result<(), Failure> {
    let parameter = &records.parameters[number_of(Record::ParamEntry, entry)?];
    let Value::Pointer(start) = parameter.value(parameter.view) else { return Err("it isn't an array".into()) };
    for number in 0..parameter.length {
        let place = memory.moved(start, number as i128)?;
        let value = memory.load(place)?;
        if !holds(relation, value, limit)? {
            let (optype, operator, name) = (&records.optype, &records.operator_name, &parameter.name_text);
            return Err(Failure::Check(format!(
                "{optype}: `{operator}`'s `{name}` param[{number}] should be {} {}, but gets {}",
                mark(relation),
                shown(limit),
                shown(value)
            )));
        }
    }
    Ok(())
}
