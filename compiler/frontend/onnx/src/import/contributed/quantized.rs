//! Products by weights of a few bits.

use crate::import::call::Call;
use mlc_import::Fault;
use mlc_ir::ops::Matmul;
use mlc_ir::{Attribute, Tensor, TensorType, Value};

/// A count that an attribute gives.
fn count(call: &mut Call<'_, '_>, key: &'static str) -> Result<usize, Fault> {
    let value = call.int(key)?;
    let value = call.required(key, value)?;
    let count = usize::try_from(value).ok().filter(|&count| count > 0);
    count.ok_or_else(|| Fault::parameter(format!("attribute `{key}` must be positive")))
}

/// A constant operand, which must have so many elements.
fn weights(call: &mut Call<'_, '_>, index: usize, what: &str, elements: usize) -> Result<Option<Attribute>, Fault> {
    let Some(attribute) = call.constant(index, what)? else { return Ok(None) };
    if attribute.ty().elements() != elements {
        let ty = attribute.ty();
        return Err(Fault::operands(format!("{what} {ty} must have {elements} elements")));
    }
    Ok(Some(attribute))
}

/// Small numbers packed into bytes, the first in the lowest bits.
fn unpacked(bytes: &[u8], index: usize, bits: usize) -> u8 {
    let per_byte = 8 / bits;
    let byte = bytes[index / per_byte];
    if bits == 8 { byte } else { (byte >> (bits * (index % per_byte))) & ((1 << bits) - 1) }
}

/// The zero point of each block, as [rows, blocks].
fn zero_points(call: &mut Call<'_, '_>, rows: usize, blocks: usize, bits: usize) -> Result<Vec<f64>, Fault> {
    let packed_row = (blocks * bits).div_ceil(8);
    let Some(attribute) = call.constant(3, "zero points")? else {
        return Ok(vec![f64::from(1u32 << (bits - 1)); rows * blocks]);
    };
    let elements = attribute.ty().elements();
    if attribute.ty().dtype.is_float() && elements == rows * blocks {
        return Ok(attribute.to_tensor().to_floats());
    }
    if attribute.ty().dtype.size() != 1 || elements != rows * packed_row {
        return Err(Fault::operands(format!("the zero points {} don't fit", attribute.ty())));
    }
    let bytes = attribute.bytes();
    let points = (0..rows).flat_map(|row| {
        let row = &bytes[row * packed_row..][..packed_row];
        (0..blocks).map(move |block| f64::from(unpacked(row, block, bits)))
    });
    Ok(points.collect())
}

/// x times the transpose of weights [N, K] that are stored as numbers of 2, 4 or 8 bits with a factor per block.
pub(super) fn matmul(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    // They say how exactly to compute at least, and for whom the weights are stored.
    call.ignore(&["accuracy_level"]);
    let x = call.input(0)?;
    let (rows, columns, block) = (count(call, "N")?, count(call, "K")?, count(call, "block_size")?);
    let bits = match call.int_or("bits", 4)? {
        2 => 2,
        4 => 4,
        8 => 8,
        other => return Err(Fault::variant(format!("weights of {other} bits aren't supported"))),
    };
    if call.flag_or("weight_prepacked", false)? {
        return Err(Fault::variant("the weights are packed for a device"));
    }
    if call.optional(4)?.is_some() {
        return Err(Fault::variant("an order of the groups (g_idx) isn't supported"));
    }
    let blocks = columns.div_ceil(block);
    let oversized = || Fault::parameter(format!("{rows} x {columns} weights in blocks of {block} are too many"));
    let packed = block.checked_mul(bits).filter(|bits| bits.is_multiple_of(8)).ok_or_else(oversized)? / 8;
    let elements = rows.checked_mul(blocks).and_then(|count| count.checked_mul(packed)).ok_or_else(oversized)?;
    let stored = weights(call, 1, "the weights", elements)?.ok_or_else(|| Fault::operands("no weights are given"))?;
    if stored.ty().dtype.size() != 1 {
        return Err(Fault::operands(format!("the weights {} must be bytes", stored.ty())));
    }
    let scales =
        weights(call, 2, "the scales", rows * blocks)?.ok_or_else(|| Fault::operands("no scales are given"))?;
    let scales = scales.to_tensor().to_floats();
    let zero_points = zero_points(call, rows, blocks, bits)?;
    let bytes = stored.bytes();
    let mut values = Vec::with_capacity(rows * columns);
    for row in 0..rows {
        let start = row * blocks;
        for column in 0..columns {
            let place = start + column / block;
            let number = unpacked(&bytes[place * packed..][..packed], column % block, bits);
            values.push((f64::from(number) - zero_points[place]) * scales[place]);
        }
    }
    let dtype = call.dtype_of(x);
    let tensor = Tensor::from_floats(TensorType::new(dtype, [rows, columns]), values);
    let weights = call.builder.constant("weights", Attribute::from_tensor(&tensor));
    let product =
        call.builder.apply(Matmul { transpose_left: false, transpose_right: true, sums: None }, &[x, weights])?;
    let bias = call.optional(5)?;
    Ok(call.builder.add_optional(product, bias)?)
}
