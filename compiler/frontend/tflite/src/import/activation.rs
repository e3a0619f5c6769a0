//! Functions of each element. Of quantised tensors some are computed with integers, others with the real number that an integer
//! stands for, in a table of all of them.

use super::call::{Activation, Affine, Call, Table, Tensors};
use mlc_import::Fault;
use mlc_import::Handler::{One, Unary};
use mlc_import::builder::Stored;
use mlc_import::builder::fixed_point::{
    Factor, limited, logistic, multiplied, plus, rounded_right, saturated_short, shifted_left, short_product, tanh,
    whole,
};
use mlc_ir::ops::{Elu, LeakyRelu};
use mlc_ir::scalar::{BinaryFunction as B, ExpressionBuilder, ScalarId, UnaryFunction as U};
use mlc_ir::{DType, Float, Value};

pub(super) const OPERATORS: Table = &[
    ("ABS", One(absolute)),
    ("CEIL", Unary(U::Ceil)),
    ("COS", Unary(U::Cos)),
    ("ELU", One(elu)),
    ("EXP", One(|call| real_function(call, U::Exp))),
    ("FLOOR", Unary(U::Floor)),
    ("GELU", One(gelu)),
    ("HARD_SWISH", One(hard_swish)),
    ("LEAKY_RELU", One(leaky_relu)),
    ("LOG", One(|call| real_function(call, U::Log))),
    ("LOGICAL_NOT", Unary(U::Not)),
    ("LOGISTIC", One(|call| saturating(call, Curve::Logistic))),
    ("NEG", One(negative)),
    ("PRELU", One(prelu)),
    ("RELU", One(|call| limiting(call, Activation::Relu))),
    ("RELU6", One(|call| limiting(call, Activation::Relu6))),
    ("RELU_N1_TO_1", One(|call| limiting(call, Activation::ReluN1To1))),
    ("ROUND", Unary(U::Round)),
    ("RSQRT", One(|call| real_function(call, U::Rsqrt))),
    ("SIGN", Unary(U::Sign)),
    ("SIN", Unary(U::Sin)),
    ("SQRT", One(|call| real_function(call, U::Sqrt))),
    ("SQUARE", One(|call| real_function(call, U::Square))),
    ("TANH", One(|call| saturating(call, Curve::Tanh))),
];

/// A quantised operand and its result.
struct Single {
    x: Value,
    own: Affine,
    result: Affine,
    stored: Stored,
}

impl Single {
    /// `None` where the operand holds numbers that stand for themselves.
    fn read(call: &mut Call<'_, '_>) -> Result<Option<Self>, Fault> {
        let x = call.input(0)?;
        if !call.is_quantized() {
            return Ok(None);
        }
        let (own, result) = (call.operand_affine(0)?, call.result_affine(0)?);
        Ok(Some(Single { x, own, result, stored: call.stored()? }))
    }

    /// The quotient of both scales in single precision.
    fn ratio(&self) -> Result<Factor, Fault> {
        Factor::of((self.own.scale / self.result.scale).into())
    }
}

fn limiting(call: &mut Call<'_, '_>, activation: Activation) -> Result<Value, Fault> {
    let Some(single) = Single::read(call)? else {
        let x = call.input(0)?;
        return Ok(match activation {
            Activation::Relu => call.builder.unary(U::Relu, x)?,
            Activation::ReluN1To1 => call.builder.clamp(x, -1.0, 1.0)?,
            _ => call.builder.unary(U::Relu6, x)?,
        });
    };
    let factor = single.ratio()?;
    let stored = activation.stored(single.stored.dtype, single.result)?;
    call.builder.integer_function(single.x, |b, x| {
        let x = plus(b, x, -single.own.zero_point);
        let y = multiplied(b, x, factor);
        stored.store(b, DType::I64, y)
    })
}

/// `x < 0 ? below : above`.
fn by_sign(b: &mut ExpressionBuilder, x: ScalarId, above: ScalarId, below: ScalarId) -> ScalarId {
    let zero = whole(b, 0);
    let is_negative = b.binary(B::Less, x, zero);
    b.select(is_negative, below, above)
}

