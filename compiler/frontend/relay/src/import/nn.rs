//! Convolutions and matrix products.

use super::call::{Arguments, Call, Table};
use super::window::{layout_permutation, pads};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;
use mlc_ir::ops::{Convolution, Matmul, TransposedConvolution};
use mlc_ir::scalar::BinaryFunction as B;

pub(super) const OPERATORS: Table = &[
    ("nn.batch_flatten", One(batch_flatten)),
    ("nn.batch_matmul", One(batch_matmul)),
    ("nn.bias_add", One(bias_add)),
    ("nn.conv1d", One(|call| convolution(call, 1))),
    ("nn.conv2d", One(|call| convolution(call, 2))),
    ("nn.conv2d_transpose", One(transposed_convolution)),
    ("nn.conv3d", One(|call| convolution(call, 3))),
    ("nn.dense", One(dense)),
    ("nn.matmul", One(matmul)),
];

/// Letters of the spatial axes, outermost first.
pub(super) fn spatial_letters(spatial: usize) -> &'static str {
    ["", "W", "HW", "DHW"].get(spatial).copied().unwrap_or_default()
}

/// What the attributes of a convolution say, an entry per spatial axis each.
pub(super) struct Geometry {
    op: Convolution,
    data_layout: String,
    out_layout: String,
    kernel_layout: String,
    channels: Option<usize>,
    kernel: Option<Vec<usize>>,
}

impl Geometry {
    pub fn read(call: &mut Call<'_, '_>, spatial: usize) -> Result<Geometry, Fault> {
        let letters = spatial_letters(spatial);
        let strides = call.counts("strides", spatial, 1)?;
        let dilations = call.counts("dilation", spatial, 1)?;
        let pads = pads(call, spatial)?;
        let groups = call.count_or("groups", 1)?;
        let text = |text: &str, default: String| if text.is_empty() { default } else { text.to_owned() };
        let data_layout = text(call.word_or("data_layout", "")?, format!("NC{letters}"));
        let out_layout = text(call.word_or("out_layout", "")?, data_layout.clone());
        let kernel_layout = text(call.word_or("kernel_layout", "")?, format!("OI{letters}"));
        let channels = call.int("channels")?.and_then(|channels| usize::try_from(channels).ok());
        let kernel = match call.attribute("kernel_size") {
            Some(_) => Some(call.counts("kernel_size", spatial, 1)?),
            None => None,
        };
        call.ignore(&["auto_scheduler_rewritten_layout", "meta_schedule_original_shape"]);
        let op = Convolution { strides, dilations, pads, groups, border: 0, sums: None };
        Ok(Geometry { op, data_layout, out_layout, kernel_layout, channels, kernel })
    }

    /// The axis of the channels in the operand.
    pub fn channel_axis(&self) -> usize {
        self.data_layout.find('C').unwrap_or(1)
    }

    /// The axis of the weights that the output channels run along.
    pub fn output_axis(&self) -> usize {
        self.kernel_layout.find('O').unwrap_or(0)
    }

    /// Convolves x of the data layout by weights of the kernel layout.
    pub fn apply(self, call: &mut Call<'_, '_>, x: Value, weights: Value) -> Result<Value, Fault> {
        let spatial = self.op.strides.len();
        let letters = spatial_letters(spatial);
        let channels_last = format!("N{letters}C");
        let (to, back) = (
            layout_permutation(&self.data_layout, &channels_last)?,
            layout_permutation(&channels_last, &self.out_layout)?,
        );
        let weights = self.weights(call, weights, letters)?;
        let shape = call.shape(weights);
        if self.kernel.as_ref().is_some_and(|kernel| kernel[..] != shape[..spatial]) {
            let weights = call.builder.ty(weights);
            return Err(Fault::operands(format!(
                "attribute `kernel_size` doesn't fit the weights, which are {weights}"
            )));
        }
        if self.channels.is_some_and(|channels| channels != shape[spatial + 1]) {
            let weights = call.builder.ty(weights);
            return Err(Fault::operands(format!("attribute `channels` doesn't fit the weights, which are {weights}")));
        }
        let x = call.builder.transpose(x, &to)?;
        let y = call.builder.apply(self.op, &[x, weights])?;
        Ok(call.builder.transpose(y, &back)?)
    }

