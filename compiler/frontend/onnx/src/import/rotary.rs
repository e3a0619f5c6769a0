//! Rotary position embeddings, gated activations, and causal convolutions that carry a state.

use super::call::{Call, Item, Table};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::builder::{Builder, SlidingWindow};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("CausalConvWithState", 27, Many(causal_convolution)),
    ("RotaryEmbedding", 23, One(rotary_embedding)),
    ("SwiGLU", 28, One(gated)),
];

/// How the features of a head make pairs, and how many of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rotation {
    /// Features that are rotated; the others stay.
    pub width: usize,
    /// Whether neighbours make a pair, not the two halves.
    pub interleaved: bool,
}

/// Rotates the pairs of x [batch, heads, length, features] by angles whose cosines and sines are [batch, length, pairs].
pub(super) fn rotate(
    builder: &mut Builder,
    x: Value,
    (cosines, sines): (Value, Value),
    rotation: Rotation,
) -> Result<Value, Fault> {
    let shape = builder.shape(x);
    let &[batch, heads, length, features] = &shape[..] else {
        return Err(Fault::operands(format!("{} must have four axes", builder.ty(x))));
    };
    let Rotation { width, interleaved } = rotation;
    let pairs = width / 2;
    if width % 2 != 0 || width > features {
        return Err(Fault::parameter(format!("{width} of {features} features don't make pairs")));
    }
    for angles in [cosines, sines] {
        if builder.rank(angles) != 3 || builder.shape(angles)[2] != pairs {
            let ty = builder.ty(angles);
            return Err(Fault::operands(format!("the cosines and sines {ty} don't fit {pairs} pairs of features")));
        }
    }
    let (cosines, sines) = (builder.insert_axis(cosines, 1)?, builder.insert_axis(sines, 1)?);
    let turned = builder.slice_axis(x, 3, 0, width, 1)?;
    let (first, second) = if interleaved {
        (builder.slice_axis(turned, 3, 0, pairs, 2)?, builder.slice_axis(turned, 3, 1, pairs, 2)?)
    } else {
        (builder.slice_axis(turned, 3, 0, pairs, 1)?, builder.slice_axis(turned, 3, pairs, pairs, 1)?)
    };
    let combination = |builder: &mut Builder, function: B, left: Value, right: Value| -> Result<Value, Fault> {
        let left = builder.binary(B::Multiply, cosines, left)?;
        let right = builder.binary(B::Multiply, sines, right)?;
        Ok(builder.binary(function, left, right)?)
    };
    let real = combination(builder, B::Subtract, first, second)?;
    let imaginary = combination(builder, B::Add, second, first)?;
    if builder.shape(real)[..] != [batch, heads, length, pairs] {
        return Err(Fault::operands(format!("cosines and sines don't fit {}", builder.ty(x))));
    }
    let turned = if interleaved {
        let pairs = builder.stack(&[real, imaginary], 4)?;
        builder.reshape(pairs, &[batch, heads, length, width])?
    } else {
        builder.concat(&[real, imaginary], 3)?
    };
    if width == features {
        return Ok(turned);
    }
    let rest = builder.slice_axis(x, 3, width, features - width, 1)?;
    Ok(builder.concat(&[turned, rest], 3)?)
}

fn rotary_embedding(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, mut cosines, mut sines) = (call.input(0)?, call.input(1)?, call.input(2)?);
    if let Some(places) = call.optional(3)? {
        (cosines, sines) = (call.builder.gather(cosines, places, 0)?, call.builder.gather(sines, places, 0)?);
    }
    let heads = call.int("num_heads")?;
    let split = call.rank(x) == 3;
    let heads = heads.and_then(|heads| usize::try_from(heads).ok()).filter(|&heads| heads > 0);
    let x = match (split, heads) {
        (false, _) => x,
        (true, Some(heads)) => call.builder.split_heads(x, heads)?,
        (true, None) => return Err(Fault::parameter("operands with three axes need `num_heads`")),
    };
    let features = call.shape(x).last().copied().unwrap_or(0);
    let width = match call.int_or("rotary_embedding_dim", 0)? {
        0 => features,
        width => usize::try_from(width).map_err(|_| Fault::parameter("rotary_embedding_dim is negative"))?,
    };
    let interleaved = call.flag_or("interleaved", false)?;
    let y = rotate(call.builder, x, (cosines, sines), Rotation { width, interleaved })?;
    Ok(if split { call.builder.merge_heads(y)? } else { y })
}

/// `a * sigmoid(alpha * a) * b`.
fn gated(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (a, b) = (call.input(0)?, call.input(1)?);
    let alpha = call.float_or("alpha", 1.0)?;
    if call.builder.ty(a) != call.builder.ty(b) {
        let types = (call.builder.ty(a), call.builder.ty(b));
        return Err(Fault::operands(format!("both operands must be of one type, found {} and {}", types.0, types.1)));
    }
    let scaled = if alpha == 1.0 { a } else { call.builder.binary_number(B::Multiply, a, alpha)? };
    let gate = call.builder.unary(U::Sigmoid, scaled)?;
    let gated = call.builder.binary(B::Multiply, a, gate)?;
    Ok(call.builder.binary(B::Multiply, gated, b)?)
}

/// A depthwise convolution of x [batch, channels, length] that sees only what came before; the last elements are handed to
/// the next call.
fn causal_convolution(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let (x, weights, bias, past) = (call.input(0)?, call.input(1)?, call.optional(2)?, call.optional(3)?);
    let (shape, window) = (call.shape(x), call.shape(weights));
    let (&[batch, channels, length], &[filters, 1, taps]) = (&shape[..], &window[..]) else {
        let (x, weights) = (call.builder.ty(x), call.builder.ty(weights));
        return Err(Fault::operands(format!("can't convolve {x} by {weights}: [B, C, L] and [C, 1, K] expected")));
    };
    if filters != channels || taps == 0 {
        return Err(Fault::operands(format!("{filters} filters of {taps} taps don't fit {channels} channels")));
    }
    let past = match past {
        Some(past) => past,
        None => {
            let zero = call.builder.number(call.dtype_of(x), 0.0);
            call.builder.broadcast(zero, &[batch, channels, taps - 1])?
        }
    };
    if call.shape(past)[..] != [batch, channels, taps - 1] {
        return Err(Fault::operands(format!("the state {} must have {} places", call.builder.ty(past), taps - 1)));
    }
    let padded = if taps == 1 { x } else { call.builder.concat(&[past, x], 2)? };
    let window = SlidingWindow { strides: vec![1], dilations: vec![1], pads: vec![(0, 0)], groups: channels };
    let y = call.builder.convolution(padded, weights, bias, window)?;
    let y = match call.word("activation")?.unwrap_or("none") {
        "none" => y,
        "silu" | "swish" => {
            // The standard computes the activation in single precision at least.
            let dtype = call.dtype_of(y);
            let exact = call.builder.cast(y, if dtype == DType::F64 { dtype } else { DType::F32 })?;
            let active = call.builder.unary(U::Silu, exact)?;
            call.builder.cast(active, dtype)?
        }
        other => return Err(Fault::parameter(format!("there is no activation `{other}` here"))),
    };
    let present = call.builder.slice_axis(padded, 2, length, taps - 1, 1)?;
    Ok(vec![Item::Tensor(y), Item::Tensor(present)])
}
