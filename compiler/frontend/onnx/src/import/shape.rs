//! Shapes: the same elements under another shape or in another order, repetition, tensors made from a shape.

use super::call::{Call, Table, TensorAttributes};
use mlc_import::Handler::One;
use mlc_import::{Fault, check_filled, normalized_axis};
use mlc_ir::{Attribute, Code, DType, Shape, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("ConstantOfShape", 9, One(constant_of_shape)),
    ("DepthToSpace", 1, One(depth_to_space)),
    ("Expand", 8, One(expand)),
    ("Flatten", 1, One(flatten)),
    ("Range", 11, One(range)),
    ("Reshape", 1, One(reshape)),
    ("SpaceToDepth", 1, One(space_to_depth)),
    ("Squeeze", 1, One(squeeze)),
    ("Tile", 1, One(tile)),
    ("Transpose", 1, One(transpose)),
    ("Unsqueeze", 1, One(unsqueeze)),
];

/// Extents that a list of whole numbers gives.
pub(super) fn extents(numbers: &[i64]) -> Result<Shape, Fault> {
    let extents: Option<Shape> = numbers.iter().map(|&number| usize::try_from(number).ok()).collect();
    extents.ok_or_else(|| Fault::new(Code::NumberOutOfRange, format!("{numbers:?} isn't a shape")))
}

/// The extents that a list means: 0 copies an extent of the input unless `zeros` are meant, -1 is what remains.
fn reshaped(list: &[i64], from: &[usize], zeros: bool) -> Option<Shape> {
    let mut shape = Shape::new();
    let mut open = None;
    for (axis, &extent) in list.iter().enumerate() {
        shape.push(match extent {
            -1 if open.is_none() => {
                open = Some(axis);
                1
            }
            0 if !zeros => *from.get(axis)?,
            _ => usize::try_from(extent).ok()?,
        });
    }
    let total: usize = from.iter().product();
    let product = |shape: &Shape| shape.iter().try_fold(1usize, |product, &extent| product.checked_mul(extent));
    if let Some(open) = open {
        shape[open] = total.checked_div(product(&shape)?)?;
    }
    (product(&shape)? == total).then_some(shape)
}

fn reshape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    call.ignore(&["consumed_inputs"]);
    let list = call.ints_or_input("shape", 1, 5)?;
    let list = call.required("shape", list)?;
    let zeros = call.version() >= 14 && call.flag_or("allowzero", false)?;
    let shape = reshaped(&list, &call.shape(x), zeros).ok_or_else(|| {
        let ty = call.builder.ty(x);
        Fault::new(Code::ShapeMismatch, format!("{ty} can't take the shape {list:?}"))
            .with_help("the file fixes extents of the shape that it was exported with; export it again for this one")
    })?;
    Ok(call.builder.reshape(x, &shape)?)
}

/// Two axes: the product of those before the given one, and the product of the others.
fn flatten(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let (shape, axis) = (call.shape(x), call.int_or("axis", 1)?);
    let axis = if axis == shape.len() as i64 { shape.len() } else { call.axis(x, axis)? };
    Ok(call.builder.reshape(x, &[shape[..axis].iter().product(), shape[axis..].iter().product()])?)
}

fn squeeze(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let shape = call.shape(x);
    let axes = match call.ints_or_input("axes", 1, 13)? {
        Some(axes) => call.axes(x, &axes)?,
        None => (0..shape.len()).filter(|&axis| shape[axis] == 1).collect(),
    };
    if let Some(axis) = axes.iter().find(|&&axis| shape[axis] != 1) {
        return Err(Fault::operands(format!("axis {axis} of {} can't be removed", call.builder.ty(x))));
    }
    let kept: Shape = (0..shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| shape[axis]).collect();
    Ok(call.builder.reshape(x, &kept)?)
}

/// The axes are those of the result.
fn unsqueeze(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axes = call.ints_or_input("axes", 1, 13)?;
    let axes = call.required("axes", axes)?;
    let mut shape = call.shape(x);
    let rank = shape.len() + axes.len();
    let places: Option<Vec<usize>> = axes.iter().map(|&axis| normalized_axis(axis, rank)).collect();
    let mut places =
        places.ok_or_else(|| Fault::parameter(format!("{} can't get the axes {axes:?}", call.builder.ty(x))))?;
    places.sort_unstable();
    if places.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Fault::parameter(format!("an axis is there twice: {axes:?}")));
    }
    for place in places {
        shape.insert(place, 1);
    }
    Ok(call.builder.reshape(x, &shape)?)
}

fn transpose(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let permutation: Vec<usize> = match call.ints("perm")? {
        Some(axes) => axes.iter().map(|&axis| call.axis(x, axis)).collect::<Result<_, _>>()?,
        None => (0..call.rank(x)).rev().collect(),
    };
    Ok(call.builder.transpose(x, &permutation)?)
}

/// Broadcasts to a shape, or to what the shape and the tensor broadcast to.
fn expand(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let list = call.constant_ints(1, "the shape")?;
    let list = call.required("shape", list)?;
    let mut shape = extents(&list)?;
    let own = call.shape(x);
    while shape.len() < own.len() {
        shape.insert(0, 1);
    }
    let offset = shape.len() - own.len();
    for (axis, &extent) in own.iter().enumerate() {
        if shape[offset + axis] == 1 {
            shape[offset + axis] = extent;
        }
    }
    check_filled(&shape)?;
    Ok(call.builder.broadcast(x, &shape)?)
}

