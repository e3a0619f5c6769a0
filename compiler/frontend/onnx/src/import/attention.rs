//! Scaled dot-product attention of the standard's operators.

use super::call::{Call, Importer, Item, Site, Table};
use super::format::{Onnx, Region};
use crate::proto::GraphProto;
use crate::tensor::dtype_of;
use mlc_import::Handler::{Control, Many};
use mlc_import::builder::{Band, Builder, Offset};
use mlc_import::{Fault, Format};
use mlc_ir::ops::PadMode;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("Attention", 23, Many(attention))];

/// Operators that aren't in the standard yet.
pub(super) const PREVIEW: Table = &[("FlexAttention", 1, Control(flex_attention))];

/// The scores of queries and keys: `query key^T * scale`, all [batch, heads, length, features].
///
/// As the standard says, both sides are multiplied by the root of the scale; where no precision is lost, the product is.
pub(super) fn scores(builder: &mut Builder, query: Value, key: Value, scale: f64) -> Result<Value, Fault> {
    if matches!(builder.dtype(query), DType::F32 | DType::F64) {
        let scores = builder.grouped_matmul(query, key, true)?;
        return Ok(builder.binary_number(B::Multiply, scores, scale)?);
    }
    let query = builder.binary_number(B::Multiply, query, scale.sqrt())?;
    let key = builder.binary_number(B::Multiply, key, scale.sqrt())?;
    Ok(builder.grouped_matmul(query, key, true)?)
}

/// `cap * tanh(x / cap)`.
pub(super) fn soft_cap(builder: &mut Builder, x: Value, cap: f64) -> Result<Value, Fault> {
    let scaled = builder.binary_number(B::Divide, x, cap)?;
    let bounded = builder.unary(U::Tanh, scaled)?;
    Ok(builder.binary_number(B::Multiply, bounded, cap)?)
}

/// `1 / sqrt(features)` of [.., features].
pub(super) fn default_scale(builder: &Builder, query: Value) -> f64 {
    let width = builder.shape(query).last().copied().unwrap_or(1);
    1.0 / (width.max(1) as f64).sqrt()
}

/// Query, key and value as [batch, heads, length, features], and whether they were before.
fn split_operands(call: &mut Call<'_, '_>) -> Result<([Value; 3], bool), Fault> {
    let operands = [call.input(0)?, call.input(1)?, call.input(2)?];
    let (query_heads, key_heads) = (call.int("q_num_heads")?, call.int("kv_num_heads")?);
    let ranks = operands.map(|operand| call.rank(operand));
    if ranks == [4; 3] {
        // Some models say the numbers of heads nonetheless; they have to be true.
        for (heads, operand) in [(query_heads, operands[0]), (key_heads, operands[1])] {
            let found = call.shape(operand)[1] as i64;
            if heads.is_some_and(|heads| heads != found) {
                return Err(Fault::parameter(format!("the operand has {found} heads, an attribute says otherwise")));
            }
        }
        return Ok((operands, true));
    }
    if ranks != [3; 3] {
        let types = operands.map(|operand| call.builder.ty(operand).to_string()).join(", ");
        return Err(Fault::operands(format!("query, key and value must all have three or four axes, found {types}")));
    }
    let heads = |heads: Option<i64>| heads.and_then(|heads| usize::try_from(heads).ok()).filter(|&heads| heads > 0);
    let missing = || Fault::parameter("operands with three axes need `q_num_heads` and `kv_num_heads`");
    let (query_heads, key_heads) = heads(query_heads).zip(heads(key_heads)).ok_or_else(missing)?;
    let [query, key, value] = operands;
    let query = call.builder.split_heads(query, query_heads)?;
    let key = call.builder.split_heads(key, key_heads)?;
    let value = call.builder.split_heads(value, key_heads)?;
    Ok(([query, key, value], false))
}

/// What comes before the keys and values of this call.
fn with_past(call: &mut Call<'_, '_>, key: Value, value: Value) -> Result<(Value, Value, Option<usize>), Fault> {
    match (call.optional(4)?, call.optional(5)?) {
        (None, None) => Ok((key, value, None)),
        (Some(past_key), Some(past_value)) => {
            let key = call.builder.concat(&[past_key, key], 2)?;
            let value = call.builder.concat(&[past_value, value], 2)?;
            let past = call.shape(past_key)[2];
            Ok((key, value, Some(past)))
        }
        _ => Err(Fault::operands("past_key and past_value must come together")),
    }
}

