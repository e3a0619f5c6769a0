//! `TfIdfVectorizer`: how often sequences of numbers occur.

use super::call::{Call, Table, TensorAttributes};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{Reduce, ReduceFunction};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{Attribute, Code, DType, Tensor, TensorType, Value};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const OPERATORS: Table = &[("TfIdfVectorizer", 9, One(vectorizer))];

/// Most comparisons of a place with a sequence.
const MOST_COMPARISONS: usize = 1 << 26;

/// Sequences of one length, each with the column that it is counted in.
struct Pool {
    length: usize,
    sequences: Vec<(Vec<i64>, usize)>,
}

fn numbers(call: &mut Call<'_, '_>, key: &'static str) -> Result<Vec<usize>, Fault> {
    let values = call.ints(key)?;
    let values = call.required(key, values)?;
    let number = |&value: &i64| usize::try_from(value).ok();
    let values: Option<Vec<usize>> = values.iter().map(number).collect();
    values.ok_or_else(|| Fault::parameter(format!("attribute `{key}` must not be negative")))
}

fn length(call: &mut Call<'_, '_>, key: &'static str) -> Result<usize, Fault> {
    let value = call.int(key)?;
    let value = call.required(key, value)?;
    usize::try_from(value).map_err(|_| Fault::parameter(format!("attribute `{key}` must not be negative")))
}

/// The sequences of the lengths that count.
fn pools(call: &mut Call<'_, '_>, columns: &[usize]) -> Result<Vec<Pool>, Fault> {
    if call.words("pool_strings")?.is_some_and(|words| !words.is_empty()) {
        return Err(Fault::variant("the pool is of strings, which aren't supported"));
    }
    let pool = call.ints("pool_int64s")?;
    let pool = call.required("pool_int64s", pool)?;
    let starts = numbers(call, "ngram_counts")?;
    let (shortest, longest) = (length(call, "min_gram_length")?, length(call, "max_gram_length")?);
    let mut pools = Vec::new();
    let mut number = 0;
    for (index, &start) in starts.iter().enumerate() {
        let (length, end) = (index + 1, starts.get(index + 1).copied().unwrap_or(pool.len()));
        let part = pool.get(start..end).filter(|part| part.len().is_multiple_of(length));
        let part = part.ok_or_else(|| Fault::parameter("`ngram_counts` doesn't fit the pool"))?;
        // The last of equal sequences counts.
        let mut sequences = BTreeMap::new();
        for sequence in part.chunks_exact(length) {
            let column = columns.get(number).copied();
            let column = column.ok_or_else(|| Fault::parameter("`ngram_indexes` is shorter than the pool"))?;
            sequences.insert(sequence.to_vec(), column);
            number += 1;
        }
        if (shortest..=longest).contains(&length) && !sequences.is_empty() {
            pools.push(Pool { length, sequences: sequences.into_iter().collect() });
        }
    }
    Ok(pools)
}

/// How often each sequence of a pool occurs in the rows of x, with elements `distance` apart: [rows, sequences].
fn count(call: &mut Call<'_, '_>, x: Value, pool: &Pool, distance: usize) -> Result<Option<Value>, Fault> {
    let shape = call.shape(x);
    let (rows, columns) = (shape[0], shape[1]);
    let reach = (pool.length - 1).checked_mul(distance);
    let Some(places) = reach.and_then(|reach| columns.checked_sub(reach)).filter(|&places| places > 0) else {
        return Ok(None);
    };
    let comparisons = places.saturating_mul(rows).saturating_mul(pool.sequences.len());
    if comparisons > MOST_COMPARISONS {
        return Err(Fault::variant(format!("{comparisons} comparisons with the pool are too many")));
    }
    let mut found = None;
    for element in 0..pool.length {
        let part = call.builder.slice_axis(x, 1, element * distance, places, 1)?;
        let part = call.builder.insert_axis(part, 2)?;
        let wanted: Vec<i64> = pool.sequences.iter().map(|(sequence, _)| sequence[element]).collect();
        let wanted = call.constant_of_ints(&[wanted.len()], &wanted)?;
        let equal = call.builder.binary(B::Equal, part, wanted)?;
        found = Some(match found {
            Some(others) => call.builder.binary(B::And, others, equal)?,
            None => equal,
        });
    }
    let Some(found) = found else { return Ok(None) };
    let found = call.builder.cast(found, DType::F32)?;
    let reduce = Reduce { function: ReduceFunction::Sum, axes: vec![1], keep_axes: false };
    Ok(Some(call.builder.apply(reduce, &[found])?))
}

