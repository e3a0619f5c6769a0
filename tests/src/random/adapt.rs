//! Adapters: movements and conversions that make an earlier value fit as an operand of another type.

use super::draft::Draft;
use mlc_ir::ops::{Binary, Broadcast, Cast, Pad, PadMode, Reduce, ReduceFunction, Reshape, Slice, Transpose, Unary};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Literal, TensorType, Value};

/// A value of the given type, made of another value; `None` when the attempt fails.
pub fn fit(draft: &mut Draft<'_>, value: Value, ty: &TensorType) -> Option<Value> {
    let convert_first = draft.random.one_in(2);
    let value = if convert_first { converted(draft, value, ty.dtype)? } else { value };
    let value = shaped(draft, value, &ty.shape)?;
    converted(draft, value, ty.dtype)
}

/// The value in another data type. Floats that become integers are spread first, for they are mostly below 2.
fn converted(draft: &mut Draft<'_>, mut value: Value, dtype: DType) -> Option<Value> {
    let from = draft.dtype(value);
    if from == dtype {
        return Some(value);
    }
    if from.is_float() && !dtype.is_float() && draft.random.one_in(2) {
        let factor = draft.splat(TensorType::new(from, []), 3.5);
        value = draft.try_apply(Binary { function: BinaryFunction::Multiply }, &[value, factor]);
    }
    draft.apply(Cast { dtype }, &[value]).map(|results| results[0])
}

/// The value in another shape.
pub fn shaped(draft: &mut Draft<'_>, mut value: Value, shape: &[usize]) -> Option<Value> {
    let own = draft.shape(value);
    if own == shape {
        return Some(value);
    }
    if let Some(permutation) = permutation(&own, shape)
        && !draft.random.one_in(3)
    {
        return draft.apply(Transpose { permutation }, &[value]).map(|results| results[0]);
    }
    if own.iter().product::<usize>() != shape.iter().product::<usize>() {
        value = ranked(draft, value, shape.len())?;
        for (axis, &extent) in shape.iter().enumerate() {
            value = extended(draft, value, axis, extent)?;
        }
    }
    reshaped(draft, value, shape)
}

fn reshaped(draft: &mut Draft<'_>, value: Value, shape: &[usize]) -> Option<Value> {
    if draft.shape(value) == shape {
        return Some(value);
    }
    draft.apply(Reshape { shape: shape.into() }, &[value]).map(|results| results[0])
}

/// A permutation that takes one shape to the other.
fn permutation(from: &[usize], to: &[usize]) -> Option<Vec<usize>> {
    let mut free: Vec<usize> = (0..from.len()).rev().collect();
    let mut result = Vec::new();
    for extent in to {
        let place = free.iter().position(|&axis| from[axis] == *extent)?;
        result.push(free.remove(place));
    }
    (free.is_empty() && result.len() > 1).then_some(result)
}

/// The value with so many axes: ones are added in front or behind, axes are reduced or joined.
fn ranked(draft: &mut Draft<'_>, mut value: Value, rank: usize) -> Option<Value> {
    loop {
        let mut shape = draft.shape(value);
        if shape.len() == rank {
            return Some(value);
        }
        if shape.len() < rank {
            let place = if draft.random.one_in(3) { shape.len() } else { 0 };
            shape.insert(place, 1);
            value = reshaped(draft, value, &shape)?;
            continue;
        }
        let axis = draft.random.range(0, shape.len() - 1);
        if draft.random.one_in(3) || shape.len() == 1 {
            value = reduced(draft, value, axis)?;
        } else {
            let neighbour = axis.min(shape.len() - 2);
            let extent = shape.remove(neighbour);
            shape[neighbour] *= extent;
            value = reshaped(draft, value, &shape)?;
        }
    }
}

/// The value without an axis.
fn reduced(draft: &mut Draft<'_>, value: Value, axis: usize) -> Option<Value> {
    let function = match draft.dtype(value) {
        DType::Bool => draft.random.choose(&[ReduceFunction::Any, ReduceFunction::All]),
        dtype if dtype.is_float() => {
            draft.random.choose(&[ReduceFunction::Mean, ReduceFunction::Maximum, ReduceFunction::Sum])
        }
        _ => draft.random.choose(&[ReduceFunction::Maximum, ReduceFunction::Minimum, ReduceFunction::Sum]),
    };
    draft.apply(Reduce { function, axes: vec![axis], keep_axes: false }, &[value]).map(|results| results[0])
}

/// The value with another extent of an axis: a slice, a repetition or padding.
pub fn extended(draft: &mut Draft<'_>, value: Value, axis: usize, extent: usize) -> Option<Value> {
    let mut shape = draft.shape(value);
    let own = shape[axis];
    if own == extent {
        return Some(value);
    }
    let results = if own > extent {
        let range = random_range(draft, own, extent);
        draft.apply(window(range, axis, extent, &shape), &[value])
    } else if own == 1 && !draft.random.one_in(3) {
        shape[axis] = extent;
        draft.apply(Broadcast { shape: shape[..].into() }, &[value])
    } else {
        let missing = extent - own;
        let before = draft.random.range(0, missing);
        let (mode, value_type) = (padding_mode(draft, own, before.max(missing - before)), draft.dtype(value));
        let mut pads = vec![(0, 0); shape.len()];
        pads[axis] = (before, missing - before);
        let number = if draft.random.one_in(2) { 0.0 } else { 1.0 };
        draft.apply(Pad { pads, mode, value: Literal::of(value_type, number) }, &[value])
    };
    results.map(|results| results[0])
}

/// Start and step of a random walk of `extent` elements through `own` ones.
fn random_range(draft: &mut Draft<'_>, own: usize, extent: usize) -> (usize, i64) {
    let widest = if extent > 1 { (own - 1) / (extent - 1) } else { 1 };
    let step = if draft.random.one_in(3) { draft.random.range(1, widest.max(1)) } else { 1 };
    let start = draft.random.range(0, own - 1 - (extent.max(1) - 1) * step);
    if draft.random.one_in(8) { (start + (extent.max(1) - 1) * step, -(step as i64)) } else { (start, step as i64) }
}

fn window((start, step): (usize, i64), axis: usize, extent: usize, shape: &[usize]) -> Slice {
    let (mut starts, mut sizes, mut steps) = (vec![0; shape.len()], shape.to_vec(), vec![1; shape.len()]);
    (starts[axis], sizes[axis], steps[axis]) = (start, extent, step);
    Slice { starts, sizes, steps }
}

/// A mode that can pad so many elements.
fn padding_mode(draft: &mut Draft<'_>, own: usize, most: usize) -> PadMode {
    let mut modes = vec![PadMode::Constant, PadMode::Constant];
    if own > 0 {
        modes.push(PadMode::Replicate);
    }
    if most < own {
        modes.push(PadMode::Reflect);
    }
    if most <= own {
        modes.push(PadMode::Circular);
    }
    draft.random.choose(&modes)
}

/// A function of two values; the first one where it can't be applied.
pub fn binary(draft: &mut Draft<'_>, function: BinaryFunction, x: Value, y: Value) -> Value {
    draft.try_apply(Binary { function }, &[x, y])
}

/// A function of a value; the value itself where it can't be applied.
pub fn unary(draft: &mut Draft<'_>, function: UnaryFunction, x: Value) -> Value {
    draft.try_apply(Unary { function }, &[x])
}
