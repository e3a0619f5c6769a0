//! Shapes: the same elements under another shape, other orders of axes, repetition.

use super::call::{Call, Operands, Table};
use super::item::Item;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::normalized_axis;
use mlc_ir::Value;

pub(super) const OPERATORS: Table = &[
    ("Tensor.expand", One(expand)),
    ("Tensor.expand_as", One(expand_as)),
    ("Tensor.permute", One(permute)),
    ("Tensor.repeat", One(|call| repeat(call, "sizes"))),
    ("Tensor.reshape", One(reshape)),
    ("Tensor.reshape_as", One(reshape_as)),
    ("Tensor.unflatten", One(unflatten)),
    ("Tensor.view", One(reshape)),
    ("aten::diagonal", One(diagonal)),
    ("aten::mT", One(transpose_last)),
    ("aten::movedim", One(movedim)),
    ("aten::trace", One(trace)),
    ("aten::view_as", One(reshape_as)),
    ("torch.flatten", One(flatten)),
    ("torch.permute", One(permute)),
    ("torch.repeat_interleave", One(repeat_interleave)),
    ("torch.squeeze", One(squeeze)),
    ("torch.t", One(matrix_transpose)),
    ("torch.tile", One(|call| repeat(call, "dims"))),
    ("torch.transpose", One(transpose)),
    ("torch.unsqueeze", One(unsqueeze)),
];

/// A list of whole numbers: the second operand, or a parameter.
fn list(call: &mut Call<'_, '_>, key: &str) -> Result<Vec<i64>, Fault> {
    if let Some(values) = call.ints(key)? {
        return Ok(values);
    }
    let position = call.inputs.len().min(2);
    let item = if position == 2 { call.labelled(key, 1) } else { Some(Item::List(Vec::new())) };
    let item = call.required(key, item)?;
    item.ints().ok_or_else(|| Fault::parameter(format!("`{key}` must be whole numbers, found {}", item.description())))
}

/// The extents that a list means: -1 is what remains, 0 an extent of the input.
fn extents(list: &[i64], from: &[usize]) -> Option<Vec<usize>> {
    let mut extents = Vec::with_capacity(list.len());
    let mut open = None;
    for (axis, &extent) in list.iter().enumerate() {
        extents.push(match extent {
            -1 if open.is_none() => {
                open = Some(axis);
                1
            }
            0 if from.contains(&0) => 0,
            0 => *from.get(axis)?,
            _ => usize::try_from(extent).ok()?,
        });
    }
    let total: usize = from.iter().product();
    if let Some(open) = open {
        let known = extents.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent))?;
        extents[open] = total.checked_div(known).unwrap_or(0);
    }
    let found = extents.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent))?;
    (found == total).then_some(extents)
}

fn reshaped(call: &mut Call<'_, '_>, x: Value, list: &[i64]) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let extents = extents(list, &shape).ok_or_else(|| {
        let ty = call.builder.ty(x);
        Fault::new(mlc_ir::Code::ShapeMismatch, format!("{ty} can't take the shape {list:?}"))
            .with_help("the file fixes extents of the shape that it was exported with; export it again for this one")
    })?;
    Ok(call.builder.reshape(x, &extents)?)
}

fn reshape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let list = list(call, "shape")?;
    reshaped(call, x, &list)
}

fn reshape_as(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, other) = (call.x()?, call.labelled_input("other", 1)?);
    let shape = call.shape(other);
    Ok(call.builder.reshape(x, &shape)?)
}

fn transpose_last(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (rows, columns) = (call.axis(x, -2)?, call.axis(x, -1)?);
    Ok(call.builder.swap_axes(x, rows, columns)?)
}

/// A diagonal of two axes, as the last axis.
fn diagonal_of(call: &mut Call<'_, '_>, x: Value, offset: i64, first: usize, second: usize) -> Result<Value, Fault> {
    let shape = call.shape(x);
    if first == second {
        return Err(Fault::operands("a diagonal has two different axes"));
    }
    let rest: Vec<usize> = (0..shape.len()).filter(|&axis| axis != first && axis != second).collect();
    let order: Vec<usize> = rest.iter().copied().chain([first, second]).collect();
    let (rows, columns) = (shape[first], shape[second]);
    let (row, column) = ((-offset).max(0) as usize, offset.max(0) as usize);
    let size = rows.saturating_sub(row).min(columns.saturating_sub(column));
    let mut merged: Vec<usize> = rest.iter().map(|&axis| shape[axis]).collect();
    merged.push(rows * columns);
    let x = call.builder.transpose(x, &order)?;
    let x = call.builder.reshape(x, &merged)?;
    let start = if size == 0 { 0 } else { row * columns + column };
    Ok(call.builder.slice_axis(x, rest.len(), start, size, columns as i64 + 1)?)
}

