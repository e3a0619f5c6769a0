//! Joining tensors, and cutting them into pieces.

use super::call::{Call, Operands, Table};
use super::item::Item;
use Direction::{Column, Depth, Horizontal, Vertical};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("aten::column_stack", One(|call| concat_of_rank(call, Column))),
    ("aten::dstack", One(|call| concat_of_rank(call, Depth))),
    ("aten::hstack", One(|call| concat_of_rank(call, Horizontal))),
    ("aten::unsafe_chunk", Many(positional_chunk)),
    ("aten::vstack", One(|call| concat_of_rank(call, Vertical))),
    ("torch.cat", One(concat)),
    ("torch.chunk", Many(chunk)),
    ("torch.concat", One(concat)),
    ("torch.split", Many(split)),
    ("torch.stack", One(stack)),
    ("torch.tensor_split", Many(tensor_split)),
    ("torch.unbind", Many(unbind)),
];

/// Most results that an operator may have.
const MOST_PIECES: usize = 1 << 16;

/// Tensors of one data type: PyTorch promotes those that it joins.
fn promoted_parts(call: &mut Call<'_, '_>) -> Result<Vec<Value>, Fault> {
    let parts = call.all_tensors()?;
    let dtypes: Vec<DType> = parts.iter().map(|&part| call.builder.dtype(part)).collect();
    let Some(dtype) = dtypes.into_iter().reduce(mlc_import::builder::promoted) else {
        return Err(Fault::new(mlc_ir::Code::OperandCount, "there is nothing to join"));
    };
    parts.into_iter().map(|part| Ok(call.builder.cast(part, dtype)?)).collect()
}

fn concat(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let mut parts = promoted_parts(call)?;
    // A tensor of shape [0] joins with anything, for PyTorch's history's sake.
    if parts.iter().any(|&part| call.builder.rank(part) != 1) {
        parts.retain(|&part| call.shape(part)[..] != [0]);
    }
    let axis = call.axis_or(parts[0], "dim", 0)?;
    Ok(call.builder.concat(&parts, axis)?)
}

/// Ways of joining that first give tensors of few axes more of them.
#[derive(Clone, Copy)]
enum Direction {
    /// Vectors become columns.
    Column,
    Horizontal,
    Vertical,
    Depth,
}

fn concat_of_rank(call: &mut Call<'_, '_>, direction: Direction) -> Result<Value, Fault> {
    let mut axis = 0;
    let mut parts = Vec::new();
    for part in promoted_parts(call)? {
        let shape = call.shape(part);
        let (joined, shape) = match (direction, &shape[..]) {
            (Horizontal, []) => (0, vec![1]),
            (Horizontal, shape) => (usize::from(shape.len() > 1), shape.to_vec()),
            (Column, []) => (1, vec![1, 1]),
            (Column, &[extent]) => (1, vec![extent, 1]),
            (Column, shape) => (1, shape.to_vec()),
            (Vertical, []) => (0, vec![1, 1]),
            (Vertical, &[extent]) => (0, vec![1, extent]),
            (Vertical, shape) => (0, shape.to_vec()),
            (Depth, []) => (2, vec![1, 1, 1]),
            (Depth, &[extent]) => (2, vec![1, extent, 1]),
            (Depth, &[rows, columns]) => (2, vec![rows, columns, 1]),
            (Depth, shape) => (2, shape.to_vec()),
        };
        axis = joined;
        parts.push(call.builder.reshape(part, &shape)?);
    }
    Ok(call.builder.concat(&parts, axis)?)
}

fn stack(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let parts = promoted_parts(call)?;
    let axis = call.int_or("dim", 0)?;
    let rank = call.builder.rank(parts[0]) + 1;
    let axis = mlc_import::normalized_axis(axis, rank)
        .ok_or_else(|| Fault::parameter(format!("a result of {rank} axes has no axis {axis}")))?;
    Ok(call.builder.stack(&parts, axis)?)
}

fn pieces(call: &mut Call<'_, '_>, x: Value, axis: usize, sizes: &[usize]) -> Result<Vec<Item>, Fault> {
    if sizes.len() > MOST_PIECES {
        return Err(Fault::variant(format!("{} pieces are too many", sizes.len())));
    }
    Ok(call.builder.split(x, axis, sizes)?.into_iter().map(Item::Tensor).collect())
}