    /// The weights with the spatial axes first, then a group's channels, then the output channels.
    fn weights(&self, call: &mut Call<'_, '_>, weights: Value, letters: &str) -> Result<Value, Fault> {
        if call.builder.rank(weights) != letters.len() + 2 {
            let weights = call.builder.ty(weights);
            return Err(Fault::operands(format!("the weights {weights} don't have the axes {}", self.kernel_layout)));
        }
        let outputs_first = layout_permutation(&self.kernel_layout, &format!("{letters}OI"))?;
        let weights = call.builder.transpose(weights, &outputs_first)?;
        let shape = call.shape(weights);
        let (outputs, inputs) = (shape[letters.len()], shape[letters.len() + 1]);
        let rank = shape.len();
        // The weights of a depthwise convolution may have the input's channels, and several outputs for each.
        if self.op.groups > 1 && outputs == self.op.groups && inputs > 1 && self.channels == outputs.checked_mul(inputs)
        {
            let mut shape = shape.to_vec();
            (shape[rank - 2], shape[rank - 1]) = (1, outputs * inputs);
            return Ok(call.builder.reshape(weights, &shape)?);
        }
        Ok(call.builder.swap_axes(weights, rank - 2, rank - 1)?)
    }
}

/// The operands in the data type that the result is to have.
fn widened(call: &mut Call<'_, '_>, x: Value, weights: Value) -> Result<(Value, Value), Fault> {
    let Some(dtype) = call.dtype("out_dtype")? else { return Ok((x, weights)) };
    Ok((call.builder.cast(x, dtype)?, call.builder.cast(weights, dtype)?))
}

fn convolution(call: &mut Call<'_, '_>, spatial: usize) -> Result<Value, Fault> {
    let (x, weights) = (call.input(0)?, call.input(1)?);
    let geometry = Geometry::read(call, spatial)?;
    let (x, weights) = widened(call, x, weights)?;
    geometry.apply(call, x, weights)
}

fn transposed_convolution(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights) = (call.input(0)?, call.input(1)?);
    let (x, weights) = widened(call, x, weights)?;
    let (strides, dilations) = (call.counts("strides", 2, 1)?, call.counts("dilation", 2, 1)?);
    let pads = pads(call, 2)?;
    let output_pads = call.counts("output_padding", 2, 0)?;
    let groups = call.count_or("groups", 1)?;
    let data_layout = call.word_or("data_layout", "NCHW")?;
    let out_layout = match call.word_or("out_layout", "")? {
        "" => data_layout,
        layout => layout,
    };
    let kernel_layout = call.word_or("kernel_layout", "IOHW")?;
    call.ignore(&["channels", "kernel_size"]);
    let order = layout_permutation(kernel_layout, "HWIO")?;
    let (to, back) = (layout_permutation(data_layout, "NHWC")?, layout_permutation("NHWC", out_layout)?);
    let weights = call.builder.transpose(weights, &order)?;
    let x = call.builder.transpose(x, &to)?;
    let op = TransposedConvolution { strides, dilations, pads, output_pads, groups, sums: None };
    let y = call.builder.apply(op, &[x, weights])?;
    Ok(call.builder.transpose(y, &back)?)
}

/// x [.., in] by weights [units, in].
fn dense(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights) = (call.input(0)?, call.input(1)?);
    let (x, weights) = widened(call, x, weights)?;
    product(call, x, weights)
}

/// The product by weights [units, in], whose units an attribute may repeat.
pub(super) fn product(call: &mut Call<'_, '_>, x: Value, weights: Value) -> Result<Value, Fault> {
    let units = call.int("units")?;
    call.ignore(&["auto_scheduler_rewritten_layout", "meta_schedule_original_shape"]);
    let shape = call.shape(weights);
    let fits = shape.len() == 2 && units.is_none_or(|units| usize::try_from(units) == Ok(shape[0]));
    if !fits {
        let weights = call.builder.ty(weights);
        return Err(Fault::operands(format!("the weights {weights} don't have {} units", units.unwrap_or(0))));
    }
    Ok(call.builder.apply(Matmul { transpose_left: false, transpose_right: true, sums: None }, &[x, weights])?)
}

fn batch_matmul(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, y) = (call.input(0)?, call.input(1)?);
    let (x, y) = widened(call, x, y)?;
    let op = Matmul {
        transpose_left: call.flag_or("transpose_a", false)?,
        transpose_right: call.flag_or("transpose_b", false)?,
        sums: None,
    };
    Ok(call.builder.apply(op, &[x, y])?)
}

fn matmul(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    call.ignore(&["units"]);
    batch_matmul(call)
}

fn bias_add(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, bias) = (call.input(0)?, call.input(1)?);
    let axis = call.int_or("axis", 1)?;
    let axis = call.axis(x, axis)?;
    let bias = call.builder.along_axis(bias, x, axis)?;
    Ok(call.builder.binary(B::Add, x, bias)?)
}

fn batch_flatten(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let shape = call.shape(x);
    let Some((&batch, rest)) = shape.split_first() else { return Err(Fault::operands("the operand has no axes")) };
    Ok(call.builder.reshape(x, &[batch, rest.iter().product()])?)
}

/// Integers without their zero point, in 32 bits.
pub(super) fn centred(call: &mut Call<'_, '_>, x: Value, zero_point: Value, axis: usize) -> Result<Value, Fault> {
    let zero_point = call.builder.along_axis(zero_point, x, axis)?;
    call.builder.centred(x, Some(zero_point))
}
