//! Discrete Fourier transforms, as products by constant matrices of cosines and sines.

use super::call::{Call, Operands, Table};
use super::complex::to_pairs;
use super::item::Item;
use super::padding::pad_mode;
use mlc_import::Fault;
use mlc_import::Handler::{Many, One};
use mlc_import::builder::{Complex, LONGEST_TRANSFORM};
use mlc_ir::ops::{PadMode, TransposedConvolution};
use mlc_ir::scalar::{BinaryFunction as B, UnaryFunction as U};
use mlc_ir::{Attribute, DType, Tensor, TensorType, Value};

pub(super) const OPERATORS: Table = &[
    ("torch.fft.fft", Many(|call| transform(call, Kind::Forward, Axes::One))),
    ("torch.fft.fft2", Many(|call| transform(call, Kind::Forward, Axes::Two))),
    ("torch.fft.fftn", Many(|call| transform(call, Kind::Forward, Axes::All))),
    ("torch.fft.hfft", Many(|call| transform(call, Kind::ToReal { conjugate: true }, Axes::One))),
    ("torch.fft.hfft2", Many(|call| transform(call, Kind::ToReal { conjugate: true }, Axes::Two))),
    ("torch.fft.hfftn", Many(|call| transform(call, Kind::ToReal { conjugate: true }, Axes::All))),
    ("torch.fft.ifft", Many(|call| transform(call, Kind::Inverse, Axes::One))),
    ("torch.fft.ifft2", Many(|call| transform(call, Kind::Inverse, Axes::Two))),
    ("torch.fft.ifftn", Many(|call| transform(call, Kind::Inverse, Axes::All))),
    ("torch.fft.ihfft", Many(|call| transform(call, Kind::FromReal { conjugate: true }, Axes::One))),
    ("torch.fft.ihfft2", Many(|call| transform(call, Kind::FromReal { conjugate: true }, Axes::Two))),
    ("torch.fft.ihfftn", Many(|call| transform(call, Kind::FromReal { conjugate: true }, Axes::All))),
    ("torch.fft.irfft", Many(|call| transform(call, Kind::ToReal { conjugate: false }, Axes::One))),
    ("torch.fft.irfft2", Many(|call| transform(call, Kind::ToReal { conjugate: false }, Axes::Two))),
    ("torch.fft.irfftn", Many(|call| transform(call, Kind::ToReal { conjugate: false }, Axes::All))),
    ("torch.fft.rfft", Many(|call| transform(call, Kind::FromReal { conjugate: false }, Axes::One))),
    ("torch.fft.rfft2", Many(|call| transform(call, Kind::FromReal { conjugate: false }, Axes::Two))),
    ("torch.fft.rfftn", Many(|call| transform(call, Kind::FromReal { conjugate: false }, Axes::All))),
    ("torch.istft", One(istft)),
    ("torch.stft", Many(stft)),
    ("torchaudio.functional.spectrogram", Many(spectrogram)),
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Forward,
    Inverse,
    /// The half spectrum of a real signal. `ihfft` is its conjugate, scaled as an inverse.
    FromReal {
        conjugate: bool,
    },
    /// The real signal of a half spectrum. `hfft` takes the conjugate, and is scaled as a forward transform.
    ToReal {
        conjugate: bool,
    },
}

impl Kind {
    /// Whether `norm=backward` leaves it unscaled.
    fn scaled_as_forward(self) -> bool {
        matches!(self, Kind::Forward | Kind::FromReal { conjugate: false } | Kind::ToReal { conjugate: true })
    }
}

enum Axes {
    One,
    Two,
    All,
}

