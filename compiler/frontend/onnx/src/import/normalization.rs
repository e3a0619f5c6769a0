//! Normalisations, by stored statistics and by those of the data.

use super::call::{Call, Item, Table};
use crate::tensor::dtype_of;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::builder::{Affine, LocalResponse, Statistics};
use mlc_ir::ops::{Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    ("BatchNormalization", 1, Many(batch)),
    ("GroupNormalization", 18, One(group)),
    ("InstanceNormalization", 1, One(instance)),
    ("LRN", 1, One(local_response)),
    // onnxruntime writes it with whatever version a model has.
    ("LayerNormalization", 1, Many(layer)),
    ("LpNormalization", 1, One(unit_norm)),
    ("MeanVarianceNormalization", 9, One(mean_variance)),
    ("RMSNormalization", 23, One(root_mean_square)),
];

/// Whether statistics are those of the data. Version 7 says by the mode of the whole model what versions before say by `is_test`, 14 has `training_mode`; before
/// 14, results of training aren't supported.
fn is_training(call: &mut Call<'_, '_>) -> Result<bool, Fault> {
    let (is_training, is_supported) = match call.version() {
        ..7 => (call.int_or("is_test", 0)? == 0, false),
        7..14 => (false, false),
        _ => (call.int_or("training_mode", 0)? != 0, true),
    };
    if (is_training && !is_supported) || (!is_training && (1..call.results()).any(|result| call.wants(result))) {
        return Err(Fault::variant("statistics of a batch while training aren't supported before version 14")
            .with_help("export the model for inference, with training_mode = 0 and one result"));
    }
    Ok(is_training)
}

fn batch(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.input(0)?;
    let parts = [call.input(1)?, call.input(2)?, call.input(3)?, call.input(4)?];
    let epsilon = call.float_or("epsilon", 1e-5)?;
    let momentum = call.float_or("momentum", 0.9)?;
    call.ignore(&["consumed_inputs"]);
    let is_training = is_training(call)?;
    let per_feature = call.version() < 9 && call.int_or("spatial", 1)? == 0;
    // Since version 15 statistics may be more exact than the input; the result has the input's type.
    let dtype = call.dtype_of(x);
    let wider = |widest: DType, part: &Value| {
        let found = call.dtype_of(*part);
        if found.is_float() && found.size() > widest.size() { found } else { widest }
    };
    let widest = parts.iter().fold(dtype, wider);
    let mut cast = |part: Value| call.builder.cast(part, widest);
    let [weight, bias, mean, variance] = [cast(parts[0])?, cast(parts[1])?, cast(parts[2])?, cast(parts[3])?];
    let x = call.builder.cast(x, widest)?;
    let affine = Affine { weight: Some(weight), bias: Some(bias) };
    if is_training {
        let [y, mean, variance] = by_own_statistics(call, x, Statistics { mean, variance, epsilon }, affine, momentum)?;
        let mut stored = |value: Value, part: Value| call.builder.cast(value, call.dtype_of(part));
        let running = [stored(mean, parts[2])?, stored(variance, parts[3])?];
        let y = call.builder.cast(y, dtype)?;
        return Ok(vec![Item::Tensor(y), Item::Tensor(running[0]), Item::Tensor(running[1])]);
    }
    let statistics = Statistics { mean, variance, epsilon };
    let y = if per_feature {
        // Every place has statistics of its own: places are channels then.
        let shape = call.shape(x);
        let features: usize = shape.iter().skip(1).product();
        let flat = call.builder.reshape(x, &[shape.first().copied().unwrap_or(1), features])?;
        let y = call.builder.stored_statistics(flat, statistics, affine)?;
        call.builder.reshape(y, &shape)?
    } else {
        call.builder.stored_statistics(x, statistics, affine)?
    };
    Ok(vec![Item::Tensor(call.builder.cast(y, dtype)?)])
}

