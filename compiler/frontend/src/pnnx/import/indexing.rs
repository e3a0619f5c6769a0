//! Reading by index tensors, and writing where the indices are known.

use super::call::Call;
use super::expression;
use super::item::Item;
use super::registry::{Handler::One, Table};
use crate::fault::Fault;
use crate::pnnx::expression::Expression;
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::types::{broadcast_shapes, row_major_strides};
use mlc_ir::{Code, DType, Shape, Value};

pub(super) const OPERATORS: Table = &[
    ("F.embedding", One(functional_embedding)),
    ("Tensor.index", One(index)),
    ("Tensor.index_put", One(index_put)),
    ("nn.Embedding", One(embedding)),
    ("torch.as_strided", One(as_strided)),
    ("torch.gather", One(gather)),
    ("torch.index_select", One(index_select)),
];

/// A constant of indices.
pub(super) fn indices(call: &mut Call<'_>, shape: &[usize], values: &[i64]) -> Result<Value, Fault> {
    Ok(call.builder.indices(shape, values)?)
}

fn embedding(call: &mut Call<'_>) -> Result<Value, Fault> {
    let positions = call.x()?;
    let rows = call.weight("weight")?;
    call.ignore(&["num_embeddings", "embedding_dim"]);
    Ok(call.builder.gather(rows, positions, 0)?)
}

fn functional_embedding(call: &mut Call<'_>) -> Result<Value, Fault> {
    let (positions, rows) = (call.x()?, call.tensor("weight", 1)?);
    call.ignore(&["padding_idx", "max_norm", "norm_type"]);
    Ok(call.builder.gather(rows, positions, 0)?)
}

fn index_select(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let positions = call.tensor("index", 1)?;
    let axis = call.axis_or(x, "dim", 0)?;
    let positions = call.builder.reshape(positions, &[call.builder.ty(positions).elements()])?;
    Ok(call.builder.gather(x, positions, axis)?)
}

/// Element [.., index[.., i, ..], ..] for each element of the index tensor.
fn gather(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let index = call.tensor("index", 1)?;
    let axis = call.int("dim")?;
    let axis = call.axis(x, call.required("dim", axis)?)?;
    let (shape, wanted) = (call.shape(x), call.shape(index));
    let fits =
        shape.len() == wanted.len() && (0..shape.len()).all(|other| other == axis || wanted[other] <= shape[other]);
    if !fits {
        let (index, x) = (call.builder.ty(index), call.builder.ty(x));
        return Err(Fault::operands(format!("the indices {index} don't fit the tensor {x}")));
    }
    check_table(call.builder.ty(index).elements())?;
    // Position of every element in the flat tensor, but for the axis that the indices choose.
    let strides = row_major_strides(&shape);
    let offsets = flat_offsets(&wanted, |other| if other == axis { 0 } else { strides[other] });
    let offsets = indices(call, &wanted, &offsets)?;
    let index = call.builder.cast(index, DType::I64)?;
    let index = non_negative(call, index, shape[axis])?;
    let scaled = call.builder.binary_number(BinaryFunction::Multiply, index, strides[axis] as f64)?;
    let flat_index = call.builder.binary(BinaryFunction::Add, scaled, offsets)?;
    let flat = call.builder.reshape(x, &[call.builder.ty(x).elements()])?;
    Ok(call.builder.gather(flat, flat_index, 0)?)
}

/// Element [i, j, ..] is element offset + i * stride[0] + j * stride[1] + .. of the flat tensor.
fn as_strided(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (size, stride) = (call.ints("size")?, call.ints("stride")?);
    let (size, stride) = (call.required("size", size)?, call.required("stride", stride)?);
    let offset = call.int_or("storage_offset", 0)?;
    let unsigned = |list: &[i64]| list.iter().map(|&value| usize::try_from(value).ok()).collect::<Option<Vec<usize>>>();
    let (Some(size), Some(stride), Ok(offset)) = (unsigned(&size), unsigned(&stride), usize::try_from(offset)) else {
        return Err(Fault::parameter("`size`, `stride` and `storage_offset` must not be negative"));
    };
    let elements = call.builder.ty(x).elements();
    let reach = size.iter().zip(&stride).try_fold(offset, |reach, (&extent, &step)| {
        extent.checked_sub(1).and_then(|last| last.checked_mul(step)).and_then(|more| reach.checked_add(more))
    });
    if size.len() != stride.len() || size.contains(&0) || reach.is_none_or(|reach| reach >= elements) {
        let ty = call.builder.ty(x);
        return Err(Fault::parameter(format!("size {size:?} by strides {stride:?} from {offset} leaves {ty}")));
    }
    check_table(size.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent)))?;
    let positions: Vec<i64> =
        flat_offsets(&size, |axis| stride[axis]).into_iter().map(|position| position + offset as i64).collect();
    let positions = indices(call, &size, &positions)?;
    let flat = call.builder.reshape(x, &[elements])?;
    Ok(call.builder.gather(flat, positions, 0)?)
}