/// The reach of a window; -1 means everything.
fn reach(call: &mut Call<'_, '_>, key: &'static str) -> Result<Option<usize>, Fault> {
    match call.int_or(key, -1)? {
        -1 => Ok(None),
        other => usize::try_from(other)
            .map(Some)
            .map_err(|_| Fault::parameter(format!("attribute `{key}` must be -1 or more, found {other}"))),
    }
}

/// The attention mask as numbers to add, its last axis as long as there are keys.
fn given_mask(call: &mut Call<'_, '_>, keys: usize, dtype: DType) -> Result<Option<Value>, Fault> {
    let Some(mask) = call.optional(3)? else { return Ok(None) };
    let mask = match call.dtype_of(mask) {
        DType::Bool => call.builder.additive_mask(mask, dtype, f64::NEG_INFINITY)?,
        found if found == dtype => mask,
        found => return Err(Fault::operands(format!("the mask must be of bool or {dtype}, found {found}"))),
    };
    let shape = call.shape(mask);
    let missing = shape.last().and_then(|&last| keys.checked_sub(last));
    let Some(missing) = missing.filter(|_| shape.len() <= 4) else {
        let ty = call.builder.ty(mask);
        return Err(Fault::operands(format!("the mask {ty} must have one to four axes, the last of up to {keys}")));
    };
    let mut pads = vec![(0, 0); shape.len()];
    pads[shape.len() - 1].1 = missing as i64;
    Ok(Some(call.builder.pad(mask, &pads, PadMode::Constant, f64::NEG_INFINITY)?))
}

/// Everything that is added to scores [batch, heads, queries, keys].
fn bias(call: &mut Call<'_, '_>, scores: Value, past: Option<usize>) -> Result<Option<Value>, Fault> {
    let (shape, dtype) = (call.shape(scores), call.dtype_of(scores));
    let (batch, queries, keys) = (shape[0], shape[2], shape[3]);
    let mut bias = given_mask(call, keys, dtype)?;
    let counts = call.optional(6)?;
    if counts.is_some() && past.is_some() {
        return Err(Fault::operands("nonpad_kv_seqlen can't come together with past_key"));
    }
    let counts = match counts {
        Some(counts) => {
            let counts = call.builder.cast(counts, DType::I64)?;
            Some(call.builder.reshape(counts, &[batch, 1, 1, 1])?)
        }
        None => None,
    };
    let mut band = Band { before: reach(call, "left_window_size")?, behind: reach(call, "right_window_size")? };
    if call.flag_or("is_causal", false)? {
        band.behind = Some(0);
    }
    if band.before.is_some() || band.behind.is_some() {
        let offset = match counts {
            Some(counts) => Offset::Computed(call.builder.binary_number(B::Subtract, counts, queries as f64)?),
            None => Offset::Fixed(past.unwrap_or(0)),
        };
        let mask = call.builder.band_mask(band, (queries, keys), offset, dtype)?;
        bias = Some(call.builder.add_optional(mask, bias)?);
    }
    if let Some(counts) = counts {
        let seen = call.builder.padding(counts, keys)?;
        let mask = call.builder.additive_mask(seen, dtype, f64::NEG_INFINITY)?;
        bias = Some(call.builder.add_optional(mask, bias)?);
    }
    Ok(bias)
}

/// The data type that softmax computes in.
fn softmax_dtype(number: Option<i64>) -> Result<Option<DType>, Fault> {
    let Some(number) = number else { return Ok(None) };
    let dtype = dtype_of(number)?;
    if !dtype.is_float() {
        return Err(Fault::parameter(format!("softmax_precision must be a float type, found {dtype}")));
    }
    Ok(Some(dtype))
}

