//! Sorting and scattering, by comparing every element with every other one. Work and memory grow with the square of the
//! axis, so that only short axes are accepted.

use super::call::Call;
use super::item::Item;
use super::registry::{Handler::Many, Handler::One, Table};
use crate::fault::Fault;
use mlc_ir::ops::{Reduce, ReduceFunction};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("aten::argsort", One(argsort)),
    ("aten::max_unpool2d", One(positional_unpool)),
    ("aten::sort", Many(sort)),
    ("nn.MaxUnpool2d", One(unpool)),
    ("torch.scatter_add", One(scatter_add)),
    ("torch.topk", Many(topk)),
];

/// Most comparisons that one operator may need.
const MOST_COMPARISONS: usize = 1 << 24;

fn check_work(call: &Call<'_>, x: Value, others: usize) -> Result<(), Fault> {
    let comparisons = call.builder.ty(x).elements().saturating_mul(others);
    if comparisons > MOST_COMPARISONS {
        let message = format!("{} needs {comparisons} comparisons, which is too many", call.operator.kind);
        return Err(Fault::variant(message).with_help("sort, or scatter, outside the model"));
    }
    Ok(())
}

fn reduce(call: &mut Call<'_>, x: Value, function: ReduceFunction) -> Result<Value, Fault> {
    let axes = vec![call.builder.rank(x) - 1];
    Ok(call.builder.apply(Reduce { function, axes, keep_axes: false }, &[x])?)
}

/// A constant 0, 1, 2, … of this shape.
fn counting(call: &mut Call<'_>, shape: &[usize]) -> Result<Value, Fault> {
    let values: Vec<i64> = (0..shape.iter().product::<usize>() as i64).collect();
    super::indexing::indices(call, shape, &values)
}

/// The `count` first elements of an axis in order, and where they were; equal ones keep their order.
fn ordered(call: &mut Call<'_>, x: Value, axis: usize, count: usize, descending: bool) -> Result<[Value; 2], Fault> {
    let (extent, last, dtype) = (call.shape(x)[axis], call.builder.rank(x) - 1, call.builder.dtype(x));
    if dtype == DType::Bool || count > extent {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("there are no {count} ordered elements along axis {axis} of {ty}")));
    }
    check_work(call, x, extent)?;
    let x = call.builder.move_axis(x, axis, last)?;
    let (own, others) = (call.builder.insert_axis(x, last + 1)?, call.builder.insert_axis(x, last)?);
    let earlier = (0..extent).flat_map(|own| (0..extent).map(move |other| i64::from(other < own))).collect();
    let earlier = Tensor::from_integers(TensorType::new(DType::Bool, [extent, extent]), earlier);
    let earlier = call.builder.constant("earlier", Attribute::from_tensor(&earlier));
    // How many elements come before each one.
    let before = call.builder.map(&[own, others, earlier], |b| {
        let (own, other, earlier) = (b.operand(0), b.operand(1), b.operand(2));
        let better = b.binary(if descending { B::Greater } else { B::Less }, other, own);
        let equal = b.binary(B::Equal, other, own);
        let tie = b.binary(B::And, equal, earlier);
        let before = b.binary(B::Or, better, tie);
        b.cast(DType::I64, before)
    })?;
    let rank = reduce(call, before, ReduceFunction::Sum)?;
    let rank = call.builder.insert_axis(rank, last)?;
    let wanted = counting(call, &[count, 1])?;
    let places = counting(call, &[extent])?;
    let zero = call.builder.number(dtype, 0.0);
    let values = call.builder.map(&[rank, wanted, others, zero], |b| {
        let (rank, wanted, x, zero) = (b.operand(0), b.operand(1), b.operand(2), b.operand(3));
        let found = b.binary(B::Equal, rank, wanted);
        b.select(found, x, zero)
    })?;
    let indices = call.builder.map(&[rank, wanted, places], |b| {
        let (rank, wanted, place) = (b.operand(0), b.operand(1), b.operand(2));
        let (found, zero) = (b.binary(B::Equal, rank, wanted), b.number(DType::I64, 0.0));
        b.select(found, place, zero)
    })?;
    let mut results = [reduce(call, values, ReduceFunction::Sum)?, reduce(call, indices, ReduceFunction::Sum)?];
    for result in &mut results {
        *result = call.builder.move_axis(*result, last, axis)?;
    }
    Ok(results)
}

