//! Resizing of images.

use super::call::{Call, Table, Tensors};
use super::convolution::four_axes;
use mlc_import::Handler::One;
use mlc_import::builder::Stored;
use mlc_import::builder::fixed_point::whole;
use mlc_import::{Fault, check_filled};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table =
    &[("RESIZE_BILINEAR", One(bilinear)), ("RESIZE_NEAREST_NEIGHBOR", One(nearest_neighbour))];

/// Most elements of a resized axis.
const MOST: usize = 1 << 20;

struct Resizing {
    x: Value,
    /// Old and new extents of rows and columns.
    extents: [(usize, usize); 2],
    align_corners: bool,
    half_pixel: bool,
}

impl Resizing {
    fn read(call: &mut Call<'_, '_>) -> Result<Self, Fault> {
        let x = call.input(0)?;
        let [_, height, width, _] = four_axes(call, x)?;
        let sizes = call.numbers(1, "the size")?;
        let size = |place: usize| {
            sizes.get(place).and_then(|&size| usize::try_from(size).ok()).filter(|size| (1..MOST).contains(size))
        };
        let (Some(tall), Some(wide)) = (size(0), size(1)) else {
            return Err(Fault::operands(format!("the size {sizes:?} must be two positive numbers")));
        };
        if height == 0 || width == 0 {
            return Err(Fault::operands("an image without elements can't be resized"));
        }
        let [batch, _, _, channels] = four_axes(call, x)?;
        check_filled(&[batch, tall, wide, channels])?;
        call.check_same_scale(&[0])?;
        let align_corners = call.flag_or("align_corners", false)?;
        let half_pixel = call.flag_or("half_pixel_centers", false)?;
        Ok(Resizing { x, extents: [(height, tall), (width, wide)], align_corners, half_pixel })
    }
}

/// Rows, or columns, by their numbers.
fn taken(call: &mut Call<'_, '_>, x: Value, axis: usize, places: &[usize]) -> Result<Value, Fault> {
    if places.iter().copied().eq(0..call.shape(x)[axis]) {
        return Ok(x);
    }
    let places: Vec<i64> = places.iter().map(|&place| place as i64).collect();
    let places = call.builder.indices(&[places.len()], &places)?;
    Ok(call.builder.gather(x, places, axis)?)
}

fn nearest_neighbour(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Resizing { mut x, extents, align_corners, half_pixel } = Resizing::read(call)?;
    for (axis, (old, new)) in extents.into_iter().enumerate() {
        let ratio =
            if align_corners && new > 1 { (old - 1) as f32 / (new - 1) as f32 } else { old as f32 / new as f32 };
        let offset = if half_pixel { 0.5 } else { 0.0 };
        let place = |index: usize| {
            let place = (index as f32 + offset) * ratio;
            let place = if align_corners { place.round() } else { place.floor() };
            (place.max(0.0) as usize).min(old - 1)
        };
        let places: Vec<usize> = (0..new).map(place).collect();
        x = taken(call, x, axis + 1, &places)?;
    }
    Ok(x)
}

/// The elements around each place of an axis: the lower, the upper, and the share of the upper one.
type Neighbours<T> = (Vec<usize>, Vec<usize>, Vec<T>);

fn bilinear(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let resizing = Resizing::read(call)?;
    if call.is_quantized() { integers(call, &resizing) } else { real(call, &resizing) }
}

/// The four neighbours of each place, as [upper or lower row][upper or lower column].
fn corners(
    call: &mut Call<'_, '_>,
    x: Value,
    rows: [&[usize]; 2],
    columns: [&[usize]; 2],
) -> Result<Vec<Value>, Fault> {
    let mut corners = Vec::new();
    for rows in rows {
        let row = taken(call, x, 1, rows)?;
        for columns in columns {
            corners.push(taken(call, row, 2, columns)?);
        }
    }
    Ok(corners)
}

