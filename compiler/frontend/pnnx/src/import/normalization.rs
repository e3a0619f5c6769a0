//! Normalisations.

use super::call::{Call, Operands, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::{Affine, LocalResponse, Statistics};
use mlc_ir::ops::{Reduce, ReduceFunction};
use mlc_ir::scalar::BinaryFunction;
use mlc_ir::{DType, Value};

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

/// The weights of a module, or the operands of a function from the given position on.
fn affine(call: &mut Call<'_, '_>, position: usize) -> Result<Affine, Fault> {
    if call.site.operator.kind.starts_with("nn.") {
        return Ok(Affine { weight: call.optional_weight("weight")?, bias: call.optional_weight("bias")? });
    }
    call.ignore(&["weight", "bias", "running_mean", "running_var", "use_input_stats"]);
    Ok(Affine {
        weight: call.optional_labelled_input("weight", position)?,
        bias: call.optional_labelled_input("bias", position + 1)?,
    })
}

fn batch_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let epsilon = call.float_or("eps", 1e-5)?;
    let (mean, variance) = (call.weight("running_mean")?, call.weight("running_var")?);
    let affine = affine(call, 3)?;
    Ok(call.builder.stored_statistics(x, Statistics { mean, variance, epsilon }, affine)?)
}

fn functional_batch_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let epsilon = call.float_or("eps", 1e-5)?;
    let (mean, variance) = (call.labelled_input("running_mean", 1)?, call.labelled_input("running_var", 2)?);
    let affine = affine(call, 3)?;
    Ok(call.builder.stored_statistics(x, Statistics { mean, variance, epsilon }, affine)?)
}

/// The converter writes it only for calls that use the input's own statistics, which normalise; stored ones would be updated.
fn functional_instance_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let epsilon = call.float_or("eps", 1e-5)?;
    let stored = (call.labelled("running_mean", 1), call.labelled("running_var", 2));
    if !call.flag_or("use_input_stats", true)? {
        let (Some(mean), Some(variance)) = stored else {
            return Err(Fault::operands("without `use_input_stats` there must be running_mean and running_var"));
        };
        let (mean, variance) = (call.as_tensor("`running_mean`", &mean)?, call.as_tensor("`running_var`", &variance)?);
        let affine = affine(call, 3)?;
        return Ok(call.builder.stored_statistics(x, Statistics { mean, variance, epsilon }, affine)?);
    }
    let affine = affine(call, 3)?;
    let y = call.builder.normalize_groups(x, None, epsilon)?;
    Ok(call.builder.apply_affine(y, affine)?)
}

fn instance_norm(call: &mut Call<'_, '_>, spatial: usize) -> Result<Value, Fault> {
    let x = call.x()?;
    let (x, added) = super::convolution::batched(call, x, spatial)?;
    let epsilon = call.float_or("eps", 1e-5)?;
    let affine = affine(call, 3)?;
    let y = if call.flag_or("track_running_stats", false)? {
        let (mean, variance) = (call.weight("running_mean")?, call.weight("running_var")?);
        call.builder.stored_statistics(x, Statistics { mean, variance, epsilon }, affine)?
    } else {
        let y = call.builder.normalize_groups(x, None, epsilon)?;
        call.builder.apply_affine(y, affine)?
    };
    super::convolution::unbatched(call, y, added)
}

fn group_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let epsilon = call.float_or("eps", 1e-5)?;
    let groups = call.int("num_groups")?;
    let groups = call.required("num_groups", groups)?;
    call.ignore(&["num_channels"]);
    let groups = usize::try_from(groups).ok().filter(|&groups| groups > 0);
    let groups = groups.ok_or_else(|| Fault::parameter("parameter `num_groups` must be positive"))?;
    let affine = affine(call, 1)?;
    let y = call.builder.normalize_groups(x, Some(groups), epsilon)?;
    Ok(call.builder.apply_affine(y, affine)?)
}

fn layer_norm(call: &mut Call<'_, '_>, center: bool) -> Result<Value, Fault> {
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
    let y = call.builder.normalize(x, (rank - shape.len()..rank).collect(), epsilon, center)?;
    let scaled = call.builder.multiply_optional(y, affine.weight)?;
    Ok(call.builder.add_optional(scaled, affine.bias)?)
}

/// x / max(norm(x), eps)
fn normalize(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let p = call.float_or("p", 2.0)?;
    let axis = call.axis_or(x, "dim", 1)?;
    let epsilon = call.float_or("eps", 1e-12)?;
    let norm = super::reduction::norm(call, x, p, vec![axis], true)?;
    let bounded = call.builder.clamp(norm, epsilon, f64::INFINITY)?;
    Ok(call.builder.binary(BinaryFunction::Divide, x, bounded)?)
}

/// x / (k + alpha * mean of the squares of the neighbouring channels)^beta, with zeros beyond the channels.
fn local_response_norm(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let size = call.int("size")?;
    let size = call.required("size", size)?;
    let size = usize::try_from(size).ok().filter(|&size| size > 0 && size < 1 << 31);
    let size = size.ok_or_else(|| Fault::parameter("parameter `size` must be positive"))?;
    let (alpha, beta) = (call.float_or("alpha", 1e-4)?, call.float_or("beta", 0.75)?);
    let k = call.float_or("k", 1.0)?;
    let neighbours = (size / 2, (size - 1) / 2);
    Ok(call.builder.local_response(x, LocalResponse { axis: 1, neighbours, alpha, beta, bias: k })?)
}

/// Mean or sum over axes, kept with extent 1.
pub(super) fn reduced(
    call: &mut Call<'_, '_>,
    x: Value,
    function: ReduceFunction,
    axes: Vec<usize>,
    keep_axes: bool,
) -> Result<Value, Fault> {
    Ok(call.builder.apply(Reduce { function, axes, keep_axes }, &[x])?)
}
