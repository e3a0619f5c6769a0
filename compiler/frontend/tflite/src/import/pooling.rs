//! Pools.

use super::call::{Call, Table, Tensors};
use super::convolution::{Padding, four_axes, pair};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::Stored;
use mlc_ir::ops::{AveragePool, Convolution, MaxPool};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Literal, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table =
    &[("AVERAGE_POOL_2D", One(average)), ("L2_POOL_2D", One(root_mean_square)), ("MAX_POOL_2D", One(maximum))];

/// Geometry of a pool, rows before columns.
struct Pool {
    x: Value,
    window: [usize; 2],
    strides: [usize; 2],
    pads: [(usize, usize); 2],
}

impl Pool {
    fn read(call: &mut Call<'_, '_>) -> Result<Self, Fault> {
        let x = call.input(0)?;
        let [_, height, width, _] = four_axes(call, x)?;
        let window = pair(call, "filter_height", "filter_width")?;
        let strides = pair(call, "stride_h", "stride_w")?;
        let padding = Padding::read(call)?;
        let pads = [padding.pads(height, window[0], strides[0], 1)?, padding.pads(width, window[1], strides[1], 1)?];
        call.check_same_scale(&[0])?;
        Ok(Pool { x, window, strides, pads })
    }
}

fn maximum(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Pool { x, window, strides, pads } = Pool::read(call)?;
    let op = MaxPool { window: window.into(), strides: strides.into(), dilations: vec![1; 2], pads: pads.into() };
    let y = call.builder.apply(op, &[x])?;
    if !call.is_quantized() {
        return call.activated(y);
    }
    let Stored { low, high, .. } = call.stored()?;
    Ok(call.builder.clamp(y, low as f64, high as f64)?)
}

fn average(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Pool { x, window, strides, pads } = Pool::read(call)?;
    if call.is_quantized() {
        let sums = sums(call, &Pool { x, window, strides, pads })?;
        let counts = counts(call, &Pool { x, window, strides, pads }, sums)?;
        let stored = Stored { zero_point: 0, ..call.stored()? };
        // What is added to a sum is less than the elements of a window.
        let largest = [window[0], window[1], 1 << (8 * call.dtype_of(x).size())];
        let largest = largest.into_iter().fold(1usize, usize::saturating_mul);
        let wide = if largest < 1 << 30 { DType::I32 } else { DType::I64 };
        return Ok(call.builder.map(&[sums, counts], |b| {
            let [sum, count] = [0, 1].map(|operand| {
                let operand = b.operand(operand);
                b.cast(wide, operand)
            });
            let [zero, two] = [0, 2].map(|number| b.literal(Literal::integer(wide, number)));
            let half = b.binary(B::Divide, count, two);
            let (up, down) = (b.binary(B::Add, sum, half), b.binary(B::Subtract, sum, half));
            let is_positive = b.binary(B::Greater, sum, zero);
            let nudged = b.select(is_positive, up, down);
            let mean = b.binary(B::Divide, nudged, count);
            stored.store(b, wide, mean)
        })?);
    }
    let y = mean(call, &Pool { x, window, strides, pads }, x)?;
    call.activated(y)
}

/// The mean of the elements in each window, borders left out.
fn mean(call: &mut Call<'_, '_>, pool: &Pool, x: Value) -> Result<Value, Fault> {
    let op = AveragePool {
        window: pool.window.into(),
        strides: pool.strides.into(),
        dilations: vec![1; 2],
        pads: pool.pads.into(),
        counted_pads: vec![(0, 0); 2],
    };
    Ok(call.builder.apply(op, &[x])?)
}

fn root_mean_square(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let pool = Pool::read(call)?;
    if call.is_quantized() {
        return Err(Fault::variant("the root of the mean square of quantised tensors isn't supported"));
    }
    let squares = call.builder.unary(U::Square, pool.x)?;
    let mean = mean(call, &pool, squares)?;
    let y = call.builder.unary(U::Sqrt, mean)?;
    call.activated(y)
}

/// Most numbers that are written down for a pool: ones to multiply by, or how much is in each window.
const MOST_NUMBERS: usize = 1 << 22;