/// Refuses tables of positions that would take too much memory.
fn check_table(elements: usize) -> Result<(), Fault> {
    if elements > 1 << 26 {
        return Err(Fault::variant(format!("a table of {elements} positions is too large")));
    }
    Ok(())
}

/// For each element of a shape, the sum of its coordinates times strides.
fn flat_offsets(shape: &[usize], stride: impl Fn(usize) -> usize) -> Vec<i64> {
    let mut offsets = vec![0i64];
    for (axis, &extent) in shape.iter().enumerate() {
        let step = stride(axis) as i64;
        offsets = offsets.iter().flat_map(|&base| (0..extent as i64).map(move |index| base + index * step)).collect();
    }
    offsets
}

/// Indices counted from the end, as those from the begin.
fn non_negative(call: &mut Call<'_>, index: Value, extent: usize) -> Result<Value, Fault> {
    if let Some(attribute) = call.builder.graph().constant(index) {
        let tensor = attribute.to_tensor();
        let values: Vec<i64> = tensor
            .to_integers()
            .into_iter()
            .map(|value| if value < 0 { value + extent as i64 } else { value })
            .collect();
        let shape = call.shape(index);
        return indices(call, &shape, &values);
    }
    let dtype = call.builder.dtype(index);
    Ok(call.builder.map(&[index], |b| {
        let (index, zero, extent) = (b.operand(0), b.number(dtype, 0.0), b.number(dtype, extent as f64));
        let negative = b.binary(BinaryFunction::Less, index, zero);
        let moved = b.binary(BinaryFunction::Add, index, extent);
        b.select(negative, moved, index)
    })?)
}

/// One entry per leading axis: `None` leaves the axis as it is.
fn index_items(call: &mut Call<'_>) -> Result<Vec<Item>, Fault> {
    let items = match call.argument("expr") {
        Some(Item::List(items)) => items,
        Some(Item::Word(text)) => {
            let expression = Expression::parse(&text).map_err(|error| Fault::new(Code::Syntax, error.to_string()))?;
            match expression::value_of(call, &expression)? {
                Item::List(items) => items,
                single => vec![single],
            }
        }
        Some(tensor @ Item::Tensor(_)) => vec![tensor],
        _ => match call.optional("indices", 1) {
            Some(Item::List(items)) => items,
            Some(tensor @ Item::Tensor(_)) => vec![tensor],
            _ => return Err(Fault::new(Code::ParameterMissing, "parameter `expr` is missing")),
        },
    };
    Ok(items)
}

/// An index of one axis as a tensor of integers.
fn index_tensor(call: &mut Call<'_>, item: &Item, extent: usize) -> Result<Value, Fault> {
    if let Item::List(items) = item {
        let bools: Option<Vec<bool>> =
            items.iter().map(|item| if let Item::Bool(value) = item { Some(*value) } else { None }).collect();
        let positions = match bools {
            Some(bools) if !bools.is_empty() => chosen(bools.into_iter()),
            _ => item.ints().ok_or_else(|| Fault::parameter("indices must be whole numbers"))?,
        };
        return indices(call, &[positions.len()], &positions);
    }
    let value = call.as_tensor("index", item)?;
    if call.builder.dtype(value) != DType::Bool {
        return non_negative(call, value, extent);
    }
    let attribute = call.builder.graph().constant(value).filter(|attribute| attribute.ty().rank() == 1);
    let Some(attribute) = attribute else {
        let message = "an index of bools gives a size that depends on the data, so no static memory plan exists";
        return Err(Fault::new(Code::DataDependentShape, message));
    };
    let positions = chosen(attribute.to_tensor().to_integers().into_iter().map(|value| value != 0));
    indices(call, &[positions.len()], &positions)
}

/// The positions at which a mask is true.
fn chosen(mask: impl Iterator<Item = bool>) -> Vec<i64> {
    mask.enumerate().filter(|(_, chosen)| *chosen).map(|(position, _)| position as i64).collect()
}

fn index(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let items = index_items(call)?;
    let shape = call.shape(x);
    if items.len() > shape.len() {
        return Err(Fault::parameter(format!("{} indices are too many for {}", items.len(), call.builder.ty(x))));
    }
    let mut chosen = Vec::new();
    for (axis, item) in items.iter().enumerate() {
        if *item != Item::None {
            chosen.push((axis, index_tensor(call, item, shape[axis])?));
        }
    }
    match chosen[..] {
        [] => Ok(x),
        [(axis, index)] => Ok(call.builder.gather(x, index, axis)?),
        _ => paired_index(call, x, &chosen),
    }
}

