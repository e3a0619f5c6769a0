//! Normalisations.

use super::call::{Call, Parameters, Table};
use super::signature::Signature;
use super::signature::Type::Number;
use mlc_import::Handler::{Many, One};
use mlc_import::builder::{Affine, Statistics};
use mlc_import::{Fault, Operand};
use mlc_ir::ops::Softmax;
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{DType, Value};

pub(super) const OPERATORS: Table = &[
    (
        Signature::new("batchnorm", &["src", "scale", "offset", "mean", "var"], &["dst"], &[("epsilon", Number)]),
        One(batch_normalization),
    ),
    (
        Signature::new(
            "bn2scale_wts_cpu",
            &["src_mean", "src_var", "src_scale", "src_offset"],
            &["dst_scale", "dst_shift", "dst_power"],
            &[("epsilon", Number)],
        ),
        Many(scales_of_statistics),
    ),
    (Signature::new("softmax", &["src"], &["dst"], &[("axis", Number)]), One(softmax)),
];

fn softmax(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis = call.plain_axis(x, "axis")?;
    Ok(call.builder.apply(Softmax { axis, logarithm: false }, &[x])?)
}

fn positive_epsilon(call: &mut Call<'_, '_>) -> Result<f64, Fault> {
    let epsilon = call.required_float("epsilon")?;
    if epsilon > 0.0 {
        return Ok(epsilon);
    }
    Err(Fault::parameter(format!("parameter `epsilon` is {epsilon}, more than 0 expected")))
}

fn batch_normalization(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    call.check_rank(0, x, 4)?;
    let parts = (1..5).map(|place| call.input(place)).collect::<Result<Vec<_>, _>>()?;
    let channels = call.shape(x)[1];
    for (place, &part) in parts.iter().enumerate() {
        call.check_same_type(x, part)?;
        if call.shape(part)[..] != [channels] {
            let (title, ty) = (call.title(1 + place), call.builder.ty(part));
            return Err(Fault::operands(format!("{title} is {ty}, a number for each of {channels} channels expected")));
        }
    }
    let epsilon = positive_epsilon(call)?;
    let statistics = Statistics { mean: parts[2], variance: parts[3], epsilon };
    let affine = Affine { weight: Some(parts[0]), bias: Some(parts[1]) };
    Ok(call.builder.stored_statistics(x, statistics, affine)?)
}

/// What upstream makes of a normalisation's statistics, which isn't what [`batch_normalization`] does: there is no square root.
fn scales_of_statistics(call: &mut Call<'_, '_>) -> Result<Vec<Operand>, Fault> {
    let parts = call.all_inputs()?;
    for (place, &part) in parts.iter().enumerate() {
        call.check_rank(place, part, 1)?;
        call.check_dtype(place, part, DType::F32)?;
        call.check_same_shape((0, parts[0]), (place, part))?;
    }
    let epsilon = positive_epsilon(call)?;
    let [mean, variance, scale, offset] = parts[..] else { return Err(Fault::operands("four tensors expected")) };
    let builder = &mut *call.builder;
    let divisor = builder.binary_number(B::Add, variance, epsilon)?;
    let scale = builder.binary(B::Divide, scale, divisor)?;
    let moved = builder.binary(B::Multiply, mean, scale)?;
    let shift = builder.binary(B::Subtract, offset, moved)?;
    let one = builder.number(DType::F32, 1.0);
    let shape = builder.shape(mean);
    let power = builder.broadcast(one, &shape)?;
    Ok([scale, shift, power].map(Operand::Tensor).to_vec())
}
