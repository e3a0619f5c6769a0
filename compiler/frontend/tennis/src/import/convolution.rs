//! Convolutions. Weights have no groups: a convolution is full or depthwise.

use super::call::{Call, Parameters, Table};
use super::item::Item;
use super::window::{Layout, Pads};
use super::winograd::stored_weights;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::builder::SlidingWindow;
use mlc_ir::ops::PadMode;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::scalar::UnaryFunction as U;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("conv2d", One(|call| convolution(call, Kind::FULL))),
    ("conv2d_quantized", One(quantized)),
    ("conv2d_v2", One(|call| convolution(call, Kind { pads_are_operand: true, ..Kind::FULL }))),
    ("conv2d_winograd", One(|call| convolution(call, Kind { winograd: true, ..Kind::FULL }))),
    (
        "conv2d_winograd_v2",
        One(|call| convolution(call, Kind { winograd: true, pads_are_operand: true, ..Kind::FULL })),
    ),
    ("dcn_v2_forward", One(deformable)),
    ("depthwise_conv2d", One(|call| convolution(call, Kind { depthwise: true, ..Kind::FULL }))),
    (
        "depthwise_conv2d_v2",
        One(|call| convolution(call, Kind { depthwise: true, pads_are_operand: true, ..Kind::FULL })),
    ),
    ("quantize", One(quantize)),
    ("transpose_conv2d", One(transposed)),
    ("winograd_transform_kernel", Many(winograd_weights)),
];

/// Which convolution it is.
#[derive(Clone, Copy)]
struct Kind {
    depthwise: bool,
    /// Whether the pads are an operand between tensor and weights.
    pads_are_operand: bool,
    winograd: bool,
}

impl Kind {
    const FULL: Kind = Kind { depthwise: false, pads_are_operand: false, winograd: false };
}

/// What all convolutions say besides pads.
struct Geometry {
    strides: [usize; 2],
    dilations: [usize; 2],
    padding_value: f64,
}

impl Geometry {
    fn read(call: &mut Call<'_, '_>) -> Result<Self, Fault> {
        let strides = Layout::ChannelsFirst.step_parameter(call, "stride")?;
        let dilation = if call.has("dilation") { "dilation" } else { "dialations" };
        call.ignore(&["dilation", "dialations"]);
        let dilations = Layout::ChannelsFirst.step_parameter(call, dilation)?;
        let padding_value = call.float_or("padding_value", 0.0)?;
        if call.flag_or("kernel_packed", false)? {
            return Err(Fault::variant("the weights are laid out for a kernel of TenniS's own runtime")
                .with_help("save the module again without packed weights"));
        }
        Ok(Geometry { strides, dilations, padding_value })
    }
}

/// Refuses what the format leaves undefined.
fn check_layout(call: &mut Call<'_, '_>) -> Result<(), Fault> {
    if Layout::read(call)? == Layout::ChannelsLast {
        let message = "convolutions of the format NHWC aren't defined: nothing says how their weights are laid out";
        return Err(Fault::variant(message));
    }
    Ok(())
}

/// The tensor with the pads that a convolution can't have itself, and the pads that it can.
fn padded(call: &mut Call<'_, '_>, x: Value, pads: Pads, value: f64) -> Result<(Value, Vec<(usize, usize)>), Fault> {
    if value == 0.0 {
        let cut = pads.map(|(before, after)| (before.min(0), after.min(0)));
        let x = call.builder.pad(x, &[(0, 0), (0, 0), cut[0], cut[1]], PadMode::Constant, 0.0)?;
        return Ok((x, pads.map(|(before, after)| (before.max(0) as usize, after.max(0) as usize)).to_vec()));
    }
    let x = call.builder.pad(x, &[(0, 0), (0, 0), pads[0], pads[1]], PadMode::Constant, value)?;
    Ok((x, vec![(0, 0); 2]))
}

/// Tensor and weights, which must have one floating-point type.
fn operands(call: &mut Call<'_, '_>, weights: usize) -> Result<(Value, Value), Fault> {
    let (x, weights) = (call.floats_input(0)?, call.input(weights)?);
    check_weights(call, x, weights)?;
    Ok((x, weights))
}

