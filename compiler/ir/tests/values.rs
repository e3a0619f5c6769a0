//! Results of operators on cases small enough to compute by hand.
#![allow(missing_docs, clippy::unwrap_used)]

use mlc_ir::ops::*;
use mlc_ir::scalar::{BinaryFunction, Expression, UnaryFunction};
use mlc_ir::{DType, Float, Literal, Op, Tensor, TensorType};

fn floats(shape: &[usize], values: &[f64]) -> Tensor {
    Tensor::from_floats(TensorType::new(DType::F32, shape), values.to_vec())
}

fn integers(dtype: DType, shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_integers(TensorType::new(dtype, shape), values.to_vec())
}

/// 0, 1, 2, …
fn count(shape: &[usize]) -> Tensor {
    let elements = shape.iter().product();
    floats(shape, &(0..elements).map(|value: usize| value as f64).collect::<Vec<_>>())
}

fn evaluate(op: impl Into<Op>, operands: &[&Tensor]) -> Vec<Tensor> {
    let op = op.into();
    let types: Vec<TensorType> = operands.iter().map(|operand| operand.ty().clone()).collect();
    let results = op.infer(&types).unwrap();
    op.evaluate(operands, &results).unwrap()
}

/// The first result's values.
fn values(op: impl Into<Op>, operands: &[&Tensor]) -> Vec<f64> {
    evaluate(op, operands)[0].to_floats()
}

#[track_caller]
fn close(found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        let equal = found == expected || (found.is_nan() && expected.is_nan());
        assert!(equal || (found - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{found} {expected}");
    }
}

fn convolution(strides: &[usize], dilations: &[usize], pads: &[(usize, usize)], groups: usize) -> Convolution {
    Convolution {
        strides: strides.into(),
        dilations: dilations.into(),
        pads: pads.into(),
        groups,
        border: 0,
        sums: None,
    }
}

#[test]
fn convolution_slides_without_flipping() {
    // x is 3 by 3, the window 2 by 2: 1 * top left + 2 * top right + 3 * bottom left + 4 * bottom right.
    let (x, w) = (count(&[1, 3, 3, 1]), floats(&[2, 2, 1, 1], &[1.0, 2.0, 3.0, 4.0]));
    let op = convolution(&[1, 1], &[1, 1], &[(0, 0); 2], 1);
    assert_eq!(values(op, &[&x, &w]), [27.0, 37.0, 57.0, 67.0]);
    // A zero row above and a zero column on the right, every second place.
    let op = convolution(&[2, 2], &[1, 1], &[(1, 0), (0, 1)], 1);
    assert_eq!(values(op, &[&x, &w]), [4.0, 6.0, 57.0, 29.0]);
    // The corners only.
    let op = convolution(&[1, 1], &[2, 2], &[(0, 0); 2], 1);
    assert_eq!(values(op, &[&x, &w]), [0.0 + 4.0 + 18.0 + 32.0]);
}

#[test]
fn convolution_groups_split_channels() {
    // Two pixels of four channels; each group of two channels makes one output.
    let x = count(&[1, 2, 4]);
    let w = floats(&[1, 2, 2], &[1.0, 10.0, 2.0, 20.0]);
    let op = convolution(&[1], &[1], &[(0, 0)], 2);
    assert_eq!(values(op, &[&x, &w]), [2.0, 80.0, 14.0, 200.0]);
    // Depthwise with two outputs per channel.
    let x = floats(&[1, 1, 2], &[3.0, 5.0]);
    let w = floats(&[1, 1, 4], &[1.0, 2.0, 10.0, 20.0]);
    assert_eq!(values(convolution(&[1], &[1], &[(0, 0)], 2), &[&x, &w]), [3.0, 6.0, 50.0, 100.0]);
}

#[test]
fn transposed_convolution_scatters() {
    let x = floats(&[1, 2, 1], &[1.0, 10.0]);
    let w = floats(&[3, 1, 1], &[1.0, 2.0, 3.0]);
    let op = |strides, pads, output_pads| TransposedConvolution {
        strides: vec![strides],
        dilations: vec![1],
        pads: vec![pads],
        output_pads: vec![output_pads],
        groups: 1,
        sums: None,
    };
    assert_eq!(values(op(2, (0, 0), 0), &[&x, &w]), [1.0, 2.0, 13.0, 20.0, 30.0]);
    assert_eq!(values(op(2, (1, 1), 0), &[&x, &w]), [2.0, 13.0, 20.0]);
    assert_eq!(values(op(2, (0, 0), 1), &[&x, &w]), [1.0, 2.0, 13.0, 20.0, 30.0, 0.0]);
    // Two groups of one channel, two outputs each.
    let (x, w) = (floats(&[1, 1, 2], &[1.0, 10.0]), floats(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]));
    let op = TransposedConvolution { groups: 2, ..op(1, (0, 0), 0) };
    assert_eq!(values(op, &[&x, &w]), [1.0, 2.0, 30.0, 40.0]);
}

