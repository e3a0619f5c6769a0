//! Convolutions and matrix products of quantised tensors, summed up in 32-bit integers without loss.

use super::call::{Call, Table};
use super::convolution::convolution_of;
use super::linear::expect_matrices;
use super::quantization::{saturated, type_of};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("ConvInteger", 10, One(conv_integer)),
    ("MatMulInteger", 10, One(matmul_integer)),
    ("QLinearConv", 10, One(qlinear_conv)),
    ("QLinearMatMul", 10, One(qlinear_matmul)),
];

/// Operators of com.microsoft.
pub(super) const CONTRIBUTED: Table = &[("QGemm", 1, One(qgemm))];

/// What a parameter of a product runs along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Along {
    /// It is one number.
    Nothing,
    /// The first axis, the output channels of a convolution's weights.
    Channels,
    /// The last axis but one, the rows of a left operand.
    Rows,
    /// The last axis, the columns of a right operand.
    Columns,
}

/// A scale or a zero point so that it broadcasts to a tensor of some rank.
fn aligned(call: &mut Call<'_, '_>, parameter: Value, rank: usize, along: Along) -> Result<Value, Fault> {
    let shape = call.shape(parameter);
    match (&shape[..], along) {
        ([] | [1], _) => Ok(call.builder.reshape(parameter, &[])?),
        (&[count], Along::Channels) => {
            let mut shape = vec![1; rank];
            shape[0] = count;
            Ok(call.builder.reshape(parameter, &shape)?)
        }
        (&[count], Along::Rows) if rank >= 2 => Ok(call.builder.reshape(parameter, &[count, 1])?),
        ([_], Along::Columns) => Ok(parameter),
        ([.., 1], Along::Rows) if shape.len() == rank => Ok(parameter),
        ([.., 1, _], Along::Columns) if shape.len() == rank => Ok(parameter),
        _ => {
            let ty = call.builder.ty(parameter);
            Err(Fault::operands(format!("a scale or a zero point of {ty} doesn't fit the operands")))
        }
    }
}

/// The integers without their zero point, in 32 bits.
fn centred(call: &mut Call<'_, '_>, x: Value, zero_point: Option<Value>, along: Along) -> Result<Value, Fault> {
    let (rank, dtype) = (call.rank(x), call.dtype_of(x));
    if !dtype.is_integer() || dtype.size() > 2 {
        return Err(Fault::operands(format!("{} isn't a quantised tensor", call.builder.ty(x))));
    }
    let zero_point = zero_point.map(|zero_point| aligned(call, zero_point, rank, along)).transpose()?;
    call.builder.centred(x, zero_point)
}

fn matmul_integer(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right) = (call.input(0)?, call.input(1)?);
    let (left_zero, right_zero) = (call.optional(2)?, call.optional(3)?);
    let left = centred(call, left, left_zero, Along::Rows)?;
    let right = centred(call, right, right_zero, Along::Columns)?;
    Ok(call.builder.matmul(left, right)?)
}

/// Scale of the sums over scale of the result, which broadcasts to the result.
struct Ratio {
    left: Value,
    right: Value,
    result: Value,
}

/// `saturate(round(sums * ratio) + zero_point)`, halves to even.
fn requantized(call: &mut Call<'_, '_>, sums: Value, ratio: Ratio, zero_point: Value) -> Result<Value, Fault> {
    let ty = type_of(call, Some(zero_point));
    let zero_point = aligned(call, zero_point, 0, Along::Nothing)?;
    let single = |call: &mut Call<'_, '_>, x: Value| call.builder.cast(x, DType::F32);
    let (left, right) = (single(call, ratio.left)?, single(call, ratio.right)?);
    let result = single(call, ratio.result)?;
    let scale = call.builder.binary(B::Multiply, left, right)?;
    let ratio = call.builder.binary(B::Divide, scale, result)?;
    let shape = call.shape(sums);
    let sums = call.builder.cast(sums, DType::F32)?;
    let real = call.builder.binary(B::Multiply, sums, ratio)?;
    if call.shape(real) != shape {
        return Err(Fault::operands(format!("a scale of {} doesn't fit the result", call.builder.ty(ratio))));
    }
    saturated(call, real, Some(zero_point), ty)
}

