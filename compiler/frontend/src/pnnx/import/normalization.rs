//! Normalisations. Those with stored statistics become one factor and one term per channel, computed in double precision.

use super::call::Call;
use super::registry::{Handler::One, Table};
use crate::fault::Fault;
use mlc_ir::ops::{AveragePool, Normalize, Reduce, ReduceFunction};
use mlc_ir::scalar::{BinaryFunction, UnaryFunction};
use mlc_ir::{Attribute, DType, Float, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("F.batch_norm", One(functional_batch_norm)),
    ("F.group_norm", One(group_norm)),
    ("F.instance_norm", One(functional_instance_norm)),
    ("F.layer_norm", One(|call| layer_norm(call, true))),
    ("F.local_response_norm", One(local_response_norm)),
    ("F.normalize", One(normalize)),
    ("F.rms_norm", One(|call| layer_norm(call, false))),
    ("nn.BatchNorm1d", One(batch_norm)),
    ("nn.BatchNorm2d", One(batch_norm)),
    ("nn.BatchNorm3d", One(batch_norm)),
    ("nn.GroupNorm", One(group_norm)),
    ("nn.InstanceNorm1d", One(|call| instance_norm(call, 1))),
    ("nn.InstanceNorm2d", One(|call| instance_norm(call, 2))),
    ("nn.InstanceNorm3d", One(|call| instance_norm(call, 3))),
    ("nn.LayerNorm", One(|call| layer_norm(call, true))),
    ("nn.LocalResponseNorm", One(local_response_norm)),
    ("nn.RMSNorm", One(|call| layer_norm(call, false))),
];

/// Factor and term of a normalisation, where they are there.
struct Affine {
    weight: Option<Value>,
    bias: Option<Value>,
}

/// The weights of a module, or the operands of a function from the given position on.
fn affine(call: &mut Call<'_>, position: usize) -> Result<Affine, Fault> {
    if call.operator.kind.starts_with("nn.") {
        return Ok(Affine { weight: call.optional_weight("weight")?, bias: call.optional_weight("bias")? });
    }
    call.ignore(&["weight", "bias", "running_mean", "running_var", "use_input_stats"]);
    Ok(Affine { weight: call.optional_tensor("weight", position)?, bias: call.optional_tensor("bias", position + 1)? })
}

/// Reshapes a tensor [C] so that it broadcasts along axis 1 of a tensor of this rank.
fn per_channel(call: &mut Call<'_>, value: Value, rank: usize) -> Result<Value, Fault> {
    let channels = call.builder.ty(value).elements();
    let mut shape = vec![1; rank.saturating_sub(1)];
    if let Some(first) = shape.first_mut() {
        *first = channels;
    }
    Ok(call.builder.reshape(value, &shape)?)
}

/// Multiplies and adds per channel, axis 1.
fn apply_affine(call: &mut Call<'_>, x: Value, affine: &Affine) -> Result<Value, Fault> {
    let rank = call.builder.rank(x);
    let weight = affine.weight.map(|weight| per_channel(call, weight, rank)).transpose()?;
    let bias = affine.bias.map(|bias| per_channel(call, bias, rank)).transpose()?;
    let scaled = call.builder.multiply_optional(x, weight)?;
    Ok(call.builder.add_optional(scaled, bias)?)
}

fn batch_norm(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let epsilon = call.float_or("eps", 1e-5)?;
    let (mean, variance) = (call.weight("running_mean")?, call.weight("running_var")?);
    let affine = affine(call, 3)?;
    stored_statistics(call, x, mean, variance, &affine, epsilon)
}

fn functional_batch_norm(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let epsilon = call.float_or("eps", 1e-5)?;
    let (mean, variance) = (call.tensor("running_mean", 1)?, call.tensor("running_var", 2)?);
    let affine = affine(call, 3)?;
    stored_statistics(call, x, mean, variance, &affine, epsilon)
}