/// Normalises each channel by the mean and variance of its data; also what becomes of the statistics that are stored: so much is kept of them, the rest is those of
/// the data.
fn by_own_statistics(
    call: &mut Call<'_, '_>,
    x: Value,
    stored: Statistics,
    affine: Affine,
    momentum: f64,
) -> Result<[Value; 3], Fault> {
    let channels = channels(call, x)?;
    let mut parts = [stored.mean, stored.variance].into_iter().chain(affine.weight).chain(affine.bias);
    if let Some(part) = parts.find(|&part| call.shape(part)[..] != [channels]) {
        let found = call.builder.ty(part);
        return Err(Fault::operands(format!("a statistic or weight {found} doesn't fit {channels} channels")));
    }
    let axes: Vec<usize> = (0..call.rank(x)).filter(|&axis| axis != 1).collect();
    let normalized = call.builder.normalize(x, axes.clone(), stored.epsilon, true)?;
    let y = call.builder.apply_affine(normalized, affine)?;
    let (mean, centred) = centred(call, x, &axes)?;
    let variance = mean_of_squares(call, centred, axes)?;
    let mut moved = |own: Value, before: Value| -> Result<Value, Fault> {
        let own = call.builder.reshape(own, &[channels])?;
        let own = call.builder.binary_number(BinaryFunction::Multiply, own, 1.0 - momentum)?;
        let before = call.builder.binary_number(BinaryFunction::Multiply, before, momentum)?;
        Ok(call.builder.binary(BinaryFunction::Add, own, before)?)
    };
    Ok([y, moved(mean, stored.mean)?, moved(variance, stored.variance)?])
}

/// Checks that factor and term have an element each for so many channels or groups.
fn affine(call: &mut Call<'_, '_>, extent: usize) -> Result<Affine, Fault> {
    let (weight, bias) = (call.input(1)?, call.input(2)?);
    for part in [weight, bias] {
        if call.shape(part)[..] != [extent] {
            let found = call.builder.ty(part);
            return Err(Fault::operands(format!("scale and bias must have {extent} elements, found {found}")));
        }
    }
    Ok(Affine { weight: Some(weight), bias: Some(bias) })
}

fn channels(call: &Call<'_, '_>, x: Value) -> Result<usize, Fault> {
    call.shape(x)
        .get(1)
        .copied()
        .ok_or_else(|| Fault::operands(format!("the input {} has no channel axis", call.builder.ty(x))))
}

fn instance(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let channels = channels(call, x)?;
    let affine = affine(call, channels)?;
    let epsilon = call.float_or("epsilon", 1e-5)?;
    call.ignore(&["consumed_inputs"]);
    let y = call.builder.normalize_groups(x, None, epsilon)?;
    Ok(call.builder.apply_affine(y, affine)?)
}

/// Version 18 has a factor and a term for each group, 21 for each channel.
fn group(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let groups = call.int("num_groups")?;
    let groups = call.required("num_groups", groups)?;
    let groups = usize::try_from(groups).ok().filter(|&groups| groups > 0);
    let groups = groups.ok_or_else(|| Fault::parameter("attribute `num_groups` must be positive"))?;
    let epsilon = call.float_or("epsilon", 1e-5)?;
    let channels = channels(call, x)?;
    stash_type(call)?;
    let affine = affine(call, if call.version() < 21 { groups } else { channels })?;
    let shape = call.shape(x);
    let y = call.builder.normalize_groups(x, Some(groups), epsilon)?;
    if call.version() >= 21 {
        return Ok(call.builder.apply_affine(y, affine)?);
    }
    let split = [&[shape[0], groups, channels / groups], &shape[2..]].concat();
    let y = call.builder.reshape(y, &split)?;
    let y = call.builder.apply_affine(y, affine)?;
    Ok(call.builder.reshape(y, &shape)?)
}

/// The type of statistics. They are computed at least as exactly.
fn stash_type(call: &mut Call<'_, '_>) -> Result<DType, Fault> {
    match dtype_of(call.int_or("stash_type", 1)?)? {
        dtype if dtype.is_float() => Ok(dtype),
        dtype => Err(Fault::parameter(format!("attribute `stash_type` must be a floating-point type, found {dtype}"))),
    }
}

/// Checks that factor or term broadcasts to x.
fn broadcasts(call: &Call<'_, '_>, part: Option<Value>, x: Value) -> Result<(), Fault> {
    let shape = call.shape(x);
    let Some(part) = part else { return Ok(()) };
    let found = call.shape(part);
    let fits = found.len() <= shape.len()
        && found.iter().rev().zip(shape.iter().rev()).all(|(&own, &extent)| own == extent || own == 1);
    if fits {
        Ok(())
    } else {
        Err(Fault::operands(format!("{} doesn't broadcast to {}", call.builder.ty(part), call.builder.ty(x))))
    }
}

fn trailing_axes(call: &mut Call<'_, '_>, x: Value) -> Result<Vec<usize>, Fault> {
    let first = call.axis_or(x, "axis", -1)?;
    Ok((first..call.rank(x)).collect())
}

