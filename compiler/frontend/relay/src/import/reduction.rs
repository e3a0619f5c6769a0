//! Reductions over axes.

use super::call::{Arguments, Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{ArgFunction, ArgReduce, ReduceFunction as R};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("all", One(|call| reduce(call, R::All))),
    ("any", One(|call| reduce(call, R::Any))),
    ("argmax", One(|call| arg_reduce(call, ArgFunction::Maximum))),
    ("argmin", One(|call| arg_reduce(call, ArgFunction::Minimum))),
    ("max", One(|call| reduce(call, R::Maximum))),
    ("mean", One(|call| reduce(call, R::Mean))),
    ("min", One(|call| reduce(call, R::Minimum))),
    ("prod", One(|call| reduce(call, R::Product))),
    ("sum", One(|call| reduce(call, R::Sum))),
    ("variance", One(variance)),
];

fn reduce(call: &mut Call<'_, '_>, function: R) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axes = call.chosen_axes(x)?;
    let keep = call.flag_or("keepdims", false)?;
    Ok(call.builder.reduce(function, x, &axes, keep)?)
}

/// Over all axes when none is given.
fn arg_reduce(call: &mut Call<'_, '_>, function: ArgFunction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let rank = call.builder.rank(x);
    let axes = call.chosen_axes(x)?;
    let (keep_axis, last) = (call.flag_or("keepdims", false)?, call.flag_or("select_last_index", false)?);
    let y = match axes[..] {
        [axis] => call.builder.apply(ArgReduce { function, axis, keep_axis, last }, &[x])?,
        _ if axes.len() == rank => {
            let elements = call.builder.ty(x).elements();
            let flat = call.builder.reshape(x, &[elements])?;
            let y = call.builder.apply(ArgReduce { function, axis: 0, keep_axis: false, last }, &[flat])?;
            let shape = if keep_axis { vec![1; rank] } else { Vec::new() };
            call.builder.reshape(y, &shape)?
        }
        _ => return Err(Fault::variant(format!("the axes {axes:?}; one or all of them are supported"))),
    };
    Ok(call.builder.cast(y, DType::I32)?)
}

/// The mean of the squared distances, or their sum divided by one less. Operand 1 is the mean.
fn variance(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axes = call.chosen_axes(x)?;
    let keep = call.flag_or("keepdims", false)?;
    let unbiased = call.flag_or("unbiased", false)?;
    let mean = match call.operands() {
        1 => call.builder.reduce(R::Mean, x, &axes, true)?,
        _ => call.input(1)?,
    };
    let centred = call.builder.binary(B::Subtract, x, mean)?;
    let squares = call.builder.unary(U::Square, centred)?;
    let y = call.builder.reduce(R::Mean, squares, &axes, keep)?;
    if !unbiased {
        return Ok(y);
    }
    let shape = call.shape(x);
    let count: usize = axes.iter().map(|&axis| shape[axis]).product();
    Ok(call.builder.binary_number(B::Multiply, y, count as f64 / (count as f64 - 1.0))?)
}