fn real(call: &mut Call<'_, '_>, resizing: &Resizing) -> Result<Value, Fault> {
    let neighbours = resizing.extents.map(|(old, new)| -> Neighbours<f64> {
        let ratio = if resizing.align_corners && new > 1 {
            (old - 1) as f32 / (new - 1) as f32
        } else {
            old as f32 / new as f32
        };
        let places = (0..new)
            .map(|index| if resizing.half_pixel { (index as f32 + 0.5) * ratio - 0.5 } else { index as f32 * ratio });
        let places: Vec<f32> = places.collect();
        let lower = |place: &f32| (place.floor().max(0.0) as usize).min(old - 1);
        let upper = |place: &f32| ((place.floor() + 1.0).max(0.0) as usize).min(old - 1);
        let share = |place: &f32| f64::from(place - lower(place) as f32);
        (places.iter().map(lower).collect(), places.iter().map(upper).collect(), places.iter().map(share).collect())
    });
    let [(top, bottom, down), (left, right, across)] = &neighbours;
    let mut operands = corners(call, resizing.x, [top, bottom], [left, right])?;
    operands.push(call.builder.numbers(DType::F32, &[down.len(), 1, 1], down.clone()));
    operands.push(call.builder.numbers(DType::F32, &[across.len(), 1], across.clone()));
    Ok(call.builder.map(&operands, |b| {
        let (down, across) = (b.operand(4), b.operand(5));
        let one = b.number(DType::F32, 1.0);
        let (up, back) = (b.binary(B::Subtract, one, down), b.binary(B::Subtract, one, across));
        let mut weighted = |corner: u32, row, column| {
            let corner = b.operand(corner);
            let weight = b.binary(B::Multiply, row, column);
            b.binary(B::Multiply, corner, weight)
        };
        let parts =
            [weighted(0, up, back), weighted(1, up, across), weighted(2, down, back), weighted(3, down, across)];
        let (first, second) = (b.binary(B::Add, parts[0], parts[1]), b.binary(B::Add, parts[2], parts[3]));
        b.binary(B::Add, first, second)
    })?)
}

/// Shares are numbers with ten fractional bits.
fn integers(call: &mut Call<'_, '_>, resizing: &Resizing) -> Result<Value, Fault> {
    let neighbours = resizing.extents.map(|(old, new)| -> Neighbours<i64> {
        let (extent, count) = (old as i64, new as i64);
        let ratio = if resizing.align_corners && new > 1 {
            (1024 * (extent - 1) + (count - 1) / 2) / (count - 1)
        } else {
            (1024 * extent + count / 2) / count
        };
        let place = |index: i64| if resizing.half_pixel { index * ratio + ratio / 2 - 512 } else { index * ratio };
        let places: Vec<i64> = (0..count).map(place).collect();
        let lower = |place: &i64| (place / 1024).clamp(0, extent - 1);
        let upper = |place: &i64| ((place + 1023) / 1024).clamp(0, extent - 1);
        let whole = |numbers: Vec<i64>| numbers.into_iter().map(|number| number as usize).collect();
        let share = |place: &i64| place - 1024 * lower(place);
        let (lower, upper) = (places.iter().map(lower).collect(), places.iter().map(upper).collect());
        (whole(lower), whole(upper), places.iter().map(share).collect())
    });
    let [(top, bottom, down), (left, right, across)] = &neighbours;
    let stored = Stored { zero_point: 0, ..call.stored()? };
    let mut operands = corners(call, resizing.x, [top, bottom], [left, right])?;
    operands.push(call.builder.indices(&[down.len(), 1, 1], down)?);
    operands.push(call.builder.indices(&[across.len(), 1], across)?);
    Ok(call.builder.map(&operands, |b| {
        let (down, across) = (b.operand(4), b.operand(5));
        let one = whole(b, 1024);
        let (up, back) = (b.binary(B::Subtract, one, down), b.binary(B::Subtract, one, across));
        let mut weighted = |corner: u32, row, column| {
            let corner = b.operand(corner);
            let corner = b.cast(DType::I64, corner);
            let weight = b.binary(B::Multiply, row, column);
            b.binary(B::Multiply, corner, weight)
        };
        let parts =
            [weighted(0, up, back), weighted(1, up, across), weighted(2, down, back), weighted(3, down, across)];
        let (first, second) = (b.binary(B::Add, parts[0], parts[1]), b.binary(B::Add, parts[2], parts[3]));
        let sum = b.binary(B::Add, first, second);
        let (zero, up, down) = (whole(b, 0), whole(b, 1 << 19), whole(b, -(1 << 19)));
        let is_positive = b.binary(B::Greater, sum, zero);
        let nudge = b.select(is_positive, up, down);
        let nudged = b.binary(B::Add, sum, nudge);
        let divisor = whole(b, 1 << 20);
        let y = b.binary(B::Divide, nudged, divisor);
        stored.store(b, DType::I64, y)
    })?)
}