fn leaky_relu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let alpha = call.float_or("alpha", 0.0)?;
    let Some(single) = Single::read(call)? else {
        let x = call.input(0)?;
        return Ok(call.builder.apply(LeakyRelu { slope: Float(alpha) }, &[x])?);
    };
    let above = single.ratio()?;
    let slope = single.own.scale * alpha as f32 / single.result.scale;
    let below = Factor::of(slope.abs().into())?;
    call.builder.integer_function(single.x, |b, x| {
        let x = plus(b, x, -single.own.zero_point);
        let above = multiplied(b, x, above);
        let number = if slope < 0.0 { -below.number } else { below.number };
        let below = multiplied(b, x, Factor { number, ..below });
        let y = by_sign(b, x, above, below);
        single.stored.store(b, DType::I64, y)
    })
}

fn prelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let (x, alpha) = (call.input(0)?, call.input(1)?);
    let Some(single) = Single::read(call)? else {
        let dtype = call.dtype_of(x);
        return Ok(call.builder.map(&[x, alpha], |b| {
            let (x, alpha, zero) = (b.operand(0), b.operand(1), b.number(dtype, 0.0));
            let scaled = b.binary(B::Multiply, x, alpha);
            let is_negative = b.binary(B::Less, x, zero);
            b.select(is_negative, scaled, x)
        })?);
    };
    let slopes = call.operand_affine(1)?;
    let (own, result) = (f64::from(single.own.scale), f64::from(single.result.scale));
    let (above, below) = (Factor::of(own / result)?, Factor::of(own * f64::from(slopes.scale) / result)?);
    Ok(call.builder.map(&[x, alpha], |b| {
        let [x, alpha] = [(0, single.own), (1, slopes)].map(|(operand, affine)| {
            let operand = b.operand(operand);
            let operand = b.cast(DType::I64, operand);
            plus(b, operand, -affine.zero_point)
        });
        let above = multiplied(b, x, above);
        let product = b.binary(B::Multiply, x, alpha);
        let below = multiplied(b, product, below);
        let y = by_sign(b, x, above, below);
        single.stored.store(b, DType::I64, y)
    })?)
}

fn absolute(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Some(single) = Single::read(call)? else { return call.unary(U::Absolute) };
    let factor = Factor::of(f64::from(single.own.scale) / f64::from(single.result.scale))?;
    call.builder.integer_function(single.x, |b, x| {
        let x = plus(b, x, -single.own.zero_point);
        let x = b.unary(U::Absolute, x);
        let y = multiplied(b, x, factor);
        single.stored.store(b, DType::I64, y)
    })
}

fn negative(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    if call.is_quantized() {
        return Err(Fault::variant("the format has no negation of quantised tensors"));
    }
    call.unary(U::Negate)
}

fn elu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Some(single) = Single::read(call)? else {
        let x = call.input(0)?;
        return Ok(call.builder.apply(Elu { alpha: Float(1.0) }, &[x])?);
    };
    by_table(call, &single, |b, x| {
        let (zero, rest) = (b.number(DType::F32, 0.0), b.unary(U::Expm1, x));
        let is_negative = b.binary(B::Less, x, zero);
        b.select(is_negative, rest, x)
    })
}

fn gelu(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let function = if call.flag_or("approximate", false)? { U::GeluTanh } else { U::Gelu };
    real_function(call, function)
}

/// A function of real numbers; of integers by a table, where each is rounded.
fn real_function(call: &mut Call<'_, '_>, function: U) -> Result<Value, Fault> {
    match Single::read(call)? {
        None => call.unary(function),
        Some(single) => by_table(call, &single, |b, x| b.unary(function, x)),
    }
}

fn by_table(
    call: &mut Call<'_, '_>,
    single: &Single,
    function: impl FnOnce(&mut ExpressionBuilder, ScalarId) -> ScalarId,
) -> Result<Value, Fault> {
    let x = single.own.of(single.x);
    call.builder.real_function(x, single.result.scale, single.stored, function)
}

