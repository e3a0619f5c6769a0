//! Attention: projections, scores, softmax over the keys, weighted sum of the values.

use super::activation::random;
use super::call::{Call, Operands, Table};
use super::item::Item;
use super::linear::linear;
use super::promotion::promote;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::{Matmul, ReduceFunction};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table =
    &[("F.scaled_dot_product_attention", One(scaled_dot_product)), ("nn.MultiheadAttention", Many(multihead))];

/// softmax(query key^T * scale + mask) value; also gives the weights. Queries that the mask hides all keys from get zeros if
/// `vanishing`, else NaN.
fn attend(
    call: &mut Call<'_, '_>,
    query: Value,
    key: Value,
    value: Value,
    scale: f64,
    (mask, vanishing): (Option<Value>, bool),
) -> Result<(Value, Value), Fault> {
    let mut scores =
        call.builder.apply(Matmul { transpose_left: false, transpose_right: true, sums: None }, &[query, key])?;
    if scale != 1.0 {
        scores = call.builder.binary_number(BinaryFunction::Multiply, scores, scale)?;
    }
    if let Some(mask) = mask {
        let operands = promote(call.builder, &[&Item::Tensor(scores), &Item::Tensor(mask)])?;
        scores = call.builder.binary(BinaryFunction::Add, operands[0], operands[1])?;
    }
    let weights = match mask.filter(|_| vanishing) {
        Some(mask) => call.builder.masked_softmax(scores, mask)?,
        None => call.builder.softmax_of_last(scores)?,
    };
    let result =
        call.builder.apply(Matmul { transpose_left: false, transpose_right: false, sums: None }, &[weights, value])?;
    Ok((result, weights))
}

/// A bool mask as numbers to add: 0 where scores stay, minus infinity where they don't.
fn additive(call: &mut Call<'_, '_>, mask: Value, blocked_when: bool, dtype: DType) -> Result<Value, Fault> {
    if call.builder.dtype(mask) != DType::Bool {
        return Ok(mask);
    }
    let (stay, block) = (call.builder.number(dtype, 0.0), call.builder.number(dtype, f64::NEG_INFINITY));
    let (when_true, when_false) = if blocked_when { (block, stay) } else { (stay, block) };
    Ok(call.builder.select(mask, when_true, when_false)?)
}

/// A constant mask that lets position i see the positions up to i.
fn causal_mask(call: &mut Call<'_, '_>, rows: usize, columns: usize, dtype: DType) -> Value {
    let values =
        (0..rows).flat_map(|row| (0..columns).map(move |column| if column <= row { 0.0 } else { f64::NEG_INFINITY }));
    let tensor = Tensor::from_floats(TensorType::new(dtype, [rows, columns]), values.collect());
    call.builder.constant("causal_mask", Attribute::from_tensor(&tensor))
}

fn scaled_dot_product(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (query, mut key) = (call.labelled_input("query", 0)?, call.labelled_input("key", 1)?);
    let mut value = call.labelled_input("value", 2)?;
    let mask = call.optional_labelled_input("attn_mask", 3)?;
    call.ignore(&["attn_mask"]);
    // Unlike a module, the function drops weights whatever the mode of the model.
    if call.float_or("dropout_p", 0.0)? != 0.0 {
        return Err(random());
    }
    let (query_shape, dtype) = (call.shape(query), call.builder.dtype(query));
    let (Some(&width), true) = (query_shape.last(), query_shape.len() >= 2 && call.builder.rank(key) >= 2) else {
        return Err(Fault::operands("query and key must be matrices"));
    };
    let scale = call.float_or("scale", 1.0 / (width as f64).sqrt())?;
    if call.flag_or("enable_gqa", false)? {
        (key, value) = (repeat_heads(call, query, key)?, repeat_heads(call, query, value)?);
    }
    let mut mask = mask.map(|mask| additive(call, mask, false, dtype)).transpose()?;
    if call.flag_or("is_causal", false)? {
        let key_shape = call.shape(key);
        let (rows, columns) = (query_shape[query_shape.len() - 2], key_shape[key_shape.len() - 2]);
        if rows.saturating_mul(columns) > 1 << 26 {
            return Err(Fault::variant(format!("a causal mask of {rows} x {columns} is too large")));
        }
        mask = Some(causal_mask(call, rows, columns, dtype));
    }
    Ok(attend(call, query, key, value, scale, (mask, true))?.0)
}

