//! Reductions, and places of elements.

use super::call::{Call, Parameters, Table};
use super::item::Item;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::{ArgFunction, ArgReduce, ReduceFunction};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("argmax", One(argmax)),
    ("max", One(maximum)),
    ("reduce_mean", One(mean)),
    ("reduce_prod", One(|call| along_first(call, ReduceFunction::Product))),
    ("reduce_sum", One(|call| along_first(call, ReduceFunction::Sum))),
    ("topkv2", Many(top)),
];

/// Reduces the axis that the first number of the list names.
fn along_first(call: &mut Call<'_, '_>, function: ReduceFunction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.required_axis(x, "dims")?;
    let keep = call.flag_or("keep_dims", true)?;
    Ok(call.builder.reduce(function, x, &[axis], keep)?)
}

/// The mean over consecutive axes.
fn mean(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.floats_input(0)?;
    let axes = call.required_ints("dims")?;
    let keep = call.flag_or("keep_dims", true)?;
    let axes = axes.iter().map(|&axis| call.axis(x, axis)).collect::<Result<Vec<usize>, Fault>>()?;
    if axes.is_empty() || axes.windows(2).any(|pair| pair[0] + 1 != pair[1]) {
        return Err(Fault::parameter(format!("parameter `dims` means the axes {axes:?}, consecutive ones expected")));
    }
    Ok(call.builder.reduce(ReduceFunction::Mean, x, &axes, keep)?)
}

fn maximum(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.required_axis(x, "dim")?;
    let keep = call.flag_or("keep_dims", true)?;
    Ok(call.builder.reduce(ReduceFunction::Maximum, x, &[axis], keep)?)
}

fn argmax(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.required_axis(x, "dim")?;
    let op = ArgReduce { function: ArgFunction::Maximum, axis, keep_axis: false, last: false };
    let places = call.builder.apply(op, &[x])?;
    Ok(call.builder.cast(places, DType::I32)?)
}

/// The largest elements of the last axis, and their places.
fn top(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let number = call.required_int("number")?;
    // They come in order in any case.
    call.flag_or("sorted", false)?;
    let axis = call.axis(x, -1)?;
    let count = usize::try_from(number).ok().filter(|&count| count > 0);
    let count =
        count.ok_or_else(|| Fault::parameter(format!("parameter `number` is {number}, at least 1 expected")))?;
    let count = count.min(call.shape(x)[axis]);
    let [values, places] = call.builder.sort(x, axis, count, true)?;
    let places = call.builder.cast(places, DType::I32)?;
    Ok(vec![Item::packed([values, places])])
}
