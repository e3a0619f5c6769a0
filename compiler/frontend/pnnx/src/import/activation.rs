//! Activation functions, as modules and as functions, and what does nothing at inference.

use super::arithmetic::unary;
use super::call::{Call, Operands, Table};
use super::item::Item;
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::ops::{Celu, Elu, LeakyRelu, Softmax};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{DType, Float, Value};

pub(super) const OPERATORS: Table = &[
    ("F.alpha_dropout", One(identity)),
    ("F.celu", One(celu)),
    ("F.dropout", One(identity)),
    ("F.dropout2d", One(identity)),
    ("F.dropout3d", One(identity)),
    ("F.elu", One(elu)),
    ("F.feature_alpha_dropout", One(identity)),
    ("F.gelu", One(gelu)),
    ("F.glu", One(glu)),
    ("F.hardshrink", One(hardshrink)),
    ("F.hardsigmoid", One(|call| function(call, U::HardSigmoid))),
    ("F.hardswish", One(|call| function(call, U::HardSwish))),
    ("F.hardtanh", One(hardtanh)),
    ("F.leaky_relu", One(leaky_relu)),
    ("F.log_softmax", One(|call| softmax(call, true))),
    ("F.logsigmoid", One(|call| function(call, U::LogSigmoid))),
    ("F.mish", One(|call| function(call, U::Mish))),
    ("F.prelu", One(prelu)),
    ("F.relu", One(|call| function(call, U::Relu))),
    ("F.relu6", One(|call| function(call, U::Relu6))),
    ("F.rrelu", One(rrelu)),
    ("F.selu", One(selu)),
    ("F.sigmoid", One(|call| function(call, U::Sigmoid))),
    ("F.silu", One(|call| function(call, U::Silu))),
    ("F.softmax", One(|call| softmax(call, false))),
    ("F.softmin", One(softmin)),
    ("F.softplus", One(softplus)),
    ("F.softshrink", One(softshrink)),
    ("F.softsign", One(|call| function(call, U::Softsign))),
    ("F.tanh", One(|call| function(call, U::Tanh))),
    ("F.tanhshrink", One(tanhshrink)),
    ("F.threshold", One(threshold)),
    ("nn.AlphaDropout", One(identity)),
    ("nn.CELU", One(celu)),
    ("nn.Dropout", One(identity)),
    ("nn.Dropout1d", One(identity)),
    ("nn.Dropout2d", One(identity)),
    ("nn.Dropout3d", One(identity)),
    ("nn.ELU", One(elu)),
    ("nn.FeatureAlphaDropout", One(identity)),
    ("nn.GELU", One(gelu)),
    ("nn.GLU", One(glu)),
    ("nn.Hardshrink", One(hardshrink)),
    ("nn.Hardsigmoid", One(|call| function(call, U::HardSigmoid))),
    ("nn.Hardswish", One(|call| function(call, U::HardSwish))),
    ("nn.Hardtanh", One(hardtanh)),
    ("nn.Identity", One(identity)),
    ("nn.LeakyReLU", One(leaky_relu)),
    ("nn.LogSigmoid", One(|call| function(call, U::LogSigmoid))),
    ("nn.LogSoftmax", One(|call| softmax(call, true))),
    ("nn.Mish", One(|call| function(call, U::Mish))),
    ("nn.PReLU", One(prelu)),
    ("nn.RReLU", One(rrelu)),
    ("nn.ReLU", One(|call| function(call, U::Relu))),
    ("nn.ReLU6", One(|call| function(call, U::Relu6))),
    ("nn.SELU", One(selu)),
    ("nn.SiLU", One(|call| function(call, U::Silu))),
    ("nn.Sigmoid", One(|call| function(call, U::Sigmoid))),
    ("nn.Softmax", One(|call| softmax(call, false))),
    ("nn.Softmax2d", One(softmax2d)),
    ("nn.Softmin", One(softmin)),
    ("nn.Softplus", One(softplus)),
    ("nn.Softshrink", One(softshrink)),
    ("nn.Softsign", One(|call| function(call, U::Softsign))),
    ("nn.Tanh", One(|call| function(call, U::Tanh))),
    ("nn.Tanhshrink", One(tanhshrink)),
    ("nn.Threshold", One(threshold)),
];

