//! Convolutions and transposed convolutions.

use super::call::{Call, Table};
use super::window::{
    AutoPad, agreeing_pads, given_pads, pads, reach, spatial_list, spatial_rank, strides_and_dilations,
};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::SlidingWindow;
use mlc_ir::{Code, Value};

pub(super) const OPERATORS: Table = &[("Conv", 1, One(convolution)), ("ConvTranspose", 1, One(transposed))];

/// What both kinds have in common.
struct Operands {
    x: Value,
    weights: Value,
    bias: Option<Value>,
    groups: usize,
    /// Extents of the window.
    window: Vec<usize>,
}

/// Checks x [N, C, spatial…], weights of the same rank, and the bias, whose extent is `outputs` of weights and groups.
fn operands(
    call: &mut Call<'_, '_>,
    (x, weights, bias): (Value, Value, Option<Value>),
    outputs: impl Fn(&[usize], usize) -> Option<usize>,
) -> Result<Operands, Fault> {
    let spatial = spatial_rank(call, x)?;
    let shape = call.shape(weights);
    if shape.len() != spatial + 2 {
        let (weights, x) = (call.builder.ty(weights), call.builder.ty(x));
        return Err(Fault::operands(format!("the weights {weights} and the input {x} must have equally many axes")));
    }
    let groups = usize::try_from(call.int_or("group", 1)?).ok().filter(|&groups| groups > 0);
    let groups = groups.ok_or_else(|| Fault::parameter("attribute `group` must be positive"))?;
    let window = shape[2..].to_vec();
    if let Some(kernel) = spatial_list(call, "kernel_shape", spatial, 0)?
        && kernel != window
    {
        let message = format!("attribute `kernel_shape` is {kernel:?}, the weights have {window:?}");
        return Err(Fault::new(Code::ShapeMismatch, message));
    }
    if let Some(bias) = bias
        && outputs(&shape, groups).is_none_or(|outputs| call.shape(bias)[..] != [outputs])
    {
        let (bias, weights) = (call.builder.ty(bias), call.builder.ty(weights));
        return Err(Fault::operands(format!("the bias {bias} doesn't fit the weights {weights}")));
    }
    Ok(Operands { x, weights, bias, groups, window })
}

fn convolution(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights, bias) = (call.input(0)?, call.input(1)?, call.optional(2)?);
    convolution_of(call, x, weights, bias)
}

/// Convolution of tensors that the operands stand for, with the operator's attributes.
pub(super) fn convolution_of(
    call: &mut Call<'_, '_>,
    x: Value,
    weights: Value,
    bias: Option<Value>,
) -> Result<Value, Fault> {
    let Operands { x, weights, bias, groups, window } =
        operands(call, (x, weights, bias), |weights, _| weights.first().copied())?;
    let (strides, dilations) = strides_and_dilations(call, window.len())?;
    let extents = call.shape(x);
    let pads = pads(call, &extents[2..], &window, &strides, &dilations)?;
    let window = SlidingWindow { strides, dilations, pads, groups };
    Ok(call.builder.convolution(x, weights, bias, window)?)
}

fn transposed(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let given = (call.input(0)?, call.input(1)?, call.optional(2)?);
    let Operands { x, weights, bias, groups, window } =
        operands(call, given, |weights, groups| weights.get(1)?.checked_mul(groups))?;
    let spatial = window.len();
    let (strides, dilations) = strides_and_dilations(call, spatial)?;
    let mut output_pads = spatial_list(call, "output_padding", spatial, 0)?.unwrap_or_else(|| vec![0; spatial]);
    let extents = call.shape(x);
    let full = (0..spatial).map(|axis| {
        let last = extents[axis + 2].checked_sub(1)?.checked_mul(strides[axis])?;
        last.checked_add(reach(window[axis], dilations[axis])?)?.checked_add(output_pads[axis])
    });
    let full: Option<Vec<usize>> = full.collect();
    let full = full.ok_or_else(|| Fault::operands(format!("the input {} is empty", call.builder.ty(x))))?;
    let pads = transposed_pads(call, &extents[2..], &strides, &full, &mut output_pads)?;
    let window = SlidingWindow { strides, dilations, pads, groups };
    Ok(call.builder.transposed_convolution(x, weights, bias, window, output_pads)?)
}

/// The elements to cut off from results of extents `full`, so that those remain that the attributes ask for. Where they ask
/// for more, the rest is added to the pads behind.
fn transposed_pads(
    call: &mut Call<'_, '_>,
    extents: &[usize],
    strides: &[usize],
    full: &[usize],
    output_pads: &mut [usize],
) -> Result<Vec<(usize, usize)>, Fault> {
    let auto_pad = AutoPad::read(call)?;
    let given = given_pads(call, extents.len())?;
    let sizes = match (output_shape(call, extents.len())?, auto_pad) {
        (Some(sizes), _) => sizes,
        (None, AutoPad::NotSet) => return Ok(given.unwrap_or_else(|| vec![(0, 0); extents.len()])),
        (None, AutoPad::Valid) => return agreeing_pads(given, vec![(0, 0); extents.len()]),
        (None, AutoPad::SameUpper | AutoPad::SameLower) => {
            extents.iter().zip(strides).map(|(&extent, &stride)| extent.saturating_mul(stride)).collect()
        }
    };
    let mut cut = Vec::new();
    for (axis, (&full, &size)) in full.iter().zip(&sizes).enumerate() {
        match full.checked_sub(size) {
            Some(total) => cut.push(auto_pad.split(total)),
            None if auto_pad == AutoPad::NotSet => {
                cut.push((0, 0));
                output_pads[axis] = output_pads[axis].saturating_add(size - full);
            }
            // On which side negative pads are rounded up isn't said, and implementations differ.
            None => {
                return Err(Fault::variant(format!(
                    "the result is to have {size} elements on spatial axis {axis}, but the windows only reach {full}"
                ))
                .with_help("give pads and output_padding instead of auto_pad"));
            }
        }
    }
    // Beside output_shape the standard ignores pads.
    if auto_pad == AutoPad::NotSet { Ok(cut) } else { agreeing_pads(given, cut) }
}

/// The extents that the result is to have. Some writers give those of batch and channels, too.
fn output_shape(call: &mut Call<'_, '_>, spatial: usize) -> Result<Option<Vec<usize>>, Fault> {
    let Some(list) = call.ints("output_shape")? else { return Ok(None) };
    let sizes: Option<Vec<usize>> = list.iter().map(|&size| usize::try_from(size).ok()).collect();
    match sizes {
        Some(sizes) if sizes.is_empty() => Ok(None),
        Some(sizes) if sizes.len() == spatial => Ok(Some(sizes)),
        Some(sizes) if sizes.len() == spatial + 2 => Ok(Some(sizes[2..].to_vec())),
        _ => Err(Fault::parameter(format!("attribute `output_shape` must be {spatial} extents, found {list:?}"))),
    }
}
