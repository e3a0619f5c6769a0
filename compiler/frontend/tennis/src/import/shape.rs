//! Other shapes and orders of the same elements.

use super::call::{Call, Parameters, Table};
use super::promotion::check_equal;
use mlc_import::Handler::One;
use mlc_import::{Fault, check_filled, normalized_axis};
use mlc_ir::{Shape, Value};

pub(super) const OPERATORS: Table = &[
    ("_dimshuffle", One(shuffle)),
    ("_expand", One(expand)),
    ("_reshape", One(reshape)),
    ("_reshape_v2", One(reshape_by_operand)),
    ("_transpose", One(transpose)),
    ("broadcast", One(broadcast)),
    ("concat", One(concat)),
    ("flatten", One(flatten)),
    ("flatten2d", One(flatten_to_matrix)),
    ("squeeze", One(squeeze)),
    ("stack", One(stack)),
    ("tile", One(tile)),
    ("tile_v2", One(tile_by_operand)),
    ("transpose_v2", One(transpose_by_operand)),
    ("unsqueeze", One(unsqueeze)),
];

/// The shape that numbers mean for a tensor: one -1 is what is left, 0 is the tensor's own extent.
fn wanted_shape(call: &Call<'_, '_>, x: Value, numbers: &[i64]) -> Result<Shape, Fault> {
    let own = call.shape(x);
    let fault = || Fault::parameter(format!("{} can't take the shape {numbers:?}", call.builder.ty(x)));
    let mut shape = Shape::new();
    let mut open = None;
    for (axis, &number) in numbers.iter().enumerate() {
        shape.push(match number {
            0 => *own.get(axis).ok_or_else(fault)?,
            -1 if open.is_none() => {
                open = Some(axis);
                1
            }
            -1 => return Err(Fault::parameter(format!("the shape {numbers:?} has two extents of -1"))),
            _ => usize::try_from(number).map_err(|_| fault())?,
        });
    }
    if let Some(axis) = open {
        let rest = shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent)).ok_or_else(fault)?;
        let elements = call.builder.ty(x).elements();
        shape[axis] = elements.checked_div(rest).filter(|extent| extent * rest == elements).ok_or_else(fault)?;
    }
    Ok(shape)
}

fn reshape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let numbers = call.required_ints("shape")?;
    let shape = wanted_shape(call, x, &numbers)?;
    Ok(call.builder.reshape(x, &shape)?)
}

fn reshape_by_operand(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (_, numbers) = call.whole_numbers(1, "the shape")?;
    let shape = wanted_shape(call, x, &numbers)?;
    Ok(call.builder.reshape(x, &shape)?)
}

/// Most axes that a tensor is given by a number in the file.
const MOST_AXES: i64 = 64;

fn checked_rank(rank: i64) -> Result<usize, Fault> {
    let fits = (0..=MOST_AXES).contains(&rank);
    if fits { Ok(rank as usize) } else { Err(Fault::parameter(format!("a tensor can't have {rank} axes"))) }
}

/// Joins the axes from `dim` on; ones follow where there are fewer.
fn flatten(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dim = checked_rank(call.int_or("dim", 1)?)?;
    let mut shape = call.shape(x).to_vec();
    if shape.len() <= dim {
        shape.resize(dim + 1, 1);
    } else {
        let joined = shape.split_off(dim).iter().product();
        shape.push(joined);
    }
    Ok(call.builder.reshape(x, &shape)?)
}

/// A matrix: the axes before `dim`, and the others.
fn flatten_to_matrix(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let shape = call.shape(x);
    let dim = call.int_or("dim", 1)?.clamp(0, shape.len() as i64) as usize;
    let (rows, columns) = (shape[..dim].iter().product(), shape[dim..].iter().product());
    Ok(call.builder.reshape(x, &[rows, columns])?)
}

/// Removes axes of extent 1: those that are listed, from the last to the first, or all.
fn squeeze(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let mut shape = call.shape(x);
    match call.ints("axes")? {
        None => shape.retain(|&mut extent| extent != 1),
        Some(axes) => {
            for &axis in axes.iter().rev() {
                let place = normalized_axis(axis, shape.len()).filter(|&place| shape[place] == 1);
                let place = place.ok_or_else(|| {
                    let ty = call.builder.ty(x);
                    Fault::parameter(format!("{ty} has no axis {axis} of extent 1 to remove (axes {axes:?})"))
                })?;
                shape.remove(place);
            }
        }
    }
    Ok(call.builder.reshape(x, &shape)?)
}

/// Inserts axes one after the other; negative places count from the end of the shape so far.
fn unsqueeze(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axes = call.required_ints("axes")?;
    checked_rank((call.rank(x) + axes.len()) as i64)?;
    let mut shape = call.shape(x);
    for &axis in &axes {
        let place = normalized_axis(axis, shape.len() + 1);
        let place =
            place.ok_or_else(|| Fault::parameter(format!("there is no place {axis} in {shape:?} for an axis")))?;
        shape.insert(place, 1);
    }
    Ok(call.builder.reshape(x, &shape)?)
}