fn qlinear_matmul(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, left_scale, left_zero) = (call.input(0)?, call.input(1)?, call.optional(2)?);
    let (right, right_scale, right_zero) = (call.input(3)?, call.input(4)?, call.optional(5)?);
    let (result_scale, result_zero) = (call.input(6)?, call.input(7)?);
    let (left_rank, right_rank) = (call.rank(left), call.rank(right));
    if left_rank.min(right_rank) < 2 && call.shape(left_scale).len() + call.shape(right_scale).len() > 1 {
        return Err(Fault::variant("vectors with a scale for each element aren't supported"));
    }
    let left = centred(call, left, left_zero, Along::Rows)?;
    let right = centred(call, right, right_zero, Along::Columns)?;
    let sums = call.builder.matmul(left, right)?;
    let ratio = Ratio {
        left: aligned(call, left_scale, left_rank, Along::Rows)?,
        right: aligned(call, right_scale, right_rank, Along::Columns)?,
        result: aligned(call, result_scale, 0, Along::Nothing)?,
    };
    requantized(call, sums, ratio, result_zero)
}

/// A matrix product of quantised matrices, whose bias has the scale of the sums. The result is quantised where a scale is given
/// for it.
fn qgemm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, left_scale, left_zero) = (call.input(0)?, call.input(1)?, call.optional(2)?);
    let (right, right_scale, right_zero) = (call.input(3)?, call.input(4)?, call.optional(5)?);
    let (bias, result_scale, result_zero) = (call.optional(6)?, call.optional(7)?, call.optional(8)?);
    let alpha = call.float_or("alpha", 1.0)?;
    expect_matrices(call, left, right)?;
    let left = if call.flag_or("transA", false)? { call.builder.transpose(left, &[1, 0])? } else { left };
    let right = if call.flag_or("transB", false)? { call.builder.transpose(right, &[1, 0])? } else { right };
    let left = centred(call, left, left_zero, Along::Nothing)?;
    let right = centred(call, right, right_zero, Along::Columns)?;
    let product = call.builder.matmul(left, right)?;
    let sums = call.builder.add_optional(product, bias)?;
    if call.shape(sums) != call.shape(product) {
        return Err(Fault::operands("the bias doesn't broadcast to the product".to_owned()));
    }
    let left_scale = aligned(call, left_scale, 0, Along::Nothing)?;
    let right_scale = aligned(call, right_scale, 2, Along::Columns)?;
    let left_scale =
        if alpha == 1.0 { left_scale } else { call.builder.binary_number(B::Multiply, left_scale, alpha)? };
    match (result_scale, result_zero) {
        (Some(result), Some(zero_point)) => {
            let result = aligned(call, result, 0, Along::Nothing)?;
            requantized(call, sums, Ratio { left: left_scale, right: right_scale, result }, zero_point)
        }
        (None, None) => {
            let scale = call.builder.binary(B::Multiply, left_scale, right_scale)?;
            let sums = call.builder.cast(sums, DType::F32)?;
            Ok(call.builder.binary(B::Multiply, sums, scale)?)
        }
        _ => Err(Fault::operands("the result has a scale or a zero point, both or neither are expected".to_owned())),
    }
}

fn conv_integer(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights) = (call.input(0)?, call.input(1)?);
    let (x_zero, weights_zero) = (call.optional(2)?, call.optional(3)?);
    let x = centred(call, x, x_zero, Along::Nothing)?;
    let weights = centred(call, weights, weights_zero, Along::Channels)?;
    convolution_of(call, x, weights, None)
}

fn qlinear_conv(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, x_scale, x_zero) = (call.input(0)?, call.input(1)?, call.optional(2)?);
    let (weights, weights_scale, weights_zero) = (call.input(3)?, call.input(4)?, call.optional(5)?);
    let (result_scale, result_zero, bias) = (call.input(6)?, call.input(7)?, call.optional(8)?);
    let rank = call.rank(weights);
    let x = centred(call, x, x_zero, Along::Nothing)?;
    let weights = centred(call, weights, weights_zero, Along::Channels)?;
    let sums = convolution_of(call, x, weights, bias)?;
    let ratio = Ratio {
        left: aligned(call, x_scale, 0, Along::Nothing)?,
        // Channels are the second axis of the result.
        right: aligned(call, weights_scale, rank.saturating_sub(1), Along::Channels)?,
        result: aligned(call, result_scale, 0, Along::Nothing)?,
    };
    requantized(call, sums, ratio, result_zero)
}
