//! Constants, shapes as values, sequences: operators that compute nothing while the model runs.

use super::call::{Call, Item, Table, TensorAttributes};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("Constant", 1, One(constant)),
    ("Identity", 1, Many(identity)),
    ("Optional", 15, Many(optional)),
    ("OptionalGetElement", 15, Many(optional_element)),
    ("OptionalHasElement", 15, One(has_element)),
    ("SequenceAt", 11, One(sequence_at)),
    ("SequenceConstruct", 11, Many(sequence_construct)),
    ("SequenceEmpty", 11, Many(sequence_empty)),
    ("SequenceInsert", 11, Many(sequence_insert)),
    ("SequenceLength", 11, One(sequence_length)),
    ("Shape", 1, One(shape)),
    ("Size", 1, One(size)),
];

fn constant(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let attribute = match (call.tensor("value")?, call.sparse_tensor("sparse_value")?) {
        (Some(attribute), _) | (None, Some(attribute)) => attribute,
        (None, None) => plain_constant(call)?,
    };
    let value = call.builder.constant("value", attribute);
    let bits = call.packed_bits_of_attribute("value")?;
    call.note_packed_bits(value, bits);
    Ok(value)
}

/// The forms that hold numbers instead of a tensor.
fn plain_constant(call: &mut Call<'_, '_>) -> Result<Attribute, Fault> {
    let floats = |shape: &[usize], values: &[f64]| {
        let values = values.to_vec();
        Attribute::from_tensor(&Tensor::from_floats(TensorType::new(DType::F32, shape), values))
    };
    let ints = |shape: &[usize], values: &[i64]| {
        let values = values.to_vec();
        Attribute::from_tensor(&Tensor::from_integers(TensorType::new(DType::I64, shape), values))
    };
    if let Some(value) = call.float("value_float")? {
        return Ok(floats(&[], &[value]));
    }
    if let Some(values) = call.floats("value_floats")? {
        return Ok(floats(&[values.len()], &values));
    }
    if let Some(value) = call.int("value_int")? {
        return Ok(ints(&[], &[value]));
    }
    if let Some(values) = call.ints("value_ints")? {
        return Ok(ints(&[values.len()], &values));
    }
    if call.has("value_string") || call.has("value_strings") {
        return Err(Fault::variant("the constant is a string, which isn't supported"));
    }
    Err(Fault::new(mlc_ir::Code::ParameterMissing, "the constant has no value"))
}

fn identity(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    Ok(vec![call.item(0)])
}

/// What may be absent is what it is, or nothing.
fn optional(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    call.ignore(&["type"]);
    Ok(vec![call.item(0)])
}

fn optional_element(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    match call.item(0) {
        Item::Absent => Err(Fault::operands("the optional value is absent, it has no element")),
        item => Ok(vec![item]),
    }
}

fn has_element(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let found = call.item(0) != Item::Absent;
    let found = Tensor::from_integers(TensorType::new(DType::Bool, []), vec![i64::from(found)]);
    Ok(call.builder.constant("found", Attribute::from_tensor(&found)))
}

/// The extents from `start` to `end`; both count from the end when negative, and are clamped.
fn shape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let extents = call.shape(x);
    let rank = extents.len() as i64;
    let place = |number: i64| (if number < 0 { number.saturating_add(rank) } else { number }).clamp(0, rank) as usize;
    let (start, end) = (place(call.int_or("start", 0)?), place(call.int_or("end", rank)?));
    let extents: Vec<i64> = extents[start.min(end)..end].iter().map(|&extent| extent as i64).collect();
    call.constant_of_ints(&[extents.len()], &extents)
}

fn size(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let elements = call.builder.ty(x).elements() as i64;
    call.constant_of_ints(&[], &[elements])
}

pub(super) fn sequence(call: &mut Call<'_, '_>, index: usize) -> Result<Vec<Value>, Fault> {
    match call.item(index) {
        Item::Sequence(values) => Ok(values),
        _ => Err(Fault::operands(format!("operand {index} must be a sequence"))),
    }
}

/// The place in a sequence that a number means; `extra` more places than there are tensors count.
fn place(number: i64, length: usize, extra: usize) -> Result<usize, Fault> {
    let found = if number < 0 { number.checked_add(length as i64) } else { Some(number) };
    let found = found.and_then(|number| usize::try_from(number).ok()).filter(|&number| number < length + extra);
    found.ok_or_else(|| Fault::operands(format!("a sequence of {length} tensors has no place {number}")))
}

fn sequence_at(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let values = sequence(call, 0)?;
    let number = call.constant_int(1, "position")?.unwrap_or(0);
    Ok(values[place(number, values.len(), 0)?])
}

fn sequence_construct(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    Ok(vec![Item::Sequence(call.all_inputs()?)])
}

fn sequence_empty(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    call.ignore(&["dtype"]);
    Ok(vec![Item::Sequence(Vec::new())])
}

fn sequence_insert(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let (mut values, value) = (sequence(call, 0)?, call.input(1)?);
    let number = call.constant_int(2, "position")?.unwrap_or(values.len() as i64);
    values.insert(place(number, values.len(), 1)?, value);
    Ok(vec![Item::Sequence(values)])
}

fn sequence_length(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let length = sequence(call, 0)?.len() as i64;
    call.constant_of_ints(&[], &[length])
}
