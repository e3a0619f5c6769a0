//! Images that a matrix moves which is known while the model runs only: the places are computed with the data.

use super::call::Call;
use super::image::{Image, Kind};
use mlc_import::Fault;
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId, UnaryFunction as U};
use mlc_ir::{DType, Value};

/// Places along an axis of the image, one for each element of the result: [rows, columns].
struct Line {
    /// The element at or before each place, i64, inside of the image.
    first: Value,
    /// The one behind it.
    second: Value,
    /// How far the place is behind the first element.
    part: Value,
    /// Whether the place is outside of the image.
    outside: Value,
}

/// Reads an image at the places that a matrix [3, 3] gives: [outer, places, inner].
pub(super) fn warped(
    call: &mut Call<'_, '_>,
    image: &Image,
    matrix: Value,
    kind: Kind,
    outer: Option<f64>,
) -> Result<Value, Fault> {
    let matrix = call.builder.cast(matrix, DType::F32)?;
    let (down, across) = (line(call, image, matrix, 0, kind)?, line(call, image, matrix, 1, kind)?);
    let dtype = call.dtype_of(image.flat);
    let rows = [(down.first, false), (down.second, true)];
    let columns = [(across.first, false), (across.second, true)];
    let taps = if kind.combines() { 2 } else { 1 };
    let mut y = None;
    for &(row, is_below) in &rows[..taps] {
        for &(column, is_right) in &columns[..taps] {
            let place = call.builder.binary_number(B::Multiply, row, image.extents[1] as f64)?;
            let place = call.builder.binary(B::Add, place, column)?;
            let place = call.builder.reshape(place, &[image.places()])?;
            let mut tap = call.builder.gather(image.flat, place, 1)?;
            if kind.combines() {
                let weight = call.builder.map(&[down.part, across.part], |b| {
                    let (down, across) = (share(b, 0, is_below), share(b, 1, is_right));
                    b.binary(B::Multiply, down, across)
                })?;
                let weight = call.builder.reshape(weight, &[image.places(), 1])?;
                let weight = call.builder.cast(weight, dtype)?;
                tap = call.builder.binary(B::Multiply, tap, weight)?;
            }
            y = Some(call.builder.add_optional(tap, y)?);
        }
    }
    let y = y.ok_or_else(|| Fault::operands("there is no place to sample"))?;
    let Some(outer) = outer else { return Ok(y) };
    let outside = call.builder.binary(B::Or, down.outside, across.outside)?;
    let outside = call.builder.reshape(outside, &[image.places(), 1])?;
    let outer = call.builder.number(dtype, outer);
    Ok(call.builder.select(outside, outer, y)?)
}

/// What of an element counts, by how far the place is behind the first one.
fn share(b: &mut ExpressionBuilder, operand: u32, is_second: bool) -> ScalarId {
    let (part, one) = (b.operand(operand), b.number(DType::F32, 1.0));
    if is_second { part } else { b.binary(B::Subtract, one, part) }
}

/// The places along the rows, axis 0, or the columns, axis 1.
fn line(call: &mut Call<'_, '_>, image: &Image, matrix: Value, axis: usize, kind: Kind) -> Result<Line, Fault> {
    let [rows, columns] = image.sizes;
    let counted = |count: usize| (0..count).map(|index| index as f64).collect();
    let y = call.builder.numbers(DType::F32, &[rows, 1], counted(rows));
    let x = call.builder.numbers(DType::F32, &[1, columns], counted(columns));
    // The first row of the matrix gives columns, the second one rows.
    let factors = call.builder.pick(matrix, 0, 1 - axis)?;
    let factors: Vec<Value> = (0..3).map(|place| call.builder.pick(factors, 0, place)).collect::<Result<_, _>>()?;
    let place = call.builder.map(&[factors[0], factors[1], factors[2], x, y], |b| {
        let [a, c, moved, x, y] = [0, 1, 2, 3, 4].map(|operand| b.operand(operand));
        let (x, y) = (b.binary(B::Multiply, a, x), b.binary(B::Multiply, c, y));
        let sum = b.binary(B::Add, x, y);
        let place = b.binary(B::Add, sum, moved);
        match kind {
            Kind::Nearest => nearest(b, place),
            Kind::Hard => b.unary(U::Truncate, place),
            Kind::Linear | Kind::Cubic => place,
        }
    })?;
    let last = image.extents[axis] as f64 - 1.0;
    let outside = call.builder.map(&[place], |b| {
        let (place, zero, last) = (b.operand(0), b.number(DType::F32, 0.0), b.number(DType::F32, last));
        let (before, inside) = (b.binary(B::Less, place, zero), b.binary(B::Less, place, last));
        let behind = b.unary(U::Not, inside);
        b.binary(B::Or, before, behind)
    })?;
    let clamped = call.builder.clamp(place, 0.0, last)?;
    let whole = call.builder.unary(U::Floor, clamped)?;
    let part = call.builder.binary(B::Subtract, clamped, whole)?;
    let first = call.builder.cast(whole, DType::I64)?;
    let second = call.builder.binary_number(B::Add, first, 1.0)?;
    let second = call.builder.binary_number(B::Minimum, second, last)?;
    Ok(Line { first, second, part, outside })
}

/// The nearest whole number, halves away from zero.
fn nearest(b: &mut ExpressionBuilder, place: ScalarId) -> ScalarId {
    let (magnitude, sign, half) = (b.unary(U::Absolute, place), b.unary(U::Sign, place), b.number(DType::F32, 0.5));
    let moved = b.binary(B::Add, magnitude, half);
    let whole = b.unary(U::Floor, moved);
    b.binary(B::Multiply, whole, sign)
}
