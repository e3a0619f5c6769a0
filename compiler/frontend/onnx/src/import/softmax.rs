//! Softmax and its logarithm.

use super::call::{Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;
use mlc_ir::ops::Softmax;

pub(super) const OPERATORS: Table =
    &[("LogSoftmax", 1, One(|call| softmax(call, true))), ("Softmax", 1, One(|call| softmax(call, false)))];

fn softmax(call: &mut Call<'_, '_>, logarithm: bool) -> Result<Value, Fault> {
    let (x, version) = (call.input(0)?, call.version());
    softmax_of(call, x, version, logarithm)
}

/// Softmax of a value, as a version of the standard says: before version 13 all axes from the given one on count as one.
pub(super) fn softmax_of(call: &mut Call<'_, '_>, x: Value, version: i64, logarithm: bool) -> Result<Value, Fault> {
    if version >= 13 {
        let axis = call.axis_or(x, "axis", -1)?;
        return Ok(call.builder.apply(Softmax { axis, logarithm }, &[x])?);
    }
    let (shape, axis) = (call.shape(x), call.int_or("axis", 1)?);
    // The axis may be the rank: then every element is on its own.
    let axis = if axis == shape.len() as i64 { shape.len() } else { call.axis(x, axis)? };
    let inner: usize = shape[axis..].iter().product();
    let rows = call.builder.reshape(x, &[shape[..axis].iter().product(), inner])?;
    let y = call.builder.apply(Softmax { axis: 1, logarithm }, &[rows])?;
    Ok(call.builder.reshape(y, &shape)?)
}