/// (x - mean) / sqrt(variance + epsilon) * weight + bias, per channel.
fn stored_statistics(
    call: &mut Call<'_>,
    x: Value,
    mean: Value,
    variance: Value,
    affine: &Affine,
    epsilon: f64,
) -> Result<Value, Fault> {
    if call.builder.rank(x) < 2 {
        return Err(Fault::operands(format!("the input {} has no channel axis", call.builder.ty(x))));
    }
    let channels = call.shape(x)[1];
    let parts: Vec<Value> = [Some(mean), Some(variance), affine.weight, affine.bias].into_iter().flatten().collect();
    if let Some(&wrong) = parts.iter().find(|&&part| call.builder.ty(part).elements() != channels) {
        let (found, x) = (call.builder.ty(wrong), call.builder.ty(x));
        return Err(Fault::operands(format!("a statistic or weight {found} doesn't fit the channels of {x}")));
    }
    let constant = |value: Option<Value>, default: f64| match value {
        Some(value) => call.builder.graph().constant(value).map(|value| value.to_tensor().to_floats()),
        None => Some(vec![default; channels]),
    };
    let (weight, bias) = (constant(affine.weight, 1.0), constant(affine.bias, 0.0));
    let statistics = constant(Some(mean), 0.0).zip(constant(Some(variance), 1.0));
    if let (Some((mean, variance)), Some(weight), Some(bias)) = (statistics, weight, bias) {
        let scale: Vec<f64> =
            weight.iter().zip(&variance).map(|(weight, variance)| weight / (variance + epsilon).sqrt()).collect();
        let shift: Vec<f64> =
            bias.iter().zip(&mean).zip(&scale).map(|((bias, mean), scale)| bias - mean * scale).collect();
        let scale = float_constant(call, "scale", x, scale);
        let shift = float_constant(call, "shift", x, shift);
        return apply_affine(call, x, &Affine { weight: Some(scale), bias: Some(shift) });
    }
    let rank = call.builder.rank(x);
    let (mean, variance) = (per_channel(call, mean, rank)?, per_channel(call, variance, rank)?);
    let centred = call.builder.binary(BinaryFunction::Subtract, x, mean)?;
    let sum = call.builder.binary_number(BinaryFunction::Add, variance, epsilon)?;
    let factor = call.builder.unary(UnaryFunction::Rsqrt, sum)?;
    let scaled = call.builder.binary(BinaryFunction::Multiply, centred, factor)?;
    apply_affine(call, scaled, affine)
}

/// A constant of one axis, of the data type of `x`.
fn float_constant(call: &mut Call<'_>, key: &str, x: Value, values: Vec<f64>) -> Value {
    let dtype = call.builder.dtype(x);
    let dtype = if dtype.is_float() { dtype } else { DType::F32 };
    let ty = TensorType::new(dtype, [values.len()]);
    call.builder.constant(key, Attribute::from_tensor(&Tensor::from_floats(ty, values)))
}

fn functional_instance_norm(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let epsilon = call.float_or("eps", 1e-5)?;
    let mean = call.optional_tensor("running_mean", 1)?;
    let variance = call.optional_tensor("running_var", 2)?;
    let affine = affine(call, 3)?;
    match mean.zip(variance) {
        Some((mean, variance)) => stored_statistics(call, x, mean, variance, &affine, epsilon),
        None => {
            let y = grouped(call, x, None, epsilon)?;
            apply_affine(call, y, &affine)
        }
    }
}

fn instance_norm(call: &mut Call<'_>, spatial: usize) -> Result<Value, Fault> {
    let x = call.x()?;
    let (x, added) = super::convolution::batched(call, x, spatial)?;
    let epsilon = call.float_or("eps", 1e-5)?;
    let affine = affine(call, 3)?;
    let y = if call.flag_or("track_running_stats", false)? {
        let (mean, variance) = (call.weight("running_mean")?, call.weight("running_var")?);
        stored_statistics(call, x, mean, variance, &affine, epsilon)?
    } else {
        let y = grouped(call, x, None, epsilon)?;
        apply_affine(call, y, &affine)?
    };
    super::convolution::unbatched(call, y, added)
}

fn group_norm(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let epsilon = call.float_or("eps", 1e-5)?;
    let groups = call.int("num_groups")?;
    let groups = call.required("num_groups", groups)?;
    call.ignore(&["num_channels"]);
    let groups = usize::try_from(groups).ok().filter(|&groups| groups > 0);
    let groups = groups.ok_or_else(|| Fault::parameter("parameter `num_groups` must be positive"))?;
    let affine = affine(call, 1)?;
    let y = grouped(call, x, Some(groups), epsilon)?;
    apply_affine(call, y, &affine)
}

/// Normalises x [N, C, spatial…] over the channels of each group and all positions; without groups, over the positions.
fn grouped(call: &mut Call<'_>, x: Value, groups: Option<usize>, epsilon: f64) -> Result<Value, Fault> {
    let shape = call.shape(x);
    let fits = shape.len() >= 2 && groups.is_none_or(|groups| shape[1].is_multiple_of(groups));
    if !fits {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("the channels of the input {ty} don't split into {groups:?} groups")));
    }
    let Some(groups) = groups else {
        return normalized(call, x, (2..shape.len()).collect(), epsilon, true);
    };
    let mut split = vec![shape[0], groups, shape[1] / groups];
    split.extend_from_slice(&shape[2..]);
    let axes = (2..split.len()).collect();
    let x = call.builder.reshape(x, &split)?;
    let y = normalized(call, x, axes, epsilon, true)?;
    Ok(call.builder.reshape(y, &shape)?)
}