fn topk(call: &mut Call<'_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let count = call.int("k")?;
    let count = usize::try_from(call.required("k", count)?);
    let count = count.map_err(|_| Fault::parameter("parameter `k` must not be negative"))?;
    let axis = call.axis_or(x, "dim", -1)?;
    let largest = call.flag_or("largest", true)?;
    // Unsorted results may come in any order, also in this one.
    call.ignore(&["sorted"]);
    Ok(ordered(call, x, axis, count, largest)?.map(Item::Tensor).to_vec())
}

/// `aten::sort (x, dim, descending)`
fn sorted(call: &mut Call<'_>) -> Result<[Value; 2], Fault> {
    let x = call.x()?;
    let axis = call.optional("dim", 1).and_then(|item| item.int()).unwrap_or(-1);
    let descending = call.optional("descending", 2) == Some(Item::Bool(true));
    let axis = call.axis(x, axis)?;
    let extent = call.shape(x)[axis];
    ordered(call, x, axis, extent, descending)
}

fn sort(call: &mut Call<'_>) -> Result<Vec<Item>, Fault> {
    Ok(sorted(call)?.map(Item::Tensor).to_vec())
}

fn argsort(call: &mut Call<'_>) -> Result<Value, Fault> {
    Ok(sorted(call)?[1])
}

/// For every place along a last axis of `extent` places, what the sources whose index names it give together.
fn scattered(
    call: &mut Call<'_>,
    index: Value,
    source: Value,
    extent: usize,
    function: ReduceFunction,
    empty: f64,
) -> Result<Value, Fault> {
    check_work(call, index, extent)?;
    let last = call.builder.rank(index) - 1;
    let (index, source) = (call.builder.insert_axis(index, last)?, call.builder.insert_axis(source, last)?);
    let index = call.builder.cast(index, DType::I64)?;
    let places = counting(call, &[extent, 1])?;
    let dtype = call.builder.dtype(source);
    let hits = call.builder.map(&[index, places, source], |b| {
        let (index, place, source, empty) = (b.operand(0), b.operand(1), b.operand(2), b.number(dtype, empty));
        let hit = b.binary(B::Equal, index, place);
        b.select(hit, source, empty)
    })?;
    reduce(call, hits, function)
}

/// input[.., index[.., i, ..], ..] += source[.., i, ..]
fn scatter_add(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (index, mut source) = (call.tensor("index", 1)?, call.tensor("src", 2)?);
    let axis = call.int("dim")?;
    let axis = call.axis(x, call.required("dim", axis)?)?;
    let (shape, part, given) = (call.shape(x), call.shape(index), call.shape(source));
    let fits = shape.len() == part.len()
        && shape.len() == given.len()
        && (0..shape.len()).all(|other| part[other] <= given[other] && (other == axis || part[other] <= shape[other]));
    if !fits || call.builder.dtype(source) != call.builder.dtype(x) {
        let (index, source) = (call.builder.ty(index), call.builder.ty(source));
        return Err(Fault::operands(format!("indices {index} and sources {source} don't fit {}", call.builder.ty(x))));
    }
    for (other, &extent) in part.iter().enumerate() {
        source = call.builder.slice_axis(source, other, 0, extent, 1)?;
    }
    let last = shape.len() - 1;
    let (index, source) = (call.builder.move_axis(index, axis, last)?, call.builder.move_axis(source, axis, last)?);
    let sums = scattered(call, index, source, shape[axis], ReduceFunction::Sum, 0.0)?;
    let sums = call.builder.move_axis(sums, last, axis)?;
    let missing = |other: usize| if other == axis { 0 } else { (shape[other] - part[other]) as i64 };
    let pads: Vec<(i64, i64)> = (0..shape.len()).map(|other| (0, missing(other))).collect();
    let sums = call.builder.pad(sums, &pads, mlc_ir::ops::PadMode::Constant, 0.0)?;
    Ok(call.builder.binary(B::Add, x, sums)?)
}