/// The sums of the windows' integers: a convolution by ones.
fn sums(call: &mut Call<'_, '_>, pool: &Pool) -> Result<Value, Fault> {
    let [.., channels] = four_axes(call, pool.x)?;
    if pool.window.into_iter().fold(channels, usize::saturating_mul) > MOST_NUMBERS {
        let [rows, columns] = pool.window;
        return Err(Fault::variant(format!(
            "sums of {rows} x {columns} windows of {channels} channels aren't supported"
        )));
    }
    let one = call.builder.literal(Literal::integer(DType::I8, 1));
    let ones = call.builder.broadcast(one, &[pool.window[0], pool.window[1], 1, channels])?;
    let op = Convolution {
        strides: pool.strides.into(),
        dilations: vec![1; 2],
        pads: pool.pads.into(),
        groups: channels,
        border: 0,
        sums: Some(DType::I32),
    };
    Ok(call.builder.apply(op, &[pool.x, ones])?)
}

/// How many elements of the image are in each window: [rows, columns, 1].
fn counts(call: &mut Call<'_, '_>, pool: &Pool, sums: Value) -> Result<Value, Fault> {
    let ([_, height, width, _], [_, rows, columns, _]) = (four_axes(call, pool.x)?, four_axes(call, sums)?);
    let inside = |axis: usize, extent: usize, place: usize| {
        let start = place * pool.strides[axis];
        let (first, end) = (start.max(pool.pads[axis].0), (start + pool.window[axis]).min(extent + pool.pads[axis].0));
        end.saturating_sub(first).max(1) as i64
    };
    // Inside of the image all have the same.
    let is_inside = |axis: usize, extent: usize, places: usize| {
        let end = places.saturating_sub(1).saturating_mul(pool.strides[axis]).saturating_add(pool.window[axis]);
        pool.pads[axis].0 == 0 && end <= extent
    };
    if is_inside(0, height, rows) && is_inside(1, width, columns) {
        let count = pool.window[0].saturating_mul(pool.window[1]);
        return Ok(call.builder.literal(Literal::integer(DType::I32, i64::try_from(count).unwrap_or(i64::MAX))));
    }
    if rows.saturating_mul(columns) > MOST_NUMBERS {
        let message = format!("means of {rows} x {columns} windows that reach beyond the image aren't supported");
        return Err(Fault::variant(message));
    }
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let counts: Vec<i64> = all.map(|(row, column)| inside(0, height, row) * inside(1, width, column)).collect();
    let first = counts.first().copied().unwrap_or(1);
    if counts.iter().all(|&count| count == first) {
        return Ok(call.builder.literal(Literal::integer(DType::I32, first)));
    }
    let counts = Tensor::from_integers(TensorType::new(DType::I32, [rows, columns, 1]), counts);
    Ok(call.builder.constant("counts", Attribute::from_tensor(&counts)))
}

#[cfg(test)]
mod tests {
    use crate::element_type::ElementType;
    use crate::model::{Quantization, Setting, Tensor};
    use crate::test_models::{operator, said_of, subgraph, tensor};

    /// What is said of the means of windows of 3 x 3 of an image of bytes, with a border or without.
    fn message(shape: &[usize], has_border: bool) -> String {
        let bytes = |name: &str, shape: &[usize]| Tensor {
            element_type: ElementType(9),
            quantization: Some(Quantization { scales: vec![1.0], zero_points: vec![0], axis: 0 }),
            ..tensor(name, shape, None)
        };
        let options = [
            ("padding", Setting::Int(i64::from(!has_border))),
            ("stride_w", Setting::Int(1)),
            ("stride_h", Setting::Int(1)),
            ("filter_width", Setting::Int(3)),
            ("filter_height", Setting::Int(3)),
            ("fused_activation_function", Setting::Int(0)),
        ];
        let result: Vec<usize> =
            if has_border { shape.to_vec() } else { vec![1, shape[1] - 2, shape[2] - 2, shape[3]] };
        let pool = operator("AVERAGE_POOL_2D", &[0], &[1], &options);
        said_of(subgraph(vec![bytes("x", shape), bytes("y", &result)], &[0], &[1], vec![pool]))
    }

    #[test]
    fn sizes_that_no_image_has_are_refused_in_no_memory() {
        assert_eq!(message(&[1, 8, 9, 4], true), "");
        assert_eq!(message(&[1, 1 << 20, 1 << 10, 1], false), "");
        let said = message(&[1, 1 << 20, 1 << 10, 1], true);
        assert!(said.contains("reach beyond the image"), "{said}");
        let said = message(&[1, 8, 9, 1 << 24], true);
        assert!(said.contains("of 16777216 channels"), "{said}");
    }
}
