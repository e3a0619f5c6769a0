//! Reductions, transposition, rows of tables, and what the newest dialect has for whole layers.

use super::call::{Call, Results, Table};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::Operand;
use mlc_ir::ops::{ReduceFunction, Softmax};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("Embedding", One(embedding)),
    ("KvCacheSlot", Many(cache_slot)),
    ("LayerNorm", One(layer_norm)),
    ("ReduceMax", One(|call| reduce(call, ReduceFunction::Maximum))),
    ("ReduceMean", One(|call| reduce(call, ReduceFunction::Mean))),
    ("ReduceSum", One(|call| reduce(call, ReduceFunction::Sum))),
    ("Softmax", One(softmax)),
    ("Transpose", One(transpose)),
];

/// What the newest dialect's normalisation adds to the variance.
const EPSILON: f64 = 1e-5;

fn reduce(call: &mut Call<'_, '_>, function: ReduceFunction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.int("Axis")?;
    let axis = call.required("Axis", axis)?;
    let axis = call.axis(x, axis)?;
    let keep = call.flag_or("KeepDim", true)?;
    let y = call.builder.reduce(function, x, &[axis], keep)?;
    // A tensor has an axis at least.
    if call.rank(y) == 0 { call.shaped(y, 0) } else { Ok(y) }
}

fn transpose(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let permutation = call.required_ints("Permutation")?;
    let permutation: Result<Vec<usize>, Fault> = permutation.iter().map(|&axis| call.axis(x, axis)).collect();
    Ok(call.builder.transpose(x, &permutation?)?)
}

/// Rows of a table. The result has more axes than the numbers of the rows, but the same elements.
fn embedding(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (numbers, table) = (call.input(0)?, call.input(1)?);
    let rows = call.builder.gather(table, numbers, 0)?;
    call.shaped(rows, 0)
}

fn softmax(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.axis(x, -1)?;
    Ok(call.builder.apply(Softmax { axis, logarithm: false }, &[x])?)
}

fn layer_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weight, bias) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let dtype = call.dtype_of(x);
    let axis = call.axis(x, -1)?;
    let features = call.shape(x)[axis];
    let x = call.builder.cast(x, DType::F32)?;
    let mut y = call.builder.normalize(x, vec![axis], EPSILON, true)?;
    for (function, operand) in [(B::Multiply, weight), (B::Add, bias)] {
        let operand = call.builder.reshape(operand, &[features])?;
        let operand = call.builder.cast(operand, DType::F32)?;
        y = call.builder.binary(function, y, operand)?;
    }
    Ok(call.builder.cast(y, dtype)?)
}

/// Writes a row to the place of a cache that a counter says, and counts on. A place outside of the cache is none: nothing is
/// written then.
fn cache_slot(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let (row, place, cache) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let shape = call.shape(cache);
    let count = call.builder.number(DType::I32, 1.0);
    let next = call.builder.binary(B::Add, place, count)?;
    let mut slot = shape.clone();
    slot[0] = 1;
    let row = call.builder.reshape(row, &slot)?;
    let mut column = vec![1; shape.len()];
    column[0] = shape[0];
    let places = Tensor::from_integers(TensorType::new(DType::I32, column), (0..shape[0] as i64).collect());
    let places = call.builder.constant("places", Attribute::from_tensor(&places));
    let place = call.builder.reshape(place, &vec![1; shape.len()])?;
    let is_there = call.builder.binary(B::Equal, places, place)?;
    let written = call.builder.select(is_there, row, cache)?;
    let out = call.shaped(row, 2)?;
    Ok(vec![Operand::Tensor(written), Operand::Tensor(next), Operand::Tensor(out)])
}
