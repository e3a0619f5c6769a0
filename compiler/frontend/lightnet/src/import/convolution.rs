//! Convolutions of images [N, C, rows, columns].

use super::call::{Call, Parameters, Table};
use super::signature::Signature;
use super::signature::Type::{Number, Numbers, Text};
use super::window::{AutomaticPads, Geometry, Pads};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::SlidingWindow;
use mlc_ir::{Code, Value};

pub(super) const OPERATORS: Table = &[
    (
        Signature::new(
            "conv2d",
            &["src", "weight", "bias"],
            &["dst"],
            &[
                ("group", Number),
                ("size", Numbers),
                ("stride", Numbers),
                ("padding", Numbers),
                ("dilation", Numbers),
                ("autopad", Text),
            ],
        ),
        One(convolution),
    ),
    (
        Signature::new(
            "deconv2d",
            &["src", "weight", "bias"],
            &["dst"],
            &[
                ("group", Number),
                ("size", Numbers),
                ("stride", Numbers),
                ("padding", Numbers),
                ("dilation", Numbers),
                ("output_padding", Numbers),
                ("output_dims", Numbers),
                ("autopad", Text),
            ],
        ),
        One(transposed),
    ),
];

/// What both have.
struct Operands {
    x: Value,
    weight: Value,
    bias: Value,
    group: usize,
    geometry: Geometry,
}

fn operands(call: &mut Call<'_, '_>) -> Result<Operands, Fault> {
    let (x, weight, bias) = (call.input(0)?, call.input(1)?, call.input(2)?);
    call.check_rank(0, x, 4)?;
    call.check_rank(1, weight, 4)?;
    call.check_rank(2, bias, 1)?;
    call.check_same_type(x, weight)?;
    call.check_same_type(x, bias)?;
    let group = call.count("group", 1)?;
    let geometry = Geometry {
        size: call.fixed_list("size", 1)?,
        stride: call.fixed_list("stride", 1)?,
        dilation: call.fixed_list("dilation", 1)?,
    };
    if call.shape(weight)[2..] != geometry.size {
        let (ty, size) = (call.builder.ty(weight), geometry.size);
        return Err(Fault::new(Code::ShapeMismatch, format!("`weight` is {ty}, but `size` is {size:?}")));
    }
    Ok(Operands { x, weight, bias, group, geometry })
}

fn check(what: &str, found: usize, expected: usize) -> Result<(), Fault> {
    if found == expected {
        return Ok(());
    }
    Err(Fault::new(Code::ShapeMismatch, format!("{what}: {found} found, {expected} expected")))
}

fn convolution(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Operands { x, weight, bias, group, geometry } = operands(call)?;
    let (shape, weights) = (call.shape(x), call.shape(weight));
    check("channels of `src`, with those of `weight` in each group", shape[1], weights[1].saturating_mul(group))?;
    check("elements of `bias`, one for each result's channel", call.shape(bias)[0], weights[0])?;
    let pads = geometry.pads(call, [shape[2], shape[3]])?;
    let window = window(&geometry, pads, group);
    Ok(call.builder.convolution(x, weight, Some(bias), window)?)
}

fn window(geometry: &Geometry, pads: Pads, groups: usize) -> SlidingWindow {
    let Geometry { stride, dilation, .. } = geometry;
    SlidingWindow { strides: stride.to_vec(), dilations: dilation.to_vec(), pads: pads.to_vec(), groups }
}

/// The inverse of [`convolution`]'s shapes: `output_padding` more elements come behind, without weights of their own.
fn transposed(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Operands { x, weight, bias, group, geometry } = operands(call)?;
    let (shape, weights) = (call.shape(x), call.shape(weight));
    check("channels of `src`, with those of `weight`", shape[1], weights[0])?;
    check("elements of `bias`, one for each result's channel", call.shape(bias)[0], weights[1].saturating_mul(group))?;
    let padding = call.fixed_list::<4>("padding", 0)?;
    let added = call.fixed_list::<2>("output_padding", 0)?;
    let wanted = call.fixed_list::<4>("output_dims", 0)?;
    let is_given = wanted.iter().all(|&extent| extent > 0);
    let automatic = AutomaticPads::read(call)?;
    let is_same = matches!(automatic, AutomaticPads::SameUpper | AutomaticPads::SameLower);
    if is_same && !is_given {
        return Err(Fault::parameter(format!("`autopad` needs all of `output_dims`, found {wanted:?}")));
    }
    // Without pads.
    let full = |axis: usize| {
        let steps = geometry.stride[axis].saturating_mul(shape[2 + axis] - 1);
        steps.saturating_add(added[axis]).saturating_add(geometry.reach(axis))
    };
    let pads = automatic.pads(padding, |axis| full(axis).saturating_sub(wanted[2 + axis]));
    let extent = |axis: usize| full(axis).checked_sub(pads[axis].0 + pads[axis].1).filter(|&extent| extent > 0);
    let (Some(rows), Some(columns)) = (extent(0), extent(1)) else {
        return Err(Fault::parameter(format!("the pads {pads:?} leave nothing of the result")));
    };
    let result = [shape[0], weights[1].saturating_mul(group), rows, columns];
    if is_given && wanted != result {
        let message = format!("`output_dims` is {wanted:?}, but the result is {result:?}");
        return Err(Fault::new(Code::ShapeMismatch, message));
    }
    let window = window(&geometry, pads, group);
    Ok(call.builder.transposed_convolution(x, weight, Some(bias), window, added.to_vec())?)
}
