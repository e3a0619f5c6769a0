//! Normalisations.

use super::call::{Arguments, Call, Table};
use super::item::{Item, tuple};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::builder::{Affine, LocalResponse, Statistics};
use mlc_ir::Value;
use mlc_ir::ops::{ReduceFunction, Softmax};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};

pub(super) const OPERATORS: Table = &[
    ("nn.batch_norm", Many(batch_norm)),
    ("nn.dropout", Many(dropout)),
    ("nn.fast_softmax", One(|call| softmax(call, false))),
    ("nn.group_norm", One(group_norm)),
    ("nn.instance_norm", One(instance_norm)),
    ("nn.l2_normalize", One(l2_normalize)),
    ("nn.layer_norm", One(layer_norm)),
    ("nn.log_softmax", One(|call| softmax(call, true))),
    ("nn.lrn", One(lrn)),
    ("nn.softmax", One(|call| softmax(call, false))),
];

fn softmax(call: &mut Call<'_, '_>, logarithm: bool) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.int_or("axis", -1)?;
    let axis = call.axis(x, axis)?;
    Ok(call.builder.apply(Softmax { axis, logarithm }, &[x])?)
}

/// Factor and term of two operands, where attributes don't say that they don't count.
fn affine(call: &mut Call<'_, '_>, first: usize) -> Result<Affine, Fault> {
    let (weight, bias) = (call.input(first)?, call.input(first + 1)?);
    let weight = call.flag_or("scale", true)?.then_some(weight);
    let bias = call.flag_or("center", true)?.then_some(bias);
    Ok(Affine { weight, bias })
}

/// The result is a tuple with mean and variance behind it, as they were given.
fn batch_norm(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let affine = affine(call, 1)?;
    let (mean, variance) = (call.input(3)?, call.input(4)?);
    let axis = call.int_or("axis", 1)?;
    let axis = call.axis(x, axis)?;
    let epsilon = call.float_or("epsilon", 1e-5)?;
    let moved = call.builder.move_axis(x, axis, 1.min(axis))?;
    let y = call.builder.stored_statistics(moved, Statistics { mean, variance, epsilon }, affine)?;
    let y = call.builder.move_axis(y, 1.min(axis), axis)?;
    tuple(vec![y, mean, variance])
}

/// Nothing happens when a model is used.
fn dropout(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    call.ignore(&["rate"]);
    tuple(vec![x])
}

/// Multiplies and adds along an axis.
fn apply_along(call: &mut Call<'_, '_>, y: Value, affine: Affine, axis: usize) -> Result<Value, Fault> {
    let weight = affine.weight.map(|weight| call.builder.along_axis(weight, y, axis)).transpose()?;
    let bias = affine.bias.map(|bias| call.builder.along_axis(bias, y, axis)).transpose()?;
    let scaled = call.builder.multiply_optional(y, weight)?;
    Ok(call.builder.add_optional(scaled, bias)?)
}

fn layer_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let affine = affine(call, 1)?;
    let axis = call.int_or("axis", -1)?;
    let axis = call.axis(x, axis)?;
    let epsilon = call.float_or("epsilon", 1e-5)?;
    let y = call.builder.normalize(x, vec![axis], epsilon, true)?;
    apply_along(call, y, affine, axis)
}

/// Over all axes but the first and the channels.
fn instance_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let affine = affine(call, 1)?;
    let axis = call.int_or("axis", 1)?;
    let axis = call.axis(x, axis)?;
    let epsilon = call.float_or("epsilon", 1e-5)?;
    let axes = (1..call.builder.rank(x)).filter(|&other| other != axis).collect();
    let y = call.builder.normalize(x, axes, epsilon, true)?;
    apply_along(call, y, affine, axis)
}

fn group_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let affine = affine(call, 1)?;
    let groups = call.count_or("num_groups", 0)?;
    let axis = call.int_or("axis", 1)?;
    let axis = call.axis(x, axis)?;
    let epsilon = call.float_or("epsilon", 1e-5)?;
    if axis != 1 {
        return Err(Fault::variant(format!("attribute `axis` is {axis}, only 1 is supported")));
    }
    let y = call.builder.normalize_groups(x, Some(groups), epsilon)?;
    apply_along(call, y, affine, axis)
}

fn lrn(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let size = call.count_or("size", 5)?;
    let axis = call.int_or("axis", 1)?;
    let axis = call.axis(x, axis)?;
    let (bias, alpha, beta) =
        (call.float_or("bias", 2.0)?, call.float_or("alpha", 1e-4)?, call.float_or("beta", 0.75)?);
    if size == 0 {
        return Err(Fault::parameter("attribute `size` must be at least 1"));
    }
    let neighbours = ((size - 1) / 2, size / 2);
    Ok(call.builder.local_response(x, LocalResponse { axis, neighbours, alpha, beta, bias })?)
}

/// x / sqrt(max(sum of squares, eps))
fn l2_normalize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let epsilon = call.float_or("eps", 0.0)?;
    let axes = call.chosen_axes(x)?;
    let squares = call.builder.unary(U::Square, x)?;
    let sum = call.builder.reduce(ReduceFunction::Sum, squares, &axes, true)?;
    let sum = call.builder.binary_number(B::Maximum, sum, epsilon)?;
    let length = call.builder.unary(U::Sqrt, sum)?;
    Ok(call.builder.binary(B::Divide, x, length)?)
}
