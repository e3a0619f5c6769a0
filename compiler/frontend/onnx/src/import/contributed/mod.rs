//! Operators of com.microsoft: what onnxruntime's optimiser writes into models.

mod attention;
mod dynamic_lstm;
mod quantized;

use super::call::{Call, Item, Table, TensorAttributes};
use super::rotary::{Rotation, rotate};
use super::{convolution, indexing, linear, normalization};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::{Matmul, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("Attention", 1, Many(attention::attention)),
    ("BiasGelu", 1, One(|call| activated(call, U::Gelu))),
    ("DynamicQuantizeLSTM", 1, Many(dynamic_lstm::lstm)),
    ("EmbedLayerNormalization", 1, Many(embed_layer)),
    ("FastGelu", 1, One(|call| activated(call, U::GeluTanh))),
    ("FusedConv", 1, One(fused_convolution)),
    ("FusedGemm", 1, One(fused_gemm)),
    ("FusedMatMul", 1, One(fused_matmul)),
    ("GatherND", 1, One(indexing::gather_nd)),
    ("Gelu", 1, One(|call| activated(call, U::Gelu))),
    ("MatMulNBits", 1, One(quantized::matmul)),
    ("MultiHeadAttention", 1, Many(attention::multi_head)),
    ("QuickGelu", 1, One(quick_gelu)),
    ("RotaryEmbedding", 1, One(rotary_embedding)),
    ("SimplifiedLayerNormalization", 1, One(normalization::root_mean_square)),
    ("SkipLayerNormalization", 1, Many(|call| skip_layer(call, true))),
    ("SkipSimplifiedLayerNormalization", 1, Many(|call| skip_layer(call, false))),
];

/// Operators that onnxruntime puts among the standard ones.
pub(super) const UNDER_STANDARD: Table = &[("SimplifiedLayerNormalization", 1, One(normalization::root_mean_square))];

/// A function of an operand, to which a bias may be added before.
fn activated(call: &mut Call<'_, '_>, function: U) -> Result<Value, Fault> {
    let (x, bias) = (call.input(0)?, call.optional(1)?);
    let x = call.builder.add_optional(x, bias)?;
    Ok(call.builder.unary(function, x)?)
}

fn quick_gelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let alpha = call.float_or("alpha", 1.702)?;
    let scaled = call.builder.binary_number(B::Multiply, x, alpha)?;
    let gate = call.builder.unary(U::Sigmoid, scaled)?;
    Ok(call.builder.binary(B::Multiply, x, gate)?)
}

/// The activation that is fused behind an operator, with its numbers.
fn fused_activation(call: &mut Call<'_, '_>, x: Value, numbers: [Option<f64>; 2]) -> Result<Value, Fault> {
    let name = call.word("activation")?.unwrap_or("");
    let missing = || Fault::parameter(format!("the activation `{name}` needs numbers"));
    let first = numbers[0].ok_or_else(missing);
    let second = numbers[1].ok_or_else(missing);
    match name {
        "" => Ok(x),
        "Relu" => Ok(call.builder.unary(U::Relu, x)?),
        "Sigmoid" => Ok(call.builder.unary(U::Sigmoid, x)?),
        "Tanh" => Ok(call.builder.unary(U::Tanh, x)?),
        "LeakyRelu" => Ok(call.builder.apply(mlc_ir::ops::LeakyRelu { slope: mlc_ir::Float(first?) }, &[x])?),
        "Clip" => Ok(call.builder.clamp(x, first?, second?)?),
        "HardSigmoid" => {
            let scaled = call.builder.binary_number(B::Multiply, x, first?)?;
            let shifted = call.builder.binary_number(B::Add, scaled, second?)?;
            Ok(call.builder.clamp(shifted, 0.0, 1.0)?)
        }
        other => Err(Fault::variant(format!("the activation `{other}` isn't supported here"))),
    }
}

fn fused_convolution(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weights, bias) = (call.input(0)?, call.input(1)?, call.optional(2)?);
    let y = convolution::convolution_of(call, x, weights, bias)?;
    let term = call.optional(3)?;
    let y = call.builder.add_optional(y, term)?;
    let numbers = call.floats("activation_params")?.unwrap_or_default();
    fused_activation(call, y, [numbers.first().copied(), numbers.get(1).copied()])
}

fn fused_gemm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let y = linear::gemm(call)?;
    call.ignore(&["activation_gamma"]);
    let numbers = [call.float("activation_alpha")?, call.float("activation_beta")?];
    fused_activation(call, y, numbers)
}

fn fused_matmul(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (left, right) = (rows_behind_batches(call, 0, "transBatchA")?, rows_behind_batches(call, 1, "transBatchB")?);
    let (transpose_left, transpose_right) = (call.flag_or("transA", false)?, call.flag_or("transB", false)?);
    let product = if transpose_left || transpose_right {
        call.builder.apply(Matmul { transpose_left, transpose_right, sums: None }, &[left, right])?
    } else {
        call.builder.matmul(left, right)?
    };
    let alpha = call.float_or("alpha", 1.0)?;
    if alpha == 1.0 {
        return Ok(product);
    }
    Ok(call.builder.binary_number(B::Multiply, product, alpha)?)
}

/// An operand of a product; where the attribute says so, its first axis comes behind the batch axes.
fn rows_behind_batches(call: &mut Call<'_, '_>, index: usize, attribute: &'static str) -> Result<Value, Fault> {
    let x = call.input(index)?;
    let rank = call.rank(x);
    if !call.flag_or(attribute, false)? || rank < 3 {
        return Ok(x);
    }
    let permutation: Vec<usize> = (1..rank - 1).chain([0, rank - 1]).collect();
    Ok(call.builder.transpose(x, &permutation)?)
}

