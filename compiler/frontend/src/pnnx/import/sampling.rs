//! Reading an image at computed, fractional positions: every neighbour is gathered by its place in the flat image.

use super::call::Call;
use super::registry::{Handler::One, Table};
use crate::fault::Fault;
use mlc_ir::ops::{Convolution, Matmul, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId, UnaryFunction as U};
use mlc_ir::types::row_major_strides;
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("F.affine_grid", One(affine_grid)),
    ("F.grid_sample", One(grid_sample)),
    ("torchvision.ops.DeformConv2d", One(deformable)),
    ("torchvision.ops.RoIAlign", One(roi_align)),
];

/// Largest number of elements of a table of positions that is made at import.
const LARGEST_TABLE: usize = 1 << 26;

/// A constant of numbers.
fn numbers(call: &mut Call<'_>, dtype: DType, shape: &[usize], values: Vec<f64>) -> Value {
    let tensor = Tensor::from_floats(TensorType::new(dtype, shape), values);
    call.builder.constant("numbers", Attribute::from_tensor(&tensor))
}

/// Coordinates of the cells of an axis in -1..1: centres, or with aligned corners from end to end.
fn base_coordinates(cells: usize, align_corners: bool) -> Vec<f64> {
    let place = |cell: usize| match (align_corners, cells) {
        (true, 1) => 0.0,
        (true, _) => 2.0 * cell as f64 / (cells - 1) as f64 - 1.0,
        (false, _) => (2 * cell + 1) as f64 / cells as f64 - 1.0,
    };
    (0..cells).map(place).collect()
}

/// The base grid, with a 1 behind the coordinates x, y(, z), times the transpose of theta [N, k, k + 1].
fn affine_grid(call: &mut Call<'_>) -> Result<Value, Fault> {
    let theta = call.tensor("theta", 0)?;
    let size = call.ints("size")?;
    let size = call.required("size", size)?;
    let align_corners = call.flag_or("align_corners", false)?;
    let extents: Option<Vec<usize>> = size.iter().map(|&extent| usize::try_from(extent).ok()).collect();
    let extents = extents.filter(|extents| matches!(extents.len(), 4 | 5)).map(|extents| extents[2..].to_vec());
    let extents = extents.ok_or_else(|| Fault::parameter(format!("there are no grids of size {size:?}")))?;
    let (axes, shape, dtype) = (extents.len(), call.shape(theta), call.builder.dtype(theta));
    let points = extents.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
    let points =
        points.filter(|&points| points <= LARGEST_TABLE / 4).ok_or_else(|| Fault::variant("the grid is too large"))?;
    let coordinates: Vec<Vec<f64>> = extents.iter().map(|&cells| base_coordinates(cells, align_corners)).collect();
    let strides = row_major_strides(&extents);
    let mut values = Vec::with_capacity(points * (axes + 1));
    for point in 0..points {
        values.extend((0..axes).rev().map(|axis| coordinates[axis][point / strides[axis] % extents[axis]]));
        values.push(1.0);
    }
    let base = numbers(call, dtype, &[points, axes + 1], values);
    let grid = call.builder.apply(Matmul { transpose_left: false, transpose_right: true }, &[base, theta])?;
    let result: Vec<usize> = shape[..1].iter().chain(&extents).chain([&axes]).copied().collect();
    Ok(call.builder.reshape(grid, &result)?)
}

/// An image [N, C, spatial…] as rows [N * positions, C].
struct Image {
    rows: Value,
    extents: Vec<usize>,
    dtype: DType,
}

fn image(call: &mut Call<'_>, x: Value) -> Result<Image, Fault> {
    let shape = call.shape(x);
    if shape.len() < 3 || shape.contains(&0) {
        return Err(Fault::operands(format!("{} isn't an image", call.builder.ty(x))));
    }
    let last = call.builder.to_channels_last(x)?;
    let positions: usize = shape[2..].iter().product();
    let rows = call.builder.reshape(last, &[shape[0] * positions, shape[1]])?;
    Ok(Image { rows, extents: shape[2..].to_vec(), dtype: call.builder.dtype(x) })
}

