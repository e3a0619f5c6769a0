//! Operators that move elements.

use super::call::{Call, Table, Tensors};
use super::convolution::four_axes;
use mlc_import::Handler::{Many, One};
use mlc_import::{Fault, Operand, check_filled};
use mlc_ir::Value;
use mlc_ir::ops::PadMode;

pub(super) const OPERATORS: Table = &[
    ("BATCH_TO_SPACE_ND", One(batch_to_space)),
    ("CONCATENATION", One(concatenation)),
    // What is stored without zeros has them when it is read.
    ("DENSIFY", One(|call| call.input(0))),
    ("DEPTH_TO_SPACE", One(depth_to_space)),
    ("MIRROR_PAD", One(mirror_pad)),
    ("PACK", One(pack)),
    ("PAD", One(pad)),
    ("PADV2", One(pad)),
    ("SPACE_TO_BATCH_ND", One(space_to_batch)),
    ("SPACE_TO_DEPTH", One(space_to_depth)),
    ("TILE", One(tile)),
    ("TRANSPOSE", One(transpose)),
    ("UNPACK", Many(unpack)),
];

fn transpose(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let order = call.numbers(1, "the order")?;
    let order = order.into_iter().map(|axis| call.axis(x, axis)).collect::<Result<Vec<usize>, _>>()?;
    Ok(call.builder.transpose(x, &order)?)
}

fn concatenation(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let operands = call.all_inputs()?;
    let first = *operands.first().ok_or_else(|| Fault::operands("there is nothing to be joined"))?;
    let axis = call.int_or("axis", 0)?;
    let axis = call.axis(first, axis)?;
    let places: Vec<usize> = (0..operands.len()).collect();
    call.check_same_scale(&places)?;
    let y = call.builder.concat(&operands, axis)?;
    if call.is_quantized() { Ok(y) } else { call.activated(y) }
}

fn pack(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let operands = call.all_inputs()?;
    let first = *operands.first().ok_or_else(|| Fault::operands("there is nothing to be joined"))?;
    let axis = new_axis(call, first)?;
    Ok(call.builder.stack(&operands, axis)?)
}

/// The option `axis`, of a tensor with one axis more.
fn new_axis(call: &mut Call<'_, '_>, x: Value) -> Result<usize, Fault> {
    let axis = call.int_or("axis", 0)?;
    let rank = call.rank(x) as i64;
    let place = if axis < 0 { axis + rank + 1 } else { axis };
    let fits = (0..=rank).contains(&place);
    fits.then_some(place as usize)
        .ok_or_else(|| Fault::parameter(format!("{} can't get an axis {axis}", call.builder.ty(x))))
}

fn unpack(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let x = call.input(0)?;
    let axis = call.int_or("axis", 0)?;
    let axis = call.axis(x, axis)?;
    let count = call.shape(x)[axis];
    if count != call.results() {
        return Err(Fault::operands(format!("{count} results expected, the model has {}", call.results())));
    }
    (0..count).map(|index| Ok(Operand::Tensor(call.builder.pick(x, axis, index)?))).collect()
}

