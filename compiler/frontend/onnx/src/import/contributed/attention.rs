//! Attention layers with their projections, caches and masks.

use crate::import::attention::{default_scale, scores};
use crate::import::call::Call;
use crate::import::call::Item;
use mlc_import::Fault;
use mlc_import::builder::{Band, Offset};
use mlc_ir::ops::Matmul;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

/// Query, key and value as [batch, heads, length, features].
struct Heads {
    query: Value,
    key: Value,
    value: Value,
    /// Steps of keys and values before those of this call.
    past: usize,
}

fn head_count(call: &mut Call<'_, '_>) -> Result<usize, Fault> {
    let heads = call.int("num_heads")?;
    let heads = call.required("num_heads", heads)?;
    let heads = usize::try_from(heads).ok().filter(|&heads| heads > 0);
    heads.ok_or_else(|| Fault::parameter("`num_heads` must be positive"))
}

/// A mask by the lengths [batch] of the keys, or of numbers [batch, keys] or [batch, queries, keys] that are 0 where nothing
/// is seen; as numbers to add.
fn mask_of(call: &mut Call<'_, '_>, mask: Value, scores: Value) -> Result<Value, Fault> {
    let (shape, dtype) = (call.shape(scores), call.dtype_of(scores));
    let (batch, queries, keys) = (shape[0], shape[2], shape[3]);
    let filter = call.float_or("mask_filter_value", -10000.0)?;
    let found = call.shape(mask);
    let seen = match found[..] {
        [lengths] if lengths == batch => {
            let lengths = call.builder.cast(mask, DType::I64)?;
            let lengths = call.builder.reshape(lengths, &[batch, 1, 1, 1])?;
            call.builder.padding(lengths, keys)?
        }
        _ => {
            let extents = match found[..] {
                [rows, columns] if (rows, columns) == (batch, keys) => [batch, 1, 1, keys],
                [rows, lines, columns] if (rows, lines, columns) == (batch, queries, keys) => [batch, 1, queries, keys],
                _ => {
                    let ty = call.builder.ty(mask);
                    return Err(Fault::variant(format!(
                        "the mask {ty} isn't supported for {}",
                        call.builder.ty(scores)
                    )));
                }
            };
            let mask = call.builder.reshape(mask, &extents)?;
            if call.dtype_of(mask) == DType::Bool {
                mask
            } else {
                call.builder.binary_number(B::NotEqual, mask, 0.0)?
            }
        }
    };
    Ok(call.builder.additive_mask(seen, dtype, filter)?)
}

/// The result [batch, queries, heads * features].
fn attend(call: &mut Call<'_, '_>, heads: &Heads, mask: Option<Value>, bias: Option<Value>) -> Result<Value, Fault> {
    let scale = match call.float_or("scale", 0.0)? {
        0.0 => default_scale(call.builder, heads.query),
        scale => scale,
    };
    let mut scores = scores(call.builder, heads.query, heads.key, scale)?;
    let shape = call.shape(scores);
    if let Some(mask) = mask {
        let mask = mask_of(call, mask, scores)?;
        scores = call.builder.binary(B::Add, scores, mask)?;
    } else {
        call.ignore(&["mask_filter_value"]);
    }
    scores = call.builder.add_optional(scores, bias)?;
    if call.flag_or("unidirectional", false)? {
        let dtype = call.dtype_of(scores);
        let band = Band { before: None, behind: Some(0) };
        let hidden = call.builder.band_mask(band, (shape[2], shape[3]), Offset::Fixed(heads.past), dtype)?;
        scores = call.builder.binary(B::Add, scores, hidden)?;
    }
    if call.shape(scores) != shape {
        return Err(Fault::operands("masks and biases don't fit the scores"));
    }
    let weights = call.builder.softmax_of_last(scores)?;
    let result = call.builder.grouped_matmul(weights, heads.value, false)?;
    Ok(call.builder.merge_heads(result)?)
}

/// Widths of query, key and value in joint weights of so many columns.
fn widths(call: &mut Call<'_, '_>, columns: usize) -> Result<[usize; 3], Fault> {
    let given = call.ints("qkv_hidden_sizes")?.filter(|sizes| !sizes.is_empty());
    let widths = match given {
        None if columns.is_multiple_of(3) => [columns / 3; 3],
        None => return Err(Fault::operands(format!("{columns} columns don't split into query, key and value"))),
        Some(sizes) => {
            let sizes: Option<Vec<usize>> = sizes.iter().map(|&size| usize::try_from(size).ok()).collect();
            let sizes: Option<[usize; 3]> = sizes.and_then(|sizes| sizes.try_into().ok());
            sizes.ok_or_else(|| Fault::parameter("`qkv_hidden_sizes` must be three sizes"))?
        }
    };
    if widths.iter().try_fold(0usize, |sum, &width| sum.checked_add(width)) != Some(columns) {
        return Err(Fault::parameter(format!("{widths:?} don't split {columns} columns")));
    }
    Ok(widths)
}