/// The rows at whole coordinates, one tensor of them per axis, clamped to the image. With `zeros`, zero outside. `first`
/// holds the image's first row for each position.
fn read(call: &mut Call<'_>, image: &Image, first: Value, coordinates: &[Value], zeros: bool) -> Result<Value, Fault> {
    let strides = row_major_strides(&image.extents);
    let (mut row, mut inside) = (first, None);
    for (axis, &coordinate) in coordinates.iter().enumerate() {
        let last = (image.extents[axis] - 1) as f64;
        if zeros {
            let dtype = image.dtype;
            let within = call.builder.map(&[coordinate], |b| {
                let (x, low, high) = (b.operand(0), b.number(dtype, 0.0), b.number(dtype, last));
                let (above, below) = (b.binary(B::GreaterEqual, x, low), b.binary(B::LessEqual, x, high));
                b.binary(B::And, above, below)
            })?;
            inside = Some(match inside {
                Some(others) => call.builder.binary(B::And, others, within)?,
                None => within,
            });
        }
        let clamped = call.builder.clamp(coordinate, 0.0, last)?;
        let index = call.builder.cast(clamped, DType::I64)?;
        let offset = call.builder.binary_number(B::Multiply, index, strides[axis] as f64)?;
        row = call.builder.binary(B::Add, row, offset)?;
    }
    let values = call.builder.gather(image.rows, row, 0)?;
    let Some(inside) = inside else { return Ok(values) };
    let inside = call.builder.insert_axis(inside, call.builder.rank(inside))?;
    let zero = call.builder.number(image.dtype, 0.0);
    Ok(call.builder.select(inside, values, zero)?)
}

/// A whole coordinate of a neighbour with its weight.
type Tap = (Value, Option<Value>);

/// Sums all combinations of the axes' taps by the products of their weights.
fn combine(call: &mut Call<'_>, image: &Image, first: Value, taps: &[Vec<Tap>], zeros: bool) -> Result<Value, Fault> {
    let combinations: usize = taps.iter().map(Vec::len).product();
    let mut sum = None;
    for combination in 0..combinations {
        let mut rest = combination;
        let (mut coordinates, mut weight) = (Vec::new(), None);
        for axis in taps {
            let (coordinate, own) = axis[rest % axis.len()];
            rest /= axis.len();
            coordinates.push(coordinate);
            weight = match (weight, own) {
                (Some(weight), Some(own)) => Some(call.builder.binary(B::Multiply, weight, own)?),
                (weight, own) => weight.or(own),
            };
        }
        let mut value = read(call, image, first, &coordinates, zeros)?;
        if let Some(weight) = weight {
            let weight = call.builder.insert_axis(weight, call.builder.rank(weight))?;
            value = call.builder.binary(B::Multiply, value, weight)?;
        }
        sum = Some(call.builder.add_optional(value, sum)?);
    }
    sum.ok_or_else(|| Fault::operands("the image has no axes"))
}

#[derive(Clone, Copy, PartialEq)]
enum Rim {
    Zeros,
    Border,
    Reflection,
}

/// Mirrors coordinates at the rim: at the outermost elements with aligned corners, else half an element outside.
fn reflected(b: &mut ExpressionBuilder, x: ScalarId, extent: usize, align_corners: bool, dtype: DType) -> ScalarId {
    let (low, span) = if align_corners { (0.0, extent as f64 - 1.0) } else { (-0.5, extent as f64) };
    let zero = b.number(dtype, 0.0);
    if span == 0.0 {
        return b.binary(B::Multiply, x, zero);
    }
    let (low, span, two) = (b.number(dtype, low), b.number(dtype, span), b.number(dtype, 2.0));
    let distance = b.binary(B::Subtract, x, low);
    let distance = b.unary(U::Absolute, distance);
    let extra = b.binary(B::Remainder, distance, span);
    let flips = b.binary(B::FloorDivide, distance, span);
    let odd = b.binary(B::Remainder, flips, two);
    let even = b.binary(B::Equal, odd, zero);
    let mirrored = b.binary(B::Subtract, span, extra);
    let inner = b.select(even, extra, mirrored);
    b.binary(B::Add, inner, low)
}

