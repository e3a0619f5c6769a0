//! Samples of the rules: integers that stand for real numbers, and what is done with these.

use super::real::{conversion, quantisation};
use crate::sketch::{
    Sketch, average_pool, binary, cast, clamp, concat, max_pool, pad, reshape, slice, transpose, unary,
};
use mlc_ir::ops::TransposedConvolution;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Generator, Graph, Literal, Op, Tensor, TensorType, Value};

const BYTES: &[DType] = &[DType::I8, DType::U8];

/// Positive scales.
fn scales(s: &mut Sketch<'_>, shape: &[usize]) -> Value {
    let ty = TensorType::new(DType::F32, shape);
    let numbers = (0..ty.elements()).map(|_| 0.75 + 0.5 * s.random.unit()).collect();
    s.known(&Tensor::from_floats(ty, numbers))
}

/// Conversion of integers to real numbers, most often with a zero point.
fn real(s: &mut Sketch<'_>, integers: Value, dtype: DType, scale: Value) -> Value {
    let zero = s.random.range(0, 4) as f64;
    if s.random.one_in(3) || dtype == DType::I32 {
        return s.apply(conversion(false), &[integers, scale]);
    }
    let zero = s.splat(dtype, &[], zero);
    s.apply(conversion(true), &[integers, scale, zero])
}

/// An input of bytes as real numbers with one scale.
fn image(s: &mut Sketch<'_>, shape: &[usize]) -> Value {
    let dtype = s.random.choose(BYTES);
    let (x, scale) = (s.input_of(dtype, shape), scales(s, &[]));
    real(s, x, dtype, scale)
}

/// A constant of bytes as real numbers with scales of some shape.
fn weights(s: &mut Sketch<'_>, shape: &[usize], scale: &[usize]) -> Value {
    let dtype = s.random.choose(BYTES);
    let (w, scale) = (s.constant_of(dtype, shape), scales(s, scale));
    real(s, w, dtype, scale)
}

pub(super) fn movement(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 4);
    let elements = shape.iter().product();
    let moves = s.random.range(0, 4);
    let x = if moves < 2 && s.random.one_in(2) {
        let mut along = vec![1; shape.len()];
        let axis = s.random.range(0, shape.len() - 1);
        along[axis] = shape[axis];
        let first = s.random.range(0, axis);
        weights(&mut s, &shape, &along[first..])
    } else {
        image(&mut s, &shape)
    };
    let op: Op = match moves {
        0 | 1 => transpose(&s.permutation(shape.len())),
        2 => reshape(&[elements]),
        3 => {
            let axis = s.random.range(0, shape.len() - 1);
            let size = s.random.range(1, shape[axis]);
            slice(&shape, axis, s.random.range(0, shape[axis] - size), size)
        }
        _ => pad(vec![(1, 2); shape.len()], Literal::of(DType::F32, 0.0)),
    };
    let y = s.apply(op, &[x]);
    s.finish(y)
}

pub(super) fn concat_of(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 3);
    let axis = s.random.range(0, shape.len() - 1);
    let (dtype, scale) = (s.random.choose(BYTES), scales(&mut s, &[]));
    let zero = s.splat(dtype, &[], 3.0);
    let has_zero = s.random.one_in(2);
    let parts: Vec<Value> = (0..s.random.range(1, 3))
        .map(|_| {
            let x = s.input_of(dtype, &shape);
            let operands = [x, scale, zero];
            s.apply(conversion(has_zero), &operands[..if has_zero { 3 } else { 2 }])
        })
        .collect();
    let y = s.apply(concat(axis), &parts);
    s.finish(y)
}

pub(super) fn max_pool_of(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.image();
    let spatial = shape.len() - 2;
    let x = image(&mut s, &shape);
    let pads = vec![(s.random.range(0, 1), s.random.range(0, 1)); spatial];
    let y = s.apply(max_pool(vec![2; spatial], vec![1; spatial], pads), &[x]);
    s.finish(y)
}

pub(super) fn relu(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 3);
    let x = if s.random.one_in(3) {
        let along = [shape[shape.len() - 1]];
        let (x, scale) = (s.input_of(DType::I32, &shape), scales(&mut s, &along));
        s.apply(conversion(false), &[x, scale])
    } else {
        image(&mut s, &shape)
    };
    let y = s.apply(unary(U::Relu), &[x]);
    s.finish(y)
}