/// Attention to the operand itself, projected by joint weights [features, query + key + value].
pub(in super::super) fn attention(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let (x, weights, bias) = (call.input(0)?, call.input(1)?, call.optional(2)?);
    let (mask, past, scores_bias) = (call.optional(3)?, call.optional(4)?, call.optional(5)?);
    if call.flag_or("do_rotary", false)? || call.flag_or("past_present_share_buffer", false)? {
        return Err(Fault::variant("rotation and shared caches inside of the operator aren't supported"));
    }
    call.ignore(&["rotary_embedding_dim"]);
    let count = head_count(call)?;
    let projected =
        call.builder.apply(Matmul { transpose_left: false, transpose_right: false, sums: None }, &[x, weights])?;
    let projected = call.builder.add_optional(projected, bias)?;
    let axis = call.axis(projected, -1)?;
    let columns = call.shape(projected)[axis];
    let widths = widths(call, columns)?;
    let parts = call.builder.split(projected, axis, &widths)?;
    let mut split = Vec::with_capacity(3);
    for part in parts {
        split.push(call.builder.split_heads(part, count)?);
    }
    let [query, mut key, mut value] = split[..] else { return Err(Fault::operands("no query, key and value")) };
    let mut steps = 0;
    if let Some(past) = past {
        let (keys, values) = (call.builder.pick(past, 0, 0)?, call.builder.pick(past, 0, 1)?);
        steps = call.shape(keys).get(2).copied().unwrap_or(0);
        (key, value) = (call.builder.concat(&[keys, key], 2)?, call.builder.concat(&[values, value], 2)?);
    }
    let heads = Heads { query, key, value, past: steps };
    let result = attend(call, &heads, mask, scores_bias)?;
    let mut results = vec![Item::Tensor(result)];
    if call.wants(1) {
        results.push(Item::Tensor(call.builder.stack(&[key, value], 0)?));
    }
    Ok(results)
}

/// Attention of projected queries to projected keys and values.
pub(in super::super) fn multi_head(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let count = head_count(call)?;
    let query = call.input(0)?;
    let (Some(key), Some(value)) = (call.optional(1)?, call.optional(2)?) else {
        return Err(Fault::variant("packed queries, keys and values aren't supported"));
    };
    let (bias, mask, scores_bias) = (call.optional(3)?, call.optional(4)?, call.optional(5)?);
    let (past_key, past_value) = (call.optional(6)?, call.optional(7)?);
    if call.wants(3) {
        return Err(Fault::variant("the scores aren't supported as a result"));
    }
    let mut operands = [query, key, value];
    if let Some(bias) = bias {
        let sizes = operands.map(|operand| call.shape(operand).last().copied().unwrap_or(0));
        let parts = call.builder.split(bias, 0, &sizes)?;
        for (operand, part) in operands.iter_mut().zip(parts) {
            *operand = call.builder.binary(B::Add, *operand, part)?;
        }
    }
    let mut split = Vec::with_capacity(3);
    for operand in operands {
        // Keys and values that were projected for another call come split.
        let whole = call.rank(operand) == 3;
        split.push(if whole { call.builder.split_heads(operand, count)? } else { operand });
    }
    let [query, mut key, mut value] = split[..] else { return Err(Fault::operands("no query, key and value")) };
    if [query, key, value].iter().any(|&operand| call.rank(operand) != 4 || call.shape(operand)[1] != count) {
        return Err(Fault::variant(format!("only separate queries, keys and values of {count} heads are supported")));
    }
    let mut past = 0;
    match (past_key, past_value) {
        (None, None) => {}
        (Some(keys), Some(values)) => {
            past = call.shape(keys).get(2).copied().unwrap_or(0);
            (key, value) = (call.builder.concat(&[keys, key], 2)?, call.builder.concat(&[values, value], 2)?);
        }
        _ => return Err(Fault::operands("past_key and past_value must come together")),
    }
    let heads = Heads { query, key, value, past };
    let result = attend(call, &heads, mask, scores_bias)?;
    Ok([result, key, value].map(Item::Tensor).to_vec())
}