fn transform(call: &mut Call<'_, '_>, kind: Kind, default: Axes) -> Result<Vec<Item>, Fault> {
    let mut x: Complex = match call.labelled_item("input", 0)? {
        Item::Complex(re, im) => (re, Some(im)),
        other => {
            let x = call.as_tensor("`input`", &other)?;
            let dtype = call.builder.dtype(x);
            (call.builder.cast(x, if dtype.is_float() { dtype } else { DType::F32 })?, None)
        }
    };
    let rank = call.builder.rank(x.0);
    let one = matches!(default, Axes::One);
    let lengths = call.ints(if one { "n" } else { "s" })?;
    let axes = match call.ints("dim")? {
        Some(axes) => axes,
        None => match (default, &lengths) {
            (Axes::One, _) => vec![-1],
            (Axes::Two, _) => vec![-2, -1],
            (Axes::All, Some(lengths)) => (-(lengths.len() as i64)..0).collect(),
            (Axes::All, None) => (0..rank as i64).collect(),
        },
    };
    let axes = axes.iter().map(|&axis| call.axis(x.0, axis)).collect::<Result<Vec<_>, _>>()?;
    let norm = call.word("norm")?;
    let Some((&last, others)) = axes.split_last() else {
        return Err(Fault::parameter("there is no axis to transform"));
    };
    if lengths.as_ref().is_some_and(|lengths| lengths.len() != axes.len()) {
        return Err(Fault::parameter("`s` and `dim` must be equally long"));
    }
    let length = |call: &Call<'_, '_>, index: usize, default: usize| -> Result<usize, Fault> {
        let given = lengths.as_ref().map(|lengths| lengths[index]).filter(|&length| length != -1);
        let length = given.map_or(Some(default), |length| usize::try_from(length).ok());
        length.filter(|&length| (1..=LONGEST_TRANSFORM).contains(&length)).ok_or_else(|| {
            Fault::variant(format!(
                "transforms of {} have from 1 to {LONGEST_TRANSFORM} points",
                call.site.operator.kind
            ))
        })
    };
    let mut scale = 1.0;
    let last_extent = call.shape(x.0)[last];
    let to_real = matches!(kind, Kind::ToReal { .. });
    let default = if to_real { 2 * last_extent.saturating_sub(1) } else { last_extent };
    let last_length = length(call, axes.len() - 1, default)?;
    if kind == (Kind::ToReal { conjugate: true }) {
        x.1 = x.1.map(|im| call.builder.unary(U::Negate, im)).transpose()?;
    }
    if let Kind::FromReal { .. } = kind {
        x = call.builder.transform_axis(x, last, (last_length, last_length / 2 + 1), false)?;
        scale *= factor(kind, norm.as_deref(), last_length)?;
    }
    for (index, &axis) in others.iter().enumerate() {
        let points = length(call, index, call.shape(x.0)[axis])?;
        let inverse = matches!(kind, Kind::Inverse | Kind::ToReal { .. });
        x = call.builder.transform_axis(x, axis, (points, points), inverse)?;
        scale *= factor(kind, norm.as_deref(), points)?;
    }
    match kind {
        Kind::Forward | Kind::Inverse => {
            x = call.builder.transform_axis(x, last, (last_length, last_length), kind == Kind::Inverse)?;
            scale *= factor(kind, norm.as_deref(), last_length)?;
        }
        Kind::ToReal { .. } => {
            x = (call.builder.real_signal(x, last, last_length)?, None);
            scale *= factor(kind, norm.as_deref(), last_length)?;
        }
        Kind::FromReal { conjugate: true } => x.1 = x.1.map(|im| call.builder.unary(U::Negate, im)).transpose()?,
        Kind::FromReal { conjugate: false } => {}
    }
    if scale != 1.0 {
        x.0 = call.builder.binary_number(B::Multiply, x.0, scale)?;
        x.1 = x.1.map(|im| call.builder.binary_number(B::Multiply, im, scale)).transpose()?;
    }
    Ok(vec![match x {
        (re, Some(im)) => Item::Complex(re, im),
        (re, None) => Item::Tensor(re),
    }])
}

/// The factor of one axis.
fn factor(kind: Kind, norm: Option<&str>, points: usize) -> Result<f64, Fault> {
    let points = points as f64;
    match (norm.unwrap_or("backward"), kind.scaled_as_forward()) {
        ("ortho", _) => Ok(1.0 / points.sqrt()),
        ("backward", true) | ("forward", false) => Ok(1.0),
        ("backward", false) | ("forward", true) => Ok(1.0 / points),
        (other, _) => Err(Fault::parameter(format!("there is no norm {other}"))),
    }
}

/// Parameters of a short-time transform.
struct Frames {
    points: usize,
    hop: usize,
    center: bool,
    mode: PadMode,
    onesided: bool,
}

fn frames(call: &mut Call<'_, '_>) -> Result<(Frames, usize), Fault> {
    let points = call.int("n_fft")?;
    let points = call.required("n_fft", points)?;
    let positive = |value: i64, key: &str| {
        let value = usize::try_from(value).ok().filter(|value| (1..=LONGEST_TRANSFORM).contains(value));
        value.ok_or_else(|| Fault::parameter(format!("parameter `{key}` must be from 1 to {LONGEST_TRANSFORM}")))
    };
    let points = positive(points, "n_fft")?;
    let window = positive(call.int_or("win_length", points as i64)?, "win_length")?;
    let hop = positive(call.int_or("hop_length", (points as i64 / 4).max(1))?, "hop_length")?;
    let mode = call.word("pad_mode")?.unwrap_or_else(|| "reflect".into());
    let onesided = call.flag_or("onesided", true)?;
    let frames = Frames { points, hop, center: call.flag_or("center", true)?, mode: pad_mode(&mode)?, onesided };
    if window > points {
        return Err(Fault::parameter("the window must not be longer than the transform"));
    }
    Ok((frames, window))
}