/// Repeats each head of x [.., heads, L, E] until there are as many as the query has.
fn repeat_heads(call: &mut Call<'_, '_>, query: Value, x: Value) -> Result<Value, Fault> {
    let (wanted, shape) = (call.shape(query), call.shape(x));
    let rank = shape.len();
    let heads = if rank >= 3 { shape[rank - 3] } else { 0 };
    let total = if wanted.len() >= 3 { wanted[wanted.len() - 3] } else { 0 };
    if heads == 0 || !total.is_multiple_of(heads) {
        return Err(Fault::operands(format!("{heads} heads can't be repeated to {total}")));
    }
    if heads == total {
        return Ok(x);
    }
    let split = call.builder.insert_axis(x, rank - 2)?;
    let mut repeated = call.shape(split);
    repeated[rank - 2] = total / heads;
    let split = call.builder.broadcast(split, &repeated)?;
    let mut result = shape;
    result[rank - 3] = total;
    Ok(call.builder.reshape(split, &result)?)
}

/// The operands of a multi-head attention.
struct MultiheadOperands {
    query: Value,
    key: Value,
    value: Value,
    /// Up to two; the mask of the padding comes before that of the pairs.
    masks: Vec<Value>,
}

/// Sorts the operands. The exporter writes them in the order in which the module first uses them, where bools, which can
/// only be masks, come first, and puts the label `attn_mask` on the last one, whatever it is. So the label counts only when
/// there is no bool.
fn multihead_operands(call: &mut Call<'_, '_>) -> Result<MultiheadOperands, Fault> {
    call.use_all_inputs();
    let labelled = call.site.operator.input_names.iter().position(|name| name.as_deref() == Some("attn_mask"));
    let (mut bools, mut rest) = (Vec::new(), Vec::new());
    for position in 0..call.inputs.len() {
        if call.inputs[position] == Item::None {
            continue;
        }
        let value = call.input(position)?;
        let is_bool = call.builder.dtype(value) == DType::Bool;
        if is_bool { &mut bools } else { &mut rest }.push((position, value));
    }
    if bools.is_empty() {
        (bools, rest) = rest.into_iter().partition(|(position, _)| Some(*position) == labelled);
    }
    let masks: Vec<Value> = bools.into_iter().map(|(_, value)| value).collect();
    let (query, key, value) = match rest[..] {
        [(_, query)] => (query, query, query),
        [(_, query), (_, key)] => (query, key, key),
        [(_, query), (_, key), (_, value)] => (query, key, value),
        _ => {
            return Err(Fault::new(
                mlc_ir::Code::OperandCount,
                "query, key and value expected, and perhaps `attn_mask`",
            ));
        }
    };
    if masks.len() > 2 {
        return Err(Fault::new(mlc_ir::Code::OperandCount, format!("{} masks are too many", masks.len())));
    }
    Ok(MultiheadOperands { query, key, value, masks })
}

/// Projection of one of query, key and value: its part of the joint weights, or its own.
fn project(call: &mut Call<'_, '_>, x: Value, part: usize, width: usize) -> Result<Value, Fault> {
    let own = ["q_proj_weight", "k_proj_weight", "v_proj_weight"][part];
    let weight = match call.optional_weight("in_proj_weight")? {
        Some(joint) => call.builder.slice_axis(joint, 0, part * width, width, 1)?,
        None => call.weight(own)?,
    };
    let bias = match call.optional_weight("in_proj_bias")? {
        Some(joint) => Some(call.builder.slice_axis(joint, 0, part * width, width, 1)?),
        None => None,
    };
    linear(call, x, weight, bias)
}

