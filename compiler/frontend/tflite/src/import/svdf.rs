//! `SVDF`: a layer of filters over the last steps of a stream, each of which is a vector over the features times a vector over time
//! (Nakkiran and others, "Compressing Deep Neural Networks using a Rank-Constrained Topology", 2015). Its memory is an operand and a second
//! result ([`variables`](crate::variables)).

use super::call::{Call, Table, Tensors, quantization};
use super::format::dtype_of;
use super::linear::{Finish, two_axes, without_zero_points};
use mlc_import::Handler::Many;
use mlc_import::builder::{Centred, Products, Stored, Sums};
use mlc_import::{Fault, Operand};
use mlc_ir::ops::{Matmul, ReduceFunction};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("SVDF", Many(svdf))];

/// x [N, C], weights of the features [F, C] and of time [F, T], bias [F / rank], state [N, F * T]: the result is [N, F / rank], and the next
/// state.
fn svdf(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let rank = usize::try_from(call.int_or("rank", 1)?).ok().filter(|&rank| rank > 0);
    let rank = rank.ok_or_else(|| Fault::parameter("the rank isn't a positive number"))?;
    let numbers = if call.is_quantized() { Numbers::integers(call)? } else { Numbers::Real };
    let (time, state) = (numbers.operand(call, 2)?, numbers.operand(call, 4)?);
    let x = call.input(0)?;
    let (shape, [filters, memory]) = (call.shape(x), two_axes(call, time)?);
    let [batch, _] = shape[..] else { return Err(Fault::operands("an input of two axes is expected")) };
    if filters % rank != 0 || memory == 0 {
        return Err(Fault::operands(format!("{filters} filters over {memory} steps don't fit rank {rank}")));
    }
    let newest = numbers.newest(call)?;
    let newest = call.builder.reshape(newest, &[batch, filters, 1])?;
    let state = call.builder.reshape(state, &[batch, filters, memory])?;
    let kept = if memory == 1 {
        newest
    } else {
        let parts = call.builder.split(state, 2, &[1, memory - 1])?;
        call.builder.concat(&[parts[1], newest], 2)?
    };
    let time = call.builder.reshape(time, &[1, filters, memory])?;
    let weighed = call.builder.map(&[kept, time], |b| {
        let (kept, time) = (b.operand(0), b.operand(1));
        b.binary(B::Multiply, kept, time)
    })?;
    let weighed = call.builder.reshape(weighed, &[batch, filters / rank, rank * memory])?;
    let sums = call.builder.reduce(ReduceFunction::Sum, weighed, &[2], false)?;
    let y = numbers.finish(call, sums)?;
    let kept = call.builder.reshape(kept, &[batch, filters * memory])?;
    let kept = numbers.stored(call, kept)?;
    Ok(vec![Operand::Tensor(y), Operand::Tensor(kept)])
}

/// What the layer computes with.
enum Numbers {
    Real,
    /// Integers, without their zero points, in 32 bits.
    Integers {
        /// From products of features to the state.
        to_state: f64,
        /// From sums over time to the result.
        to_result: f64,
        state: Stored,
    },
}

impl Numbers {
    fn integers(call: &Call<'_, '_>) -> Result<Numbers, Fault> {
        let (x, state, result) = (call.operand_affine(0)?, call.operand_affine(4)?, call.result_affine(0)?);
        let scale = |index: usize| match quantization(call.operand(index)?)?.scales[..] {
            [scale] => Ok(scale),
            _ => Err(Fault::variant("weights of several scales aren't supported")),
        };
        let (features, time) = (f64::from(scale(1)?), f64::from(scale(2)?));
        let (x, own) = (f64::from(x.scale), f64::from(state.scale));
        let dtype = dtype_of(call.operand(4)?.element_type)?;
        Ok(Numbers::Integers {
            to_state: x * features / own,
            to_result: own * time / f64::from(result.scale),
            state: Stored::of(dtype, state.zero_point),
        })
    }

    fn operand(&self, call: &mut Call<'_, '_>, index: usize) -> Result<Value, Fault> {
        match self {
            Numbers::Real => call.real(index),
            Numbers::Integers { .. } => {
                let x = without_zero_points(call, index)?;
                Ok(call.builder.cast(x, DType::I32)?)
            }
        }
    }

    /// What the filters say of the newest features, as it is remembered.
    fn newest(&self, call: &mut Call<'_, '_>) -> Result<Value, Fault> {
        let product = Matmul { transpose_left: false, transpose_right: true, sums: None };
        match *self {
            Numbers::Real => {
                let (x, features) = (call.real(0)?, call.real(1)?);
                Ok(call.builder.apply(product, &[x, features])?)
            }
            Numbers::Integers { to_state, state, .. } => {
                let x = Centred { integers: call.input(0)?, zero_point: call.operand_affine(0)?.zero_point };
                let features = without_zero_points(call, 1)?;
                let Sums { sums, correction } =
                    call.builder.sum_products(Products::Matmul(product), x, features, DType::I32)?;
                let sums = call.builder.add_optional(sums, correction)?;
                let stored = call.rescaled(sums, &[to_state], state)?;
                let wide = call.builder.cast(stored, DType::I32)?;
                let zero_point = call.builder.indices(&[], &[state.zero_point])?;
                let zero_point = call.builder.cast(zero_point, DType::I32)?;
                Ok(call.builder.binary(B::Subtract, wide, zero_point)?)
            }
        }
    }

    /// The state as it is kept.
    fn stored(&self, call: &mut Call<'_, '_>, state: Value) -> Result<Value, Fault> {
        match *self {
            Numbers::Real => Ok(state),
            Numbers::Integers { state: stored, .. } => Ok(call.builder.map(&[state], |b| {
                let state = b.operand(0);

                stored.store(b, DType::I32, state)
            })?),
        }
    }

    /// Adds the bias to sums over time, applies the fused activation.
    fn finish(&self, call: &mut Call<'_, '_>, sums: Value) -> Result<Value, Fault> {
        let finish = match *self {
            Numbers::Real => Finish::Real,
            Numbers::Integers { to_result, .. } => Finish::Rescaled(vec![to_result]),
        };
        finish.apply(call, Sums { sums, correction: None }, 3)
    }
}