fn identity(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    call.ignore(&["p"]);
    refuse_training(call)?;
    call.x()
}

fn refuse_training(call: &mut Call<'_, '_>) -> Result<(), Fault> {
    if call.flag_or("training", false)? {
        return Err(random());
    }
    Ok(())
}

/// Why what drops elements is refused.
pub(super) fn random() -> Fault {
    Fault::variant("in training mode its result is random").with_help("export the model after `model.eval()`")
}

fn function(call: &mut Call<'_, '_>, function: U) -> Result<Value, Fault> {
    let x = call.x()?;
    float_unary(call, function, x)
}

fn float_unary(call: &mut Call<'_, '_>, function: U, x: Value) -> Result<Value, Fault> {
    match unary(call.builder, function, &Item::Tensor(x))? {
        Item::Tensor(y) => Ok(y),
        _ => Ok(x),
    }
}

fn celu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let alpha = Float(call.float_or("alpha", 1.0)?);
    Ok(call.builder.apply(Celu { alpha }, &[x])?)
}

fn elu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let alpha = Float(call.float_or("alpha", 1.0)?);
    Ok(call.builder.apply(Elu { alpha }, &[x])?)
}

fn gelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    match call.word("approximate")?.as_deref() {
        None | Some("none") => function(call, U::Gelu),
        Some("tanh") => function(call, U::GeluTanh),
        Some(other) => Err(Fault::variant(format!("there is no approximation {other} of gelu"))),
    }
}

fn glu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = call.axis_or(x, "dim", -1)?;
    let extent = call.shape(x)[axis];
    if !extent.is_multiple_of(2) {
        return Err(Fault::operands(format!("axis {axis} of the input {} has no halves", call.builder.ty(x))));
    }
    let halves = call.builder.split(x, axis, &[extent / 2; 2])?;
    let gate = call.builder.unary(U::Sigmoid, halves[1])?;
    Ok(call.builder.binary(B::Multiply, halves[0], gate)?)
}

fn hardshrink(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let lambda = call.float_or("lambd", 0.5)?;
    let dtype = call.builder.dtype(x);
    Ok(call.builder.map(&[x], |b| {
        let x = b.operand(0);
        let (zero, low, high) = (b.number(dtype, 0.0), b.number(dtype, -lambda), b.number(dtype, lambda));
        let (above_low, below_high) = (b.binary(B::GreaterEqual, x, low), b.binary(B::LessEqual, x, high));
        let inside = b.binary(B::And, above_low, below_high);
        b.select(inside, zero, x)
    })?)
}

fn hardtanh(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (low, high) = (call.float_or("min_val", -1.0)?, call.float_or("max_val", 1.0)?);
    Ok(call.builder.clamp(x, low, high)?)
}

fn leaky(call: &mut Call<'_, '_>, x: Value, slope: f64) -> Result<Value, Fault> {
    Ok(call.builder.apply(LeakyRelu { slope: Float(slope) }, &[x])?)
}

fn leaky_relu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let slope = call.float_or("negative_slope", 0.01)?;
    leaky(call, x, slope)
}

fn rrelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    refuse_training(call)?;
    let (lower, upper) = (call.float_or("lower", 1.0 / 8.0)?, call.float_or("upper", 1.0 / 3.0)?);
    leaky(call, x, (lower + upper) / 2.0)
}

