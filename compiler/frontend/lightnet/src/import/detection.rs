//! What networks that detect objects make of their features.

use super::call::{Call, Parameters, Table};
use super::signature::Signature;
use super::signature::Type::Number;
use mlc_import::Handler::{Many, One};
use mlc_import::{Builder, Fault, Operand};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, OperatorError, Value};
use std::f64::consts::E;

pub(super) const OPERATORS: Table = &[
    (
        Signature::new(
            "detect_yolov3",
            &["feature", "anchors"],
            &["box_centers", "box_sizes", "boxes", "confs", "probs"],
            &[("img_width", Number), ("img_height", Number)],
        ),
        Many(yolo),
    ),
    (
        Signature::new(
            "transform_bboxSQD",
            &["src_delta", "src_anchor"],
            &["dst"],
            &[
                ("width", Number),
                ("height", Number),
                ("img_width", Number),
                ("img_height", Number),
                ("x_shift", Number),
                ("y_shift", Number),
            ],
        ),
        One(squeeze_boxes),
    ),
];

/// e^x below 1; from there on the line through the origin and that point.
fn flattened_exponential(builder: &mut Builder, x: Value) -> Result<Value, OperatorError> {
    builder.map(&[x], |b| {
        let (x, one, slope) = (b.operand(0), b.number(DType::F32, 1.0), b.number(DType::F32, E));
        let (is_small, curve, line) = (b.binary(B::Less, x, one), b.unary(U::Exp, x), b.binary(B::Multiply, x, slope));
        b.select(is_small, curve, line)
    })
}

/// Both ends of boxes along an axis, within the image.
fn ends(builder: &mut Builder, (centre, extent): (Value, Value), last: f64) -> Result<(Value, Value), OperatorError> {
    let half = builder.binary_number(B::Multiply, extent, 0.5)?;
    let (low, high) = (builder.binary(B::Subtract, centre, half)?, builder.binary(B::Add, centre, half)?);
    Ok((builder.clamp(low, 0.0, last)?, builder.clamp(high, 0.0, last)?))
}

/// SqueezeDet's boxes: corners of anchors that are moved and stretched by deltas, in the image's coordinates.
fn squeeze_boxes(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (delta, anchor) = (call.input(0)?, call.input(1)?);
    for (place, tensor) in [(0, delta), (1, anchor)] {
        call.check_rank(place, tensor, 5)?;
        call.check_dtype(place, tensor, DType::F32)?;
    }
    call.check_same_shape((0, delta), (1, anchor))?;
    if call.shape(delta)[4] != 4 {
        let (title, ty) = (call.title(0), call.builder.ty(delta));
        return Err(Fault::operands(format!("{title} is {ty}, 4 elements along the last axis expected")));
    }
    let (width, height) = (call.count("width", 1)? as f64, call.count("height", 1)? as f64);
    let (image_width, image_height) = (call.count("img_width", 1)? as f64, call.count("img_height", 1)? as f64);
    let shifts = [call.required_int("x_shift")? as f64, call.required_int("y_shift")? as f64];
    let builder = &mut *call.builder;
    let (deltas, anchors) = (builder.split(delta, 4, &[1; 4])?, builder.split(anchor, 4, &[1; 4])?);
    let mut corners = Vec::new();
    for (axis, (size, image)) in [(width, image_width), (height, image_height)].into_iter().enumerate() {
        let scale = image / size;
        let moved = builder.binary(B::Multiply, deltas[axis], anchors[2 + axis])?;
        let centre = builder.binary(B::Add, anchors[axis], moved)?;
        let centre = builder.binary_number(B::Multiply, centre, scale)?;
        let centre = builder.binary_number(B::Add, centre, shifts[axis])?;
        let stretch = flattened_exponential(builder, deltas[2 + axis])?;
        let extent = builder.binary(B::Multiply, anchors[2 + axis], stretch)?;
        let extent = builder.binary_number(B::Multiply, extent, scale)?;
        corners.push(ends(builder, (centre, extent), image - 1.0)?);
    }
    let parts = [corners[0].0, corners[1].0, corners[0].1, corners[1].1];
    Ok(builder.concat(&parts, 4)?)
}

