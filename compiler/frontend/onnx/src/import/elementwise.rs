//! Functions of each element, activations, and what does nothing at inference.

use super::call::{Call, Item, Table};
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_ir::ops::{Celu, Elu, LeakyRelu};
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Float, Literal, Value};

pub(super) const OPERATORS: Table = &[
    ("Abs", 1, One(|call| function(call, U::Absolute))),
    ("Acos", 7, One(|call| function(call, U::Acos))),
    ("Acosh", 9, One(|call| function(call, U::Acosh))),
    ("Asin", 7, One(|call| function(call, U::Asin))),
    ("Asinh", 9, One(|call| function(call, U::Asinh))),
    ("Atan", 7, One(|call| function(call, U::Atan))),
    ("Atanh", 9, One(|call| function(call, U::Atanh))),
    ("BitwiseNot", 18, One(bitwise_not)),
    ("Ceil", 1, One(|call| function(call, U::Ceil))),
    ("Celu", 12, One(celu)),
    ("Clip", 1, One(clip)),
    ("Cos", 7, One(|call| function(call, U::Cos))),
    ("Cosh", 9, One(|call| function(call, U::Cosh))),
    ("Dropout", 1, Many(dropout)),
    ("Elu", 1, One(elu)),
    ("Erf", 9, One(|call| function(call, U::Erf))),
    ("Exp", 1, One(|call| function(call, U::Exp))),
    ("Floor", 1, One(|call| function(call, U::Floor))),
    ("Gelu", 20, One(gelu)),
    ("HardSigmoid", 1, One(hard_sigmoid)),
    ("HardSwish", 14, One(|call| function(call, U::HardSwish))),
    ("LeakyRelu", 1, One(leaky_relu)),
    ("Log", 1, One(|call| function(call, U::Log))),
    ("Mish", 18, One(|call| function(call, U::Mish))),
    ("Neg", 1, One(|call| function(call, U::Negate))),
    ("Not", 1, One(not)),
    ("PRelu", 1, One(prelu)),
    ("Reciprocal", 1, One(|call| function(call, U::Reciprocal))),
    ("Relu", 1, One(|call| function(call, U::Relu))),
    ("Round", 11, One(|call| function(call, U::Round))),
    ("Selu", 1, One(selu)),
    ("Shrink", 9, One(shrink)),
    ("Sigmoid", 1, One(|call| function(call, U::Sigmoid))),
    ("Sign", 9, One(|call| function(call, U::Sign))),
    ("Sin", 7, One(|call| function(call, U::Sin))),
    ("Sinh", 9, One(|call| function(call, U::Sinh))),
    ("Softplus", 1, One(|call| function(call, U::Softplus))),
    ("Softsign", 1, One(|call| function(call, U::Softsign))),
    ("Sqrt", 1, One(|call| function(call, U::Sqrt))),
    ("Swish", 24, One(swish)),
    ("Tan", 7, One(|call| function(call, U::Tan))),
    ("Tanh", 1, One(|call| function(call, U::Tanh))),
    ("ThresholdedRelu", 10, One(thresholded_relu)),
];

/// The operand. What versions 1 to 5 say about memory doesn't count.
fn operand(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    call.ignore(&["consumed_inputs"]);
    call.input(0)
}

fn function(call: &mut Call<'_, '_>, function: U) -> Result<Value, Fault> {
    let x = operand(call)?;
    Ok(call.builder.unary(function, x)?)
}

/// The operand, which must hold floats.
fn float_operand(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = operand(call)?;
    if !call.dtype_of(x).is_float() {
        return Err(Fault::operands(format!("the operand must hold floats, found {}", call.builder.ty(x))));
    }
    Ok(x)
}

/// A number attribute with its default, which the standard gives in single precision.
pub(super) fn single_or(call: &mut Call<'_, '_>, key: &'static str, default: f32) -> Result<f64, Fault> {
    call.float_or(key, f64::from(default))
}

/// An expression of the elements of one float tensor.
fn activation(
    call: &mut Call<'_, '_>,
    body: impl FnOnce(&mut ExpressionBuilder, ScalarId, DType) -> ScalarId,
) -> Result<Value, Fault> {
    let x = float_operand(call)?;
    let dtype = call.dtype_of(x);
    Ok(call.builder.map(&[x], |b| {
        let x = b.operand(0);
        body(b, x, dtype)
    })?)
}