/// Appends a constant time step to x [N, S, E].
fn append_step(call: &mut Call<'_, '_>, x: Value, step: Value) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let step = call.builder.reshape(step, &[1, 1, shape[2]])?;
    let step = call.builder.broadcast(step, &[shape[0], 1, shape[2]])?;
    Ok(call.builder.concat(&[x, step], 1)?)
}

/// Extents of the scores of a multi-head attention, before steps are appended to the keys.
#[derive(Clone, Copy)]
struct Scores {
    batch: usize,
    heads: usize,
    queries: usize,
    keys: usize,
}

/// What a mask of two axes is about.
#[derive(Clone, Copy, PartialEq)]
enum MaskKind {
    /// Pairs of query and key: (L, S).
    Pairs,
    /// Keys of each item of the batch: (N, S).
    Padding,
    /// The file doesn't say.
    Untold,
}

impl Scores {
    /// The kind of a mask of two axes by its shape. A constant isn't the padding of data.
    fn kind(self, rows: usize, is_constant: bool) -> Option<MaskKind> {
        match (rows == self.queries, rows == self.batch) {
            (true, true) if rows != 1 && !is_constant => None,
            (false, true) => Some(MaskKind::Padding),
            _ => Some(MaskKind::Pairs),
        }
    }
}

/// An additive mask (L, S), (N * heads, L, S), (N, S) or (S) in the form that the scores (N, heads, L, S) take.
fn multihead_mask(
    call: &mut Call<'_, '_>,
    mask: Value,
    kind: MaskKind,
    scores: Scores,
    added: usize,
) -> Result<Value, Fault> {
    let dtype = call.builder.dtype(mask);
    let dtype = if dtype == DType::Bool { DType::F32 } else { dtype };
    let is_constant = call.builder.graph().constant(mask).is_some();
    let mut mask = additive(call, mask, true, dtype)?;
    match (&call.shape(mask)[..], kind) {
        (&[rows, keys], kind) => {
            let kind = if kind == MaskKind::Untold { scores.kind(rows, is_constant) } else { Some(kind) };
            let kind = kind.ok_or_else(|| {
                let message = "the batch is as large as the sequence is long, so the file doesn't tell whether the mask \
                               is about pairs of positions or about padding";
                Fault::variant(message).with_help("export the model for a batch of another size")
            })?;
            if kind == MaskKind::Padding {
                mask = call.builder.reshape(mask, &[rows, 1, 1, keys])?;
            }
        }
        (&[matrices, rows, columns], _) if matrices == scores.batch * scores.heads => {
            mask = call.builder.reshape(mask, &[scores.batch, scores.heads, rows, columns])?;
        }
        (&[matrices, _, _], _) if matrices != 1 => {
            let ty = call.builder.ty(mask);
            return Err(Fault::operands(format!("the mask {ty} must have {} matrices", scores.batch * scores.heads)));
        }
        _ => {}
    }
    if call.shape(mask).last() != Some(&scores.keys) {
        let ty = call.builder.ty(mask);
        return Err(Fault::operands(format!("the mask {ty} must have {} columns, one for each key", scores.keys)));
    }
    // Steps that were appended to the keys are always seen.
    let mut pads = vec![(0, 0); call.builder.rank(mask)];
    if let Some(last) = pads.last_mut() {
        last.1 = added as i64;
    }
    Ok(call.builder.pad(mask, &pads, mlc_ir::ops::PadMode::Constant, 0.0)?)
}

/// The sum of all masks.
fn multihead_masks(
    call: &mut Call<'_, '_>,
    masks: &[Value],
    scores: Scores,
    added: usize,
) -> Result<Option<Value>, Fault> {
    let kinds: &[MaskKind] = if masks.len() == 2 { &[MaskKind::Padding, MaskKind::Pairs] } else { &[MaskKind::Untold] };
    let mut sum: Option<Value> = None;
    for (&mask, &kind) in masks.iter().zip(kinds) {
        let mask = multihead_mask(call, mask, kind, scores, added)?;
        sum = Some(match sum {
            Some(sum) => call.builder.binary(BinaryFunction::Add, sum, mask)?,
            None => mask,
        });
    }
    Ok(sum)
}