/// Pairs of numbers for each axis of a tensor.
fn pairs(call: &mut Call<'_, '_>, index: usize, what: &str, axes: usize) -> Result<Vec<(i64, i64)>, Fault> {
    let numbers = call.numbers(index, what)?;
    let is_small = |number: &i64| (0..1 << 31).contains(number);
    if numbers.len() != 2 * axes || !numbers.iter().all(is_small) {
        return Err(Fault::operands(format!("{what} is {numbers:?}, two numbers for each of {axes} axes expected")));
    }
    Ok(numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

/// Refuses results that a few numbers of the file would make large.
fn check_padded(call: &Call<'_, '_>, x: Value, pads: &[(i64, i64)]) -> Result<(), Fault> {
    let shape = call.shape(x);
    let padded =
        shape.iter().zip(pads).map(|(&extent, &(before, after))| extent.saturating_add((before + after) as usize));
    check_filled(&padded.collect::<Vec<usize>>())
}

/// What is added are elements that stand for zero, or those of the third operand.
fn pad(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let pads = pairs(call, 1, "the padding", call.rank(x))?;
    check_padded(call, x, &pads)?;
    call.check_same_scale(&[0])?;
    let value = match call.constant_float(2, "the padding's value")? {
        Some(value) => value,
        None if call.is_quantized() => call.result_affine(0)?.zero_point as f64,
        None => 0.0,
    };
    Ok(call.builder.pad(x, &pads, PadMode::Constant, value)?)
}

/// The mode says whether the element at the rim is repeated.
fn mirror_pad(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let pads = pairs(call, 1, "the padding", call.rank(x))?;
    check_padded(call, x, &pads)?;
    let repeats = call.int_or("mode", 0)? == 1;
    let mut y = x;
    for (axis, &(before, after)) in pads.iter().enumerate() {
        let extent = call.shape(x)[axis] as i64;
        let reach = if repeats { extent } else { extent - 1 };
        if before > reach || after > reach {
            return Err(Fault::operands(format!("the padding ({before}, {after}) is beyond axis {axis} of {extent}")));
        }
        if (before, after) == (0, 0) {
            continue;
        }
        let (first, last) = if repeats { (-1, 2 * extent - 1) } else { (0, 2 * extent - 2) };
        let place = |place: i64| match place {
            ..0 => first - place,
            place if place >= extent => last - place,
            place => place,
        };
        let places: Vec<i64> = (-before..extent + after).map(place).collect();
        let places = call.builder.indices(&[places.len()], &places)?;
        y = call.builder.gather(y, places, axis)?;
    }
    Ok(y)
}

fn tile(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let counts = mlc_import::extents(&call.numbers(1, "the counts")?)?;
    let shape = call.shape(x);
    let tiled = shape.iter().zip(&counts).map(|(&extent, &count)| extent.saturating_mul(count));
    check_filled(&tiled.collect::<Vec<usize>>())?;
    Ok(call.builder.tile(x, &counts)?)
}

/// The option `block_size`, which must divide each of some extents.
fn block(call: &mut Call<'_, '_>, extents: &[usize]) -> Result<usize, Fault> {
    let size = call.int_or("block_size", 0)?;
    let block = usize::try_from(size)
        .ok()
        .filter(|&block| block > 0 && extents.iter().all(|extent| extent.is_multiple_of(block)));
    block.ok_or_else(|| Fault::parameter(format!("the block size {size} doesn't divide {extents:?}")))
}

fn space_to_depth(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let [batch, height, width, channels] = four_axes(call, x)?;
    let block = block(call, &[height, width])?;
    let split = call.builder.reshape(x, &[batch, height / block, block, width / block, block, channels])?;
    let moved = call.builder.transpose(split, &[0, 1, 3, 2, 4, 5])?;
    Ok(call.builder.reshape(moved, &[batch, height / block, width / block, block * block * channels])?)
}

fn depth_to_space(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let [batch, height, width, channels] = four_axes(call, x)?;
    let block = block(call, &[channels])?;
    let block = block_of_square(block, channels)?;
    let depth = channels / (block * block);
    let split = call.builder.reshape(x, &[batch, height, width, block, block, depth])?;
    let moved = call.builder.transpose(split, &[0, 1, 3, 2, 4, 5])?;
    Ok(call.builder.reshape(moved, &[batch, height * block, width * block, depth])?)
}

fn block_of_square(block: usize, channels: usize) -> Result<usize, Fault> {
    let square = block.checked_mul(block).filter(|&square| channels.is_multiple_of(square));
    square
        .map(|_| block)
        .ok_or_else(|| Fault::parameter(format!("{channels} channels don't split into squares of {block}")))
}

/// Blocks of the spatial axes, which are behind the batch.
fn blocks(call: &mut Call<'_, '_>, x: Value) -> Result<Vec<usize>, Fault> {
    let blocks = mlc_import::extents(&call.numbers(1, "the blocks")?)?;
    if blocks.len() >= call.rank(x) || blocks.contains(&0) {
        return Err(Fault::operands(format!("the blocks {blocks:?} don't fit {}", call.builder.ty(x))));
    }
    Ok(blocks.to_vec())
}

fn space_to_batch(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let blocks = blocks(call, x)?;
    let spatial = blocks.len();
    let mut pads = vec![(0, 0)];
    pads.extend(pairs(call, 2, "the padding", spatial)?);
    pads.resize(call.rank(x), (0, 0));
    check_padded(call, x, &pads)?;
    let value = if call.is_quantized() { call.operand_affine(0)?.zero_point as f64 } else { 0.0 };
    let padded = call.builder.pad(x, &pads, PadMode::Constant, value)?;
    let shape = call.shape(padded);
    let fits = (0..spatial).all(|axis| shape[axis + 1].is_multiple_of(blocks[axis]));
    if !fits {
        return Err(Fault::operands(format!("the blocks {blocks:?} don't divide {}", call.builder.ty(padded))));
    }
    let (mut split, mut order, mut result) = (
        vec![shape[0]],
        Vec::new(),
        vec![blocks.iter().fold(shape[0], |product, &block| product.saturating_mul(block))],
    );
    for axis in 0..spatial {
        split.extend([shape[axis + 1] / blocks[axis], blocks[axis]]);
        order.push(2 * axis + 2);
        result.push(shape[axis + 1] / blocks[axis]);
    }
    split.extend(&shape[spatial + 1..]);
    result.extend(&shape[spatial + 1..]);
    order.push(0);
    order.extend((0..spatial).map(|axis| 2 * axis + 1));
    order.extend(2 * spatial + 1..split.len());
    let split = call.builder.reshape(padded, &split)?;
    let moved = call.builder.transpose(split, &order)?;
    Ok(call.builder.reshape(moved, &result)?)
}

fn batch_to_space(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let blocks = blocks(call, x)?;
    let (spatial, shape) = (blocks.len(), call.shape(x));
    let crops = pairs(call, 2, "what is cut off", spatial)?;
    let volume = blocks.iter().try_fold(1usize, |product, &block| product.checked_mul(block));
    let Some(batch) = volume.filter(|&volume| shape[0].is_multiple_of(volume)).map(|volume| shape[0] / volume) else {
        return Err(Fault::operands(format!("the blocks {blocks:?} don't divide {}", call.builder.ty(x))));
    };
    let mut split = blocks.clone();
    split.push(batch);
    split.extend(&shape[1..]);
    let (mut order, mut result) = (vec![spatial], vec![batch]);
    for axis in 0..spatial {
        order.extend([spatial + 1 + axis, axis]);
        result.push(shape[axis + 1].saturating_mul(blocks[axis]));
    }
    order.extend(2 * spatial + 1..split.len());
    result.extend(&shape[spatial + 1..]);
    let split = call.builder.reshape(x, &split)?;
    let moved = call.builder.transpose(split, &order)?;
    let whole = call.builder.reshape(moved, &result)?;
    let mut cut = vec![(0, 0)];
    cut.extend(crops.iter().map(|&(before, after)| (-before, -after)));
    cut.resize(result.len(), (0, 0));
    Ok(call.builder.pad(whole, &cut, PadMode::Constant, 0.0)?)
}
