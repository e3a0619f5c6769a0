//! Reordering of elements, and making of tensors.

use super::call::{Arguments, Call, Table, axis_of};
use super::item::{Item, tuple};
use super::window::layout_permutation;
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, check_filled, extents};
use mlc_ir::ops::PadMode;
use mlc_ir::{DType, Literal, Value};

pub(super) const OPERATORS: Table = &[
    ("broadcast_to", One(broadcast_to)),
    ("concatenate", One(concatenate)),
    ("expand_dims", One(expand_dims)),
    ("full", One(full)),
    ("layout_transform", One(layout_transform)),
    ("nn.depth_to_space", One(|call| blocks(call, true))),
    ("nn.pad", One(pad)),
    ("nn.space_to_depth", One(|call| blocks(call, false))),
    ("ones", One(|call| filled(call, 1.0))),
    ("reshape", One(reshape)),
    ("split", Many(split)),
    ("squeeze", One(squeeze)),
    ("stack", One(stack)),
    ("tile", One(tile)),
    ("transpose", One(transpose)),
    ("zeros", One(|call| filled(call, 0.0))),
];

fn reshape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let wanted = if call.operands() > 1 { call.whole_numbers(1)? } else { call.required_ints("newshape")? };
    let zeros = call.flag_or("allowzero", false)?;
    let shape = new_shape(&call.shape(x), &wanted, zeros)?;
    Ok(call.builder.reshape(x, &shape)?)
}

/// 0 copies an extent, -1 is what remains, -2 copies all that follow, -3 joins two, -4 splits one into the next two numbers.
fn new_shape(shape: &[usize], wanted: &[i64], zeros: bool) -> Result<Vec<usize>, Fault> {
    let unfit = || Fault::parameter(format!("the new shape {wanted:?} doesn't fit {shape:?}"));
    let (mut source, mut result, mut open) = (0, Vec::new(), None);
    let mut numbers = wanted.iter();
    while let Some(&number) = numbers.next() {
        let extent = |source: usize| shape.get(source).copied().ok_or_else(unfit);
        match number {
            0 if !zeros => {
                result.push(extent(source)?);
                source += 1;
            }
            0.. => {
                result.push(usize::try_from(number).map_err(|_| unfit())?);
                source += 1;
            }
            -1 if open.is_none() => {
                open = Some(result.len());
                result.push(1);
                source += 1;
            }
            -2 => {
                result.extend_from_slice(shape.get(source..).unwrap_or_default());
                source = shape.len();
            }
            -3 => {
                result.push(extent(source)?.checked_mul(extent(source + 1)?).ok_or_else(unfit)?);
                source += 2;
            }
            -4 => {
                let whole = extent(source)?;
                let pair = [numbers.next(), numbers.next()].map(|part| part.copied().unwrap_or(-2));
                let (first, second) = match pair.map(|part| usize::try_from(part).ok()) {
                    [Some(first), Some(second)] => (first, second),
                    [Some(first), None] if pair[1] == -1 => (first, whole.checked_div(first).ok_or_else(unfit)?),
                    [None, Some(second)] if pair[0] == -1 => (whole.checked_div(second).ok_or_else(unfit)?, second),
                    _ => return Err(unfit()),
                };
                result.extend([first, second]);
                source += 1;
            }
            _ => return Err(unfit()),
        }
    }
    let count = |shape: &[usize]| shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
    let elements = count(shape).ok_or_else(unfit)?;
    if let Some(open) = open {
        let known = count(&result).filter(|&known| known > 0 && elements.is_multiple_of(known)).ok_or_else(unfit)?;
        result[open] = elements / known;
    }
    Ok(result)
}

/// Without axes, they are turned round.
fn transpose(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let rank = call.builder.rank(x);
    let axes = match call.ints("axes")?.filter(|axes| !axes.is_empty()) {
        Some(axes) => axes.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<Vec<usize>, Fault>>()?,
        None => (0..rank).rev().collect(),
    };
    Ok(call.builder.transpose(x, &axes)?)
}

fn layout_transform(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (from, to) = (call.word_or("src_layout", "")?, call.word_or("dst_layout", "")?);
    let permutation = layout_permutation(from, to)?;
    Ok(call.builder.transpose(x, &permutation)?)
}

fn concatenate(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let parts = call.tuple(0)?;
    let axis = call.int_or("axis", 0)?;
    let Some(&first) = parts.first() else { return Err(Fault::operands("nothing is concatenated")) };
    let axis = call.axis(first, axis)?;
    Ok(call.builder.concat(&parts, axis)?)
}

fn stack(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let parts = call.tuple(0)?;
    let axis = call.int_or("axis", 0)?;
    let Some(&first) = parts.first() else { return Err(Fault::operands("nothing is stacked")) };
    let axis = axis_of(axis, call.builder.rank(first) + 1)?;
    Ok(call.builder.stack(&parts, axis)?)
}

/// Into so many equal parts, or at these places.
fn split(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let axis = call.int_or("axis", 0)?;
    let axis = call.axis(x, axis)?;
    let extent = call.shape(x)[axis];
    let whole = matches!(call.attribute("indices_or_sections"), Some(crate::syntax::AttributeValue::Integer(_)));
    let numbers = extents(&call.required_ints("indices_or_sections")?)?;
    let sizes: Vec<usize> = if whole {
        let parts = numbers[0];
        if parts == 0 || !extent.is_multiple_of(parts) {
            return Err(Fault::parameter(format!("{extent} elements don't split into {parts} equal parts")));
        }
        vec![extent / parts; parts]
    } else {
        let ends = numbers.iter().copied().chain([extent]);
        let starts = [0].into_iter().chain(numbers.iter().copied());
        let sizes: Option<Vec<usize>> = starts.zip(ends).map(|(start, end)| end.checked_sub(start)).collect();
        sizes.ok_or_else(|| Fault::parameter(format!("{extent} elements don't split at {numbers:?}")))?
    };
    tuple(call.builder.split(x, axis, &sizes)?)
}

