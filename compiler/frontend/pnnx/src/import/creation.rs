//! Tensors made of numbers, and what masks or fills them.

use super::call::{Call, Operands, Table};
use super::item::Item;
use super::positional::int_at;
use super::promotion::operand;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::{Attribute, Code, DType, Literal, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("Tensor.fill", One(fill)),
    ("Tensor.new_full", One(|call| sized(call, None))),
    ("Tensor.new_ones", One(|call| sized(call, Some(1)))),
    ("Tensor.new_zeros", One(|call| sized(call, Some(0)))),
    ("aten::one_hot", One(one_hot)),
    ("aten::tril", One(|call| triangle(call, true))),
    ("aten::triu", One(|call| triangle(call, false))),
    ("torch.arange", One(arange)),
    ("torch.full", One(|call| sized(call, None))),
    ("torch.full_like", One(|call| like(call, None))),
    ("torch.ones", One(|call| sized(call, Some(1)))),
    ("torch.ones_like", One(|call| like(call, Some(1)))),
    ("torch.zeros", One(|call| sized(call, Some(0)))),
    ("torch.zeros_like", One(|call| like(call, Some(0)))),
];

/// The number to fill with: a given one, or a parameter.
fn fill_value(call: &mut Call<'_, '_>, given: Option<i64>) -> Result<Item, Fault> {
    if let Some(value) = given {
        return Ok(Item::Int(value));
    }
    let value = call.argument("fill_value");
    let value = call.required("fill_value", value)?;
    Ok(call.host_number(value))
}

/// The data type that a number has by itself.
fn own_dtype(item: &Item) -> DType {
    match item {
        Item::Int(_) => DType::I64,
        Item::Bool(_) => DType::Bool,
        _ => DType::F32,
    }
}

/// A tensor of one number, of a size in the parameters.
fn sized(call: &mut Call<'_, '_>, given: Option<i64>) -> Result<Value, Fault> {
    let value = fill_value(call, given)?;
    let of_tensor = call.site.operator.kind.starts_with("Tensor.");
    let default = if of_tensor {
        let x = call.x()?;
        call.builder.dtype(x)
    } else if given.is_some() {
        DType::F32
    } else {
        own_dtype(&value)
    };
    let dtype = call.dtype("dtype")?.unwrap_or(default);
    let size = match call.ints("size")? {
        Some(size) => size,
        None => match call.labelled("size", usize::from(of_tensor)) {
            Some(item) => item.ints().ok_or_else(|| Fault::parameter("`size` must be whole numbers"))?,
            None => Vec::new(),
        },
    };
    let shape: Option<Vec<usize>> = size.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let shape = shape.ok_or_else(|| Fault::parameter(format!("there is no tensor of size {size:?}")))?;
    filled(call, &value, dtype, &shape)
}

/// A tensor of one number, of the shape of another tensor.
fn like(call: &mut Call<'_, '_>, given: Option<i64>) -> Result<Value, Fault> {
    let x = call.x()?;
    let value = fill_value(call, given)?;
    let dtype = call.dtype("dtype")?.unwrap_or(call.builder.dtype(x));
    let shape = call.shape(x);
    filled(call, &value, dtype, &shape)
}

fn filled(call: &mut Call<'_, '_>, value: &Item, dtype: DType, shape: &[usize]) -> Result<Value, Fault> {
    let value = operand(call.builder, value, dtype)?;
    let value = call.builder.reshape(value, &[])?;
    Ok(call.builder.broadcast(value, shape)?)
}

fn fill(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let value = match call.argument("value") {
        Some(value) => value,
        None => call.labelled_item("value", 1)?,
    };
    let (dtype, shape) = (call.builder.dtype(x), call.shape(x));
    filled(call, &value, dtype, &shape)
}

fn arange(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let mut number = |key: &str, position: Option<usize>| -> Result<Option<Item>, Fault> {
        let item = call.argument(key).or_else(|| position.and_then(|position| call.labelled(key, position)));
        match item.map(|item| call.host_number(item)) {
            None => Ok(None),
            Some(item) if item.float().is_some() => Ok(Some(item)),
            Some(Item::Tensor(_)) => {
                let message = format!("`{key}` depends on the data, so no static memory plan exists");
                Err(Fault::new(Code::DataDependentShape, message))
            }
            Some(item) => Err(Fault::parameter(format!("`{key}` must be a number, found {}", item.description()))),
        }
    };
    let (start, end, step) = (number("start", None)?, number("end", Some(0))?, number("step", None)?);
    let end = call.required("end", end)?;
    let (start, step) = (start.unwrap_or(Item::Int(0)), step.unwrap_or(Item::Int(1)));
    let whole = [&start, &end, &step].iter().all(|item| matches!(item, Item::Int(_)));
    let dtype = call.dtype("dtype")?.unwrap_or(if whole { DType::I64 } else { DType::F32 });
    let [start, end, step] = [&start, &end, &step].map(|item| item.float().unwrap_or(0.0));
    let count = ((end - start) / step).ceil();
    if !(0.0..=f64::from(1 << 26)).contains(&count) {
        return Err(Fault::parameter(format!("there is no range from {start} to {end} by {step}")));
    }
    let values: Vec<f64> = (0..count as usize).map(|index| start + index as f64 * step).collect();
    let ty = TensorType::new(dtype, [values.len()]);
    let tensor = if dtype.is_float() {
        Tensor::from_floats(ty, values)
    } else {
        Tensor::from_integers(ty, values.into_iter().map(|value| value as i64).collect())
    };
    Ok(call.builder.constant("range", Attribute::from_tensor(&tensor)))
}

/// `aten::tril (x, diagonal)` and `aten::triu`: zeros above, or below, a diagonal.
fn triangle(call: &mut Call<'_, '_>, lower: bool) -> Result<Value, Fault> {
    let x = call.x()?;
    let diagonal = int_at(call, "diagonal", 1)?.unwrap_or(0);
    let diagonal = call.builder.literal(Literal::integer(DType::I64, diagonal));
    Ok(call.builder.triangle(x, diagonal, lower)?)
}

/// `aten::one_hot (x, n)`: 1 at the element's own index along a new last axis.
fn one_hot(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let count = call.labelled("num_classes", 1).and_then(|item| item.int());
    let count = count.and_then(|count| usize::try_from(count).ok()).filter(|&count| count > 0 && count < 1 << 26);
    let count = count.ok_or_else(|| {
        let message = "the number of classes depends on the data, so no static memory plan exists";
        Fault::new(Code::DataDependentShape, message).with_help("give `num_classes` in the source model")
    })?;
    let hot = call.builder.one_hot(x, count, call.builder.rank(x), false)?;
    Ok(call.builder.cast(hot, DType::I64)?)
}