/// The most cells along an axis of a grid: where they are is a constant.
const LARGEST_GRID: usize = 1 << 16;

/// YOLOv3's boxes of features [1, C, H, W], whose channels are for each of A anchors x, y, width, height, confidence and classes.
fn yolo(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let (feature, anchors) = (call.input(0)?, call.input(1)?);
    for (place, tensor, rank) in [(0, feature, 4), (1, anchors, 2)] {
        call.check_rank(place, tensor, rank)?;
        call.check_dtype(place, tensor, DType::F32)?;
    }
    let image = [call.count("img_width", 1)? as f64, call.count("img_height", 1)? as f64];
    let (shape, anchor_shape) = (call.shape(feature), call.shape(anchors));
    let (count, [height, width]) = (anchor_shape[0], [shape[2], shape[3]]);
    let own = shape[1].checked_div(count).filter(|own| own * count == shape[1] && *own > 5);
    let fits = shape[0] == 1 && anchor_shape[1] == 2 && width.max(height) <= LARGEST_GRID;
    let Some(own) = own.filter(|_| fits) else {
        let (feature, anchors) = (call.builder.ty(feature), call.builder.ty(anchors));
        return Err(Fault::operands(format!(
            "`feature` is {feature} and `anchors` is {anchors}; one image, pairs of numbers and more than 5 channels for each of them expected"
        )));
    };
    let builder = &mut *call.builder;
    let split = builder.reshape(feature, &[1, count, own, height, width])?;
    let parts = builder.split(split, 2, &[2, 2, 1, own - 5])?;
    let [place, stretch, certainty, classes] = parts[..] else {
        return Err(Fault::operands("four groups of channels expected"));
    };
    let centres = centres(builder, place, image)?;
    let stretch = builder.unary(U::Exp, stretch)?;
    let stretch = builder.clamp(stretch, 1e-9, 50.0)?;
    let anchors = builder.reshape(anchors, &[1, count, 2, 1, 1])?;
    let sizes = builder.binary(B::Multiply, stretch, anchors)?;
    let half = builder.binary_number(B::Multiply, sizes, 0.5)?;
    let (low, high) = (builder.binary(B::Subtract, centres, half)?, builder.binary(B::Add, centres, half)?);
    let boxes = builder.concat(&[low, high], 2)?;
    let certainty = builder.unary(U::Sigmoid, certainty)?;
    let classes = builder.unary(U::Sigmoid, classes)?;
    Ok([centres, sizes, boxes, certainty, classes].map(Operand::Tensor).to_vec())
}

/// Centres in the image's coordinates of places [1, A, 2, H, W] within the cells of the grid.
fn centres(builder: &mut Builder, place: Value, image: [f64; 2]) -> Result<Value, OperatorError> {
    let shape = builder.shape(place);
    let (height, width) = (shape[3], shape[4]);
    let columns: Vec<f64> = (0..width).map(|column| column as f64).collect();
    let rows: Vec<f64> = (0..height).map(|row| row as f64).collect();
    let columns = builder.numbers(DType::F32, &[1, 1, 1, 1, width], columns);
    let rows = builder.numbers(DType::F32, &[1, 1, 1, height, 1], rows);
    let inside = builder.unary(U::Sigmoid, place)?;
    let parts = builder.split(inside, 2, &[1, 1])?;
    let x = builder.binary(B::Add, parts[0], columns)?;
    let x = builder.binary_number(B::Multiply, x, image[0] / width as f64)?;
    let y = builder.binary(B::Add, parts[1], rows)?;
    let y = builder.binary_number(B::Multiply, y, image[1] / height as f64)?;
    builder.concat(&[x, y], 2)
}