/// `aten::diagonal (x, offset, dim1, dim2)`
fn diagonal(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let mut number = |key: &str, position: usize, default: i64| {
        let item = call.labelled(key, position).unwrap_or(Item::Int(default));
        let number = item.int().filter(|value| value.abs() < 1 << 40);
        number.ok_or_else(|| Fault::operands(format!("operand `{key}` must be a whole number")))
    };
    let (offset, first, second) = (number("offset", 1, 0)?, number("dim1", 2, 0)?, number("dim2", 3, 1)?);
    let (first, second) = (call.axis(x, first)?, call.axis(x, second)?);
    diagonal_of(call, x, offset, first, second)
}

/// The sum of the diagonal.
fn trace(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    if call.builder.rank(x) != 2 {
        return Err(Fault::operands(format!("{} isn't a matrix", call.builder.ty(x))));
    }
    let diagonal = diagonal_of(call, x, 0, 0, 1)?;
    super::reduction::reduce(call, diagonal, mlc_ir::ops::ReduceFunction::Sum, vec![0], false)
}

fn unflatten(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = call.int("dim")?;
    let axis = call.axis(x, call.required("dim", axis)?)?;
    let sizes = list(call, "sizes")?;
    let shape = call.shape(x);
    let inner = extents(&sizes, &shape[axis..=axis])
        .ok_or_else(|| Fault::parameter(format!("axis {axis} of {} can't become {sizes:?}", call.builder.ty(x))))?;
    let mut result = shape[..axis].to_vec();
    result.extend(inner);
    result.extend_from_slice(&shape[axis + 1..]);
    Ok(call.builder.reshape(x, &result)?)
}

fn flatten(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (start, end) = (call.int_or("start_dim", 0)?, call.int_or("end_dim", -1)?);
    if call.builder.rank(x) == 0 {
        return Ok(call.builder.reshape(x, &[1])?);
    }
    let (start, end) = (call.axis(x, start)?, call.axis(x, end)?);
    if start > end {
        return Err(Fault::parameter(format!("axes {start} to {end} can't be merged")));
    }
    let shape = call.shape(x);
    let mut result = shape[..start].to_vec();
    result.push(shape[start..=end].iter().product());
    result.extend_from_slice(&shape[end + 1..]);
    Ok(call.builder.reshape(x, &result)?)
}

fn permute(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axes = list(call, "dims")?;
    let axes = axes.iter().map(|&axis| call.axis(x, axis)).collect::<Result<Vec<_>, _>>()?;
    Ok(call.builder.transpose(x, &axes)?)
}

fn transpose(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (first, second) = (call.int("dim0")?, call.int("dim1")?);
    let (first, second) = (call.required("dim0", first)?, call.required("dim1", second)?);
    let (first, second) = (call.axis(x, first)?, call.axis(x, second)?);
    Ok(call.builder.swap_axes(x, first, second)?)
}

fn matrix_transpose(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    if call.builder.rank(x) < 2 {
        return Ok(x);
    }
    Ok(call.builder.swap_axes(x, 0, 1)?)
}

/// `aten::movedim (x, source, destination)`
fn movedim(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let mut axes = |label: &str, position: usize| -> Result<Vec<usize>, Fault> {
        let item = call.labelled_item(label, position)?;
        let list = item.ints().ok_or_else(|| Fault::parameter(format!("`{label}` must be whole numbers")))?;
        list.iter().map(|&axis| call.axis(x, axis)).collect()
    };
    let (sources, destinations) = (axes("source", 1)?, axes("destination", 2)?);
    let rank = call.builder.rank(x);
    let mut permutation: Vec<Option<usize>> = vec![None; rank];
    for (&source, &destination) in sources.iter().zip(&destinations) {
        permutation[destination] = Some(source);
    }
    let mut rest = (0..rank).filter(|axis| !sources.contains(axis));
    let permutation: Vec<usize> =
        permutation.into_iter().map(|axis| axis.or_else(|| rest.next()).unwrap_or(rank)).collect();
    Ok(call.builder.transpose(x, &permutation)?)
}

