//! Operators that look elements up, write them to places, or order them.

use super::call::{Call, Table, Tensors};
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, Operand, check_filled};
use mlc_ir::ops::ScatterReduction;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("DYNAMIC_UPDATE_SLICE", One(update_slice)),
    ("EMBEDDING_LOOKUP", One(embedding)),
    ("GATHER", One(gather)),
    ("GATHER_ND", One(gather_nd)),
    ("ONE_HOT", One(one_hot)),
    ("REVERSE_SEQUENCE", One(reverse_sequence)),
    ("SCATTER_ND", One(scatter_nd)),
    ("TOPK_V2", Many(top)),
];

fn gather(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (data, indices) = (call.input(0)?, call.input(1)?);
    let (axis, batch) = (call.int_or("axis", 0)?, call.int_or("batch_dims", 0)?);
    let axis = call.axis(data, axis)?;
    if batch == 0 {
        return Ok(call.builder.gather(data, indices, axis)?);
    }
    // A number below 0 counts from behind the last axis of the indices.
    let rank = call.rank(indices);
    let batch = usize::try_from(if batch < 0 { batch.saturating_add(rank as i64) } else { batch });
    let batch = batch.ok().filter(|&batch| batch <= axis.min(rank));
    let batch = batch.ok_or_else(|| Fault::parameter(format!("the axis {axis} can't be behind those of the batch")))?;
    // [batch…, axis, outer…, inner…], looked up to [batch…, places…, outer…, inner…].
    let moved = call.builder.move_axis(data, axis, batch)?;
    let tuples = call.builder.insert_axis(indices, rank)?;
    let found = call.builder.gather_nd(moved, tuples, batch)?;
    let (places, outer, end) = (batch..rank, rank..rank + axis - batch, call.rank(found));
    let order: Vec<usize> = (0..batch).chain(outer.clone()).chain(places).chain(outer.end..end).collect();
    Ok(call.builder.transpose(found, &order)?)
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

/// Adds up what has the same place.
fn scatter_nd(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (indices, updates) = (call.input(0)?, call.input(1)?);
    let shape = super::shape::extents(call, 2, "the shape")?;
    let zeros = call.builder.zeros(call.builder.ty(updates).dtype, &shape)?;
    Ok(call.builder.scatter_nd(zeros, indices, updates, ScatterReduction::Sum)?)
}

fn update_slice(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (data, update, start) = (call.input(0)?, call.input(1)?, call.input(2)?);
    call.check_same_scale(&[0, 1])?;
    Ok(call.builder.update_slice(data, update, start)?)
}

fn reverse_sequence(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, lengths) = (call.input(0)?, call.input(1)?);
    let (time, batch) = (call.int_or("seq_dim", 0)?, call.int_or("batch_dim", 0)?);
    let (time, batch) = (call.axis(x, time)?, call.axis(x, batch)?);
    Ok(call.builder.reverse_sequence(x, lengths, time, batch)?)
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
