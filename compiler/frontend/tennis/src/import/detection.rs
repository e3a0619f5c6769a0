//! What networks that detect objects and landmarks have besides.

use super::call::{Call, Parameters, Table};
use super::item::Item;
use super::padding::not_four_axes;
use super::prior::prior_boxes;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::builder::RegionPool;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("prior_box", One(prior_boxes)),
    ("roi_align", One(regions)),
    ("shape_index_patch", One(patches)),
    ("yolo", Many(yolo)),
];

/// x [N, anchors * (5 + classes), H, W] with its coordinates, certainties and classes as shares; then the numbers of classes, and
/// which anchors they are.
fn yolo(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.floats_input(0)?;
    let classes = call.required_int("classes")?;
    let (mask, anchors) = (call.required_ints("mask")?, call.floats("anchors")?);
    let anchors = call.required("anchors", anchors)?;
    let shape = call.shape(x);
    let own = usize::try_from(classes).ok().and_then(|classes| classes.checked_add(5)).unwrap_or(usize::MAX);
    if shape.len() != 4 || mask.is_empty() || own.checked_mul(mask.len()) != Some(shape[1]) {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("{ty} doesn't hold {} anchors of {classes} classes", mask.len())));
    }
    let split = [shape[0], mask.len(), own, shape[2], shape[3]];
    let split = call.builder.reshape(x, &split)?;
    let parts = call.builder.split(split, 2, &[2, 2, own - 4])?;
    let (place, certainty) = (call.builder.unary(U::Sigmoid, parts[0])?, call.builder.unary(U::Sigmoid, parts[2])?);
    let y = call.builder.concat(&[place, parts[1], certainty], 2)?;
    let y = call.builder.reshape(y, &shape)?;
    let classes = call.constant_of_ints(&[], &[classes]);
    let mask = call.constant_of_ints(&[mask.len()], &mask);
    let anchors = call.builder.numbers(DType::F32, &[anchors.len()], anchors);
    Ok(vec![Item::packed([y, classes, mask, anchors])])
}

/// Means of samples in the cells of regions [K, 5]: number of the image, x1, y1, x2, y2.
fn regions(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, regions) = (call.floats_input(0)?, call.input(1)?);
    if !matches!(call.shape(regions)[..], [_, 5]) {
        let ty = call.builder.ty(regions);
        return Err(Fault::operands(format!(
            "the regions {ty} must have a number of an image and four coordinates each"
        )));
    }
    let pool = RegionPool {
        cells: [count(call, "pool_h")?, count(call, "pool_w")?],
        samples: call.count_or("sampling_ratio", 2)?,
        scale: call.float_or("spatial_scale", 1.0)?,
        half_pixel: false,
        maximum: false,
    };
    let images = call.builder.pick(regions, 1, 0)?;
    let images = call.builder.cast(images, DType::I64)?;
    let corners = call.builder.slice_axis(regions, 1, 1, 4, 1)?;
    Ok(call.builder.pool_regions(x, corners, images, &pool)?)
}

fn count(call: &mut Call<'_, '_>, key: &str) -> Result<usize, Fault> {
    let number = call.required_int(key)?;
    let count = usize::try_from(number).ok().filter(|&count| (1..1 << 31).contains(&count));
    count.ok_or_else(|| Fault::parameter(format!("parameter `{key}` is {number}, at least 1 expected")))
}

/// Most elements that patches are read at.
const MOST_PLACES: usize = 1 << 24;

