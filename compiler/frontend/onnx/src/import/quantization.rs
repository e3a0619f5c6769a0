//! Quantisation: integers that stand for real numbers, `real = scale * (integer - zero_point)`.

use super::call::{Call, Item, Table, TensorAttributes};
use crate::tensor;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::builder::{DynamicallyQuantized, QuantizedType};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("DequantizeLinear", 10, One(dequantize_linear)),
    ("DynamicQuantizeLinear", 11, Many(dynamic_quantize_linear)),
    ("QuantizeLinear", 10, One(quantize_linear)),
];

/// The same operators in onnxruntime's own set.
pub(super) const MICROSOFT_OPERATORS: Table =
    &[("DequantizeLinear", 1, One(dequantize_linear)), ("QuantizeLinear", 1, One(quantize_linear))];

/// The type that a zero point has; bytes without a sign when there is none.
pub(super) fn type_of(call: &Call<'_, '_>, zero_point: Option<Value>) -> QuantizedType {
    match zero_point {
        Some(value) => QuantizedType { dtype: call.dtype_of(value), bits: call.packed_bits(value) },
        None => DType::U8.into(),
    }
}

/// `saturate(round(x) + zero_point)` of 16 bits at most, whose bits are noted.
pub(super) fn saturated(
    call: &mut Call<'_, '_>,
    x: Value,
    zero_point: Option<Value>,
    ty: QuantizedType,
) -> Result<Value, Fault> {
    if ty.dtype.size() > 2 {
        return Err(Fault::operands(format!("numbers can't be quantised to {}", ty.dtype)));
    }
    let y = call.builder.round_to_integers(x, zero_point, ty)?;
    call.note_packed_bits(y, ty.bits);
    Ok(y)
}

/// `saturate(round(x / scale) + zero_point)`, halves to even; all broadcast. The quotient has the data type of both.
fn quantized(
    call: &mut Call<'_, '_>,
    x: Value,
    scale: Value,
    zero_point: Option<Value>,
    ty: QuantizedType,
) -> Result<Value, Fault> {
    let quotient = call.builder.binary(B::Divide, x, scale)?;
    saturated(call, quotient, zero_point, ty)
}

/// A scale or a zero point so that it broadcasts to the tensor: one number, one for each index of the axis, or one for each
/// block of the axis.
fn aligned(call: &mut Call<'_, '_>, parameter: Value, x: Value, axis: i64, block: usize) -> Result<Value, Fault> {
    let (extents, shape) = (call.shape(parameter), call.shape(x));
    let unfit = |call: &Call<'_, '_>| {
        let (parameter, x) = (call.builder.ty(parameter), call.builder.ty(x));
        Fault::operands(format!("scales or zero points {parameter} don't fit {x} along axis {axis}"))
    };
    if block == 0 && extents.iter().product::<usize>() == 1 && extents.len() <= 1 {
        return Ok(call.builder.reshape(parameter, &[])?);
    }
    let axis = call.axis(x, axis)?;
    if block == 0 {
        return if extents[..] == [shape[axis]] {
            call.builder.along_axis(parameter, x, axis)
        } else {
            Err(unfit(call))
        };
    }
    let fits = |other: usize| if other == axis { shape[axis].div_ceil(block) } else { shape[other] };
    if extents.len() != shape.len() || (0..shape.len()).any(|other| extents[other] != fits(other)) {
        return Err(unfit(call));
    }
    let repeated = call.builder.repeat_elements(parameter, axis, block)?;
    Ok(call.builder.slice_axis(repeated, axis, 0, shape[axis], 1)?)
}

/// Scale and zero point of the second and third operand, so that they broadcast to the tensor.
fn parameters(call: &mut Call<'_, '_>, x: Value) -> Result<(Value, Option<Value>), Fault> {
    let (scale, zero_point) = (call.input(1)?, call.optional(2)?);
    let (axis, block) = (call.int_or("axis", 1)?, call.int_or("block_size", 0)?);
    let block = usize::try_from(block).map_err(|_| Fault::parameter(format!("blocks of {block} elements")))?;
    let scale = aligned(call, scale, x, axis, block)?;
    let zero_point = match zero_point {
        Some(zero_point) => Some(aligned(call, zero_point, x, axis, block)?),
        None => None,
    };
    Ok((scale, zero_point))
}

/// A data type by its number in the standard; 0 stands for none.
fn dtype_attribute(call: &mut Call<'_, '_>, key: &'static str) -> Result<Option<QuantizedType>, Fault> {
    let Some(number) = call.int(key)?.filter(|&number| number != 0) else { return Ok(None) };
    Ok(Some(QuantizedType { dtype: tensor::dtype_of(number)?, bits: tensor::packed_bits(number)? }))
}

fn quantize_linear(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, given) = (call.input(0)?, call.optional(2)?);
    // It matters for floats of 8 bits only, which are refused.
    call.ignore(&["saturate"]);
    let of_zero_point = type_of(call, given);
    let ty = match dtype_attribute(call, "output_dtype")? {
        Some(ty) if given.is_some() && ty != of_zero_point => {
            let message =
                format!("the zero point is {}, but attribute `output_dtype` says {}", of_zero_point.dtype, ty.dtype);
            return Err(Fault::parameter(message));
        }
        Some(ty) => ty,
        None => of_zero_point,
    };
    let (scale, zero_point) = parameters(call, x)?;
    let precision = dtype_attribute(call, "precision")?.map_or(call.dtype_of(scale), |precision| precision.dtype);
    if !precision.is_float() {
        return Err(Fault::operands(format!("the scale {} isn't a float", call.builder.ty(scale))));
    }
    let (x, scale) = (call.builder.cast(x, precision)?, call.builder.cast(scale, precision)?);
    quantized(call, x, scale, zero_point, ty)
}

fn dequantize_linear(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (scale, zero_point) = parameters(call, x)?;
    let dtype = dtype_attribute(call, "output_dtype")?.map_or(call.dtype_of(scale), |ty| ty.dtype);
    if !dtype.is_float() {
        return Err(Fault::parameter(format!("attribute `output_dtype` says {dtype}, which isn't a float")));
    }
    call.builder.dequantize(x, scale, zero_point, dtype)
}

/// Quantises to bytes with the scale and the zero point that the extremes of the tensor give.
fn dynamic_quantize_linear(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let DynamicallyQuantized { integers, scale, zero_point } = call.builder.quantize_dynamically(x)?;
    Ok([integers, scale, zero_point].map(Item::Tensor).to_vec())
}