fn not(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    if call.dtype_of(x) != DType::Bool {
        return Err(Fault::operands(format!("the operand must hold bools, found {}", call.builder.ty(x))));
    }
    Ok(call.builder.unary(U::Not, x)?)
}

fn bitwise_not(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    if !call.dtype_of(x).is_integer() {
        return Err(Fault::operands(format!("the operand must hold integers, found {}", call.builder.ty(x))));
    }
    Ok(call.builder.unary(U::Not, x)?)
}

fn celu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = float_operand(call)?;
    let alpha = Float(single_or(call, "alpha", 1.0)?);
    Ok(call.builder.apply(Celu { alpha }, &[x])?)
}

fn elu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = float_operand(call)?;
    let alpha = Float(single_or(call, "alpha", 1.0)?);
    Ok(call.builder.apply(Elu { alpha }, &[x])?)
}

fn selu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = float_operand(call)?;
    // Until version 6 the defaults have four decimals only.
    let (alpha, gamma) = if call.version() < 6 { (1.6732, 1.0507) } else { (1.673_263_2, 1.050_701) };
    let (alpha, gamma) = (Float(single_or(call, "alpha", alpha)?), single_or(call, "gamma", gamma)?);
    let y = call.builder.apply(Elu { alpha }, &[x])?;
    Ok(call.builder.binary_number(B::Multiply, y, gamma)?)
}

fn leaky_relu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = float_operand(call)?;
    let slope = Float(single_or(call, "alpha", 0.01)?);
    Ok(call.builder.apply(LeakyRelu { slope }, &[x])?)
}

/// The slope broadcasts; before version 7 it belongs to axis 1.
fn prelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, mut slope) = (operand(call)?, call.input(1)?);
    let (dtype, rank) = (call.dtype_of(x), call.rank(x));
    if let Some(Literal::Float(_, single)) = call.builder.graph().constant(slope).and_then(Attribute::splat)
        && call.builder.broadcasts_to(slope, &call.shape(x))
    {
        return Ok(call.builder.apply(LeakyRelu { slope: single }, &[x])?);
    }
    if call.version() < 7 && call.rank(slope) == 1 && call.shape(slope)[0] != 1 {
        let mut shape = vec![1; rank.saturating_sub(1)];
        if let Some(channels) = shape.first_mut() {
            *channels = call.shape(slope)[0];
        }
        slope = call.builder.reshape(slope, &shape)?;
    }
    let y = call.builder.map(&[x, slope], |b| {
        let (x, slope, zero) = (b.operand(0), b.operand(1), b.number(dtype, 0.0));
        let negative = b.binary(B::Less, x, zero);
        let scaled = b.binary(B::Multiply, x, slope);
        b.select(negative, scaled, x)
    })?;
    if call.shape(y) != call.shape(x) {
        let (slope, x) = (call.builder.ty(slope), call.builder.ty(x));
        return Err(Fault::operands(format!("the slope {slope} is larger than the input {x}")));
    }
    Ok(y)
}

fn gelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    match call.word("approximate")? {
        None | Some("none") => function(call, U::Gelu),
        Some("tanh") => function(call, U::GeluTanh),
        Some(other) => Err(Fault::variant(format!("there is no approximation {other} of gelu"))),
    }
}

/// max(0, min(1, alpha * x + beta))
fn hard_sigmoid(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (alpha, beta) = (single_or(call, "alpha", 0.2)?, single_or(call, "beta", 0.5)?);
    activation(call, |b, x, dtype| {
        let (alpha, beta) = (b.number(dtype, alpha), b.number(dtype, beta));
        let (zero, one) = (b.number(dtype, 0.0), b.number(dtype, 1.0));
        let scaled = b.binary(B::Multiply, x, alpha);
        let shifted = b.binary(B::Add, scaled, beta);
        let low = b.binary(B::Maximum, shifted, zero);
        b.binary(B::Minimum, low, one)
    })
}

fn swish(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let alpha = single_or(call, "alpha", 1.0)?;
    if alpha == 1.0 {
        return function(call, U::Silu);
    }
    activation(call, |b, x, dtype| {
        let alpha = b.number(dtype, alpha);
        let scaled = b.binary(B::Multiply, x, alpha);
        let gate = b.unary(U::Sigmoid, scaled);
        b.binary(B::Multiply, x, gate)
    })
}

