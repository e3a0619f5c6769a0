//! Reading and writing by index tensors.

use super::call::{Call, Operands, Table};
use super::expression;
use super::item::Item;
use crate::expression::Expression;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::ScatterReduction;
use mlc_ir::{Code, DType, Op, Value};

pub(super) const OPERATORS: Table = &[
    ("F.embedding", One(functional_embedding)),
    ("Tensor.index", One(index)),
    ("Tensor.index_put", One(index_put)),
    ("nn.Embedding", One(embedding)),
    ("torch.as_strided", One(as_strided)),
    ("torch.gather", One(gather)),
    ("torch.index_select", One(index_select)),
];

fn embedding(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let positions = call.x()?;
    let rows = call.weight("weight")?;
    call.ignore(&["num_embeddings", "embedding_dim", "padding_idx"]);
    Ok(call.builder.gather(rows, positions, 0)?)
}

fn functional_embedding(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (positions, rows) = (call.x()?, call.labelled_input("weight", 1)?);
    call.ignore(&["padding_idx"]);
    Ok(call.builder.gather(rows, positions, 0)?)
}

fn index_select(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let positions = call.labelled_input("index", 1)?;
    let axis = call.axis_or(x, "dim", 0)?;
    let positions = call.builder.reshape(positions, &[call.builder.ty(positions).elements()])?;
    Ok(call.builder.gather(x, positions, axis)?)
}

/// Element [.., index[.., i, ..], ..] for each element of the index tensor.
fn gather(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let index = call.labelled_input("index", 1)?;
    let axis = call.int("dim")?;
    let axis = call.axis(x, call.required("dim", axis)?)?;
    Ok(call.builder.gather_elements(x, index, axis)?)
}

/// Element [i, j, ..] is element offset + i * stride[0] + j * stride[1] + .. of the flat tensor.
fn as_strided(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
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
    // Views, and functions of their elements, lie in memory in another order than their elements have; these don't.
    if !matches!(call.builder.graph().node(x.node).op, Op::Input(_) | Op::Pad(_) | Op::Concat(_)) {
        return Err(Fault::variant("how the tensor lies in memory isn't in the file")
            .with_help("index it, or use Tensor.unfold, in the source model"));
    }
    let positions: Vec<i64> =
        flat_offsets(&size, |axis| stride[axis]).into_iter().map(|position| position + offset as i64).collect();
    let positions = call.builder.indices(&size, &positions)?;
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

/// One entry per leading axis: `None` leaves the axis as it is.
fn index_items(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
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
        _ => match call.labelled("indices", 1) {
            Some(Item::List(items)) => items,
            Some(tensor @ Item::Tensor(_)) => vec![tensor],
            _ => return Err(Fault::new(Code::ParameterMissing, "parameter `expr` is missing")),
        },
    };
    Ok(items)
}

/// An index of one axis as a tensor of integers.
fn index_tensor(call: &mut Call<'_, '_>, item: &Item) -> Result<Value, Fault> {
    if let Item::List(items) = item {
        let bools: Option<Vec<bool>> =
            items.iter().map(|item| if let Item::Bool(value) = item { Some(*value) } else { None }).collect();
        let positions = match bools {
            Some(bools) if !bools.is_empty() => chosen(bools.into_iter()),
            _ => item.ints().ok_or_else(|| Fault::parameter("indices must be whole numbers"))?,
        };
        return Ok(call.builder.indices(&[positions.len()], &positions)?);
    }
    let value = call.as_tensor("`index`", item)?;
    if call.builder.dtype(value) != DType::Bool {
        return Ok(value);
    }
    let attribute = call.builder.graph().constant(value).filter(|attribute| attribute.ty().rank() == 1);
    let Some(attribute) = attribute else {
        let message = "an index of bools gives a size that depends on the data, so no static memory plan exists";
        return Err(Fault::new(Code::DataDependentShape, message));
    };
    let positions = chosen(attribute.to_tensor().to_integers().into_iter().map(|value| value != 0));
    Ok(call.builder.indices(&[positions.len()], &positions)?)
}

/// The positions at which a mask is true.
fn chosen(mask: impl Iterator<Item = bool>) -> Vec<i64> {
    mask.enumerate().filter(|(_, chosen)| *chosen).map(|(position, _)| position as i64).collect()
}

/// The axes that index items choose, with their index tensors.
struct Chosen {
    axes: Vec<usize>,
    indices: Vec<Value>,
}