fn attention(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let ([query, key, value], has_heads) = split_operands(call)?;
    let (key, value, past) = with_past(call, key, value)?;
    let dtype = call.dtype_of(query);
    let scale = match call.float("scale")? {
        Some(scale) => scale,
        None => default_scale(call.builder, query),
    };
    let raw = scores(call.builder, query, key, scale)?;
    let cap = call.float_or("softcap", 0.0)?;
    let capped = if cap > 0.0 { soft_cap(call.builder, raw, cap)? } else { raw };
    let bias = bias(call, capped, past)?;
    let biased = call.builder.add_optional(capped, bias)?;
    if call.shape(biased) != call.shape(raw) {
        let (mask, scores) = (call.builder.ty(biased).to_string(), call.builder.ty(raw));
        return Err(Fault::operands(format!("the mask makes {mask} of the scores {scores}")));
    }
    let precision = softmax_dtype(call.int("softmax_precision")?)?.unwrap_or(dtype);
    let exact = call.builder.cast(biased, precision)?;
    let weights = match bias {
        Some(bias) => call.builder.masked_softmax(exact, bias)?,
        None => call.builder.softmax_of_last(exact)?,
    };
    let weights = call.builder.cast(weights, dtype)?;
    let value_like = call.builder.cast(weights, call.dtype_of(value))?;
    let mut result = call.builder.grouped_matmul(value_like, value, false)?;
    if !has_heads {
        result = call.builder.merge_heads(result)?;
    }
    let result = call.builder.cast(result, dtype)?;
    let detail = match call.int_or("qk_matmul_output_mode", 0)? {
        0 => raw,
        1 => capped,
        2 => biased,
        3 => weights,
        other => return Err(Fault::parameter(format!("there is no qk_matmul_output_mode {other}"))),
    };
    Ok([result, key, value, detail].map(Item::Tensor).to_vec())
}

/// A graph that an attribute holds.
fn graph_attribute<'a>(importer: &Importer<'a>, site: &Site<'a>, key: &str) -> Result<Option<&'a GraphProto>, Fault> {
    let attributes = Onnx::attributes(importer.scope(), site.operator)?;
    let Some(&attribute) = attributes.get(key) else { return Ok(None) };
    attribute.g.as_ref().map(Some).ok_or_else(|| Fault::parameter(format!("attribute `{key}` must be a graph")))
}

/// Applies a graph of one input and one output of the same type to a tensor; `None` when it can't be imported.
fn modified<'a>(importer: &mut Importer<'a>, site: &Site<'a>, key: &str, x: Value) -> Result<Option<Value>, Fault> {
    let Some(graph) = graph_attribute(importer, site, key)? else { return Ok(Some(x)) };
    let prefix = format!("{}.{key}.", site.name);
    let results = importer.import_region(Region::Graph(graph), vec![Item::Tensor(x)], prefix)?;
    importer.builder.begin(&site.name);
    match results[..] {
        [Item::Tensor(y)] if importer.builder.ty(y) == importer.builder.ty(x) => Ok(Some(y)),
        [Item::Unknown] => Ok(None),
        _ => Err(Fault::operands(format!("`{key}` must give one tensor {}", importer.builder.ty(x)))),
    }
}

/// Attention whose scores and weights the model may change by its own graphs.
fn flex_attention<'a>(importer: &mut Importer<'a>, site: &Site<'a>, inputs: Vec<Item>) -> Result<Vec<Item>, Fault> {
    let [Item::Tensor(query), Item::Tensor(key), Item::Tensor(value)] = inputs[..] else {
        return Err(Fault::operands("query, key and value expected"));
    };
    let attributes = Onnx::attributes(importer.scope(), site.operator)?;
    let known = ["scale", "score_mod", "prob_mod", "softmax_precision"];
    if let Some(unknown) = attributes.keys().find(|key| !known.contains(key)) {
        return Err(Fault::parameter(format!("attribute `{unknown}` isn't known")));
    }
    let scale = attributes.get("scale").and_then(|attribute| attribute.f).map(f64::from);
    let precision = softmax_dtype(attributes.get("softmax_precision").and_then(|attribute| attribute.i))?;
    let builder = &mut importer.builder;
    builder.begin(&site.name);
    if [query, key, value].iter().any(|&operand| builder.rank(operand) != 4) {
        return Err(Fault::operands("query, key and value must have four axes"));
    }
    let dtype = builder.dtype(query);
    let precision = precision.unwrap_or(if dtype == DType::F64 { dtype } else { DType::F32 });
    let scale = scale.unwrap_or_else(|| default_scale(builder, query));
    let raw = scores(builder, query, key, scale)?;
    let exact = builder.cast(raw, precision)?;
    let Some(scored) = modified(importer, site, "score_mod", exact)? else { return Ok(vec![Item::Unknown]) };
    let weights = importer.builder.softmax_of_last(scored)?;
    let Some(weights) = modified(importer, site, "prob_mod", weights)? else { return Ok(vec![Item::Unknown]) };
    let builder = &mut importer.builder;
    let value = builder.cast(value, precision)?;
    let result = builder.grouped_matmul(weights, value, false)?;
    Ok(vec![Item::Tensor(builder.cast(result, dtype)?)])
}
