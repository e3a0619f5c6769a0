//! Signal processing: Fourier transforms, windows, mel filters.

use super::call::{Call, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_import::builder::{Complex, LONGEST_TRANSFORM};
use mlc_ir::scalar::BinaryFunction as B;
use mlc_ir::{Attribute, Code, DType, Tensor, TensorType, Value};
use std::f64::consts::TAU;

pub(super) const OPERATORS: Table = &[
    ("BlackmanWindow", 17, One(|call| window(call, |turn| 0.42 - 0.5 * turn.cos() + 0.08 * (2.0 * turn).cos()))),
    ("DFT", 17, One(transform)),
    // The standard's constants are these, not the 0.54 and 0.46 that they are often rounded to.
    ("HammingWindow", 17, One(|call| window(call, |turn| 25.0 / 46.0 - 21.0 / 46.0 * turn.cos()))),
    ("HannWindow", 17, One(|call| window(call, |turn| (turn / 2.0).sin().powi(2)))),
    ("MelWeightMatrix", 17, One(mel_weights)),
    ("STFT", 17, One(short_time)),
];

/// Longest window.
const LONGEST_WINDOW: usize = 1 << 24;

/// Real and imaginary part of x [.., 1 or 2].
fn parts(call: &mut Call<'_, '_>, x: Value) -> Result<Complex, Fault> {
    let shape = call.shape(x);
    let last = shape.len().saturating_sub(1);
    match shape.last() {
        Some(1) => Ok((call.builder.pick(x, last, 0)?, None)),
        Some(2) => Ok((call.builder.pick(x, last, 0)?, Some(call.builder.pick(x, last, 1)?))),
        _ => {
            let message = format!("the last axis of {} must hold real and imaginary parts", call.builder.ty(x));
            Err(Fault::operands(message))
        }
    }
}

/// Joins real and imaginary part along a new last axis.
fn joined(call: &mut Call<'_, '_>, (re, im): Complex) -> Result<Value, Fault> {
    let axis = call.rank(re);
    let parts: Vec<Value> = [Some(re), im].into_iter().flatten().collect();
    Ok(call.builder.stack(&parts, axis)?)
}

fn length(call: &mut Call<'_, '_>, index: usize, default: usize) -> Result<usize, Fault> {
    let given = call.constant_int(index, "the number of points")?;
    let length = given.map_or(Some(default), |length| usize::try_from(length).ok());
    length
        .filter(|length| (1..=LONGEST_TRANSFORM).contains(length))
        .ok_or_else(|| Fault::variant(format!("transforms have from 1 to {LONGEST_TRANSFORM} points")))
}

fn transform(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let axis =
        if call.version() < 20 { call.int_or("axis", 1)? } else { call.constant_int(2, "the axis")?.unwrap_or(-2) };
    let axis = call.axis(x, axis)?;
    let (inverse, onesided) = (call.flag_or("inverse", false)?, call.flag_or("onesided", false)?);
    let x = parts(call, x)?;
    let Some(&extent) = call.shape(x.0).get(axis) else {
        return Err(Fault::parameter("the axis of real and imaginary parts can't be transformed"));
    };
    let default = if inverse && onesided { 2 * extent.saturating_sub(1) } else { extent };
    let points = length(call, 1, default)?;
    if inverse && onesided {
        let y = call.builder.real_signal(x, axis, points)?;
        let y = call.builder.binary_number(B::Multiply, y, 1.0 / points as f64)?;
        return joined(call, (y, None));
    }
    let results = if onesided { points / 2 + 1 } else { points };
    let y = call.builder.transform_axis(x, axis, (points, results), inverse)?;
    let y = joined(call, y)?;
    if inverse {
        return Ok(call.builder.binary_number(B::Multiply, y, 1.0 / points as f64)?);
    }
    Ok(y)
}

/// The spectra of frames of x [batch, length, 1 or 2], as [batch, frames, frequencies, 2].
fn short_time(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let x = call.input(0)?;
    let hop = call.constant_int(1, "the step")?.and_then(|hop| usize::try_from(hop).ok()).filter(|&hop| hop > 0);
    let hop = hop.ok_or_else(|| Fault::parameter("the step between frames must be a positive number"))?;
    let window = call.optional(2)?;
    if call.rank(x) != 3 {
        return Err(Fault::operands(format!("the signal {} must have three axes", call.builder.ty(x))));
    }
    let default = match window {
        Some(window) => call.shape(window).first().copied().unwrap_or(0),
        None => call.shape(x)[1],
    };
    let points = length(call, 3, default)?;
    if let Some(window) = window
        && call.shape(window)[..] != [points]
    {
        return Err(Fault::variant(format!("the window {} isn't as long as a frame", call.builder.ty(window))));
    }
    let results = if call.flag_or("onesided", true)? { points / 2 + 1 } else { points };
    let (re, im) = parts(call, x)?;
    let mut framed = |x: Value| -> Result<Value, Fault> {
        let frames = call.builder.frames(x, points, hop)?;
        Ok(call.builder.multiply_optional(frames, window)?)
    };
    let signal = (framed(re)?, im.map(framed).transpose()?);
    let spectra = call.builder.transform_last(signal, points, results, false)?;
    joined(call, spectra)
}

/// A constant of computed numbers.
fn constant(call: &mut Call<'_, '_>, dtype: DType, shape: &[usize], values: Vec<f64>) -> Value {
    let ty = TensorType::new(dtype, shape);
    let tensor = if dtype.is_float() {
        Tensor::from_floats(ty, values)
    } else {
        Tensor::from_integers(ty, values.into_iter().map(|value| value as i64).collect())
    };
    call.builder.constant("window", Attribute::from_tensor(&tensor))
}

/// A window that is a function of the turn from 0 to 2 pi.
fn window(call: &mut Call<'_, '_>, function: impl Fn(f64) -> f64) -> Result<Value, Fault> {
    let size = call.constant_int(0, "the size of the window")?;
    let size = size.ok_or_else(|| Fault::new(Code::OperandCount, "the size of the window is missing"))?;
    let size = usize::try_from(size).ok().filter(|&size| size <= LONGEST_WINDOW);
    let size = size.ok_or_else(|| Fault::parameter(format!("a window has up to {LONGEST_WINDOW} elements")))?;
    let dtype = call.dtype("output_datatype")?.unwrap_or(DType::F32);
    let periods = if call.flag_or("periodic", true)? { size } else { size.saturating_sub(1) };
    if periods == 0 && size > 0 {
        return Err(Fault::variant("a symmetric window of one element isn't defined"));
    }
    let values = (0..size).map(|place| function(TAU * place as f64 / periods as f64)).collect();
    Ok(constant(call, dtype, &[size], values))
}

/// Triangular filters on the mel scale, as [frequencies, filters].
fn mel_weights(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let mut number = |index: usize, what: &str| -> Result<f64, Fault> {
        let number = call.constant_float(index, what)?;
        number.ok_or_else(|| Fault::new(Code::OperandCount, format!("{what} is missing")))
    };
    let (filters, points) = (number(0, "the number of filters")?, number(1, "the number of points")?);
    let (rate, low) = (number(2, "the sample rate")?, number(3, "the lowest frequency")?);
    let high = number(4, "the highest frequency")?;
    let dtype = call.dtype("output_datatype")?.unwrap_or(DType::F32);
    let most = LONGEST_TRANSFORM as f64;
    if !(1.0..=most).contains(&filters) || !(1.0..=most).contains(&points) || rate.is_nan() || rate <= 0.0 {
        return Err(Fault::parameter(format!(
            "{filters} filters of {points} points at a rate of {rate} aren't possible"
        )));
    }
    let (filters, points) = (filters as usize, points as usize);
    let frequencies = points / 2 + 1;
    let mel = |hertz: f64| 2595.0 * (hertz / 700.0).ln_1p() / 10f64.ln();
    let step = (mel(high) - mel(low)) / (filters + 2) as f64;
    let place = |index: usize| {
        let hertz = 700.0 * ((index as f64 * step + mel(low)) / 2595.0 * 10f64.ln()).exp_m1();
        ((points as f64 + 1.0) * hertz / rate).floor()
    };
    let places: Vec<f64> = (0..filters + 2).map(place).collect();
    if places.iter().any(|&place| !(0.0..frequencies as f64).contains(&place)) || step < 0.0 {
        return Err(Fault::parameter(format!("the frequencies from {low} to {high} leave the spectrum")));
    }
    let mut weights = vec![0.0; frequencies * filters];
    for filter in 0..filters {
        let (left, center, right) = (places[filter], places[filter + 1], places[filter + 2]);
        for row in left as usize..=(right as usize).max(center as usize) {
            let place = row as f64;
            let weight = if place < center {
                (place - left) / (center - left)
            } else if place > center {
                (right - place) / (right - center)
            } else {
                1.0
            };
            weights[row * filters + filter] = weight;
        }
    }
    Ok(constant(call, dtype, &[frequencies, filters], weights))
}