#[test]
fn matmul_broadcasts_and_transposes() {
    let (a, b) = (count(&[2, 3]), count(&[3, 2]));
    let plain = Matmul { transpose_left: false, transpose_right: false, sums: None };
    assert_eq!(values(plain.clone(), &[&a, &b]), [10.0, 13.0, 28.0, 40.0]);
    let right = Matmul { transpose_left: false, transpose_right: true, sums: None };
    assert_eq!(values(right, &[&a, &count(&[2, 3])]), [5.0, 14.0, 14.0, 50.0]);
    let left = Matmul { transpose_left: true, transpose_right: false, sums: None };
    assert_eq!(values(left, &[&count(&[3, 2]), &b]), [20.0, 26.0, 26.0, 35.0]);
    // One matrix on the left, two on the right.
    assert_eq!(values(plain, &[&count(&[1, 2]), &count(&[2, 2, 1])]), [1.0, 3.0]);
}

#[test]
fn pools() {
    let x = floats(&[1, 4, 1], &[1.0, 5.0, -2.0, 3.0]);
    let max = |pads| MaxPool { window: vec![2], strides: vec![2], dilations: vec![1], pads: vec![pads] };
    assert_eq!(values(max((0, 0)), &[&x]), [5.0, 3.0]);
    assert_eq!(values(max((1, 1)), &[&x]), [1.0, 5.0, 3.0]);
    let negative = floats(&[1, 1, 1], &[-7.0]);
    assert_eq!(values(max((1, 0)), &[&negative]), [-7.0]);
    let nan = floats(&[1, 2, 1], &[f64::NAN, 9.0]);
    assert!(values(max((0, 0)), &[&nan])[0].is_nan());
    let unsigned = integers(DType::U64, &[1, 2, 1], &[-1, 3]);
    assert_eq!(evaluate(max((0, 0)), &[&unsigned])[0].to_integers(), [-1]);

    let average = |pads, counted| AveragePool {
        window: vec![3],
        strides: vec![2],
        dilations: vec![1],
        pads: vec![pads],
        counted_pads: vec![counted],
    };
    // The cells are (pad, 1, 5) and (5, -2, 3); the first divides by 2 or 3.
    close(&values(average((1, 0), (0, 0)), &[&x]), &[3.0, 2.0]);
    close(&values(average((1, 0), (1, 0)), &[&x]), &[2.0, 2.0]);
    // Ceil mode: of three pads behind, the last two only make room, the first counts.
    let tail = floats(&[1, 3, 1], &[1.0, 5.0, 4.0]);
    close(&values(average((0, 2), (0, 1)), &[&tail]), &[10.0 / 3.0, 2.0]);

    let cells = |function, sizes| AdaptivePool { function, sizes };
    let five = floats(&[1, 5, 1], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    // Cells 0..2, 1..4, 3..5.
    close(&values(cells(PoolFunction::Mean, vec![3]), &[&five]), &[1.5, 3.0, 4.5]);
    close(&values(cells(PoolFunction::Maximum, vec![3]), &[&five]), &[2.0, 4.0, 5.0]);
    close(&values(cells(PoolFunction::Mean, vec![1, 2]), &[&count(&[1, 2, 2, 1])]), &[1.0, 2.0]);
}

#[test]
fn resizing() {
    let op = |size: usize, mode, coordinates| Resize {
        axes: vec![0],
        sizes: vec![size],
        ratios: vec![Float(f64::from(2.0 / size as f32))],
        mode,
        coordinates,
    };
    use ResizeCoordinates::{AlignCorners, Asymmetric, HalfPixel};
    use ResizeMode::{Cubic, Linear, Nearest};
    let x = floats(&[2], &[10.0, 20.0]);
    close(&values(op(4, Nearest, Asymmetric), &[&x]), &[10.0, 10.0, 20.0, 20.0]);
    close(&values(op(3, Nearest, Asymmetric), &[&x]), &[10.0, 10.0, 20.0]);
    close(&values(op(3, Nearest, HalfPixel), &[&x]), &[10.0, 20.0, 20.0]);
    close(&values(op(4, Linear, HalfPixel), &[&x]), &[10.0, 12.5, 17.5, 20.0]);
    close(&values(op(4, Linear, Asymmetric), &[&x]), &[10.0, 15.0, 20.0, 20.0]);
    close(&values(op(3, Linear, AlignCorners), &[&x]), &[10.0, 15.0, 20.0]);
    close(&values(op(1, Linear, AlignCorners), &[&x]), &[10.0]);
    // Coordinate 0.25: weights -0.10546875, 0.87890625, 0.26171875, -0.03515625; the outer taps repeat the rim.
    let first = 10.0 * (-0.10546875 + 0.87890625) + 20.0 * (0.26171875 - 0.03515625);
    close(&values(op(4, Cubic, HalfPixel), &[&x])[1..2], &[first]);
    // Two axes at once: the mean of all four.
    let both = Resize {
        axes: vec![0, 1],
        sizes: vec![1, 1],
        ratios: vec![Float(2.0), Float(2.0)],
        mode: Linear,
        coordinates: HalfPixel,
    };
    close(&values(both, &[&count(&[2, 2])]), &[1.5]);
}

#[test]
fn softmax_and_normalize() {
    let x = floats(&[1, 3], &[1.0, 2.0, 3.0]);
    let soft = |logarithm| Softmax { axis: 1, logarithm };
    close(&values(soft(false), &[&x]), &[0.09003057, 0.24472847, 0.66524096]);
    close(&values(soft(true), &[&x]), &[-2.40760596, -1.40760596, -0.40760596]);
    close(&values(soft(false), &[&floats(&[1, 2], &[1000.0, 1000.0])]), &[0.5, 0.5]);
    close(&values(Softmax { axis: 0, logarithm: false }, &[&count(&[2, 1])]), &[0.26894142, 0.73105858]);
    let normalize = |center| Normalize { axes: vec![1], epsilon: Float(0.0), center };
    close(&values(normalize(true), &[&x]), &[-1.22474487, 0.0, 1.22474487]);
    close(&values(normalize(false), &[&x]), &[0.46291005, 0.9258201, 1.38873015]);
    let op = Normalize { axes: vec![0], epsilon: Float(3.0), center: true };
    close(&values(op, &[&floats(&[2, 1], &[0.0, 2.0])]), &[-0.5, 0.5]);
}

#[test]
fn recurrent_cells() {
    let one = |shape: &[usize], value: f64| floats(shape, &vec![value; shape.iter().product()]);
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let relu = |reverse| Recurrent {
        activations: vec![Expression::unary(UnaryFunction::Relu)],
        reverse,
        ..Recurrent::new(RecurrentCell::Rnn)
    };
    // Plain: h' = x + 2 h + 1, from 1: 1 + 2 + 1, then -20 + 8 + 1 is cut to 0.
    let x = floats(&[2, 1, 1], &[1.0, -20.0]);
    let plain = [&x, &one(&[1, 1], 2.0), &one(&[1], 1.0), &one(&[1, 1], 1.0)];
    let results = evaluate(relu(false), &plain);
    assert_eq!((results[0].to_floats(), results[1].to_floats()), (vec![4.0, 0.0], vec![0.0]));
    // Backwards -20 + 2 + 1 comes first and is cut; then 1 + 0 + 1.
    let results = evaluate(relu(true), &plain);
    assert_eq!((results[0].to_floats(), results[1].to_floats()), (vec![2.0, 0.0], vec![2.0]));
    close(&values(Recurrent::new(RecurrentCell::Rnn), &plain)[..1], &[4f64.tanh()]);

    // GRU: r, z, n of one unit; weights 0.5, 0.25, 2; biases 0, 0, 1; h = 1.
    let x = floats(&[1, 1, 3], &[0.1, 0.2, 0.3]);
    let w = floats(&[1, 3], &[0.5, 0.25, 2.0]);
    let gru = [&x, &w, &floats(&[3], &[0.0, 0.0, 1.0]), &one(&[1, 1], 1.0)];
    let (r, z) = (sigmoid(0.6), sigmoid(0.45));
    let n = (0.3 + r * 3.0f64).tanh();
    close(&values(Recurrent::new(RecurrentCell::Gru), &gru), &[(1.0 - z) * n + z]);

    // LSTM: i, f, g, o.
    let x = floats(&[1, 1, 4], &[0.1, 0.2, 0.3, 0.4]);
    let w = floats(&[1, 4], &[1.0, 2.0, 3.0, 4.0]);
    let (b, h, c) = (one(&[4], 0.0), one(&[1, 1], 0.5), one(&[1, 1], -1.0));
    let results = evaluate(Recurrent::new(RecurrentCell::Lstm), &[&x, &w, &b, &h, &c]);
    let cell = -sigmoid(1.2) + sigmoid(0.6) * 1.8f64.tanh();
    let hidden = sigmoid(2.4) * cell.tanh();
    close(&results[0].to_floats(), &[hidden]);
    close(&results[1].to_floats(), &[hidden]);
    close(&results[2].to_floats(), &[cell]);
    let op = Recurrent { with: vec![RecurrentOperand::Projection], ..Recurrent::new(RecurrentCell::Lstm) };
    let results = evaluate(op, &[&x, &w, &b, &h, &c, &one(&[1, 1], 3.0)]);
    close(&results[0].to_floats(), &[3.0 * hidden]);
    close(&results[2].to_floats(), &[cell]);
}

#[test]
fn recurrent_variants() {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let clipped_sigmoid = Expression::parse("sigmoid(minimum(x0, 0.5_f32))").unwrap();
    // Peepholes: i and f see the cell state before, o the one after; the gates' sums end at 0.5.
    let x = floats(&[1, 1, 4], &[0.1, 0.2, 0.3, 2.0]);
    let (w, b) = (floats(&[1, 4], &[1.0, 2.0, 3.0, 4.0]), floats(&[4], &[0.0; 4]));
    let (h, c, p) = (floats(&[1, 1], &[0.1]), floats(&[1, 1], &[-1.0]), floats(&[3], &[0.2, 0.3, 0.4]));
    let activations = vec![clipped_sigmoid, Expression::unary(UnaryFunction::Tanh), Expression::operand(0)];
    let with = vec![RecurrentOperand::Peepholes];
    let op = Recurrent { activations, with, ..Recurrent::new(RecurrentCell::Lstm) };
    let results = evaluate(op.clone(), &[&x, &w, &b, &h, &c, &p]);
    let cell = -sigmoid(0.4 - 0.3) + sigmoid(0.2 - 0.2) * 0.6f64.tanh();
    close(&results[2].to_floats(), &[cell]);
    close(&results[0].to_floats(), &[sigmoid(0.5) * cell]);
    // Coupled gates: f = 1 - i.
    let (x, w, b) = (floats(&[1, 1, 3], &[0.1, 0.3, -0.2]), floats(&[1, 3], &[1.0, 3.0, 4.0]), floats(&[3], &[0.0; 3]));
    let op = Recurrent { cell: RecurrentCell::CoupledLstm, ..op };
    let results = evaluate(op, &[&x, &w, &b, &h, &c, &floats(&[2], &[0.2, 0.4])]);
    let input = sigmoid(0.0);
    let cell = -(1.0 - input) + input * 0.6f64.tanh();
    close(&results[2].to_floats(), &[cell]);
    close(&results[0].to_floats(), &[sigmoid(0.2 + 0.4 * cell) * cell]);

    // The reset gate first: n of r * h.
    let (x, w) = (floats(&[1, 1, 3], &[0.1, 0.2, 0.3]), floats(&[1, 3], &[0.5, 0.25, 2.0]));
    let (b, h) = (floats(&[3], &[0.0, 0.0, 1.0]), floats(&[1, 1], &[1.0]));
    let (r, z) = (sigmoid(0.6), sigmoid(0.45));
    let n = (0.3 + 2.0 * r + 1.0f64).tanh();
    close(&values(Recurrent::new(RecurrentCell::ResetFirstGru), &[&x, &w, &b, &h]), &[(1.0 - z) * n + z]);

    // Lengths: h' = x + h; items of 2, 0 and more steps than there are.
    let op = |reverse| Recurrent {
        activations: vec![Expression::operand(0)],
        reverse,
        with: vec![RecurrentOperand::Lengths],
        ..Recurrent::new(RecurrentCell::Rnn)
    };
    let x = floats(&[3, 3, 1], &[1.0, 10.0, 100.0, 2.0, 20.0, 200.0, 3.0, 30.0, 300.0]);
    let (w, b, h) = (floats(&[1, 1], &[1.0]), floats(&[1], &[0.0]), floats(&[3, 1], &[0.5; 3]));
    let lengths = Tensor::from_integers(TensorType::new(DType::I64, [3]), vec![2, 0, 9]);
    let results = evaluate(op(false), &[&x, &w, &b, &h, &lengths]);
    assert_eq!(results[0].to_floats(), [1.5, 0.0, 100.5, 3.5, 0.0, 300.5, 0.0, 0.0, 600.5]);
    assert_eq!(results[1].to_floats(), [3.5, 0.5, 600.5]);
    let results = evaluate(op(true), &[&x, &w, &b, &h, &lengths]);
    assert_eq!(results[0].to_floats(), [3.5, 0.0, 600.5, 2.5, 0.0, 500.5, 0.0, 0.0, 300.5]);
    assert_eq!(results[1].to_floats(), [3.5, 0.5, 600.5]);
}

#[test]
fn reductions() {
    let op = |function, axes, keep_axes| Reduce { function, axes, keep_axes };
    let x = count(&[2, 3]);
    use ReduceFunction as R;
    assert_eq!(values(op(R::Sum, vec![0], false), &[&x]), [3.0, 5.0, 7.0]);
    assert_eq!(values(op(R::Mean, vec![1], true), &[&x]), [1.0, 4.0]);
    assert_eq!(values(op(R::Product, vec![0, 1], false), &[&x]), [0.0]);
    assert_eq!(values(op(R::Maximum, vec![1], false), &[&x]), [2.0, 5.0]);
    assert_eq!(values(op(R::Minimum, vec![0], false), &[&x]), [0.0, 1.0, 2.0]);
    assert_eq!(values(op(R::Sum, vec![], false), &[&x]), x.to_floats());
    assert!(values(op(R::Minimum, vec![0], false), &[&floats(&[2], &[f64::NAN, 1.0])])[0].is_nan());
    let bytes = integers(DType::I8, &[3], &[100, 100, 3]);
    assert_eq!(values(op(R::Sum, vec![0], false), &[&bytes]), [-53.0]);
    let bools = integers(DType::Bool, &[2, 2], &[1, 0, 1, 1]);
    assert_eq!(values(op(R::All, vec![1], false), &[&bools]), [0.0, 1.0]);
    assert_eq!(values(op(R::Any, vec![1], false), &[&bools]), [1.0, 1.0]);

    let arg = |function, last| ArgReduce { function, axis: 0, keep_axis: false, last };
    let ties = floats(&[4], &[1.0, 3.0, 3.0, 1.0]);
    assert_eq!(values(arg(ArgFunction::Maximum, false), &[&ties]), [1.0]);
    assert_eq!(values(arg(ArgFunction::Maximum, true), &[&ties]), [2.0]);
    assert_eq!(values(arg(ArgFunction::Minimum, true), &[&ties]), [3.0]);
    let nan = floats(&[3], &[1.0, f64::NAN, 5.0]);
    assert_eq!(values(arg(ArgFunction::Minimum, false), &[&nan]), [1.0]);

    let run = |exclusive, reverse| Cumulative { function: CumulativeFunction::Sum, axis: 0, exclusive, reverse };
    let x = floats(&[3], &[1.0, 2.0, 4.0]);
    assert_eq!(values(run(false, false), &[&x]), [1.0, 3.0, 7.0]);
    assert_eq!(values(run(true, false), &[&x]), [0.0, 1.0, 3.0]);
    assert_eq!(values(run(false, true), &[&x]), [7.0, 6.0, 4.0]);
    assert_eq!(values(run(true, true), &[&x]), [6.0, 4.0, 0.0]);
}

#[test]
fn movements() {
    let x = count(&[2, 3]);
    assert_eq!(values(Transpose { permutation: vec![1, 0] }, &[&x]), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let slice = Slice { starts: vec![1, 2], sizes: vec![1, 2], steps: vec![1, -2] };
    assert_eq!(values(slice, &[&x]), [5.0, 3.0]);
    assert_eq!(values(Concat { axis: 1 }, &[&x, &count(&[2, 1])]), [0.0, 1.0, 2.0, 0.0, 3.0, 4.0, 5.0, 1.0]);
    let broadcast = Broadcast { shape: [2, 2, 1].as_slice().into() };
    assert_eq!(values(broadcast, &[&count(&[2, 1])]), [0.0, 1.0, 0.0, 1.0]);
    let pad = |mode, pads| Pad { pads: vec![pads], mode, value: Literal::float(DType::F32, 9.0) };
    let line = count(&[3]);
    assert_eq!(values(pad(PadMode::Constant, (1, 2)), &[&line]), [9.0, 0.0, 1.0, 2.0, 9.0, 9.0]);
    assert_eq!(values(pad(PadMode::Reflect, (2, 1)), &[&line]), [2.0, 1.0, 0.0, 1.0, 2.0, 1.0]);
    assert_eq!(values(pad(PadMode::Replicate, (2, 1)), &[&line]), [0.0, 0.0, 0.0, 1.0, 2.0, 2.0]);
    assert_eq!(values(pad(PadMode::Circular, (1, 2)), &[&line]), [2.0, 0.0, 1.0, 2.0, 0.0, 1.0]);
    let indices = integers(DType::I64, &[2], &[-1, 0]);
    assert_eq!(values(Gather { axis: 1 }, &[&x, &indices]), [2.0, 0.0, 5.0, 3.0]);
    let scalar = integers(DType::I32, &[], &[1]);
    assert_eq!(values(Gather { axis: 0 }, &[&x, &scalar]), [3.0, 4.0, 5.0]);
}

#[test]
fn scalar_functions() {
    let unary = |function, x: f64| values(Unary { function }, &[&floats(&[], &[x])])[0];
    use UnaryFunction as U;
    let table = [
        (U::Sigmoid, 0.5, 0.62245933),
        (U::Silu, 1.0, 0.73105858),
        (U::Gelu, 1.0, 0.84134475),
        (U::GeluTanh, 1.0, 0.84119199),
        (U::HardSigmoid, 1.0, 2.0 / 3.0),
        (U::HardSwish, -1.0, -1.0 / 3.0),
        (U::HardSwish, 4.0, 4.0),
        (U::Softplus, 1.0, 1.31326169),
        (U::Softplus, 100.0, 100.0),
        (U::Mish, 1.0, 0.86509839),
        (U::Softsign, -3.0, -0.75),
        (U::LogSigmoid, -100.0, -100.0),
        (U::Erf, 0.5, 0.52049988),
        (U::Round, 2.5, 2.0),
        (U::Round, -1.5, -2.0),
        (U::Truncate, -1.5, -1.0),
        (U::Sign, -0.5, -1.0),
        (U::Rsqrt, 4.0, 0.5),
        (U::Exp2, 3.0, 8.0),
        (U::Log10, 1000.0, 3.0),
        (U::Relu6, 7.0, 6.0),
        (U::LogGamma, 4.0, 6f64.ln()),
        (U::Relu, f64::NAN, f64::NAN),
        (U::Relu6, f64::NAN, f64::NAN),
    ];
    for (function, x, expected) in table {
        close(&[unary(function, x)], &[expected]);
    }
    let binary = |function, x: f64, y: f64| values(Binary { function }, &[&floats(&[], &[x]), &floats(&[], &[y])])[0];
    use BinaryFunction as B;
    let table = [
        (B::FloorDivide, -7.0, 2.0, -4.0),
        (B::Modulo, -7.0, 2.0, 1.0),
        (B::Modulo, 7.0, -2.0, -1.0),
        (B::Remainder, -7.0, 2.0, -1.0),
        (B::Power, 2.0, -1.0, 0.5),
        (B::Maximum, f64::NAN, 1.0, f64::NAN),
        (B::Minimum, 1.0, f64::NAN, f64::NAN),
        (B::Atan2, 1.0, -1.0, 2.35619449),
        (B::LogAddExp, 1.0, 2.0, 2.31326169),
        (B::NotEqual, f64::NAN, f64::NAN, 1.0),
        (B::LessEqual, f64::NAN, 1.0, 0.0),
    ];
    for (function, x, y, expected) in table {
        close(&[binary(function, x, y)], &[expected]);
    }
    let whole = |function, dtype, x: i64, y: i64| {
        evaluate(Binary { function }, &[&integers(dtype, &[], &[x]), &integers(dtype, &[], &[y])])[0].to_integers()[0]
    };
    assert_eq!(whole(B::Divide, DType::I32, -7, 2), -3);
    assert_eq!(whole(B::FloorDivide, DType::I32, -7, 2), -4);
    assert_eq!(whole(B::Modulo, DType::I32, -7, 2), 1);
    assert_eq!(whole(B::Divide, DType::I32, 7, 0), 0);
    assert_eq!(whole(B::Divide, DType::I32, i64::from(i32::MIN), -1), i64::from(i32::MIN));
    assert_eq!(whole(B::Multiply, DType::U8, 16, 17), 16);
    assert_eq!(whole(B::Power, DType::I64, 3, 4), 81);
    assert_eq!(whole(B::ShiftRight, DType::I8, -128, 20), -1);
    assert_eq!(whole(B::ShiftLeft, DType::I8, 1, 8), 0);
    assert_eq!(whole(B::Maximum, DType::U64, -1, 5), -1);
    let cast = |dtype, x: f64| values(Cast { dtype }, &[&floats(&[], &[x])])[0];
    assert_eq!(cast(DType::I32, -1.9), -1.0);
    assert_eq!(cast(DType::I8, 300.0), 127.0);
    assert_eq!(cast(DType::U8, -1.0), 0.0);
    assert_eq!(cast(DType::I32, f64::NAN), 0.0);
    assert_eq!(cast(DType::Bool, 0.5), 1.0);
    assert_eq!(cast(DType::Bf16, 1.003_906_25), 1.0);
    let cast = |dtype, x: f64| {
        let x = Tensor::from_floats(TensorType::new(DType::F64, []), vec![x]);
        values(Cast { dtype }, &[&x])[0]
    };
    // A tie goes to even, what lies beside it to its own side, however close it is.
    let tie = 1.0 + 2f64.powi(-11);
    assert_eq!(cast(DType::F16, tie), 1.0);
    assert_eq!(cast(DType::F16, tie + 2f64.powi(-45)), 1.0 + 2f64.powi(-10));
    assert_eq!(cast(DType::F16, 65_519.999_999_999), 65504.0);
    assert_eq!(cast(DType::F16, 65520.0), f64::INFINITY);
    assert_eq!(cast(DType::F16, 2f64.powi(-25) * (1.0 + 2f64.powi(-40))), 2f64.powi(-24));
}

#[test]
fn parametrised_functions() {
    let x = floats(&[3], &[-2.0, 0.5, 3.0]);
    close(&values(LeakyRelu { slope: Float(0.1) }, &[&x]), &[-0.2, 0.5, 3.0]);
    let refused = Op::from(LeakyRelu { slope: Float(0.1) }).infer(&[TensorType::new(DType::I32, [3])]).unwrap_err();
    assert_eq!(refused.to_string(), "leaky_relu isn't defined for i32[3]");
    close(&values(Elu { alpha: Float(2.0) }, &[&x]), &[2.0 * ((-2f64).exp() - 1.0), 0.5, 3.0]);
    close(&values(Clamp { low: Float(-1.0), high: Float(2.0) }, &[&x]), &[-1.0, 0.5, 2.0]);
    let condition = integers(DType::Bool, &[3], &[1, 0, 1]);
    assert_eq!(values(Select {}, &[&condition, &x, &floats(&[1], &[7.0])]), [-2.0, 7.0, 3.0]);
}
