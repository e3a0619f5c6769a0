//! Slices, and padding.

use super::call::{Call, Table, TensorAttributes};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::PadMode;
use mlc_ir::{Attribute, Code, Value};

pub(super) const OPERATORS: Table = &[("Pad", 1, One(pad)), ("Slice", 1, One(slice))];

/// The range of each axis: attributes before version 10, operands since, which also have steps.
fn slice(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let starts = call.ints_or_input("starts", 1, 10)?;
    let ends = call.ints_or_input("ends", 2, 10)?;
    let axes = call.ints_or_input("axes", 3, 10)?;
    let steps = if call.version() >= 10 { call.constant_ints(4, "steps")? } else { None };
    let (starts, ends) = (call.required("starts", starts)?, call.required("ends", ends)?);
    let axes = axes.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = steps.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
        let message = format!("{} starts, {} ends, {} axes", starts.len(), ends.len(), axes.len());
        return Err(Fault::parameter(format!("{message} and {} steps don't fit together", steps.len())));
    }
    let slice = call.slice_of_axes(x, &axes, (&starts, &ends, &steps))?;
    let slice = slice.ok_or_else(|| Fault::parameter("a step of a slice must not be 0"))?;
    let shape = call.shape(x);
    let mut changed = (0..shape.len()).filter(|&axis| slice.sizes[axis] != shape[axis] || slice.steps[axis] != 1);
    match (changed.next(), changed.next()) {
        (None, _) => Ok(x),
        // One axis of a constant of any size is cut at once.
        (Some(axis), None) => {
            Ok(call.builder.slice_axis(x, axis, slice.starts[axis], slice.sizes[axis], slice.steps[axis])?)
        }
        _ => Ok(call.builder.apply(slice, &[x])?),
    }
}

/// Elements before and after each axis: all those before come first in the list.
fn pads(call: &mut Call<'_, '_>, x: Value) -> Result<Vec<(i64, i64)>, Fault> {
    let key = if call.version() < 2 { "paddings" } else { "pads" };
    let list = call.ints_or_input(key, 1, 11)?;
    let list = call.required(key, list)?;
    let rank = call.rank(x);
    let axes = if call.version() >= 18 { call.constant_ints(3, "axes")? } else { None };
    let axes = axes.unwrap_or_else(|| (0..rank as i64).collect());
    if list.len() != 2 * axes.len() || list.iter().any(|pad| pad.unsigned_abs() > 1 << 31) {
        let ty = call.builder.ty(x);
        return Err(Fault::parameter(format!("the pads {list:?} don't fit {} axes of {ty}", axes.len())));
    }
    call.axes(x, &axes)?;
    let mut pads = vec![(0, 0); rank];
    for (index, &axis) in axes.iter().enumerate() {
        pads[call.axis(x, axis)?] = (list[index], list[index + axes.len()]);
    }
    Ok(pads)
}

fn pad(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let pads = pads(call, x)?;
    let mode = call.word("mode")?.unwrap_or("constant");
    if mode == "constant" {
        return pad_by_constant(call, x, &pads);
    }
    call.optional(2)?;
    call.ignore(&["value"]);
    let mode = match mode {
        "edge" => PadMode::Replicate,
        "reflect" => PadMode::Reflect,
        "wrap" if call.version() >= 19 => PadMode::Circular,
        other => return Err(Fault::parameter(format!("there is no mode {other}"))),
    };
    let mut y = x;
    for (axis, &(before, after)) in pads.iter().enumerate() {
        let mut own = vec![(0, 0); pads.len()];
        own[axis] = (before, after);
        let extent = call.shape(y)[axis] as i64;
        let extent = extent + before.min(0) + after.min(0);
        let reach = if mode == PadMode::Reflect { extent - 1 } else { extent };
        y = if mode != PadMode::Replicate && before.max(after) > reach {
            pad_by_indices(call, y, axis, own[axis], mode)?
        } else {
            call.builder.pad(y, &own, mode, 0.0)?
        };
    }
    Ok(y)
}

/// Most indices of padding that goes around a tensor several times.
const MOST_INDICES: i64 = 1 << 24;

/// Pads an axis beyond what one reflection, or one copy, of the tensor gives.
fn pad_by_indices(
    call: &mut Call<'_, '_>,
    x: Value,
    axis: usize,
    (before, after): (i64, i64),
    mode: PadMode,
) -> Result<Value, Fault> {
    let mut cut = vec![(0, 0); call.rank(x)];
    cut[axis] = (before.min(0), after.min(0));
    let x = call.builder.pad(x, &cut, PadMode::Constant, 0.0)?;
    let extent = call.shape(x)[axis] as i64;
    let (before, after) = (before.max(0), after.max(0));
    if extent == 0 || before + after + extent > MOST_INDICES {
        let ty = call.builder.ty(x);
        return Err(Fault::parameter(format!("axis {axis} of {ty} can't be padded by ({before}, {after})")));
    }
    let period = if mode == PadMode::Reflect { (2 * (extent - 1)).max(1) } else { extent };
    let place = |index: i64| {
        let place = (index - before).rem_euclid(period);
        if place < extent { place } else { period - place }
    };
    let indices: Vec<i64> = (0..before + extent + after).map(place).collect();
    let indices = call.constant_of_ints(&[indices.len()], &indices)?;
    Ok(call.builder.gather(x, indices, axis)?)
}

fn pad_by_constant(call: &mut Call<'_, '_>, x: Value, pads: &[(i64, i64)]) -> Result<Value, Fault> {
    let number = if call.version() < 11 {
        Some(call.float_or("value", 0.0)?)
    } else {
        match call.optional(2)? {
            None => Some(0.0),
            Some(value) => {
                let known = call.builder.graph().constant(value).and_then(Attribute::splat);
                // Whole numbers that a double can't hold go the other way.
                known.map(|value| value.to_f64()).filter(|value| value.abs() < 9e15 || value.is_infinite())
            }
        }
    };
    match number {
        Some(number) => Ok(call.builder.pad(x, pads, PadMode::Constant, number)?),
        None => pad_by_value(call, x, pads),
    }
}

/// Pads by a number that is known while the model runs only: joins the tensor with copies of it.
fn pad_by_value(call: &mut Call<'_, '_>, x: Value, pads: &[(i64, i64)]) -> Result<Value, Fault> {
    let value = call.input(2)?;
    if call.builder.ty(value).elements() != 1 {
        let ty = call.builder.ty(value);
        return Err(Fault::new(Code::OperandTypes, format!("the value must be one number, found {ty}")));
    }
    let value = call.builder.reshape(value, &[])?;
    let cut: Vec<(i64, i64)> = pads.iter().map(|&(before, after)| (before.min(0), after.min(0))).collect();
    let mut y = call.builder.pad(x, &cut, PadMode::Constant, 0.0)?;
    for (axis, &(before, after)) in pads.iter().enumerate() {
        let mut shape = call.shape(y);
        let mut copies = |call: &mut Call<'_, '_>, count: i64| -> Result<Option<Value>, Fault> {
            shape[axis] = count.max(0) as usize;
            if count <= 0 { Ok(None) } else { Ok(Some(call.builder.broadcast(value, &shape)?)) }
        };
        let (first, last) = (copies(call, before)?, copies(call, after)?);
        let parts: Vec<Value> = first.into_iter().chain([y]).chain(last).collect();
        y = call.builder.concat(&parts, axis)?;
    }
    Ok(y)
}
