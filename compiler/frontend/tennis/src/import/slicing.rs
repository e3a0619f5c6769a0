//! Parts of tensors.

use super::call::{Call, Parameters, Table};
use super::item::Item;
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, slice_part};
use mlc_ir::Value;
use mlc_ir::ops::Slice;

pub(super) const OPERATORS: Table = &[
    ("chunk", Many(chunk)),
    ("slice", One(slice)),
    ("slice_v2", One(slice_by_operands)),
    ("slice_v3", One(slice_of_axes)),
    ("split", Many(split)),
    ("strided_slice", One(strided_slice)),
];

/// Pieces of one extent, the last one smaller.
fn chunk(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let chunks = call.required_int("chunks")?;
    let axis = call.axis_or(x, "dim", -2)?;
    let extent = call.shape(x)[axis];
    let count = usize::try_from(chunks).ok().filter(|&count| count > 0 && count <= extent);
    let sizes = count.and_then(|count| {
        let size = extent.div_ceil(count);
        let last = extent.checked_sub(size * (count - 1)).filter(|&last| last > 0)?;
        Some([vec![size; count - 1], vec![last]].concat())
    });
    let sizes = sizes.ok_or_else(|| {
        let ty = call.builder.ty(x);
        Fault::parameter(format!("axis {axis} of {ty} can't be cut into {chunks} chunks"))
    })?;
    Ok(vec![Item::packed(call.builder.split(x, axis, &sizes)?)])
}

/// Pieces whose extents an operand says.
fn split(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let axis = call.required_axis(x, "axis")?;
    let (_, sizes) = call.whole_numbers(1, "the sizes")?;
    let extent = call.shape(x)[axis];
    let fits = sizes.iter().try_fold(0i64, |sum, &size| sum.checked_add(size)) == Some(extent as i64);
    if !fits || sizes.iter().any(|&size| size < 1) {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("the sizes {sizes:?} don't fill axis {axis} of {ty}")));
    }
    let sizes: Vec<usize> = sizes.iter().map(|&size| size as usize).collect();
    Ok(vec![Item::packed(call.builder.split(x, axis, &sizes)?)])
}

/// Applies a slice, unless it is the whole tensor.
fn sliced(call: &mut Call<'_, '_>, x: Value, slice: Slice) -> Result<Value, Fault> {
    let whole = slice.sizes[..] == call.shape(x)[..] && slice.steps.iter().all(|&step| step == 1);
    if whole { Ok(x) } else { Ok(call.builder.apply(slice, &[x])?) }
}

fn slice(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (begin, size) = (call.required_ints("begin")?, call.required_ints("size")?);
    sliced_by_size(call, &begin, &size)
}

fn slice_by_operands(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let ((_, begin), (_, size)) = (call.whole_numbers(1, "the begin")?, call.whole_numbers(2, "the size")?);
    sliced_by_size(call, &begin, &size)
}

/// So many elements of each axis; a size of -1 reaches to the end.
fn sliced_by_size(call: &mut Call<'_, '_>, begin: &[i64], size: &[i64]) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let shape = call.shape(x);
    let misfit = || {
        let ty = call.builder.ty(x);
        Fault::parameter(format!("begin {begin:?} and size {size:?} don't fit {ty}"))
    };
    if [begin.len(), size.len()] != [shape.len(); 2] {
        return Err(misfit());
    }
    let mut slice = Slice { starts: Vec::new(), sizes: Vec::new(), steps: vec![1; shape.len()] };
    for ((&begin, &size), &extent) in begin.iter().zip(size).zip(&shape) {
        let start = usize::try_from(begin).ok().filter(|&start| start < extent).ok_or_else(misfit)?;
        let size = if size == -1 { Some(extent - start) } else { usize::try_from(size).ok() };
        let size = size.filter(|&size| size > 0 && size <= extent - start).ok_or_else(misfit)?;
        slice.starts.push(start);
        slice.sizes.push(size);
    }
    sliced(call, x, slice)
}

