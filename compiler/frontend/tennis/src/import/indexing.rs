//! Elements by index.

use super::call::{Call, Table};
use super::promotion::check_equal;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::ScatterReduction;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("gather", One(gather)),
    ("gather_elements", One(gather_elements)),
    ("gatherv2", One(gather_nd)),
    ("scatter_nd", One(scatter_nd)),
];

/// Indices of any data type as integers.
fn indices(call: &mut Call<'_, '_>, index: usize) -> Result<Value, Fault> {
    let indices = call.input(index)?;
    Ok(call.builder.cast(indices, DType::I32)?)
}

fn gather(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices) = (call.input(0)?, indices(call, 1)?);
    let axis = call.axis_or(x, "axis", 0)?;
    Ok(call.builder.gather(x, indices, axis)?)
}

fn gather_elements(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices) = (call.input(0)?, indices(call, 1)?);
    let axis = call.axis_or(x, "axis", 0)?;
    Ok(call.builder.gather_elements(x, indices, axis)?)
}

fn gather_nd(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, indices) = (call.input(0)?, indices(call, 1)?);
    let indices = call.builder.cast(indices, DType::I64)?;
    Ok(call.builder.gather_nd(x, indices, 0)?)
}

/// A copy of the data with some rows replaced.
fn scatter_nd(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (data, indices, updates) = (call.input(0)?, indices(call, 1)?, call.input(2)?);
    check_equal(call.builder, &[data, updates])?;
    if !matches!(call.shape(indices)[..], [_, 1]) {
        let ty = call.builder.ty(indices);
        return Err(Fault::operands(format!("the indices {ty} must have one number in each row")));
    }
    let indices = call.builder.cast(indices, DType::I64)?;
    Ok(call.builder.scatter_nd(data, indices, updates, ScatterReduction::Replace)?)
}