fn thresholded_relu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let alpha = single_or(call, "alpha", 1.0)?;
    activation(call, |b, x, dtype| {
        let (alpha, zero) = (b.number(dtype, alpha), b.number(dtype, 0.0));
        let above = b.binary(B::Greater, x, alpha);
        b.select(above, x, zero)
    })
}

/// x + bias below -lambda, x - bias above lambda, 0 between.
fn shrink(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (lambda, bias) = (single_or(call, "lambd", 0.5)?, single_or(call, "bias", 0.0)?);
    let x = call.input(0)?;
    let dtype = call.dtype_of(x);
    let whole = !dtype.is_float();
    if whole && bias.fract() != 0.0 {
        return Err(Fault::variant(format!("a bias of {bias} doesn't fit the input {}", call.builder.ty(x))));
    }
    // A whole number is above 1.5 when it is above 1, and below -1.5 when it is below -1.
    let (low, high) = if whole { ((-lambda).ceil(), lambda.floor()) } else { (-lambda, lambda) };
    Ok(call.builder.map(&[x], |b| {
        let x = b.operand(0);
        let (low, high) = (b.number(dtype, low), b.number(dtype, high));
        let (zero, bias) = (b.number(dtype, 0.0), b.number(dtype, bias));
        let (below, above) = (b.binary(B::Less, x, low), b.binary(B::Greater, x, high));
        let (raised, lowered) = (b.binary(B::Add, x, bias), b.binary(B::Subtract, x, bias));
        let outer = b.select(above, lowered, zero);
        b.select(below, raised, outer)
    })?)
}

/// Limits are attributes before version 11, and operands since.
fn clip(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = operand(call)?;
    if call.version() < 11 {
        let (low, high) = (call.float("min")?, call.float("max")?);
        return Ok(call.builder.clamp(x, low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY))?);
    }
    let (low, high) = (limit(call, 1)?, limit(call, 2)?);
    let (known_low, known_high) = (number(call, low, f64::NEG_INFINITY), number(call, high, f64::INFINITY));
    if let (Some(low), Some(high)) = (known_low, known_high)
        && call.dtype_of(x).is_float()
    {
        return Ok(call.builder.clamp(x, low, high)?);
    }
    let mut y = x;
    for (limit, function) in [(low, B::Maximum), (high, B::Minimum)] {
        if let Some(limit) = limit {
            y = call.builder.binary(function, y, limit)?;
        }
    }
    Ok(y)
}

/// A limit as a tensor of rank 0.
fn limit(call: &mut Call<'_, '_>, index: usize) -> Result<Option<Value>, Fault> {
    let Some(limit) = call.optional(index)? else { return Ok(None) };
    if call.builder.ty(limit).elements() != 1 {
        let ty = call.builder.ty(limit);
        return Err(Fault::operands(format!("a limit must be one number, operand {index} is {ty}")));
    }
    Ok(Some(call.builder.reshape(limit, &[])?))
}

/// A limit's value, or what stands for none; `None` while it isn't known.
fn number(call: &Call<'_, '_>, limit: Option<Value>, absent: f64) -> Option<f64> {
    match limit {
        None => Some(absent),
        Some(limit) => call.builder.graph().constant(limit).and_then(Attribute::splat).map(Literal::to_f64),
    }
}

/// Nothing is dropped at inference, nor at a ratio of 0; the mask says that everything is kept.
fn dropout(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = operand(call)?;
    call.ignore(&["is_test", "ratio", "seed"]);
    if call.version() >= 12 {
        let ratio = call.optional(1)?;
        let drops = number(call, ratio, 0.5) != Some(0.0);
        let training = call.constant(2, "training_mode")?;
        if drops && training.is_some_and(|training| training.to_tensor().to_integers().contains(&1)) {
            return Err(
                Fault::variant("in training mode its result is random").with_help("export the model for inference")
            );
        }
    }
    if !call.wants(1) {
        return Ok(vec![Item::Tensor(x)]);
    }
    let dtype = if call.version() < 10 { call.dtype_of(x) } else { DType::Bool };
    let kept = call.builder.number(dtype, 1.0);
    let shape = call.shape(x);
    let mask = call.builder.broadcast(kept, &shape)?;
    Ok(vec![Item::Tensor(x), Item::Tensor(mask)])
}
