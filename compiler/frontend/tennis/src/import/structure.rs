//! Constants, copies, packed values, conversions: operators that compute nothing.

use super::call::{Call, Parameters, Table};
use super::format::unsupported;
use super::item::Item;
use crate::tensor::{Field, Tensor};
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, MOST_ELEMENTS, check_filled};
use mlc_ir::{Attribute, DType, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("<const>", Many(constant)),
    ("_cast", One(cast)),
    ("_copy", Many(copy)),
    ("_dims", One(dims)),
    ("_enter", Many(copy)),
    ("_field", Many(field)),
    ("_pack", Many(pack)),
    ("_shape", One(shape)),
    ("constant_of_shape", One(constant_of_shape)),
    ("identity", Many(copy)),
    ("range", One(range)),
    ("to_float", One(to_float)),
];

/// A tensor of the file; its bytes are shared.
fn attribute(field: &Field) -> Result<Attribute, Fault> {
    let dtype = field.element_type.dtype().ok_or_else(|| unsupported(field.element_type))?;
    Ok(Attribute::new(TensorType::new(dtype, &field.shape[..]), field.normalized_data())?)
}

fn constant(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    // A hint where the constant was to lie.
    call.ignore(&["device"]);
    let tensor = call.attribute("value");
    let tensor: &Tensor = call.required("value", tensor)?;
    let name = call.site.name.clone();
    let mut values = Vec::new();
    for field in &tensor.fields {
        let attribute = attribute(field)?;
        values.push(call.builder.named_constant(&name, attribute));
    }
    Ok(vec![match values[..] {
        [value] => Item::Tensor(value),
        _ => Item::packed(values),
    }])
}

fn copy(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    Ok(vec![call.item(0)])
}

fn pack(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    Ok(vec![Item::packed(call.all_inputs()?)])
}

fn field(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let values = call.packed(0)?;
    let offset = call.required_int("offset")?;
    let value = usize::try_from(offset).ok().and_then(|offset| values.get(offset));
    let value = value.ok_or_else(|| {
        Fault::parameter(format!("parameter `offset` is {offset}, the packed value has {} fields", values.len()))
    })?;
    Ok(vec![Item::Tensor(*value)])
}

fn cast(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dtype = call.dtype("dtype")?;
    let dtype = call.required("dtype", dtype)?;
    Ok(call.builder.cast(x, dtype)?)
}

fn to_float(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    Ok(call.builder.cast(x, DType::F32)?)
}

fn shape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let extents: Vec<i64> = call.shape(x).iter().map(|&extent| extent as i64).collect();
    Ok(call.constant_of_ints(&[extents.len()], &extents))
}

fn dims(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let rank = call.rank(x) as i64;
    Ok(call.constant_of_ints(&[], &[rank]))
}

/// A tensor whose extents are the operand's numbers.
fn constant_of_shape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (_, extents) = call.whole_numbers(0, "the shape")?;
    let extents = mlc_import::extents(&extents)?;
    check_filled(&extents)?;
    let value = match call.field("value")? {
        Some(field) => {
            let attribute = attribute(field)?;
            let scalar = attribute.splat().filter(|_| attribute.ty().elements() == 1);
            let scalar = scalar.ok_or_else(|| Fault::parameter("parameter `value` must be one number"))?;
            call.builder.literal(scalar)
        }
        None => call.builder.number(DType::F32, 0.0),
    };
    Ok(call.builder.broadcast(value, &extents)?)
}

/// start, start + delta, … before limit; of the start's data type.
fn range(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let start = call.input(0)?;
    let dtype = call.dtype_of(start);
    let mut number = |index, what| -> Result<f64, Fault> {
        let number = call.constant_float(index, what)?;
        number.ok_or_else(|| Fault::new(mlc_ir::Code::OperandCount, format!("operand {index} ({what}) is missing")))
    };
    let (start, limit, delta) = (number(0, "the start")?, number(1, "the limit")?, number(2, "the step")?);
    let count = ((limit - start) / delta).ceil().max(0.0);
    if delta == 0.0 || !count.is_finite() || count > (MOST_ELEMENTS / 8) as f64 {
        return Err(Fault::operands(format!("a range from {start} to {limit} by {delta} has no length that fits")));
    }
    let values: Vec<f64> = (0..count as usize).map(|index| start + index as f64 * delta).collect();
    let ty = TensorType::new(dtype, [values.len()]);
    let tensor = match dtype.is_float() {
        true => mlc_ir::Tensor::from_floats(ty, values),
        false => mlc_ir::Tensor::from_integers(ty, values.into_iter().map(|value| value as i64).collect()),
    };
    Ok(call.builder.constant("value", Attribute::from_tensor(&tensor)))
}