/// The spectra of overlapping, windowed frames of the last axis, as (.., frequencies, frames).
fn short_time(call: &mut Call<'_, '_>, x: Value, window: Option<Value>, frames: &Frames) -> Result<Complex, Fault> {
    let rank = call.builder.rank(x);
    let last = rank.checked_sub(1).ok_or_else(|| Fault::operands("the signal has no axis"))?;
    let mut x = x;
    if frames.center {
        let mut pads = vec![(0, 0); rank];
        pads[last] = (frames.points as i64 / 2, frames.points as i64 / 2);
        x = call.builder.pad(x, &pads, frames.mode, 0.0)?;
    }
    let mut signal = call.builder.frames(x, frames.points, frames.hop)?;
    if let Some(window) = window {
        let missing = frames.points as i64 - call.builder.ty(window).elements() as i64;
        let window = call.builder.pad(window, &[(missing / 2, missing - missing / 2)], PadMode::Constant, 0.0)?;
        signal = call.builder.binary(B::Multiply, signal, window)?;
    }
    let results = if frames.onesided { frames.points / 2 + 1 } else { frames.points };
    let (re, im) = call.builder.transform_last((signal, None), frames.points, results, false)?;
    let re = call.builder.swap_axes(re, last, last + 1)?;
    Ok((re, im.map(|im| call.builder.swap_axes(im, last, last + 1)).transpose()?))
}

fn scaled(call: &mut Call<'_, '_>, x: Complex, scale: f64) -> Result<Complex, Fault> {
    let re = call.builder.binary_number(B::Multiply, x.0, scale)?;
    Ok((re, x.1.map(|im| call.builder.binary_number(B::Multiply, im, scale)).transpose()?))
}

fn complex_result(call: &Call<'_, '_>, (re, im): Complex) -> Result<Item, Fault> {
    let im = im.ok_or_else(|| Fault::operands(format!("{} has no imaginary part", call.site.operator.kind)))?;
    Ok(Item::Complex(re, im))
}

fn stft(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let x = call.x()?;
    let window = call.optional_labelled_input("window", 1)?;
    let (frames, _) = frames(call)?;
    let mut y = short_time(call, x, window, &frames)?;
    if call.flag_or("normalized", false)? {
        y = scaled(call, y, 1.0 / (frames.points as f64).sqrt())?;
    }
    let complex = call.flag_or("return_complex", false)?;
    let result = complex_result(call, y)?;
    match result {
        Item::Complex(re, im) if !complex => Ok(vec![Item::Tensor(to_pairs(call.builder, re, im)?)]),
        result => Ok(vec![result]),
    }
}

fn spectrogram(call: &mut Call<'_, '_>) -> Result<Vec<Item>, Fault> {
    let mut x = call.labelled_input("waveform", 0)?;
    let window = call.labelled_input("window", 1)?;
    let (frames, _) = frames(call)?;
    let pad = call.int_or("pad", 0)?;
    if pad != 0 {
        let mut pads = vec![(0, 0); call.builder.rank(x)];
        if let Some(last) = pads.last_mut() {
            *last = (pad, pad);
        }
        x = call.builder.pad(x, &pads, PadMode::Constant, 0.0)?;
    }
    let mut y = short_time(call, x, Some(window), &frames)?;
    match call.argument("normalized") {
        None | Some(Item::Bool(false)) => {}
        Some(Item::Word(word)) if word == "frame_length" => y = scaled(call, y, 1.0 / (frames.points as f64).sqrt())?,
        Some(Item::Bool(true)) => y = by_window(call, y, window)?,
        Some(Item::Word(word)) if word == "window" => y = by_window(call, y, window)?,
        Some(other) => return Err(Fault::parameter(format!("`normalized` can't be {}", other.description()))),
    }
    let Some(power) = call.float("power")? else { return Ok(vec![complex_result(call, y)?]) };
    let Item::Complex(re, im) = complex_result(call, y)? else { return Ok(Vec::new()) };
    let (re, im) = (call.builder.unary(U::Square, re)?, call.builder.unary(U::Square, im)?);
    let energy = call.builder.binary(B::Add, re, im)?;
    let result = match power {
        2.0 => energy,
        1.0 => call.builder.unary(U::Sqrt, energy)?,
        _ => call.builder.binary_number(B::Power, energy, power / 2.0)?,
    };
    Ok(vec![Item::Tensor(result)])
}

