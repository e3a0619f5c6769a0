//! Joining tensors, and cutting them into pieces; sequences of such pieces.

use super::call::{Call, Item, Table};
use super::structure::sequence;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::normalized_axis;
use mlc_ir::Value;

pub(super) const OPERATORS: Table = &[
    ("Concat", 1, One(concat)),
    ("ConcatFromSequence", 11, One(concat_from_sequence)),
    ("Split", 1, Many(split)),
    ("SplitToSequence", 11, Many(split_to_sequence)),
];

/// Most pieces that a tensor may be cut into.
const MOST_PIECES: usize = 1 << 16;

fn concat(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let parts = call.all_inputs()?;
    let &[first, ..] = &parts[..] else {
        return Err(Fault::new(mlc_ir::Code::OperandCount, "there is nothing to join"));
    };
    let axis = call.int("axis")?;
    let axis = if call.version() < 4 { axis.unwrap_or(1) } else { call.required("axis", axis)? };
    let axis = call.axis(first, axis)?;
    Ok(call.builder.concat(&parts, axis)?)
}

fn concat_from_sequence(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let parts = sequence(call, 0)?;
    let axis = call.int("axis")?;
    let axis = call.required("axis", axis)?;
    let new_axis = call.flag_or("new_axis", false)?;
    let &[first, ..] = &parts[..] else { return Err(Fault::operands("the sequence is empty")) };
    let rank = call.rank(first) + usize::from(new_axis);
    let axis =
        normalized_axis(axis, rank).ok_or_else(|| Fault::parameter(format!("there is no axis {axis} among {rank}")))?;
    Ok(if new_axis { call.builder.stack(&parts, axis)? } else { call.builder.concat(&parts, axis)? })
}

/// Sizes that a list of whole numbers gives; they must sum up to the extent.
fn checked_sizes(list: &[i64], extent: usize) -> Result<Vec<usize>, Fault> {
    let sizes: Option<Vec<usize>> = list.iter().map(|&size| usize::try_from(size).ok()).collect();
    let total = |sizes: &Vec<usize>| sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
    sizes
        .filter(|sizes| total(sizes) == Some(extent))
        .ok_or_else(|| Fault::parameter(format!("pieces of {list:?} don't make up an extent of {extent}")))
}

/// Pieces of equal size, of which the last may be smaller.
fn equal_sizes(extent: usize, count: usize) -> Result<Vec<usize>, Fault> {
    let fault = || Fault::parameter(format!("an extent of {extent} can't be cut into {count} pieces"));
    let size = if count == 0 { None } else { Some(extent.div_ceil(count)) }.ok_or_else(fault)?;
    let last = extent.checked_sub(size * (count - 1)).ok_or_else(fault)?;
    let mut sizes = vec![size; count];
    sizes[count - 1] = last;
    Ok(sizes)
}

fn split(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let axis = call.axis_or(x, "axis", 0)?;
    let extent = call.shape(x)[axis];
    // Version 1 has both an attribute and an operand.
    let list = match call.ints_or_input("split", 1, 13)? {
        None if call.version() < 2 => call.constant_ints(1, "split")?,
        list => list,
    };
    let count = if call.version() >= 18 { call.int("num_outputs")? } else { None };
    let sizes = match (list, count) {
        (Some(list), None) => checked_sizes(&list, extent)?,
        (None, Some(count)) if count == call.results() as i64 => equal_sizes(extent, call.results())?,
        (None, None) => equal_sizes(extent, call.results())?,
        (Some(_), Some(_)) => return Err(Fault::parameter("both the sizes and the number of the pieces are given")),
        (None, Some(count)) => {
            let message = format!("{count} pieces are asked for, but {} are named", call.results());
            return Err(Fault::new(mlc_ir::Code::OperandCount, message));
        }
    };
    Ok(call.builder.split(x, axis, &sizes)?.into_iter().map(Item::Tensor).collect())
}

/// Pieces of given sizes, of one size (the last may be smaller), or single elements, whose axis may vanish.
fn split_to_sequence(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let axis = call.axis_or(x, "axis", 0)?;
    let keep_axis = call.flag_or("keepdims", true)?;
    let extent = call.shape(x)[axis];
    let list = call.constant_ints(1, "split")?;
    let scalar = call.optional(1)?.is_some_and(|split| call.rank(split) == 0);
    let sizes = match list.as_deref() {
        None => pieces_of(1, extent)?,
        Some(&[size]) if scalar => {
            let size = usize::try_from(size).ok().filter(|&size| size > 0);
            pieces_of(size.ok_or_else(|| Fault::parameter("the size of the pieces must be positive"))?, extent)?
        }
        Some(list) => checked_sizes(list, extent)?,
    };
    let mut pieces = call.builder.split(x, axis, &sizes)?;
    if list.is_none() && !keep_axis {
        pieces = pieces.into_iter().map(|piece| call.builder.remove_axis(piece, axis)).collect::<Result<_, _>>()?;
    }
    Ok(vec![Item::Sequence(pieces)])
}

fn pieces_of(size: usize, extent: usize) -> Result<Vec<usize>, Fault> {
    let count = extent.div_ceil(size);
    if count > MOST_PIECES {
        return Err(Fault::variant(format!("cutting an extent of {extent} into {count} pieces isn't supported")));
    }
    Ok((0..count).map(|piece| size.min(extent - piece * size)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_piece_is_smaller() {
        assert_eq!(equal_sizes(7, 3).unwrap(), [3, 3, 1]);
        assert_eq!(equal_sizes(6, 3).unwrap(), [2, 2, 2]);
        assert_eq!(equal_sizes(0, 2).unwrap(), [0, 0]);
        assert!(equal_sizes(5, 4).is_err());
        assert!(equal_sizes(5, 0).is_err());
        assert_eq!(pieces_of(3, 7).unwrap(), [3, 3, 1]);
    }
}
