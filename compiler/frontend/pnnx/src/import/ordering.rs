//! Sorting, places in what is sorted, and undoing pools.

use super::call::{Call, Operands, Table};
use super::format::Pnnx;
use super::item::Item;
use super::positional::{flag_at, int_at};
use super::promotion::promote;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::SearchSorted;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("aten::argsort", Many(argsort)),
    ("aten::bucketize", One(bucketize)),
    ("aten::max_unpool2d", One(positional_unpool)),
    ("aten::searchsorted", One(search_sorted)),
    ("aten::sort", Many(sort)),
    ("nn.MaxUnpool2d", One(unpool)),
    ("torch.topk", Many(topk)),
];

/// The `count` first elements of an axis in order, and where they were; equal ones keep their order.
fn ordered(call: &mut Call<'_, '_>, x: Value, axis: usize, count: usize, descending: bool) -> Result<Vec<Item>, Fault> {
    Ok(call.builder.sort(x, axis, count, descending)?.map(Item::Tensor).to_vec())
}

fn topk(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let count = call.int("k")?;
    let count = usize::try_from(call.required("k", count)?);
    let count = count.map_err(|_| Fault::parameter("parameter `k` must not be negative"))?;
    let axis = call.axis_or(x, "dim", -1)?;
    let largest = call.flag_or("largest", true)?;
    // Unsorted results may come in any order, also in this one.
    call.ignore(&["sorted"]);
    ordered(call, x, axis, count, largest)
}

/// `aten::sort (x, dim, descending)` or `(x, stable, dim, descending)`
fn sort(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let dim = if call.inputs.len() == 4 { 2 } else { 1 };
    let axis = int_at(call, "dim", dim)?.unwrap_or(-1);
    let descending = flag_at(call, "descending", dim + 1, false)?;
    let axis = call.axis(x, axis)?;
    let extent = call.shape(x)[axis];
    ordered(call, x, axis, extent, descending)
}

/// `aten::bucketize (x, boundaries, out_int32, right)`
fn bucketize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (values, sequence) = (call.labelled_item("input", 0)?, call.labelled_input("boundaries", 1)?);
    let narrow = flag_at(call, "out_int32", 2, false)?;
    let right = flag_at(call, "right", 3, false)?;
    places(call, sequence, &values, right, narrow)
}

/// `aten::searchsorted (sorted_sequence, values, out_int32, right, side, sorter)`
fn search_sorted(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (sequence, values) = (call.labelled_input("sorted_sequence", 0)?, call.labelled_item("self", 1)?);
    let narrow = flag_at(call, "out_int32", 2, false)?;
    let right = flag_at(call, "right", 3, false)?;
    let right = match call.labelled("side", 4) {
        None => right,
        Some(Item::Word(side)) if side == "left" || side == "right" => right || side == "right",
        Some(other) => return Err(Fault::parameter(format!("`side` can't be {}", other.description()))),
    };
    if call.labelled("sorter", 5).is_some() {
        return Err(Fault::variant("a sequence in another order (sorter) isn't supported"));
    }
    places(call, sequence, &values, right, narrow)
}

/// Where values, of the data type that both have in common, would be inserted into sequences.
fn places(call: &mut Call<'_, '_>, sequence: Value, values: &Item, right: bool, narrow: bool) -> Result<Value, Fault> {
    let operands = promote(call.builder, &[&Item::Tensor(sequence), values])?;
    let places = call.builder.apply(SearchSorted { right }, &operands)?;
    Ok(call.builder.cast(places, if narrow { DType::I32 } else { DType::I64 })?)
}

fn argsort(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    Ok(sort(call)?.into_iter().skip(1).collect())
}

/// Elements at their positions in planes of rows and columns, zeros elsewhere.
fn unpooled(call: &mut Call<'_, '_>, x: Value, positions: Value, plane: &[usize]) -> Result<Value, Fault> {
    let planes = call.builder.rank(x).checked_sub(2).filter(|&planes| planes > 0);
    let planes = planes.ok_or_else(|| Fault::operands("the input must have channels, rows and columns"))?;
    Ok(call.builder.unpool(x, positions, planes, plane)?)
}

/// `aten::max_unpool2d (x, indices, output_size)`
fn positional_unpool(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, positions) = (call.x()?, call.labelled_input("indices", 1)?);
    let size = call.labelled_item("output_size", 2)?.ints();
    let size = size.ok_or_else(|| Fault::parameter("`output_size` must be whole numbers"))?;
    let size = mlc_import::counts::<Pnnx>("output_size", &size, 2)?;
    unpooled(call, x, positions, &size)
}

fn unpool(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, positions) = (call.x()?, call.labelled_input("indices", 1)?);
    let window = call.ints("kernel_size")?;
    let window = mlc_import::counts::<Pnnx>("kernel_size", &call.required("kernel_size", window)?, 2)?;
    let strides = match call.ints("stride")? {
        Some(strides) => mlc_import::counts::<Pnnx>("stride", &strides, 2)?,
        None => window.clone(),
    };
    let pads = call.counts("padding", 2, 0)?;
    let shape = call.shape(x);
    let size = match call.argument("output_size").or_else(|| call.labelled("output_size", 2)) {
        Some(size) => {
            let size = size.ints().filter(|size| size.len() >= 2);
            let size = size.ok_or_else(|| Fault::parameter("`output_size` must be whole numbers"))?;
            mlc_import::counts::<Pnnx>("output_size", &size[size.len() - 2..], 2)?
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
    unpooled(call, x, positions, &size)
}
