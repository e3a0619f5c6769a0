//! Losses, which models have that were exported as they are trained.

use super::call::{Call, Table};
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, Operand};
use mlc_ir::Value;
use mlc_ir::ops::{ReduceFunction, Softmax};
use mlc_ir::scalar::BinaryFunction as B;

pub(super) const OPERATORS: Table =
    &[("NegativeLogLikelihoodLoss", 12, One(likelihood)), ("SoftmaxCrossEntropyLoss", 12, Many(cross_entropy))];

fn likelihood(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let logarithms = call.input(0)?;
    loss(call, logarithms)
}

fn cross_entropy(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let scores = call.input(0)?;
    let logarithms = call.builder.apply(Softmax { axis: 1, logarithm: true }, &[scores])?;
    let loss = loss(call, logarithms)?;
    Ok([loss, logarithms].map(Operand::Tensor).to_vec())
}

/// A value without what is ignored.
fn zero_where(call: &mut Call<'_, '_>, is_ignored: Option<Value>, x: Value) -> Result<Value, Fault> {
    let Some(is_ignored) = is_ignored else { return Ok(x) };
    let zero = call.builder.number(call.builder.dtype(x), 0.0);
    Ok(call.builder.select(is_ignored, zero, x)?)
}

/// The loss of logarithms of likelihoods [N, C, …] where the labels [N, …], operand 1, say the classes, each of which may have a weight,
/// operand 2 [C]. Labels that are to be ignored have none.
fn loss(call: &mut Call<'_, '_>, logarithms: Value) -> Result<Value, Fault> {
    let (labels, weights) = (call.input(1)?, call.optional(2)?);
    let (dtype, kind) = (call.builder.dtype(logarithms), call.builder.dtype(labels));
    let ignored = call.int("ignore_index")?;
    let reduction = call.word("reduction")?.unwrap_or("mean");
    let rank = call.rank(labels);
    if call.rank(logarithms) != rank + 1 || rank == 0 {
        let types = [logarithms, labels].map(|value| call.builder.ty(value).to_string());
        return Err(Fault::operands(format!("labels {} don't fit likelihoods {}", types[1], types[0])));
    }
    let is_ignored = match ignored {
        None => None,
        Some(ignored) => Some(call.builder.map(&[labels], |b| {
            let (label, ignored) = (b.operand(0), b.number(kind, ignored as f64));
            b.binary(B::Equal, label, ignored)
        })?),
    };
    let classes = zero_where(call, is_ignored, labels)?;
    let column = call.builder.insert_axis(classes, 1)?;
    let own = call.builder.gather_elements(logarithms, column, 1)?;
    let own = call.builder.remove_axis(own, 1)?;
    let weights = match weights {
        None => call.builder.number(dtype, 1.0),
        Some(weights) => call.builder.gather(weights, classes, 0)?,
    };
    let weights = zero_where(call, is_ignored, weights)?;
    let shape = call.shape(labels);
    let weights = call.builder.broadcast(weights, &shape)?;
    let losses = call.builder.map(&[own, weights], |b| {
        let (own, weight) = (b.operand(0), b.operand(1));
        let zero = b.number(dtype, 0.0);
        let loss = b.binary(B::Subtract, zero, own);
        b.binary(B::Multiply, loss, weight)
    })?;
    let axes: Vec<usize> = (0..rank).collect();
    let mut sum = |x| call.builder.reduce(ReduceFunction::Sum, x, &axes, false);
    match reduction {
        "none" => Ok(losses),
        "sum" => Ok(sum(losses)?),
        "mean" => {
            let (all, parts) = (sum(losses)?, sum(weights)?);
            Ok(call.builder.binary(B::Divide, all, parts)?)
        }
        other => Err(Fault::parameter(format!("`reduction` is '{other}', 'mean', 'sum' or 'none' is expected"))),
    }
}