fn prelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    call.ignore(&["num_parameters"]);
    let slope =
        if call.site.operator.kind == "nn.PReLU" { call.weight("weight")? } else { call.labelled_input("weight", 1)? };
    let count = call.builder.ty(slope).elements();
    if count == 1 {
        let single = call.host_number(Item::Tensor(slope)).float();
        if let Some(slope) = single {
            return leaky(call, x, slope);
        }
    }
    let rank = call.builder.rank(x);
    let channels = if rank >= 2 { call.shape(x)[1] } else { 1 };
    if count != 1 && count != channels {
        let ty = call.builder.ty(x);
        return Err(Fault::operands(format!("{count} slopes don't fit the channels of the input {ty}")));
    }
    let mut shape = vec![1; rank.saturating_sub(1)];
    if let Some(first) = shape.first_mut() {
        *first = count;
    }
    let slope = call.builder.reshape(slope, &shape)?;
    let dtype = call.builder.dtype(x);
    Ok(call.builder.map(&[x, slope], |b| {
        let (x, slope, zero) = (b.operand(0), b.operand(1), b.number(dtype, 0.0));
        let negative = b.binary(B::Less, x, zero);
        let scaled = b.binary(B::Multiply, x, slope);
        b.select(negative, scaled, x)
    })?)
}

fn selu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    // The constants with which unit variance is a fixed point (Klambauer et al., 2017).
    let y = call.builder.apply(Elu { alpha: Float(1.673_263_242_354_377_2) }, &[x])?;
    Ok(call.builder.binary_number(B::Multiply, y, 1.050_700_987_355_480_5)?)
}

fn softmax(call: &mut Call<'_, '_>, logarithm: bool) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = call.int("dim")?;
    let axis = call.required("dim", axis)?;
    let x = match call.dtype("dtype")? {
        Some(dtype) => call.builder.cast(x, dtype)?,
        None => x,
    };
    let axis = call.axis(x, axis)?;
    Ok(call.builder.apply(Softmax { axis, logarithm }, &[x])?)
}

fn softmax2d(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = call.axis(x, -3)?;
    Ok(call.builder.apply(Softmax { axis, logarithm: false }, &[x])?)
}

fn softmin(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let axis = call.int("dim")?;
    let axis = call.required("dim", axis)?;
    let axis = call.axis(x, axis)?;
    let negated = call.builder.unary(U::Negate, x)?;
    Ok(call.builder.apply(Softmax { axis, logarithm: false }, &[negated])?)
}

fn softplus(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (beta, threshold) = (call.float_or("beta", 1.0)?, call.float_or("threshold", 20.0)?);
    let dtype = call.builder.dtype(x);
    // From 20 on, softplus and the identity agree in single precision, so that the threshold can't be seen.
    if beta == 1.0 && threshold >= 20.0 && dtype != DType::F64 {
        return float_unary(call, U::Softplus, x);
    }
    Ok(call.builder.map(&[x], |b| {
        let (x, beta, threshold) = (b.operand(0), b.number(dtype, beta), b.number(dtype, threshold));
        let scaled = b.binary(B::Multiply, x, beta);
        let above = b.binary(B::Greater, scaled, threshold);
        let smooth = b.unary(U::Softplus, scaled);
        let smooth = b.binary(B::Divide, smooth, beta);
        b.select(above, x, smooth)
    })?)
}

fn softshrink(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let lambda = call.float_or("lambd", 0.5)?;
    let dtype = call.builder.dtype(x);
    Ok(call.builder.map(&[x], |b| {
        let x = b.operand(0);
        let (zero, low, high) = (b.number(dtype, 0.0), b.number(dtype, -lambda), b.number(dtype, lambda));
        let above = b.binary(B::Greater, x, high);
        let below = b.binary(B::Less, x, low);
        let (lowered, raised) = (b.binary(B::Subtract, x, high), b.binary(B::Add, x, high));
        let inner = b.select(below, raised, zero);
        b.select(above, lowered, inner)
    })?)
}

fn tanhshrink(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let tanh = call.builder.unary(U::Tanh, x)?;
    Ok(call.builder.binary(B::Subtract, x, tanh)?)
}

fn threshold(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.x()?;
    let (threshold, value) = (call.float("threshold")?, call.float("value")?);
    let (threshold, value) = (call.required("threshold", threshold)?, call.required("value", value)?);
    let dtype = call.builder.dtype(x);
    Ok(call.builder.map(&[x], |b| {
        let (x, threshold, value) = (b.operand(0), b.number(dtype, threshold), b.number(dtype, value));
        let low = b.binary(B::LessEqual, x, threshold);
        b.select(low, value, x)
    })?)
}
