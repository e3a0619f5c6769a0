//! Images that are moved, scaled or turned: every element is read at a place that a matrix gives.

use super::call::{Call, Parameters, Table};
use super::image::{Image, Kind};
use super::padding::not_four_axes;
use super::warping::warped;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table =
    &[("_nhwc_letterbox", One(letterbox)), ("affine_sample2d", One(affine)), ("sample2d", One(scale))];

/// A place for each element of the result: rows of a matrix of (column, row, 1).
struct Places {
    matrix: [f32; 6],
    /// Rows and columns of the result.
    sizes: [usize; 2],
    kind: Kind,
    /// What elements are whose place is outside of the image; without it the nearest place inside is taken.
    outer: Option<f64>,
}

fn affine(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let kind = Kind::of(call.required_int("type")?)?;
    let axis = call.required_axis(x, "dim")?;
    let sizes = call.known_list(1, "the size", 2)?;
    let (outer, sizes, matrix) = (call.float("outer_value")?, positive(&sizes)?, call.input(2)?);
    if call.shape(matrix)[..] != [3, 3] {
        let ty = call.builder.ty(matrix);
        return Err(Fault::operands(format!("the matrix is {ty}, the shape [3, 3] expected")));
    }
    match call.builder.graph().constant(matrix).map(|matrix| matrix.to_tensor().to_floats()) {
        Some(numbers) => {
            let matrix = [0, 1, 2, 3, 4, 5].map(|place: usize| numbers[place] as f32);
            sampled(call, x, axis, &Places { matrix, sizes, kind, outer })
        }
        None => {
            let image = Image::new(call, x, axis, sizes, kind)?;
            let y = warped(call, &image, matrix, kind, outer)?;
            image.result(call, y, x)
        }
    }
}

fn positive(sizes: &[i64]) -> Result<[usize; 2], Fault> {
    match sizes {
        &[rows, columns] if [rows, columns].iter().all(|size| (1..1 << 31).contains(size)) => {
            Ok([rows as usize, columns as usize])
        }
        _ => Err(Fault::parameter(format!("the size {sizes:?} must be two positive numbers"))),
    }
}

/// A matrix that scales.
fn scaling(scale: f32) -> [f32; 6] {
    let inverse = 1.0 / scale;
    [inverse, 0.0, 0.0, 0.0, inverse, 0.0]
}

fn scale(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let scale = call.required_float("scale")? as f32;
    let kind = Kind::of(call.int_or("type", 2)?)?;
    let axis = call.axis_or(x, "dim", -2)?;
    let size = |extent: usize| (extent as f32 * scale).floor() as i64;
    let shape = call.shape(x);
    let sizes: Vec<i64> = shape[axis..].iter().take(2).map(|&extent| size(extent)).collect();
    sampled(call, x, axis, &Places { matrix: scaling(scale), sizes: positive(&sizes)?, kind, outer: Some(0.0) })
}

/// Scales an image [N, H, W, C] into a box of {width, height}, at its top left.
fn letterbox(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let &[_, rows, columns, _] = &call.shape(x)[..] else { return Err(not_four_axes(call, x)) };
    let size = call.required_ints("size")?;
    let kind = Kind::of(call.int_or("type", 0)?)?;
    let outer = Some(call.float_or("outer_value", 0.0)?);
    let sizes = match size[..] {
        [side] => positive(&[side, side])?,
        [width, height] => positive(&[height, width])?,
        _ => return Err(Fault::parameter(format!("parameter `size` is {size:?}, one or two numbers expected"))),
    };
    let scale = (sizes[1] as f32 / columns as f32).min(sizes[0] as f32 / rows as f32);
    sampled(call, x, 1, &Places { matrix: scaling(scale), sizes, kind, outer })
}

/// What one neighbour of each place adds: its number in the flat image, and its share.
#[derive(Default)]
struct Tap {
    sources: Vec<i64>,
    weights: Vec<f64>,
}

/// The neighbours of each place, and whether it is outside.
struct Taps {
    taps: Vec<Tap>,
    outside: Vec<i64>,
}

impl Places {
    fn taps(&self, rows: usize, columns: usize) -> Taps {
        let count = if self.kind.combines() { 4 } else { 1 };
        let mut taps = Taps { taps: (0..count).map(|_| Tap::default()).collect(), outside: Vec::new() };
        for row in 0..self.sizes[0] {
            for column in 0..self.sizes[1] {
                // Single precision decides which places are outside.
                let [a, b, c, d, e, f] = self.matrix;
                let (x, y) = (column as f32, row as f32);
                let place = [d * x + e * y + f, a * x + b * y + c];
                self.push(&mut taps, place.map(f64::from), [rows, columns]);
            }
        }
        taps
    }

    fn push(&self, taps: &mut Taps, place: [f64; 2], extents: [usize; 2]) {
        let whole = match self.kind {
            Kind::Nearest => place.map(f64::round),
            Kind::Hard => place.map(f64::trunc),
            Kind::Linear | Kind::Cubic => place,
        };
        let inside = |axis: usize| whole[axis] >= 0.0 && whole[axis] < extents[axis] as f64 - 1.0;
        taps.outside.push(i64::from(self.outer.is_some() && !(inside(0) && inside(1))));
        // Not a number becomes 0.
        let clamped = |axis: usize| whole[axis].max(0.0).min(extents[axis] as f64 - 1.0);
        let (y, x) = (clamped(0), clamped(1));
        let (first_row, first_column) = (y.floor() as usize, x.floor() as usize);
        let (down, across) = (y - y.floor(), x - x.floor());
        let share = |moved: bool, part: f64| if moved { part } else { 1.0 - part };
        for (number, tap) in taps.taps.iter_mut().enumerate() {
            let (below, right) = (number & 2 != 0, number & 1 != 0);
            let row = (first_row + usize::from(below)).min(extents[0] - 1);
            let column = (first_column + usize::from(right)).min(extents[1] - 1);
            tap.sources.push((row * extents[1] + column) as i64);
            tap.weights.push(share(below, down) * share(right, across));
        }
    }
}

/// Reads two axes, from one on, at places.
fn sampled(call: &mut Call<'_, '_>, x: Value, axis: usize, places: &Places) -> Result<Value, Fault> {
    let image = Image::new(call, x, axis, places.sizes, places.kind)?;
    let (dtype, count) = (call.dtype_of(image.flat), image.places());
    let Taps { taps, outside } = places.taps(image.extents[0], image.extents[1]);
    let mut y = None;
    for Tap { sources, weights } in taps {
        if weights.iter().all(|&weight| weight == 0.0) {
            continue;
        }
        let sources = call.builder.indices(&[count], &sources)?;
        let mut part = call.builder.gather(image.flat, sources, 1)?;
        if weights.iter().any(|&weight| weight != 1.0) {
            let weights = call.builder.numbers(dtype, &[count, 1], weights);
            part = call.builder.binary(B::Multiply, part, weights)?;
        }
        y = Some(call.builder.add_optional(part, y)?);
    }
    let mut y = y.ok_or_else(|| Fault::operands("there is no place to sample"))?;
    if let (Some(value), true) = (places.outer, outside.contains(&1)) {
        let ty = TensorType::new(DType::Bool, [count, 1]);
        let outside = call.builder.constant("outside", Attribute::from_tensor(&Tensor::from_integers(ty, outside)));
        let value = call.builder.number(dtype, value);
        y = call.builder.select(outside, value, y)?;
    }
    image.result(call, y, x)
}
