//! Operators that look elements up, write them to places, or order them.

use super::call::{Call, Table, Tensors};
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, Operand, check_filled};
use mlc_ir::ops::ScatterReduction;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("DYNAMIC_UPDATE_SLICE", One(update_slice)),
    ("EMBEDDING_LOOKUP", One(embedding)),
    ("GATHER", One(gather)),
    ("GATHER_ND", One(gather_nd)),
    ("ONE_HOT", One(one_hot)),
    ("REVERSE_SEQUENCE", One(reverse_sequence)),
    ("SCATTER_ND", One(scatter_nd)),
    ("SEGMENT_SUM", One(segment_sum)),
    ("SPARSE_TO_DENSE", One(sparse_to_dense)),
    ("TOPK_V2", Many(top)),
    ("UNSORTED_SEGMENT_MAX", One(|call| segments(call, ScatterReduction::Maximum))),
    ("UNSORTED_SEGMENT_MIN", One(|call| segments(call, ScatterReduction::Minimum))),
    ("UNSORTED_SEGMENT_PROD", One(|call| segments(call, ScatterReduction::Product))),
    ("UNSORTED_SEGMENT_SUM", One(|call| segments(call, ScatterReduction::Sum))),
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

/// Sums of rows, each of which belongs to a segment; how many there are, the last number says.
fn segment_sum(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let count = call.numbers(1, "the segments")?.into_iter().max().map_or(0, |most| most.saturating_add(1));
    let count = mlc_import::extents(&[count])?[0];
    into_segments(call, count, ScatterReduction::Sum)
}

fn segments(call: &mut Call<'_, '_>, reduction: ScatterReduction) -> Result<Value, Fault> {
    let count = super::shape::extents(call, 2, "the number of segments")?;
    let &[count] = &count[..] else { return Err(Fault::operands("one number of segments is expected")) };
    into_segments(call, count, reduction)
}

/// Combines slices of what has been read, operand 0, that belong to the same of so many segments, which operand 1 says for its leading axes.
/// Those of none are left out.
fn into_segments(call: &mut Call<'_, '_>, count: usize, reduction: ScatterReduction) -> Result<Value, Fault> {
    let (data, segments) = (call.input(0)?, call.input(1)?);
    let (dtype, shape, places) = (call.dtype_of(data), call.shape(data), call.shape(segments));
    if !shape.starts_with(&places) {
        let types = [data, segments].map(|value| call.builder.ty(value).to_string());
        return Err(Fault::operands(format!("segments {} aren't the leading axes of {}", types[1], types[0])));
    }
    // Behind the segments there is one for what belongs to none.
    let shape: Vec<usize> = std::iter::once(count + 1).chain(shape[places.len()..].iter().copied()).collect();
    check_filled(&shape)?;
    let neutral = match (reduction, dtype) {
        (ScatterReduction::Maximum, DType::F32) => f32::MIN.into(),
        (ScatterReduction::Minimum, DType::F32) => f32::MAX.into(),
        (ScatterReduction::Maximum, DType::I32) => i32::MIN.into(),
        (ScatterReduction::Minimum, DType::I32) => i32::MAX.into(),
        (ScatterReduction::Sum, DType::F32 | DType::I32) => 0.0,
        (ScatterReduction::Product, DType::F32 | DType::I32) => 1.0,
        _ => return Err(Fault::variant(format!("segments of {dtype} aren't supported"))),
    };
    let neutral = call.builder.number(dtype, neutral);
    let neutral = call.builder.broadcast(neutral, &shape)?;
    let own = call.dtype_of(segments);
    let segments = call.builder.map(&[segments], |b| {
        let (segment, first, end) = (b.operand(0), b.number(own, 0.0), b.number(own, count as f64));
        let (is_before, is_beyond) = (b.binary(B::Less, segment, first), b.binary(B::Greater, segment, end));
        let is_none = b.binary(B::Or, is_before, is_beyond);
        b.select(is_none, end, segment)
    })?;
    let all = call.builder.scatter_slices(neutral, segments, data, 1, reduction)?;
    Ok(call.builder.slice_axis(all, 0, 0, count, 1)?)
}

fn sparse_to_dense(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (indices, values, default) = (call.input(0)?, call.input(2)?, call.input(3)?);
    let shape = super::shape::extents(call, 1, "the shape")?;
    let wanted = call.shape(indices);
    // One index, or a list of them, of a vector; or tuples.
    let count = if wanted.len() == 2 { wanted[0] } else { call.builder.ty(indices).elements() };
    let indices = if wanted.len() == 2 { indices } else { call.builder.reshape(indices, &[count, 1])? };
    let filled = call.builder.broadcast(default, &shape)?;
    let values = call.builder.broadcast(values, &[count])?;
    Ok(call.builder.scatter_nd(filled, indices, values, ScatterReduction::Replace)?)
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

#[cfg(test)]
mod tests {
    use crate::element_type::ElementType;
    use crate::import::import;
    use crate::model::{Model, Tensor};
    use crate::test_models::{operator, subgraph, tensor};
    use mlc_import::ImportOptions;
    use mlc_ir::{DType, TensorType};

    fn whole(name: &str, numbers: &[i32]) -> Tensor {
        let data = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        Tensor { data: Some(data), element_type: ElementType(2), ..tensor(name, &[numbers.len()], None) }
    }

    /// The sums of [[1, 2], [4, 8], [16, 32]] by segments; or what is said.
    fn sums(segments: &[i32]) -> Result<Vec<f64>, String> {
        let tensors = vec![tensor("x", &[3, 2], None), whole("segments", segments), tensor("y", &[1, 2], None)];
        let model =
            Model { subgraphs: vec![subgraph(tensors, &[0], &[2], vec![operator("SEGMENT_SUM", &[0, 1], &[2], &[])])] };
        let imported = import(&model, &ImportOptions::default());
        let graph = imported.map_err(|faults| faults[0].message.clone())?.graph;
        let x = mlc_ir::Tensor::from_floats(TensorType::new(DType::F32, [3, 2]), vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        Ok(mlc_ir::evaluate(&graph, &[x]).unwrap()[0].to_floats())
    }

    #[test]
    fn rows_of_a_segment_are_added_up() {
        assert_eq!(sums(&[0, 0, 2]), Ok(vec![5.0, 10.0, 0.0, 0.0, 16.0, 32.0]));
        assert_eq!(sums(&[0, 0, 0]), Ok(vec![21.0, 42.0]));
        assert!(sums(&[0, 1]).unwrap_err().contains("aren't the leading axes"));
    }
}