fn grid_sample(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (x, grid) = (call.x()?, call.tensor("grid", 1)?);
    let mode = call.word("mode")?.unwrap_or_else(|| "bilinear".into());
    let rim = match call.word("padding_mode")?.as_deref() {
        None | Some("zeros") => Rim::Zeros,
        Some("border") => Rim::Border,
        Some("reflection") => Rim::Reflection,
        Some(other) => return Err(Fault::parameter(format!("there is no padding mode {other}"))),
    };
    let align_corners = call.flag_or("align_corners", false)?;
    let image = image(call, x)?;
    let (shape, grid_shape, axes) = (call.shape(x), call.shape(grid), image.extents.len());
    if grid_shape.len() != shape.len() || grid_shape[0] != shape[0] || grid_shape.last() != Some(&axes) {
        let (grid, x) = (call.builder.ty(grid), call.builder.ty(x));
        return Err(Fault::operands(format!("the grid {grid} doesn't fit the image {x}")));
    }
    let points: usize = grid_shape[1..grid_shape.len() - 1].iter().product();
    let positions: usize = image.extents.iter().product();
    let first: Vec<i64> = (0..shape[0]).map(|number| (number * positions) as i64).collect();
    let first = super::indexing::indices(call, &[shape[0], 1], &first)?;
    let mut taps = Vec::new();
    for axis in 0..axes {
        let coordinate = call.builder.pick(grid, grid_shape.len() - 1, axes - 1 - axis)?;
        let coordinate = call.builder.reshape(coordinate, &[shape[0], points])?;
        taps.push(axis_taps(call, &image, axis, coordinate, &mode, rim, align_corners)?);
    }
    let sum = combine(call, &image, first, &taps, rim == Rim::Zeros)?;
    let mut result = grid_shape.to_vec();
    if let Some(last) = result.last_mut() {
        *last = shape[1];
    }
    let sum = call.builder.reshape(sum, &result)?;
    Ok(call.builder.to_channels_first(sum)?)
}

/// The neighbours along an axis of positions given in -1..1.
fn axis_taps(
    call: &mut Call<'_>,
    image: &Image,
    axis: usize,
    grid: Value,
    mode: &str,
    rim: Rim,
    align_corners: bool,
) -> Result<Vec<Tap>, Fault> {
    let (extent, dtype) = (image.extents[axis], image.dtype);
    let last = extent as f64 - 1.0;
    let cubic = mode == "bicubic";
    let source = call.builder.map(&[grid], |b| {
        let (g, one, two) = (b.operand(0), b.number(dtype, 1.0), b.number(dtype, 2.0));
        let shifted = b.binary(B::Add, g, one);
        let mut source = if align_corners {
            let (half, last) = (b.binary(B::Divide, shifted, two), b.number(dtype, last));
            b.binary(B::Multiply, half, last)
        } else {
            let extent = b.number(dtype, extent as f64);
            let scaled = b.binary(B::Multiply, shifted, extent);
            let moved = b.binary(B::Subtract, scaled, one);
            b.binary(B::Divide, moved, two)
        };
        // Bicubic interpolation mirrors each neighbour instead, see below.
        if rim == Rim::Reflection && !cubic {
            source = reflected(b, source, extent, align_corners, dtype);
        }
        if rim != Rim::Zeros && !cubic {
            let (low, high) = (b.number(dtype, 0.0), b.number(dtype, last));
            let above = b.binary(B::Maximum, source, low);
            source = b.binary(B::Minimum, above, high);
        }
        source
    })?;
    match mode {
        "nearest" => Ok(vec![(call.builder.unary(U::Round, source)?, None)]),
        "bilinear" => {
            let floor = call.builder.unary(U::Floor, source)?;
            linear_taps(call, source, floor)
        }
        "bicubic" => cubic_taps(call, source, |call, tap| match rim {
            Rim::Reflection => Ok(call.builder.map(&[tap], |b| {
                let x = b.operand(0);
                reflected(b, x, extent, align_corners, dtype)
            })?),
            Rim::Zeros | Rim::Border => Ok(tap),
        }),
        other => Err(Fault::variant(format!("there is no sampling mode {other}"))),
    }
}

