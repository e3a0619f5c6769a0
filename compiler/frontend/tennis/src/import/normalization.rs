//! Normalisations, by stored statistics and by the tensor's own.

use super::activation::vector;
use super::call::{Call, Parameters, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::{Affine, Statistics};
use mlc_ir::Value;
use mlc_ir::ops::ReduceFunction;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};

pub(super) const OPERATORS: Table = &[
    ("batch_norm", One(batch_norm)),
    ("batch_scale", One(batch_scale)),
    ("fused_batch_norm", One(fused_batch_norm)),
    ("l2_norm", One(l2_norm)),
    ("norm_image", One(norm_image)),
    ("prewhiten", One(prewhiten)),
];

/// Tensor, axis and vectors along it.
fn vectors<const N: usize>(call: &mut Call<'_, '_>) -> Result<(Value, usize, [Value; N]), Fault> {
    let x = call.floats_input(0)?;
    let axis = call.required_plain_axis(x, "dim")?;
    let mut vectors = [x; N];
    for (place, slot) in vectors.iter_mut().enumerate() {
        let own = call.input(place + 1)?;
        vector(call, own, x, axis)?;
        *slot = own;
    }
    Ok((x, axis, vectors))
}

/// What the builder does along axis 1, along another one.
fn along(
    call: &mut Call<'_, '_>,
    x: Value,
    axis: usize,
    apply: impl FnOnce(&mut Call<'_, '_>, Value) -> Result<Value, Fault>,
) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let (outer, inner) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    if axis == 1 {
        return apply(call, x);
    }
    let flat = call.builder.reshape(x, &[outer, shape[axis], inner])?;
    let y = apply(call, flat)?;
    Ok(call.builder.reshape(y, &shape)?)
}

fn batch_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, axis, [mean, variance]) = vectors(call)?;
    let statistics = Statistics { mean, variance, epsilon: call.float_or("epsilon", 1e-5)? };
    let affine = Affine { weight: None, bias: None };
    along(call, x, axis, |call, x| Ok(call.builder.stored_statistics(x, statistics, affine)?))
}

fn batch_scale(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, axis, [scale, bias]) = vectors(call)?;
    let affine = Affine { weight: Some(scale), bias: Some(bias) };
    along(call, x, axis, |call, x| Ok(call.builder.apply_affine(x, affine)?))
}

fn fused_batch_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, axis, [mean, variance, scale, bias]) = vectors(call)?;
    let statistics = Statistics { mean, variance, epsilon: call.float_or("epsilon", 1e-5)? };
    let affine = Affine { weight: Some(scale), bias: Some(bias) };
    along(call, x, axis, |call, x| Ok(call.builder.stored_statistics(x, statistics, affine)?))
}

/// x over its length along an axis; an axis of one element gives ones.
fn l2_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.floats_input(0)?;
    let axis = call.axis_or(x, "dim", -1)?;
    let epsilon = call.float_or("epsilon", 1.000_000_01e-10)?;
    let shape = call.shape(x);
    if shape[axis] == 1 {
        let one = call.builder.number(call.dtype_of(x), 1.0);
        return Ok(call.builder.broadcast(one, &shape)?);
    }
    let squares = call.builder.unary(U::Square, x)?;
    let sum = call.builder.reduce(ReduceFunction::Sum, squares, &[axis], true)?;
    let sum = call.builder.binary_number(B::Add, sum, epsilon)?;
    let length = call.builder.unary(U::Sqrt, sum)?;
    Ok(call.builder.binary(B::Divide, x, length)?)
}

/// The difference from each sample's mean, and the deviation of the sample: [N, 1, …].
fn deviation(call: &mut Call<'_, '_>, x: Value) -> Result<(Value, Value), Fault> {
    let rank = call.rank(x);
    if rank < 2 {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("{ty} must have an axis of samples and others")));
    }
    let axes: Vec<usize> = (1..rank).collect();
    let mean = call.builder.reduce(ReduceFunction::Mean, x, &axes, true)?;
    let centred = call.builder.binary(B::Subtract, x, mean)?;
    let squares = call.builder.unary(U::Square, centred)?;
    let variance = call.builder.reduce(ReduceFunction::Mean, squares, &axes, true)?;
    Ok((centred, call.builder.unary(U::Sqrt, variance)?))
}

fn norm_image(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.floats_input(0)?;
    let epsilon = call.float_or("epsilon", 1e-5)?;
    let (centred, deviation) = deviation(call, x)?;
    let divisor = call.builder.binary_number(B::Add, deviation, epsilon)?;
    Ok(call.builder.binary(B::Divide, centred, divisor)?)
}

/// Divides by the deviation, but by no less than that of one element among as many as a sample has.
fn prewhiten(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.floats_input(0)?;
    let count: usize = call.shape(x).get(1..).unwrap_or_default().iter().product();
    let (centred, deviation) = deviation(call, x)?;
    let least = 1.0 / (count as f64).sqrt();
    let divisor = call.builder.binary_number(B::Maximum, deviation, least)?;
    Ok(call.builder.binary(B::Divide, centred, divisor)?)
}
