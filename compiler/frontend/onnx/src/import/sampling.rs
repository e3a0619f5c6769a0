//! Reading images at computed, fractional positions.

use super::call::{Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::{RegionPool, SampleMode, SampleRim, SlidingWindow};
use mlc_ir::{Code, Value};

pub(super) const OPERATORS: Table = &[
    ("AffineGrid", 20, One(affine_grid)),
    ("DeformConv", 19, One(deformable_convolution)),
    ("GridSample", 16, One(grid_sample)),
    ("RoiAlign", 10, One(roi_align)),
];

fn affine_grid(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let theta = call.input(0)?;
    let size = call.constant_ints(1, "the size of the grid")?.unwrap_or_default();
    let align_corners = call.flag_or("align_corners", false)?;
    let extents: Option<Vec<usize>> = size.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let extents = extents.filter(|extents| matches!(extents.len(), 4 | 5));
    let extents = extents.ok_or_else(|| Fault::operands(format!("there are no grids of size {size:?}")))?;
    Ok(call.builder.affine_grid(theta, &extents[2..], align_corners)?)
}

fn grid_sample(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, grid) = (call.input(0)?, call.input(1)?);
    let mode = match call.word("mode")? {
        None | Some("bilinear" | "linear") => SampleMode::Linear,
        Some("nearest") => SampleMode::Nearest,
        Some("bicubic" | "cubic") => SampleMode::Cubic,
        Some(other) => return Err(Fault::parameter(format!("there is no sampling mode `{other}`"))),
    };
    let rim = match call.word("padding_mode")? {
        None | Some("zeros") => SampleRim::Zeros,
        Some("border") => SampleRim::Border,
        Some("reflection") => SampleRim::Reflection,
        Some(other) => return Err(Fault::parameter(format!("there is no padding mode `{other}`"))),
    };
    let align_corners = call.flag_or("align_corners", false)?;
    Ok(call.builder.grid_sample(x, grid, mode, rim, align_corners)?)
}

fn roi_align(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, corners, images) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let maximum = match call.word("mode")? {
        None | Some("avg") => false,
        Some("max") => true,
        Some(other) => return Err(Fault::parameter(format!("there is no mode `{other}`"))),
    };
    let default = if call.version() < 16 { "output_half_pixel" } else { "half_pixel" };
    let half_pixel = match call.word("coordinate_transformation_mode")?.unwrap_or(default) {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => return Err(Fault::parameter(format!("there are no coordinates `{other}`"))),
    };
    let sizes = [call.int_or("output_height", 1)?, call.int_or("output_width", 1)?, call.int_or("sampling_ratio", 0)?];
    let [Ok(rows), Ok(columns), Ok(samples)] = sizes.map(usize::try_from) else {
        return Err(Fault::parameter("output_height, output_width and sampling_ratio must not be negative"));
    };
    if samples == 0 && maximum {
        let message = "without `sampling_ratio` the number of samples, whose largest counts, depends on the regions";
        return Err(Fault::new(Code::DataDependentShape, message)
            .with_help("give a positive `sampling_ratio` in the source model, or take means"));
    }
    let scale = call.float_or("spatial_scale", 1.0)?;
    let pool = RegionPool { cells: [rows, columns], samples, scale, half_pixel, maximum };
    Ok(call.builder.pool_regions(x, corners, images, &pool)?)
}

/// A list with one whole number per entry that an attribute has by default.
fn list(call: &mut Call<'_, '_>, key: &'static str, default: usize, length: usize) -> Result<Vec<usize>, Fault> {
    let Some(values) = call.ints(key)? else { return Ok(vec![default; length]) };
    let found: Option<Vec<usize>> = values.iter().map(|&value| usize::try_from(value).ok()).collect();
    found.filter(|found| found.len() == length).ok_or_else(|| {
        Fault::parameter(format!("attribute `{key}` must be {length} numbers that aren't negative, found {values:?}"))
    })
}

fn deformable_convolution(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights, offsets) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let (bias, mask) = (call.optional(3)?, call.optional(4)?);
    call.ignore(&["kernel_shape"]);
    let (strides, dilations) = (list(call, "strides", 1, 2)?, list(call, "dilations", 1, 2)?);
    let pads = list(call, "pads", 0, 4)?;
    let counts = [call.int_or("group", 1)?, call.int_or("offset_group", 1)?];
    let [Ok(groups), Ok(offset_groups)] = counts.map(usize::try_from) else {
        return Err(Fault::parameter("group and offset_group must not be negative"));
    };
    let pads = vec![(pads[0], pads[2]), (pads[1], pads[3])];
    let window = SlidingWindow { strides, dilations, pads, groups };
    let y = call.builder.deformable_convolution(x, weights, offsets, mask, &window, offset_groups)?;
    let Some(bias) = bias else { return Ok(y) };
    let outputs = call.builder.ty(bias).elements();
    let bias = call.builder.reshape(bias, &[outputs, 1, 1])?;
    Ok(call.builder.add_optional(bias, Some(y))?)
}