fn normalized(call: &mut Call<'_>, x: Value, axes: Vec<usize>, epsilon: f64, center: bool) -> Result<Value, Fault> {
    Ok(call.builder.apply(Normalize { axes, epsilon: Float(epsilon), center }, &[x])?)
}

fn layer_norm(call: &mut Call<'_>, center: bool) -> Result<Value, Fault> {
    let x = call.x()?;
    let shape = call.ints("normalized_shape")?;
    let shape = call.required("normalized_shape", shape)?;
    let dtype = call.builder.dtype(x);
    let default = match (center, dtype) {
        (true, _) => 1e-5,
        (false, DType::F64) => f64::EPSILON,
        (false, DType::F16) => 2f64.powi(-10),
        (false, DType::Bf16) => 2f64.powi(-7),
        (false, _) => f64::from(f32::EPSILON),
    };
    let epsilon = call.float_or("eps", default)?;
    call.ignore(&["elementwise_affine"]);
    let affine = affine(call, 1)?;
    let rank = call.builder.rank(x);
    let found: Vec<i64> = call.shape(x).iter().map(|&extent| extent as i64).collect();
    if !found.ends_with(&shape) {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("the last axes of the input {ty} aren't {shape:?}")));
    }
    let y = normalized(call, x, (rank - shape.len()..rank).collect(), epsilon, center)?;
    let scaled = call.builder.multiply_optional(y, affine.weight)?;
    Ok(call.builder.add_optional(scaled, affine.bias)?)
}

/// x / max(norm(x), eps)
fn normalize(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let p = call.float_or("p", 2.0)?;
    let axis = call.axis_or(x, "dim", 1)?;
    let epsilon = call.float_or("eps", 1e-12)?;
    let norm = super::reduction::norm(call, x, p, vec![axis], true)?;
    let bounded = call.builder.clamp(norm, epsilon, f64::INFINITY)?;
    Ok(call.builder.binary(BinaryFunction::Divide, x, bounded)?)
}

/// x / (k + alpha * mean of the squares of the neighbouring channels)^beta, with zeros beyond the channels.
fn local_response_norm(call: &mut Call<'_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let size = call.int("size")?;
    let size = call.required("size", size)?;
    let size = usize::try_from(size).ok().filter(|&size| size > 0 && size < 1 << 31);
    let size = size.ok_or_else(|| Fault::parameter("parameter `size` must be positive"))?;
    let (alpha, beta) = (call.float_or("alpha", 1e-4)?, call.float_or("beta", 0.75)?);
    let k = call.float_or("k", 1.0)?;
    let shape = call.shape(x);
    if shape.len() < 2 {
        return Err(Fault::operands(format!("the input {} has no channel axis", call.builder.ty(x))));
    }
    let squares = call.builder.unary(UnaryFunction::Square, x)?;
    // A pool along the channels: [N, C, everything else] is a channels-last tensor whose spatial axis is C.
    let inner: usize = shape[2..].iter().product();
    let flat = call.builder.reshape(squares, &[shape[0], shape[1], inner])?;
    let pads = vec![(size / 2, (size - 1) / 2)];
    let pool =
        AveragePool { window: vec![size], strides: vec![1], dilations: vec![1], counted_pads: pads.clone(), pads };
    let mean = call.builder.apply(pool, &[flat])?;
    let mean = call.builder.reshape(mean, &shape)?;
    let scaled = call.builder.binary_number(BinaryFunction::Multiply, mean, alpha)?;
    let sum = call.builder.binary_number(BinaryFunction::Add, scaled, k)?;
    let power = call.builder.binary_number(BinaryFunction::Power, sum, beta)?;
    Ok(call.builder.binary(BinaryFunction::Divide, x, power)?)
}

/// Mean or sum over axes, kept with extent 1.
pub(super) fn reduced(
    call: &mut Call<'_>,
    x: Value,
    function: ReduceFunction,
    axes: Vec<usize>,
    keep_axes: bool,
) -> Result<Value, Fault> {
    Ok(call.builder.apply(Reduce { function, axes, keep_axes }, &[x])?)
}
