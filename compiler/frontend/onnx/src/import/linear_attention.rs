//! Attention without softmax: a state is carried along the sequence.

use super::call::{Call, Item, Table};
use mlc_import::Fault;
use mlc_import::Handler::Many;
use mlc_ir::ops::Matmul;
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[("LinearAttention", 27, Many(linear_attention))];

/// Longest sequence; every step is written out.
const LONGEST: usize = 256;

/// What happens in a step, all [batch, heads, length, ...].
struct Recurrence {
    query: Value,
    key: Value,
    value: Value,
    /// Logarithm of what stays of the state: [batch, heads, length, features or 1].
    decay: Option<Value>,
    /// How much of the difference between value and memory is written: [batch, heads or 1, length, 1].
    rate: Option<Value>,
}

fn required_operand(call: &mut Call<'_, '_>, index: usize, wanted: bool, name: &str) -> Result<Option<Value>, Fault> {
    let found = call.optional(index)?;
    if found.is_some() == wanted {
        return Ok(found);
    }
    let rule = call.word("update_rule")?.unwrap_or("gated_delta");
    let verb = if wanted { "needs" } else { "doesn't take" };
    Err(Fault::operands(format!("the update rule {rule} {verb} `{name}`")))
}

fn heads(call: &mut Call<'_, '_>, key: &'static str) -> Result<usize, Fault> {
    let heads = call.int(key)?;
    let heads = call.required(key, heads)?;
    let heads = usize::try_from(heads).ok().filter(|&heads| heads > 0);
    heads.ok_or_else(|| Fault::parameter(format!("attribute `{key}` must be positive")))
}

/// An operand [batch, length, heads * features] in single precision at least, split.
fn split(call: &mut Call<'_, '_>, x: Value, heads: usize) -> Result<Value, Fault> {
    let dtype = if call.dtype_of(x) == DType::F64 { DType::F64 } else { DType::F32 };
    let x = call.builder.cast(x, dtype)?;
    Ok(call.builder.split_heads(x, heads)?)
}

fn recurrence(call: &mut Call<'_, '_>) -> Result<(Recurrence, usize, usize), Fault> {
    let (gated, delta) = match call.word("update_rule")?.unwrap_or("gated_delta") {
        "linear" => (false, false),
        "gated" => (true, false),
        "delta" => (false, true),
        "gated_delta" => (true, true),
        other => return Err(Fault::parameter(format!("there is no update rule `{other}`"))),
    };
    let (query_heads, key_heads) = (heads(call, "q_num_heads")?, heads(call, "kv_num_heads")?);
    let [query, key, value] = [call.input(0)?, call.input(1)?, call.input(2)?];
    let query = split(call, query, query_heads)?;
    let (key, value) = (split(call, key, key_heads)?, split(call, value, key_heads)?);
    let decay = required_operand(call, 4, gated, "decay")?.map(|decay| split(call, decay, key_heads)).transpose()?;
    let rate = match required_operand(call, 5, delta, "beta")? {
        None => None,
        Some(rate) => {
            let width = call.shape(rate).last().copied().unwrap_or(0);
            if width != 1 && width != key_heads {
                return Err(Fault::operands(format!("beta must have 1 or {key_heads} features, found {width}")));
            }
            Some(split(call, rate, width)?)
        }
    };
    Ok((Recurrence { query, key, value, decay, rate }, query_heads, key_heads))
}

/// Place `step` of an axis, as matrices [batch, heads, 1, features].
fn step_of(call: &mut Call<'_, '_>, x: Value, step: usize) -> Result<Value, Fault> {
    Ok(call.builder.slice_axis(x, 2, step, 1, 1)?)
}

impl Recurrence {
    /// The state [batch, heads, key features, value features] after a step.
    fn advance(&self, call: &mut Call<'_, '_>, state: Value, step: usize) -> Result<Value, Fault> {
        let key = step_of(call, self.key, step)?;
        let mut value = step_of(call, self.value, step)?;
        let mut state = state;
        if let Some(decay) = self.decay {
            let decay = step_of(call, decay, step)?;
            let kept = call.builder.unary(U::Exp, decay)?;
            let kept = call.builder.swap_axes(kept, 2, 3)?;
            state = call.builder.binary(B::Multiply, state, kept)?;
        }
        if let Some(rate) = self.rate {
            let remembered = call
                .builder
                .apply(Matmul { transpose_left: false, transpose_right: false, sums: None }, &[key, state])?;
            let difference = call.builder.binary(B::Subtract, value, remembered)?;
            let rate = step_of(call, rate, step)?;
            value = call.builder.binary(B::Multiply, rate, difference)?;
        }
        let column = call.builder.swap_axes(key, 2, 3)?;
        let written = call.builder.binary(B::Multiply, column, value)?;
        Ok(call.builder.binary(B::Add, state, written)?)
    }
}

fn linear_attention(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    // It only says how to group the steps.
    call.ignore(&["chunk_size"]);
    let (recurrence, query_heads, key_heads) = recurrence(call)?;
    let result_dtype = {
        let query = call.input(0)?;
        call.dtype_of(query)
    };
    let (query, key, value) = (call.shape(recurrence.query), call.shape(recurrence.key), call.shape(recurrence.value));
    let (batch, length, width, value_width) = (key[0], key[2], key[3], value[3]);
    let past = call.optional(3)?;
    let past_dtype = past.map_or(result_dtype, |past| call.dtype_of(past));
    let shape = [batch, key_heads, width, value_width];
    let dtype = call.dtype_of(recurrence.key);
    let mut state = match past {
        Some(past) => call.builder.cast(past, dtype)?,
        None => {
            let zero = call.builder.number(dtype, 0.0);
            call.builder.broadcast(zero, &shape)?
        }
    };
    if call.shape(state)[..] != shape || query[..] != [batch, query_heads, length, width] || value[2] != length {
        return Err(Fault::operands("query, key, value and state don't fit"));
    }
    if length > LONGEST {
        let message = format!("a sequence of {length} steps is too long to be written out; {LONGEST} are supported");
        return Err(Fault::variant(message));
    }
    let scale = match call.float_or("scale", 0.0)? {
        0.0 => 1.0 / (width.max(1) as f64).sqrt(),
        scale => scale,
    };
    let mut results = Vec::with_capacity(length);
    for step in 0..length {
        state = recurrence.advance(call, state, step)?;
        let query = step_of(call, recurrence.query, step)?;
        results.push(call.builder.grouped_matmul(query, state, false)?);
    }
    let result = call.builder.concat(&results, 2)?;
    let result = call.builder.binary_number(B::Multiply, result, scale)?;
    let result = call.builder.cast(result, result_dtype)?;
    let result = call.builder.merge_heads(result)?;
    let state = call.builder.cast(state, past_dtype)?;
    Ok(vec![Item::Tensor(result), Item::Tensor(state)])
}
