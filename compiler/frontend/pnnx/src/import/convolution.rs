//! Convolutions and transposed convolutions, as modules with weights and as functions of weights.

use super::call::{Call, Operands, Table};
use super::format::Pnnx;
use super::padding::pad_mode;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::SlidingWindow;
use mlc_import::counts;
use mlc_ir::ops::PadMode;
use mlc_ir::{Code, Value};

pub(super) const OPERATORS: Table = &[
    ("F.conv1d", One(|call| convolution(call, 1))),
    ("F.conv2d", One(|call| convolution(call, 2))),
    ("F.conv3d", One(|call| convolution(call, 3))),
    ("F.conv_transpose1d", One(|call| transposed(call, 1))),
    ("F.conv_transpose2d", One(|call| transposed(call, 2))),
    ("F.conv_transpose3d", One(|call| transposed(call, 3))),
    ("nn.Conv1d", One(|call| convolution(call, 1))),
    ("nn.Conv2d", One(|call| convolution(call, 2))),
    ("nn.Conv3d", One(|call| convolution(call, 3))),
    ("nn.ConvTranspose1d", One(|call| transposed(call, 1))),
    ("nn.ConvTranspose2d", One(|call| transposed(call, 2))),
    ("nn.ConvTranspose3d", One(|call| transposed(call, 3))),
];

/// Weights and bias, of the module or as operands.
fn weights(call: &mut Call<'_, '_>, spatial: usize) -> Result<(Value, Option<Value>), Fault> {
    let (weights, bias) = if call.site.operator.kind.starts_with("nn.") {
        let weights = call.weight("weight")?;
        let bias = if call.flag_or("bias", true)? { Some(call.weight("bias")?) } else { None };
        (weights, bias)
    } else {
        let weights = call.labelled_input("weight", 1)?;
        let bias = call.optional_labelled_input("bias", 2)?;
        call.ignore(&["bias"]);
        (weights, bias)
    };
    let ty = call.builder.ty(weights);
    if ty.rank() != spatial + 2 {
        return Err(Fault::operands(format!("the weights {ty} must have {} axes", spatial + 2)));
    }
    Ok((weights, bias))
}

/// Checks a parameter that repeats an extent of the weights.
fn agrees(call: &mut Call<'_, '_>, key: &str, found: usize) -> Result<(), Fault> {
    match call.int(key)? {
        Some(expected) if usize::try_from(expected) != Ok(found) => {
            Err(Fault::new(Code::ShapeMismatch, format!("parameter `{key}` is {expected}, the weights have {found}")))
        }
        _ => Ok(()),
    }
}

/// The input with a batch axis, and whether that was added.
pub(super) fn batched(call: &mut Call<'_, '_>, x: Value, spatial: usize) -> Result<(Value, bool), Fault> {
    match call.builder.rank(x) {
        rank if rank == spatial + 2 => Ok((x, false)),
        rank if rank == spatial + 1 => Ok((call.builder.insert_axis(x, 0)?, true)),
        _ => {
            let ty = call.builder.ty(x);
            Err(Fault::operands(format!(
                "the input {ty} must have {} axes, or {} without a batch",
                spatial + 2,
                spatial + 1
            )))
        }
    }
}

/// Removes the batch axis if it was added.
pub(super) fn unbatched(call: &mut Call<'_, '_>, y: Value, added: bool) -> Result<Value, Fault> {
    Ok(if added { call.builder.remove_axis(y, 0)? } else { y })
}

fn groups(call: &mut Call<'_, '_>) -> Result<usize, Fault> {
    let groups = usize::try_from(call.int_or("groups", 1)?).ok().filter(|&groups| groups > 0);
    groups.ok_or_else(|| Fault::parameter("parameter `groups` must be positive"))
}

fn convolution(call: &mut Call<'_, '_>, spatial: usize) -> Result<Value, Fault> {
    let x = call.x()?;
    let (weights, bias) = weights(call, spatial)?;
    let (x, added) = batched(call, x, spatial)?;
    let shape = call.shape(weights);
    let groups = groups(call)?;
    agrees(call, "out_channels", shape[0])?;
    agrees(call, "in_channels", shape[1].saturating_mul(groups))?;
    check_kernel(call, &shape[2..])?;
    let strides = call.counts("stride", spatial, 1)?;
    let dilations = call.counts("dilation", spatial, 1)?;
    let mut pads = pads(call, &shape[2..], &dilations)?;
    let mode = match call.word("padding_mode")? {
        Some(mode) => pad_mode(&mode)?,
        None => PadMode::Constant,
    };
    let mut x = x;
    if mode != PadMode::Constant {
        let all: Vec<(i64, i64)> =
            [(0, 0); 2].into_iter().chain(pads.iter().map(|&(before, after)| (before as i64, after as i64))).collect();
        x = call.builder.pad(x, &all, mode, 0.0)?;
        pads = vec![(0, 0); spatial];
    }
    let window = SlidingWindow { strides, dilations, pads, groups };
    let y = call.builder.convolution(x, weights, bias, window)?;
    unbatched(call, y, added)
}

fn check_kernel(call: &mut Call<'_, '_>, window: &[usize]) -> Result<(), Fault> {
    let Some(kernel) = call.ints("kernel_size")? else { return Ok(()) };
    let kernel = counts::<Pnnx>("kernel_size", &kernel, window.len())?;
    if kernel != window {
        let message = format!("parameter `kernel_size` is {kernel:?}, the weights have {window:?}");
        return Err(Fault::new(Code::ShapeMismatch, message));
    }
    Ok(())
}

/// Pads as numbers, or from the words `same` and `valid`.
fn pads(call: &mut Call<'_, '_>, window: &[usize], dilations: &[usize]) -> Result<Vec<(usize, usize)>, Fault> {
    if let Some(super::item::Item::Word(word)) = call.argument("padding") {
        return match word.as_str() {
            "valid" => Ok(vec![(0, 0); window.len()]),
            // The smaller half of an odd total goes in front.
            "same" => Ok(window
                .iter()
                .zip(dilations)
                .map(|(&taps, &dilation)| dilation.saturating_mul(taps.saturating_sub(1)))
                .map(|total| (total / 2, total - total / 2))
                .collect()),
            _ => Err(Fault::parameter(format!("parameter `padding` must be numbers, same or valid, found {word}"))),
        };
    }
    let pads = call.counts("padding", window.len(), 0)?;
    Ok(pads.into_iter().map(|pad| (pad, pad)).collect())
}

fn transposed(call: &mut Call<'_, '_>, spatial: usize) -> Result<Value, Fault> {
    let x = call.x()?;
    let (weights, bias) = weights(call, spatial)?;
    let (x, added) = batched(call, x, spatial)?;
    let shape = call.shape(weights);
    let groups = groups(call)?;
    agrees(call, "in_channels", shape[0])?;
    agrees(call, "out_channels", shape[1].saturating_mul(groups))?;
    check_kernel(call, &shape[2..])?;
    let strides = call.counts("stride", spatial, 1)?;
    let dilations = call.counts("dilation", spatial, 1)?;
    let output_pads = call.counts("output_padding", spatial, 0)?;
    let pads = call.counts("padding", spatial, 0)?.into_iter().map(|pad| (pad, pad)).collect();
    if let Some(mode) = call.word("padding_mode")?
        && mode != "zeros"
    {
        return Err(Fault::parameter(format!("a transposed convolution has no padding mode {mode}")));
    }
    let window = SlidingWindow { strides, dilations, pads, groups };
    let y = call.builder.transposed_convolution(x, weights, bias, window, output_pads)?;
    unbatched(call, y, added)
}