pub(super) fn products(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let per_result = s.random.one_in(2);
    let (op, left, right, along): (Op, Vec<usize>, Vec<usize>, Vec<usize>) = match s.random.range(0, 3) {
        0 => {
            let (op, left, right) = s.matmul();
            let columns = right[right.len() - 1 - usize::from(op.transpose_right)];
            let along = if op.transpose_right { vec![columns, 1] } else { vec![columns] };
            (op.into(), left, right, along)
        }
        1 => {
            let (op, shape, right) = transposed(&mut s);
            let along = if op.groups == 1 { vec![right[right.len() - 1]] } else { Vec::new() };
            (op.into(), shape, right, along)
        }
        _ => {
            let shape = s.image();
            let (op, right) = s.convolution(&shape, true);
            let along = vec![right[right.len() - 1]];
            (op.into(), shape, right, along)
        }
    };
    let x = image(&mut s, &left);
    let weights = weights(&mut s, &right, if per_result { &along } else { &[] });
    let y = s.apply(op, &[x, weights]);
    s.finish(y)
}

fn transposed(s: &mut Sketch<'_>) -> (TransposedConvolution, Vec<usize>, Vec<usize>) {
    let shape = s.image();
    let spatial = shape.len() - 2;
    let channels = shape[spatial + 1];
    let groups = if channels.is_multiple_of(2) { s.random.range(1, 2) } else { 1 };
    let mut weights = vec![2; spatial];
    weights.extend([channels, s.random.range(1, 3)]);
    let op = TransposedConvolution {
        strides: vec![s.random.range(1, 2); spatial],
        dilations: vec![1; spatial],
        pads: vec![(0, s.random.range(0, 1)); spatial],
        output_pads: vec![0; spatial],
        groups,
        sums: None,
    };
    (op, shape, weights)
}

pub(super) fn average_pool_of(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.image();
    let spatial = shape.len() - 2;
    let window: Vec<usize> = (0..spatial).map(|axis| s.random.range(1, shape[axis + 1].min(3))).collect();
    let pads: Vec<(usize, usize)> = window.iter().map(|&taps| (s.random.range(0, taps - 1), 0)).collect();
    let strides = (0..spatial).map(|_| s.random.range(1, 2)).collect();
    let x = image(&mut s, &shape);
    let y = s.apply(average_pool(window, strides, pads.clone(), pads), &[x]);
    s.finish(y)
}

/// Bytes, or numbers of 16 bits, in 32 bits, most often less a zero point.
fn centred(s: &mut Sketch<'_>, x: Value, dtype: DType, known: bool) -> Value {
    let wide = s.apply(cast(DType::I32), &[x]);
    if s.random.one_in(4) {
        return wide;
    }
    let number = match dtype {
        DType::U8 => s.random.choose(&[1.0, 9.0, 128.0, 200.0]),
        DType::I8 => s.random.choose(&[-100.0, 1.0, 0.0, 125.0]),
        _ => 1000.0,
    };
    let zero = if known { s.splat(dtype, &[], number) } else { s.input_of(dtype, &[]) };
    let zero = s.apply(cast(DType::I32), &[zero]);
    s.apply(binary(B::Subtract), &[wide, zero])
}

pub(super) fn centred_movement(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 4);
    let dtype = s.random.choose(BYTES);
    let x = s.input_of(dtype, &shape);
    let x = if s.random.one_in(3) {
        let mut along = vec![1; shape.len()];
        let axis = s.random.range(0, shape.len() - 1);
        along[axis] = shape[axis];
        let wide = s.apply(cast(DType::I32), &[x]);
        let first = s.random.range(0, axis);
        let zero = s.constant_of(DType::I32, &along[first..]);
        s.apply(binary(B::Subtract), &[wide, zero])
    } else {
        let known = s.random.one_in(2);
        centred(&mut s, x, dtype, known)
    };
    let op = match s.random.range(0, 3) {
        0 | 1 => transpose(&s.permutation(shape.len())),
        2 => reshape(&[shape.iter().product()]),
        _ => {
            let axis = s.random.range(0, shape.len() - 1);
            let size = s.random.range(1, shape[axis]);
            slice(&shape, axis, s.random.range(0, shape[axis] - size), size)
        }
    };
    let y = s.apply(op, &[x]);
    s.finish(y)
}

