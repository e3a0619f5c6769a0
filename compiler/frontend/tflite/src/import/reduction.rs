//! Reductions over axes.

use super::call::{Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::fixed_point::Factor;
use mlc_import::builder::{FixedPoint, Stored};
use mlc_ir::ops::{ArgFunction, ArgReduce, Cumulative, CumulativeFunction, ReduceFunction};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::scalar::Rounding;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("ARG_MAX", One(|call| extreme_place(call, ArgFunction::Maximum))),
    ("ARG_MIN", One(|call| extreme_place(call, ArgFunction::Minimum))),
    ("CUMSUM", One(cumulative)),
    ("MEAN", One(mean)),
    ("REDUCE_ALL", One(|call| plain(call, ReduceFunction::All))),
    ("REDUCE_ANY", One(|call| plain(call, ReduceFunction::Any))),
    ("REDUCE_MAX", One(|call| plain(call, ReduceFunction::Maximum))),
    ("REDUCE_MIN", One(|call| plain(call, ReduceFunction::Minimum))),
    ("REDUCE_PROD", One(|call| plain(call, ReduceFunction::Product))),
    ("SUM", One(sum)),
];

/// The axes that the second operand names, ascending, and whether they stay.
fn axes(call: &mut Call<'_, '_>, x: Value) -> Result<(Vec<usize>, bool), Fault> {
    let mut named = call.numbers(1, "the axes")?;
    let rank = call.rank(x) as i64;
    for axis in &mut named {
        *axis = if *axis < 0 { axis.saturating_add(rank) } else { *axis };
    }
    named.sort_unstable();
    named.dedup();
    Ok((call.axes(x, &named)?, call.flag_or("keep_dims", false)?))
}

fn plain(call: &mut Call<'_, '_>, function: ReduceFunction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (axes, keep) = axes(call, x)?;
    if call.is_quantized() && function == ReduceFunction::Product {
        return Err(Fault::variant("the product of quantised elements isn't supported"));
    }
    call.check_same_scale(&[0])?;
    Ok(call.builder.reduce(function, x, &axes, keep)?)
}

/// The sum of an operand's integers without their zero points, and how many there are.
fn integer_sum(call: &mut Call<'_, '_>, x: Value, axes: &[usize], keep: bool) -> Result<(Value, i64), Fault> {
    let zero_point = call.operand_affine(0)?.zero_point;
    let shape = call.shape(x);
    let count = axes.iter().try_fold(1usize, |product, &axis| product.checked_mul(shape[axis]));
    let count = count.and_then(|count| i64::try_from(count).ok()).filter(|&count| count < 1 << 31);
    let count = count.ok_or_else(|| Fault::operands(format!("{} has too many elements", call.builder.ty(x))))?;
    let wide = if call.dtype_of(x).size() > 1 || count > 1 << 23 { DType::I64 } else { DType::I32 };
    let x = call.builder.cast(x, wide)?;
    let sum = call.builder.reduce(ReduceFunction::Sum, x, axes, keep)?;
    let offset = call.builder.number(wide, (count * zero_point) as f64);
    Ok((call.builder.binary(B::Subtract, sum, offset)?, count))
}

fn sum(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (axes, keep) = axes(call, x)?;
    if !call.is_quantized() {
        return Ok(call.builder.reduce(ReduceFunction::Sum, x, &axes, keep)?);
    }
    let factor = f64::from(call.operand_affine(0)?.scale) / f64::from(call.result_affine(0)?.scale);
    let stored = call.stored()?;
    let (sum, _) = integer_sum(call, x, &axes, keep)?;
    call.builder.rescale(sum, &FixedPoint::of(&[factor])?, Rounding::Twice, stored)
}

/// The division by the number of elements is part of the factor.
fn mean(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (axes, keep) = axes(call, x)?;
    if !call.is_quantized() {
        return Ok(call.builder.reduce(ReduceFunction::Mean, x, &axes, keep)?);
    }
    let (own, result) = (call.operand_affine(0)?, call.result_affine(0)?);
    let factor = Factor::of(f64::from(own.scale) / f64::from(result.scale))?;
    let stored: Stored = call.stored()?;
    let (sum, count) = integer_sum(call, x, &axes, keep)?;
    if count == 0 {
        return Err(Fault::operands("the mean of no elements isn't defined"));
    }
    let exponent = factor.exponent();
    let bits = i64::from(count.ilog2()).min(32).min(31 + exponent);
    // Both are of 63 bits at most: the number has 31, and the shift is no more than 32.
    let number = (factor.number << bits) / count;
    call.builder.rescale(sum, &FixedPoint::of_parts(number, exponent - bits)?, Rounding::Twice, stored)
}

fn extreme_place(call: &mut Call<'_, '_>, function: ArgFunction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let numbers = call.numbers(1, "the axis")?;
    let axis = call.axis(x, *numbers.first().ok_or_else(|| Fault::operands("there is no axis"))?)?;
    let place = call.builder.apply(ArgReduce { function, axis, keep_axis: false, last: false }, &[x])?;
    let dtype = call.result_dtype(0)?;
    Ok(call.builder.cast(place, dtype)?)
}

fn cumulative(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let numbers = call.numbers(1, "the axis")?;
    let axis = call.axis(x, *numbers.first().ok_or_else(|| Fault::operands("there is no axis"))?)?;
    let (exclusive, reverse) = (call.flag_or("exclusive", false)?, call.flag_or("reverse", false)?);
    if call.is_quantized() {
        return Err(Fault::variant("running sums of quantised elements aren't supported"));
    }
    Ok(call.builder.apply(Cumulative { function: CumulativeFunction::Sum, axis, exclusive, reverse }, &[x])?)
}