/// Version 1 repeats one axis, later ones have a count for each.
fn tile(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let counts = if call.version() < 6 {
        let number = |call: &mut Call<'_, '_>, index: usize, what: &str| -> Result<i64, Fault> {
            match call.constant_floats(index, what)?.as_deref() {
                Some([number]) if number.fract() == 0.0 => Ok(*number as i64),
                _ => Err(Fault::operands(format!("{what} must be one whole number"))),
            }
        };
        let (count, axis) = (number(call, 1, "tiles")?, number(call, 2, "axis")?);
        let axis = call.axis(x, axis)?;
        let mut counts = vec![1; call.rank(x)];
        counts[axis] = count;
        counts
    } else {
        let counts = call.constant_ints(1, "repeats")?;
        call.required("repeats", counts)?
    };
    let counts = extents(&counts)?;
    let shape = call.shape(x);
    if counts.len() != shape.len() {
        return Err(Fault::operands(format!("{} counts don't fit {}", counts.len(), call.builder.ty(x))));
    }
    let result: Shape = shape.iter().zip(&counts).map(|(&extent, &count)| extent.saturating_mul(count)).collect();
    check_filled(&result)?;
    Ok(call.builder.tile(x, &counts)?)
}

fn constant_of_shape(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let list = call.constant_ints(0, "the shape")?;
    let shape = extents(&call.required("shape", list)?)?;
    let value = match call.tensor("value")? {
        Some(value) if value.ty().elements() == 1 => value.reshape(&[])?,
        Some(value) => return Err(Fault::parameter(format!("the value must be one number, found {}", value.ty()))),
        None => Attribute::from_tensor(&Tensor::from_floats(TensorType::new(DType::F32, []), vec![0.0])),
    };
    check_filled(&shape)?;
    let value = call.builder.constant("value", value);
    Ok(call.builder.broadcast(value, &shape)?)
}

/// start, start + delta, … before limit.
fn range(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    // It says how to compute with halves; all is computed in double precision.
    call.ignore(&["stash_type"]);
    call.range()
}

/// Extents [N, C, H, W] of the operand, the side of a block, and whether channels come before blocks (mode CRD).
fn blocks(call: &mut Call<'_, '_>) -> Result<(Value, [usize; 4], usize, bool), Fault> {
    let x = call.input(0)?;
    let side = call.int("blocksize")?;
    let side = call.required("blocksize", side)?;
    let side = usize::try_from(side).ok().filter(|&side| (1..1 << 20).contains(&side));
    let side = side.ok_or_else(|| Fault::parameter("attribute `blocksize` must be positive"))?;
    let channels_first = match call.word("mode")? {
        None | Some("DCR") => false,
        Some("CRD") => true,
        Some(other) => return Err(Fault::parameter(format!("there is no mode {other}"))),
    };
    let shape = <[usize; 4]>::try_from(&call.shape(x)[..])
        .map_err(|_| Fault::operands(format!("the operand must have four axes, found {}", call.builder.ty(x))))?;
    Ok((x, shape, side, channels_first))
}

fn no_blocks(call: &Call<'_, '_>, x: Value, side: usize) -> Fault {
    Fault::operands(format!("{} has no whole blocks of side {side}", call.builder.ty(x)))
}

fn depth_to_space(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, [n, c, h, w], side, channels_first) = blocks(call)?;
    if !c.is_multiple_of(side * side) {
        return Err(no_blocks(call, x, side));
    }
    let depth = c / (side * side);
    let (split, permutation) = if channels_first {
        ([n, depth, side, side, h, w], [0, 1, 4, 2, 5, 3])
    } else {
        ([n, side, side, depth, h, w], [0, 3, 4, 1, 5, 2])
    };
    let x = call.builder.reshape(x, &split)?;
    let x = call.builder.transpose(x, &permutation)?;
    Ok(call.builder.reshape(x, &[n, depth, h * side, w * side])?)
}

fn space_to_depth(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, [n, c, h, w], side, channels_first) = blocks(call)?;
    if !h.is_multiple_of(side) || !w.is_multiple_of(side) {
        return Err(no_blocks(call, x, side));
    }
    let (rows, columns) = (h / side, w / side);
    let permutation = if channels_first { [0, 1, 3, 5, 2, 4] } else { [0, 3, 5, 1, 2, 4] };
    let x = call.builder.reshape(x, &[n, c, rows, side, columns, side])?;
    let x = call.builder.transpose(x, &permutation)?;
    Ok(call.builder.reshape(x, &[n, c * side * side, rows, columns])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reshaping_copies_zeros_and_fills_in_what_remains() {
        let of = |list: &[i64], zeros| reshaped(list, &[2, 3, 4], zeros).map(|shape| shape.to_vec());
        assert_eq!(of(&[0, -1], false), Some(vec![2, 12]));
        assert_eq!(of(&[4, 6], false), Some(vec![4, 6]));
        assert_eq!(of(&[-1, -1], false), None);
        assert_eq!(of(&[5, -1], false), None);
        assert_eq!(of(&[0, 12], true), None);
        assert_eq!(of(&[-2, 12], false), None);
        assert_eq!(of(&[i64::MAX, i64::MAX], false), None);
        assert_eq!(reshaped(&[0, 3], &[3, 0], true).unwrap()[..], [0, 3]);
        assert_eq!(reshaped(&[-1, 0], &[3, 0], false), None);
    }
}