fn transpose(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let permutation = call.ints("permute")?;
    let permutation = permutation.ok_or_else(|| {
        let message = "parameter `permute` is missing; TenniS's own runtime computes nothing useful without it";
        Fault::new(mlc_ir::Code::ParameterMissing, message)
    })?;
    permuted(call, &permutation)
}

fn transpose_by_operand(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (_, permutation) = call.whole_numbers(1, "the permutation")?;
    permuted(call, &permutation)
}

/// A tensor of fewer axes than the permutation gets ones in front.
fn permuted(call: &mut Call<'_, '_>, permutation: &[i64]) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let rank = checked_rank(permutation.len() as i64)?;
    let mut shape = vec![1; rank.saturating_sub(call.rank(x))];
    shape.extend_from_slice(&call.shape(x));
    let x = call.builder.reshape(x, &shape)?;
    let axes: Vec<usize> = permutation.iter().map(|&axis| call.axis(x, axis)).collect::<Result<_, Fault>>()?;
    Ok(call.builder.transpose(x, &axes)?)
}

/// Ones up to a number of axes: in front as far as is allowed, then at the end, or the other way round.
fn expand(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let dims = call.known_list(1, "the number of axes", 1)?[0];
    let (front, end) = (call.int_or("front", -1)?, call.int_or("end", -1)?);
    let inverse = call.flag_or("inverse", false)?;
    let shape = call.shape(x);
    let misfit = |call: &Call<'_, '_>| {
        let ty = call.builder.ty(x);
        Fault::operands(format!("{ty} can't be expanded to {dims} axes with {front} in front and {end} at the end"))
    };
    let missing = checked_rank(dims)?.checked_sub(shape.len()).ok_or_else(|| misfit(call))?;
    let limit = |most: i64| usize::try_from(most).unwrap_or(usize::MAX);
    let (before, after) = if inverse {
        let after = missing.min(limit(end));
        (missing - after, after)
    } else {
        let before = missing.min(limit(front));
        (before, missing - before)
    };
    if before > limit(front) || after > limit(end) {
        return Err(misfit(call));
    }
    let ones = |count| std::iter::repeat_n(1, count);
    let expanded: Vec<usize> = ones(before).chain(shape.iter().copied()).chain(ones(after)).collect();
    Ok(call.builder.reshape(x, &expanded)?)
}

fn concat(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let parts = call.all_inputs()?;
    check_equal(call.builder, &parts)?;
    let first = call.input(0)?;
    let axis = call.required_axis(first, "dim")?;
    Ok(call.builder.concat(&parts, axis)?)
}

fn stack(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let parts = call.all_inputs()?;
    check_equal(call.builder, &parts)?;
    let first = call.input(0)?;
    let (axis, rank) = (call.int_or("axis", 0)?, call.rank(first));
    let place = normalized_axis(axis, rank + 1);
    let place = place.ok_or_else(|| Fault::parameter(format!("there is no place {axis} for an axis beside {rank}")))?;
    Ok(call.builder.stack(&parts, place)?)
}

/// Places along an axis, any number of times and in any order.
fn shuffle(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.required_plain_axis(x, "dim")?;
    let places = call.required_ints("shuffle")?;
    let extent = call.shape(x)[axis] as i64;
    if places.is_empty() || places.iter().any(|place| !(0..extent).contains(place)) {
        let ty = call.builder.ty(x);
        return Err(Fault::parameter(format!("parameter `shuffle` {places:?} doesn't fit axis {axis} of {ty}")));
    }
    let places = call.builder.indices(&[places.len()], &places)?;
    Ok(call.builder.gather(x, places, axis)?)
}

fn tile(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let counts = call.required_ints("repeats")?;
    tiled(call, &counts)
}

fn tile_by_operand(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (_, counts) = call.whole_numbers(1, "the repeats")?;
    tiled(call, &counts)
}

fn tiled(call: &mut Call<'_, '_>, counts: &[i64]) -> Result<Value, Fault> {
    let x = call.input(0)?;
    checked_rank(counts.len() as i64)?;
    let counts = mlc_import::extents(counts)?;
    let y = call.builder.tile(x, &counts)?;
    check_filled(&call.shape(y))?;
    Ok(y)
}

/// Repeats axes of extent 1; the operand's extents of 1 stand for those of the tensor.
fn broadcast(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (_, numbers) = call.whole_numbers(1, "the shape")?;
    checked_rank(numbers.len() as i64)?;
    let mut wanted = mlc_import::extents(&numbers)?;
    let own = call.shape(x);
    while wanted.len() < own.len() {
        wanted.insert(0, 1);
    }
    let offset = wanted.len() - own.len();
    for (axis, &extent) in own.iter().enumerate() {
        if wanted[offset + axis] == 1 {
            wanted[offset + axis] = extent;
        }
    }
    check_filled(&wanted)?;
    Ok(call.builder.broadcast(x, &wanted)?)
}