pub(super) fn centred_products(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let (op, left, right): (Op, Vec<usize>, Vec<usize>) = match s.random.range(0, 4) {
        0 | 1 => {
            let (op, left, right) = s.matmul();
            (op.into(), left, right)
        }
        2 => {
            let (op, shape, right) = transposed(&mut s);
            (op.into(), shape, right)
        }
        _ => {
            let shape = s.image();
            let padded = s.random.one_in(2);
            let (op, right) = s.convolution(&shape, padded);
            (op.into(), shape, right)
        }
    };
    let (of_x, of_weights) = (s.random.choose(BYTES), s.random.choose(&[DType::I8, DType::U8, DType::I16]));
    let (known, is_constant) = (!s.random.one_in(4), !s.random.one_in(4));
    let x = s.input_of(of_x, &left);
    let w = if is_constant { s.constant_of(of_weights, &right) } else { s.input_of(of_weights, &right) };
    let x = centred(&mut s, x, of_x, known);
    let w = if s.random.one_in(5) { s.constant_of(DType::I32, &right) } else { centred(&mut s, w, of_weights, true) };
    let y = s.apply(op, &[x, w]);
    s.finish(y)
}

pub(super) fn bias(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let mut shape = s.random_shape(1, 3);
    shape.push(s.random.range(2, 4));
    let channels = shape[shape.len() - 1];
    let along: &[usize] = if s.random.one_in(2) { &[channels] } else { &[] };
    let dtype = s.random.choose(BYTES);
    let x = s.input_of(dtype, &shape);
    let mut sums = s.apply(cast(DType::I32), &[x]);
    if s.random.one_in(2) {
        let correction = s.constant_of(DType::I32, &[channels]);
        sums = s.apply(binary(B::Add), &[sums, correction]);
    }
    let scale = scales(&mut s, along);
    let own = s.apply(conversion(false), &[sums, scale]);
    let bias = s.constant_of(DType::I32, &[channels]);
    let bias = s.apply(conversion(false), &[bias, scale]);
    let operands = if s.random.one_in(2) { [own, bias] } else { [bias, own] };
    let y = s.apply(binary(B::Add), &operands);
    s.finish(y)
}

pub(super) fn factor(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 3);
    let x = image(&mut s, &shape);
    let c = scales(&mut s, &[]);
    let function = s.random.choose(&[B::Multiply, B::Divide]);
    let y = s.apply(binary(function), &[x, c]);
    s.finish(y)
}

/// A clamp, a relu or nothing.
fn limited(s: &mut Sketch<'_>, x: Value) -> Value {
    match s.random.range(0, 3) {
        0 => s.apply(unary(U::Relu), &[x]),
        1 => s.apply(unary(U::Relu6), &[x]),
        2 => s.apply(clamp(-1.0, 1.5), &[x]),
        _ => x,
    }
}

pub(super) fn clamped(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 3);
    let x = image(&mut s, &shape);
    let x = limited(&mut s, x);
    let c = scales(&mut s, &[]);
    let y = s.apply(binary(B::Divide), &[x, c]);
    s.finish(y)
}

pub(super) fn weighted_sum(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 3);
    let narrower = s.random.broadcastable(&shape).to_vec();
    let (x, y) = (image(&mut s, &shape), image(&mut s, &narrower));
    let sum = s.apply(binary(B::Add), &[x, y]);
    let sum = limited(&mut s, sum);
    let c = scales(&mut s, &[]);
    let y = s.apply(binary(B::Divide), &[sum, c]);
    s.finish(y)
}

pub(super) fn product(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 3);
    let narrower = s.random.broadcastable(&shape).to_vec();
    let (x, y) = (image(&mut s, &shape), image(&mut s, &narrower));
    let y = s.apply(binary(B::Multiply), &[x, y]);
    s.finish(y)
}

pub(super) fn requantisation(g: &mut Generator) -> Graph {
    let mut s = Sketch::new(g);
    let shape = s.random_shape(1, 3);
    let dtype = s.random.choose(BYTES);
    let (x, one, zero) = (s.input_of(dtype, &shape), s.splat(DType::F32, &[], 1.0), s.splat(dtype, &[], 2.0));
    let has_zero = s.random.one_in(2);
    let operands = [x, one, zero];
    let real = s.apply(conversion(has_zero), &operands[..if has_zero { 3 } else { 2 }]);
    let operands = [real, zero];
    let y = s.apply(quantisation(dtype, has_zero), &operands[..if has_zero { 2 } else { 1 }]);
    s.finish(y)
}
