//! Reading an image at computed, fractional positions.

use super::call::{Call, Operands, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::{RegionPool, SampleMode, SampleRim, SlidingWindow};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("F.affine_grid", One(affine_grid)),
    ("F.grid_sample", One(grid_sample)),
    ("torchvision.ops.DeformConv2d", One(deformable)),
    ("torchvision.ops.RoIAlign", One(roi_align)),
];

fn affine_grid(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let theta = call.labelled_input("theta", 0)?;
    let size = call.ints("size")?;
    let size = call.required("size", size)?;
    let align_corners = call.flag_or("align_corners", false)?;
    let extents: Option<Vec<usize>> = size.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let extents = extents.filter(|extents| matches!(extents.len(), 4 | 5));
    let extents = extents.ok_or_else(|| Fault::parameter(format!("there are no grids of size {size:?}")))?;
    Ok(call.builder.affine_grid(theta, &extents[2..], align_corners)?)
}

fn grid_sample(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, grid) = (call.x()?, call.labelled_input("grid", 1)?);
    let mode = match call.word("mode")?.as_deref() {
        None | Some("bilinear") => SampleMode::Linear,
        Some("nearest") => SampleMode::Nearest,
        Some("bicubic") => SampleMode::Cubic,
        Some(other) => return Err(Fault::variant(format!("there is no sampling mode {other}"))),
    };
    let rim = match call.word("padding_mode")?.as_deref() {
        None | Some("zeros") => SampleRim::Zeros,
        Some("border") => SampleRim::Border,
        Some("reflection") => SampleRim::Reflection,
        Some(other) => return Err(Fault::parameter(format!("there is no padding mode {other}"))),
    };
    let align_corners = call.flag_or("align_corners", false)?;
    Ok(call.builder.grid_sample(x, grid, mode, rim, align_corners)?)
}

/// Means of bilinear samples in the cells of boxes [K, 5] = (image, x1, y1, x2, y2).
fn roi_align(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, boxes) = (call.x()?, call.labelled_input("boxes", 1)?);
    let cells = call.counts("output_size", 2, 1)?;
    let samples = usize::try_from(call.int_or("sampling_ratio", -1)?).unwrap_or(0);
    let (scale, half_pixel) = (call.float_or("spatial_scale", 1.0)?, call.flag_or("aligned", false)?);
    if call.shape(boxes).get(1..) != Some(&[5]) {
        return Err(Fault::operands(format!("the boxes {} must be (K, 5)", call.builder.ty(boxes))));
    }
    let corners = call.builder.slice_axis(boxes, 1, 1, 4, 1)?;
    let images = call.builder.pick(boxes, 1, 0)?;
    let images = call.builder.cast(images, DType::I64)?;
    let pool = RegionPool { cells: [cells[0], cells[1]], samples, scale, half_pixel, maximum: false };
    Ok(call.builder.pool_regions(x, corners, images, &pool)?)
}

/// A convolution whose taps are moved by offsets (N, 2 * taps, rows, columns), and scaled by an optional mask.
fn deformable(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, offsets) = (call.x()?, call.labelled_input("offset", 1)?);
    let mask = call.optional_labelled_input("mask", 2)?;
    let (weights, bias) = (call.weight("weight")?, call.optional_weight("bias")?);
    call.ignore(&["in_channels", "out_channels", "kernel_size", "bias"]);
    let groups = call.int_or("groups", 1)?;
    let groups = usize::try_from(groups).map_err(|_| Fault::parameter("parameter `groups` must be positive"))?;
    let (strides, dilations) = (call.counts("stride", 2, 1)?, call.counts("dilation", 2, 1)?);
    let pads = call.counts("padding", 2, 0)?.into_iter().map(|pad| (pad, pad)).collect();
    let (weight_shape, offset_shape) = (call.shape(weights), call.shape(offsets));
    let [.., height, width] = weight_shape[..] else { return Err(Fault::operands("the weights must have four axes")) };
    let taps = height.saturating_mul(width).saturating_mul(2).max(1);
    let offset_groups = offset_shape.get(1).map_or(0, |count| count / taps);
    let window = SlidingWindow { strides, dilations, pads, groups };
    let y = call.builder.deformable_convolution(x, weights, offsets, mask, &window, offset_groups)?;
    let Some(bias) = bias else { return Ok(y) };
    let outputs = call.builder.ty(bias).elements();
    let bias = call.builder.reshape(bias, &[outputs, 1, 1])?;
    Ok(call.builder.add_optional(bias, Some(y))?)
}