fn check_weights(call: &Call<'_, '_>, x: Value, weights: Value) -> Result<(), Fault> {
    let (ty, expected) = (call.builder.ty(weights), call.builder.ty(x));
    if ty.dtype == expected.dtype && [ty.rank(), expected.rank()] == [4; 2] {
        return Ok(());
    }
    Err(Fault::operands(format!("the weights {ty} don't fit {expected}: four axes and one data type expected")))
}

fn convolution(call: &mut Call<'_, '_>, kind: Kind) -> Result<Value, Fault> {
    let place = if kind.pads_are_operand { 2 } else { 1 };
    let (x, mut weights) = if kind.winograd { winograd_operands(call, place)? } else { operands(call, place)? };
    check_layout(call)?;
    let geometry = if kind.winograd { winograd_geometry(call)? } else { Geometry::read(call)? };
    let pads = if kind.pads_are_operand {
        Layout::ChannelsFirst.pads_operand(call, 1)?
    } else {
        let pads = Layout::ChannelsFirst.pads_parameter(call)?;
        call.required("padding", pads)?
    };
    let channels = call.shape(x)[1];
    if kind.depthwise {
        let shape = call.shape(weights);
        if shape[..2] != [1, channels] {
            let (weights, x) = (call.builder.ty(weights), call.builder.ty(x));
            return Err(Fault::operands(format!("the weights {weights} must be [1, channels, …] for {x}")));
        }
        weights = call.builder.swap_axes(weights, 0, 1)?;
    }
    let (x, pads) = padded(call, x, pads, geometry.padding_value)?;
    let Geometry { strides, dilations, .. } = geometry;
    let groups = if kind.depthwise { channels } else { 1 };
    let window = SlidingWindow { strides: strides.to_vec(), dilations: dilations.to_vec(), pads, groups };
    Ok(call.builder.convolution(x, weights, None, window)?)
}

/// Tensor and weights of a convolution whose weights may be in Winograd's form: as a node of the module makes them, or stored so.
fn winograd_operands(call: &mut Call<'_, '_>, place: usize) -> Result<(Value, Value), Fault> {
    let x = call.floats_input(0)?;
    let transformed = call.flag_or("kernel_winograd_transformed", false)?;
    let weights = match call.item(place) {
        Item::Winograd(weights) if transformed => weights,
        _ if transformed => stored_weights(call, place)?,
        _ => call.input(place)?,
    };
    check_weights(call, x, weights)?;
    if call.shape(weights)[2..] != [3, 3] {
        let ty = call.builder.ty(weights);
        return Err(Fault::operands(format!("the weights {ty} must be 3 x 3, or said to be in Winograd's form")));
    }
    Ok((x, weights))
}

/// A convolution that TenniS's own optimiser made of one with steps of 1.
fn winograd_geometry(call: &mut Call<'_, '_>) -> Result<Geometry, Fault> {
    call.ignore(&["stride", "dilation", "dialations", "kernel_packed", "winograd_mode"]);
    Ok(Geometry { strides: [1; 2], dilations: [1; 2], padding_value: call.float_or("padding_value", 0.0)? })
}

/// The weights as they were: whoever takes their transform takes them.
fn winograd_weights(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let weights = call.floats_input(0)?;
    let mode = call.word("winograd_mode")?.unwrap_or("winograd_f63");
    if !["winograd_f63", "winograd_f23"].contains(&mode) {
        return Err(Fault::parameter(format!("there is no winograd_mode `{mode}`")));
    }
    Ok(vec![Item::Winograd(weights)])
}

fn transposed(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights) = operands(call, 1)?;
    check_layout(call)?;
    let Geometry { strides, dilations, padding_value: _ } = Geometry::read(call)?;
    let pads = Layout::ChannelsFirst.pads_parameter(call)?;
    let pads = call.required("padding", pads)?;
    let cut = |(before, after): (i64, i64)| Some((usize::try_from(before).ok()?, usize::try_from(after).ok()?));
    let cut: Option<Vec<(usize, usize)>> = pads.into_iter().map(cut).collect();
    let pads = cut.ok_or_else(|| Fault::parameter(format!("the pads {pads:?} of the result must not be negative")))?;
    let window = SlidingWindow { strides: strides.to_vec(), dilations: dilations.to_vec(), pads, groups: 1 };
    Ok(call.builder.transposed_convolution(x, weights, None, window, vec![0; 2])?)
}

