//! Comparisons, logic, choices, casts and the elementwise leftovers.

use super::arithmetic::{binary, unary};
use super::call::{Call, Operands, Table};
use super::item::Item;
use super::promotion::{common_dtype, operand, promote};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("Tensor.clone", One(|call| call.x())),
    ("Tensor.masked_fill", One(masked_fill)),
    ("Tensor.to", One(to)),
    ("Tensor.type_as", One(type_as)),
    ("aten::addcdiv", One(|call| add_scaled(call, B::Divide))),
    ("aten::addcmul", One(|call| add_scaled(call, B::Multiply))),
    ("aten::exp2", One(|call| function(call, U::Exp2))),
    ("aten::isinf", One(|call| function(call, U::IsInfinite))),
    ("aten::isnan", One(|call| function(call, U::IsNan))),
    ("aten::lerp", One(lerp)),
    ("aten::log2", One(|call| function(call, U::Log2))),
    ("torch.bitwise_and", One(|call| pair(call, B::And))),
    ("torch.bitwise_left_shift", One(|call| pair(call, B::ShiftLeft))),
    ("torch.bitwise_not", One(|call| function(call, U::Not))),
    ("torch.bitwise_or", One(|call| pair(call, B::Or))),
    ("torch.bitwise_right_shift", One(|call| pair(call, B::ShiftRight))),
    ("torch.bitwise_xor", One(|call| pair(call, B::Xor))),
    ("torch.clamp", One(clamp)),
    ("torch.clone", One(|call| call.x())),
    ("torch.eq", One(|call| pair(call, B::Equal))),
    ("torch.ge", One(|call| pair(call, B::GreaterEqual))),
    ("torch.gt", One(|call| pair(call, B::Greater))),
    ("torch.le", One(|call| pair(call, B::LessEqual))),
    ("torch.lgamma", One(|call| function(call, U::LogGamma))),
    ("torch.logical_and", One(|call| logical(call, B::And))),
    ("torch.logical_not", One(logical_not)),
    ("torch.logical_or", One(|call| logical(call, B::Or))),
    ("torch.logical_xor", One(|call| logical(call, B::Xor))),
    ("torch.lt", One(|call| pair(call, B::Less))),
    ("torch.ne", One(|call| pair(call, B::NotEqual))),
    ("torch.positive", One(|call| call.x())),
    ("torch.where", One(select)),
];

/// The tensor of an item that was computed from at least one tensor.
fn tensor(call: &mut Call<'_, '_>, item: &Item) -> Result<Value, Fault> {
    call.as_tensor("`result`", item)
}

fn function(call: &mut Call<'_, '_>, function: U) -> Result<Value, Fault> {
    let x = call.labelled_item("input", 0)?;
    let y = unary(call.builder, function, &x)?;
    tensor(call, &y)
}

/// The second operand: labelled, a parameter, or in second place.
fn other(call: &mut Call<'_, '_>) -> Result<Item, Fault> {
    match call.argument("other") {
        Some(other) => Ok(other),
        None => call.labelled_item("other", 1),
    }
}

fn pair(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let x = Item::Tensor(call.x()?);
    let other = other(call)?;
    let y = binary(call.builder, function, &x, &other)?;
    tensor(call, &y)
}

fn logical(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let x = call.x()?;
    let other = other(call)?;
    let other = call.as_tensor("`other`", &other)?;
    let (x, other) = (call.builder.cast(x, DType::Bool)?, call.builder.cast(other, DType::Bool)?);
    Ok(call.builder.binary(function, x, other)?)
}

fn logical_not(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let x = call.builder.cast(x, DType::Bool)?;
    Ok(call.builder.unary(U::Not, x)?)
}

/// The limits may be numbers or tensors.
fn clamp(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let limits = [call.argument("min"), call.argument("max")];
    let limits = limits.map(|limit| limit.map(|limit| call.host_number(limit)));
    let mut all = vec![Item::Tensor(x)];
    all.extend(limits.iter().flatten().cloned());
    let references: Vec<&Item> = all.iter().collect();
    let dtype = common_dtype(call.builder, &references);
    let dtype = dtype.ok_or_else(|| Fault::parameter("the limits `min` and `max` must be numbers or tensors"))?;
    let x = call.builder.cast(x, dtype)?;
    let numbers = limits.each_ref().map(|limit| limit.as_ref().map(Item::float));
    if let [low, high] = numbers
        && low != Some(None)
        && high != Some(None)
    {
        let low = low.flatten().unwrap_or(f64::NEG_INFINITY);
        return Ok(call.builder.clamp(x, low, high.flatten().unwrap_or(f64::INFINITY))?);
    }
    let mut y = x;
    for (limit, function) in limits.iter().zip([B::Maximum, B::Minimum]) {
        if let Some(limit) = limit {
            let limit = operand(call.builder, limit, dtype)?;
            y = call.builder.binary(function, y, limit)?;
        }
    }
    Ok(y)
}

fn select(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let condition = call.labelled_input("condition", 0)?;
    let condition = call.builder.cast(condition, DType::Bool)?;
    let mut value = |key: &str, position: usize| match call.argument(key) {
        Some(item) => Ok(item),
        None => call.labelled_item(key, position),
    };
    let (x, y) = (value("input", 1)?, value("other", 2)?);
    let values = promote(call.builder, &[&x, &y])?;
    Ok(call.builder.select(condition, values[0], values[1])?)
}

fn masked_fill(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let mask = call.labelled_input("mask", 1)?;
    let mask = call.builder.cast(mask, DType::Bool)?;
    let value = match call.argument("value") {
        Some(value) => value,
        None => call.labelled_item("value", 2)?,
    };
    let dtype = call.builder.dtype(x);
    let value = operand(call.builder, &value, dtype)?;
    let filled = call.builder.select(mask, value, x)?;
    let shape = call.shape(x);
    if call.shape(filled) != shape {
        let (mask, x) = (call.builder.ty(mask), call.builder.ty(x));
        return Err(Fault::operands(format!("the mask {mask} is larger than the tensor {x}")));
    }
    Ok(filled)
}

fn to(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    match call.dtype("dtype")? {
        Some(dtype) => Ok(call.builder.cast(x, dtype)?),
        None => Ok(x),
    }
}

fn type_as(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let other = call.labelled_input("other", 1)?;
    Ok(call.builder.cast(x, call.builder.dtype(other))?)
}

/// input + value * function(tensor1, tensor2)
fn add_scaled(call: &mut Call<'_, '_>, function: B) -> Result<Value, Fault> {
    let x = call.labelled_item("input", 0)?;
    let (first, second) = (call.labelled_item("tensor1", 1)?, call.labelled_item("tensor2", 2)?);
    let scale = call.labelled("value", 3).map(|item| call.host_number(item)).unwrap_or(Item::Int(1));
    let mut term = binary(call.builder, function, &first, &second)?;
    if scale.float() != Some(1.0) {
        term = binary(call.builder, B::Multiply, &term, &scale)?;
    }
    let sum = binary(call.builder, B::Add, &x, &term)?;
    tensor(call, &sum)
}

/// start + weight * (end - start)
fn lerp(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (start, end) = (call.labelled_item("input", 0)?, call.labelled_item("end", 1)?);
    let weight = call.labelled_item("weight", 2)?;
    let difference = binary(call.builder, B::Subtract, &end, &start)?;
    let step = binary(call.builder, B::Multiply, &difference, &weight)?;
    let sum = binary(call.builder, B::Add, &start, &step)?;
    tensor(call, &sum)
}
