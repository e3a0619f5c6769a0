//! Matrix products, and what they share with convolutions: sums of products of real numbers, or of integers without their zero
//! points, which are rescaled to those of the result.

use super::call::{Call, Table, Tensors, quantization};
use crate::model::Quantization;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::{Centred, Products, Sums};
use mlc_ir::ops::Matmul;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("BATCH_MATMUL", One(batch_matmul)), ("FULLY_CONNECTED", One(fully_connected))];

/// Operands of an operator that sums up products, and what becomes of the sums.
pub(super) struct Integers {
    pub x: Centred,
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

impl Integers {
    /// Sums up the products, adds the bias, applies the fused activation.
    pub fn apply(self, call: &mut Call<'_, '_>, op: Products, bias: usize) -> Result<Value, Fault> {
        let Integers { x, weights, finish } = self;
        let wide = match finish {
            Finish::Real => call.dtype_of(x.integers),
            Finish::Rescaled(_) if call.dtype_of(x.integers).size() > 1 => DType::I64,
            Finish::Rescaled(_) => DType::I32,
        };
        let sums = call.builder.sum_products(op, x, weights, wide)?;
        finish.apply(call, sums, bias)
    }
}

impl Finish {
    /// Adds the bias to sums, applies the fused activation.
    pub fn apply(self, call: &mut Call<'_, '_>, sums: Sums, bias: usize) -> Result<Value, Fault> {
        let Sums { sums, correction } = sums;
        let (shape, wide) = (call.shape(sums), call.dtype_of(sums));
        let bias = match self {
            _ if call.optional(bias)?.is_none() => None,
            Finish::Real => Some(call.real(bias)?),
            Finish::Rescaled(_) => {
                let bias = call.input(bias)?;
                Some(call.builder.cast(bias, wide)?)
            }
        };
        let added = match (bias, correction) {
            (Some(bias), Some(correction)) => Some(call.builder.binary(B::Add, bias, correction)?),
            (bias, correction) => bias.or(correction),
        };
        let y = call.builder.add_optional(sums, added)?;
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

/// The integers of weights without their zero points: in 16 bits, or as they are stored where there are none.
pub(super) fn without_zero_points(call: &mut Call<'_, '_>, index: usize) -> Result<Value, Fault> {
    let x = call.input(index)?;
    let Quantization { zero_points, axis, .. } = quantization(call.operand(index)?)?;
    if zero_points.iter().all(|&zero_point| zero_point == 0) {
        return Ok(x);
    }
    let zero_points = call.builder.indices(&[zero_points.len()], zero_points)?;
    let zero_points = call.builder.along_axis(zero_points, x, *axis)?;
    let centred = call.builder.centred(x, Some(zero_points))?;
    if call.dtype_of(x).size() > 1 { Ok(centred) } else { Ok(call.builder.cast(centred, DType::I16)?) }
}

/// The operands of an operator that sums up products. Weights of real numbers may be stored as integers. `channels` is the axis
/// of the weights along which they may have several scales.
pub(super) fn integers(call: &mut Call<'_, '_>, x: usize, weights: usize, channels: usize) -> Result<Integers, Fault> {
    if !call.is_quantized_operand(x) {
        let (x, weights) = (call.real(x)?, call.real(weights)?);
        return Ok(Integers { x: Centred { integers: x, zero_point: 0 }, weights, finish: Finish::Real });
    }
    let (own, result) = (call.operand_affine(x)?, call.result_affine(0)?);
    let Quantization { scales, axis, .. } = quantization(call.operand(weights)?)?;
    if scales.len() > 1 && *axis != channels {
        return Err(Fault::variant(format!("the weights have scales along axis {axis}, axis {channels} is expected")));
    }
    let factor = |&scale: &f32| f64::from(own.scale) * f64::from(scale) / f64::from(result.scale);
    let factors = scales.iter().map(factor).collect();
    let x = Centred { integers: call.input(x)?, zero_point: own.zero_point };
    let weights = without_zero_points(call, weights)?;
    for (value, is_weights) in [(x.integers, false), (weights, true)] {
        if !call.dtype_of(value).is_integer() {
            let (ty, what) = (call.builder.ty(value), if is_weights { "weights" } else { "x" });
            return Err(Fault::operands(format!("{what} of {ty} aren't a quantised tensor")));
        }
    }
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
    let Integers { x: Centred { integers: x, zero_point }, weights, finish } = integers(call, 0, 1, 0)?;
    let (shape, [outputs, inner]) = (call.shape(x), two_axes(call, weights)?);
    let elements = call.builder.ty(x).elements();
    if inner == 0 || !elements.is_multiple_of(inner) {
        let (x, weights) = (call.builder.ty(x), call.builder.ty(weights));
        return Err(Fault::operands(format!("{x} doesn't fit the weights {weights}")));
    }
    let rows = call.builder.reshape(x, &[elements / inner, inner])?;
    let product = Matmul { transpose_left: false, transpose_right: true, sums: None };
    let finish = single_factor(call, finish)?;
    let operands = Integers { x: Centred { integers: rows, zero_point }, weights, finish };
    let y = operands.apply(call, Products::Matmul(product), 2)?;
    if !call.flag_or("keep_num_dims", false)? {
        return Ok(y);
    }
    let kept: Vec<usize> = shape.iter().take(shape.len().saturating_sub(1)).copied().chain([outputs]).collect();
    Ok(call.builder.reshape(y, &kept)?)
}

pub(super) fn two_axes(call: &Call<'_, '_>, x: Value) -> Result<[usize; 2], Fault> {
    let shape = call.shape(x);
    <[usize; 2]>::try_from(&shape[..])
        .map_err(|_| Fault::operands(format!("{} must have two axes", call.builder.ty(x))))
}

fn batch_matmul(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (transpose_left, transpose_right) = (call.flag_or("adj_x", false)?, call.flag_or("adj_y", false)?);
    let operands = integers(call, 0, 1, usize::MAX)?;
    let operands = Integers { finish: single_factor(call, operands.finish)?, ..operands };
    operands.apply(call, Products::Matmul(Matmul { transpose_left, transpose_right, sums: None }), 2)
}