fn layer(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let (x, weight, bias) = (call.input(0)?, call.input(1)?, call.optional(2)?);
    let epsilon = call.float_or("epsilon", 1e-5)?;
    let stash = stash_type(call)?;
    let axes = trailing_axes(call, x)?;
    broadcasts(call, Some(weight), x)?;
    broadcasts(call, bias, x)?;
    let normalized = call.builder.normalize(x, axes.clone(), epsilon, true)?;
    let scaled = call.builder.binary(BinaryFunction::Multiply, normalized, weight)?;
    let y = call.builder.add_optional(scaled, bias)?;
    let mut results = vec![Item::Tensor(y), Item::Absent, Item::Absent];
    if call.wants(1) || call.wants(2) {
        let x = call.builder.cast(x, stash)?;
        let (mean, centred) = centred(call, x, &axes)?;
        let variance = mean_of_squares(call, centred, axes)?;
        let sum = call.builder.binary_number(BinaryFunction::Add, variance, epsilon)?;
        results[1] = Item::Tensor(mean);
        results[2] = Item::Tensor(call.builder.unary(UnaryFunction::Rsqrt, sum)?);
    }
    Ok(results)
}

/// The mean, and what is left without it.
fn centred(call: &mut Call<'_, '_>, x: Value, axes: &[usize]) -> Result<(Value, Value), Fault> {
    let axes = axes.to_vec();
    let mean = call.builder.apply(Reduce { function: ReduceFunction::Mean, axes, keep_axes: true }, &[x])?;
    Ok((mean, call.builder.binary(BinaryFunction::Subtract, x, mean)?))
}

fn mean_of_squares(call: &mut Call<'_, '_>, x: Value, axes: Vec<usize>) -> Result<Value, Fault> {
    let squares = call.builder.unary(UnaryFunction::Square, x)?;
    Ok(call.builder.apply(Reduce { function: ReduceFunction::Mean, axes, keep_axes: true }, &[squares])?)
}

pub(super) fn root_mean_square(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, weight) = (call.input(0)?, call.input(1)?);
    let epsilon = call.float_or("epsilon", 1e-5)?;
    stash_type(call)?;
    let axes = trailing_axes(call, x)?;
    broadcasts(call, Some(weight), x)?;
    let normalized = call.builder.normalize(x, axes, epsilon, false)?;
    let weight_type = call.dtype_of(weight);
    let normalized = call.builder.cast(normalized, weight_type)?;
    Ok(call.builder.binary(BinaryFunction::Multiply, normalized, weight)?)
}

/// x / norm(x), and 0 where the norm is.
fn unit_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axes = vec![call.axis_or(x, "axis", -1)?];
    let sum = Reduce { function: ReduceFunction::Sum, axes, keep_axes: true };
    let norm = match call.int_or("p", 2)? {
        1 => {
            let magnitudes = call.builder.unary(UnaryFunction::Absolute, x)?;
            call.builder.apply(sum, &[magnitudes])?
        }
        2 => {
            let squares = call.builder.unary(UnaryFunction::Square, x)?;
            let sum = call.builder.apply(sum, &[squares])?;
            call.builder.unary(UnaryFunction::Sqrt, sum)?
        }
        p => return Err(Fault::parameter(format!("attribute `p` must be 1 or 2, found {p}"))),
    };
    let zero = call.builder.number(call.dtype_of(x), 0.0);
    let vanishes = call.builder.binary(BinaryFunction::Equal, norm, zero)?;
    let quotient = call.builder.binary(BinaryFunction::Divide, x, norm)?;
    Ok(call.builder.select(vanishes, zero, quotient)?)
}

/// (x - mean) / (deviation + 1e-9)
fn mean_variance(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axes = call.ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let axes = call.axes(x, &axes)?;
    let (_, centred) = centred(call, x, &axes)?;
    let variance = mean_of_squares(call, centred, axes)?;
    let deviation = call.builder.unary(UnaryFunction::Sqrt, variance)?;
    let divisor = call.builder.binary_number(BinaryFunction::Add, deviation, 1e-9)?;
    Ok(call.builder.binary(BinaryFunction::Divide, centred, divisor)?)
}

fn local_response(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let size = call.int("size")?;
    let size = call.required("size", size)?;
    let size = usize::try_from(size).ok().filter(|&size| size > 0 && size < 1 << 31);
    let size = size.ok_or_else(|| Fault::parameter("attribute `size` must be positive"))?;
    let (alpha, beta) = (call.float_or("alpha", 1e-4)?, call.float_or("beta", 0.75)?);
    let bias = call.float_or("bias", 1.0)?;
    let neighbours = ((size - 1) / 2, size / 2);
    Ok(call.builder.local_response(x, LocalResponse { axis: 1, neighbours, alpha, beta, bias })?)
}