/// Normalises the last axis and applies a factor, and a term if there is one.
fn normalized(
    call: &mut Call<'_, '_>,
    x: Value,
    (factor, term): (Value, Option<Value>),
    center: bool,
) -> Result<Value, Fault> {
    let epsilon = call.float_or("epsilon", 1e-12)?;
    let axis = call.axis(x, -1)?;
    let width = call.shape(x)[axis];
    for part in [Some(factor), term].into_iter().flatten() {
        if call.shape(part)[..] != [width] {
            return Err(Fault::operands(format!("{} doesn't fit {}", call.builder.ty(part), call.builder.ty(x))));
        }
    }
    let y = call.builder.normalize(x, vec![axis], epsilon, center)?;
    let y = call.builder.binary(B::Multiply, y, factor)?;
    Ok(call.builder.add_optional(y, term)?)
}

/// Normalises the sum of two operands, which is a result, too.
fn skip_layer(call: &mut Call<'_, '_>, center: bool) -> Result<Vec<Item>, Fault> {
    let (x, skip, factor) = (call.input(0)?, call.input(1)?, call.input(2)?);
    let (term, bias) = if center { (call.optional(3)?, call.optional(4)?) } else { (None, call.optional(3)?) };
    if call.wants(1) || call.wants(2) {
        return Err(Fault::variant("the statistics are results for training only"));
    }
    let sum = call.builder.binary(B::Add, x, skip)?;
    let sum = call.builder.add_optional(sum, bias)?;
    if call.shape(sum) != call.shape(x) {
        return Err(Fault::operands(format!("the operands make {} of {}", call.builder.ty(sum), call.builder.ty(x))));
    }
    let y = normalized(call, sum, (factor, term), center)?;
    Ok(vec![Item::Tensor(y), Item::Absent, Item::Absent, Item::Tensor(sum)])
}

/// Sums the embeddings of words, places and segments, and normalises them.
fn embed_layer(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let (words, word_table, place_table) = (call.input(0)?, call.input(2)?, call.input(3)?);
    let (factor, term) = (call.input(5)?, call.input(6)?);
    call.ignore(&["mask_index_type"]);
    let shape = call.shape(words);
    let &[batch, length] = &shape[..] else {
        return Err(Fault::operands(format!("the words {} must have two axes", call.builder.ty(words))));
    };
    let embedded = call.builder.gather(word_table, words, 0)?;
    let places = match call.optional(8)? {
        Some(places) => call.builder.gather(place_table, places, 0)?,
        None => call.builder.slice_axis(place_table, 0, 0, length, 1)?,
    };
    let mut sum = call.builder.binary(B::Add, embedded, places)?;
    match (call.optional(1)?, call.optional(4)?) {
        (Some(segments), Some(table)) => {
            let segments = call.builder.gather(table, segments, 0)?;
            sum = call.builder.binary(B::Add, sum, segments)?;
        }
        (None, None) => {}
        _ => return Err(Fault::operands("segments and their embedding must come together")),
    }
    let y = normalized(call, sum, (factor, Some(term)), true)?;
    let lengths = match call.optional(7)? {
        Some(mask) => {
            let counts = call.builder.binary_number(B::Equal, mask, 1.0)?;
            let counts = call.builder.cast(counts, DType::I32)?;
            let op = Reduce { function: ReduceFunction::Sum, axes: vec![1], keep_axes: false };
            call.builder.apply(op, &[counts])?
        }
        None => {
            let zero = call.builder.number(DType::I32, 0.0);
            call.builder.broadcast(zero, &[batch])?
        }
    };
    Ok([y, lengths, sum].map(Item::Tensor).to_vec())
}

fn rotary_embedding(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, places) = (call.input(0)?, call.input(1)?);
    let (cosines, sines) = (call.input(2)?, call.input(3)?);
    if call.float_or("scale", 1.0)? != 1.0 || call.flag_or("is_packed_batching", false)? {
        return Err(Fault::variant("scaled or packed rotary embeddings aren't supported"));
    }
    let interleaved = call.flag_or("interleaved", false)?;
    let split = call.rank(x) == 3;
    let angles = call.shape(cosines).last().copied().unwrap_or(0);
    let width = match call.int_or("rotary_embedding_dim", 0)? {
        0 => 2 * angles,
        width => usize::try_from(width).map_err(|_| Fault::parameter("rotary_embedding_dim is negative"))?,
    };
    let x = if split {
        let features = call.shape(x)[2];
        let heads = match call.int_or("num_heads", 0)? {
            0 => features.checked_div(2 * angles).unwrap_or(0),
            heads => usize::try_from(heads).unwrap_or(0),
        };
        call.builder.split_heads(x, heads)?
    } else {
        x
    };
    let shape = call.shape(x);
    let &[batch, _, length, _] = &shape[..] else {
        return Err(Fault::operands(format!("{} must have three or four axes", call.builder.ty(x))));
    };
    // One number is the place of the first step.
    let places = if call.shape(places)[..] == [1] {
        let steps: Vec<i64> = (0..length as i64).collect();
        let steps = call.constant_of_ints(&[1, length], &steps)?;
        let places = call.builder.cast(places, DType::I64)?;
        let places = call.builder.binary(B::Add, steps, places)?;
        call.builder.broadcast(places, &[batch, length])?
    } else {
        places
    };
    let (cosines, sines) = (call.builder.gather(cosines, places, 0)?, call.builder.gather(sines, places, 0)?);
    let y = rotate(call.builder, x, (cosines, sines), Rotation { width, interleaved })?;
    Ok(if split { call.builder.merge_heads(y)? } else { y })
}
