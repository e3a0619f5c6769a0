//! Order: sorting, extreme elements, running sums, and choices whose number of elements depends on the data.

use super::call::{Call, Item, Table};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::{ArgFunction, ArgReduce, Cumulative, CumulativeFunction};
use mlc_ir::types::row_major_strides;
use mlc_ir::{Tensor, TensorType, Value};
use std::cmp::Ordering;

pub(super) const OPERATORS: Table = &[
    ("ArgMax", 1, One(|call| extreme(call, ArgFunction::Maximum))),
    ("ArgMin", 1, One(|call| extreme(call, ArgFunction::Minimum))),
    ("Compress", 9, One(compress)),
    ("CumProd", 26, One(|call| cumulative(call, CumulativeFunction::Product))),
    ("CumSum", 11, One(|call| cumulative(call, CumulativeFunction::Sum))),
    ("Hardmax", 1, One(hardmax)),
    ("NonZero", 9, One(non_zero)),
    ("TopK", 1, Many(top_k)),
    ("Unique", 11, Many(unique)),
];

fn top_k(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let count = if call.version() < 10 { call.int("k")? } else { call.constant_int(1, "the number of elements")? };
    let count = usize::try_from(call.required("k", count)?);
    let count = count.map_err(|_| Fault::parameter("the number of elements must not be negative"))?;
    let axis = call.axis_or(x, "axis", -1)?;
    let largest = call.flag_or("largest", true)?;
    // Unsorted results may come in any order, also in this one.
    call.ignore(&["sorted"]);
    Ok(call.builder.sort(x, axis, count, largest)?.map(Item::Tensor).to_vec())
}

fn extreme(call: &mut Call<'_, '_>, function: ArgFunction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.axis_or(x, "axis", 0)?;
    let (keep_axis, last) = (call.flag_or("keepdims", true)?, call.flag_or("select_last_index", false)?);
    Ok(call.builder.apply(ArgReduce { function, axis, keep_axis, last }, &[x])?)
}

/// One at the first largest element, zeros elsewhere.
fn hardmax(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (shape, dtype) = (call.shape(x), call.dtype_of(x));
    // Up to version 12 the axes from `axis` on count as one.
    let (x, axis) = if call.version() < 13 {
        let axis = call.axis_or(x, "axis", 1)?;
        let flat = [shape[..axis].iter().product(), shape[axis..].iter().product()];
        (call.builder.reshape(x, &flat)?, 1)
    } else {
        (x, call.axis_or(x, "axis", -1)?)
    };
    let extent = call.shape(x)[axis];
    let largest = ArgReduce { function: ArgFunction::Maximum, axis, keep_axis: false, last: false };
    let place = call.builder.apply(largest, &[x])?;
    let hot = call.builder.one_hot(place, extent, axis, false)?;
    let y = call.builder.cast(hot, dtype)?;
    Ok(call.builder.reshape(y, &shape)?)
}

fn cumulative(call: &mut Call<'_, '_>, function: CumulativeFunction) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.constant_int(1, "the axis")?;
    let axis = call.axis(x, call.required("axis", axis)?)?;
    let (exclusive, reverse) = (call.flag_or("exclusive", false)?, call.flag_or("reverse", false)?);
    Ok(call.builder.apply(Cumulative { function, axis, exclusive, reverse }, &[x])?)
}

/// The slices along an axis, or the elements, for which a list of bools is true.
fn compress(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let condition = call.constant(1, "the condition, which decides on the size of the result,")?;
    let condition = call.required("condition", condition)?.to_tensor().to_integers();
    let (x, axis) = match call.int("axis")? {
        Some(axis) => (x, call.axis(x, axis)?),
        None => (call.builder.reshape(x, &[call.builder.ty(x).elements()])?, 0),
    };
    let chosen: Vec<i64> = (0..).zip(&condition).filter(|(_, chosen)| **chosen != 0).map(|(place, _)| place).collect();
    let chosen = call.builder.indices(&[chosen.len()], &chosen)?;
    Ok(call.builder.gather(x, chosen, axis)?)
}