/// A function that is constant far from zero.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Curve {
    Logistic,
    Tanh,
}

fn saturating(call: &mut Call<'_, '_>, curve: Curve) -> Result<Value, Fault> {
    let function = if curve == Curve::Logistic { U::Sigmoid } else { U::Tanh };
    let Some(single) = Single::read(call)? else { return call.unary(function) };
    if call.dtype_of(single.x).size() > 1 {
        return by_table(call, &single, |b, x| b.unary(function, x));
    }
    // Integers of 8 bits are fixed-point numbers with 27 fractional bits.
    let factor = Factor::of(f64::from(single.own.scale) * f64::from(1 << 27))?;
    let radius = (15.0 * f64::from(1 << 27) / 2f64.powi(factor.exponent() as i32)).floor() as i64;
    call.builder.integer_function(single.x, |b, x| {
        let x = plus(b, x, -single.own.zero_point);
        // Beyond the radius the value isn't looked at.
        let near = limited(b, x, -radius, radius);
        let value = multiplied(b, near, factor);
        let (y, bits, offset) = match curve {
            Curve::Logistic => (logistic(b, value), 23, i64::from(i8::MIN)),
            Curve::Tanh => (tanh(b, value), 24, 0),
        };
        let y = rounded_right(b, y, bits);
        let y = plus(b, y, offset);
        let (low, high) = (whole(b, i8::MIN.into()), whole(b, i8::MAX.into()));
        let (least, most) = (whole(b, -radius), whole(b, radius));
        let is_low = b.binary(B::LessEqual, x, least);
        let y = b.select(is_low, low, y);
        let is_high = b.binary(B::GreaterEqual, x, most);
        let y = b.select(is_high, high, y);
        // The result has a zero point and a scale of its own in signed integers; unsigned ones are the same, moved.
        let moved = if single.stored.dtype == DType::U8 { 128 } else { 0 };
        Stored { zero_point: moved, ..single.stored }.store(b, DType::I64, y)
    })
}

/// x * relu6(x + 3) / 6 in arithmetic of 16 bits.
fn hard_swish(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Some(single) = Single::read(call)? else { return call.unary(U::HardSwish) };
    let fine = single.own.scale / 128.0;
    let short = |factor: Factor| {
        let largest = i64::from(i32::MAX) - (1 << 15);
        if factor.number >= largest { 32767 } else { (factor.number + (1 << 15)) >> 16 }
    };
    let output = Factor::of((fine / single.result.scale).into())?;
    let relu = Factor::of((fine / (3.0 / 32768.0f32)).into())?;
    let (to_output, to_relu) = (short(output), short(relu));
    let (output, relu) = (output.exponent(), relu.exponent());
    if output > 0 {
        return Err(Fault::variant("the scale of the result is smaller than a 128th of the operand's"));
    }
    call.builder.integer_function(single.x, |b, x| {
        let x = plus(b, x, -single.own.zero_point);
        let value = shifted_left(b, x, 7);
        let (to_output, to_relu) = (whole(b, to_output), whole(b, to_relu));
        let scaled = short_product(b, value, to_output);
        let mut share = value;
        if relu > 0 {
            let shifted = shifted_left(b, share, relu - 1);
            share = saturated_short(b, shifted);
        }
        share = short_product(b, share, to_relu);
        if relu > 0 {
            let shifted = shifted_left(b, share, 1);
            share = saturated_short(b, shifted);
        }
        share = rounded_right(b, share, (-relu).max(0));
        let raised = plus(b, share, 1 << 15);
        let one = whole(b, 1);
        let share = b.binary(B::ShiftRight, raised, one);
        let product = b.binary(B::Multiply, share, scaled);
        let divisor = whole(b, 1 << 15);
        let product = b.binary(B::Divide, product, divisor);
        let product = saturated_short(b, product);
        let y = rounded_right(b, product, -output);
        single.stored.store(b, DType::I64, y)
    })
}