/// Divides by the window's Euclidean norm.
fn by_window(call: &mut Call<'_, '_>, x: Complex, window: Value) -> Result<Complex, Fault> {
    let norm = super::reduction::norm(call, window, 2.0, vec![0], false)?;
    let re = call.builder.binary(B::Divide, x.0, norm)?;
    Ok((re, x.1.map(|im| call.builder.binary(B::Divide, im, norm)).transpose()?))
}

/// Overlapping frames of real signals, added up and divided by the sum of the squares of the windows there.
fn istft(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let Item::Complex(re, im) = call.labelled_item("input", 0)? else {
        return Err(Fault::operands("the spectrum must be complex"));
    };
    let window = call.optional_labelled_input("window", 1)?;
    let (frames, length) = frames(call)?;
    let points = frames.points;
    if call.flag_or("return_complex", false)? || !frames.onesided {
        return Err(Fault::variant("only one-sided spectra of real signals are supported"));
    }
    let (shape, dtype) = (call.shape(re), call.builder.dtype(re));
    let [ref outer @ .., frequencies, count] = shape[..] else {
        return Err(Fault::operands(format!("the spectrum {} must have frequencies and frames", call.builder.ty(re))));
    };
    let window = match window {
        Some(window) => call.builder.graph().constant(window).map(|window| window.to_tensor().to_floats()),
        None => Some(vec![1.0; length]),
    };
    let mut window = window.ok_or_else(|| Fault::variant("the window must be a constant"))?;
    if frequencies != points / 2 + 1 || window.len() > points || count == 0 || count.saturating_mul(points) > 1 << 26 {
        return Err(Fault::operands(format!("the spectrum {} doesn't fit {points} points", call.builder.ty(re))));
    }
    let missing = points - window.len();
    window.splice(0..0, vec![0.0; missing / 2]);
    window.resize(points, 0.0);
    let last = shape.len() - 1;
    let (re, im) = (call.builder.swap_axes(re, last - 1, last)?, call.builder.swap_axes(im, last - 1, last)?);
    let signal = call.builder.real_signal((re, Some(im)), last, points)?;
    let normalized = call.flag_or("normalized", false)?;
    let scale = if normalized { 1.0 / (points as f64).sqrt() } else { 1.0 / points as f64 };
    let factors = window.iter().map(|value| value * scale).collect();
    let factors = Tensor::from_floats(TensorType::new(dtype, [points]), factors);
    let factors = call.builder.constant("window", Attribute::from_tensor(&factors));
    let signal = call.builder.binary(B::Multiply, signal, factors)?;
    // A transposed convolution whose tap k takes channel k puts each frame in its place.
    let batch: usize = outer.iter().product();
    let signal = call.builder.reshape(signal, &[batch, count, points])?;
    let taps = call.builder.matrix(dtype, points, points, |tap, channel| f64::from(u8::from(tap == channel)));
    let taps = call.builder.reshape(taps, &[points, points, 1])?;
    let op = TransposedConvolution {
        strides: vec![frames.hop],
        dilations: vec![1],
        pads: vec![(0, 0)],
        output_pads: vec![0],
        groups: 1,
        sums: None,
    };
    let total = call.builder.apply(op, &[signal, taps])?;
    let mut envelope = vec![0.0; (count - 1) * frames.hop + points];
    for frame in 0..count {
        for (point, value) in window.iter().enumerate() {
            envelope[frame * frames.hop + point] += value * value;
        }
    }
    let start = if frames.center { points / 2 } else { 0 };
    let room = envelope.len() - start;
    let wanted = match call.int("length")? {
        Some(length) => usize::try_from(length).unwrap_or(0).min(room),
        None => room.saturating_sub(start),
    };
    let total = call.builder.slice_axis(total, 1, start, wanted, 1)?;
    let total = call.builder.reshape(total, &[batch, wanted])?;
    let envelope = Tensor::from_floats(TensorType::new(dtype, [wanted]), envelope[start..start + wanted].to_vec());
    let envelope = call.builder.constant("envelope", Attribute::from_tensor(&envelope));
    let signal = call.builder.binary(B::Divide, total, envelope)?;
    let result: Vec<usize> = outer.iter().copied().chain([wanted]).collect();
    Ok(call.builder.reshape(signal, &result)?)
}
