//! Slices and selections, and tensors of which a slice is replaced.

use super::call::{Call, Operands, Table};
use super::item::Item;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::normalized_axis;
use mlc_ir::ops::Slice;
use mlc_ir::{Shape, Value};

pub(super) const OPERATORS: Table = &[
    ("Tensor.copy", One(copy)),
    ("Tensor.select", One(select)),
    ("Tensor.slice", One(slice)),
    ("Tensor.slice_copy", One(slice_copy)),
    ("pnnx.SliceIndexes", Many(slice_indexes)),
    ("torch.flip", One(flip)),
    ("torch.narrow", One(narrow)),
    ("torch.roll", One(roll)),
    ("torch.slice_scatter", One(slice_scatter)),
];

/// What stands for the end of an axis, and for no selection.
const OPEN: i64 = i32::MAX as i64;

/// A part of one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    axis: usize,
    start: usize,
    size: usize,
    step: usize,
    /// Whether the axis vanishes; then it is one element.
    selected: bool,
}

/// Start, end and step as Python counts them.
fn part(axis: usize, extent: usize, start: Option<i64>, end: Option<i64>, step: Option<i64>) -> Result<Part, Fault> {
    let extent = extent as i64;
    let place = |value: i64| (if value < 0 { value.saturating_add(extent) } else { value }).clamp(0, extent);
    let (start, end) = (place(start.unwrap_or(0)), place(end.unwrap_or(OPEN)));
    let step = step.unwrap_or(1);
    if step < 1 {
        return Err(Fault::parameter(format!("the step of a slice must be positive, found {step}")));
    }
    let size = (end - start).max(0) as usize;
    Ok(Part { axis, start: start as usize, size: size.div_ceil(step as usize), step: step as usize, selected: false })
}

fn selection(axis: usize, extent: usize, index: i64) -> Result<Part, Fault> {
    let place = if index < 0 { index.checked_add(extent as i64) } else { Some(index) };
    let place = place.and_then(|place| usize::try_from(place).ok()).filter(|&place| place < extent);
    let start =
        place.ok_or_else(|| Fault::parameter(format!("index {index} isn't among the {extent} of axis {axis}")))?;
    Ok(Part { axis, start, size: 1, step: 1, selected: true })
}

/// A list in which Python's None stands for an absent number.
fn open_list(call: &mut Call<'_, '_>, key: &str, length: usize) -> Result<Vec<Option<i64>>, Fault> {
    let items = match call.argument(key) {
        None => return Ok(vec![None; length]),
        Some(Item::List(items)) => items,
        Some(single) => vec![single],
    };
    let read = |item: &Item| match call.host_number(item.clone()) {
        Item::None => Ok(None),
        item => item.int().map(Some).ok_or_else(|| {
            Fault::parameter(format!("parameter `{key}` must be whole numbers, found {}", item.description()))
        }),
    };
    let values = items.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    if values.len() != length {
        return Err(Fault::parameter(format!("parameter `{key}` must have {length} numbers, found {}", values.len())));
    }
    Ok(values)
}

/// The parts that the parameters name, of a tensor of this shape. All axes count before any is dropped.
fn parts(call: &mut Call<'_, '_>, shape: &Shape) -> Result<Vec<Part>, Fault> {
    let axis_of = |axis: i64| {
        normalized_axis(axis, shape.len())
            .ok_or_else(|| Fault::parameter(format!("there is no axis {axis} among {}", shape.len())))
    };
    let Some(axes) = call.ints("dims")? else {
        let axis = axis_of(call.int_or("dim", 0)?)?;
        if let Some(index) = call.int("select")? {
            return Ok(vec![selection(axis, shape[axis], index)?]);
        }
        let (start, end, step) = (call.int("start")?, call.int("end")?, call.int("step")?);
        return Ok(vec![part(axis, shape[axis], start, end, step)?]);
    };
    let count = axes.len();
    let (starts, ends) = (open_list(call, "starts", count)?, open_list(call, "ends", count)?);
    let (steps, selects) = (open_list(call, "steps", count)?, open_list(call, "selects", count)?);
    let mut parts = Vec::with_capacity(count);
    for (index, &axis) in axes.iter().enumerate() {
        let axis = axis_of(axis)?;
        parts.push(match selects[index] {
            Some(select) if select != OPEN => selection(axis, shape[axis], select)?,
            _ => part(axis, shape[axis], starts[index], ends[index], steps[index])?,
        });
    }
    let mut named: Vec<usize> = parts.iter().map(|part| part.axis).collect();
    named.sort_unstable();
    if named.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Fault::parameter(format!("an axis occurs twice in the slice of axes {axes:?}")));
    }
    Ok(parts)
}

