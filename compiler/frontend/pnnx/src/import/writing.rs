//! Writing where index tensors say, and reading flat places.

use super::call::{Call, Operands, Table};
use super::item::Item;
use super::positional::float_at;
use super::promotion::operand;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;
use mlc_ir::ops::ScatterReduction;
use mlc_ir::scalar::BinaryFunction;

pub(super) const OPERATORS: Table = &[
    ("aten::index_add", One(index_add)),
    ("aten::index_copy", One(index_copy)),
    ("aten::index_fill", One(index_fill)),
    ("aten::scatter", One(scatter)),
    ("aten::take", One(take)),
    ("torch.scatter_add", One(scatter_add)),
];

/// The axis that the second operand names.
fn second_axis(call: &mut Call<'_, '_>, x: Value) -> Result<usize, Fault> {
    let axis = call.labelled_item("dim", 1)?;
    let axis = axis.int().ok_or_else(|| Fault::operands("operand `dim` must be a whole number"))?;
    call.axis(x, axis)
}

/// input[.., index[.., i, ..], ..] becomes source[.., i, ..], or is combined with it. The source may be larger than the
/// indices.
fn scattered(
    call: &mut Call<'_, '_>,
    x: Value,
    axis: usize,
    index: Value,
    mut source: Value,
    reduction: ScatterReduction,
) -> Result<Value, Fault> {
    let (part, given) = (call.shape(index), call.shape(source));
    if part.len() != given.len() || (0..part.len()).any(|other| part[other] > given[other]) {
        let (index, source) = (call.builder.ty(index), call.builder.ty(source));
        return Err(Fault::operands(format!("indices {index} and sources {source} don't fit {}", call.builder.ty(x))));
    }
    for (other, &extent) in part.iter().enumerate() {
        source = call.builder.slice_axis(source, other, 0, extent, 1)?;
    }
    Ok(call.builder.scatter(x, index, source, axis, reduction)?)
}

fn scatter_add(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (index, source) = (call.labelled_input("index", 1)?, call.labelled_input("src", 2)?);
    let axis = call.int("dim")?;
    let axis = call.axis(x, call.required("dim", axis)?)?;
    scattered(call, x, axis, index, source, ScatterReduction::Sum)
}

/// `aten::scatter (x, dim, index, source or number)`
fn scatter(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = second_axis(call, x)?;
    let index = call.labelled_input("index", 2)?;
    if call.inputs.len() > 4 {
        return Err(Fault::variant("`reduce` isn't supported; use scatter_add"));
    }
    let source = call.labelled_item("src", 3)?;
    let mut source = operand(call.builder, &source, call.builder.dtype(x))?;
    if call.builder.rank(source) == 0 {
        let shape = call.shape(index);
        source = call.builder.broadcast(source, &shape)?;
    }
    scattered(call, x, axis, index, source, ScatterReduction::Replace)
}

/// Writes slices of an axis: number i of the updates, which broadcast, to where element i of the indices says.
fn write_slices(
    call: &mut Call<'_, '_>,
    x: Value,
    axis: usize,
    updates: Value,
    reduction: ScatterReduction,
) -> Result<Value, Fault> {
    let index = call.labelled_input("index", 2)?;
    let count = call.builder.ty(index).elements();
    let mut column = vec![1; call.builder.rank(x)];
    column[axis] = count;
    let index = call.builder.reshape(index, &column)?;
    let mut written = call.shape(x).to_vec();
    written[axis] = count;
    let updates = call.builder.broadcast(updates, &written)?;
    Ok(call.builder.scatter(x, index, updates, axis, reduction)?)
}

/// `aten::index_add (x, dim, index, source, alpha)`
fn index_add(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = second_axis(call, x)?;
    let mut source = call.labelled_input("source", 3)?;
    let alpha = float_at(call, "alpha", 4, 1.0)?;
    if alpha != 1.0 {
        source = call.builder.binary_number(BinaryFunction::Multiply, source, alpha)?;
    }
    write_slices(call, x, axis, source, ScatterReduction::Sum)
}

/// `aten::index_copy (x, dim, index, source)`
fn index_copy(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = second_axis(call, x)?;
    let source = call.labelled_input("source", 3)?;
    write_slices(call, x, axis, source, ScatterReduction::Replace)
}

/// `aten::index_fill (x, dim, index, number)`
fn index_fill(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = second_axis(call, x)?;
    let number: Item = call.labelled_item("value", 3)?;
    let number = operand(call.builder, &number, call.builder.dtype(x))?;
    write_slices(call, x, axis, number, ScatterReduction::Replace)
}

/// `aten::take (x, index)`: elements of the flat tensor.
fn take(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, index) = (call.x()?, call.labelled_input("index", 1)?);
    let flat = call.builder.reshape(x, &[call.builder.ty(x).elements()])?;
    Ok(call.builder.gather(flat, index, 0)?)
}
