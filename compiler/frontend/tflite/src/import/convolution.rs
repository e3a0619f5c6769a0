//! Convolutions: images are channels-last, as in the graph.

use super::call::{Call, Table, Tensors};
use super::linear::{Integers, integers};
use mlc_import::Handler::One;
use mlc_import::builder::Products;
use mlc_import::{Fault, check_filled};
use mlc_ir::Value;
use mlc_ir::ops::{Convolution, TransposedConvolution};

pub(super) const OPERATORS: Table = &[
    ("CONV_2D", One(|call| convolution(call, false))),
    ("CONV_3D", One(volume)),
    ("DEPTHWISE_CONV_2D", One(|call| convolution(call, true))),
    ("TRANSPOSE_CONV", One(transposed)),
];

/// How a window is padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Padding {
    /// As much as gives every step a position.
    Same,
    Valid,
}

impl Padding {
    pub fn read(call: &mut Call<'_, '_>) -> Result<Self, Fault> {
        match call.int_or("padding", 0)? {
            0 => Ok(Padding::Same),
            1 => Ok(Padding::Valid),
            other => Err(Fault::parameter(format!("there is no padding {other}"))),
        }
    }

    /// The pads before and after an axis.
    pub fn pads(self, extent: usize, taps: usize, stride: usize, dilation: usize) -> Result<(usize, usize), Fault> {
        if self == Padding::Valid {
            return Ok((0, 0));
        }
        let total = || {
            let positions = extent.div_ceil(stride);
            let reach = taps.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
            let span = positions.checked_sub(1)?.checked_mul(stride)?.checked_add(reach)?;
            Some(span.saturating_sub(extent))
        };
        let fault = || Fault::parameter(format!("a window of {taps} taps can't slide over {extent} elements"));
        let total = total().ok_or_else(fault)?;
        Ok((total / 2, total - total / 2))
    }
}

/// Two positive numbers among the options, rows before columns.
pub(super) fn pair(call: &mut Call<'_, '_>, rows: &str, columns: &str) -> Result<[usize; 2], Fault> {
    Ok([count_or_one(call, rows)?, count_or_one(call, columns)?])
}

/// A positive number among the options, 1 where there is none.
fn count_or_one(call: &mut Call<'_, '_>, key: &str) -> Result<usize, Fault> {
    positive(key, call.int_or(key, 1)?)
}

/// An option's number, which must be positive.
pub(super) fn positive(key: &str, number: i64) -> Result<usize, Fault> {
    let positive = usize::try_from(number).ok().filter(|&number| number > 0);
    positive.ok_or_else(|| Fault::parameter(format!("option `{key}` is {number}, a positive number is expected")))
}

/// The extents of a tensor with four axes.
pub(super) fn four_axes(call: &Call<'_, '_>, x: Value) -> Result<[usize; 4], Fault> {
    let shape = call.shape(x);
    <[usize; 4]>::try_from(&shape[..])
        .map_err(|_| Fault::operands(format!("{} must have four axes", call.builder.ty(x))))
}

fn convolution(call: &mut Call<'_, '_>, depthwise: bool) -> Result<Value, Fault> {
    let strides = pair(call, "stride_h", "stride_w")?;
    let dilations = pair(call, "dilation_h_factor", "dilation_w_factor")?;
    let padding = Padding::read(call)?;
    let x = call.input(0)?;
    let [_, height, width, channels] = four_axes(call, x)?;
    let operands = integers(call, 0, 1, if depthwise { 3 } else { 0 })?;
    let weights = operands.weights;
    let [outputs, rows, columns, depth] = four_axes(call, weights)?;
    let pads = vec![
        padding.pads(height, rows, strides[0], dilations[0])?,
        padding.pads(width, columns, strides[1], dilations[1])?,
    ];
    let (weights, groups) = if depthwise {
        (call.builder.reshape(weights, &[rows, columns, outputs, depth])?, channels)
    } else {
        (call.builder.transpose(weights, &[1, 2, 3, 0])?, channels.checked_div(depth).unwrap_or(0))
    };
    let op =
        Convolution { strides: strides.to_vec(), dilations: dilations.to_vec(), pads, groups, border: 0, sums: None };
    Integers { weights, ..operands }.apply(call, Products::Convolution(op), 2)
}

/// Depth before rows and columns, of real numbers.
fn volume(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    const AXES: [&str; 3] = ["d", "h", "w"];
    let (x, weights, padding) = (call.input(0)?, call.input(1)?, Padding::read(call)?);
    let bias = call.optional(2)?;
    let (shape, taps) = (call.shape(x), call.shape(weights));
    if shape.len() != 5 || taps.len() != 5 || !call.dtype_of(x).is_float() {
        let (x, weights) = (call.builder.ty(x), call.builder.ty(weights));
        return Err(Fault::operands(format!("{x} and the weights {weights} must have five axes, of real numbers")));
    }
    let (mut strides, mut dilations, mut pads) = (Vec::new(), Vec::new(), Vec::new());
    for (number, axis) in AXES.into_iter().enumerate() {
        let stride = count_or_one(call, &format!("stride_{axis}"))?;
        let dilation = count_or_one(call, &format!("dilation_{axis}_factor"))?;
        pads.push(padding.pads(shape[number + 1], taps[number], stride, dilation)?);
        strides.push(stride);
        dilations.push(dilation);
    }
    let groups = shape[4].checked_div(taps[3]).unwrap_or(0);
    let y =
        call.builder.apply(Convolution { strides, dilations, pads, groups, border: 0, sums: None }, &[x, weights])?;
    let y = call.builder.add_optional(y, bias)?;
    call.activated(y)
}

/// The first operand says the shape of the result.
fn transposed(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let strides = pair(call, "stride_h", "stride_w")?;
    let padding = Padding::read(call)?;
    let shape = call.numbers(0, "the result's shape")?;
    let operands = integers(call, 2, 1, 0)?;
    let (x, weights) = (operands.x.integers, operands.weights);
    let ([_, height, width, _], [_, rows, columns, _]) = (four_axes(call, x)?, four_axes(call, weights)?);
    let wanted =
        |axis: usize| shape.get(axis).and_then(|&extent| usize::try_from(extent).ok()).filter(|&extent| extent > 0);
    let (Some(tall), Some(wide)) = (wanted(1), wanted(2)) else {
        return Err(Fault::operands(format!("the result can't have the shape {shape:?}")));
    };
    check_filled(&[tall, wide])?;
    let (mut pads, mut output_pads) = (Vec::new(), Vec::new());
    for (extent, taps, stride, result) in [(height, rows, strides[0], tall), (width, columns, strides[1], wide)] {
        let full =
            extent.checked_sub(1).and_then(|gaps| gaps.checked_mul(stride)).and_then(|span| span.checked_add(taps));
        let full = full.ok_or_else(|| Fault::operands(format!("{extent} elements can't be spread")))?;
        let cut = full.saturating_sub(result);
        let before = if padding == Padding::Same { cut / 2 } else { 0 };
        pads.push((before, cut - before));
        output_pads.push(result.saturating_sub(full));
    }
    let weights = call.builder.transpose(weights, &[1, 2, 3, 0])?;
    let op = TransposedConvolution {
        strides: strides.to_vec(),
        dilations: vec![1; 2],
        pads,
        output_pads,
        groups: 1,
        sums: None,
    };
    Integers { weights, ..operands }.apply(call, Products::TransposedConvolution(op), 3)
}
