//! Parts of tensors.

use super::call::{Call, Table, Tensors};
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, Operand, slice_part};
use mlc_ir::Value;
use mlc_ir::ops::Slice;

pub(super) const OPERATORS: Table = &[
    ("REVERSE_V2", One(reverse)),
    ("SLICE", One(slice)),
    ("SPLIT", Many(split)),
    ("SPLIT_V", Many(split_by_sizes)),
    ("STRIDED_SLICE", One(strided_slice)),
];

fn items(values: Vec<Value>) -> Vec<Operand> {
    values.into_iter().map(Operand::Tensor).collect()
}

/// The axis that an operand says.
fn axis_operand(call: &mut Call<'_, '_>, x: Value, index: usize) -> Result<usize, Fault> {
    let numbers = call.numbers(index, "the axis")?;
    match numbers[..] {
        [axis] => call.axis(x, axis),
        _ => Err(Fault::operands(format!("one axis expected, found {numbers:?}"))),
    }
}

/// The first operand is the axis.
fn split(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let x = call.input(1)?;
    let axis = axis_operand(call, x, 0)?;
    let (extent, count) = (call.shape(x)[axis], call.results());
    if count == 0 || !extent.is_multiple_of(count) {
        return Err(Fault::operands(format!("{extent} elements can't be split into {count} parts")));
    }
    Ok(items(call.builder.split(x, axis, &vec![extent / count; count])?))
}

fn split_by_sizes(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let x = call.input(0)?;
    let sizes = call.numbers(1, "the sizes")?;
    let axis = axis_operand(call, x, 2)?;
    let extent = call.shape(x)[axis];
    let fault = || Fault::operands(format!("{extent} elements can't be split into {sizes:?}"));
    let mut known = sizes.iter().filter_map(|&size| usize::try_from(size).ok());
    let known = known.try_fold(0usize, |sum, size| sum.checked_add(size)).ok_or_else(fault)?;
    let rest = extent.checked_sub(known).ok_or_else(fault)?;
    let open = sizes.iter().filter(|&&size| size < 0).count();
    if open > 1 || open == 0 && rest > 0 || sizes.len() != call.results() {
        return Err(fault());
    }
    let sizes: Vec<usize> = sizes.iter().map(|&size| usize::try_from(size).unwrap_or(rest)).collect();
    Ok(items(call.builder.split(x, axis, &sizes)?))
}

/// A size of -1 goes to the end.
fn slice(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (starts, sizes) = (call.numbers(1, "the start")?, call.numbers(2, "the size")?);
    let shape = call.shape(x);
    let fault = || Fault::operands(format!("the slice of {sizes:?} from {starts:?} leaves {shape:?}"));
    if starts.len() != shape.len() || sizes.len() != shape.len() {
        return Err(fault());
    }
    let mut slice = Slice { starts: Vec::new(), sizes: Vec::new(), steps: vec![1; shape.len()] };
    for (axis, &extent) in shape.iter().enumerate() {
        let start = usize::try_from(starts[axis]).map_err(|_| fault())?;
        let rest = extent.checked_sub(start).ok_or_else(fault)?;
        let size = if sizes[axis] == -1 { rest } else { usize::try_from(sizes[axis]).map_err(|_| fault())? };
        slice.starts.push(start);
        slice.sizes.push(size);
    }
    Ok(call.builder.apply(slice, &[x])?)
}

fn reverse(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let named = call.numbers(1, "the axes")?;
    let axes = call.axes(x, &named)?;
    let mut y = x;
    for axis in axes {
        let extent = call.shape(y)[axis];
        if extent > 1 {
            y = call.builder.slice_axis(y, axis, extent - 1, extent, -1)?;
        }
    }
    Ok(y)
}

fn strided_slice(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let starts = call.numbers(1, "the start")?;
    let (ends, steps) = (call.numbers(2, "the end")?, call.numbers(3, "the step")?);
    let masks = call.slice_masks()?;
    let offset = call.flag_or("offset", false)?;
    let shape = call.shape(x);
    let entries = starts.len();
    let named = masks.axes(entries);
    let misfit = ends.len() != entries || steps.len() != entries || named > shape.len();
    if entries > 32 || misfit || masks.ellipses(entries) > 1 {
        return Err(Fault::operands(format!(
            "{entries} starts, {} ends and {} steps don't fit {shape:?}",
            ends.len(),
            steps.len()
        )));
    }
    let mut slice = Slice { starts: vec![0; shape.len()], sizes: shape.to_vec(), steps: vec![1; shape.len()] };
    let (mut axis, mut result) = (0, Vec::new());
    for entry in 0..entries {
        if masks.ellipsis.has(entry) {
            for _ in 0..shape.len() - named {
                result.push(shape[axis]);
                axis += 1;
            }
            continue;
        }
        if masks.new_axis.has(entry) {
            result.push(1);
            continue;
        }
        let (extent, step) = (shape[axis], steps[entry]);
        let fault =
            || Fault::operands(format!("the slice from {} by {step} leaves an axis of {extent}", starts[entry]));
        if masks.shrink_axis.has(entry) {
            let place = if starts[entry] < 0 { starts[entry].saturating_add(extent as i64) } else { starts[entry] };
            let place = if masks.begin.has(entry) { 0 } else { usize::try_from(place).map_err(|_| fault())? };
            (slice.starts[axis], slice.sizes[axis]) = (place, 1);
        } else {
            let far = if step > 0 { (0, i64::MAX) } else { (i64::MAX, i64::MIN) };
            let start = if masks.begin.has(entry) { far.0 } else { starts[entry] };
            let end = if offset { starts[entry].saturating_add(ends[entry]) } else { ends[entry] };
            let end = if masks.end.has(entry) { far.1 } else { end };
            let part = slice_part(extent, start, end, step).ok_or_else(fault)?;
            (slice.starts[axis], slice.sizes[axis], slice.steps[axis]) = part;
            result.push(part.1);
        }
        axis += 1;
    }
    result.extend(&shape[axis..]);
    let y = call.builder.apply(slice, &[x])?;
    Ok(call.builder.reshape(y, &result)?)
}