fn squeeze(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axes = call.axes_or_all(x, "dim")?;
    let shape = call.shape(x);
    let kept = (0..shape.len()).filter(|axis| shape[*axis] != 1 || !axes.contains(axis));
    let kept: Vec<usize> = kept.map(|axis| shape[axis]).collect();
    Ok(call.builder.reshape(x, &kept)?)
}

fn unsqueeze(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let mut x = call.x()?;
    let axes = call.ints("dim")?;
    let mut axes = call.required("dim", axes)?;
    // Negative ones from -1 downward, then the others upward: each place counts axes that are there already.
    axes.sort_unstable_by_key(|&axis| if axis < 0 { (0, -axis) } else { (1, axis) });
    for axis in axes {
        let place = normalized_axis(axis, call.builder.rank(x) + 1);
        let place =
            place.ok_or_else(|| Fault::parameter(format!("{} has no place {axis} for an axis", call.builder.ty(x))))?;
        x = call.builder.insert_axis(x, place)?;
    }
    Ok(x)
}

fn expand(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let sizes = list(call, "sizes")?;
    let shape = call.shape(x);
    let fault = || Fault::parameter(format!("{} can't be expanded to {sizes:?}", call.builder.ty(x)));
    let added = sizes.len().checked_sub(shape.len()).ok_or_else(fault)?;
    let extents = sizes.iter().enumerate().map(|(axis, &size)| match size {
        -1 => axis.checked_sub(added).map(|own| shape[own]),
        _ => usize::try_from(size).ok(),
    });
    let extents: Vec<usize> = extents.collect::<Option<_>>().ok_or_else(fault)?;
    Ok(call.builder.broadcast(x, &extents)?)
}

fn expand_as(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, other) = (call.x()?, call.labelled_input("other", 1)?);
    let shape = call.shape(other);
    Ok(call.builder.broadcast(x, &shape)?)
}

/// Repeats the whole tensor along each axis; the counts and the shape are aligned at the last axis.
fn repeat(call: &mut Call<'_, '_>, key: &str) -> Result<Value, Fault> {
    let x = call.x()?;
    let counts = list(call, key)?;
    let counts: Option<Vec<usize>> = counts.iter().map(|&count| usize::try_from(count).ok()).collect();
    let counts = counts.ok_or_else(|| Fault::parameter(format!("parameter `{key}` must not be negative")))?;
    Ok(call.builder.tile(x, &counts)?)
}

/// Repeats each element, along an axis or of the flat tensor.
fn repeat_interleave(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let mut x = call.x()?;
    let axis = match call.int("dim")? {
        Some(axis) => call.axis(x, axis)?,
        None => {
            x = call.builder.reshape(x, &[call.builder.ty(x).elements()])?;
            0
        }
    };
    let repeats = match call.argument("repeats") {
        Some(Item::Tensor(value)) => match call.builder.graph().constant(value) {
            Some(attribute) => attribute.to_tensor().to_integers(),
            None => {
                let message = "the number of repetitions depends on the data, so no static memory plan exists";
                return Err(Fault::new(mlc_ir::Code::DataDependentShape, message));
            }
        },
        item => {
            let item = call.required("repeats", item)?;
            item.ints().ok_or_else(|| Fault::parameter("parameter `repeats` must be whole numbers"))?
        }
    };
    let shape = call.shape(x);
    let repeats: Option<Vec<usize>> =
        repeats.iter().map(|&count| usize::try_from(count).ok().filter(|&count| count < 1 << 31)).collect();
    let repeats = repeats.ok_or_else(|| Fault::parameter("the numbers of repetitions must not be negative"))?;
    if let [count] = repeats[..] {
        return Ok(call.builder.repeat_elements(x, axis, count)?);
    }
    let total: usize = repeats.iter().sum();
    if repeats.len() != shape[axis] || total > 1 << 26 {
        let message =
            format!("{} numbers of repetitions don't fit axis {axis} of {}", repeats.len(), call.builder.ty(x));
        return Err(Fault::parameter(message));
    }
    let indices: Vec<i64> =
        repeats.iter().enumerate().flat_map(|(index, &count)| std::iter::repeat_n(index as i64, count)).collect();
    let indices = call.builder.indices(&[total], &indices)?;
    Ok(call.builder.gather(x, indices, axis)?)
}