/// Elements at their positions in planes of rows and columns, zeros elsewhere.
fn unpooled(call: &mut Call<'_>, x: Value, positions: Value, rows: usize, columns: usize) -> Result<Value, Fault> {
    let shape = call.shape(x);
    if shape.len() < 3 || call.shape(positions) != shape || !call.builder.dtype(x).is_float() {
        return Err(Fault::operands("elements and positions must be planes of one shape"));
    }
    let (outer, plane) = shape.split_at(shape.len() - 2);
    let flat: Vec<usize> = outer.iter().copied().chain([plane[0] * plane[1]]).collect();
    let (x, positions) = (call.builder.reshape(x, &flat)?, call.builder.reshape(positions, &flat)?);
    let extent = rows.saturating_mul(columns);
    // Windows that overlap give one element twice, so that a sum would be wrong.
    let found = scattered(call, positions, x, extent, ReduceFunction::Maximum, f64::NEG_INFINITY)?;
    let dtype = call.builder.dtype(x);
    let y = call.builder.map(&[found], |b| {
        let (x, none, zero) = (b.operand(0), b.number(dtype, f64::NEG_INFINITY), b.number(dtype, 0.0));
        let empty = b.binary(B::Equal, x, none);
        b.select(empty, zero, x)
    })?;
    let result: Vec<usize> = outer.iter().copied().chain([rows, columns]).collect();
    Ok(call.builder.reshape(y, &result)?)
}

/// `aten::max_unpool2d (x, indices, output_size)`
fn positional_unpool(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (x, positions) = (call.x()?, call.tensor("indices", 1)?);
    let size = call.operand("output_size", 2)?.ints();
    let size = size.ok_or_else(|| Fault::parameter("`output_size` must be whole numbers"))?;
    let size = super::call::spatial_list("output_size", &size, 2)?;
    unpooled(call, x, positions, size[0], size[1])
}

fn unpool(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (x, positions) = (call.x()?, call.tensor("indices", 1)?);
    let window = call.ints("kernel_size")?;
    let window = super::call::spatial_list("kernel_size", &call.required("kernel_size", window)?, 2)?;
    let strides = match call.ints("stride")? {
        Some(strides) => super::call::spatial_list("stride", &strides, 2)?,
        None => window.clone(),
    };
    let pads = call.spatial("padding", 2, 0)?;
    let shape = call.shape(x);
    let size = match call.argument("output_size").or_else(|| call.optional("output_size", 2)) {
        Some(size) => {
            let size = size.ints().filter(|size| size.len() >= 2);
            let size = size.ok_or_else(|| Fault::parameter("`output_size` must be whole numbers"))?;
            super::call::spatial_list("output_size", &size[size.len() - 2..], 2)?
        }
        None if shape.len() >= 3 => {
            let extent = |axis: usize| {
                let full = shape[shape.len() - 2 + axis].checked_sub(1)?.checked_mul(strides[axis])?;
                (full + window[axis]).checked_sub(2 * pads[axis])
            };
            let extents: Option<Vec<usize>> = (0..2).map(extent).collect();
            extents.ok_or_else(|| Fault::parameter("the result would have no extent"))?
        }
        None => return Err(Fault::operands("the input must have channels, rows and columns")),
    };
    unpooled(call, x, positions, size[0], size[1])
}