fn chosen_axes(call: &mut Call<'_, '_>, x: Value, items: &[Item]) -> Result<Chosen, Fault> {
    if items.len() > call.builder.rank(x) {
        return Err(Fault::parameter(format!("{} indices are too many for {}", items.len(), call.builder.ty(x))));
    }
    let mut chosen = Chosen { axes: Vec::new(), indices: Vec::new() };
    for (axis, item) in items.iter().enumerate() {
        if *item != Item::None {
            chosen.axes.push(axis);
            chosen.indices.push(index_tensor(call, item)?);
        }
    }
    Ok(chosen)
}

impl Chosen {
    /// All axes of a tensor, the chosen ones first.
    fn order(&self, rank: usize) -> Vec<usize> {
        let rest = (0..rank).filter(|axis| !self.axes.contains(axis));
        self.axes.iter().copied().chain(rest).collect()
    }

    /// The place among the chosen axes that the indices, which broadcast, mean.
    fn place(&self, call: &mut Call<'_, '_>, shape: &[usize]) -> Result<Value, Fault> {
        let extents: Vec<usize> = self.axes.iter().map(|&axis| shape[axis]).collect();
        Ok(call.builder.flat_place(&self.indices, &extents)?)
    }

    /// Where the `new` axes of the indices stand in the result: axes that stand together are replaced where they stand,
    /// else the new axes go to the front.
    fn front(&self) -> usize {
        let together = self.axes.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        if together { self.axes.first().copied().unwrap_or(0) } else { 0 }
    }
}

fn index(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let items = index_items(call)?;
    let chosen = chosen_axes(call, x, &items)?;
    match (&chosen.axes[..], &chosen.indices[..]) {
        ([], _) => Ok(x),
        (&[axis], &[index]) => Ok(call.builder.gather(x, index, axis)?),
        _ => paired_index(call, x, &chosen),
    }
}

/// Several indices broadcast together: the chosen axes merge into one, which is read by places in it.
fn paired_index(call: &mut Call<'_, '_>, x: Value, chosen: &Chosen) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let (count, order) = (chosen.axes.len(), chosen.order(shape.len()));
    let place = chosen.place(call, &shape)?;
    let mut flat = vec![chosen.axes.iter().map(|&axis| shape[axis]).product()];
    flat.extend(order[count..].iter().map(|&axis| shape[axis]));
    let x = call.builder.transpose(x, &order)?;
    let x = call.builder.reshape(x, &flat)?;
    let y = call.builder.gather(x, place, 0)?;
    let (new, before, rank) = (call.builder.rank(place), chosen.front(), call.builder.rank(y));
    let order: Vec<usize> = (new..new + before).chain(0..new).chain(new + before..rank).collect();
    Ok(call.builder.transpose(y, &order)?)
}

/// A copy with the elements at the indices replaced by values, or increased by them.
fn index_put(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let reduction = if call.flag_or("accumulate", false)? { ScatterReduction::Sum } else { ScatterReduction::Replace };
    let items = match call.labelled_item("indices", 1)? {
        Item::List(items) => items,
        single => vec![single],
    };
    let values = match call.argument("values") {
        Some(values) => values,
        None => call.labelled_item("values", 2)?,
    };
    let chosen = chosen_axes(call, x, &items)?;
    let shape = call.shape(x);
    let dtype = call.builder.dtype(x);
    let values = super::promotion::operand(call.builder, &values, dtype)?;
    if chosen.axes.is_empty() {
        return Ok(call.builder.broadcast(values, &shape)?);
    }
    let place = chosen.place(call, &shape)?;
    let (places, count, order) = (call.shape(place), chosen.axes.len(), chosen.order(shape.len()));
    let rest: Vec<usize> = order[count..].iter().map(|&axis| shape[axis]).collect();
    // Values have the shape that reading by the indices gives.
    let (before, new) = (chosen.front(), places.len());
    let written: Vec<usize> = rest[..before].iter().chain(&places).chain(&rest[before..]).copied().collect();
    let values = call.builder.broadcast(values, &written)?;
    let to_front: Vec<usize> = (before..before + new).chain(0..before).chain(before + new..written.len()).collect();
    let values = call.builder.transpose(values, &to_front)?;
    let data = call.builder.transpose(x, &order)?;
    let y = call.builder.scatter_slices(data, place, values, count, reduction)?;
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &axis)| back[axis] = place);
    Ok(call.builder.transpose(y, &back)?)
}