/// The part of a tensor, with selected axes dropped.
fn cut(call: &mut Call<'_, '_>, x: Value, parts: &[Part]) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let mut slice = Slice { starts: vec![0; shape.len()], sizes: shape.to_vec(), steps: vec![1; shape.len()] };
    for part in parts {
        slice.starts[part.axis] = part.start;
        slice.sizes[part.axis] = part.size;
        slice.steps[part.axis] = part.step as i64;
    }
    let kept: Vec<usize> = (0..shape.len())
        .filter(|axis| !parts.iter().any(|part| part.axis == *axis && part.selected))
        .map(|axis| slice.sizes[axis])
        .collect();
    // An empty part has no first element, wherever it would have been.
    for (start, size) in slice.starts.iter_mut().zip(&slice.sizes) {
        if *size == 0 {
            *start = 0;
        }
    }
    let whole = slice.sizes[..] == shape[..] && slice.starts.iter().all(|&start| start == 0);
    let y = match parts {
        _ if whole => x,
        [Part { axis, start, size, step: 1, .. }] => call.builder.slice_axis(x, *axis, *start, *size, 1)?,
        _ => call.builder.apply(slice, &[x])?,
    };
    Ok(call.builder.reshape(y, &kept)?)
}

fn slice(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let shape = call.shape(x);
    let parts = parts(call, &shape)?;
    cut(call, x, &parts)
}

fn select(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = call.axis_or(x, "dim", 0)?;
    let index = call.int("index")?;
    let index = call.required("index", index)?;
    let part = selection(axis, call.shape(x)[axis], index)?;
    cut(call, x, &[part])
}

fn narrow(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = call.axis_or(x, "dim", 0)?;
    let (start, length) = (call.int("start")?, call.int("length")?);
    let (start, length) = (call.required("start", start)?, call.required("length", length)?);
    let extent = call.shape(x)[axis] as i64;
    let start = if start < 0 { start + extent } else { start };
    let (Ok(start), Ok(length)) = (usize::try_from(start), usize::try_from(length)) else {
        return Err(Fault::parameter("`start` and `length` must lie on the axis"));
    };
    Ok(call.builder.slice_axis(x, axis, start, length, 1)?)
}

/// The list that `indexes` describes, in which `@k` stands for an operand.
fn slice_indexes(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let items = call.argument("indexes");
    call.use_all_inputs();
    let items = match call.required("indexes", items)? {
        Item::List(items) => items,
        single => vec![single],
    };
    let resolve = |item: Item| match &item {
        Item::Word(word) => {
            let operand = word.strip_prefix('@').and_then(|number| number.parse::<usize>().ok());
            let operand = operand.and_then(|number| call.inputs.get(number)).cloned();
            operand.ok_or_else(|| Fault::parameter(format!("`{word}` in `indexes` isn't an operand")))
        }
        _ => Ok(item),
    };
    Ok(vec![Item::List(items.into_iter().map(resolve).collect::<Result<_, _>>()?)])
}

fn flip(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axes = call.ints("dims")?;
    let axes = call.required("dims", axes)?;
    let shape = call.shape(x);
    let mut slice = Slice { starts: vec![0; shape.len()], sizes: shape.to_vec(), steps: vec![1; shape.len()] };
    for axis in axes {
        let axis = call.axis(x, axis)?;
        slice.starts[axis] = shape[axis].saturating_sub(1);
        slice.steps[axis] = -1;
    }
    Ok(call.builder.apply(slice, &[x])?)
}