/// Coordinates [axes, count] of the elements of a constant that aren't zero.
fn non_zero(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.constant(0, "the tensor, which decides on the size of the result,")?;
    let x = call.required("X", x)?.to_tensor();
    let places: Vec<usize> =
        (0..).zip(x.to_floats()).filter(|(_, value)| *value != 0.0).map(|(place, _)| place).collect();
    let strides = row_major_strides(x.shape());
    let coordinates: Vec<i64> = (x.shape().iter().zip(&strides))
        .flat_map(|(extent, stride)| places.iter().map(move |place| (place / stride % extent) as i64))
        .collect();
    Ok(call.builder.indices(&[x.shape().len(), places.len()], &coordinates)?)
}

/// The different slices along an axis, or the different elements, of a constant: themselves, the first place of each, which
/// one each slice is, and how many of each there are.
fn unique(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.constant(0, "the tensor, which decides on the size of the result,")?;
    let x = call.required("X", x)?;
    let sorted = call.flag_or("sorted", true)?;
    let (x, axis) = match call.int("axis")? {
        None => (x.reshape(&[x.ty().elements()])?, 0),
        Some(axis) => {
            let found = mlc_import::normalized_axis(axis, x.ty().rank());
            let found = found.ok_or_else(|| Fault::parameter(format!("{} has no axis {axis}", x.ty())))?;
            (x, found)
        }
    };
    let slices = slices(&x.to_tensor(), axis);
    let mut order: Vec<usize> = (0..slices.len()).collect();
    order.sort_by(|&left, &right| compare(&slices[left], &slices[right]));
    // Equal slices stand together, the first one at the front.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for place in order {
        match groups.last_mut() {
            Some(group) if compare(&slices[group[0]], &slices[place]) == Ordering::Equal => group.push(place),
            _ => groups.push(vec![place]),
        }
    }
    if !sorted {
        groups.sort_by_key(|group| group[0]);
    }
    let mut inverse = vec![0; slices.len()];
    for (number, group) in groups.iter().enumerate() {
        group.iter().for_each(|&place| inverse[place] = number as i64);
    }
    let firsts: Vec<i64> = groups.iter().map(|group| group[0] as i64).collect();
    let counts: Vec<i64> = groups.iter().map(|group| group.len() as i64).collect();
    let data = call.builder.constant("values", x);
    let mut list = |values: &[i64]| call.builder.indices(&[values.len()], values);
    let (firsts, inverse, counts) = (list(&firsts)?, list(&inverse)?, list(&counts)?);
    let values = call.builder.gather(data, firsts, axis)?;
    Ok([values, firsts, inverse, counts].map(Item::Tensor).to_vec())
}

/// The slices of a tensor along an axis as numbers in their order.
fn slices(x: &Tensor, axis: usize) -> Vec<Vec<Key>> {
    let extent = x.shape()[axis];
    let inner: usize = x.shape()[axis + 1..].iter().product();
    let mut slices = vec![Vec::new(); extent];
    let (floats, integers) = (x.to_floats(), x.to_integers());
    for place in 0..floats.len() {
        let key = match x.ty() {
            TensorType { dtype: mlc_ir::DType::U64, .. } => Key::Integer(i128::from(integers[place] as u64)),
            ty if ty.dtype.is_float() => Key::Float(floats[place]),
            _ => Key::Integer(i128::from(integers[place])),
        };
        slices[place / inner % extent].push(key);
    }
    slices
}

/// An element in the order of its type.
#[derive(Clone, Copy)]
enum Key {
    Float(f64),
    Integer(i128),
}

fn compare(left: &[Key], right: &[Key]) -> Ordering {
    let pairs = left.iter().zip(right).map(|pair| match pair {
        (Key::Float(x), Key::Float(y)) => x.partial_cmp(y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan())),
        (Key::Integer(x), Key::Integer(y)) => x.cmp(y),
        (Key::Float(_), Key::Integer(_)) => Ordering::Less,
        (Key::Integer(_), Key::Float(_)) => Ordering::Greater,
    });
    pairs.into_iter().find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
}