/// The two neighbours of a position, from the lower one.
fn linear_taps(call: &mut Call<'_>, source: Value, floor: Value) -> Result<Vec<Tap>, Fault> {
    let dtype = call.builder.dtype(source);
    let upper = call.builder.binary_number(B::Add, floor, 1.0)?;
    let fraction = call.builder.binary(B::Subtract, source, floor)?;
    let rest = call.builder.map(&[fraction], |b| {
        let (one, x) = (b.number(dtype, 1.0), b.operand(0));
        b.binary(B::Subtract, one, x)
    })?;
    Ok(vec![(floor, Some(rest)), (upper, Some(fraction))])
}

/// Four neighbours by cubic convolution with a = -0.75.
fn cubic_taps(
    call: &mut Call<'_>,
    source: Value,
    mut place: impl FnMut(&mut Call<'_>, Value) -> Result<Value, Fault>,
) -> Result<Vec<Tap>, Fault> {
    let dtype = call.builder.dtype(source);
    let floor = call.builder.unary(U::Floor, source)?;
    let fraction = call.builder.binary(B::Subtract, source, floor)?;
    let mut taps = Vec::new();
    for tap in -1..=2 {
        let coordinate = call.builder.binary_number(B::Add, floor, f64::from(tap))?;
        let coordinate = place(call, coordinate)?;
        let weight = call.builder.map(&[fraction], |b| {
            let (x, tap) = (b.operand(0), b.number(dtype, f64::from(tap)));
            let distance = b.binary(B::Subtract, x, tap);
            let distance = b.unary(U::Absolute, distance);
            cubic_weight(b, distance, tap_is_near(taps.len()), dtype)
        })?;
        taps.push((coordinate, Some(weight)));
    }
    Ok(taps)
}

/// Whether the tap with this number is one of the inner two.
fn tap_is_near(number: usize) -> bool {
    matches!(number, 1 | 2)
}

/// Up to a distance of 1: (a + 2) d^3 - (a + 3) d^2 + 1; up to 2: a (d^3 - 5 d^2 + 8 d - 4).
fn cubic_weight(b: &mut ExpressionBuilder, d: ScalarId, near: bool, dtype: DType) -> ScalarId {
    let a = -0.75;
    let coefficients = if near { [a + 2.0, -(a + 3.0), 0.0, 1.0] } else { [a, -5.0 * a, 8.0 * a, -4.0 * a] };
    let mut sum = b.number(dtype, coefficients[0]);
    for coefficient in &coefficients[1..] {
        let (product, coefficient) = (b.binary(B::Multiply, sum, d), b.number(dtype, *coefficient));
        sum = b.binary(B::Add, product, coefficient);
    }
    sum
}

/// Means of bilinear samples in the cells of boxes [K, 5] = (image, x1, y1, x2, y2).
fn roi_align(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (x, boxes) = (call.x()?, call.tensor("boxes", 1)?);
    let cells = call.spatial("output_size", 2, 1)?;
    let samples = call.int_or("sampling_ratio", -1)?;
    let samples = usize::try_from(samples).ok().filter(|&samples| samples > 0 && samples < 64).ok_or_else(|| {
        Fault::new(
            mlc_ir::Code::DataDependentShape,
            "without `sampling_ratio` the number of samples depends on the boxes",
        )
        .with_help("give a positive `sampling_ratio` in the source model")
    })?;
    let (scale, aligned) = (call.float_or("spatial_scale", 1.0)?, call.flag_or("aligned", false)?);
    let image = image(call, x)?;
    let (shape, box_shape, dtype) = (call.shape(x), call.shape(boxes), image.dtype);
    let [count, 5] = box_shape[..] else {
        return Err(Fault::operands(format!("the boxes {} must be (K, 5)", call.builder.ty(boxes))));
    };
    if shape.len() != 4 || cells.iter().any(|&cells| cells == 0 || cells > 1 << 12) {
        return Err(Fault::operands(format!("cells {cells:?} of the image {} aren't supported", call.builder.ty(x))));
    }
    let number = call.builder.slice_axis(boxes, 1, 0, 1, 1)?;
    let number = call.builder.cast(number, DType::I64)?;
    let first = call.builder.binary_number(B::Multiply, number, (shape[2] * shape[3]) as f64)?;
    let first = call.builder.reshape(first, &[count, 1, 1])?;
    let (mut taps, mut valid) = (Vec::new(), None);
    for axis in 0..2 {
        let positions = box_positions(call, boxes, axis, cells[axis], samples, (scale, aligned))?;
        let mut lined_up = [count, 1, 1];
        lined_up[axis + 1] = cells[axis] * samples;
        let positions = call.builder.reshape(positions, &lined_up)?;
        let extent = image.extents[axis] as f64;
        let within = call.builder.map(&[positions], |b| {
            let (x, low, high) = (b.operand(0), b.number(dtype, -1.0), b.number(dtype, extent));
            let (above, below) = (b.binary(B::GreaterEqual, x, low), b.binary(B::LessEqual, x, high));
            b.binary(B::And, above, below)
        })?;
        valid = Some(match valid {
            Some(others) => call.builder.binary(B::And, others, within)?,
            None => within,
        });
        let clamped = call.builder.clamp(positions, 0.0, extent - 1.0)?;
        let floor = call.builder.unary(U::Floor, clamped)?;
        taps.push(linear_taps(call, clamped, floor)?);
    }
    let sum = combine(call, &image, first, &taps, false)?;
    let valid = call.required("boxes", valid)?;
    let valid = call.builder.insert_axis(valid, 3)?;
    let zero = call.builder.number(dtype, 0.0);
    let sum = call.builder.select(valid, sum, zero)?;
    let split = call.builder.reshape(sum, &[count, cells[0], samples, cells[1], samples, shape[1]])?;
    let mean = Reduce { function: ReduceFunction::Mean, axes: vec![2, 4], keep_axes: false };
    let mean = call.builder.apply(mean, &[split])?;
    Ok(call.builder.to_channels_first(mean)?)
}

/// The samples' positions along an axis, [K, cells * samples].
fn box_positions(
    call: &mut Call<'_>,
    boxes: Value,
    axis: usize,
    cells: usize,
    samples: usize,
    (scale, aligned): (f64, bool),
) -> Result<Value, Fault> {
    let dtype = call.builder.dtype(boxes);
    let start = call.builder.slice_axis(boxes, 1, 2 - axis, 1, 1)?;
    let end = call.builder.slice_axis(boxes, 1, 4 - axis, 1, 1)?;
    let steps: Vec<f64> = (0..cells * samples)
        .map(|sample| (sample / samples) as f64 + ((sample % samples) as f64 + 0.5) / samples as f64)
        .collect();
    let steps = numbers(call, dtype, &[1, steps.len()], steps);
    Ok(call.builder.map(&[start, end, steps], |b| {
        let (scale, offset) = (b.number(dtype, scale), b.number(dtype, if aligned { 0.5 } else { 0.0 }));
        let (start, end, step) = (b.operand(0), b.operand(1), b.operand(2));
        let (start, end) = (b.binary(B::Multiply, start, scale), b.binary(B::Multiply, end, scale));
        let (start, end) = (b.binary(B::Subtract, start, offset), b.binary(B::Subtract, end, offset));
        let mut length = b.binary(B::Subtract, end, start);
        if !aligned {
            let one = b.number(dtype, 1.0);
            length = b.binary(B::Maximum, length, one);
        }
        let count = b.number(dtype, cells as f64);
        let cell = b.binary(B::Divide, length, count);
        let moved = b.binary(B::Multiply, step, cell);
        b.binary(B::Add, start, moved)
    })?)
}

/// A convolution whose taps are moved by offsets (N, 2 * taps, rows, columns), and scaled by an optional mask.
fn deformable(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (x, offsets) = (call.x()?, call.tensor("offset", 1)?);
    let mask = call.optional_tensor("mask", 2)?;
    let (weights, bias) = (call.weight("weight")?, call.optional_weight("bias")?);
    call.ignore(&["in_channels", "out_channels", "kernel_size", "bias"]);
    let groups = call.int_or("groups", 1)?;
    let (strides, dilations) = (call.spatial("stride", 2, 1)?, call.spatial("dilation", 2, 1)?);
    let pads = call.spatial("padding", 2, 0)?;
    let image = image(call, x)?;
    let (shape, offset_shape, weight_shape) = (call.shape(x), call.shape(offsets), call.shape(weights));
    let (&[batch, channels, _, _], &[_, count, rows, columns], &[outputs, inputs, height, width]) =
        (&shape[..], &offset_shape[..], &weight_shape[..])
    else {
        return Err(Fault::operands("input, offsets and weights must have four axes"));
    };
    let taps = height.saturating_mul(width);
    if count != taps.saturating_mul(2) || taps.saturating_mul(rows).saturating_mul(columns) > LARGEST_TABLE {
        return Err(Fault::variant("several groups of offsets aren't supported"));
    }
    let points = taps * rows * columns;
    let split = call.builder.reshape(offsets, &[batch, taps, 2, rows, columns])?;
    let first: Vec<i64> = (0..batch).map(|number| (number * image.extents[0] * image.extents[1]) as i64).collect();
    let first = super::indexing::indices(call, &[batch, 1], &first)?;
    let mut axis_taps = Vec::new();
    for axis in 0..2 {
        let place = |tap: usize, row: usize, column: usize| match axis {
            0 => (row * strides[0] + tap / width * dilations[0]) as f64 - pads[0] as f64,
            _ => (column * strides[1] + tap % width * dilations[1]) as f64 - pads[1] as f64,
        };
        let place = &place;
        let places = (0..taps)
            .flat_map(|tap| (0..rows).flat_map(move |row| (0..columns).map(move |column| place(tap, row, column))));
        let places = numbers(call, image.dtype, &[points], places.collect());
        let offset = call.builder.pick(split, 2, axis)?;
        let offset = call.builder.reshape(offset, &[batch, points])?;
        let source = call.builder.binary(B::Add, offset, places)?;
        let floor = call.builder.unary(U::Floor, source)?;
        axis_taps.push(linear_taps(call, source, floor)?);
    }
    let mut values = combine(call, &image, first, &axis_taps, true)?;
    if let Some(mask) = mask {
        let mask = call.builder.reshape(mask, &[batch, points, 1])?;
        values = call.builder.binary(B::Multiply, values, mask)?;
    }
    // The taps of each place one behind the other: a convolution along one axis that steps by all taps.
    let values = call.builder.reshape(values, &[batch, taps, rows * columns, channels])?;
    let values = call.builder.transpose(values, &[0, 2, 1, 3])?;
    let values = call.builder.reshape(values, &[batch, rows * columns * taps, channels])?;
    let weights = call.builder.transpose(weights, &[2, 3, 1, 0])?;
    let weights = call.builder.reshape(weights, &[taps, inputs, outputs])?;
    let groups = usize::try_from(groups).map_err(|_| Fault::parameter("parameter `groups` must be positive"))?;
    let op = Convolution { strides: vec![taps], dilations: vec![1], pads: vec![(0, 0)], groups };
    let y = call.builder.apply(op, &[values, weights])?;
    let y = call.builder.add_optional(y, bias)?;
    let y = call.builder.reshape(y, &[batch, rows, columns, outputs])?;
    Ok(call.builder.to_channels_first(y)?)
}