fn roll(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let shifts = call.ints("shifts")?;
    let shifts = call.required("shifts", shifts)?;
    let shape = call.shape(x);
    let Some(axes) = call.ints("dims")? else {
        let [shift] = shifts[..] else {
            return Err(Fault::parameter("`shifts` must be one number when `dims` is absent"));
        };
        let flat = call.builder.reshape(x, &[call.builder.ty(x).elements()])?;
        let rolled = roll_axis(call, flat, 0, shift)?;
        return Ok(call.builder.reshape(rolled, &shape)?);
    };
    if axes.len() != shifts.len() {
        return Err(Fault::parameter("`shifts` and `dims` must be equally long"));
    }
    let mut y = x;
    for (&axis, &shift) in axes.iter().zip(&shifts) {
        let axis = call.axis(x, axis)?;
        y = roll_axis(call, y, axis, shift)?;
    }
    Ok(y)
}

/// Moves elements to higher indices, and those that leave the axis to its begin.
fn roll_axis(call: &mut Call<'_, '_>, x: Value, axis: usize, shift: i64) -> Result<Value, Fault> {
    let extent = call.shape(x)[axis];
    if extent == 0 {
        return Ok(x);
    }
    let shift = shift.rem_euclid(extent as i64) as usize;
    if shift == 0 {
        return Ok(x);
    }
    let pieces = call.builder.split(x, axis, &[extent - shift, shift])?;
    Ok(call.builder.concat(&[pieces[1], pieces[0]], axis)?)
}

/// `x` with its part replaced by `source`, which has the part's shape with all axes.
fn replace(call: &mut Call<'_, '_>, x: Value, parts: &[Part], source: Value) -> Result<Value, Fault> {
    let Some((part, rest)) = parts.split_first() else { return Ok(source) };
    let extent = call.shape(x)[part.axis];
    if part.size == 0 {
        return Ok(x);
    }
    let own = call.builder.slice_axis(x, part.axis, part.start, part.size, part.step as i64)?;
    let inner = replace(call, own, rest, source)?;
    if part.step == 1 {
        let end = part.start + part.size;
        let mut pieces = Vec::new();
        if part.start > 0 {
            pieces.push(call.builder.slice_axis(x, part.axis, 0, part.start, 1)?);
        }
        pieces.push(inner);
        if end < extent {
            pieces.push(call.builder.slice_axis(x, part.axis, end, extent - end, 1)?);
        }
        return Ok(call.builder.concat(&pieces, part.axis)?);
    }
    if extent > 1 << 26 {
        return Err(Fault::variant(format!("replacing every {}th of {extent} elements isn't supported", part.step)));
    }
    // Both tensors one behind the other, and from there each element of the result.
    let both = call.builder.concat(&[x, inner], part.axis)?;
    let indices: Vec<i64> = (0..extent)
        .map(|index| match index.checked_sub(part.start) {
            Some(offset) if offset.is_multiple_of(part.step) && offset / part.step < part.size => {
                (extent + offset / part.step) as i64
            }
            _ => index as i64,
        })
        .collect();
    let indices = call.builder.indices(&[extent], &indices)?;
    Ok(call.builder.gather(both, indices, part.axis)?)
}

/// Broadcasts the source to the part, and puts it there.
fn replaced(call: &mut Call<'_, '_>, x: Value, parts: &[Part], source: Value) -> Result<Value, Fault> {
    let source = call.builder.cast(source, call.builder.dtype(x))?;
    let mut full = call.shape(x);
    for part in parts {
        full[part.axis] = part.size;
    }
    let kept: Vec<usize> = (0..full.len())
        .filter(|axis| !parts.iter().any(|part| part.axis == *axis && part.selected))
        .map(|axis| full[axis])
        .collect();
    // Axes of extent 1 in front of the source don't count.
    let mut shape = call.shape(source);
    while shape.len() > kept.len() && shape[0] == 1 {
        shape.remove(0);
    }
    let source = call.builder.reshape(source, &shape)?;
    let source = call.builder.broadcast(source, &kept)?;
    let source = call.builder.reshape(source, &full)?;
    replace(call, x, parts, source)
}

fn slice_copy(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, source) = (call.labelled_input("self", 0)?, call.labelled_input("src", 1)?);
    let shape = call.shape(x);
    let parts = parts(call, &shape)?;
    replaced(call, x, &parts, source)
}

fn slice_scatter(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, source) = (call.x()?, call.labelled_input("src", 1)?);
    let shape = call.shape(x);
    let parts = parts(call, &shape)?;
    replaced(call, x, &parts, source)
}

fn copy(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, source) = (call.labelled_input("self", 0)?, call.labelled_input("src", 1)?);
    replaced(call, x, &[], source)
}