fn vectorizer(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let x = match call.rank(x) {
        1 => call.builder.insert_axis(x, 0)?,
        2 => x,
        rank => return Err(Fault::operands(format!("the rows must have one or two axes, found {rank}"))),
    };
    if !call.dtype_of(x).is_integer() {
        return Err(Fault::variant("only whole numbers are supported"));
    }
    let x = call.builder.cast(x, DType::I64)?;
    let columns = numbers(call, "ngram_indexes")?;
    let pools = pools(call, &columns)?;
    let skips = length(call, "max_skip_count")?;
    let width = columns.iter().max().map_or(0, |&last| last.saturating_add(1));
    let rows = call.shape(x)[0];
    if width == 0 || width.saturating_mul(rows) > MOST_COMPARISONS {
        return Err(Fault::variant(format!("{width} columns aren't supported")));
    }
    // Where the count of each column stands among all counts; first comes a zero, for those that nothing counts.
    let mut places = vec![0i64; width];
    let zero = call.builder.number(DType::F32, 0.0);
    let mut parts = vec![call.builder.broadcast(zero, &[rows, 1])?];
    let mut next = 1;
    for pool in &pools {
        for (_, column) in &pool.sequences {
            if places[*column] != 0 {
                return Err(Fault::variant(format!("column {column} counts several sequences")));
            }
            places[*column] = next;
            next += 1;
        }
        let distances = if pool.length == 1 { 1 } else { skips.saturating_add(1).min(call.shape(x)[1].max(1)) };
        let mut total = None;
        for distance in 1..=distances {
            if let Some(counts) = count(call, x, pool, distance)? {
                total = Some(call.builder.add_optional(counts, total)?);
            }
        }
        parts.push(match total {
            Some(total) => total,
            None => call.builder.broadcast(zero, &[rows, pool.sequences.len()])?,
        });
    }
    let counts = call.builder.concat(&parts, 1)?;
    let places = call.constant_of_ints(&[width], &places)?;
    let counts = call.builder.gather(counts, places, 1)?;
    let result = weighted(call, counts, &columns, width)?;
    let input = call.input(0)?;
    Ok(if call.rank(input) == 1 { call.builder.remove_axis(result, 0)? } else { result })
}

/// Applies the weights, which come in the order of the pool.
fn weighted(call: &mut Call<'_, '_>, counts: Value, columns: &[usize], width: usize) -> Result<Value, Fault> {
    let weights = match call.floats("weights")?.filter(|weights| !weights.is_empty()) {
        Some(_) if columns.iter().collect::<BTreeSet<_>>().len() < columns.len() => {
            return Err(Fault::variant("several weights for one column aren't supported"));
        }
        Some(weights) if weights.len() == columns.len() => {
            let mut ordered = vec![0.0; width];
            for (&column, weight) in columns.iter().zip(weights) {
                ordered[column] = weight;
            }
            let tensor = Tensor::from_floats(TensorType::new(DType::F32, [width]), ordered);
            Some(call.builder.constant("weights", Attribute::from_tensor(&tensor)))
        }
        Some(weights) => {
            return Err(Fault::parameter(format!("{} weights don't fit {} sequences", weights.len(), columns.len())));
        }
        None => None,
    };
    let mode = call.word("mode")?;
    match mode {
        Some("TF") => Ok(counts),
        Some("TFIDF") => Ok(call.builder.multiply_optional(counts, weights)?),
        Some("IDF") => {
            let occurs = call.builder.binary_number(B::Greater, counts, 0.0)?;
            let occurs = call.builder.cast(occurs, DType::F32)?;
            Ok(call.builder.multiply_optional(occurs, weights)?)
        }
        Some(other) => Err(Fault::parameter(format!("there is no mode `{other}`"))),
        None => Err(Fault::new(Code::ParameterMissing, "attribute `mode` is missing")),
    }
}