/// Several indices broadcast together: the chosen axes merge into one, which is read by positions in it.
fn paired_index(call: &mut Call<'_>, x: Value, chosen: &[(usize, Value)]) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let axes: Vec<usize> = chosen.iter().map(|(axis, _)| *axis).collect();
    let rest: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();
    let order: Vec<usize> = axes.iter().chain(&rest).copied().collect();
    let merged: Shape = axes.iter().map(|&axis| shape[axis]).collect();
    let strides = row_major_strides(&merged);
    let mut position: Option<Value> = None;
    for (&(_, index), &stride) in chosen.iter().zip(&strides) {
        let index = call.builder.cast(index, DType::I64)?;
        let scaled = call.builder.binary_number(BinaryFunction::Multiply, index, stride as f64)?;
        position = Some(call.builder.add_optional(scaled, position)?);
    }
    let Some(position) = position else { return Ok(x) };
    let mut flat = vec![merged.iter().product()];
    flat.extend(rest.iter().map(|&axis| shape[axis]));
    let x = call.builder.transpose(x, &order)?;
    let x = call.builder.reshape(x, &flat)?;
    let y = call.builder.gather(x, position, 0)?;
    // Axes that stand together are replaced where they stand; else the result's axes go to the front.
    let together = axes.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let new = call.builder.rank(position);
    if !together {
        return Ok(y);
    }
    let before = axes[0];
    let order: Vec<usize> = (new..new + before).chain(0..new).chain(new + before..new + rest.len()).collect();
    Ok(call.builder.transpose(y, &order)?)
}

/// A copy with the elements at known indices replaced: each element of the result is read from the tensor or the values.
fn index_put(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    if call.flag_or("accumulate", false)? {
        return Err(Fault::variant("`accumulate=True` isn't supported"));
    }
    let items = match call.operand("indices", 1)? {
        Item::List(items) => items,
        single => vec![single],
    };
    let values = match call.argument("values") {
        Some(values) => values,
        None => call.operand("values", 2)?,
    };
    let shape = call.shape(x);
    let known = known_indices(call, &items, &shape)?;
    let index_shape = broadcast_shapes(known.iter().map(|(shape, _)| &shape[..]))
        .ok_or_else(|| Fault::operands("the indices don't broadcast"))?;
    let strides = row_major_strides(&shape);
    check_table(index_shape.iter().fold(1, |product: usize, &extent| product.saturating_mul(extent)))?;
    // Positions of the written blocks, then of their elements.
    let count: usize = index_shape.iter().product();
    let mut targets = vec![0i64; count];
    for ((own, list), (&stride, &extent)) in known.iter().zip(strides.iter().zip(&shape)) {
        let sources = mlc_ir::ops::elementwise::broadcast_indices(own, &index_shape);
        for (target, source) in targets.iter_mut().zip(sources) {
            let index = if list[source] < 0 { list[source] + extent as i64 } else { list[source] };
            if !(0..extent as i64).contains(&index) {
                return Err(Fault::parameter(format!("index {index} isn't among {extent}")));
            }
            *target += index * stride as i64;
        }
    }
    check_table(call.builder.ty(x).elements())?;
    let block = &shape[known.len()..];
    let inner = flat_offsets(block, |axis| strides[known.len() + axis]);
    let elements = call.builder.ty(x).elements();
    let mut positions: Vec<i64> = (0..elements as i64).collect();
    let mut next = elements as i64;
    for target in &targets {
        for offset in &inner {
            positions[(target + offset) as usize] = next;
            next += 1;
        }
    }
    let dtype = call.builder.dtype(x);
    let values = super::arithmetic::operand(call.builder, &values, dtype)?;
    let written: Vec<usize> = index_shape.iter().chain(block).copied().collect();
    let values = call.builder.broadcast(values, &written)?;
    let values = call.builder.reshape(values, &[count * inner.len()])?;
    let flat = call.builder.reshape(x, &[elements])?;
    let both = call.builder.concat(&[flat, values], 0)?;
    let positions = indices(call, &shape, &positions)?;
    Ok(call.builder.gather(both, positions, 0)?)
}

/// Indices of the leading axes, which must all be constants.
fn known_indices(call: &mut Call<'_>, items: &[Item], shape: &[usize]) -> Result<Vec<(Shape, Vec<i64>)>, Fault> {
    if items.len() > shape.len() {
        return Err(Fault::parameter(format!("{} indices are too many for {} axes", items.len(), shape.len())));
    }
    let mut known = Vec::new();
    for (item, &extent) in items.iter().zip(shape) {
        if *item == Item::None {
            return Err(Fault::variant("writing to all of an axis before an indexed one isn't supported"));
        }
        let index = index_tensor(call, item, extent)?;
        let attribute = call.builder.graph().constant(index);
        let attribute = attribute.ok_or_else(|| {
            Fault::variant("positions that depend on the data can't be written to")
                .with_help("the indices of Tensor.index_put must be constants")
        })?;
        known.push((attribute.ty().shape.clone(), attribute.to_tensor().to_integers()));
    }
    Ok(known)
}