/// Sums of products of 8-bit integers, each output channel scaled to real numbers.
fn quantized(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights) = (call.input(0)?, call.input(1)?);
    check_weights(call, x, weights)?;
    if call.dtype_of(x) != DType::I8 {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("the operands must hold i8, found {ty}")));
    }
    check_layout(call)?;
    let Geometry { strides, dilations, padding_value } = Geometry::read(call)?;
    let pads = Layout::ChannelsFirst.pads_parameter(call)?;
    let pads = call.required("padding", pads)?;
    let scales = call.floats("dequantize_scales")?;
    let scales = call.required("dequantize_scales", scales)?;
    let outputs = call.shape(weights)[0];
    if scales.len() != outputs {
        let message = format!("parameter `dequantize_scales` has {} numbers, {outputs} expected", scales.len());
        return Err(Fault::parameter(message));
    }
    let (x, pads) = padded(call, x, pads, padding_value)?;
    let (x, weights) = (call.builder.cast(x, DType::I32)?, call.builder.cast(weights, DType::I32)?);
    let window = SlidingWindow { strides: strides.to_vec(), dilations: dilations.to_vec(), pads, groups: 1 };
    let sums = call.builder.convolution(x, weights, None, window)?;
    let sums = call.builder.cast(sums, DType::F32)?;
    let scales = call.builder.numbers(DType::F32, &[outputs, 1, 1], scales);
    Ok(call.builder.binary(B::Multiply, sums, scales)?)
}

/// Products with a scale for each entry of the first axis, halves away from zero, within the range of i8.
fn quantize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.floats_input(0)?;
    let (dtype, shape) = (call.dtype_of(x), call.shape(x));
    let scales = call.floats("quantize_scale")?;
    let scales = call.required("quantize_scale", scales)?;
    if shape.first().copied().unwrap_or(1) != scales.len() {
        let ty = call.builder.ty(x);
        return Err(Fault::parameter(format!("parameter `quantize_scale` has {} numbers for {ty}", scales.len())));
    }
    let mut broadcast = vec![1; shape.len()];
    if let Some(first) = broadcast.first_mut() {
        *first = scales.len();
    }
    let scales = call.builder.numbers(dtype, &broadcast, scales);
    let rounded = call.builder.map(&[x, scales], |b| {
        let (x, scale, half) = (b.operand(0), b.operand(1), b.number(dtype, 0.5));
        let scaled = b.binary(B::Multiply, x, scale);
        let (magnitude, sign) = (b.unary(U::Absolute, scaled), b.unary(U::Sign, scaled));
        let moved = b.binary(B::Add, magnitude, half);
        let whole = b.unary(U::Floor, moved);
        b.binary(B::Multiply, whole, sign)
    })?;
    Ok(call.builder.cast(rounded, DType::I8)?)
}

/// A convolution whose taps are moved and scaled by data.
fn deformable(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights) = operands(call, 1)?;
    let (bias, offsets, mask) = (call.input(2)?, call.input(3)?, call.input(4)?);
    if call.has("format") {
        check_layout(call)?;
    }
    let Geometry { strides, dilations, padding_value } = Geometry::read(call)?;
    let pads = Layout::ChannelsFirst.pads_parameter(call)?;
    let pads = call.required("padding", pads)?;
    let groups = call.count_or("deformable_groups", 1)?;
    if pads.iter().any(|&(before, after)| before < 0 || after < 0) || padding_value != 0.0 {
        return Err(Fault::parameter(format!("the pads {pads:?} of {padding_value} must be zeros, and not negative")));
    }
    let pads = pads.map(|(before, after)| (before as usize, after as usize)).to_vec();
    let window = SlidingWindow { strides: strides.to_vec(), dilations: dilations.to_vec(), pads, groups: 1 };
    let y = call.builder.deformable_convolution(x, weights, offsets, Some(mask), &window, groups)?;
    let bias = super::activation::vector(call, bias, y, 1)?;
    Ok(call.builder.binary(B::Add, y, bias)?)
}