fn multihead(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let MultiheadOperands { query, key, value, masks } = multihead_operands(call)?;
    let (width, heads) = (call.int("embed_dim")?, call.int("num_heads")?);
    let width = call.required("embed_dim", width)?;
    let heads = call.required("num_heads", heads)?;
    let sizes = usize::try_from(width).ok().zip(usize::try_from(heads).ok());
    let (width, heads) = sizes
        .filter(|&(width, heads)| heads > 0 && width > 0 && width.is_multiple_of(heads))
        .ok_or_else(|| Fault::parameter(format!("{width} features don't split into {heads} heads")))?;
    let batch_first = call.flag_or("batch_first", false)?;
    call.ignore(&["kdim", "vdim", "bias", "add_bias_kv"]);
    let unbatched = call.builder.rank(query) == 2;
    // [N, L, E], whatever the order in the file.
    let order = |call: &mut Call<'_, '_>, x: Value| -> Result<Value, Fault> {
        match (call.builder.rank(x), unbatched, batch_first) {
            (2, true, _) => Ok(call.builder.insert_axis(x, 0)?),
            (3, false, true) => Ok(x),
            (3, false, false) => Ok(call.builder.swap_axes(x, 0, 1)?),
            _ => Err(Fault::operands(format!("{} must have three axes, or two without a batch", call.builder.ty(x)))),
        }
    };
    let (query, key, value) = (order(call, query)?, order(call, key)?, order(call, value)?);
    let scores = Scores { batch: call.shape(query)[0], heads, queries: call.shape(query)[1], keys: call.shape(key)[1] };
    let query = project(call, query, 0, width)?;
    let (mut key, mut value) = (project(call, key, 1, width)?, project(call, value, 2, width)?);
    let mut added = 0;
    if let (Some(bias_k), Some(bias_v)) = (call.optional_weight("bias_k")?, call.optional_weight("bias_v")?) {
        (key, value) = (append_step(call, key, bias_k)?, append_step(call, value, bias_v)?);
        added += 1;
    }
    if call.flag_or("add_zero_attn", false)? {
        let zeros = call.builder.number(call.builder.dtype(key), 0.0);
        let zeros = call.builder.broadcast(zeros, &[1, 1, width])?;
        (key, value) = (append_step(call, key, zeros)?, append_step(call, value, zeros)?);
        added += 1;
    }
    let mask = multihead_masks(call, &masks, scores, added)?;
    let query = call.builder.split_heads(query, heads)?;
    let (key, value) = (call.builder.split_heads(key, heads)?, call.builder.split_heads(value, heads)?);
    let scale = 1.0 / ((width / heads) as f64).sqrt();
    let (result, weights) = attend(call, query, key, value, scale, (mask, false))?;
    let result = call.builder.merge_heads(result)?;
    let (out, bias) = (call.weight("out_proj.weight")?, call.optional_weight("out_proj.bias")?);
    let mut result = linear(call, result, out, bias)?;
    if unbatched {
        result = call.builder.remove_axis(result, 0)?;
    } else if !batch_first {
        result = call.builder.swap_axes(result, 0, 1)?;
    }
    let mut results = vec![Item::Tensor(result)];
    if call.used_results().len() > 1 {
        let mut mean = super::normalization::reduced(call, weights, ReduceFunction::Mean, vec![1], false)?;
        if unbatched {
            mean = call.builder.remove_axis(mean, 0)?;
        }
        results.push(Item::Tensor(mean));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_of_two_axes_is_about_what_its_rows_count() {
        let scores = Scores { batch: 3, heads: 2, queries: 5, keys: 5 };
        assert!(scores.kind(5, false) == Some(MaskKind::Pairs));
        assert!(scores.kind(3, false) == Some(MaskKind::Padding));
        let square = Scores { batch: 5, ..scores };
        assert!(square.kind(5, false).is_none());
        assert!(square.kind(5, true) == Some(MaskKind::Pairs));
        let single = Scores { batch: 1, queries: 1, ..scores };
        assert!(single.kind(1, false) == Some(MaskKind::Pairs));
    }
}