/// A patch of the features [n, c, h, w] around each of L landmarks [n, 2L, 1, 1], whose coordinates are shares of the image:
/// [n, c, rows, L, columns]. What is outside of the image is 0.
fn patches(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, landmarks) = (call.floats_input(0)?, call.input(1)?);
    let &[batch, channels, height, width] = &call.shape(x)[..] else { return Err(not_four_axes(call, x)) };
    let (patch, origin) = (call.required_list("origin_patch", 2)?, call.required_list("origin", 2)?);
    let &[images, coordinates, 1, 1] = &call.shape(landmarks)[..] else { return Err(not_four_axes(call, landmarks)) };
    let extent = |axis: usize, extent: usize| {
        let share = patch[axis] as f32 * extent as f32 / origin[axis] as f32;
        (share + 0.5) as usize
    };
    let sizes = [extent(0, height), extent(1, width)];
    let count = coordinates / 2;
    let places = sizes[0].saturating_mul(sizes[1]).saturating_mul(count).saturating_mul(batch);
    let positive = origin.iter().chain(&patch).all(|&number| number > 0) && !sizes.contains(&0);
    let dtype = call.dtype_of(x);
    let fits = images == batch && coordinates % 2 == 0 && call.dtype_of(landmarks) == dtype;
    if !positive || !fits || places > MOST_PLACES || height * width == 0 {
        let (x, landmarks) = (call.builder.ty(x), call.builder.ty(landmarks));
        let message = format!("patches of {patch:?} by {origin:?} of {x} around {landmarks} aren't defined");
        return Err(Fault::operands(message));
    }
    let pairs = call.builder.reshape(landmarks, &[batch, 1, count, 1, 2])?;
    let (row, row_is_inside) = line(call, pairs, 1, height, sizes[0])?;
    let (column, column_is_inside) = line(call, pairs, 0, width, sizes[1])?;
    // Rows run along axis 1, columns along axis 3 of [n, rows, L, columns].
    let row = call.builder.transpose(row, &[0, 3, 2, 1])?;
    let row_is_inside = call.builder.transpose(row_is_inside, &[0, 3, 2, 1])?;
    let rows = call.builder.binary_number(B::Multiply, row, width as f64)?;
    let flat = call.builder.binary(B::Add, rows, column)?;
    let count_of_image = sizes[0] * count * sizes[1];
    let flat = call.builder.reshape(flat, &[batch, 1, count_of_image])?;
    let flat = call.builder.broadcast(flat, &[batch, channels, count_of_image])?;
    let image = call.builder.reshape(x, &[batch, channels, height * width])?;
    let read = call.builder.gather_elements(image, flat, 2)?;
    let read = call.builder.reshape(read, &[batch, channels, sizes[0], count, sizes[1]])?;
    let inside = call.builder.binary(B::And, row_is_inside, column_is_inside)?;
    let inside = call.builder.reshape(inside, &[batch, 1, sizes[0], count, sizes[1]])?;
    let zero = call.builder.number(dtype, 0.0);
    Ok(call.builder.select(inside, read, zero)?)
}

/// Places of patches of `size` along an axis of `extent` elements, kept inside, and whether they were: both [n, 1, L, size].
fn line(
    call: &mut Call<'_, '_>,
    pairs: Value,
    coordinate: usize,
    extent: usize,
    size: usize,
) -> Result<(Value, Value), Fault> {
    let centre = call.builder.pick(pairs, 4, coordinate)?;
    let dtype = call.dtype_of(centre);
    let first = call.builder.map(&[centre], |b| {
        let (centre, last) = (b.operand(0), b.number(dtype, extent as f64 - 1.0));
        let place = b.binary(B::Multiply, centre, last);
        let moved = b.number(dtype, 0.5 - (size as f64 - 1.0) / 2.0);
        let moved = b.binary(B::Add, place, moved);
        b.cast(DType::I64, moved)
    })?;
    let steps = call.builder.counting(size)?;
    let place = call.builder.binary(B::Add, first, steps)?;
    let inside = call.builder.map(&[place], |b| {
        let (place, zero, end) = (b.operand(0), b.number(DType::I64, 0.0), b.number(DType::I64, extent as f64));
        let (from, to) = (b.binary(B::GreaterEqual, place, zero), b.binary(B::Less, place, end));
        b.binary(B::And, from, to)
    })?;
    Ok((call.builder.clamp(place, 0.0, extent as f64 - 1.0)?, inside))
}