/// Extents of pieces of one size; the last one may be smaller.
fn equal_pieces(extent: usize, size: usize) -> Vec<usize> {
    // One more than allowed is enough to be refused.
    let count = extent.div_ceil(size.max(1)).clamp(1, MOST_PIECES + 1);
    (0..count).map(|index| size.min(extent.saturating_sub(index * size))).collect()
}

fn chunk_sizes(extent: usize, chunks: i64) -> Result<Vec<usize>, Fault> {
    let chunks = usize::try_from(chunks).ok().filter(|&chunks| chunks > 0);
    let chunks = chunks.ok_or_else(|| Fault::parameter("parameter `chunks` must be positive"))?;
    Ok(equal_pieces(extent, extent.div_ceil(chunks)))
}

fn chunk(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let axis = call.axis_or(x, "dim", 0)?;
    let chunks = call.int("chunks")?;
    let sizes = chunk_sizes(call.shape(x)[axis], call.required("chunks", chunks)?)?;
    pieces(call, x, axis, &sizes)
}

/// `aten::unsafe_chunk (x, chunks, dim)` gives one list.
fn positional_chunk(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let chunks = call.labelled_item("chunks", 1)?;
    let axis = call.labelled("dim", 2).unwrap_or(Item::Int(0));
    let (Some(chunks), Some(axis)) = (chunks.int(), axis.int()) else {
        return Err(Fault::parameter("`chunks` and `dim` must be whole numbers"));
    };
    let axis = call.axis(x, axis)?;
    let sizes = chunk_sizes(call.shape(x)[axis], chunks)?;
    Ok(vec![Item::List(pieces(call, x, axis, &sizes)?)])
}

fn split(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.labelled_input("tensor", 0)?;
    let axis = call.axis_or(x, "dim", 0)?;
    let extent = call.shape(x)[axis];
    let sizes = call.argument("split_size_or_sections");
    let sizes: Vec<usize> = match call.required("split_size_or_sections", sizes)? {
        Item::Int(size) if size > 0 => equal_pieces(extent, size as usize),
        item => {
            let sizes: Option<Vec<usize>> =
                item.ints().and_then(|sizes| sizes.iter().map(|&size| usize::try_from(size).ok()).collect());
            sizes
                .filter(|sizes| sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)) == Some(extent))
                .ok_or_else(|| Fault::parameter(format!("axis {axis} of {} can't be split so", call.builder.ty(x))))?
        }
    };
    pieces(call, x, axis, &sizes)
}

/// Into a number of pieces, the first ones longer, or at given places.
fn tensor_split(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let axis = call.axis_or(x, "dim", 0)?;
    let extent = call.shape(x)[axis];
    if let Some(sections) = call.int("sections")? {
        let sections = usize::try_from(sections).ok().filter(|&sections| sections > 0 && sections < 1 << 16);
        let sections = sections.ok_or_else(|| Fault::parameter("parameter `sections` must be positive"))?;
        let sizes: Vec<usize> =
            (0..sections).map(|index| extent / sections + usize::from(index < extent % sections)).collect();
        return pieces(call, x, axis, &sizes);
    }
    let cuts = call.ints("indices")?;
    let cuts = call.required("sections` or `indices", cuts)?;
    let mut results = Vec::new();
    let mut start = 0;
    let places = cuts.iter().map(|&cut| if cut < 0 { cut + extent as i64 } else { cut });
    let places = places.map(|cut| cut.clamp(0, extent as i64) as usize).chain([extent]);
    for end in places {
        // Places that go backwards give empty pieces.
        let size = end.saturating_sub(start);
        results.push(Item::Tensor(call.builder.slice_axis(x, axis, start.min(extent), size, 1)?));
        start = end;
    }
    Ok(results)
}

fn unbind(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let axis = call.axis_or(x, "dim", 0)?;
    let extent = call.shape(x)[axis];
    if extent > MOST_PIECES {
        return Err(Fault::variant(format!("{extent} results are too many")));
    }
    (0..extent).map(|index| Ok(Item::Tensor(call.builder.pick(x, axis, index)?))).collect()
}