/// Starts, ends and steps of some axes, as ONNX has them.
fn slice_of_axes(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let ((_, starts), (_, ends)) = (call.whole_numbers(1, "the starts")?, call.whole_numbers(2, "the ends")?);
    let axes =
        if call.operands() > 3 { call.whole_numbers(3, "the axes")?.1 } else { (0..starts.len() as i64).collect() };
    let steps = if call.operands() > 4 { call.whole_numbers(4, "the steps")?.1 } else { vec![1; starts.len()] };
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        let lengths = [&starts, &ends, &axes, &steps].map(Vec::len);
        return Err(Fault::operands(format!("starts, ends, axes and steps have {lengths:?} numbers")));
    }
    let slice = call.slice_of_axes(x, &axes, (&starts, &ends, &steps))?;
    let slice = slice.ok_or_else(|| Fault::operands("a step of a slice must not be 0"))?;
    filled(call, x, &slice)?;
    sliced(call, x, slice)
}

/// Refuses a slice without elements, which no tensor of the format is.
fn filled(call: &Call<'_, '_>, x: Value, slice: &Slice) -> Result<(), Fault> {
    match slice.sizes.iter().position(|&size| size == 0) {
        Some(axis) if call.shape(x)[axis] > 0 => {
            let ty = call.builder.ty(x);
            Err(Fault::operands(format!("the slice of {ty} has no elements along axis {axis}")))
        }
        _ => Ok(()),
    }
}

/// As TensorFlow: entries are ranges of axes, single elements of them, new axes, or all axes that the others leave.
fn strided_slice(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (begin, end) = (call.required_ints("begin")?, call.required_ints("end")?);
    let strides = call.ints("stride")?.unwrap_or_else(|| vec![1; begin.len()]);
    let masks = call.slice_masks()?;
    let entries = begin.len();
    let ellipses = masks.ellipses(entries);
    if [end.len(), strides.len()] != [entries; 2] || entries > 62 || ellipses > 1 {
        let message = format!("begin {begin:?}, end {end:?} and stride {strides:?} with {ellipses} ellipses don't fit");
        return Err(Fault::parameter(message));
    }
    let shape = call.shape(x);
    let taken = masks.axes(entries);
    let misfit = |what: &str| Fault::parameter(format!("begin {begin:?} and end {end:?} {what} {shape:?}"));
    let left = shape.len().checked_sub(taken).ok_or_else(|| misfit("have more entries than the axes of"))?;
    let mut slice = Slice { starts: vec![0; shape.len()], sizes: shape.to_vec(), steps: vec![1; shape.len()] };
    let (mut axis, mut result) = (0, Vec::new());
    for entry in 0..entries {
        if masks.ellipsis.has(entry) {
            result.extend_from_slice(&shape[axis..axis + left]);
            axis += left;
            continue;
        }
        if masks.new_axis.has(entry) {
            let (from, to) = (masks.begin.has(entry) || begin[entry] <= 0, masks.end.has(entry) || end[entry] >= 1);
            if !from || !to || strides[entry] < 1 {
                return Err(misfit("don't cover a new axis beside"));
            }
            result.push(1);
            continue;
        }
        let (shrinks, extent) = (masks.shrink_axis.has(entry), shape[axis]);
        let (start, stop, step) = if shrinks {
            (begin[entry], if begin[entry] == -1 { i64::MAX } else { begin[entry].saturating_add(1) }, 1)
        } else {
            let (first, last) = if strides[entry] > 0 { (0, i64::MAX) } else { (i64::MAX, i64::MIN) };
            let start = if masks.begin.has(entry) { first } else { begin[entry] };
            (start, if masks.end.has(entry) { last } else { end[entry] }, strides[entry])
        };
        let part = slice_part(extent, start, stop, step).filter(|&(_, size, _)| size > 0);
        let (start, size, step) = part.ok_or_else(|| misfit("take no element of an axis of"))?;
        (slice.starts[axis], slice.sizes[axis], slice.steps[axis]) = (start, size, step);
        if !shrinks {
            result.push(size);
        }
        axis += 1;
    }
    result.extend_from_slice(&shape[axis..]);
    let y = sliced(call, x, slice)?;
    Ok(call.builder.reshape(y, &result)?)
}