fn expand_dims(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let mut x = call.input(0)?;
    let axis = call.int_or("axis", 0)?;
    let count = call.count_or("num_newaxis", 1)?;
    let axis = axis_of(axis, call.builder.rank(x) + 1)?;
    if count > MOST_NEW_AXES {
        return Err(Fault::parameter(format!("attribute `num_newaxis` is {count}, at most {MOST_NEW_AXES} expected")));
    }
    for _ in 0..count {
        x = call.builder.insert_axis(x, axis)?;
    }
    Ok(x)
}

/// Most axes that are added at once.
const MOST_NEW_AXES: usize = 16;

/// Without axes, all of extent 1 vanish.
fn squeeze(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let shape = call.shape(x);
    let axes = match call.ints("axis")? {
        Some(axes) => axes.iter().map(|&axis| axis_of(axis, shape.len())).collect::<Result<Vec<usize>, Fault>>()?,
        None => (0..shape.len()).filter(|&axis| shape[axis] == 1).collect(),
    };
    if let Some(axis) = axes.iter().find(|&&axis| shape[axis] != 1) {
        return Err(Fault::parameter(format!("axis {axis} of {} has another extent than 1", call.builder.ty(x))));
    }
    let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
    Ok(call.builder.reshape(x, &kept)?)
}

fn broadcast_to(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let shape = if call.operands() > 1 { call.whole_numbers(1)? } else { call.required_ints("shape")? };
    call.ignore(&["dtype"]);
    Ok(call.builder.broadcast(x, &extents(&shape)?)?)
}

fn tile(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let counts = extents(&call.required_ints("reps")?)?;
    Ok(call.builder.tile(x, &counts)?)
}

fn filled(call: &mut Call<'_, '_>, value: f64) -> Result<Value, Fault> {
    let shape = call.required_ints("shape")?;
    let dtype = call.dtype("dtype")?.unwrap_or(DType::F32);
    let number = call.builder.literal(Literal::of(dtype, value));
    spread(call, number, &shape)
}

fn full(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let value = call.input(0)?;
    let shape = call.required_ints("shape")?;
    let dtype = call.dtype("dtype")?.unwrap_or(call.builder.dtype(value));
    let value = call.builder.cast(value, dtype)?;
    spread(call, value, &shape)
}

fn spread(call: &mut Call<'_, '_>, value: Value, shape: &[i64]) -> Result<Value, Fault> {
    let shape = extents(shape)?;
    check_filled(&shape)?;
    Ok(call.builder.broadcast(value, &shape)?)
}

/// The value beyond the rim is operand 1, a constant.
fn pad(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let value = if call.operands() > 1 { call.numbers(1)?.first().copied().unwrap_or(0.0) } else { 0.0 };
    let mode = match call.word_or("pad_mode", "constant")? {
        "constant" => PadMode::Constant,
        "edge" => PadMode::Replicate,
        "reflect" => PadMode::Reflect,
        other => return Err(Fault::variant(format!("attribute `pad_mode` is {other:?}, which isn't known"))),
    };
    let pads = call.pairs("pad_width")?;
    Ok(call.builder.pad(x, &pads, mode, value)?)
}

/// Moves blocks of positions to channels, or back.
fn blocks(call: &mut Call<'_, '_>, to_space: bool) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let size = call.count_or("block_size", 1)?;
    let layout = call.word_or("layout", "NCHW")?;
    let column_first = match call.word_or("mode", "DCR")? {
        "DCR" => false,
        "CRD" => true,
        other => return Err(Fault::variant(format!("attribute `mode` is {other:?}, which isn't known"))),
    };
    let (to, back) = (layout_permutation(layout, "NCHW")?, layout_permutation("NCHW", layout)?);
    let x = call.builder.transpose(x, &to)?;
    let shape = call.shape(x);
    let unfit = || Fault::parameter(format!("blocks of {size} don't fit {shape:?}"));
    let &[n, c, h, w] = &shape[..] else { return Err(unfit()) };
    let square = size.checked_mul(size).filter(|&square| square > 0).ok_or_else(unfit)?;
    let y = if to_space {
        if !c.is_multiple_of(square) {
            return Err(unfit());
        }
        let (split, order) = match column_first {
            true => ([n, c / square, size, size, h, w], [0, 1, 4, 2, 5, 3]),
            false => ([n, size, size, c / square, h, w], [0, 3, 4, 1, 5, 2]),
        };
        let split = call.builder.reshape(x, &split)?;
        let moved = call.builder.transpose(split, &order)?;
        call.builder.reshape(moved, &[n, c / square, h * size, w * size])?
    } else {
        if !h.is_multiple_of(size) || !w.is_multiple_of(size) {
            return Err(unfit());
        }
        let split = call.builder.reshape(x, &[n, c, h / size, size, w / size, size])?;
        let moved = call.builder.transpose(split, &[0, 3, 5, 1, 2, 4])?;
        call.builder.reshape(moved, &[n, c * square, h / size, w / size])?
    };
    Ok(call.builder.transpose(y, &back)?)
}
