//! Layers as models have them: what the optimiser's rules and the memory planner look for. Each takes earlier values and adds
//! its results to the draft; where an operator can't be applied, its operand goes on in its place.

use super::adapt::{binary, extended, shaped, unary};
use super::draft::Draft;
use super::selections::{masked, truths};
use mlc_ir::ops::{
    AveragePool, Binary, Clamp, Concat, Convolution, LeakyRelu, Matmul, MaxPool, Normalize, Pad, PadMode, Reduce,
    ReduceFunction, Reshape, Slice, Softmax, Transpose, TransposedConvolution,
};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Float, Literal, TensorType, Value};

/// Adds a layer.
pub type Layer = fn(&mut Draft<'_>) -> Option<()>;

/// Every kind of layer.
pub const LAYERS: [Layer; 15] = [
    convolutions,
    convolutions,
    depthwise_separable,
    linear_chain,
    attention,
    branches,
    parts,
    elementwise_chain,
    elementwise_chain,
    movement_chain,
    gate,
    normalization,
    masked,
    masked,
    truths,
];

const ACTIVATIONS: [UnaryFunction; 10] = [
    UnaryFunction::Relu,
    UnaryFunction::Relu,
    UnaryFunction::Relu6,
    UnaryFunction::Sigmoid,
    UnaryFunction::Tanh,
    UnaryFunction::HardSwish,
    UnaryFunction::Silu,
    UnaryFunction::Gelu,
    UnaryFunction::Mish,
    UnaryFunction::Negate,
];

/// A random constant of the value's data type.
fn weights(draft: &mut Draft<'_>, x: Value, shape: &[usize]) -> Value {
    let ty = TensorType::new(draft.dtype(x), shape);
    draft.constant(&ty)
}

/// Most often an activation.
fn activated(draft: &mut Draft<'_>, x: Value) -> Value {
    match draft.random.range(0, 7) {
        0 => x,
        1 => draft.try_apply(LeakyRelu { slope: Float(0.1) }, &[x]),
        2 => draft.try_apply(Clamp { low: Float(-0.5), high: Float(1.5) }, &[x]),
        _ => {
            let function = draft.random.choose(&ACTIVATIONS);
            unary(draft, function, x)
        }
    }
}

/// A float tensor of this rank: an earlier value, as it is or reshaped, or a new input.
fn tensor(draft: &mut Draft<'_>, rank: usize) -> Option<Value> {
    let fitting = draft.pick_where(|ty| ty.dtype.is_float() && ty.rank() == rank);
    if let Some(value) = fitting
        && !draft.random.one_in(6)
    {
        return Some(draft.tame(value));
    }
    let shape: Vec<usize> = match rank {
        4 => vec![1, draft.random.range(3, 9), draft.random.range(3, 9), draft.random.range(1, 12)],
        _ => (0..rank).map(|_| draft.random.range(1, 8)).collect(),
    };
    let other = draft.pick_where(|ty| ty.dtype.is_float());
    if let Some(value) = other
        && draft.random.one_in(2)
    {
        let value = draft.tame(value);
        return shaped(draft, value, &shape);
    }
    let floats: Vec<DType> = draft.dtypes.iter().copied().filter(|dtype| dtype.is_float()).collect();
    let dtype = if draft.random.one_in(6) { draft.random.choose(&floats) } else { DType::F32 };
    Some(draft.input(&TensorType::new(dtype, shape)))
}

/// What follows a convolution or a product: a bias, scale and shift of a batch normalisation, an activation, a residual.
fn finished(draft: &mut Draft<'_>, mut y: Value, shortcut: Value) -> Value {
    let channels = draft.shape(y).last().copied().unwrap_or(1);
    if !draft.random.one_in(4) {
        let bias = weights(draft, y, &[channels]);
        y = binary(draft, BinaryFunction::Add, y, bias);
    }
    if draft.random.one_in(3) {
        let (scale, shift) = (weights(draft, y, &[channels]), weights(draft, y, &[channels]));
        y = binary(draft, BinaryFunction::Multiply, y, scale);
        y = binary(draft, BinaryFunction::Add, y, shift);
    }
    let same = draft.ty(y) == draft.ty(shortcut);
    if same && draft.random.one_in(3) {
        y = binary(draft, BinaryFunction::Add, y, shortcut);
        return activated(draft, y);
    }
    y = activated(draft, y);
    if same && draft.random.one_in(3) {
        y = binary(draft, BinaryFunction::Add, shortcut, y);
    }
    draft.tame(y)
}

/// A convolution of a channels-last image.
fn convolution(draft: &mut Draft<'_>, x: Value, depthwise: bool) -> Value {
    let shape = draft.shape(x);
    let channels = shape[3];
    let window: Vec<usize> =
        shape[1..3].iter().map(|&extent| draft.random.choose(&[1, 1, 3, 3, 2, 5]).min(extent)).collect();
    let groups = if depthwise {
        channels
    } else if channels.is_multiple_of(2) && draft.random.one_in(4) {
        2
    } else {
        1
    };
    let per_group = if depthwise { draft.random.choose(&[1, 1, 2]) } else { draft.random.choose(&[1, 2, 3, 4, 8, 11]) };
    let weights = weights(draft, x, &[window[0], window[1], channels / groups, groups * per_group]);
    let pads = if draft.random.one_in(3) {
        vec![(0, 0); 2]
    } else {
        window.iter().map(|&taps| ((taps - 1) / 2, taps / 2)).collect()
    };
    let stride = draft.random.choose(&[1, 1, 1, 2]);
    if draft.random.one_in(10) {
        let op = TransposedConvolution {
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            pads,
            output_pads: vec![0; 2],
            groups,
            sums: None,
        };
        return draft.try_apply(op, &[x, weights]);
    }
    draft.try_apply(
        Convolution { strides: vec![stride; 2], dilations: vec![1; 2], pads, groups, border: 0, sums: None },
        &[x, weights],
    )
}

fn pooled(draft: &mut Draft<'_>, x: Value) -> Value {
    let (window, strides, dilations) = (vec![2; 2], vec![draft.random.range(1, 2); 2], vec![1; 2]);
    let pads = vec![(draft.random.range(0, 1), draft.random.range(0, 1)); 2];
    if draft.random.one_in(2) {
        return draft.try_apply(MaxPool { window, strides, dilations, pads }, &[x]);
    }
    let counted_pads = if draft.random.one_in(2) { pads.clone() } else { vec![(0, 0); 2] };
    draft.try_apply(AveragePool { window, strides, dilations, pads, counted_pads }, &[x])
}

/// One to three convolutions with what follows them, perhaps between transposes as of a channels-first model.
fn convolutions(draft: &mut Draft<'_>) -> Option<()> {
    let mut x = tensor(draft, 4)?;
    let channels_first = draft.random.one_in(2);
    for _ in 0..draft.random.range(1, 3) {
        if channels_first {
            x = draft.try_apply(Transpose { permutation: vec![0, 2, 3, 1] }, &[x]);
        }
        if draft.random.one_in(6) {
            let (pad, value) = (draft.random.range(0, 2), Literal::of(draft.dtype(x), 0.0));
            let pads = vec![(0, 0), (pad, 1), (1, pad), (0, 0)];
            x = draft.try_apply(Pad { pads, mode: PadMode::Constant, value }, &[x]);
        }
        let y = convolution(draft, x, false);
        let mut y = finished(draft, y, x);
        if draft.random.one_in(4) {
            y = pooled(draft, y);
        }
        if channels_first {
            y = draft.try_apply(Transpose { permutation: vec![0, 3, 1, 2] }, &[y]);
        }
        x = y;
    }
    Some(())
}

fn depthwise_separable(draft: &mut Draft<'_>) -> Option<()> {
    let x = tensor(draft, 4)?;
    let y = convolution(draft, x, true);
    let y = finished(draft, y, x);
    let z = convolution(draft, y, false);
    finished(draft, z, x);
    Some(())
}

/// A product with constant weights.
fn linear(draft: &mut Draft<'_>, x: Value, outputs: usize) -> Value {
    let inner = draft.shape(x).last().copied().unwrap_or(1);
    let transpose_right = draft.random.one_in(2);
    let weights = weights(draft, x, &if transpose_right { [outputs, inner] } else { [inner, outputs] });
    draft.try_apply(Matmul { transpose_left: false, transpose_right, sums: None }, &[x, weights])
}

fn linear_chain(draft: &mut Draft<'_>) -> Option<()> {
    let rank = draft.random.range(2, 3);
    let mut x = tensor(draft, rank)?;
    for _ in 0..draft.random.range(1, 3) {
        let outputs = draft.random.choose(&[1, 3, 4, 8, 10, 17]);
        let y = linear(draft, x, outputs);
        x = finished(draft, y, x);
    }
    if draft.random.one_in(3) {
        let (axis, logarithm) = (draft.shape(x).len() - 1, draft.random.one_in(3));
        draft.try_apply(Softmax { axis, logarithm }, &[x]);
    }
    Some(())
}

/// Self-attention of one head: three products of one value, which can become one.
fn attention(draft: &mut Draft<'_>) -> Option<()> {
    let x = tensor(draft, 2)?;
    let width = draft.random.choose(&[2, 4, 8]);
    let parts: Vec<Value> = (0..3)
        .map(|_| {
            let product = linear(draft, x, width);
            let bias = weights(draft, product, &[width]);
            binary(draft, BinaryFunction::Add, product, bias)
        })
        .collect();
    let scores = draft.apply(Matmul { transpose_left: false, transpose_right: true, sums: None }, &parts[..2])?[0];
    let scale = draft.splat(TensorType::new(draft.dtype(x), []), 0.25);
    let scores = binary(draft, BinaryFunction::Multiply, scores, scale);
    let scores = draft.try_apply(Softmax { axis: 1, logarithm: false }, &[scores]);
    let y = draft.apply(Matmul { transpose_left: false, transpose_right: false, sums: None }, &[scores, parts[2]])?[0];
    finished(draft, y, x);
    Some(())
}

/// Several branches from one value, joined again.
fn branches(draft: &mut Draft<'_>) -> Option<()> {
    let x = tensor(draft, 4)?;
    let count = draft.random.range(2, 3);
    let mut ends = Vec::new();
    for _ in 0..count {
        let end = match draft.random.range(0, 3) {
            0 => activated(draft, x),
            1 => pooled(draft, x),
            _ => {
                let y = convolution(draft, x, false);
                finished(draft, y, x)
            }
        };
        ends.push(end);
    }
    let (first, axis) = (draft.shape(ends[0]), draft.random.choose(&[3, 3, 3, 1, 2]));
    for end in &mut ends[1..] {
        for other in (0..4).filter(|&other| other != axis) {
            *end = extended(draft, *end, other, first[other])?;
        }
    }
    let joined = draft.try_apply(Concat { axis }, &ends);
    activated(draft, joined);
    Some(())
}

/// A value cut into parts along an axis, each used by itself, and joined again.
fn parts(draft: &mut Draft<'_>) -> Option<()> {
    let x = draft.pick_where(|ty| ty.dtype.is_float() && ty.shape.iter().any(|&extent| extent > 1))?;
    let x = draft.tame(x);
    let shape = draft.shape(x);
    let axes: Vec<usize> = (0..shape.len()).filter(|&axis| shape[axis] > 1).collect();
    let axis = draft.random.choose(&axes);
    let border = draft.random.range(1, shape[axis] - 1);
    let mut ends = Vec::new();
    for range in [0..border, border..shape[axis]] {
        let (mut starts, mut sizes) = (vec![0; shape.len()], shape.clone());
        (starts[axis], sizes[axis]) = (range.start, range.len());
        let part = draft.try_apply(Slice { starts, sizes, steps: vec![1; shape.len()] }, &[x]);
        ends.push(activated(draft, part));
    }
    if draft.random.one_in(3) {
        ends.reverse();
    }
    draft.try_apply(Concat { axis }, &ends);
    Some(())
}

/// Unary and binary functions, with constants that make some of them trivial.
fn elementwise_chain(draft: &mut Draft<'_>) -> Option<()> {
    let mut x = draft.pick_where(|ty| ty.dtype != DType::Bool)?;
    for _ in 0..draft.random.range(2, 6) {
        let (dtype, shape) = (draft.dtype(x), draft.shape(x));
        let next = if draft.random.one_in(2) {
            let function = draft.random.choose(UnaryFunction::ALL);
            unary(draft, function, x)
        } else {
            let y = match draft.random.range(0, 5) {
                0 => {
                    let number = draft.random.choose(&[0.0, 1.0, -1.0, 0.5, 2.0, 3.0]);
                    draft.splat(TensorType::new(dtype, []), number)
                }
                1 => {
                    let ty = TensorType::new(dtype, draft.random.broadcastable(&shape));
                    draft.constant(&ty)
                }
                2 => x,
                _ => draft.pick_where(|ty| ty.dtype == dtype && ty.shape[..] == shape)?,
            };
            let function = draft.random.choose(BinaryFunction::ALL);
            let operands = if draft.random.one_in(4) { [y, x] } else { [x, y] };
            draft.apply(Binary { function }, &operands).map_or(x, |results| results[0])
        };
        x = draft.tame(next);
    }
    Some(())
}

/// Movements one after the other, which can become one, or none.
fn movement_chain(draft: &mut Draft<'_>) -> Option<()> {
    let mut x = draft.pick()?;
    for _ in 0..draft.random.range(2, 5) {
        let shape = draft.shape(x);
        let rank = shape.len();
        x = match draft.random.range(0, 4) {
            0 | 1 if rank > 1 => {
                let mut permutation: Vec<usize> = (0..rank).collect();
                let (a, b) = (draft.random.range(0, rank - 1), draft.random.range(0, rank - 1));
                permutation.swap(a, b);
                permutation.rotate_left(draft.random.choose(&[0, 0, 1]));
                draft.try_apply(Transpose { permutation }, &[x])
            }
            2 if rank > 1 => {
                let mut joined = shape.clone();
                let place = draft.random.range(0, rank - 2);
                let extent = joined.remove(place);
                joined[place] *= extent;
                let flat = draft.try_apply(Reshape { shape: joined[..].into() }, &[x]);
                let other = activated_where_float(draft, flat);
                if draft.random.one_in(2) {
                    other
                } else {
                    draft.try_apply(Reshape { shape: shape[..].into() }, &[other])
                }
            }
            _ if rank > 0 => {
                let axis = draft.random.range(0, rank - 1);
                let extent = draft.random.range(1, shape[axis] + 2);
                extended(draft, x, axis, extent)?
            }
            _ => shaped(draft, x, &[1, 1])?,
        };
    }
    activated_where_float(draft, x);
    Some(())
}

fn activated_where_float(draft: &mut Draft<'_>, x: Value) -> Value {
    if draft.dtype(x).is_float() { activated(draft, x) } else { x }
}

/// Squeeze and excite: the mean of each channel, through two products, weighs the channels.
fn gate(draft: &mut Draft<'_>) -> Option<()> {
    let x = tensor(draft, 4)?;
    let channels = draft.shape(x)[3];
    let mean = Reduce { function: ReduceFunction::Mean, axes: vec![1, 2], keep_axes: draft.random.one_in(2) };
    let squeezed = draft.apply(mean, &[x])?[0];
    let shape = draft.shape(squeezed);
    let hidden = linear(draft, squeezed, 3);
    let hidden = activated(draft, hidden);
    let weights = linear(draft, hidden, channels);
    let weights = unary(draft, UnaryFunction::Sigmoid, weights);
    let batch = shape[0];
    let weights = shaped(draft, weights, &[batch, 1, 1, channels])?;
    binary(draft, BinaryFunction::Multiply, x, weights);
    Some(())
}

/// Layer normalisation, as one operator or spelled out, with scale and shift.
fn normalization(draft: &mut Draft<'_>) -> Option<()> {
    let rank = draft.random.range(1, 4);
    let x = tensor(draft, rank)?;
    let axis = draft.random.range(0, rank - 1);
    let mut y = if draft.random.one_in(2) {
        let center = !draft.random.one_in(3);
        draft.apply(Normalize { axes: vec![axis], epsilon: Float(0.01), center }, &[x])?[0]
    } else {
        let mean = || Reduce { function: ReduceFunction::Mean, axes: vec![axis], keep_axes: true };
        let center = draft.apply(mean(), &[x])?[0];
        let moved = binary(draft, BinaryFunction::Subtract, x, center);
        let square = unary(draft, UnaryFunction::Square, moved);
        let variance = draft.apply(mean(), &[square])?[0];
        let epsilon = draft.splat(TensorType::new(draft.dtype(x), []), 0.01);
        let variance = binary(draft, BinaryFunction::Add, variance, epsilon);
        let deviation = unary(draft, UnaryFunction::Sqrt, variance);
        binary(draft, BinaryFunction::Divide, moved, deviation)
    };
    let mut vector = vec![1; rank - axis];
    vector[0] = draft.shape(y)[axis];
    for function in [BinaryFunction::Multiply, BinaryFunction::Add] {
        let constant = weights(draft, y, &vector);
        y = binary(draft, function, y, constant);
    }
    draft.tame(y);
    Some(())
}
