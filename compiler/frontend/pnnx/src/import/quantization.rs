//! Fake quantisation: real numbers rounded to those that integers stand for, as models are trained and exported that are to compute with
//! integers. What such a graph quantises becomes integer kernels by the optimiser's rules, as pairs of ONNX's operators do.

use super::call::{Call, Operands, Table};
use super::item::Item;
use super::positional::int_at;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::QuantizedType;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("aten::fake_quantize_per_channel_affine", One(per_channel)),
    ("aten::fake_quantize_per_tensor_affine", One(per_tensor)),
];

/// What integers are stored as, those of fewest bytes first.
const STORED: [DType; 4] = [DType::I8, DType::U8, DType::I16, DType::U16];

/// `aten::fake_quantize_per_tensor_affine (x, scale, zero_point, quant_min, quant_max)`, scale and zero point numbers or tensors of one element.
fn per_tensor(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let scale = one(call, "scale", 1, DType::F32)?;
    let zero_point = one(call, "zero_point", 2, DType::I32)?;
    fake_quantize(call, x, scale, zero_point, 3)
}

/// `aten::fake_quantize_per_channel_affine (x, scale, zero_point, axis, quant_min, quant_max)`, with a scale and a zero point for each index of the
/// axis.
fn per_channel(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = int_at(call, "axis", 3)?;
    let axis = call.axis(x, call.required("axis", axis)?)?;
    let [scale, zero_point] = [("scale", 1), ("zero_point", 2)].map(|(key, place)| {
        let parameter = call.labelled_input(key, place)?;
        call.builder.along_axis(parameter, x, axis)
    });
    fake_quantize(call, x, scale?, zero_point?, 4)
}

/// A number among the operands, or a tensor of one.
fn one(call: &mut Call<'_, '_>, key: &str, place: usize, dtype: DType) -> Result<Value, Fault> {
    match call.labelled_item(key, place)? {
        Item::Tensor(value) if call.builder.ty(value).elements() == 1 => Ok(call.builder.reshape(value, &[])?),
        item => match item.float() {
            Some(number) => Ok(call.builder.number(dtype, number)),
            None => {
                let found = item.description();
                Err(Fault::operands(format!("operand `{key}` must be a number or a tensor of one, found {found}")))
            }
        },
    }
}

/// `(clamp(round(x / scale) + zero_point, minimum, maximum) - zero_point) * scale`; the limits are operands from a place on.
fn fake_quantize(
    call: &mut Call<'_, '_>,
    x: Value,
    scale: Value,
    zero_point: Value,
    place: usize,
) -> Result<Value, Fault> {
    let [low, high] = [("quant_min", place), ("quant_max", place + 1)].map(|(key, place)| {
        let number = int_at(call, key, place)?;
        call.required(key, number)
    });
    let (low, high, dtype) = (low? as f64, high? as f64, call.builder.dtype(x));
    let holds = |ty: &&DType| {
        let (least, most) = ty.integer_range(8 * ty.size());
        least <= low && low < high && high <= most
    };
    let stored = STORED.iter().find(holds).copied();
    let stored = stored.ok_or_else(|| {
        Fault::operands(format!("numbers from {low} to {high} aren't integers of 8 or 16 bits in ascending order"))
    })?;
    let builder = &mut *call.builder;
    let (x, scale, zero_point) =
        (builder.cast(x, DType::F32)?, builder.cast(scale, DType::F32)?, builder.cast(zero_point, DType::I32)?);
    let mut integers = builder.quantize(x, scale, Some(zero_point), QuantizedType::from(stored))?;
    let (least, most) = stored.integer_range(8 * stored.size());
    if least < low {
        integers = builder.binary_number(BinaryFunction::Maximum, integers, low)?;
    }
    if high < most {
        integers = builder.binary_number(BinaryFunction::Minimum, integers, high)?;
    }
    let zero_point = builder.cast(zero_point, stored)?;
    let real = builder.dequantize(integers, scale, Some(zero_point), DType::F32)?;
    Ok(builder.cast(real, dtype)?)
}
