//! Operators that look elements up, or order them.

use super::call::{Call, Table, Tensors};
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, Operand, check_filled};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("EMBEDDING_LOOKUP", One(embedding)),
    ("GATHER", One(gather)),
    ("GATHER_ND", One(gather_nd)),
    ("ONE_HOT", One(one_hot)),
    ("TOPK_V2", Many(top)),
];

fn gather(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (data, indices) = (call.input(0)?, call.input(1)?);
    let (axis, batch) = (call.int_or("axis", 0)?, call.int_or("batch_dims", 0)?);
    let axis = call.axis(data, axis)?;
    if batch != 0 {
        return Err(Fault::variant("a lookup with axes of a batch isn't supported"));
    }
    Ok(call.builder.gather(data, indices, axis)?)
}

/// The table may be stored as integers though the result is real.
fn embedding(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let indices = call.input(0)?;
    let table = if call.result_dtype(0)?.is_float() { call.real(1)? } else { call.input(1)? };
    Ok(call.builder.gather(table, indices, 0)?)
}

fn gather_nd(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (data, indices) = (call.input(0)?, call.input(1)?);
    Ok(call.builder.gather_nd(data, indices, 0)?)
}

fn one_hot(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (indices, on, off) = (call.input(0)?, call.input(2)?, call.input(3)?);
    let depth = call.numbers(1, "the depth")?;
    let depth = mlc_import::extents(&depth)?.first().copied().unwrap_or(0);
    let rank = call.rank(indices) as i64;
    let axis = call.int_or("axis", 0)?;
    let place = if axis < 0 { axis + rank + 1 } else { axis };
    if !(0..=rank).contains(&place) {
        return Err(Fault::parameter(format!("{} can't get an axis {axis}", call.builder.ty(indices))));
    }
    let shape: Vec<usize> = call.shape(indices).iter().copied().chain([depth]).collect();
    check_filled(&shape)?;
    let hit = call.builder.one_hot(indices, depth, place as usize, false)?;
    Ok(call.builder.select(hit, on, off)?)
}

fn top(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let x = call.input(0)?;
    let count = mlc_import::extents(&call.numbers(1, "the number of elements")?)?;
    let count = count.first().copied().unwrap_or(0);
    let axis = call.axis(x, -1)?;
    let [values, places] = call.builder.sort(x, axis, count, true)?;
    let places = call.builder.cast(places, DType::I32)?;
    Ok(vec![Operand::Tensor(values), Operand::Tensor(places)])
}
