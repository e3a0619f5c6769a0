//! Reductions.

use super::call::{Call, Parameters, Table};
use super::signature::Signature;
use super::signature::Type::Number;
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, Operand};
use mlc_ir::ops::{ArgFunction, ArgReduce, ReduceFunction};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    (Signature::new("dot_product", &["src1", "src2"], &["dst"], &[]), One(dot_product)),
    (Signature::new("maxreduce", &["src"], &["dst"], &[("axis", Number)]), One(maximum)),
    (Signature::new("maxreduce_arg", &["src"], &["dst", "arg"], &[("axis", Number)]), Many(maximum_and_place)),
];

fn dot_product(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    call.check_same_type(x, y)?;
    call.check_same_shape((0, x), (1, y))?;
    let elements = call.builder.ty(x).elements();
    let (x, y) = (call.builder.reshape(x, &[elements])?, call.builder.reshape(y, &[elements])?);
    let products = call.builder.binary(BinaryFunction::Multiply, x, y)?;
    Ok(call.builder.reduce(ReduceFunction::Sum, products, &[0], true)?)
}

/// The largest elements along an axis, which stays with extent 1.
fn maximum(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.plain_axis(x, "axis")?;
    Ok(call.builder.reduce(ReduceFunction::Maximum, x, &[axis], true)?)
}

/// The largest elements, and where the first of them are.
fn maximum_and_place(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let largest = maximum(call)?;
    let x = call.input(0)?;
    let axis = call.plain_axis(x, "axis")?;
    let op = ArgReduce { function: ArgFunction::Maximum, axis, keep_axis: true, last: false };
    let places = call.builder.apply(op, &[x])?;
    let places = call.builder.cast(places, DType::I32)?;
    Ok(vec![Operand::Tensor(largest), Operand::Tensor(places)])
}
