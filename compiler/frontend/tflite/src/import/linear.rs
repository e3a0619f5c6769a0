//! Matrix products, and what they share with convolutions: sums of products of real numbers, or of integers without their zero
//! points, which are rescaled to those of the result.

use super::call::{Call, Table, Tensors, quantization};
use crate::model::Quantization;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::Matmul;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("BATCH_MATMUL", One(batch_matmul)), ("FULLY_CONNECTED", One(fully_connected))];

/// Operands of an operator that sums up products, and what becomes of the sums.
pub(super) struct Integers {
    pub x: Value,
    pub weights: Value,
    pub finish: Finish,
}

/// What becomes of sums of products.
pub(super) enum Finish {
    /// They are real numbers.
    Real,
    /// They are integers, with one factor or one for each index of the last axis.
    Rescaled(Vec<f64>),
}

impl Finish {
    /// Adds the bias, applies the fused activation.
    pub fn apply(self, call: &mut Call<'_, '_>, sums: Value, bias: usize) -> Result<Value, Fault> {
        let shape = call.shape(sums);
        let bias = match self {
            Finish::Real if call.optional(bias)?.is_some() => Some(call.real(bias)?),
            Finish::Real => None,
            Finish::Rescaled(_) => {
                let bias = call.optional(bias)?;
                bias.map(|bias| call.builder.cast(bias, call.builder.dtype(sums))).transpose()?
            }
        };
        let y = call.builder.add_optional(sums, bias)?;
        if call.shape(y) != shape {
            return Err(Fault::operands("the bias doesn't fit the result"));
        }
        match self {
            Finish::Real => call.activated(y),
            Finish::Rescaled(factors) => {
                let stored = call.stored()?;
                call.rescaled(y, &factors, stored)
            }
        }
    }
}

/// The integers of an operand without their zero points, in as many bits as their sums need.
fn centred(call: &mut Call<'_, '_>, index: usize, wide: DType) -> Result<Value, Fault> {
    let x = call.input(index)?;
    let Quantization { zero_points, axis, .. } = quantization(call.operand(index)?)?;
    let zero_points = if zero_points.iter().all(|&zero_point| zero_point == 0) {
        None
    } else {
        let zero_points = call.builder.indices(&[zero_points.len()], zero_points)?;
        Some(call.builder.along_axis(zero_points, x, *axis)?)
    };
    let x = call.builder.centred(x, zero_points)?;
    Ok(call.builder.cast(x, wide)?)
}

/// The operands of an operator that sums up products. Weights of real numbers may be stored as integers. `channels` is the axis
/// of the weights along which they may have several scales.
pub(super) fn integers(call: &mut Call<'_, '_>, x: usize, weights: usize, channels: usize) -> Result<Integers, Fault> {
    if !call.is_quantized_operand(x) {
        let (x, weights) = (call.real(x)?, call.real(weights)?);
        return Ok(Integers { x, weights, finish: Finish::Real });
    }
    let (own, result) = (call.operand_affine(x)?, call.result_affine(0)?);
    let Quantization { scales, axis, .. } = quantization(call.operand(weights)?)?;
    if scales.len() > 1 && *axis != channels {
        return Err(Fault::variant(format!("the weights have scales along axis {axis}, axis {channels} is expected")));
    }
    let factor = |&scale: &f32| f64::from(own.scale) * f64::from(scale) / f64::from(result.scale);
    let factors = scales.iter().map(factor).collect();
    let input = call.input(x)?;
    let wide = if call.dtype_of(input).size() > 1 { DType::I64 } else { DType::I32 };
    let (x, weights) = (centred(call, x, wide)?, centred(call, weights, wide)?);
    Ok(Integers { x, weights, finish: Finish::Rescaled(factors) })
}

/// The factor of one scale is rounded to single precision before it is divided by the result's.
fn single_factor(call: &mut Call<'_, '_>, finish: Finish) -> Result<Finish, Fault> {
    match finish {
        Finish::Rescaled(factors) if factors.len() == 1 => {
            let (x, weights) = (call.operand_affine(0)?, call.operand_affine(1)?);
            let factor = f64::from(x.scale * weights.scale) / f64::from(call.result_affine(0)?.scale);
            Ok(Finish::Rescaled(vec![factor]))
        }
        other => Ok(other),
    }
}

fn fully_connected(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    if call.int_or("weights_format", 0)? != 0 {
        return Err(Fault::variant("shuffled weights aren't supported"));
    }
    let Integers { x, weights, finish } = integers(call, 0, 1, 0)?;
    let (shape, [outputs, inner]) = (call.shape(x), two_axes(call, weights)?);
    let elements = call.builder.ty(x).elements();
    if inner == 0 || !elements.is_multiple_of(inner) {
        let (x, weights) = (call.builder.ty(x), call.builder.ty(weights));
        return Err(Fault::operands(format!("{x} doesn't fit the weights {weights}")));
    }
    let rows = call.builder.reshape(x, &[elements / inner, inner])?;
    let product = Matmul { transpose_left: false, transpose_right: true };
    let sums = call.builder.apply(product, &[rows, weights])?;
    let finish = single_factor(call, finish)?;
    let y = finish.apply(call, sums, 2)?;
    if !call.flag_or("keep_num_dims", false)? {
        return Ok(y);
    }
    let kept: Vec<usize> = shape.iter().take(shape.len().saturating_sub(1)).copied().chain([outputs]).collect();
    Ok(call.builder.reshape(y, &kept)?)
}

fn two_axes(call: &Call<'_, '_>, x: Value) -> Result<[usize; 2], Fault> {
    let shape = call.shape(x);
    <[usize; 2]>::try_from(&shape[..])
        .map_err(|_| Fault::operands(format!("{} must have two axes", call.builder.ty(x))))
}

fn batch_matmul(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (transpose_left, transpose_right) = (call.flag_or("adj_x", false)?, call.flag_or("adj_y", false)?);
    let Integers { x, weights, finish } = integers(call, 0, 1, usize::MAX)?;
    let finish = single_factor(call, finish)?;
    let y = call.builder.apply(Matmul { transpose_left, transpose_right }, &[x, weights])?;
    finish.apply(call, y, 2)
}
