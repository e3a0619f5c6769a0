//! Padding, and cropping by negative padding.

use super::call::{Call, Operands, Table};
use mlc_import::Fault;
use mlc_import::Handler::One;
use mlc_ir::Value;
use mlc_ir::ops::PadMode;

pub(super) const OPERATORS: Table = &[
    ("F.pad", One(functional)),
    ("nn.CircularPad1d", One(|call| module(call, PadMode::Circular))),
    ("nn.CircularPad2d", One(|call| module(call, PadMode::Circular))),
    ("nn.CircularPad3d", One(|call| module(call, PadMode::Circular))),
    ("nn.ConstantPad1d", One(|call| module(call, PadMode::Constant))),
    ("nn.ConstantPad2d", One(|call| module(call, PadMode::Constant))),
    ("nn.ConstantPad3d", One(|call| module(call, PadMode::Constant))),
    ("nn.ReflectionPad1d", One(|call| module(call, PadMode::Reflect))),
    ("nn.ReflectionPad2d", One(|call| module(call, PadMode::Reflect))),
    ("nn.ReflectionPad3d", One(|call| module(call, PadMode::Reflect))),
    ("nn.ReplicationPad1d", One(|call| module(call, PadMode::Replicate))),
    ("nn.ReplicationPad2d", One(|call| module(call, PadMode::Replicate))),
    ("nn.ReplicationPad3d", One(|call| module(call, PadMode::Replicate))),
    ("nn.ZeroPad1d", One(|call| module(call, PadMode::Constant))),
    ("nn.ZeroPad2d", One(|call| module(call, PadMode::Constant))),
    ("nn.ZeroPad3d", One(|call| module(call, PadMode::Constant))),
];

/// The mode of a word.
pub(super) fn pad_mode(word: &str) -> Result<PadMode, Fault> {
    match word {
        "constant" | "zeros" => Ok(PadMode::Constant),
        "reflect" => Ok(PadMode::Reflect),
        "replicate" => Ok(PadMode::Replicate),
        "circular" => Ok(PadMode::Circular),
        _ => Err(Fault::parameter(format!("there is no padding mode {word}"))),
    }
}

fn functional(call: &mut Call<'_, '_>) -> Result<Value, Fault> {
    let mode = match call.word("mode")? {
        Some(mode) => pad_mode(&mode)?,
        None => PadMode::Constant,
    };
    pad(call, "pad", mode)
}

fn module(call: &mut Call<'_, '_>, mode: PadMode) -> Result<Value, Fault> {
    pad(call, "padding", mode)
}

/// Pads by pairs of numbers, from the last axis backwards.
fn pad(call: &mut Call<'_, '_>, key: &str, mode: PadMode) -> Result<Value, Fault> {
    let x = call.x()?;
    let value = call.float_or("value", 0.0)?;
    let list = call.ints(key)?;
    let list = call.required(key, list)?;
    let rank = call.builder.rank(x);
    if !list.len().is_multiple_of(2) || list.len() / 2 > rank || list.iter().any(|pad| pad.abs() > 1 << 31) {
        let ty = call.builder.ty(x);
        return Err(Fault::parameter(format!(
            "parameter `{key}` must have at most {rank} pairs for {ty}, found {list:?}"
        )));
    }
    let mut pads = vec![(0, 0); rank];
    for (index, pair) in list.chunks_exact(2).enumerate() {
        pads[rank - 1 - index] = (pair[0], pair[1]);
    }
    Ok(call.builder.pad(x, &pads, mode, value)?)
}
